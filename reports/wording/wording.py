"""Words and numbers for people: the one place where a value becomes text."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from analysis.detection import words
from analysis.detection.detection import ChangeState
from analysis.detection.verdict import Outcome
from analysis.judging.incidents import Cause
from perf.model import night_names, series_names
from perf.model.metrics import DIAGNOSTICS, METRICS, Better
from perf.model.results import Named, StepOutcome, TrialStatus
from perf.model.rules import TriageEntry

NOTHING = "–"
STATISTICS = ("mean", "p50", "p90", "p95", "p99", "p99.5", "p99.9", "max", "last")
"""In the order in which tables show them."""
_NO_BREAK = "\N{NO-BREAK SPACE}"
_FORMS = ((100, ",.0f"), (10, ".1f"), (1, ".2f"))
"""How numbers from a size up are written: three significant digits, from 1,000 up whole."""
_MOST_DECIMALS = 12
_SIGNIFICANT_DIGITS = 3
_SMALLEST_PERCENT = 0.05
_SMALLEST_SHARE = 1e-5
_MOST_LINES = 4
_PERCENT = re.compile(r"(?<=\d) ?%(?!\w)")
"""A percentage without its space, or with one that a line may break at; in a link %20 is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """A state shown three ways: a kind for colour, a symbol, and a word. Never by colour alone."""

    kind: str
    symbol: str
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A point in time: ISO 8601 for machines, text for people; `day` is its date alone."""

    iso: str
    text: str
    day: str


OUTCOME_BADGES = {
    Outcome.REGRESSED: Badge(kind="bad", symbol="✕", word="Regressed"),
    Outcome.IMPROVED: Badge(kind="good", symbol="✓", word="Improved"),
    Outcome.UNCHANGED: Badge(kind="calm", symbol="=", word="Unchanged"),
    Outcome.UNDECIDED: Badge(kind="unsure", symbol="?", word="Undecided"),
    Outcome.INVALID: Badge(kind="bad", symbol="!", word="Invalid"),
}
STATUS_BADGES = {
    TrialStatus.COMPLETED: Badge(kind="calm", symbol="●", word="Completed"),
    TrialStatus.INVALID: Badge(kind="unsure", symbol="!", word="Invalid"),
    TrialStatus.FAILED: Badge(kind="bad", symbol="✕", word="Failed"),
}
STATE_BADGES = {
    ChangeState.CONFIRMED: Badge(kind="calm", symbol="●", word="Confirmed"),
    ChangeState.PROVISIONAL: Badge(kind="unsure", symbol="?", word="Suspected"),
}
STEP_BADGES = {
    StepOutcome.HELD: Badge(kind="good", symbol="✓", word="Held"),
    StepOutcome.MISSED: Badge(kind="bad", symbol="✕", word="Missed"),
    StepOutcome.CLIENT_LIMITED: Badge(kind="unsure", symbol="?", word="Client-limited"),
}
VOID_BADGE = Badge(kind="bad", symbol="!", word="In no series")
STALE_BADGE = Badge(kind="unsure", symbol="…", word="Stale")
MISSING_BADGE = Badge(kind="bad", symbol="…", word="Missing")
LEFT_OUT_BADGE = Badge(kind="bad", symbol="!", word="Left out")
WATCH_BADGE = Badge(kind="calm", symbol="◉", word="Watches the testbed")
SHORT_BADGE = Badge(kind="unsure", symbol="?", word="Too few points")
STILL_BADGE = Badge(kind="calm", symbol="=", word="No step")
MOVED_BADGE = Badge(kind="unsure", symbol="≠", word="A step")
BEGINS_BADGE = Badge(kind="calm", symbol="↦", word="Begins anew")
RETRACTED_BADGE = Badge(kind="faded", symbol="↶", word="Retracted")
DRIFT_BADGE = Badge(kind="unsure", symbol="↗", word="Drift, no step")
SCATTER_BADGE = Badge(kind="unsure", symbol="≈", word="Change of scatter")
FIXED_BADGE = Badge(kind="good", symbol="✓", word="Resolved")
OPEN_BADGE = Badge(kind="unsure", symbol="○", word="Still there")
EXPIRED_BADGE = Badge(kind="unsure", symbol="…", word="Triage expired")
CAUSE_BADGES = {
    Cause.DATABASE: Badge(kind="calm", symbol="◆", word="Database"),
    Cause.CONFIGURATION: Badge(kind="calm", symbol="◈", word="Configuration"),
    Cause.TESTBED: Badge(kind="unsure", symbol="⌂", word="Testbed"),
    Cause.UNKNOWN: Badge(kind="calm", symbol="?", word="Cause not known"),
}
EMPTY_BADGE = Badge(kind="unsure", symbol="?", word="Nothing measured yet")

_DIRECTIONS = {Better.HIGHER: "higher is better", Better.LOWER: "lower is better"}
_ARROWS = {Better.HIGHER: "↑", Better.LOWER: "↓"}
_KNOWN_METRICS = {**METRICS, **DIAGNOSTICS}
# Named on the terminal as on the pages.
phase_words = series_names.phase_words
metric_name = series_names.metric_name
metric_words = series_names.metric_words
series_words = series_names.series_words
night_name = night_names.night_name


def triage_badge(entry: TriageEntry) -> Badge:
    """Describe in one word what was decided about a change."""
    return Badge(kind="calm", symbol="✎", word=entry.state.value.capitalize())


def rank(name: str, known: Sequence[str]) -> int:
    """Return the place of a name in an order; what is not known comes last."""
    return known.index(name) if name in known else len(known)


def number(value: float) -> str:
    """Write a number with three significant digits, or as a whole number from 1,000 up."""
    if not math.isfinite(value):
        return "not a number"
    size = abs(value)
    # The common sizes come first, without a logarithm: a site has millions of numbers.
    for least, form in _FORMS:
        if size >= least:
            return format(value, form) if value > 0 else f"−{size:{form}}"
    if value == 0:
        return "0"
    decimals = _SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(size))
    if decimals > _MOST_DECIMALS:
        return f"{value:.1e}".replace("-", "−")
    return f"{value:,.{decimals}f}".replace("-", "−")


def quantity(value: float, metric: str) -> str:
    """Write a value with its metric's unit."""
    return f"{number(value)}{_NO_BREAK}{unit_words(metric)}".rstrip()


def percent(share: float) -> str:
    """Write a relative change with its sign; one decimal."""
    if math.isinf(share):
        return "from zero"
    value = share * 100
    if abs(value) < _SMALLEST_PERCENT:
        return f"±0.0{_NO_BREAK}%"
    return f"{'+' if value > 0 else '−'}{abs(value):,.1f}{_NO_BREAK}%"


def share(value: float) -> str:
    """Write a share as a percentage with three significant digits."""
    return f"{number(100 * value)}{_NO_BREAK}%"


def plain_percent(threshold: float) -> str:
    """Write a share as it was configured, without digits that nobody wrote: 5 %."""
    return words.percent(threshold).replace(" ", _NO_BREAK)


def at_least(share_of_level: float) -> str:
    """Write the smallest relative change that could be seen; without any noise, any."""
    if share_of_level < _SMALLEST_SHARE:
        return f"any{_NO_BREAK}change"
    return f"≥{_NO_BREAK}{share(share_of_level)}"


def times(before: float, after: float) -> str:
    """Write a ratio as a factor: ×2.10; from zero there is none."""
    return f"×{number(after / before)}" if before else "from zero"


def probability(p_value: float) -> str:
    """Write a p-value as the reasons of verdicts do."""
    return words.p_value(p_value)


def spread(values: Sequence[float]) -> str:
    """Write the range of a trial's iterations, and how many there are."""
    if not values:
        return NOTHING
    if len(values) == 1:
        return "1 iteration"
    return f"{number(min(values))} to {number(max(values))} in {len(values)} iterations"


def interval(low: float, high: float) -> str:
    """Write the ends of an interval in which a value lies."""
    return f"{number(low)} and {number(high)}"


def moment(when: datetime) -> Moment:
    """Write a time in UTC to the minute."""
    utc = when.astimezone(UTC)
    iso = utc.isoformat(timespec="seconds")
    day, minute = iso[:10], iso[11:16]
    return Moment(iso=iso, text=f"{day} {minute} UTC", day=day)


def duration(length: timedelta) -> str:
    """Write a length of time in its largest fitting unit, rounded down so that age never flatters."""
    seconds = max(0, int(length.total_seconds()))
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * size:
            return count(seconds // size, unit)
    return count(seconds, "second")


def count(how_many: int, noun: str, plural: str = "") -> str:
    """Write a count with its noun: 1 trial, 2 trials."""
    return f"{how_many:,} {noun if how_many == 1 else plural or noun + 's'}"


def size(length: int) -> str:
    """Write a file size in bytes, kB or MB (powers of ten)."""
    for unit, factor in (("MB", 1_000_000), ("kB", 1_000)):
        if length >= factor:
            return f"{length / factor:.1f} {unit}"
    return count(length, "byte")


def space_percent(text: str) -> str:
    """Write each percentage of a recorded text as all others are written: 25 %, never broken."""
    return _PERCENT.sub(f"{_NO_BREAK}%", text)


def first_sentence(text: str) -> str:
    """Return the first sentence, or the first line, of a reason."""
    line = text.strip().splitlines()[0] if text.strip() else "no reason was recorded"
    head, dot, _ = space_percent(line).partition(". ")
    return head + dot.strip()


def one_sentence(text: str) -> str:
    """Put an error's text of several lines into one sentence; of many lines, leave out the middle.

    It begins as it did: with a name, whose case counts.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > _MOST_LINES:
        # The first two are a heading and a problem, the last may say what to do.
        lines[2:-1] = [count(len(lines) - 3, "more problem")]
    joined = space_percent("; ".join(lines).replace(":; ", ": "))
    return joined if not joined or joined.endswith((".", "!", "?")) else f"{joined}."


def named(file: Named) -> str:
    """Write a configuration file as name@hash."""
    return f"{file.name}@{file.sha256}"


def unit_words(metric: str) -> str:
    """Return the unit of a metric; none for a metric that this version does not know."""
    return _KNOWN_METRICS[metric].unit if metric in _KNOWN_METRICS else ""


def direction_words(metric: str) -> str:
    """Describe which direction of a metric is good news."""
    known = _KNOWN_METRICS.get(metric)
    return _DIRECTIONS[known.better] if known else "which direction is better is not known"


def direction_arrow(metric: str) -> str:
    """Return an arrow in the direction of good news; its text is `direction_words`."""
    known = _KNOWN_METRICS.get(metric)
    return _ARROWS[known.better] if known else ""


def definition_words(metric: str) -> str:
    """Describe what a metric measures."""
    known = _KNOWN_METRICS.get(metric)
    return known.description if known else "this version of Knickpoint does not know the metric"


def night_words(night: str) -> str:
    """Name a night; extra trials belong to none."""
    return f"night {night_name(night)}" if night else "no night (measured on request)"


def heading(text: str) -> str:
    """Begin with a capital, except for names such as p99."""
    return text if text[1:2].isdigit() else text[:1].upper() + text[1:]


def sentence(text: str) -> str:
    """Begin with a capital and end with a full stop."""
    text = space_percent(text.strip())
    end = "" if text.endswith((".", "!", "?")) else "."
    return heading(text) + end


def caveat_words(testbed: str, caveats: Mapping[str, str]) -> str:
    """Say what a reader must know of a testbed's numbers; `caveats` has an entry for each known one.

    Of a testbed that the configuration does not know (any more), nothing can be vouched for.
    """
    return caveats.get(
        testbed,
        f"The configuration that these pages were made with has no testbed {testbed}, so what is "
        "special about its hosts is not known here: compare these numbers only with themselves.",
    )


def join_caveats(testbeds: Iterable[str], caveats: Mapping[str, str]) -> str:
    """Describe what must be known of all testbeds that numbers come from, each sentence once."""
    found = dict.fromkeys(caveat_words(testbed, caveats) for testbed in sorted(testbeds))
    return " ".join(caveat for caveat in found if caveat)
