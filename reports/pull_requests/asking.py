"""What a comment on a pull request asks of us: `/knickpoint …`, read as hostile text. Pure.

Whoever may comment may write anything. So a word either has the one shape that its place takes, and
goes on as it is, or nothing is asked. Shapes are those of names, versions and numbers in configs/:
nothing that a shell, a URL or a workflow's expression would obey.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from reports.wording.markdown import code, escape

CANDIDATE: Literal["candidate.yml"] = "candidate.yml"
BISECT: Literal["bisect.yml"] = "bisect.yml"
MOST_MINUTES = 1440
_WORD, _ATTRIBUTE = "/knickpoint", "--attribute"
_MOST_LINE = 300
_MOST_SHOWN = 80
_NAME = re.compile(r"(?=.{1,60}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_VERSION = r"(?=[^-][0-9A-Za-z.-]{0,39}(?:\Z|\.\.))[0-9]+(?:\.[0-9A-Za-z]+)*(?:-[0-9A-Za-z]+)*"
_SPAN = re.compile(rf"{_VERSION}\.\.{_VERSION}")
_INCIDENT = re.compile(r"[0-9a-f]{8}")
_METRIC = re.compile(r"(?=.{1,100}\Z)[a-z0-9_.-]+(?:/[a-z0-9_.-]+){0,3}")
_MINUTES = re.compile(r"[1-9][0-9]{0,3}")

USAGE = """\
/knickpoint measure [--suite SUITE] [--minutes N] [--attribute]
/knickpoint bisect INCIDENT [--suite SUITE] [--minutes N]
/knickpoint bisect SYSTEM FIRST..LAST --experiment EXPERIMENT --metric METRIC [--suite …] [--minutes …]
/knickpoint help"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most minutes of trials that a comment may ask for, and what it gets if it names none."""

    measure: int
    bisect: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A workflow to start, with the inputs that the comment names; `what` tells it in our words."""

    workflow: Literal["candidate.yml", "bisect.yml"]
    inputs: Mapping[str, str]
    what: str


@dataclass(frozen=True, slots=True)
class Help:
    """The usage is asked for."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """What was written is no command of ours; `why` is Markdown, and safe to show."""

    why: str


Asked: TypeAlias = Start | Help | Mistake


class _Wrong(Exception):  # noqa: N818  ends the reading of one comment; carries Markdown
    pass


def read_asked(body: str, limits: Limits) -> Asked | None:
    """Read the first line of a comment; None if it is not meant for us."""
    line = re.split(r"[\r\n]", body, maxsplit=1)[0]
    words = line[: _MOST_LINE + 1].split()
    if not words or words[0] != _WORD or not line.startswith(_WORD):
        return None
    if len(line) > _MOST_LINE:
        return Mistake(f"a command has at most {_MOST_LINE} characters")
    try:
        return _read(words[1:], limits)
    except _Wrong as wrong:
        return Mistake(str(wrong))


def _read(words: Sequence[str], limits: Limits) -> Asked:
    match words:
        case [] | ["help"]:
            return Help()
        case ["measure", *rest]:
            return _read_measure(rest, limits.measure)
        case ["bisect", *rest]:
            return _read_bisect(rest, limits.bisect)
        case _:
            raise _Wrong(f"{_show(words[0])} is none of measure, bisect and help")


def _read_measure(words: Sequence[str], most_minutes: int) -> Start:
    given = [word for word in words if word != _ATTRIBUTE]
    plain, options = _take_options(given, {"--suite": _take_name, "--minutes": _take_minutes})
    if plain:
        raise _Wrong(f"measure takes options only, and {_show(plain[0])} is none")
    suite, minutes = options.get("--suite", ""), _find_minutes(options, most_minutes)
    which = f"suite {suite}" if suite else "all suites"
    attribute = "true" if _ATTRIBUTE in words else ""
    return Start(
        workflow=CANDIDATE,
        inputs={"minutes": minutes, **_given({"suite": suite, "attribute": attribute})},
        what=f"measuring what this changes in {which}, at most {minutes} minutes of trials",
    )


def _read_bisect(words: Sequence[str], most_minutes: int) -> Start:
    plain, options = _take_options(
        words,
        {
            "--suite": _take_name,
            "--minutes": _take_minutes,
            "--experiment": _take_name,
            "--metric": _take_metric,
        },
    )
    minutes = _find_minutes(options, most_minutes)
    shared = {"minutes": minutes, **_given({"suite": options.get("--suite", "")})}
    experiment, metric = options.get("--experiment", ""), options.get("--metric", "")
    match plain:
        case [incident] if not experiment and not metric:
            if not _INCIDENT.fullmatch(incident):
                why = "is no incident: eight hex digits, as the report names it"
                raise _Wrong(f"{_show(incident)} {why}")
            inputs = {"incident": incident}
            what = f"looking for the release that brought incident {incident}"
        case [name, text] if experiment and metric:
            system, span = _take_name("SYSTEM", name), _take_span(text)
            inputs = {"system": system, "span": span, "experiment": experiment, "metric": metric}
            what = f"looking for the release of {system} in {span} that brought a change"
        case _:
            raise _Wrong(
                "bisect takes an incident, or SYSTEM FIRST..LAST with --experiment and --metric"
            )
    return Start(
        workflow=BISECT,
        inputs={**inputs, **shared},
        what=f"{what}, at most {minutes} minutes of trials",
    )


def _find_minutes(options: Mapping[str, str], most: int) -> str:
    minutes = options.get("--minutes", f"{most}")
    if int(minutes) > most:
        raise _Wrong(f"a comment may ask for at most {most} minutes of this")
    return minutes


def _take_options(
    words: Sequence[str], known: Mapping[str, Callable[[str, str], str]]
) -> tuple[list[str], dict[str, str]]:
    """Part plain words from options, each with what takes its value."""
    plain: list[str] = []
    options: dict[str, str] = {}
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if not word.startswith("-"):
            plain.append(word)
            continue
        name, equals, value = word.partition("=")
        if name not in known:
            raise _Wrong(f"{_show(name)} is no option here: {', '.join(sorted(known))}")
        if name in options:
            raise _Wrong(f"{name} is given twice")
        if not equals:
            value = waiting.pop(0) if waiting else ""
        options[name] = known[name](name, value)
    return plain, options


def _take_name(place: str, text: str) -> str:
    if not _NAME.fullmatch(text):
        raise _Wrong(f"{place} {_show(text)} is no name: lower-case letters, digits, single hyphens")
    return text


def _take_metric(place: str, text: str) -> str:
    if not _METRIC.fullmatch(text):
        raise _Wrong(f"{place} {_show(text)} is not METRIC, METRIC/STATISTIC or PHASE/OPERATION/…")
    return text


def _take_minutes(place: str, text: str) -> str:
    if not _MINUTES.fullmatch(text) or int(text) > MOST_MINUTES:
        raise _Wrong(f"{place} {_show(text)} is no whole number from 1 to {MOST_MINUTES}")
    return text


def _take_span(text: str) -> str:
    if not _SPAN.fullmatch(text):
        raise _Wrong(f"{_show(text)} is no range of releases: FIRST..LAST, such as 5.0.2..5.0.9")
    return text


def _given(wanted: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in wanted.items() if value}


def _show(text: str) -> str:
    return code(text, _MOST_SHOWN) or "nothing"


def say_refused(login: str) -> str:
    """Say politely that somebody may not start anything here; no mention, so nobody is called."""
    return (
        f"Sorry, {escape(login, _MOST_SHOWN)}: what `/knickpoint` starts runs on our own hosts, so only"
        " people who may write to this repository can start it. One of them can write the command here."
    )


def say_usage(why: str = "") -> str:
    """Write the usage, after what is wrong if anything is; `why` is Markdown that is safe to show."""
    head = f"Nothing was started: {why}.\n\n" if why else ""
    return f"{head}On a pull request, in the first line of a new comment:\n\n```text\n{USAGE}\n```"


def say_started(start: Start, runs_url: str, run_url: str) -> str:
    """Describe what was started, for how long, and where to see it."""
    where = f"[this run]({run_url})" if run_url else f"[the runs of {start.workflow}]({runs_url})"
    reported = "in a comment here" if start.workflow == CANDIDATE else "in the summary of the run"
    return (
        f"Started: {start.what}. It waits until the hosts are free. See {where}; the result is written"
        f" {reported}."
    )


def say_unsure(start: Start, runs_url: str) -> str:
    """State that nobody knows whether it was started."""
    return (
        f"GitHub did not say whether it started {start.what}. Look at [the runs of {start.workflow}]"
        f"({runs_url}); if none is there, write the command again in a new comment."
    )


def say_failed(start: Start, why: str) -> str:
    """State that it could not be started, and why, in words that others may have written."""
    return (
        f"This could not be started: {start.what}. {escape(why, 500)}. The command can be written again"
        " in a new comment."
    )
