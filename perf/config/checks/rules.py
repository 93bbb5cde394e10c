"""What the schemas of detection.yaml and triage.yaml cannot see: rules that contradict each other.

Among them decisions that never end, or are about no change at all.

Systems, lines and releases are not held against what is known here: an entry may be about imported
results, or about a release that is still to come. `knickpoint triage list` tells which cover nothing.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import get_args

from perf.config.checks.files import find_repeated
from perf.local.problems import Place, suggest
from perf.model.metrics import DIAGNOSTICS, METRICS
from perf.model.rules import Detection, Triage, TriageEntry, TriageState, is_like
from perf.model.scalars import Statistic


def _check_trusted(at: Place, detection: Detection) -> Iterator[str]:
    """Find what a verdict is to rest on, but is not judged at all."""
    for load, metrics in detection.comparison.trusted.items():
        for metric, statistics in metrics.items():
            place = at / load / metric
            if metric not in METRICS:
                yield place.problem(f"{at / load}: {metric} is no metric; {suggest(metric, METRICS)}")
            # A metric that is not under judged at all is reported there.
            for statistic in statistics:
                if statistic not in detection.judged.get(metric, (statistic,)):
                    yield place.problem(
                        f"{at / load}: {statistic} of {metric} is not judged; "
                        "name it under judged as well, or trust one that is there"
                    )


def check_detection(at: Place, detection: Detection) -> Iterator[str]:
    """Insist on one entry for each metric in each table, on no other, and on weaker first evidence."""
    for first, final in (
        ("provisional_p_value", "max_p_value"),
        ("provisional_rank_p_value", "max_rank_p_value"),
    ):
        early, late = getattr(detection, first), getattr(detection, final)
        if early < late:
            yield (at / first).say(
                f"but {final} is {late:g}; a change is provisional before it is confirmed, so make "
                "this one at least as large"
            )
    yield from _check_trusted(at / "comparison" / "trusted", detection)
    for name, table, entry in (
        ("judged", detection.judged, "a list of statistics"),
        ("relevant_change", detection.relevant_change, "a share"),
    ):
        for metric in table:
            if metric in DIAGNOSTICS:
                fault = "explains results and is not judged; remove it"
                yield (at / name / metric).problem(f"{name}.{metric} {fault}")
            elif metric not in METRICS:
                fault = f"is no metric; {suggest(metric, METRICS)}"
                yield (at / name / metric).problem(f"{name}.{metric} {fault}")
        for metric in METRICS:
            if metric not in table:
                yield (at / name).problem(f"the key {name}.{metric} is missing; add it, as {entry}")


_ENDING = (TriageState.ACKNOWLEDGED, TriageState.IGNORED)
_PROSE = ("name", "state", "owner", "note", "expires", "fixed_in")


def check_triage(at: Place, triage: Triage) -> Iterator[str]:
    """Find entries that contradict themselves or each other, or that can never cover a change."""
    entries = triage.entries
    yield from find_repeated(at / "entries", entries)
    first_about: dict[tuple[object, ...], int] = {}
    for index, entry in enumerate(entries):
        here = at / "entries" / index
        first = first_about.setdefault(_about(entry), index)
        if first != index:
            same = at / "entries" / first
            yield here.fault(f"is about the same changes as {same}; keep one of them")
        for key, fault in find_faults(entry):
            yield (here / key).fault(fault)
        known: tuple[tuple[str, Collection[str]], ...] = (
            ("metric", METRICS),
            ("statistic", get_args(Statistic)),
        )
        for key, words in known:
            pattern = getattr(entry, key)
            if not any(is_like(word, pattern) for word in words):
                yield (here / key).say(f"which fits no {key}; {suggest(pattern, words)}")


def check_new(known: Sequence[TriageEntry], entries: Sequence[TriageEntry]) -> Iterator[str]:
    """Find what keeps entries from being added to known ones."""
    for entry in entries:
        for other in known:
            if entry.name == other.name:
                yield f"there is an entry {entry.name!r} already; change it by hand, or remove it first"
            elif _about(entry) == _about(other):
                yield (
                    f"the entry {other.name!r} is about the same changes as {entry.name!r} would be; "
                    "change it by hand, or remove it first"
                )
        for key, fault in find_faults(entry):
            yield f"{key} of the entry {entry.name!r} {fault}"


def find_faults(entry: TriageEntry) -> Iterator[tuple[str, str]]:
    """Find what contradicts an entry's state or place: the key, and what is wrong with it."""
    if entry.state in _ENDING and entry.expires is None:
        why = f"is missing, and what is {entry.state} must come up again"
        yield "expires", f'{why}; add the last day on which the entry holds, such as "2027-01-31"'
    is_fixed = entry.state is TriageState.FIXED
    if is_fixed and entry.fixed_in is None:
        yield "fixed_in", 'is missing; add the first release with the fix, for example "5.0.10"'
    if not is_fixed and entry.fixed_in is not None:
        yield "fixed_in", f"belongs to the state fixed, but state is {entry.state}; remove one of them"
    if entry.fixed_in is not None and entry.fixed_in in {entry.from_release, entry.to_release}:
        yield "fixed_in", "is the release of the change itself; write the first one without it"
    ends = (entry.from_release, entry.to_release, entry.from_night, entry.to_night)
    if not any(ends):
        why = "is missing, and so is every other part of a place"
        yield "from_release", f"{why}; add it with to_release, or from_night and to_night"
    if entry.from_night and entry.to_night and entry.from_night > entry.to_night:
        yield "to_night", f"is before from_night, {entry.from_night}; write the earlier night first"


def _about(entry: TriageEntry) -> tuple[object, ...]:
    """Return what decides which changes an entry covers."""
    return tuple(getattr(entry, key) for key in entry.__slots__ if key not in _PROSE)
