"""What a suite's schema cannot see: names of other files, room on the testbed, warm-ups, sentinels."""

import math
from collections.abc import Iterator
from contextlib import suppress

from perf.config.checks.attached import check_attached
from perf.config.checks.files import ConfigFile, Entries, find_dangling, find_repeated
from perf.load.programs import can_offer, native_systems
from perf.local.problems import Place, suggest
from perf.model.design import DEFAULT_ENGINE, Experiment, Suite, Testbed, Topology, Workload
from perf.model.errors import UsageError
from perf.model.scaling import scale_down
from perf.model.statements import Statements
from perf.systems import registry
from perf.systems.contract import KeepsData

# How a warm-up ends (see `perf.load.engines`): a second is reported a little after its end, looked for
# once a second, and all engines are told of a whole second that is far enough ahead for each of them.
_TELL_S = 3.0
_TELL_EACH_S = 0.5


def check_suite(entry: ConfigFile[Suite], entries: Entries) -> Iterator[str]:
    """Find names that lead nowhere, and topologies that the testbed cannot carry."""
    suite, at = entry.value, entry.top
    if suite is None:
        return
    yield from find_dangling(at / "testbed", suite.testbed, "testbeds", entries.testbeds)
    experiments = suite.experiments
    yield from find_repeated(at / "experiments", experiments)
    yield from _check_sentinels(at, suite, entries)
    yield from _check_minutes(at, suite)
    testbed = entries.testbeds.get(suite.testbed)
    for index, experiment in enumerate(experiments):
        here = at / "experiments" / index
        yield from _check_names(here, experiment, entries)
        topology = entries.topologies.get(experiment.topology)
        if not (testbed and testbed.value and topology and topology.value):
            continue
        yield from _check_room(here, topology.value, testbed.value)
        yield from _check_clocks(here, topology.value, testbed.value)
        yield from check_attached(here, suite, experiment, testbed.value, entries)
        workload = entries.workloads.get(experiment.workload)
        if workload and workload.value:
            yield from _check_scale(here, suite, workload.value)
            yield from _check_ability(here, experiment, workload.value)
            yield from _check_engine(here, experiment, workload.value, testbed.value)
            if workload.value.dataset:
                yield from _check_kept(here, experiment, testbed.value)
            if workload.value.program and topology.value.clients > 1:
                yield (here / "topology").say(
                    f"which has {topology.value.clients} clients, but a workload's own program runs on "
                    "one: the figures of several cannot be put together; take a topology with one"
                )
            engines = testbed.value.client_cores * topology.value.clients
            by = suite.scaled_down_by if workload.value.floors else None
            run = scale_down(workload.value, by) if by else workload.value
            yield from _check_warm_ups(here, run, testbed.value, engines)


def _check_clocks(at: Place, topology: Topology, testbed: Testbed) -> Iterator[str]:
    """Find several client hosts without a limit to what their clocks may differ by."""
    is_shared = testbed.transport == "local" or topology.clients == 1
    if not is_shared and testbed.validity.max_clock_offset_ms is None:
        yield (at / "topology").say(
            f"which has {topology.clients} client hosts, and testbed {testbed.name} does not say how "
            "far their clocks may be apart: add max_clock_offset_ms to its validity, for example 5"
        )


def _check_minutes(at: Place, suite: Suite) -> Iterator[str]:
    """Find a bisection without a budget, and a budget for nothing."""
    if suite.bisect and suite.bisect_minutes is None:
        yield (at / "bisect").say(
            "which measures without a limit: add bisect_minutes, the most that a night may "
            "spend on it (two hours of short trials are 120), or remove bisect"
        )
    if suite.bisect_minutes is not None and not suite.bisect:
        why = "but nothing starts a bisection: add `bisect: auto`, or remove bisect_minutes"
        yield (at / "bisect_minutes").say(why)


def _check_names(at: Place, experiment: Experiment, entries: Entries) -> Iterator[str]:
    system, topology, workload = experiment.system, experiment.topology, experiment.workload
    if system not in entries.known_systems:
        why = f"and there is no such system; {suggest(system, entries.known_systems)}"
        yield (at / "system").say(why)
    else:
        configs, folder = entries.systems.get(system, {}), f"systems/{system}"
        yield from find_dangling(at / "config", experiment.config, folder, configs)
    yield from find_dangling(at / "topology", topology, "topologies", entries.topologies)
    yield from find_dangling(at / "workload", workload, "workloads", entries.workloads)


def _check_room(at: Place, topology: Topology, testbed: Testbed) -> Iterator[str]:
    for role, wanted in (("server", topology.servers), ("client", topology.clients)):
        present = sum(host.role == role for host in testbed.hosts)
        if wanted > present:
            yield (at / "topology").say(
                f"which needs {wanted} {role} hosts, but testbed {testbed.name} has {present}; "
                "choose a smaller topology or another testbed"
            )


def _check_warm_ups(at: Place, workload: Workload, testbed: Testbed, engines: int) -> Iterator[str]:
    """Find warm-ups that cannot end by rule before their cap; one of fixed length asks for no rule."""
    window_s = testbed.steadiness.window_s
    for part in workload.measurements:
        seen_s = max(math.ceil(part.warmup_s), 2 * window_s)
        needed_s = seen_s + _TELL_S + _TELL_EACH_S * engines
        if part.warmup_s < part.warmup_cap_s < needed_s:
            yield (at / "workload").say(
                f"whose measurement {part.name} warms up for at most {part.warmup_cap_s:g} s, but on "
                f"testbed {testbed.name} the rule needs {seen_s} s (at least warmup_s and two windows "
                f"of {window_s} s), and {needed_s - seen_s:g} s to be seen and sent to all engine "
                f"processes, {engines} here; make warmup_cap_s at least {needed_s:g}, or equal to "
                "warmup_s for a fixed length"
            )


def _check_scale(at: Place, suite: Suite, workload: Workload) -> Iterator[str]:
    if suite.scaled_down_by is not None and workload.floors is None:
        yield (at / "workload").say(
            f"which has no floors, so it cannot be scaled down by {suite.scaled_down_by}; add floors "
            "to it, or remove scaled_down_by from the suite"
        )


def _check_ability(at: Place, experiment: Experiment, workload: Workload) -> Iterator[str]:
    """Find a system that has no client of the workload's data model, where its driver is installed."""
    with suppress(UsageError):
        if not registry.load(experiment.system).sessions.find(workload.records):
            yield (at / "workload").say(
                f"whose records are of kind {workload.records.kind}, which {experiment.system} cannot "
                "be asked; see docs/systems.md for who can"
            )


def _check_kept(at: Place, experiment: Experiment, testbed: Testbed) -> Iterator[str]:
    """Find a data set that is to be kept where it cannot be."""
    if testbed.attached:
        yield (at / "workload").say(
            f"whose dataset is kept, but testbed {testbed.name} is attached: files of servers that are "
            "somebody else's are not touched; remove dataset from the workload"
        )
    with suppress(UsageError):
        if not isinstance(registry.load(experiment.system), KeepsData):
            yield (at / "workload").say(
                f"whose dataset is kept, which Knickpoint cannot do with the files of "
                f"{experiment.system}; remove dataset from the workload"
            )


def _check_engine(
    at: Place, experiment: Experiment, workload: Workload, testbed: Testbed
) -> Iterator[str]:
    """Find a system that the chosen engine has no client for."""
    engine, records = workload.engine or testbed.engine or DEFAULT_ENGINE, workload.records
    if not can_offer(engine, experiment.system, records):
        source = f"workload {workload.name}" if workload.engine else f"testbed {testbed.name}"
        known = ", ".join(native_systems(records)) or "no system"
        language = f" in {records.language}" if isinstance(records, Statements) else ""
        yield (at / "system").say(
            f"which the engine {engine} of {source} cannot ask for records of kind "
            f"{records.kind}{language} (it can: {known}); say `engine: python` in the workload, or "
            "remove engine from it and from the testbed"
        )


def _check_sentinels(at: Place, suite: Suite, entries: Entries) -> Iterator[str]:
    """Find a suite of sentinels only, and a sentinel that would be a point of a judged series."""
    sentinels = [
        (index, one) for index, one in enumerate(suite.experiments) if one.sentinel_every_nights
    ]
    if len(sentinels) == len(suite.experiments):
        yield (at / "experiments").fault(
            "holds sentinels only, and they merely watch the testbed for others; add an "
            "experiment to be judged, or remove sentinel_every_nights from one"
        )
    for index, sentinel in sentinels:
        for where, other in _scheduled_beside(suite, entries):
            lines = _lines(sentinel, entries) & _lines(other, entries)
            if lines and _place(sentinel) == _place(other):
                shared = f"systems/{sentinel.system}/{sentinel.config}.yaml"
                yield (at / "experiments" / index / "config").say(
                    f"as in the experiment {other.name} of suite {where}, so that both would be one "
                    f"series of line {min(lines)}; copy {shared} under a name of its own for the "
                    "sentinel, and never touch that"
                )
                break


def _scheduled_beside(suite: Suite, entries: Entries) -> Iterator[tuple[str, Experiment]]:
    """Yield the scheduled experiments of all suites whose numbers compare with those of this one."""
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
    """Return the lines of the releases; a release of unknown line is one by itself."""
    known = entries.known_releases.get(experiment.system, {})
    return {known.get(version, version) for version in experiment.versions}
