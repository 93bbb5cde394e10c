"""Published figures beside measured ones: matching, ratios by known answers, what is not told."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from made_up_reproduction import MAIN, REPORT, SIDES, make_measured, release

from perf.history.distributions import Recording
from perf.model.design import Topology
from perf.model.results import Fact, Interval, Named, Reason, Sample, Trial, TrialId, TrialStatus
from reports.pages.reproduction.courses import Drawn, cut, draw_course, find_recorded_drift
from reports.pages.reproduction.page import render_reproduction
from reports.pages.reproduction.published import Cell, match, view_table
from reports.pages.reproduction.ratios import (
    Reproduction,
    ValueAddress,
    choose_newest,
    choose_setting,
    find_reproductions,
    gather,
)
from reports.pages.reproduction.scaling import scale_share

Make = Callable[..., Trial]
SENTINEL = Named(name="sentinel", sha256="cd0123456789")
RATE = ValueAddress("sensor-write", "saturation", "write", "throughput", "mean")


def page_of(*trials: Trial, drawn: Drawn | None = None, **topologies: Topology) -> str:
    found = Reproduction(report=REPORT, scale=10, trials=trials)
    courses = [drawn or Drawn(course=course, operation="") for course in REPORT.courses]
    completed = [one for one in trials if one.status is TrialStatus.COMPLETED]
    page = render_reproduction(
        found, gather(completed), courses, topologies=topologies, workloads={}, caveats={}
    )
    return page.content.decode().replace("&nbsp;", "\N{NO-BREAK SPACE}")


def there(cells: Iterable[Cell]) -> list[float | None]:
    return [one.there and round(one.there, 3) for one in cells]


def here(cells: Iterable[Cell]) -> list[float | None]:
    return [one.here and round(one.here, 3) for one in cells]


def test_trials_are_found_by_the_names_of_workloads_at_any_scale(make_trial: Make) -> None:
    names = ("sensor-write", "sensor-write-by-10", "sensor-write-by-10", "sensor-read-by-10")
    trials = [
        make_measured(make_trial, f"{number}", workload=name) for number, name in enumerate(names)
    ]
    found = find_reproductions([REPORT], trials)
    assert [(one.name, one.scale, len(one.trials)) for one in found] == [
        ("quickstart", 1, 1),
        ("quickstart-by-10", 10, 2),
    ]


def test_the_newest_release_and_content_of_a_workload_count_and_completed_trials_alone(
    make_trial: Make,
) -> None:
    other = Named(name="sensor-write-by-10", sha256="ffffffffffff")
    trials = [
        make_measured(make_trial, "old", release=release("5.0.1"), minutes=0),
        make_measured(make_trial, "before the change", release=release("5.0.2"), minutes=1),
        make_measured(make_trial, "a", release=release("5.0.2"), workload="x", minutes=2),
        make_measured(make_trial, "b", release=release("5.0.2"), minutes=3),
        make_measured(
            make_trial, "failed", release=release("5.0.3"), status=TrialStatus.FAILED, minutes=4
        ),
    ]
    trials = [replace(one, workload=other) if one.id in {"a", "b"} else one for one in trials]
    assert [one.id for one in choose_newest(trials, 9)] == ["a", "b"]
    assert [one.id for one in choose_newest(trials, 1)] == ["b"]


def test_values_are_medians_over_trials_with_the_spread_of_all_runs(make_trial: Make) -> None:
    trials = [make_measured(make_trial, f"{slower}", slower=slower) for slower in (1.0, 2.0, 4.0)]
    (found,) = gather(trials)
    value = found.values[RATE]
    assert (value.value, len(value.runs), value.trials) == (2000.0, 9, ("1.0", "2.0", "4.0"))
    assert (min(value.runs), max(value.runs)) == pytest.approx((900, 4400))
    dollars = replace(RATE, metric="usd_per_million")
    # 8, 4 and 2 million operations per dollar.
    assert found.values[dollars].value == pytest.approx(0.25)
    errors = replace(RATE, metric="errors")
    assert found.values[errors].value == 3
    assert found.values[replace(errors, phase="steady")].value == 0


def test_what_stands_for_a_subject_has_its_config_and_most_of_the_cells(make_trial: Make) -> None:
    full = make_measured(make_trial, "full")
    part = make_measured(make_trial, "part", release=release("5.0.9"), minutes=9)
    part = replace(part, samples=tuple(one for one in part.samples if one.phase == "steady"))
    measured = gather([full, part, make_measured(make_trial, "other", config=SENTINEL, minutes=99)])
    wanted = [RATE, replace(RATE, phase="steady")]
    chosen = choose_setting(REPORT.subject("fast"), wanted, measured)
    assert chosen is not None
    assert [one.id for one in chosen.trials] == ["full"]
    assert choose_setting(REPORT.subject("fast"), [replace(RATE, phase="none")], measured) is None


def test_published_digits_stand_over_measured_ones_with_their_spread(make_trial: Make) -> None:
    trials = (make_measured(make_trial),)
    table = view_table(MAIN, match(REPORT, gather(trials), trials))
    full, calm = table.grid.lines
    assert there(full.cells) == [42_000.5, 20, 0, 95]
    assert here(full.cells) == [4000, 20, 3, None]
    assert full.cells[0].runs == pytest.approx((3600, 4000, 4400))
    assert there(calm.cells) == [10_500, 4, None, 12]
    assert table.missing == ("CPU is not told in per cent here: CPU.",)
    text = page_of(*trials)
    for cell in (
        'published">42,000.5<',
        'published">20<',
        'here">20.0 <span',
        'here">3</td>',
        'here">–<',
    ):
        assert f'class="num {cell}' in text
    assert "3,600 to 4,400 in 3 runs" in text


def test_rows_columns_quotients_and_tables_have_ratios_inside_of_each_side(make_trial: Make) -> None:
    trials = (
        make_measured(make_trial, "fast"),
        make_measured(make_trial, "slow", slower=2.0, config=SENTINEL),
    )
    matched = match(REPORT, gather(trials), trials)
    (rows,) = view_table(MAIN, matched).shapes
    (line,) = rows.lines
    # 10 500 / 42 000.5 and 4 / 20; 1000 / 4000 and 5 / 20. Errors have no ratio.
    assert (there(line.cells), here(line.cells)) == ([0.25, 0.2], [0.25, 0.25])
    sides = view_table(SIDES, matched)
    assert [one.words or one.there for one in sides.grid.lines[0].cells] == [None, "< 21,000", 0.5]
    assert here(sides.grid.lines[0].cells) == [4000, 2000, 0.5]
    (columns,) = sides.shapes
    assert here(columns.lines[0].cells) == [0.5]
    (against,) = view_table(REPORT.tables[2], matched).shapes
    assert (there(against.lines[0].cells), here(against.lines[0].cells)) == ([0.5, 2], [0.5, 2])
    text = page_of(*trials)
    assert '<td class="num published">&lt; 21,000</td>' in text
    assert '<td class="num here">×2.00</td>' in text


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"testbed_class": "lab"}, "Measured on local and lab, which do not compare"),
        ({"engine": "native"}, "Measured with the engines python and native, which do not compare"),
    ],
    ids=["testbed", "engine"],
)
def test_what_does_not_compare_gets_no_ratio(
    make_trial: Make, changes: dict[str, str], why: str
) -> None:
    fast = make_measured(make_trial, "fast", testbed_class="local", engine="python")
    slow = make_measured(make_trial, "slow", config=SENTINEL, testbed_class="local", engine="python")
    slow = replace(slow, **changes)  # type: ignore[arg-type]
    table = view_table(SIDES, match(REPORT, gather([fast, slow]), (fast, slow)))
    assert here(table.grid.lines[0].cells) == [4000, 4000, None]
    (reported,) = (one for one in table.missing if "compare" in one)
    # The smaller name first or second, as the columns are.
    assert set(re.findall(r"\w+", reported)) >= set(re.findall(r"\w+", why)) - {"Measured"}


def test_a_report_that_compares_testbeds_gets_its_ratio(make_trial: Make) -> None:
    subjects = tuple(
        replace(one, testbed_classes=(testbed,))
        for one, testbed in zip(REPORT.subjects, ("local", "lab"), strict=True)
    )
    fast = make_measured(make_trial, "fast", testbed_class="local")
    slow = make_measured(make_trial, "slow", slower=4.0, config=SENTINEL, testbed_class="lab")
    report = replace(REPORT, subjects=subjects)
    table = view_table(SIDES, match(report, gather([fast, slow]), (fast, slow)))
    assert table.grid.lines[0].cells[2].here == 0.25


def test_what_was_not_measured_says_why(make_trial: Make) -> None:
    fast = make_measured(make_trial)
    (missing,) = view_table(SIDES, match(REPORT, gather([fast]), (fast,))).missing
    assert missing == (
        "No completed trial of cassandra (config sentinel) is in this history at this scale: Slow."
    )
    failed = replace(fast, status=TrialStatus.FAILED, reasons=(Reason(kind="start", text="no."),))
    reported = view_table(MAIN, match(REPORT, (), (failed,)))
    assert reported.missing[0] == (
        "1 trial of sensor-write failed or gave no valid result: the whole table."
    )
    assert not reported.grid.is_measured
    part = replace(fast, samples=tuple(one for one in fast.samples if one.phase == "saturation"))
    reported = view_table(MAIN, match(REPORT, gather([part]), (part,)))
    assert reported.missing[0].endswith("not in the setting of this table: Calm · Writes/s.")
    assert reported.missing[1].startswith("p99 response_time of write in steady was not recorded")
    assert "no trial of this scale was completed" in page_of(failed)


def test_scaling_is_growth_of_throughput_over_growth_of_capacity() -> None:
    # 77 to 306 thousand operations per second on four times the capacity: 397 % of 400 %.
    found = scale_share(77_000, 306_000, 3 * 8, 6 * 16)
    assert found is not None
    assert found.throughput_ratio == pytest.approx(3.974, abs=0.001)
    assert found.share == pytest.approx(0.9935, abs=0.0001)
    assert scale_share(0, 1, 1, 1) is None


def test_scaling_is_reported_by_nodes_and_by_the_recorded_price(make_trial: Make) -> None:
    price = (Fact(host="", name="prices_from", value="2026-01-01, a list"),)
    slow = make_measured(make_trial, "slow", slower=2.5, config=SENTINEL, price="1")
    slow = replace(slow, topology=Named(name="one", sha256="1" * 12))
    fast = make_measured(make_trial, "fast", price="2")
    fast = replace(fast, environment_before=(*fast.environment_before, *price))
    topologies = {
        name: Topology(name=name, description="Made up.", servers=servers)
        for name, servers in (("one", 1), (fast.topology.name, 3))
    }
    text = page_of(slow, fast, **topologies)
    # Throughput 2.5 times, nodes 3 times, price 2 times.
    cells = re.findall(r"<tr><th scope=\"row\">From one to three</th>(.*?)</tr>", text)
    reported = re.sub(r"<[^>]*>", "|", cells[0]).replace("\N{NO-BREAK SPACE}", " ")
    assert [part for part in reported.split("|") if part] == [
        "397 % of 400 %: 99.2 %",
        "×2.50",
        "83.3 % of ×3.00 (servers)",
        "125 % of ×2.00",
    ]
    assert "its servers cost $2.00 per hour (2026-01-01, a list)" in text
    assert "its servers cost $1.00 per hour (of no day that is known)" in text


def test_the_page_has_source_scale_and_no_absolute_goal(make_trial: Make) -> None:
    text = page_of(make_measured(make_trial))
    assert '<a href="https://example.org/report?a=1&amp;b=2" rel="noreferrer">' in text
    assert "Scaled down by 10, never below the floors of a workload; knickpoint workloads" in text
    assert "no goal" in text
    for part in ("2026-01-01", "One node and three are both claimed.", "Figure 9", "B. &lt;Nobody&gt;"):
        assert part in text
    assert "Full <load>" not in text


def record(
    make_interval: Callable[..., Interval], phase: str, first_s: float, *seconds: int
) -> Recording:
    """Make a recording of some seconds, each of 100 operations that took so many µs."""
    return Recording(
        trial=TrialId("a"),
        phase=phase,
        operation="write",
        kind="response_time",
        intervals=tuple(
            make_interval([value] * 100, phase=phase, start_s=first_s + place)
            for place, value in enumerate(seconds)
        ),
    )


def test_windows_are_merged_histograms_in_order_of_time(make_interval: Callable[..., Interval]) -> None:
    late = record(make_interval, "late", 1010, 4000, 4000, 4000)
    early = record(make_interval, "early", 1000, *([1000] * 9), 9000)
    windows = cut([late, early], 2)
    assert [(one.phase, one.at_s, one.length_s, one.count) for one in windows] == [
        ("early", 0, 5, 500),
        ("early", 5, 5, 500),
        ("late", 10, 2, 200),
        ("late", 12, 1, 100),
    ]
    assert [one.p99_ms for one in windows] == pytest.approx([1, 9, 4, 4], rel=0.002)
    # The fast four fifths decide the median of the second window: it is no average.
    assert windows[1].p50_ms == pytest.approx(1, rel=0.002)
    assert cut([], 3) == ()


def test_a_drift_is_reported_as_it_was_recorded_and_what_cannot_be_reported_is_said(
    make_trial: Make, make_interval: Callable[..., Interval]
) -> None:
    trial = make_measured(make_trial)
    ends = zip(("estimate", "lower", "upper"), (12.0, -3.0, 27.0), strict=True)
    drift = tuple(
        Sample(
            phase="saturation",
            operation="write",
            metric="response_time_drift",
            statistic=name,
            value=value,
        )
        for name, value in ends
    )
    course = REPORT.courses[1]
    recorded = find_recorded_drift(replace(trial, samples=drift), course, "write")
    assert find_recorded_drift(trial, course, "write") is None
    assert recorded == (12.0, -3.0, 27.0)
    windows = cut([record(make_interval, "saturation", 0, 1000, 2000)], 2)
    drawn = Drawn(course=course, operation="write", windows=windows, drift=recorded)
    reported = page_of(trial, drawn=drawn).replace("\N{NO-BREAK SPACE}", " ")
    assert "1.00 ms in the first, 2.00 ms in the last (+100.0 %)" in reported
    assert "+12.0 % (95 %: −3.0 % to +27.0 %, which holds 0: one cannot tell)" in reported
    assert "recorded no drift" in page_of(trial, drawn=replace(drawn, drift=None))
    alone = page_of(trial, drawn=replace(drawn, windows=windows[:1]))
    assert "Fewer than two windows show no drift." in alone


def test_a_course_is_drawn_from_left_to_right_on_a_logarithmic_scale(
    make_interval: Callable[..., Interval],
) -> None:
    chart = draw_course(
        cut(
            [record(make_interval, "one", 0, 1000, 10_000), record(make_interval, "two", 2, 100_000)], 9
        )
    )
    one, two = chart.stretches
    assert (one.name, two.name) == ("one", "two")
    assert one.begin < two.begin
    assert [ms for _, ms in chart.levels] == [1, 10, 100, 1000]
    heights = [height for height, _ in chart.levels]
    steps = {round(before - after) for before, after in pairwise(heights)}
    assert len(steps) == 1
    assert one.p99.count("L") == 1
    assert "H" in two.p99


def test_the_order_of_trials_is_theirs_in_time(make_trial: Make) -> None:
    late = make_measured(make_trial, "late", minutes=5)
    early = make_measured(make_trial, "early")
    (found,) = find_reproductions([REPORT], [late, early])
    assert [one.id for one in found.trials] == ["early", "late"]
    assert late.started_at - early.started_at == timedelta(minutes=5)
