"""What a suite's schema cannot see: names of other files, room on the testbed, warm-ups, sentinels."""

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress

from perf.config.checks.files import ConfigFile, Entries, find_repeated
from perf.load.programs import can_offer, native_systems
from perf.local.document import Steps, YamlDocument
from perf.local.problems import say, say_dangling, suggest, suggest_few
from perf.model.design import DEFAULT_ENGINE, Experiment, Suite, Testbed, Topology, Workload
from perf.model.errors import UsageError
from perf.model.scaling import scale_down
from perf.systems import registry

# How a warm-up ends (see `perf.load.engines`): a second is reported a little after its end, looked for
# once a second, and all engines are told of a whole second that is far enough ahead for each of them.
_TELL_S = 3.0
_TELL_EACH_S = 0.5


def check_suite(entry: ConfigFile[Suite], entries: Entries) -> Iterator[str]:
    """Find names that lead nowhere, and topologies that the testbed cannot carry."""
    suite, document = entry.value, entry.document
    if suite is None:
        return
    if suite.testbed not in entries.testbeds:
        yield say_dangling(document, ("testbed",), suite.testbed, "testbeds", entries.testbeds)
    experiments = suite.experiments
    yield from find_repeated(document, ("experiments",), experiments, "name", lambda each: each.name)
    yield from _check_sentinels(document, suite, entries)
    yield from _check_minutes(document, suite)
    testbed = entries.testbeds.get(suite.testbed)
    for index, experiment in enumerate(experiments):
        steps: Steps = ("experiments", index)
        yield from _check_names(document, steps, experiment, entries)
        yield from _repeated_releases(document, steps, experiment)
        yield from _unknown_releases(document, steps, experiment, entries.known_releases)
        topology = entries.topologies.get(experiment.topology)
        if not (testbed and testbed.value and topology and topology.value):
            continue
        yield from _check_room(document, steps, topology.value, testbed.value)
        workload = entries.workloads.get(experiment.workload)
        if workload and workload.value:
            yield from _check_scale(document, steps, suite, workload.value)
            yield from _check_ability(document, steps, experiment, workload.value)
            yield from _check_engine(document, steps, experiment, workload.value, testbed.value)
            engines = testbed.value.client_cores * topology.value.clients
            by = suite.scaled_down_by if workload.value.floors else None
            run = scale_down(workload.value, by) if by else workload.value
            yield from _check_warm_ups(document, steps, run, testbed.value, engines)


def _check_minutes(document: YamlDocument, suite: Suite) -> Iterator[str]:
    """Find a bisection without a budget, and a budget for nothing."""
    if suite.bisect and suite.bisect_minutes is None:
        why = (
            "which measures until it is told to stop: add bisect_minutes, the most that a night may "
            "spend on it (two hours of short trials are 120), or remove bisect"
        )
        yield say(document, ("bisect",), suite.bisect, why)
    if suite.bisect_minutes is not None and not suite.bisect:
        why = "but nothing starts a bisection: add `bisect: auto`, or remove bisect_minutes"
        yield say(document, ("bisect_minutes",), suite.bisect_minutes, why)


def _check_names(
    document: YamlDocument, steps: Steps, experiment: Experiment, entries: Entries
) -> Iterator[str]:
    system, topology, workload = experiment.system, experiment.topology, experiment.workload
    if system not in entries.known_systems:
        why = f"and there is no such system; {suggest(system, entries.known_systems)}"
        yield say(document, (*steps, "system"), system, why)
    else:
        configs, folder = entries.systems.get(system, {}), f"systems/{system}"
        if experiment.config not in configs:
            yield say_dangling(document, (*steps, "config"), experiment.config, folder, configs)
    if topology not in entries.topologies:
        known = entries.topologies
        yield say_dangling(document, (*steps, "topology"), topology, "topologies", known)
    if workload not in entries.workloads:
        known_workloads = entries.workloads
        yield say_dangling(document, (*steps, "workload"), workload, "workloads", known_workloads)


def _check_room(
    document: YamlDocument, steps: Steps, topology: Topology, testbed: Testbed
) -> Iterator[str]:
    for role, wanted in (("server", topology.servers), ("client", topology.clients)):
        present = sum(host.role == role for host in testbed.hosts)
        if wanted > present:
            why = (
                f"which needs {wanted} {role} hosts, but testbed {testbed.name} has {present}; "
                "choose a smaller topology or another testbed"
            )
            yield say(document, (*steps, "topology"), topology.name, why)


def _check_warm_ups(
    document: YamlDocument, steps: Steps, workload: Workload, testbed: Testbed, engines: int
) -> Iterator[str]:
    """Find warm-ups that cannot end by rule before their cap; one of fixed length asks for no rule."""
    window_s = testbed.steadiness.window_s
    for part in workload.measurements:
        seen_s = max(math.ceil(part.warmup_s), 2 * window_s)
        needed_s = seen_s + _TELL_S + _TELL_EACH_S * engines
        if part.warmup_s < part.warmup_cap_s < needed_s:
            why = (
                f"whose measurement {part.name} warms up for at most {part.warmup_cap_s:g} s, but on "
                f"testbed {testbed.name} the rule needs {seen_s} s (at least warmup_s and two windows "
                f"of {window_s} s), and {needed_s - seen_s:g} s to be seen and told to all engine "
                f"processes, {engines} here; make warmup_cap_s at least {needed_s:g}, or equal to "
                "warmup_s for a fixed length"
            )
            yield say(document, (*steps, "workload"), workload.name, why)


def _check_scale(
    document: YamlDocument, steps: Steps, suite: Suite, workload: Workload
) -> Iterator[str]:
    if suite.scaled_down_by is not None and workload.floors is None:
        why = (
            f"which has no floors, so it cannot be scaled down by {suite.scaled_down_by}; add floors "
            "to it, or remove scaled_down_by from the suite"
        )
        yield say(document, (*steps, "workload"), workload.name, why)


def _check_ability(
    document: YamlDocument, steps: Steps, experiment: Experiment, workload: Workload
) -> Iterator[str]:
    """Find a system that has no client of the workload's data model, where its driver is installed."""
    with suppress(UsageError):
        if not registry.load(experiment.system).sessions.find(workload.records):
            why = (
                f"whose records are of kind {workload.records.kind}, which {experiment.system} cannot "
                "be asked; see docs/systems.md for who can"
            )
            yield say(document, (*steps, "workload"), workload.name, why)


def _check_engine(
    document: YamlDocument, steps: Steps, experiment: Experiment, workload: Workload, testbed: Testbed
) -> Iterator[str]:
    """Find a system that the chosen engine has no client for."""
    engine = workload.engine or testbed.engine or DEFAULT_ENGINE
    if not can_offer(engine, experiment.system, workload.records):
        source = f"workload {workload.name}" if workload.engine else f"testbed {testbed.name}"
        known = ", ".join(native_systems(workload.records)) or "no system"
        why = (
            f"which the engine {engine} of {source} cannot ask for records of kind "
            f"{workload.records.kind} (it can: {known}); say `engine: python` in the workload, or "
            "remove engine from it and from the testbed"
        )
        yield say(document, (*steps, "system"), experiment.system, why)


def _repeated_releases(document: YamlDocument, steps: Steps, experiment: Experiment) -> Iterator[str]:
    for index, release in enumerate(experiment.releases):
        if release in experiment.releases[:index]:
            why = "for the second time; list each release once"
            yield say(document, (*steps, "releases", index), release, why)


def _unknown_releases(
    document: YamlDocument,
    steps: Steps,
    experiment: Experiment,
    known_releases: Mapping[str, Mapping[str, str]],
) -> Iterator[str]:
    system = experiment.system
    known = known_releases.get(system)
    if known is None:
        return
    for index, release in enumerate(experiment.releases):
        if release not in known:
            hint = suggest_few(release, known, f"see `knickpoint releases {system}`")
            why = f"and {system} has no such release; {hint}"
            yield say(document, (*steps, "releases", index), release, why)


def _check_sentinels(document: YamlDocument, suite: Suite, entries: Entries) -> Iterator[str]:
    """Find a suite of sentinels only, and a sentinel that would be a point of a judged series."""
    sentinels = [
        (index, one) for index, one in enumerate(suite.experiments) if one.sentinel_every_nights
    ]
    if len(sentinels) == len(suite.experiments):
        yield (
            f"{document.locate(('experiments',))}: experiments holds sentinels only, and they merely "
            "watch the testbed for others; add an experiment to be judged, or remove "
            "sentinel_every_nights from one"
        )
    for index, sentinel in sentinels:
        for where, other in _scheduled_beside(suite, entries):
            lines = _lines(sentinel, entries) & _lines(other, entries)
            if lines and _place(sentinel) == _place(other):
                shared = f"systems/{sentinel.system}/{sentinel.config}.yaml"
                why = (
                    f"as in the experiment {other.name} of suite {where}, so that both would be one "
                    f"series of line {min(lines)}; copy {shared} under a name of its own for the "
                    "sentinel, and never touch that"
                )
                yield say(document, ("experiments", index, "config"), sentinel.config, why)
                break


def _scheduled_beside(suite: Suite, entries: Entries) -> Iterator[tuple[str, Experiment]]:
    """Give the scheduled experiments of all suites whose numbers compare with those of this one."""
    own = _testbed_class(suite, entries)
    for entry in entries.suites.values():
        if entry.value is not None and _testbed_class(entry.value, entries) == own:
            for experiment in entry.value.experiments:
                if not experiment.sentinel_every_nights:
                    yield entry.value.name, experiment


def _testbed_class(suite: Suite, entries: Entries) -> str:
    testbed = entries.testbeds.get(suite.testbed)
    return testbed.value.testbed_class if testbed and testbed.value else suite.testbed


def _place(experiment: Experiment) -> tuple[str, ...]:
    return experiment.system, experiment.config, experiment.topology, experiment.workload


def _lines(experiment: Experiment, entries: Entries) -> set[str]:
    """Give the lines of the releases; a release of unknown line is one by itself."""
    known = entries.known_releases.get(experiment.system, {})
    return {known.get(version, version) for version in experiment.releases}
