"""The comment on a pull request, as Markdown: the verdict first, one table, and all else folded.

Everything in a comparison file is untrusted here: no text of it reaches the comment but through
`markdown`. Each part is whole by itself, so that a comment that would be too long is cut between the
lines of a part and stays valid.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape as escape_html
from urllib.parse import quote, urlsplit

from analysis.comparing.results import ComparisonFile, ComparisonResult, Knob, SideRecord, TrialRecord
from analysis.verdict import WORST_FIRST, Outcome
from perf.model import SideName, TrialStatus
from reports.markdown import block, clean, code, escape
from reports.view.links import comparison_page
from reports.view.measures import NO_BREAK, MeasureRow, length_words, view_measure
from reports.view.summary import knob_words, side_words, summarize
from reports.view.wording import count, named, plain_percent, sentence

MOST_CHARACTERS = 60_000
"""GitHub takes 65,536; who posts it adds a marker."""
_MOST_HEADLINE = 250
_MOST_SENTENCE = 600
_MOST_NAME = 80
_MOST_REASON = 300
_MOST_COMMAND = 1000
_MOST_LISTED = 5
_MOST_ALARMS = 10
_MOST_TOUCHED = 50
_SHORT_SHA = 10
_MARKS = {
    Outcome.REGRESSED: "❌",
    Outcome.INVALID: "⚠️",
    Outcome.UNDECIDED: "❔",
    Outcome.IMPROVED: "✅",
    Outcome.UNCHANGED: "⚪",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part that may be cut between its lines: what opens it, its lines, and what closes it."""

    opening: str
    lines: tuple[str, ...]
    closing: str = ""

    def write(self, lines: int) -> str:
        """Write it with its first lines only."""
        return "\n".join((self.opening, *self.lines[:lines], *filter(None, (self.closing,))))


def headline(content: ComparisonFile) -> str:
    """Give verdict and action in one line of plain text; what writes it into markup must escape it."""
    told = summarize(content)
    return clean(f"{told.badge.word}, {told.action}: {told.sentence}", _MOST_HEADLINE)


def render_comment(content: ComparisonFile, *, site_url: str = "") -> str:
    """Write the comment, of at most 60 000 characters; `site_url` is the root of the site it links."""
    told = summarize(content)
    verdict = f"**{escape(told.sentence, _MOST_SENTENCE)}** {escape(told.advice, _MOST_SENTENCE)}"
    start = f"### {_MARKS[told.outcome]} {told.badge.word}: {told.action}\n\n{verdict.rstrip()}"
    return _fit(start, tuple(_parts(content)), _tell_end(content, site_url))


def _fit(start: str, parts: Sequence[Part], end: str) -> str:
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


def _count_fitting(part: Part, room: int) -> int:
    used = _length(part.opening) + _length(part.closing) + 4
    for taken, line in enumerate(part.lines):
        used += _length(line) + 1
        if used > room:
            return taken
    return len(part.lines)


def _length(text: str) -> int:
    # As JavaScript counts, the stricter way: some characters are two.
    return len(text.encode("utf-16-le")) // 2


def _parts(content: ComparisonFile) -> Iterator[Part]:
    """Give the parts, what must be seen first."""
    results = sorted(content.comparisons, key=lambda one: WORST_FIRST.index(one.outcome))
    yield from _alarms(content, results)
    yield from _table(content, results, is_trusted=True)
    yield from _attributions(content)
    yield from _settings(content)
    if content.notes:
        lines = [f"- {escape(one, _MOST_REASON)}" for one in content.notes]
        yield _fold(f"Notes ({len(lines)})", lines)
    yield from _reproduce(results)
    yield from _table(content, results, is_trusted=False)
    yield from _records((*results, *(one.comparison for one in content.attributions)))


def _alarms(content: ComparisonFile, results: Sequence[ComparisonResult]) -> Iterator[Part]:
    """Say loudly what did not go as it should, and what must be known of what did."""
    yield from _alert(
        "CAUTION",
        "Errors of ours, not of this change",
        (escape(one, _MOST_REASON) for one in content.problems),
    )
    yield from _alert(
        "WARNING",
        "Trials that were not used",
        (line for one in results for line in _tell_unused(one, content)),
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


def _alert(kind: str, title: str, lines: Iterable[str]) -> Iterator[Part]:
    told = list(lines)
    if len(told) > _MOST_ALARMS:
        told[_MOST_ALARMS:] = [f"and {len(told) - _MOST_ALARMS} more like these"]
    found = tuple(f"> - {line}" for line in told)
    if found:
        yield Part(opening=f"> [!{kind}]\n> **{title}**\n>", lines=found)


def _tell_unused(result: ComparisonResult, content: ComparisonFile) -> Iterator[str]:
    """Count the failed and invalid trials of each side, with the most frequent reason in words."""
    groups: dict[tuple[SideName, TrialStatus], list[TrialRecord]] = {}
    for one in result.trials:
        if one.status is not TrialStatus.COMPLETED:
            groups.setdefault((one.side, one.status), []).append(one)
    where = code(result.experiment, _MOST_NAME)
    for (side, status), trials in groups.items():
        of = count(sum(one.side == side for one in result.trials), "trial")
        name = escape(side_words(content, result, side), _MOST_NAME)
        yield f"{where}, {name}: **{len(trials)} of {of} {status}**: {_tell_reasons(trials)}"


def _tell_reasons(trials: Sequence[TrialRecord]) -> str:
    """Give one reason of the most frequent kind, and count the other kinds: numbers in them differ."""
    kinds = Counter(reason.kind for one in trials for reason in one.reasons)
    if not kinds:
        return "no reason was recorded"
    ((first, _),) = kinds.most_common(1)
    text = next(reason.text for one in trials for reason in one.reasons if reason.kind == first)
    more = f" (and {count(len(kinds) - 1, 'other kind of reason', 'other kinds of reasons')})"
    return f"{escape(text, _MOST_REASON)}{more if len(kinds) > 1 else ''}"


def _table(
    content: ComparisonFile, results: Sequence[ComparisonResult], *, is_trusted: bool
) -> Iterator[Part]:
    """Give the table on which the verdicts rest, or, folded, the one of all other measures."""
    lines = tuple(
        _row(one, view_measure(each), with_where=len(results) > 1)
        for one in results
        for each in one.measures
        if each.is_trusted is is_trusted
    )
    if not lines:
        return
    where = ("Experiment",) if len(results) > 1 else ()
    head = _head(("", *where, "Measure", _sides(content, results), "Change", "Could see", "n"))
    if is_trusted:
        yield Part(opening=head, lines=lines, closing=f"\n<sub>{_tell_legend(results)}</sub>")
    else:
        title = f"Other measures ({len(lines)}), on which the verdict does not rest"
        yield _fold(title, lines, head=head)


def _tell_legend(results: Sequence[ComparisonResult]) -> str:
    trusted = [each for one in results for each in one.measures if each.is_trusted]
    sure = {plain_percent(each.effect.confidence) for each in trusted if each.effect}
    which = f"{sure.pop()} " if len(sure) == 1 else ""
    return (
        f"↑ higher is better, ↓ lower is better · in brackets: the {which}interval of the change · "
        "could see: the smallest change that so many trials show · n: trials used of each side"
    )


def _sides(content: ComparisonFile, results: Sequence[ComparisonResult]) -> str:
    if content.head is None and len(results) > 1:
        return "before → after"
    sides = (side_words(content, results[0], "baseline"), side_words(content, results[0], "candidate"))
    return " → ".join(escape(side, _MOST_NAME) for side in sides)


def _row(result: ComparisonResult, row: MeasureRow, *, with_where: bool) -> str:
    return _cells(
        (
            _verdict(row.result.outcome),
            *((code(result.experiment, _MOST_NAME),) if with_where else ()),
            f"{escape(row.title, _MOST_NAME)} {row.better}".rstrip(),
            row.levels,
            f"**{row.change}** ({row.interval})",
            row.detectable,
            row.trials,
        )
    )


def _verdict(outcome: Outcome) -> str:
    return f"{_MARKS[outcome]}{NO_BREAK}{outcome.capitalize()}"


def _head(cells: Sequence[str]) -> str:
    return f"{_cells(cells)}\n{_cells('---' for _ in cells)}"


def _cells(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _attributions(content: ComparisonFile) -> Iterator[Part]:
    """Say what each setting does, with the others in place."""
    lines = []
    for one in content.attributions:
        rows = [view_measure(each) for each in one.comparison.measures if each.is_trusted]
        told = "; ".join(
            f"{escape(row.title, _MOST_NAME)} **{row.change}** ({row.interval})" for row in rows
        )
        lines.append(
            _cells(
                (
                    _verdict(one.comparison.outcome),
                    code(knob_words(one.knob), _MOST_REASON),
                    told or escape(one.comparison.reason, _MOST_REASON),
                )
            )
        )
    if lines:
        head = _head(("", "Setting, the others in place", "What it does"))
        yield Part(opening=f"**Which setting does it**\n\n{head}", lines=tuple(lines))


def _settings(content: ComparisonFile) -> Iterator[Part]:
    """List the settings that differ, folded, each set of them with the experiments that it touches."""
    groups: dict[tuple[Knob, ...], list[str]] = {}
    for one in content.changes:
        if one.knobs:
            groups.setdefault(one.knobs, []).append(one.experiment)
    lines = []
    for knobs, experiments in groups.items():
        names = ", ".join(code(name, _MOST_NAME) for name in experiments[:_MOST_TOUCHED])
        more = len(experiments) - _MOST_TOUCHED
        lines.append(f"- {names}{f' and {more} more' if more > 0 else ''}")
        lines += [f"  - {code(knob_words(knob), _MOST_REASON)}" for knob in knobs]
    knobs_listed = sum(map(len, groups))
    if lines and (knobs_listed > 1 or len(content.changes) != len(content.comparisons)):
        yield _fold(f"Changed settings ({knobs_listed})", lines)


def _reproduce(results: Sequence[ComparisonResult]) -> Iterator[Part]:
    """Give the commands that measure the same again, and the hashes that make it the same."""
    commands = dict.fromkeys(clean(one.command, _MOST_COMMAND) for one in results if one.command)
    lines = [block("\n".join(commands)), ""] if commands else []
    sides = dict.fromkeys(side for one in results for side in (one.baseline, one.candidate))
    lines += [f"- {escape(side.label, _MOST_NAME)}: {_tell_side(side)}" for side in sides]
    if lines:
        yield _fold("How to measure it again", lines)


def _tell_side(side: SideRecord) -> str:
    files = (side.config, side.topology, side.testbed, side.workload)
    told = [code(side.version, _MOST_NAME), *(code(named(one), _MOST_NAME) for one in files)]
    if side.artifact_sha256:
        told.append(f"artifact {code(side.artifact_sha256, _MOST_NAME)}")
    return ", ".join(told)


def _records(results: Sequence[ComparisonResult]) -> Iterator[Part]:
    """Say of each comparison how long it took and why it ended."""
    lines = [
        f"- {_verdict(one.outcome)} {code(one.experiment, _MOST_NAME)} ({code(one.id, _MOST_NAME)}): "
        f"{escape(sentence(one.reason), _MOST_REASON)} {escape(sentence(one.ended), _MOST_REASON)} "
        f"{_tell_trials((one,))}, seed {one.seed}, question "
        f"{code(one.question_sha256, _SHORT_SHA)}."
        for one in results
    ]
    if lines:
        yield _fold("Why it ended", lines)


def _tell_trials(results: Sequence[ComparisonResult]) -> str:
    trials = [each for one in results for each in one.trials]
    return f"{count(len(trials), 'trial')} in {length_words(sum(one.duration_s for one in trials))}"


def _fold(title: str, lines: Sequence[str], *, head: str = "") -> Part:
    opening = f"<details>\n<summary>{escape_html(title)}</summary>\n"
    return Part(
        opening=f"{opening}\n{head}" if head else opening, lines=tuple(lines), closing="\n</details>"
    )


def _tell_end(content: ComparisonFile, site_url: str) -> str:
    told = []
    if content.comparisons and urlsplit(site_url).scheme in {"http", "https"}:
        told.append(_tell_pages(content.comparisons, site_url))
    if content.base and content.head:
        sides = (("base", content.base), ("head", content.head))
        told.append(" → ".join(f"{name} {code(one.sha[:_SHORT_SHA])}" for name, one in sides))
    if content.comparisons:
        alone = (one.comparison for one in content.attributions)
        told.append(_tell_trials((*content.comparisons, *alone)))
    told.append(f"Knickpoint {escape(content.knickpoint, _MOST_NAME)}")
    caveats = dict.fromkeys(one.caveat for one in content.comparisons if one.caveat)
    told += [escape(one, _MOST_REASON) for one in list(caveats)[:_MOST_LISTED]]
    return f"<sub>{' · '.join(told)}</sub>"


def _tell_pages(results: Sequence[ComparisonResult], site_url: str) -> str:
    """Link the pages of the comparisons, by name where there are several; of many, the first ones."""
    pages = [_link(f"{site_url.rstrip('/')}/{comparison_page(one.id)}") for one in results]
    if len(pages) == 1:
        return f"[Every trial, with charts]({pages[0]})"
    named_pages = zip(results[:_MOST_LISTED], pages, strict=False)
    told = ", ".join(f"[{escape(one.experiment, _MOST_NAME)}]({page})" for one, page in named_pages)
    more = len(pages) - _MOST_LISTED
    return f"Every trial, with charts: {told}{f' and {more} more' if more > 0 else ''}"


def _link(url: str) -> str:
    return escape_html(quote(url, safe=":/?#@!$&'*+,;=%~-._"))
