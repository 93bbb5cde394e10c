"""The page of a comparison: what it says first, its turns in order, and what it must not hide."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from made_up_comparison import (
    FAILED,
    HOSTILE,
    INVALID,
    PLANTED,
    REGRESSED_RESULT,
    RESULTS,
    SOME_INVALID,
    UNCHANGED_RESULT,
    UNDECIDED_RESULT,
)

from analysis.comparing.results import ComparisonResult, write_result
from perf.model.results import Purpose, Reason, TrialStatus
from reports.commands.report import report
from reports.pages.comparison.chart import Turn, draw_turns
from reports.pages.comparison.page import render_comparison
from reports.pages.comparison.view import view_comparison, view_list
from reports.site.writing import SiteFile

NBSP = "\N{NO-BREAK SPACE}"


def page_of(result: ComparisonResult) -> str:
    file: SiteFile = render_comparison(result, {result.trials[0].id})
    return file.content.decode()


def test_the_page_begins_with_the_verdict_and_whether_to_act() -> None:
    view = view_comparison(REGRESSED_RESULT, ())
    assert view.badge.word == "Regressed"
    assert view.sentence.startswith(
        "put-get-single gets worse with head b7e2d1c0 than with base 3f1c9a27: "
        f"p99 response time of write at steady load +31.5{NBSP}%"
    )
    assert view.action == "Action needed"
    text = page_of(REGRESSED_RESULT)
    order = [
        text.index(one) for one in ("Action needed", "rests on", "In turns", "Both sides", "Seed 7")
    ]
    assert order == sorted(order)


def test_trusted_measures_come_first_and_the_others_are_folded() -> None:
    view = view_comparison(REGRESSED_RESULT, ())
    assert [one.title for one in view.trusted] == [
        "p99 response time of write at steady load",
        "Throughput of write at saturation",
    ]
    (other,) = view.others
    text = page_of(REGRESSED_RESULT)
    assert text.index("<details>") < text.index(f'id="{other.anchor}"') < text.index("</details>")


def test_a_measure_says_levels_change_interval_and_what_it_could_have_seen() -> None:
    row = view_comparison(REGRESSED_RESULT, ()).trusted[0].row
    assert (row.levels, row.change) == (f"8.40 → 11.0{NBSP}ms", f"+31.5{NBSP}%")
    assert row.interval == f"+22.5{NBSP}% to +40.5{NBSP}%"
    assert (row.detectable, row.relevant, row.better) == (f"10.8{NBSP}%", f"10{NBSP}%", "↓")


def test_marks_stand_in_the_order_of_turns_and_differ_not_by_colour_alone() -> None:
    chart = view_comparison(REGRESSED_RESULT, ()).trusted[0].chart
    assert chart is not None
    in_order = [mark.side for mark in sorted(chart.marks, key=lambda mark: mark.x)]
    assert in_order == ["baseline", "candidate", "candidate", "baseline"] * 3
    assert len(chart.borders) == 2  # between three blocks
    text = page_of(REGRESSED_RESULT)
    assert text.count('<circle class="baseline"') == text.count('<rect class="candidate"') == 18
    assert re.search(r"<title>Turn 2, candidate: 1\d\.\d\s?ms</title>", text)


def test_a_trial_that_was_not_used_is_a_gap_in_the_chart_and_loud_in_the_text() -> None:
    (result,) = SOME_INVALID.comparisons
    view = view_comparison(result, ())
    assert view.unused == (
        "Of 14 trials some were not used: 1 of the baseline failed, 1 of the candidate invalid."
    )
    chart = view.trusted[0].chart
    assert chart is not None
    assert len(chart.marks) == 12
    step = chart.width / 14
    assert {round(mark.x / step - 0.5) for mark in chart.marks} == set(range(14)) - {2, 7}
    assert "the CPU canary is 9.3 % slower after the trial than before" in page_of(result)
    assert (
        f'<p class="alarm"><span class="symbol" aria-hidden="true">!</span> {view.unused}'
        in page_of(result)
    )


def test_values_that_belong_to_no_turn_for_certain_are_not_drawn() -> None:
    first, *rest = REGRESSED_RESULT.measures
    short = replace(first, baseline=first.baseline[:-1])
    view = view_comparison(replace(REGRESSED_RESULT, measures=(short, *rest)), ())
    assert view.trusted[0].chart is None
    assert "Not drawn: " in page_of(replace(REGRESSED_RESULT, measures=(short,)))


@pytest.mark.parametrize("content", [FAILED, INVALID], ids=["failed", "invalid"])
def test_without_any_measure_the_page_says_so(content: object) -> None:
    (result,) = content.comparisons  # type: ignore[attr-defined]
    text = page_of(result)
    assert "No measure: no trial of both sides gave a value that can be compared." in text
    assert "No action needed" not in text


def test_what_cannot_be_told_is_not_fine_and_says_what_it_would_take() -> None:
    view = view_comparison(UNDECIDED_RESULT, ())
    assert view.action == "Not shown to be harmless"
    assert view.advice.startswith("About 57 trials of each side")


def test_both_sides_are_told_and_what_differs_is_marked() -> None:
    view = view_comparison(REGRESSED_RESULT, ())
    assert [row.name for row in view.sides if row.differs] == ["Config"]
    assert view.sides[1].baseline == "default@a8f3c1d2e4b5"


def test_only_trials_that_have_a_page_are_linked() -> None:
    text = page_of(REGRESSED_RESULT)
    assert re.findall(r'href="\.\./(trials/[^"]*)"', text) == [
        "trials/cmp-2026-03-01-1.01a.baseline.5.0.6.html"
    ]


def test_of_many_reasons_a_trial_says_the_first_and_their_number() -> None:
    first, *rest = REGRESSED_RESULT.trials
    reasons = tuple(Reason(kind="noise", text=f"{turn} of 2 cores") for turn in range(3))
    noisy = replace(first, status=TrialStatus.INVALID, reasons=reasons)
    view = view_comparison(replace(REGRESSED_RESULT, trials=(noisy, *rest)), ())
    assert view.turns[0].reason == "0 of 2 cores (and 2 more)"
    assert {row.reason for row in view.turns[1:]} == {""}


def test_the_caveat_of_the_testbed_is_the_recorded_one() -> None:
    assert "Client and database share one host" in page_of(REGRESSED_RESULT)


def test_remarks_stand_in_the_verdict() -> None:
    (result,) = PLANTED.comparisons
    text = page_of(result)
    assert text.index("candidate: each write") < text.index("rests on")


def test_hostile_text_stays_text() -> None:
    (result,) = HOSTILE.comparisons
    text = page_of(result)
    assert "<script>" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "\u202e" not in text


def test_the_front_page_lists_the_newest_first_without_the_probes_of_bisections() -> None:
    probe = replace(UNCHANGED_RESULT, id="probe", purpose=Purpose.BISECTION)
    recent = view_list((*RESULTS, probe))
    assert [one.page for one in recent] == [
        f"comparison/cmp-2026-03-0{day}-1.html" for day in (4, 3, 2, 1)
    ]
    assert recent[2].is_faded  # shown equivalent: nobody has to look


def test_the_site_has_the_pages_and_the_list(demo_site: Path) -> None:
    for result in RESULTS:
        assert (demo_site / "comparison" / f"{result.id}.html").is_file()
    front = (demo_site / "index.html").read_text()
    assert 'href="comparison/cmp-2026-03-01-1.html"' in front
    assert '<h2 id="comparisons">' in front


def test_the_report_reads_results_from_the_data_directory(tmp_path: Path) -> None:
    place = tmp_path / "data" / "comparisons" / REGRESSED_RESULT.id
    place.mkdir(parents=True)
    (place / "result.json").write_bytes(write_result(REGRESSED_RESULT))
    ran = CliRunner().invoke(report, ["--data", str(tmp_path / "data")])
    assert ran.exit_code == 0, ran.output
    page = tmp_path / "data" / "site" / "comparison" / f"{REGRESSED_RESULT.id}.html"
    assert "Action needed" in page.read_text()


def turn(place: int, value: float) -> Turn:
    return Turn(place=place, block=1, side="baseline", value=value, iterations=(value,), text="")


def test_equal_values_lie_in_the_middle_and_noise_stays_small() -> None:
    flat = draw_turns((turn(0, 5.0), turn(1, 5.0)), 2)
    assert flat is not None
    assert {mark.y for mark in flat.marks} == {flat.height / 2}
    assert (flat.bottom, flat.top) == (4.75, 5.25)
    assert draw_turns((turn(0, float("nan")),), 1) is None
    assert draw_turns((), 0) is None
