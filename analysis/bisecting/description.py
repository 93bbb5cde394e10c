"""A bisection as lines of text: the answer first, then each probe and what it taught. Pure."""

from collections.abc import Iterator

from analysis.bisecting.bisection import Chance, Culprit, Ending, Inconclusive
from analysis.bisecting.probing import Probed, ReleaseStatus
from analysis.bisecting.record import BisectionRecord, ProbeRecord
from analysis.bisecting.words import say_chance, say_effect
from analysis.comparing.blocks import measure
from analysis.detection import words
from analysis.detection.effects import Effect
from perf.model.metrics import METRICS, Better
from perf.model.shown import format_duration

_BAR = 24
"""Characters of a probability of one."""
_WORTH_SAYING = 0.005
"""A smaller probability is shown as none."""


def describe_bisection(record: BisectionRecord) -> Iterator[str]:
    """Describe what came of it."""
    yield answer(record)
    yield ""
    for remark in record.remarks:
        yield f"Remark: {remark}"
    if record.caveat:
        yield record.caveat
    yield (
        f"Asked: {measure(record.measure)} of {record.experiment} (suite {record.suite}),"
        f" {record.system} {record.good.version} to {record.bad.version},"
        f" {words.counted(len(record.releases), 'release', 'releases')}"
    )
    yield f"Probes, in order, each interleaved with {record.good.version} on the same hosts:"
    for number, probe in enumerate(record.probes, start=1):
        yield f"  {number}. {probe.probed.release.version}: {figures(probe, record)}"
        yield f"     why: {probe.asked}"
        yield f"     taught: {lesson(probe, record)}"
    if chances := chances_of(record):
        yield "Probability that the change came with"
        yield from _describe_chances(chances, rest_of(record))
    yield f"Cost: {cost(record)}"
    yield f"Saved as bisection {record.id}"


def answer(record: BisectionRecord) -> str:
    """Return the answer in one sentence; of one that is not over, that it is not."""
    if record.found is None:
        done = words.counted(len(record.probes), "probe is", "probes are")
        return f"Not over yet: {done} done. The same command goes on, and what was measured counts."
    said = record.found.sentence
    return f"{said[:1].upper()}{said[1:]}"


def is_regression(record: BisectionRecord) -> bool:
    """Return whether the measure became worse: by one release, or by what cannot be put down to one."""
    if isinstance(record.found, Culprit):
        return not record.found.is_improvement
    if record.found is None or record.found.ending not in (Ending.SEVERAL, Ending.GRADUAL):
        return False
    *_, end = (one.probed for one in record.probes if one.probed.release == record.bad)
    is_more = end.effect is not None and end.effect.relative_change > 0
    return is_more != (METRICS[record.measure.metric].better is Better.HIGHER)


def is_inconclusive(record: BisectionRecord) -> bool:
    """Return whether the question is still open; that nothing changed is an answer."""
    if isinstance(record.found, Culprit):
        return False
    return record.found is None or record.found.ending is not Ending.NOTHING_CHANGED


def chances_of(record: BisectionRecord) -> tuple[Chance, ...]:
    """Return how probable each release is, as far as it is known."""
    return record.found.chances if record.found else ()


def rest_of(record: BisectionRecord) -> float | None:
    """Give how probable it is that no single release brought it; None where that is next to nothing."""
    chances = chances_of(record)
    rest = 1 - sum(one.probability for one in chances)
    return rest if chances and rest > _WORTH_SAYING else None


def figures(probe: ProbeRecord, record: BisectionRecord) -> str:
    """Describe what was measured of a release against the known good end."""
    if probe.probed.effect is None or probe.before is None or probe.after is None:
        return f"no figures, {words.counted(len(probe.trials), 'trial', 'trials')}"
    unit = METRICS[record.measure.metric].unit
    moved = f"{words.value(probe.before)} → {words.value(probe.after)} {unit}"
    return (
        f"{say_effect(probe.probed.effect)}, {moved},"
        f" {words.counted(len(probe.trials), 'trial', 'trials')}{_known(probe)}"
    )


def _known(probe: ProbeRecord) -> str:
    known = len(probe.trials) - len(probe.measured)
    return f" ({known} of them measured before)" if known else ""


def lesson(probe: ProbeRecord, record: BisectionRecord) -> str:
    """Describe what a probe taught, in one sentence."""
    version, lower, upper = probe.probed.release.version, probe.lower, probe.upper
    if probe.standing is None and probe.probed.effect:
        return _lesson_of_ends(probe.probed, probe.probed.effect, record)
    return {
        ReleaseStatus.GOOD: f"{version} is like {lower}, so the change came after it",
        ReleaseStatus.BAD: f"{version} is like {upper}, so the change came with it or before it",
        ReleaseStatus.BETWEEN: f"{version} is unlike both {lower} and {upper}: "
        "it was not one single change",
        ReleaseStatus.OPPOSITE: f"{version} differs from {lower} in the other direction "
        f"than {upper} does",
        ReleaseStatus.UNDECIDED: "too few trials to say"
        if not lower
        else f"these trials cannot tell whether {version} is like {lower} or like {upper}",
        ReleaseStatus.SKIPPED: f"{version} cannot be measured and is skipped:"
        f" {first_line(probe.probed.reason)}",
    }[probe.standing or ReleaseStatus.UNDECIDED]


def _lesson_of_ends(end: Probed, effect: Effect, record: BisectionRecord) -> str:
    good, bad = record.good.version, record.bad.version
    if end.is_same:
        within = words.percent(end.relevant_change)
        return f"{bad} is like {good} to within ±{within}: there is nothing to look for"
    if effect.low <= 0 <= effect.high:
        widest = words.percent(max(abs(effect.low), abs(effect.high)))
        return f"no difference of {bad} from {good} is shown, but one of up to {widest} may hide"
    return f"{bad} does differ from {good}; the other probes are read by how much"


def first_line(text: str) -> str:
    """Return the first line of a text that may go on with a log."""
    return next(iter(text.splitlines()), "")


def cost(record: BisectionRecord) -> str:
    """Describe what it took, what was allowed, and what an end would take."""
    reused = f", {record.reused} more had been measured before" if record.reused else ""
    spent = (
        f"{words.counted(len(record.measured), 'trial', 'trials')} measured"
        f" in {format_duration(record.minutes * 60)}{reused};"
        f" allowed were {record.most_trials} trials and {format_duration(record.most_minutes * 60)}"
    )
    more = record.found.cost_to_finish if isinstance(record.found, Inconclusive) else None
    if more is None:
        return spent
    each_s = record.minutes * 60 / len(record.measured) if record.measured else 0.0
    time = f", {format_duration(more * each_s)}" if each_s else ""
    return f"{spent}; to finish it, about {words.counted(more, 'more trial', 'more trials')}{time}"


def _describe_chances(chances: tuple[Chance, ...], rest: float | None) -> Iterator[str]:
    width = max(len(one.release.version) for one in chances)
    for one in chances:
        bar = "█" * round(one.probability * _BAR)
        yield f"  {one.release.version:<{width}}  {say_chance(one.probability):>10}  {bar}".rstrip()
    if rest is not None:
        yield f"  {say_chance(rest)} that it was no single release"
