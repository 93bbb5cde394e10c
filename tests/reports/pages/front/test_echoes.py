"""Series that only repeat others: found by their values, counted once, never lost."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

from dataclasses import replace
from typing import Any

import pytest

from analysis.detection.verdict import Outcome
from analysis.judging.description import echo_words, say_judgement
from analysis.judging.echoes import find_echoes, split_changes, without_echoes
from analysis.judging.judgement import JudgedSeries
from perf.model.results import SeriesKey
from reports.pages.front.page import show_all_series
from reports.pages.front.trends import list_outcomes
from reports.site.rendering import render
from reports.wording.incidents import describe_movement
from reports.wording.series_list import group_series


def rename(judged: JudgedSeries, **changed: str) -> JudgedSeries:
    """Return the same series under another key, its changes with it."""
    key = replace(judged.series.key, **changed)
    series = replace(judged.series, key=key)
    changes = tuple(replace(one, series=series) for one in judged.change_points)
    return replace(judged, series=series, change_points=changes)


@pytest.fixture
def response(demo: Any) -> JudgedSeries:
    """Return a series that regressed, as a response time at saturation."""
    judged = next(one for one in demo.judgement.series if one.verdict.outcome is Outcome.REGRESSED)
    return rename(judged, phase="saturation", metric="response_time", statistic="p50")


@pytest.fixture
def twin(response: JudgedSeries) -> JudgedSeries:
    return rename(response, metric="service_time")


def test_a_service_time_is_an_echo_where_its_values_are_those_of_the_response_time(
    response: JudgedSeries, twin: JudgedSeries
) -> None:
    key: SeriesKey = twin.series.key
    assert find_echoes([response, twin]) == {key}
    of_several = [rename(one, phase=f"{key.operation}-saturation") for one in (response, twin)]
    assert find_echoes(of_several) == {of_several[1].series.key}
    assert without_echoes([twin, response]) == (response,)
    first, *others = twin.series.points
    slower = replace(twin, series=replace(twin.series, points=(replace(first, value=9e9), *others)))
    shorter = replace(twin, series=replace(twin.series, points=others))
    for one in (slower, shorter):
        assert find_echoes([response, one]) == set()
    assert find_echoes([twin]) == set()
    assert find_echoes(rename(one, phase="steady") for one in (response, twin)) == set()


def test_the_terminal_counts_them_apart(demo: Any, response: JudgedSeries, twin: JudgedSeries) -> None:
    said = say_judgement(replace(demo.judgement, series=(response, twin), asked=0))
    assert said == "Regressed: of 1 series, 1 regressed (1 more only repeats another figure)"
    assert "of 1 series" in say_judgement(replace(demo.judgement, series=(twin,)))


def test_an_offered_throughput_is_an_echo_until_the_database_cannot_bear_it(
    response: JudgedSeries,
) -> None:
    fallen = rename(response, phase="steady", metric="throughput", statistic="mean")
    calm = replace(
        fallen,
        change_points=(),
        verdict=replace(fallen.verdict, outcome=Outcome.UNCHANGED, change=None),
    )
    assert find_echoes([calm]) == {calm.series.key}
    assert find_echoes([fallen]) == set()
    assert find_echoes([rename(calm, phase="saturation")]) == set()


def test_an_incident_counts_a_change_once_and_keeps_its_lead(
    demo: Any, response: JudgedSeries, twin: JudgedSeries
) -> None:
    one, other = response.change_points[0], twin.change_points[0]
    for lead, echo in ((one, other), (other, one)):
        incident = replace(demo.judgement.incidents[0], lead=lead, changes=(lead, echo))
        assert split_changes(incident) == ((lead,), (echo,))
        assert describe_movement(incident)[0].endswith("; no further series moved with it")


def test_what_is_not_counted_is_still_listed(
    demo: Any, response: JudgedSeries, twin: JudgedSeries
) -> None:
    groups = group_series([response], demo.context().heads)
    shown = show_all_series(groups, [twin])
    assert shown["series"] == sum(many for _, many in shown["outcomes"]) == 1
    html = render("all_series.html", "series.html", **shown, caveats=()).content.decode()
    assert "<summary>1 more only repeats another figure</summary>" in html
    assert "p50 service time" in html
    assert dict(list_outcomes(groups[0].series)) == {Outcome.REGRESSED: 1}


def test_the_rest_is_said_in_words() -> None:
    assert [echo_words(many) for many in (0, 1, 4)] == [
        "",
        "1 more only repeats another figure",
        "4 more only repeat other figures",
    ]
