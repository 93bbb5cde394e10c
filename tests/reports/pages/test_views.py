"""What the pages say: about a history with every trouble, and about an empty one."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from made_up_judgement import SETTINGS

from analysis.detection.verdict import Outcome, Verdict
from analysis.judging.judgement import Judgement
from perf.model.results import Counter, Fact, Sample, SeriesKey, Trial, TrialId, TrialStatus
from reports.pages.series.page import show_series
from reports.pages.series.point_rows import rows_of_points
from reports.pages.trial.view import TrialView, view_trial
from reports.wording.links import series_page, trial_page

NBSP = "\N{NO-BREAK SPACE}"
NOTHING = Judgement(series=(), verdict=Verdict(outcome=Outcome.UNDECIDED, reason="nothing to judge"))


def view_plainly(trial: Trial) -> TrialView:
    return view_trial(trial, series=(), files=(), reproduce="knickpoint measure", caveats={})


def test_a_series_page_shows_the_change_with_its_evidence(demo: Any) -> None:
    judged = next(
        judged
        for judged in demo.judgement.series
        if (judged.series.key.operation, judged.series.key.metric) == ("write", "throughput")
    )
    view = show_series(judged, {trial.id: trial for trial in demo.trials}, settings=SETTINGS, caveat="")
    assert view.summary == "24 points over 3 releases"
    (change,) = view.changes
    assert change.index == 17
    assert change.between == "5.0.2 → 5.0.3"
    assert (change.outcome.word, change.state.word) == ("Regressed", "Confirmed")
    assert change.points_after == "8 points after it"
    assert [(segment.first, segment.last) for segment in view.segments] == [(1, 16), (17, 24)]
    assert view.segments[0].text == change.before


def test_a_trial_page_marks_what_the_hosts_changed(make_trial: Callable[..., Trial]) -> None:
    before = (Fact(host="a", name="kernel", value="6.1"), Fact(host="a", name="governor", value="x"))
    after = (Fact(host="a", name="kernel", value="6.1"), Fact(host="a", name="governor", value="y"))
    view = view_plainly(make_trial(environment_before=before, environment_after=after))
    assert [(fact.name, fact.differs) for fact in view.facts] == [("governor", True), ("kernel", False)]
    assert view.facts_summary == "2 facts, 1 of them different after the trial."
    moving = tuple(
        Fact(host="a", name=name, value="1") for name in ("load_average_1min", "steal_ticks")
    )
    moved = tuple(replace(fact, value="2") for fact in moving)
    view = view_plainly(make_trial(environment_before=moving, environment_after=moved))
    assert [(fact.before, fact.after, fact.differs) for fact in view.facts] == [("1", "2", False)] * 2
    unknown = view_plainly(make_trial(environment_before=before, environment_after=()))
    assert not any(fact.differs for fact in unknown.facts)


def test_a_trial_page_orders_samples_and_counters_for_reading(make_trial: Callable[..., Trial]) -> None:
    view = view_plainly(make_trial())
    (table,) = view.samples
    assert table.title == "write at saturation"
    assert [row.name for row in table.rows] == [
        "throughput",
        "p50 response time",
        "p99 response time",
        "p99 service time",
    ]
    assert table.rows[0].cells == ("1,000", "990", "1,010")
    (counters,) = view.counters
    assert [(row.name, row.cells[0]) for row in counters.rows] == [
        ("attempted", "5,000"),
        ("completed", "4,990"),
        ("timeouts", "10"),
    ]


def test_a_warm_up_is_shown_but_never_counted(make_trial: Callable[..., Trial]) -> None:
    def count(phase: str, iteration: int, value: int) -> Counter:
        return Counter(
            phase=phase, operation="write", iteration=iteration, name="completed", value=value
        )

    counters = (count("preload", 0, 7), *(count("steady", i, 10**i) for i in (0, 1, 2)))
    preload, steady = view_plainly(make_trial(counters=counters)).counters
    assert (preload.columns, preload.rows[0].cells) == ((), ("7",))
    assert steady.columns == ("Warm-up", "Iteration 1", "Iteration 2")
    assert steady.rows[0].cells == ("110", "1", "10", "100")


def test_a_trial_without_the_newer_fields_has_none_of_their_sections(
    make_trial: Callable[..., Trial],
) -> None:
    view = view_plainly(make_trial())
    assert (view.remarks, view.steps, view.data, view.void) == ((), (), "", None)
    assert (view.diagnostics.tables, view.diagnostics.canaries) == ((), ())


def enriched(demo: Any) -> TrialView:
    return view_plainly(next(trial for trial in demo.trials if trial.steps))


def test_ladders_and_searches_are_tables_in_the_order_in_which_they_ran(demo: Any) -> None:
    view = enriched(demo)
    ladder, search = view.steps
    assert (ladder.title, ladder.answer) == ("Ladder", "")
    assert [row.offered for row in ladder.rows] == ["500", "1,000", "2,000", "4,000"]
    last = ladder.rows[-1]
    assert (last.outcome.word, last.client_cpu) == ("Client-limited", f"95.2{NBSP}%")
    assert search.title == "Search"
    assert search.answer == (
        "The highest offered load whose p99 of response time met the objective of a search: "
        f"2,278{NBSP}ops/s; it lies between 2,181 and 2,378 ops/s."
    )
    assert [row.response_time for row in search.rows] == ["9.90", "–", "27.5", "16.5"]
    assert view.data.startswith("trial-2026-03-08-1-03")


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ((), "not known; the steps below say why."),
        (("lower",), f"at least 1,000{NBSP}ops/s; how much more is not known."),
        (("upper",), f"less than 1,000{NBSP}ops/s; how much less is not known."),
    ],
)
def test_a_search_without_an_answer_says_what_it_can(
    demo: Any, bounds: tuple[str, ...], said: str
) -> None:
    trial = next(trial for trial in demo.trials if trial.steps)
    samples = tuple(
        Sample(phase="search", operation="write", metric="highest_load", statistic=bound, value=1000.0)
        for bound in bounds
    )
    (search,) = view_plainly(replace(trial, steps=trial.steps[4:], samples=samples)).steps
    assert search.answer.endswith(f": {said}")


def test_what_hosts_and_clients_did_stands_apart_from_what_is_judged(demo: Any) -> None:
    view = enriched(demo)
    shown = {row.name for table in view.samples for row in table.rows}
    assert {"throughput", "row throughput"} <= shown
    assert not shown & {"server CPU", "p99 send lateness", "highest load", "CPU canary"}
    saturation, steady = view.diagnostics.tables
    assert (saturation.title, saturation.hosts) == (
        "write at saturation",
        ("node-1", "node-2", "node-3"),
    )
    client, server = saturation.rows[:2]
    assert (client.name, client.cells[0], client.cells[-1]) == (
        "client CPU",
        "163",
        "163 to 180 in 2 iterations",
    )
    assert (server.name, server.note, server.cells[0]) == ("server CPU", "µs/op", "412")
    assert server.cells[1:4] == ("165", "144", "103")
    assert [row.name for row in steady.rows][:2] == ["warm-up", "p99 send lateness"]


def test_canaries_are_compared_by_host(demo: Any) -> None:
    computing, memory, _ = enriched(demo).diagnostics.canaries
    assert (computing.host, computing.name) == ("localhost", "CPU canary")
    assert computing.before.value == f"12.3{NBSP}ms"
    assert computing.before.note == "between 12.1 and 16.0"
    assert computing.difference == f"+8.0{NBSP}%"
    assert (memory.after.value, memory.direction) == (f"8,773{NBSP}MB/s", "higher is better")
    trial = next(trial for trial in demo.trials if trial.steps)
    first_only = tuple(one for one in trial.samples if one.phase != "canary-after")
    lonely = view_plainly(replace(trial, samples=first_only)).diagnostics.canaries[0]
    assert (lonely.after.value, lonely.difference) == ("–", "–")


def test_the_numbers_of_an_invalid_trial_stay_and_are_marked(demo: Any) -> None:
    invalid = next(trial for trial in demo.trials if trial.status is TrialStatus.INVALID)
    view = view_plainly(invalid)
    assert view.reasons
    assert view.samples
    assert view.steps
    assert view.void is not None
    assert view.void.word == "In no series"
    page = next(f for f in demo.files() if f.path == trial_page(invalid.id)).content.decode()
    assert page.index("client fell behind") < page.index("Load steps") < page.index("Samples")
    assert page.count("In no series") == 5  # phases, steps, samples, counters, hosts


def test_every_page_with_numbers_of_a_testbed_shows_its_caveat(demo: Any) -> None:
    html = (f for f in demo.files() if f.path.endswith(".html"))
    of_testbed = ("series", "trials", "incidents", "night/", "testbed", "index", "troubles")
    pages = [f for f in html if f.path.startswith(of_testbed)]
    unmeasured = [f for f in pages if b"0 points over 0 releases" in f.content]
    assert {f.path.partition("/")[0] for f in pages} >= {"index.html", "series", "trials", "night"}
    lacking = [f for f in pages if demo.caveats["local"].encode() not in f.content]
    assert lacking == unmeasured


def test_the_answer_of_a_search_is_a_point_with_its_uncertainty(demo: Any) -> None:
    judged = next(
        judged
        for judged in demo.judgement.series
        if judged.series.key.metric == "highest_load" and judged.series.points
    )
    (point,) = judged.series.points
    key = judged.series.key
    rows = rows_of_points(judged, {(point.trial, key.phase, key.operation): (2181.0, 2378.4)})
    assert '<td class="num">between 2,181 and 2,378</td>' in rows


def test_page_names_are_safe_and_distinct(demo: Any) -> None:
    key: SeriesKey = demo.judgement.series[0].series.key
    hostile = replace(key, config="../../etc/passwd", line="<b>")
    assert series_page(hostile) != series_page(key)
    assert series_page(hostile).count("/") == 1
    assert trial_page(TrialId("../x")).count("/") == 1
    assert trial_page(TrialId("../x")) != trial_page(TrialId("./x"))
    assert series_page(replace(key, host="node-1")) != series_page(key)
