"""The page of a comparison: what it says first, its turns in order, and what it must not hide."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from made_up_comparison import (
    EXPLAINED,
    FAILED,
    HOSTILE,
    INVALID,
    PLANTED,
    REGRESSED_RESULT,
    RESULTS,
    SOME_INVALID,
    UNCHANGED_RESULT,
    UNDECIDED_RESULT,
    UNEXPLAINED,
)

from analysis.comparing.blocks import TrialValue
from analysis.comparing.results import ComparisonResult, write_result
from perf.model.results import Purpose, Reason, TrialStatus
from reports.commands.report import report
from reports.pages.comparison.page import count_unused, render_comparison
from reports.pages.comparison.view import TurnChart, draw_turns, place_turns, view_list
from reports.site.writing import SiteFile
from reports.wording.measures import view_measure

NBSP = "\N{NO-BREAK SPACE}"


def page_of(result: ComparisonResult) -> str:
    file: SiteFile = render_comparison(result, {result.trials[0].id})
    return file.content.decode()


def draw(result: ComparisonResult) -> TurnChart | None:
    """Draw the first measure of a comparison."""
    return draw_turns(result.measures[0], place_turns(result), len(result.trials))


def test_the_page_begins_with_the_verdict_and_whether_to_act() -> None:
    reported = (
        "Regressed",
        (
            f"put-get-single: p99 +31.5{NBSP}%, throughput −12.3{NBSP}% with head b7e2d1c0 instead of "
            "base 3f1c9a27."
        ),
        "Action needed",
        "rests on",
        "Interleaved trials",
        "Both sides",
        "Seed 7",
    )
    text = page_of(REGRESSED_RESULT)
    order = [text.index(one) for one in reported]
    assert order == sorted(order)


def test_a_database_that_does_not_start_is_quoted_and_leaves_no_empty_rows() -> None:
    text = page_of(FAILED.comparisons[0])
    assert "concurrent_writes must be at least 2, but was 1." in text
    assert "– → –" not in text


def test_trusted_measures_come_first_and_the_others_are_folded() -> None:
    text = page_of(REGRESSED_RESULT).partition("</details>")[2]  # after the caveat
    reported = (
        '<th scope="row">p99 response time of write at steady load',
        '<th scope="row">Throughput of write at saturation',
        "<details>",
        '<th scope="row">p50 response time of write at steady load',
        "</details>",
    )
    order = [text.index(one) for one in reported]
    assert order == sorted(order)


def test_a_measure_says_levels_change_interval_and_what_it_could_have_seen() -> None:
    row = view_measure(REGRESSED_RESULT.measures[0])
    assert (row.levels, row.change) == (f"8.40 → 11.0{NBSP}ms", f"+31.5{NBSP}%")
    assert row.interval == f"+22.5{NBSP}% to +40.5{NBSP}%"
    assert (row.detectable, row.relevant, row.better) == (f"10.8{NBSP}%", f"10{NBSP}%", "↓")


def test_marks_stand_in_the_order_of_turns_and_differ_not_by_colour_alone() -> None:
    chart = draw(REGRESSED_RESULT)
    assert chart is not None
    in_order = [turn.side for turn in sorted(chart.turns, key=lambda turn: turn.place)]
    assert in_order == ["baseline", "candidate", "candidate", "baseline"] * 3
    assert len(chart.borders) == 2  # between three blocks
    text = page_of(REGRESSED_RESULT)
    assert text.count('<circle class="baseline"') == text.count('<rect class="candidate"') == 18
    assert re.search(r"<title>Turn 2, candidate: 1\d\.\d\s?ms</title>", text)


def test_a_trial_that_was_not_used_is_a_gap_in_the_chart_and_loud_in_the_text() -> None:
    (result,) = SOME_INVALID.comparisons
    assert [*count_unused(result)] == [(1, "baseline", "failed"), (1, "candidate", "invalid")]
    chart = draw(result)
    assert chart is not None
    assert len(chart.turns) == 12
    assert {turn.place for turn in chart.turns} == set(range(14)) - {2, 7}
    assert "the CPU canary is 9.3 % slower after the trial than before" in page_of(result)
    assert (
        '<p class="alarm"><span class="symbol" aria-hidden="true">!</span> Of 14 trials some were not '
        "used: 1 of the baseline failed, 1 of the candidate invalid."
    ) in page_of(result)


def test_values_that_belong_to_no_turn_for_certain_are_not_drawn() -> None:
    first, *rest = REGRESSED_RESULT.measures
    short = replace(first, baseline=first.baseline[:-1])
    assert draw(replace(REGRESSED_RESULT, measures=(short, *rest))) is None
    assert "Not drawn: " in page_of(replace(REGRESSED_RESULT, measures=(short,)))


@pytest.mark.parametrize("content", [FAILED, INVALID], ids=["failed", "invalid"])
def test_without_any_measure_the_page_says_so(content: object) -> None:
    (result,) = content.comparisons  # type: ignore[attr-defined]
    text = page_of(result)
    assert "No measure: no trial of both sides gave a value that can be compared." in text
    assert "No action needed" not in text


def test_what_cannot_be_reported_is_not_fine_and_says_what_it_would_take() -> None:
    text = page_of(UNDECIDED_RESULT)
    assert "<strong>Not shown to be harmless.</strong> About 57 trials of each side" in text


def test_both_sides_are_reported_and_what_differs_is_marked() -> None:
    text = page_of(REGRESSED_RESULT)
    assert re.findall(r'<tr class="differs">\s*<th scope="row">(\w+) ', text) == ["Config"]
    assert '<td class="trial">default@a8f3c1d2e4b5</td>' in text


def test_only_trials_that_have_a_page_are_linked() -> None:
    text = page_of(REGRESSED_RESULT)
    assert re.findall(r'href="\.\./(trials/[^"]*)"', text) == [
        "trials/cmp-2026-03-01-1.01a.baseline.5.0.6.html"
    ]


def test_of_many_reasons_a_trial_says_the_first_and_their_number() -> None:
    first, *rest = REGRESSED_RESULT.trials
    reasons = tuple(Reason(kind="noise", text=f"{turn} of 2 cores") for turn in range(3))
    noisy = replace(first, status=TrialStatus.INVALID, reasons=reasons)
    text = page_of(replace(REGRESSED_RESULT, trials=(noisy, *rest)))
    assert re.findall(r'<span class="why alarm">(.*?)</span>', text) == ["0 of 2 cores (and 2 more)"]


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


def with_values(value: float) -> ComparisonResult:
    """Return a comparison in whose first measure each trial has that value."""
    first = REGRESSED_RESULT.measures[0]
    same = tuple(TrialValue(value=value, iterations=(value,)) for _ in first.baseline)
    return replace(REGRESSED_RESULT, measures=(replace(first, baseline=same, candidate=same),))


def test_equal_values_lie_in_the_middle_and_noise_stays_small() -> None:
    flat = draw(with_values(5.0))
    assert flat is not None
    assert {flat.y(turn.value) for turn in flat.turns} == {flat.height / 2}
    assert (flat.y.low, flat.y.high) == (4.75, 5.25)
    assert draw(with_values(float("nan"))) is None
    nothing = replace(REGRESSED_RESULT.measures[0], baseline=(), candidate=())
    assert draw(replace(REGRESSED_RESULT, trials=(), measures=(nothing,))) is None


def servers_of(result: ComparisonResult) -> tuple[list[str], list[str]]:
    """Return the titles of what servers did surely differently, and of the rest, in order."""
    found = re.search(r'<section aria-labelledby="servers">.*?</section>', page_of(result), re.DOTALL)
    sure, _, rest = (found.group() if found else "").partition("<details>")
    row = re.compile(r'<th scope="row">(.*?)</th>')
    return row.findall(sure), row.findall(rest)


def test_logs_and_methods_that_part_the_sides_are_listed_as_text() -> None:
    html = page_of(EXPLAINED.comparisons[0])
    assert "&lt;i&gt;Slow&lt;/i&gt; sync: # ms" in html
    assert "3 to 1,200" in html
    assert "&lt;b&gt;77c1&lt;/b&gt;" in html
    # Too few trials have no say; enough of them may have nothing.
    assert 'id="logs"' not in page_of(REGRESSED_RESULT)
    assert "No warning and no error" in page_of(replace(REGRESSED_RESULT, logs=()))


def test_what_servers_did_differently_stands_before_what_they_did_alike() -> None:
    sure, rest = servers_of(EXPLAINED.comparisons[0])
    assert sure == [
        "Storage written of write at steady load",
        "Server CPU of write at steady load",
    ]
    assert len(rest) == 2
    assert servers_of(UNEXPLAINED.comparisons[0]) == ([], rest)
    assert servers_of(REGRESSED_RESULT) == ([], [])  # of a file from before them
