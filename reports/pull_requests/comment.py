"""The comment on a pull request, as Markdown: the verdict first, one table, and all else folded.

Everything in a comparison file is untrusted here: no text of it reaches the comment but through
`markdown`. Each part is whole by itself, so that a comment that would be too long is cut between the
lines of a part and stays valid.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape as escape_html
from urllib.parse import quote as quote_url
from urllib.parse import urlsplit

from analysis.comparing.description import describe_method
from analysis.comparing.results import ComparisonFile, ComparisonResult, KnobValues, TrialRecord
from analysis.detection.verdict import WORST_FIRST, Outcome
from perf.model.results import SIDES, TrialStatus
from reports.pull_requests.reproduction import describe_reproduction
from reports.wording.links import METHOD_PAGE, PULL_REQUESTS_ANCHOR, comparison_page, series_search
from reports.wording.markdown import clean, code, escape
from reports.wording.measures import (
    NO_BREAK,
    MeasureRow,
    explains,
    length_words,
    view_diagnostic,
    view_measure,
)
from reports.wording.summary import (
    Summary,
    find_attributions,
    is_beyond_measures,
    knob_words,
    list_headlines,
    quote,
    side_words,
    summarize,
    summarize_result,
)
from reports.wording.wording import count, one_sentence, plain_percent, sentence

MOST_CHARACTERS = 60_000
"""GitHub takes 65,536; who posts it adds a marker."""
_MOST_SENTENCE = 600
_MOST_NAME = 80
_MOST_REASON = 300
_MOST_LISTED = 5
_MOST_SHOWN = 3
_MOST_ALARMS = 10
_MOST_TOUCHED = 50
_SHORT_SHA = 10
_DOCUMENTATION = "docs/pull-requests.md"
_ACCEPT = (
    "To accept it: merge; once a night reports the incident, run "
    '`knickpoint triage add INCIDENT --state expected --owner OWNER --note "WHY"`.'
)
_MARKS = {
    Outcome.REGRESSED: "❌",
    Outcome.INVALID: "⚠️",
    Outcome.UNDECIDED: "❔",
    Outcome.IMPROVED: "✅",
    Outcome.UNCHANGED: "⚪",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentPart:
    """A part that may be cut between its lines: what opens it, its lines, and what closes it."""

    opening: str
    lines: tuple[str, ...]
    closing: str = ""

    def write(self, lines: int) -> str:
        """Write it with its first lines only."""
        return "\n".join((self.opening, *self.lines[:lines], *filter(None, (self.closing,))))


def render_comment(content: ComparisonFile, *, site_url: str = "") -> str:
    """Write the comment, of at most 60 000 characters; `site_url` is the root of the site it links."""
    reported = summarize(content)
    site = site_url.rstrip("/") if urlsplit(site_url).scheme in {"http", "https"} else ""
    start = f"### {_MARKS[reported.outcome]} {reported.badge.word}: {reported.action}"
    verdict = "\n\n".join(filter(None, (start, *_verdict(content, reported, site))))
    return _fit(verdict, tuple(_parts(content, reported, site)), _describe_end(content, site))


def _verdict(content: ComparisonFile, reported: Summary, site: str) -> Iterator[str]:
    """Yield the headline, or a list of them, an error in its own words, and what to do."""
    (_, first), *more = list_headlines(content)
    if more:
        yield "\n".join(
            f"- {f'{_MARKS[outcome]} ' if outcome else ''}**{escape(text, _MOST_SENTENCE)}**"
            for outcome, text in list_headlines(content)
        )
    else:
        yield f"**{escape(first, _MOST_SENTENCE)}**"
    if reported.detail:
        yield f"> {escape(reported.detail, _MOST_SENTENCE)}"
    if reported.needs_attention:
        accept = _ACCEPT if reported.outcome is Outcome.REGRESSED and content.head else ""
        page = f"[What to do]({_link(f'{site}/{METHOD_PAGE}#{PULL_REQUESTS_ANCHOR}')})"
        more_about = page if site else f"What to do: `{_DOCUMENTATION}` of Knickpoint."
        yield " ".join(filter(None, (escape(reported.advice, _MOST_SENTENCE), accept, more_about)))


def _fit(start: str, parts: Sequence[CommentPart], end: str) -> str:
    """Put the parts together; where the room ends, cut between two lines and say so."""
    room = MOST_CHARACTERS - _length(start) - _length(end) - _MOST_REASON
    written, left_out = [start], 0
    for part in parts:
        taken = 0 if left_out else _count_fitting(part, room)
        left_out += len(part.lines) - taken
        if taken:
            written.append(part.write(taken))
            room -= _length(written[-1]) + 2
    if left_out:
        lines = count(left_out, "line")
        written.append(
            f"> [!WARNING]\n> **Cut here:** the comment would be too long, {lines} of it were left out."
            " The file of the comparison holds everything."
        )
    return "\n\n".join((*written, end)) + "\n"


def _count_fitting(part: CommentPart, room: int) -> int:
    used = _length(part.opening) + _length(part.closing) + 4
    for taken, line in enumerate(part.lines):
        used += _length(line) + 1
        if used > room:
            return taken
    return len(part.lines)


def _length(text: str) -> int:
    # As JavaScript counts, the stricter way: some characters are two.
    return len(text.encode("utf-16-le")) // 2


def _parts(content: ComparisonFile, reported: Summary, site: str) -> Iterator[CommentPart]:
    """Yield the parts, what must be seen first; `reported` is what the verdict says already."""
    results = sorted(content.comparisons, key=lambda one: WORST_FIRST.index(one.outcome))
    yield from _alarms(content, results, reported.detail)
    yield from _table(content, results, site, is_trusted=True)
    yield from _servers(results)
    yield from _attributions(content)
    yield from _settings(content)
    yield from _defaults(results)
    if content.notes:
        lines = [f"- {escape(one, _MOST_REASON)}" for one in content.notes]
        yield _fold(f"Notes ({len(lines)})", lines)
    if lines := describe_reproduction(content, results):
        yield _fold("How to measure it again", lines)
    yield from _table(content, results, site, is_trusted=False)
    yield from _records(content, results)


def _alarms(
    content: ComparisonFile, results: Sequence[ComparisonResult], reported: str
) -> Iterator[CommentPart]:
    """Say loudly what did not go as it should, and what must be known of what did."""
    problems = list(content.problems)
    if any(quote(one) not in reported for one in problems):
        yield from _alert(
            "CAUTION",
            "Knickpoint errors, not of this change",
            (escape(one_sentence(one), _MOST_REASON) for one in problems),
        )
    yield from _alert(
        "WARNING",
        "Trials that were not used",
        (line for one in results for line in _describe_unused(one, content, reported)),
    )
    yield from _alert(
        "WARNING",
        "Changed, but not compared: nothing is known about these",
        (
            f"{code(one.experiment, _MOST_NAME)}: {escape(one.text, _MOST_REASON)}"
            for one in content.changes
            if one.text
        ),
    )
    remarks = dict.fromkeys(text for one in results for text in one.remarks)
    yield from _alert(
        "IMPORTANT",
        "To know before reading the numbers",
        (escape(one, _MOST_REASON) for one in remarks),
    )


def _alert(kind: str, title: str, lines: Iterable[str]) -> Iterator[CommentPart]:
    reported = list(lines)
    if len(reported) > _MOST_ALARMS:
        reported[_MOST_ALARMS:] = [f"and {len(reported) - _MOST_ALARMS} more like these"]
    found = tuple(f"> - {line}" for line in reported)
    if found:
        yield CommentPart(opening=f"> [!{kind}]\n> **{title}**\n>", lines=found)


def _describe_unused(result: ComparisonResult, content: ComparisonFile, reported: str) -> Iterator[str]:
    """Count the failed and invalid trials, with the most frequent reason in words.

    Both sides stand together where they have one reason. What the verdict says is not repeated.
    """
    groups: dict[tuple[TrialStatus, str], list[TrialRecord]] = {}
    for status in (TrialStatus.FAILED, TrialStatus.INVALID):
        for side in SIDES:
            unused = [one for one in result.trials if (one.side, one.status) == (side, status)]
            if unused:
                groups.setdefault((status, _describe_reasons(unused)), []).extend(unused)
    where = code(result.experiment, _MOST_NAME)
    is_reported = result.outcome is Outcome.INVALID and len(content.comparisons) == 1
    for (status, why), trials in groups.items():
        if is_reported and len(groups) == 1 and one_sentence(why) in reported:
            continue
        sides = [side for side in SIDES if any(one.side == side for one in trials)]
        names = " and ".join(escape(side_words(content, result, side), _MOST_NAME) for side in sides)
        of = count(sum(one.side in sides for one in result.trials), "trial")
        yield f"{where}, {names}: **{len(trials)} of {of} {status}**: {escape(why)}"


def _describe_reasons(trials: Sequence[TrialRecord]) -> str:
    """Give one reason of the most frequent kind, and count the other kinds: numbers in them differ."""
    kinds = Counter(reason.kind for one in trials for reason in one.reasons)
    if not kinds:
        return "no reason was recorded"
    ((first, _),) = kinds.most_common(1)
    text = next(reason.text for one in trials for reason in one.reasons if reason.kind == first)
    more = f" (and {count(len(kinds) - 1, 'other kind of reason', 'other kinds of reasons')})"
    return f"{clean(text, _MOST_REASON)}{more if len(kinds) > 1 else ''}"


def _table(
    content: ComparisonFile, results: Sequence[ComparisonResult], site: str, *, is_trusted: bool
) -> Iterator[CommentPart]:
    """Yield the table on which the verdicts rest, or, folded, the one of all other measures.

    A measure without a value on either side has no row.
    """
    lines = tuple(
        _row(one, view_measure(each), site, with_where=len(results) > 1)
        for one in results
        for each in one.measures
        if each.is_trusted is is_trusted and not (each.before is None and each.after is None)
    )
    if not lines:
        return
    where = ("Experiment",) if len(results) > 1 else ()
    head = _head(("", *where, "Measure", _sides(content, results), "Change", "Smallest visible Δ", "n"))
    if is_trusted:
        legend = _describe_legend(results, has_links=bool(site))
        yield CommentPart(opening=head, lines=lines, closing=f"\n<sub>{legend}</sub>")
    else:
        title = f"Other measures ({len(lines)}), on which the verdict does not rest"
        yield _fold(title, lines, head=head)


def _servers(results: Sequence[ComparisonResult]) -> Iterator[CommentPart]:
    """Say what the servers did differently where a change was found: what moved most, and surely."""
    lines = []
    for one in filter(explains, results):
        where = f"{code(one.experiment, _MOST_NAME)}: " if len(results) > 1 else ""
        sure = [view_diagnostic(each) for each in one.diagnostics if each.is_sure][:_MOST_SHOWN]
        lines += [f"- {where}{escape(str(each), _MOST_REASON)}" for each in sure]
        methods = [escape(describe_method(each), _MOST_REASON) for each in one.code]
        lines += [f"- {where}{each}, by profiles of both sides" for each in methods]
        if not sure and not methods:
            lines.append(f"- {where}nothing that was recorded of the servers explains it")
    if lines:
        yield CommentPart(opening="**What the servers did differently**\n", lines=tuple(lines))


def _describe_legend(results: Sequence[ComparisonResult], *, has_links: bool) -> str:
    trusted = [each for one in results for each in one.measures if each.is_trusted]
    sure = {plain_percent(each.effect.confidence) for each in trusted if each.effect}
    which = f"{sure.pop()} " if len(sure) == 1 else ""
    return (
        f"{'a measure links its history · ' if has_links else ''}↑ higher is better · in brackets: "
        f"the {which}interval · smallest visible Δ: what these trials could show · n: trials used"
    )


def _sides(content: ComparisonFile, results: Sequence[ComparisonResult]) -> str:
    if content.head is None and len(results) > 1:
        return "before → after"
    sides = (side_words(content, results[0], "baseline"), side_words(content, results[0], "candidate"))
    return " → ".join(escape(side, _MOST_NAME) for side in sides)


def _row(result: ComparisonResult, row: MeasureRow, site: str, *, with_where: bool) -> str:
    title = escape(row.title, _MOST_NAME)
    if site:
        # The text of the search is the file's, so it is all percent-encoded; the rest is ours.
        search = series_search(clean(result.experiment)[:_MOST_NAME], row.title[:_MOST_NAME])
        title = f"[{title}]({_link(f'{site}/{search}')})"
    return _cells(
        (
            _mark(row.result.outcome),
            *((code(result.experiment, _MOST_NAME),) if with_where else ()),
            f"{title} {row.better}".rstrip(),
            row.levels,
            f"**{row.change}** ({row.interval})",
            row.detectable,
            row.trials,
        )
    )


def _mark(outcome: Outcome) -> str:
    return f"{_MARKS[outcome]}{NO_BREAK}{outcome.capitalize()}"


def _head(cells: Sequence[str]) -> str:
    return f"{_cells(cells)}\n{_cells('---' for _ in cells)}"


def _cells(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _attributions(content: ComparisonFile) -> Iterator[CommentPart]:
    """Describe what each setting does, with the others in place; one that was not tried is said."""
    lines = []
    experiments = dict.fromkeys(
        (one.comparison.suite, one.comparison.experiment) for one in content.attributions
    )
    for suite, experiment in experiments:
        where = (code(experiment, _MOST_NAME),) if len(experiments) > 1 else ()
        tried = find_attributions(content, suite, experiment)
        for one in tried:
            verdict = _mark(one.comparison.outcome)
            setting = code(knob_words(one.knob), _MOST_REASON)
            lines.append(_cells((verdict, *where, setting, _describe_effects(one.comparison))))
        names = {one.knob for one in tried}
        untried = [
            knob
            for change in content.changes
            if (change.suite, change.experiment) == (suite, experiment)
            for knob in change.knobs
            if knob not in names
        ]
        for knob in untried[:_MOST_LISTED]:
            setting = code(knob_words(knob), _MOST_REASON)
            lines.append(_cells(("–", *where, setting, "not tried: nothing is known of it alone")))
        if (more := len(untried) - _MOST_LISTED) > 0:
            lines.append(_cells(("–", *where, f"{count(more, 'more setting')}", "not tried")))
    if lines:
        column = ("Experiment",) if len(experiments) > 1 else ()
        head = _head(("", *column, "Setting, the others in place", "What it does"))
        yield CommentPart(opening=f"**Which setting does it**\n\n{head}", lines=tuple(lines))


def _describe_effects(result: ComparisonResult) -> str:
    rows = [view_measure(each) for each in result.measures if each.is_trusted]
    reported = "; ".join(
        f"{escape(row.title, _MOST_NAME)} **{row.change}** ({row.interval})" for row in rows
    )
    return reported or escape(result.reason, _MOST_REASON)


def _settings(content: ComparisonFile) -> Iterator[CommentPart]:
    """List the settings that differ, each set of them with the experiments that it touches.

    A few that changed together are seen at once: the verdict says only how many. More are folded.
    """
    groups: dict[tuple[tuple[KnobValues, ...], int], list[str]] = {}
    for one in content.changes:
        if one.knobs:
            groups.setdefault((one.knobs, one.unlisted), []).append(one.experiment)
    listed = sum(len(knobs) + unlisted for knobs, unlisted in groups)
    is_partial = len(content.changes) != len(content.comparisons)
    is_in_table = len(groups) == 1 and 0 <= listed - len(content.attributions) <= _MOST_LISTED
    if not is_partial and (listed <= 1 or (content.attributions and is_in_table)):
        return
    if len(groups) == 1 and 1 < listed <= _MOST_SHOWN and not content.attributions and not is_partial:
        ((knobs, _),) = groups
        moved = {one.outcome for one in content.comparisons} & {Outcome.REGRESSED, Outcome.IMPROVED}
        which = "; `--attribute` finds which of them does it" if moved else ""
        lines = [f"- {code(knob_words(knob), _MOST_REASON)}" for knob in knobs]
        yield CommentPart(opening=f"**Changed together{which}**\n", lines=tuple(lines))
        return
    lines = []
    for (knobs, unlisted), experiments in groups.items():
        names = ", ".join(code(name, _MOST_NAME) for name in experiments[:_MOST_TOUCHED])
        more = len(experiments) - _MOST_TOUCHED
        lines.append(f"- {names}{f' and {more} more' if more > 0 else ''}")
        lines += [f"  - {code(knob_words(knob), _MOST_REASON)}" for knob in knobs]
        if unlisted:
            lines.append(f"  - and {unlisted:,} more")
    if lines:
        yield _fold(f"Changed settings ({listed})", lines)


def _defaults(results: Sequence[ComparisonResult]) -> Iterator[CommentPart]:
    """List the defaults that two releases ship and that differ, once for all experiments."""
    found = dict.fromkeys(knob for one in results for knob in one.defaults)
    if lines := [f"- {code(knob_words(knob), _MOST_REASON)}" for knob in found]:
        yield _fold(f"Defaults of the releases that differ ({len(lines)})", lines)


def _records(content: ComparisonFile, results: Sequence[ComparisonResult]) -> Iterator[CommentPart]:
    """Describe of each comparison how long it took and why it ended."""
    reported = [(one, code(one.experiment, _MOST_NAME)) for one in results]
    reported += [
        (one.comparison, f"Effect of {code(knob_words(one.knob), _MOST_REASON)}")
        for one in content.attributions
    ]
    lines = [
        f"- {what}: {_MARKS[one.outcome]} {summarize_result(one).badge.word} "
        f"({code(one.id, _MOST_NAME)}). "
        f"{_describe_reason(one) if len(results) > 1 else ''}"
        f"{escape(sentence(one.ended), _MOST_REASON)} Took {_describe_length(one)}, seed {one.seed}, "
        f"question {code(one.question_sha256, _SHORT_SHA)}."
        for one, what in reported
    ]
    if lines:
        yield _fold("Why it ended", lines)


def _describe_reason(result: ComparisonResult) -> str:
    """Return the reason of a verdict that the table does not show."""
    if result.outcome is Outcome.INVALID or is_beyond_measures(result):
        return f"{escape(sentence(result.reason), _MOST_REASON)} "
    return ""


def _describe_length(*results: ComparisonResult) -> str:
    return length_words(math.fsum(each.duration_s for one in results for each in one.trials))


def _fold(title: str, lines: Sequence[str], *, head: str = "") -> CommentPart:
    opening = f"<details>\n<summary>{escape_html(title)}</summary>\n"
    return CommentPart(
        opening=f"{opening}\n{head}" if head else opening, lines=tuple(lines), closing="\n</details>"
    )


def _describe_end(content: ComparisonFile, site: str) -> str:
    reported = []
    if content.comparisons and site:
        reported.append(_describe_pages(content.comparisons, site))
    sides = (("base", content.base), ("head", content.head))
    if revisions := [f"{name} {code(one.sha[:_SHORT_SHA])}" for name, one in sides if one]:
        reported.append(" → ".join(revisions))
    if content.comparisons:
        measured = (*content.comparisons, *(one.comparison for one in content.attributions))
        trials = count(sum(len(one.trials) for one in measured), "trial")
        reported.append(f"{trials} in {_describe_length(*measured)}")
    reported.append(f"Knickpoint {escape(content.knickpoint, _MOST_NAME)}")
    caveats = dict.fromkeys(one.caveat for one in content.comparisons if one.caveat)
    reported += [escape(one, _MOST_REASON) for one in list(caveats)[:_MOST_LISTED]]
    return f"<sub>{' · '.join(reported)}</sub>"


def _describe_pages(results: Sequence[ComparisonResult], site: str) -> str:
    """Link the pages of the comparisons, by name where there are several; of many, the first ones."""
    pages = [_link(f"{site}/{comparison_page(one.id)}") for one in results]
    if len(pages) == 1:
        return f"[Every trial, with charts]({pages[0]})"
    named_pages = zip(results[:_MOST_LISTED], pages, strict=False)
    reported = ", ".join(f"[{escape(one.experiment, _MOST_NAME)}]({page})" for one, page in named_pages)
    more = len(pages) - _MOST_LISTED
    return f"Every trial, with charts: {reported}{f' and {more} more' if more > 0 else ''}"


def _link(url: str) -> str:
    return escape_html(quote_url(url, safe=":/?#@!$&'*+,;=%~-._"))
