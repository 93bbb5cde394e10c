"""What a series' page begins with, and what of a reason stands in a row."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

from dataclasses import replace
from typing import Any

import pytest
from made_up_judgement import SETTINGS

from analysis.detection.verdict import Outcome, Verdict
from analysis.judging.incidents import Cause, Incident
from analysis.judging.judgement import JudgedSeries
from reports.wording.changes import by_change
from reports.wording.leading import lead_series, view_reason

NBSP = "\N{NO-BREAK SPACE}"


@pytest.fixture
def incident(demo: Any) -> Incident:
    found: Incident = demo.judgement.incidents[0]
    return replace(found, mended_by=())


@pytest.fixture
def fallen(demo: Any, incident: Incident) -> JudgedSeries:
    """Give the series of the lead, with the reason that the analysis would have for it."""
    lead, sentinel = incident.lead, incident.evidence[1]
    verdict = Verdict(
        outcome=Outcome.REGRESSED,
        reason="a drop of 13.5 % between 5.0.2 and 5.0.3 (p = 1e-09, 16 points before, 8 after): "
        f"significant, and relevant: 5 % matter; {sentinel.name}: too few points to tell; with this "
        "noise, 3 nights see ≥ 4.1 %",
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
    first, *others = lead.text.split(". That is ")
    assert first.startswith("Throughput fell by 1")
    assert first.endswith(" between 5.0.2 and 5.0.3")
    assert others == [f"confirmed (p = 1e-09, 8 points after it), and it matters: 5{NBSP}% do."]
    # Names as on the rest of the page, and no word of sensitivity, which has a paragraph of its own.
    assert lead.more.startswith("Sentinel cassandra 5.0, throughput of write at saturation: too few")
    assert "this noise" not in lead.text + lead.more


def test_a_change_of_the_configuration_is_said_at_once(
    fallen: JudgedSeries, incident: Incident
) -> None:
    told = by_change([replace(incident, cause=Cause.CONFIGURATION)])
    text = lead_series(fallen, told, SETTINGS).text
    assert text.endswith("No release lies between; the configuration changed there.")


def test_where_nothing_is_claimed_the_reason_says_why(fallen: JudgedSeries, incident: Incident) -> None:
    reason = f"a rise shows, but {incident.evidence[1].name}: moved; with this noise, 3 nights see more"
    verdict = Verdict(outcome=Outcome.UNDECIDED, reason=reason)
    unsure = lead_series(replace(fallen, verdict=verdict), {}, SETTINGS)
    assert unsure.text == f"A rise shows, but {incident.evidence[1].name}: moved."
    assert unsure.more == ""


def test_a_row_says_the_reason_without_what_stands_elsewhere(fallen: JudgedSeries) -> None:
    text = view_reason(fallen)
    assert text.startswith(f"A drop of 13.5{NBSP}% between 5.0.2 and 5.0.3")
    assert text.endswith(f"relevant: 5{NBSP}% matter.")
