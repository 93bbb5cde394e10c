"""Published figures matched to what was measured, and what may be computed of both. Pure.

A figure is matched by its address: the system of its subject, the workload by its name at any scale,
phase, operation, metric and statistic. What is compared are ratios inside one setting, or between
settings of one testbed class and engine; never a figure here with a figure there.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median

from perf.model.metrics import OPERATIONS_PER_DOLLAR, PRICE_PER_HOUR, THROUGHPUT
from perf.model.records import Answer
from perf.model.references import ERRORS, MISSES, USD_PER_MILLION, Report, Spot, Subject
from perf.model.results import ERROR, TIMEOUTS, Counter, Sample, Trial, TrialHead, TrialId, TrialStatus
from perf.model.scaling import scale_of, unscaled_name

_MILLION = 1e6
_CORES = "cpu_cores"
_OF_A_CLIENT = "version:python"
_MISSED = (Answer.NOT_FOUND, Answer.WRONG_DATA)


@dataclass(frozen=True, slots=True, order=True)
class SideSetting:
    """What the measured values of one side of a comparison have in common."""

    system: str
    version: str
    config: str
    topology: str
    testbed_class: str
    engine: str


@dataclass(frozen=True, slots=True, order=True)
class ValueAddress:
    """The address of a measured value inside a setting; the workload by its name as it is written."""

    workload: str
    phase: str
    operation: str
    metric: str
    statistic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """The median of what some trials say of one cell.

    `runs` are the values of all iterations, or of the trials where these have none; at least one.
    """

    value: float
    runs: tuple[float, ...]
    trials: tuple[TrialId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSetting:
    """What was measured in one setting; `price_per_hour_usd` is that of the servers, if recorded.

    `cores_per_server` is what each server host has by its recorded facts; None where they do not say
    it of all alike, or where servers share a host with the client.
    """

    setting: SideSetting
    values: Mapping[ValueAddress, Value]
    trials: tuple[Trial, ...]
    price_per_hour_usd: float | None
    cores_per_server: int | None = None

    def find(
        self, workload: str, phase: str, operation: str, metric: str, statistic: str = "mean"
    ) -> Value | None:
        """Return what was measured at an address; None if nothing was."""
        return self.values.get(ValueAddress(workload, phase, operation, metric, statistic))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """A report, and the trials of its workloads at one scale, in order of time."""

    report: Report
    scale: int
    trials: tuple[TrialHead, ...]

    @property
    def name(self) -> str:
        """Return the suite with the scale, as in the names of workloads."""
        return self.report.suite if self.scale == 1 else f"{self.report.suite}-by-{self.scale}"


def find_reproductions(
    reports: Iterable[Report], heads: Iterable[TrialHead]
) -> tuple[Reproduction, ...]:
    """Return for each report and scale the trials of its workloads, in this order."""
    by_name: defaultdict[str, list[TrialHead]] = defaultdict(list)
    for head in heads:
        by_name[head.workload.name].append(head)
    found: defaultdict[tuple[str, int], list[TrialHead]] = defaultdict(list)
    for name, trials in by_name.items():
        found[unscaled_name(name), scale_of(name)] += trials
    result = []
    for report in reports:
        by_scale: defaultdict[int, list[TrialHead]] = defaultdict(list)
        for name in sorted(report.workloads()):
            for (workload, scale), trials in found.items():
                if workload == name:
                    by_scale[scale] += trials
        for scale, trials in sorted(by_scale.items()):
            ordered = sorted(trials, key=lambda head: (head.started_at, head.id))
            result.append(Reproduction(report=report, scale=scale, trials=tuple(ordered)))
    return tuple(result)


def setting_of(trial: TrialHead) -> SideSetting:
    """Return the setting of a trial."""
    return SideSetting(
        system=trial.release.system,
        version=trial.release.version,
        config=trial.config.name,
        topology=trial.topology.name,
        testbed_class=trial.testbed_class,
        engine=trial.engine,
    )


def choose_newest(trials: Iterable[TrialHead], most: int) -> tuple[TrialHead, ...]:
    """Return up to `most` completed trials of each setting and workload, of its newest content.

    Of each system, config, topology, testbed class and engine, that of the last measured release only.
    """
    branches: dict[tuple[str, ...], str] = {}
    contents: dict[tuple[SideSetting, str], str] = {}
    completed = [trial for trial in trials if trial.status is TrialStatus.COMPLETED]
    for trial in completed:
        setting = setting_of(trial)
        branches[_branch(setting)] = setting.version
        contents[setting, trial.workload.name] = trial.workload.sha256
    groups: defaultdict[tuple[SideSetting, str], list[TrialHead]] = defaultdict(list)
    for trial in completed:
        setting = setting_of(trial)
        is_newest = branches[_branch(setting)] == setting.version
        if is_newest and contents[setting, trial.workload.name] == trial.workload.sha256:
            groups[setting, trial.workload.name].append(trial)
    return tuple(trial for group in groups.values() for trial in group[-most:])


def _branch(setting: SideSetting) -> tuple[str, ...]:
    return setting.system, setting.config, setting.topology, setting.testbed_class, setting.engine


def gather(trials: Iterable[Trial]) -> tuple[MeasuredSetting, ...]:
    """Sort the values of completed trials by setting, in order of the settings."""
    by_setting: defaultdict[SideSetting, list[Trial]] = defaultdict(list)
    for trial in trials:
        by_setting[setting_of(trial)].append(trial)
    return tuple(_gather_one(setting, own) for setting, own in sorted(by_setting.items()))


def _gather_one(setting: SideSetting, trials: Sequence[Trial]) -> MeasuredSetting:
    found: defaultdict[ValueAddress, list[tuple[TrialId, float]]] = defaultdict(list)
    runs: defaultdict[ValueAddress, list[float]] = defaultdict(list)
    for trial in trials:
        workload = unscaled_name(trial.workload.name)
        for sample in _list_samples(trial):
            cell = ValueAddress(
                workload, sample.phase, sample.operation, sample.metric, sample.statistic
            )
            if sample.iteration is None:
                found[cell].append((trial.id, sample.value))
            else:
                runs[cell].append(sample.value)
    prices = [price for trial in trials if (price := _find_price(trial)) is not None]
    return MeasuredSetting(
        setting=setting,
        values={
            cell: Value(
                value=median(value for _, value in of_cell),
                runs=tuple(runs[cell]) or tuple(value for _, value in of_cell),
                trials=tuple(trial for trial, _ in of_cell),
            )
            for cell, of_cell in found.items()
        },
        trials=tuple(trials),
        price_per_hour_usd=prices[-1] if prices else None,
        cores_per_server=_find_cores(trials[-1]),
    )


def _list_samples(trial: Trial) -> Iterator[Sample]:
    """Yield the samples of whole clusters, and what tables tell beside them."""
    for one in trial.samples:
        if one.host:
            continue
        yield one
        if one.metric == OPERATIONS_PER_DOLLAR.name and one.value:
            yield replace(one, metric=USD_PER_MILLION, value=_MILLION / one.value)
    yield from _count_errors(trial.counters)


def _count_errors(counters: Iterable[Counter]) -> Iterator[Sample]:
    """Count errors (with what was never answered) and misses, by phase and operation."""
    counts: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    for one in counters:
        is_error = one.name == TIMEOUTS or one.name.startswith(ERROR)
        for metric, belongs in ((ERRORS, is_error), (MISSES, one.name in _MISSED)):
            counts[one.phase, one.operation, metric] += one.value if belongs else 0
    for (phase, operation, metric), value in counts.items():
        yield Sample(
            phase=phase, operation=operation, metric=metric, statistic="mean", value=float(value)
        )


def _find_price(trial: Trial) -> float | None:
    found = (fact.value for fact in trial.environment_before if fact.name == PRICE_PER_HOUR)
    return next((float(value) for value in found), None)


def _find_cores(trial: Trial) -> int | None:
    """Return the cores of each server host, where all have as many and none is a client as well."""
    facts = trial.environment_before
    clients = {fact.host for fact in facts if fact.name == _OF_A_CLIENT}
    found = {fact.value for fact in facts if fact.name == _CORES and fact.host not in clients}
    (only,) = found if len(found) == 1 else ("",)
    return int(only) if only.isdecimal() else None


def choose_setting(
    subject: Subject, cells: Iterable[ValueAddress], measured: Iterable[MeasuredSetting]
) -> MeasuredSetting | None:
    """Return the setting that stands for a subject: that with most cells, then the last measured.

    None where no completed trial may stand for it.
    """
    wanted = frozenset(cells)
    found = [one for one in measured if stands_for(one.setting, subject)]
    ranked = sorted(
        found,
        key=lambda one: (len(wanted & one.values.keys()), max(it.started_at for it in one.trials)),
    )
    return ranked[-1] if ranked and wanted & ranked[-1].values.keys() else None


def stands_for(setting: SideSetting, subject: Subject) -> bool:
    """Return whether what was measured in a setting may stand beside a subject of a report."""
    return setting.system == subject.system and all(
        not allowed or own in allowed
        for allowed, own in (
            (subject.configs, setting.config),
            (subject.topologies, setting.topology),
            (subject.testbed_classes, setting.testbed_class),
        )
    )


def cell_of(spot: Spot) -> ValueAddress:
    """Return the address of a published figure as one of measured values; parts may be missing."""
    return ValueAddress(*(getattr(spot, part.name) or "" for part in fields(ValueAddress)))


def refuse_ratio(one: SideSetting, other: SideSetting, *, across_testbeds: bool) -> str:
    """Describe why no ratio of two settings is reported; empty where it is.

    `across_testbeds` where the report itself compares testbeds, so that both subjects name theirs, or
    where sizes of hosts are compared whose capacities are known.
    """
    if one.testbed_class != other.testbed_class and not across_testbeds:
        return f"measured on {one.testbed_class} and {other.testbed_class}, which do not compare"
    if one.engine != other.engine:
        return f"measured with the engines {one.engine} and {other.engine}, which do not compare"
    return ""


def throughput_cell(workload: str, phase: str, operation: str) -> ValueAddress:
    """Return the address of a throughput."""
    return ValueAddress(workload, phase, operation, THROUGHPUT.name, "mean")
