"""Which experiments of two configurations measure something different, and by which knobs. Pure.

What counts is the resolved content of an experiment: system, topology, testbed, workload and config by
their content hash. A comment, a rename, another order of keys or another list of releases changes
nothing; an edit of a shared file touches every experiment that uses it.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pydantic import JsonValue

from perf.config.catalog import Catalog
from perf.config.revisions import TO_DO
from perf.local.document import dotted
from perf.local.problems import suggest
from perf.model.design import Deployment, SystemConfig, Testbed, Topology, Workload
from perf.model.errors import UsageError
from perf.model.identity import canonical, content_hash

MOST_TOUCHED = 500
"""Experiments: what the file of comparisons lists. An edit of all that is shipped touches 154."""
_MOST_NAMED = 20
"""Keys that a reason lists; a file that is new in all may differ in thousands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """One setting with another value at head: its file below configs/, and the way to it inside.

    `before` and `after` are JSON; empty where it is not set.
    """

    file: str
    steps: tuple[str, ...]
    before: str
    after: str

    @property
    def path(self) -> str:
        """Write it as people do: systems/cassandra/default: settings.concurrent_writes."""
        return f"{self.file}: {dotted(self.steps)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """An experiment that differs, named as at head; one that was removed, as at base.

    `why_not` says why it cannot be measured side by side; it is empty where it can, and then both
    deployments are there.
    """

    suite: str
    experiment: str
    knobs: tuple[Knob, ...] = ()
    why_not: str = ""
    base: Deployment | None = None
    head: Deployment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDifference:
    """What differs between two configurations, out of `total` experiments at head.

    `notes` are sentences about differences that change nothing in how anything is measured.
    """

    touched: tuple[Touched, ...]
    total: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Resolved:
    suite: str
    deployment: Deployment
    content: str
    surroundings: tuple[str, ...]
    workload_file: str

    @property
    def name(self) -> tuple[str, str]:
        return self.suite, self.deployment.experiment.name


_Part: TypeAlias = SystemConfig | Testbed | Topology | Workload
_Value: TypeAlias = Any
"""A JSON value, or `_ABSENT`."""
_ABSENT = object()


def compare_catalogs(
    base: Catalog, head: Catalog, *, testbed: str, suites: Collection[str] = ()
) -> ConfigDifference:
    """Find what differs in these suites, by default in all; only what runs on `testbed` is measurable.

    An experiment is compared with the one of its name in the same suite at base; else, if base has
    its very content anywhere, it was renamed; else with one that is gone at head and differs in nothing
    but its config.

    Raises:
        UsageError: neither configuration has a suite of that name, head has no such testbed, or too
            many experiments differ.

    """
    for name in suites:
        if name not in head.suites and name not in base.suites:
            raise UsageError(f"there is no suite {name!r}; {suggest(name, head.suites)}")
    if testbed not in head.testbeds:
        raise UsageError(f"there is no testbed {testbed!r} at head; {suggest(testbed, head.testbeds)}")
    pairs, gone = _pair(tuple(_resolve(base)), tuple(_resolve(head)))
    asked = [(one, other) for one, other in pairs if not suites or other.suite in suites]
    differing = [pair for pair in asked if pair[0] is None or pair[0].content != pair[1].content]
    removed = [one for one in gone if not suites or one.suite in suites]
    if (count := len(differing) + len(removed)) > MOST_TOUCHED:
        raise UsageError(
            f"{count:,} experiments differ, and at most {MOST_TOUCHED} are listed; choose suites"
            f" with --suite, or {TO_DO}"
        )
    find = _KnobsOnce()
    touched = [_compare(one, other, testbed, find) for one, other in differing]
    touched += [
        Touched(suite=one.suite, experiment=one.name[1], why_not="removed at head") for one in removed
    ]
    return ConfigDifference(
        touched=tuple(touched),
        total=len(asked),
        notes=(*_notes_on_rules(base, head), *_notes_on_releases(asked)),
    )


def leave_out(knob: Knob, head: SystemConfig, base: SystemConfig) -> SystemConfig:
    """Return head's config with base's value of one knob; all other knobs stay as at head."""
    match knob.steps:
        case ("heap_mb",):
            return replace(head, heap_mb=base.heap_mb)
        case ("jvm_options",):
            return replace(head, jvm_options=base.jvm_options)
        case ("settings", *steps):
            return replace(head, settings=_take_back(head.settings, base.settings, steps))
        case _:
            raise ValueError(f"{knob.path} is no knob of a config")


def find_knobs(file: str, before: object, after: object) -> tuple[Knob, ...]:
    """Return every difference between two design values, by its way inside the file.

    Mappings are taken apart, and lists of named parts as well; any other list is one value.
    """
    return tuple(
        Knob(file=file, steps=steps, before=_text(one), after=_text(other))
        for steps, one, other in _find(canonical(before), canonical(after), ())
    )


class _KnobsOnce:
    """Finds knobs, once for each two values: hundreds of experiments may share a file of thousands."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], tuple[Knob, ...]] = {}

    def __call__(self, file: str, before: _Part, after: _Part) -> tuple[Knob, ...]:
        key = (file, before.name, after.name)
        if key not in self._known:
            self._known[key] = find_knobs(file, before, after)
        return self._known[key]


def _resolve(catalog: Catalog) -> Iterator[_Resolved]:
    # Of one catalog a name of a kind is one value; hashing it takes as long as it is large.
    known: dict[tuple[str, str], str] = {}

    def hash_once(kind: str, part: _Part) -> str:
        if (kind, part.name) not in known:
            known[kind, part.name] = content_hash(part)
        return known[kind, part.name]

    for suite in catalog.suites.values():
        for experiment in suite.experiments:
            deployment = catalog.resolve(suite, experiment)
            surroundings = (
                experiment.system,
                hash_once("topology", deployment.topology),
                hash_once("testbed", deployment.testbed),
                hash_once("workload", deployment.workload),
            )
            config = hash_once(experiment.system, deployment.config)
            yield _Resolved(
                suite.name,
                deployment,
                content_hash((config, *surroundings)),
                surroundings,
                catalog.workload_file(deployment.workload.name),
            )


def hash_deployment(deployment: Deployment) -> str:
    """Hash what an experiment measures, whatever its names: equal hash, nothing differs."""
    parts = (deployment.topology, deployment.testbed, deployment.workload)
    system, config = deployment.experiment.system, content_hash(deployment.config)
    return content_hash((config, system, *map(content_hash, parts)))


_Pairs: TypeAlias = list[tuple[_Resolved | None, _Resolved]]
"""What each experiment was at base, None if it is new."""


def _pair(before: Sequence[_Resolved], after: Sequence[_Resolved]) -> tuple[_Pairs, list[_Resolved]]:
    """Find what each experiment was at base, and what is gone; no side has an entry twice."""
    by_name = {one.name: one for one in before}
    by_content = {one.content: one for one in before}
    names, contents = {one.name for one in after}, {one.content for one in after}
    gone = [one for one in before if one.name not in names and one.content not in contents]
    pairs: _Pairs = []
    for other in after:
        found = by_name.get(other.name) or by_content.get(other.content)
        if found is None:
            found = next(_alike(gone, other), None)
            gone = [one for one in gone if one is not found]
        pairs.append((found, other))
    return pairs, gone


def _alike(gone: Iterable[_Resolved], other: _Resolved) -> Iterator[_Resolved]:
    """Yield what may have become this experiment under another name, with another config as well."""
    alike = [one for one in gone if one.surroundings == other.surroundings]
    same = [one for one in alike if one.name[1] == other.name[1]]
    # Several without a name in common: which of them it was is not known.
    yield from same or (alike if len(alike) == 1 else [])


def _compare(one: _Resolved | None, other: _Resolved, testbed: str, find: _KnobsOnce) -> Touched:
    suite, experiment = other.name
    head = other.deployment
    if one is None:
        why_not = "new at head: base has nothing to compare it with"
        return Touched(suite=suite, experiment=experiment, why_not=why_not, head=head)
    base, system, knobs = one.deployment, head.experiment.system, list[Knob]()
    if system == base.experiment.system:
        knobs += find(f"systems/{system}/{head.config.name}", base.config, head.config)
        knobs += (knob for _, some in _list_surrounding_knobs(base, other, find) for knob in some)
    return Touched(
        suite=suite,
        experiment=experiment,
        knobs=tuple(knobs),
        why_not=_refuse(base, other, testbed, find),
        base=base,
        head=head,
    )


def _list_surrounding_knobs(
    base: Deployment, at_head: _Resolved, find: _KnobsOnce
) -> Iterator[tuple[str, tuple[Knob, ...]]]:
    """Yield what differs but the config, each in words; a workload may be scaled down or a variant."""
    head = at_head.deployment
    workload, file = head.workload.name, f"workloads/{at_head.workload_file}"
    of_file = "" if workload == at_head.workload_file else f" of {file}.yaml"
    topology, testbed = head.topology.name, head.testbed.name
    for what, path, one, other in (
        (f"workload {workload}{of_file}", file, base.workload, head.workload),
        (f"topology {topology}", f"topologies/{topology}", base.topology, head.topology),
        (f"testbed {testbed}", f"testbeds/{testbed}", base.testbed, head.testbed),
    ):
        if knobs := find(path, one, other):
            yield what, knobs


def _refuse(base: Deployment, at_head: _Resolved, testbed: str, find: _KnobsOnce) -> str:
    """Describe why the two cannot be compared here; nothing if they can."""
    head = at_head.deployment
    systems = base.experiment.system, head.experiment.system
    if systems[0] != systems[1]:
        return f"it measures another system: {systems[0]} at base, {systems[1]} at head"
    if differing := [
        f"{what} ({_list_keys(knobs)})" for what, knobs in _list_surrounding_knobs(base, at_head, find)
    ]:
        as_well = content_hash(base.config) != content_hash(head.config)
        return (
            f"it measures something else at head, since its {' and its '.join(differing)} differs: its"
            " numbers begin a new series and do not compare with base"
            f"{'. Its config differs as well; propose that by itself to measure it' if as_well else ''}"
        )
    if base.config.access != head.config.access:
        return (
            "its config says something else at head of how clients log in, or whom they trust (access):"
            " no secret is used by what is only proposed; change that first, by itself"
        )
    if head.testbed.attached:
        return "its cluster is attached: settings there are its own, and are not changed for a trial"
    if head.testbed.name != testbed:
        name = head.testbed.name
        return f"it runs on testbed {name}, not on {testbed}; measure it there, with --testbed {name}"
    return ""


def _list_keys(knobs: Sequence[Knob]) -> str:
    listed = ", ".join(dotted(knob.steps) for knob in knobs[:_MOST_NAMED])
    more = len(knobs) - _MOST_NAMED
    return f"{listed} and {more:,} more" if more > 0 else listed


def _notes_on_rules(base: Catalog, head: Catalog) -> Iterator[str]:
    if base.detection != head.detection:
        yield (
            "detection.yaml differs: that changes how results are judged, not what is measured. This"
            " comparison is judged by base's rules"
        )
    if base.triage != head.triage:
        yield "triage.yaml differs: no measurement and no comparison depends on it"
    if base.reports != head.reports:
        yield "reference/ differs: no measurement and no comparison depends on it"


def _notes_on_releases(pairs: _Pairs) -> Iterator[str]:
    names = [
        f"{other.name[1]} of suite {other.name[0]}"
        for one, other in pairs
        if one and _releases(one) != _releases(other)
    ]
    if names:
        yield f"another list of releases changes nothing in how they are measured: {', '.join(names)}"


def _releases(one: _Resolved) -> frozenset[str]:
    return frozenset(one.deployment.experiment.releases)


def _find(
    before: _Value, after: _Value, steps: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], _Value, _Value]]:
    if _text(before) == _text(after):
        return
    found = []
    one, other = _divide(before, steps), _divide(after, steps)
    if one is not None and other is not None:
        found = [
            each
            for key in sorted({*one, *other})
            for each in _find(one.get(key, _ABSENT), other.get(key, _ABSENT), (*steps, key))
        ]
    # Parts may be equal where the wholes are not: an empty mapping, another order of named parts.
    yield from found or [(steps, before, after)]


def _divide(value: _Value, steps: tuple[str, ...]) -> Mapping[str, _Value] | None:
    if value is _ABSENT:
        return {}
    if isinstance(value, dict):
        return value
    # What a database makes of a list in its settings is its own affair.
    if isinstance(value, list) and steps[0] != "settings":
        parts = {str(one["name"]): one for one in value if isinstance(one, dict) and "name" in one}
        return parts if len(parts) == len(value) else None
    return None


def _text(value: _Value) -> str:
    return "" if value is _ABSENT else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _take_back(
    head: Mapping[str, JsonValue], base: Mapping[str, JsonValue], steps: Sequence[str]
) -> dict[str, JsonValue]:
    """Return head with what base has at these steps, be it nothing."""
    if not steps:
        return dict(base)
    key, *rest = steps
    changed = dict(head)
    inner, was = head.get(key, {}), base.get(key, {})
    if rest and isinstance(inner, dict) and isinstance(was, dict):
        changed[key] = _take_back(inner, was, rest)
        if not changed[key] and key not in base:
            del changed[key]
    elif key in base:
        changed[key] = base[key]
    else:
        changed.pop(key, None)
    return changed
