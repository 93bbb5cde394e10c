"""Trends at a glance: which series are drawn, in which order, and how many."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

from dataclasses import replace
from typing import Any

import pytest

from analysis.detection.verdict import Outcome
from analysis.judging.incidents import Cause
from analysis.judging.judgement import JudgedSeries
from reports.pages.front.trends import MOST_CHARTS, choose_series, sort_worst_first, view_trends
from reports.wording.incidents import say_common_moves
from reports.wording.series_list import ExperimentGroup, group_series


@pytest.fixture(scope="module")
def groups(demo: Any) -> tuple[ExperimentGroup, ...]:
    """Return the experiments of the made-up history."""
    return group_series(demo.judgement.series, demo.context().heads)


def name(judged: JudgedSeries) -> str:
    key = judged.series.key
    return f"{key.phase} {key.metric} {key.statistic}"


def test_what_moved_is_drawn_first_and_what_says_nothing_new_is_not(
    groups: tuple[ExperimentGroup, ...],
) -> None:
    write, read = view_trends(groups)
    assert write.charts[0].judged.series.key.metric == "throughput"
    assert write.charts[0].change is not None
    assert [one.badge.word for one in write.charts][:2] == ["Regressed", "Regressed"]
    assert [name(one.judged) for one in read.charts] == [
        "saturation throughput mean",
        "steady response_time p99",
    ]
    assert read.further == len(groups[0].series) - len(read.charts)
    assert (write.charts[0].first, write.charts[0].last) == ("5.0.1", "5.0.3")


def test_of_many_experiments_the_page_holds_so_many_charts(
    groups: tuple[ExperimentGroup, ...],
) -> None:
    many = [replace(one, name=f"{one.name}-{number:03}") for one in groups for number in range(80)]
    shown = view_trends(many)
    assert sum(len(one.charts) for one in shown) == MOST_CHARTS
    assert shown[0].is_open
    assert not shown[-1].charts
    assert [one.name for one in shown][:2] == [
        "cassandra-sensor-write-000",
        "cassandra-sensor-write-001",
    ]


def test_a_night_or_two_are_no_trend(groups: tuple[ExperimentGroup, ...]) -> None:
    few = [
        replace(one, series=replace(one.series, points=one.series.points[:2]))
        for one in groups[0].series
    ]
    assert view_trends([replace(groups[0], series=tuple(few))]) == ()


def test_a_group_without_a_headline_shows_what_it_has(groups: tuple[ExperimentGroup, ...]) -> None:
    calm = [
        one
        for group in groups
        for one in group.series
        if one.series.key.statistic == "p50" and one.verdict.outcome is Outcome.UNCHANGED
    ]
    assert choose_series(calm) == calm


def test_all_series_are_listed_the_worst_first(groups: tuple[ExperimentGroup, ...]) -> None:
    write, read = sort_worst_first(groups)
    assert (write.name, read.name) == ("cassandra-sensor-write", "cassandra-sensor-read")
    outcomes = [one.verdict.outcome for one in write.series]
    assert outcomes == sorted(outcomes, key=lambda one: one is not Outcome.REGRESSED)


def test_databases_that_move_in_one_night_point_at_the_testbed(demo: Any) -> None:
    incident = demo.judgement.incidents[0]
    series = incident.lead.series

    def of(system: str) -> Any:
        key = replace(series.key, system=system)
        lead = replace(incident.lead, series=replace(series, key=key))
        return replace(incident, lead=lead, changes=(lead,), cause=Cause.UNKNOWN)

    assert say_common_moves([of("cassandra"), of("cassandra")]) == ""
    said = say_common_moves([of("cassandra"), of("mongodb"), of("scylladb")])
    assert said.startswith("3 databases moved in the same night")
    assert say_common_moves([of("cassandra"), of("mongodb")], of("cassandra")).startswith("2 databases")
    elsewhere = replace(of("cassandra"), changes=())
    assert say_common_moves([of("cassandra"), of("mongodb")], elsewhere) == ""
    assert say_common_moves([of("cassandra"), replace(of("mongodb"), is_news=False)]) == ""
