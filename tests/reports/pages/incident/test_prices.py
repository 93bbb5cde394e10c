"""What a new price did: its words on every page of an incident."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

from dataclasses import replace
from typing import Any

from made_up_judgement import SETTINGS

from analysis.judging.explanations import PriceMove
from reports.pages.incident.page import show_incident
from reports.wording.changes import by_change, view_changes
from reports.wording.incidents import describe_briefly
from reports.wording.wording import quantity, series_words

MOVE = PriceMove(before="4.5", after="6", is_event=True)
SAID = "The price per hour rose from $4.5 to $6, which makes −25.0\N{NO-BREAK SPACE}% by itself."


def test_operations_per_dollar_have_a_name_and_a_unit(demo: Any) -> None:
    key = replace(demo.judgement.incidents[0].lead.series.key, metric="operations_per_dollar")
    assert series_words(key).startswith("operations per dollar of ")
    assert quantity(799_142.0, key.metric) == "799,142\N{NO-BREAK SPACE}ops/$"


def test_a_new_price_is_said_wherever_the_incident_is(demo: Any) -> None:
    first = demo.judgement.incidents[0]
    incident = replace(first, price_move=MOVE)
    judged = {one.series.key: one for one in demo.judgement.series}
    trials = {trial.id: trial for trial in demo.trials}
    assert SAID in describe_briefly(incident)
    assert SAID not in describe_briefly(first)
    assert show_incident(incident, judged, trials, {})["summary"].endswith(SAID)
    assert not show_incident(first, judged, trials, {})["summary"].endswith(SAID)
    own = judged[first.lead.series.key]
    rows = view_changes(own, by_change([incident]), SETTINGS)
    assert [SAID in row.notes for row in rows] == [one == first.lead for one in own.change_points]
