"""The page of the testbed: canaries over time, facts of the hosts, drift, utilisation."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from made_up_judgement import NOISE, change_inside

from perf.model.results import Fact, Move, Named, Purpose, Reason, Trial, TrialId, TrialStatus
from reports.pages.testbed import page as testbed_pages
from reports.pages.testbed.hosts import join_moves, list_facts
from reports.pages.testbed.strips import draw_strip, list_canaries
from reports.pages.testbed.utilisation import list_days, say_use
from reports.pages.testbed.verdict import judge_hosts
from reports.site.writing import flatten
from reports.wording import links

MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def trial(make_trial: Callable[..., Trial]) -> Callable[..., Trial]:
    def make(begins: datetime, lasts: timedelta, **changes: Any) -> Trial:
        return make_trial(
            id=TrialId(f"trial-{begins:%d-%H%M}"),
            started_at=begins,
            finished_at=begins + lasts,
            **changes,
        )

    return make


def pages(context: Any) -> Mapping[str, str]:
    return {
        file.path: file.content.decode()
        for batch in flatten(testbed_pages.batches(context))
        for file in batch.make(batch.versions)
    }


def test_hours_count_on_the_day_on_which_they_passed(demo: Any, trial: Callable[..., Trial]) -> None:
    trials = [
        trial(MIDNIGHT - HOUR, 3 * HOUR),
        trial(MIDNIGHT + 5 * HOUR, HOUR, status=TrialStatus.INVALID),
        trial(MIDNIGHT + 7 * HOUR, HOUR, status=TrialStatus.FAILED),
        trial(MIDNIGHT + 9 * HOUR, HOUR, purpose=Purpose.IMPORTED),
    ]
    oldest, newest = list_days(trials)
    assert (f"{newest.day}", newest.hours, newest.good_hours, newest.began) == ("2026-03-02", 4, 2, 2)
    assert (newest.invalid, newest.failed) == (1, 1)
    assert (f"{oldest.day}", oldest.hours, oldest.began, oldest.failed) == ("2026-03-01", 1, 1, 0)
    context = replace(demo.context(), heads={one.id: one for one in trials})
    (page,) = pages(replace(context, archive=replace(context.archive, all=tuple(trials)))).values()
    assert "2.50 hours of trials a day (10.4\N{NO-BREAK SPACE}% of the time), over 2 days up to" in page
    assert "2 of 3 trials (66.7\N{NO-BREAK SPACE}%) rejected" in page
    one_day = say_use([replace(newest, good_s=53 * 60, void_s=0)])
    assert one_day == "53 minutes of trials on 2\N{NO-BREAK SPACE}Mar\N{NO-BREAK SPACE}2026."
    assert '<rect class="good" x="6" y="115.0" width="14" height="5.0"/>' in page
    assert '<rect class="good" x="26" y="110.0" width="14" height="10.0"/>' in page
    assert '<rect class="lost" x="26" y="100.0" width="14" height="10.0"/>' in page


def test_only_the_newest_month_is_shown(trial: Callable[..., Trial]) -> None:
    days = [trial(MIDNIGHT + timedelta(days=day), HOUR) for day in range(0, 80, 2)]
    found = list_days(days)
    assert len(found) == 30
    assert [one.hours for one in found[-3:]] == [1, 0, 1]
    assert list_days([]) == []


def test_a_line_is_broken_where_nothing_was_measured() -> None:
    hours = [*range(10), *range(200, 210)]
    chart = draw_strip([[(MIDNIGHT + HOUR * hour, 5.0) for hour in hours], []])
    assert chart is not None
    (line,) = chart.paths
    assert line.count("M") == 2
    assert line.count("L") == 18
    assert (chart.y.high, chart.y.low) == (5.25, 4.75)  # a tenth of the level: noise stays small
    assert draw_strip([[], []]) is None
    assert draw_strip([[(MIDNIGHT, float("nan"))]]) is None


def test_the_canaries_of_a_host_are_one_chart_whatever_was_measured(demo: Any) -> None:
    canary = next(one for one in demo.judgement.watched if one.series.key.phase == "canary-before")
    key = canary.series.key
    after = replace(canary.series, key=replace(key, phase="canary-after", config="another"))
    also = replace(canary.series, key=replace(key, workload="other@1"))
    watched = (canary, replace(canary, series=after), replace(canary, series=also))
    (found,) = list_canaries(watched)
    points = len(canary.series.points)
    assert (len(found.before), len(found.after)) == (2 * points, points)
    assert len(found.strip.paths) == 2
    context = demo.context()
    (page,) = pages(replace(context, judgement=replace(context.judgement, watched=watched))).values()
    assert f"over time, {2 * points:,} values before and {points:,} values after trials." in page
    spread = replace(canary.series, key=replace(key, statistic="max"))
    assert list_canaries((replace(canary, series=spread),)) == []


def test_facts_say_since_when_they_are_so(demo: Any) -> None:
    order = tuple(trial.id for trial in demo.trials)
    heads = {trial.id: trial for trial in demo.trials}
    facts = (
        Fact(host="node-1", name="kernel", value="6.2"),
        Fact(host="node-1", name="governor", value="performance"),
        Fact(host="node-1", name="version:java", value="17"),
        Fact(host="node-1", name="boot_id", value="new each time"),
    )
    newest = replace(demo.trials[-1], environment_before=facts)
    moves = (
        Move(place=5, name="kernel of node-1", before="6.1", after="6.2"),
        Move(place=2, name="kernel of node-1", before="6.0", after="6.1"),
        Move(place=7, name="version:java of node-1", before="17", after="11"),
    )
    found = {row.name: row for row in list_facts(newest, moves, order, heads)}
    assert list(found) == ["kernel", "governor", "java"]
    kernel = found["kernel"]
    assert (kernel.before, kernel.first, kernel.changes) == ("6.1", heads[order[5]], 2)
    governor, java = found["governor"], found["java"]
    assert (governor.first, governor.is_of_another, governor.follows_release) == (None, False, False)
    assert (java.first, java.is_of_another, java.follows_release) == (None, True, True)
    assert list_facts(None, (), (), {}) == []


def test_releases_that_take_turns_do_not_change_the_java_of_a_host() -> None:
    order = tuple(TrialId(name) for name in ("old-1", "new-1", "old-2", "new-2"))
    java, kernel = "version:java of node-1", "kernel of node-1"
    in_turns = [
        Move(place=1, name=java, before="11", after="17"),
        Move(place=2, name=java, before="17", after="11"),
        Move(place=2, name=kernel, before="6.1", after="6.2"),
        Move(place=3, name=java, before="11", after="17"),
    ]
    assert join_moves(in_turns, order, [], order[1::2]) == (in_turns[2],)
    upgraded = Move(place=1, name=java, before="17", after="21")
    found = join_moves(in_turns, order, [upgraded], order[1::2])
    assert found == (in_turns[2], replace(upgraded, place=3))


def test_releases_that_take_turns_do_not_change_the_tuning_of_a_host() -> None:
    order = tuple(TrialId(name) for name in ("old-1", "new-1", "old-2", "new-2"))
    in_turns = [
        Move(place=place, name=f"{name} of db-1", before="a", after="b")
        for place in (1, 2, 3)
        for name in ("tuning", "tuning_unavailable", "thp", "max_map_count")
    ]
    assert join_moves(in_turns, order, [], order[1::2]) == ()


def test_the_page_begins_with_whether_the_hosts_are_steady(
    demo: Any, trial: Callable[..., Trial]
) -> None:
    canary = next(one for one in demo.judgement.watched if one.series.key.phase == "canary-before")
    settings = demo.context().catalog.detection
    series = next(one for one in demo.judgement.series if len(one.series.points) > 20).series
    seen = replace(canary, noise=NOISE, series=replace(series, key=canary.series.key))

    words: list[tuple[str, bool]] = []

    def say(watched: Any, *kinds: str, valid: int = 9) -> tuple[str, str]:
        trials = [trial(MIDNIGHT, HOUR) for _ in range(valid)] + [
            trial(
                MIDNIGHT, HOUR, status=TrialStatus.INVALID, reasons=(Reason(kind=kind, text="x"),) * 2
            )
            for kind in kinds
        ]
        found = judge_hosts(trials, watched, settings)
        words.append((found.badge.word, bool(found.todo)))
        return found.answer.replace("\N{NO-BREAK SPACE}", " "), found.detail

    busy = ["host-busy"] * 2 + ["not-steady"]
    assert say([seen], *busy) == (
        "Noisy hosts: 3 of 12 trials (25.0 %) rejected",
        ", 2 of them because other programs used the CPU; none of the newest 3 is valid",
    )
    assert say([seen], "not-steady")[0] == "1 of 10 trials (10.0 %) rejected"
    steady = "Hosts are steady: no canary moved and 95.0 % of 20 trials were valid"
    assert say([seen], "host-busy", valid=19)[0] == steady
    moved = replace(seen, change_points=change_inside(seen, "5.0.3").change_points)
    assert say([moved])[0] == "Hosts moved: a step in 1 of 1 canary series"
    assert say([canary])[0].startswith("Cannot tell whether the hosts are steady: too few points")
    assert say([])[0].startswith("Cannot tell whether the hosts are steady: no canary")
    assert words == [
        *(("Noisy", True), ("Trials rejected", False), ("Steady", False)),
        *(("Moved", False), ("Cannot tell", False), ("Cannot tell", False)),
    ]


def test_one_testbed_has_one_page(demo: Any) -> None:
    (page,) = pages(demo.context()).values()
    for said in ("Canaries over time", "Facts of the hosts", "Utilisation", "What moved"):
        assert said in page
    # How many nights it takes is reported in each cell, as it is another number in each.
    assert ("Smallest visible" in page, "nights see" in page) == (True, False)
    assert "The testbeds" not in page


def test_several_testbeds_have_a_page_each_and_one_that_lists_them(demo: Any) -> None:
    context = demo.context()
    moved = {
        key: replace(head, testbed=Named(name="<rack>", sha256="0")) if "read" in key else head
        for key, head in context.heads.items()
    }
    made = pages(replace(context, heads=moved))
    assert sorted(made) == sorted(
        ["testbed.html", links.testbed_page("local"), links.testbed_page("<rack>")]
    )
    listed = made["testbed.html"]
    assert f'<a href="{links.testbed_page("<rack>")}">&lt;rack&gt;</a>' in listed
    assert "Facts of the hosts" not in listed
    assert "Facts of the hosts" in made[links.testbed_page("local")]


def test_a_testbed_without_a_trial_claims_nothing(demo: Any) -> None:
    context = demo.context()
    empty = replace(
        context, heads={}, judgement=replace(context.judgement, series=(), watched=(), incidents=())
    )
    (page,) = pages(empty).values()
    for said in ("nothing watches these hosts", "no trial has read them", "No trial has run here."):
        assert said in page
