"""What a series' page begins with, and what of a reason stands in a row."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

from dataclasses import replace
from typing import Any

import pytest
from made_up_judgement import SETTINGS

from analysis.detection.verdict import Outcome
from analysis.judging.incidents import Cause, Incident
from analysis.judging.judgement import JudgedSeries
from analysis.judging.verdicts import ChangeRemark, Verdict, VerdictBasis, WithinRelease
from reports.wording.changes import by_change
from reports.wording.series_list import lead_series

NBSP = "\N{NO-BREAK SPACE}"


@pytest.fixture
def incident(demo: Any) -> Incident:
    found: Incident = demo.judgement.incidents[0]
    return replace(found, fixed_by=())


@pytest.fixture
def fallen(demo: Any, incident: Incident) -> JudgedSeries:
    """Return the series of the lead, with the verdict that the analysis would have for it."""
    lead, sentinel = incident.lead, incident.evidence[1]
    verdict = Verdict(
        outcome=Outcome.REGRESSED,
        basis=VerdictBasis.CHANGE,
        remark=ChangeRemark(notes=(sentinel, WithinRelease.NOTHING_RECORDED)),
        change=lead,
        sides=(6, 4),
        relevant_change=0.05,
        relative_change=lead.relative_change,
        p_value=lead.p_value,
        is_significant=True,
        is_relevant=True,
    )
    (judged,) = (one for one in demo.judgement.series if one.series.key == lead.series.key)
    found: JudgedSeries = replace(judged, verdict=verdict)
    return found


def test_a_series_begins_with_what_moved_how_sure_and_whether_it_matters(
    fallen: JudgedSeries, incident: Incident
) -> None:
    lead = lead_series(fallen, by_change([incident]), SETTINGS)
    first, _, others = lead.text.partition(". Confirmed ")
    assert first.startswith("Throughput fell by 1")
    assert first.endswith(" between 5.0.2 and 5.0.3")
    assert all(said in others for said in ("8 points", "p < 0.0001", f"5{NBSP}%"))
    # Names as on the rest of the page; each note is a sentence, whatever signs it has in it.
    assert lead.more == (
        "Sentinel cassandra 5.0, throughput of write at saturation: not measured since (last:"
        f" 1{NBSP}Mar{NBSP}2026{NBSP}#1). No release lies between, so look at the host and the"
        " configuration first."
    )


def test_a_change_of_the_configuration_is_said_at_once(
    fallen: JudgedSeries, incident: Incident
) -> None:
    reported = by_change([replace(incident, cause=Cause.CONFIGURATION)])
    text = lead_series(fallen, reported, SETTINGS).text
    assert text.endswith("No release lies between; the configuration changed there.")


def test_where_nothing_is_claimed_the_reason_says_why(fallen: JudgedSeries) -> None:
    verdict = replace(fallen.verdict, outcome=Outcome.UNDECIDED, basis=VerdictBasis.SUSPICION)
    unsure = lead_series(replace(fallen, verdict=verdict), {}, SETTINGS)
    assert " since 5.0.3 shows, but is not confirmed yet: the evidence is too weak." in unsure.text
    assert unsure.more.endswith("look at the host and the configuration first.")
