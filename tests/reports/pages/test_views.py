"""What the pages say: about a history with every trouble, and about an empty one."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from made_up_judgement import SETTINGS

from analysis.judging.judgement import Judgement
from perf.model.results import Counter, Fact, Sample, SeriesKey, Trial, TrialId, TrialStatus
from reports.pages.series.page import show_series
from reports.pages.series.point_rows import rows_of_points
from reports.pages.trial.differences import compare_facts
from reports.pages.trial.page import render_trial
from reports.pages.trial.steps import view_steps
from reports.pages.trial.values import list_canaries, list_counters, list_diagnostics, list_samples
from reports.wording.links import series_page, trial_page

NBSP = "\N{NO-BREAK SPACE}"
NOTHING = Judgement(series=())


def page_of(trial: Trial) -> str:
    page = render_trial(trial, series=(), files=(), reproduce="knickpoint measure", caveats={})
    return page.content.decode()


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


def test_a_trial_page_says_whose_defaults_a_node_began_with(make_trial: Callable[..., Trial]) -> None:
    whose = Fact(host="", name="defaults", value="the release's own conf/")
    field = re.compile(r"<dt>Defaults</dt><dd>(.*?) <span")
    for facts, said in (((whose,), "the release&#39;s own conf/"), ((), "–")):
        found = field.search(page_of(make_trial(environment_before=facts, environment_after=facts)))
        assert found is not None
        assert found[1] == said


def test_a_trial_page_marks_what_the_hosts_changed(make_trial: Callable[..., Trial]) -> None:
    before = (Fact(host="a", name="kernel", value="6.1"), Fact(host="a", name="governor", value="x"))
    after = (Fact(host="a", name="kernel", value="6.1"), Fact(host="a", name="governor", value="y"))
    trial = make_trial(environment_before=before, environment_after=after)
    facts = [(fact.name, fact.differs) for fact in compare_facts(trial)]
    assert facts == [("governor", True), ("kernel", False)]
    assert "<p>2 facts, 1 of them different after the trial.</p>" in page_of(trial)
    moving = tuple(
        Fact(host="a", name=name, value="1") for name in ("load_average_1min", "steal_ticks")
    )
    moved = tuple(replace(fact, value="2") for fact in moving)
    shown = compare_facts(make_trial(environment_before=moving, environment_after=moved))
    assert [(fact.before, fact.after, fact.differs) for fact in shown] == [("1", "2", False)] * 2
    unknown = compare_facts(make_trial(environment_before=before, environment_after=()))
    assert not any(fact.differs for fact in unknown)


def test_a_trial_page_orders_samples_and_counters_for_reading(make_trial: Callable[..., Trial]) -> None:
    trial = make_trial()
    (table,) = list_samples(trial.samples)
    assert table.title == "write at saturation"
    assert [row.name for row in table.rows] == [
        "throughput",
        "p50 response time",
        "p99 response time",
        "p99 service time",
    ]
    assert table.rows[0].cells == [1000, 990, 1010]
    assert "<td>1,000</td><td>990</td><td>1,010</td>" in page_of(trial)
    (counters,) = list_counters(trial.counters)
    assert [(row.name, row.cells[0]) for row in counters.rows] == [
        ("attempted", 5000),
        ("completed", 4990),
        ("timeouts", 10),
    ]


def test_a_warm_up_is_shown_but_never_counted() -> None:
    def count(phase: str, iteration: int, value: int) -> Counter:
        return Counter(
            phase=phase, operation="write", iteration=iteration, name="completed", value=value
        )

    counters = (count("preload", 0, 7), *(count("steady", i, 10**i) for i in (0, 1, 2)))
    preload, steady = list_counters(counters)
    assert (preload.columns, preload.rows[0].cells) == ((), [7])
    assert steady.columns == ("Warm-up", "Iteration 1", "Iteration 2")
    assert steady.rows[0].cells == [110, 1, 10, 100]


def test_a_trial_without_the_newer_fields_has_none_of_their_sections(
    make_trial: Callable[..., Trial],
) -> None:
    html = page_of(make_trial())
    for anchor in ("remarks", "steps", "chart", "did"):
        assert f'id="{anchor}"' not in html
    assert "In no series" not in html


def enriched(demo: Any) -> Trial:
    trial: Trial = next(trial for trial in demo.trials if trial.steps)
    return trial


def test_ladders_and_searches_are_tables_in_the_order_in_which_they_ran(demo: Any) -> None:
    trial = enriched(demo)
    ladder, search = view_steps(trial.steps, trial.samples)
    assert (ladder.title, ladder.answer) == ("Ladder", "")
    assert [one.offered_load_ops_per_s for one in ladder.steps] == [500, 1000, 2000, 4000]
    html = page_of(trial)
    last = html[html.index('<th scope="row" class="num">4,000</th>') :].partition("</tr>")[0]
    assert "Client-limited" in last
    assert f"95.2{NBSP}%" in last
    assert search.title == "Search"
    assert search.answer == (
        "The highest offered load whose p99 of response time met the objective of a search: "
        f"2,278{NBSP}ops/s; it lies between 2,181 and 2,378 ops/s."
    )
    assert [one.response_time_p99_ms for one in search.steps] == [9.9, None, 27.5, 16.5]
    assert 'data-spec="trial-2026-03-08-1-03' in html


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
    samples = tuple(
        Sample(phase="search", operation="write", metric="highest_load", statistic=bound, value=1000.0)
        for bound in bounds
    )
    (search,) = view_steps(enriched(demo).steps[4:], samples)
    assert search.answer.endswith(f": {said}")


def test_what_hosts_and_clients_did_stands_apart_from_what_is_judged(demo: Any) -> None:
    samples = enriched(demo).samples
    shown = {row.name for table in list_samples(samples) for row in table.rows}
    assert {"throughput", "row throughput"} <= shown
    assert not shown & {"server CPU", "p99 send lateness", "highest load", "CPU canary"}
    saturation, steady = list_diagnostics(samples)
    assert saturation.title == "write at saturation"
    assert saturation.columns == ("node-1", "node-2", "node-3", "By iteration")
    client, server = saturation.rows[:2]
    assert (client.name, client.cells[0]) == ("client CPU", 163.4)
    assert client.cells[-1] == pytest.approx([163.4, 179.74])
    assert (server.name, server.note) == ("server CPU", "µs/op")
    assert server.cells[:4] == pytest.approx([412, 164.8, 144.2, 103])
    assert server.cells[4] == []
    assert "<td>163 to 180 in 2 iterations</td>" in page_of(enriched(demo))
    assert [row.name for row in steady.rows][:2] == ["warm-up", "p99 send lateness"]


def test_canaries_are_compared_by_host(demo: Any) -> None:
    trial = enriched(demo)
    found = [(one.host, one.metric) for one in list_canaries(trial.samples)]
    kinds = ("canary_cpu", "canary_memory", "canary_fsync")
    assert found == [("localhost", kind) for kind in kinds]

    def report(trial: Trial, name: str) -> list[str]:
        html = page_of(trial)
        row = html[html.index(f'<th scope="row" data-label="Canary">{name}') :].partition("</tr>")[0]
        return re.findall(r">([^<\s][^<]*)<", row)

    assert report(trial, "CPU canary")[2:] == [
        "localhost",
        f"12.3{NBSP}ms ",
        "between 12.1 and 16.0",
        f"13.3{NBSP}ms ",
        "between 13.0 and 17.3",
        f"+8.0{NBSP}%",
    ]
    assert "higher is better" in report(trial, "Memory canary")
    first_only = tuple(one for one in trial.samples if one.phase != "canary-after")
    assert report(replace(trial, samples=first_only), "CPU canary")[-2:] == ["–", "–"]


def test_the_numbers_of_an_invalid_trial_stay_and_are_marked(demo: Any) -> None:
    invalid = next(trial for trial in demo.trials if trial.status is TrialStatus.INVALID)
    page = next(f for f in demo.files() if f.path == trial_page(invalid.id)).content.decode()
    assert page.index("client fell behind") < page.index("Load steps") < page.index("Samples")
    assert page.count("In no series") == 6  # curves, phases, steps, samples, counters, hosts


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
