"""The load of a trial: preload and verify, settle, measure; with looks at servers and hosts around it.

What was found is kept as it comes, so that a trial that ends early still says what it saw.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import pairwise
from typing import Self

from perf.hosts.testbed import price_per_hour_usd
from perf.load.engines import Edge
from perf.load.offer import Offer
from perf.load.results.outcome import LoadOutcome
from perf.load.results.reported import find_unknown, summarize_reported
from perf.load.results.search import Found, next_load
from perf.load.results.summary import summarize
from perf.model.design import (
    ClosedLoop,
    CountedPhase,
    Deployment,
    Measurement,
    OpenLoop,
    SearchLoad,
    SteppedLoad,
    Workload,
)
from perf.model.errors import KnickpointError, StepFailed
from perf.model.records import Devops, Operation, OperationName
from perf.model.results import LoadStep, Reason, Sample
from perf.trial.diagnostics import Diagnostics, summarize_windows
from perf.trial.profiling import Profiler
from perf.trial.servers import Servers
from perf.trial.spent import MEASURED, Spent
from perf.trial.storing import compare_stored, connect, make_offer, store
from perf.trial.telemetry import MISSING, Snapshot, Window, open_snapshots
from perf.trial.validity import (
    find_faults,
    find_lost_time,
    find_remarks,
    find_unsteady_reports,
    judge_step,
)
from perf.workloads.loading import devops_stored, row_bytes, writes_only
from perf.workloads.stages import (
    Stage,
    counted_stage,
    ladder_phases,
    operations_of,
    plan_loads,
    plan_stages,
    search_stage,
    searches,
    steady_phases,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFindings:
    """What a part of a trial's load, or all of it, brought to light."""

    planned: tuple[Stage, ...] = ()
    """The stages of a plan that is known beforehand."""
    outcome: LoadOutcome = field(default_factory=LoadOutcome)
    windows: tuple[Window, ...] = ()
    counted: tuple[Stage, ...] = ()
    """The phases of the sequence that ran to their end, with their lengths."""
    load_steps: tuple[LoadStep, ...] = ()
    answers: tuple[tuple[Measurement, Found], ...] = ()
    faults: tuple[Reason, ...] = ()
    remarks: tuple[Reason, ...] = ()

    def __add__(self, other: Self) -> Self:
        """Put two parts of one load together, the earlier one first."""
        sums = {one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)}
        return replace(self, **sums)


def measure(
    servers: Servers, deployment: Deployment, profiler: Profiler, spent: Spent
) -> Iterator[LoadFindings]:
    """Run a trial's whole load on a cluster that serves; yield what each part of it brings to light.

    What was seen of a part that fails is yielded before its failure is raised. The
    profiler runs within the looks at the servers. `spent` is kept: load, settle, warm-up, measured.
    The rows of a data set that is kept lie there already: `kept_data`.

    Raises:
        StepFailed: a step of it failed.
        NodeDied: a server process ended under load.

    """
    workload, cluster, report = deployment.workload, servers.cluster, servers.progress.report
    planned = plan_stages(workload)
    spent.enter("load")
    yield LoadFindings(planned=planned)
    profiler.prepare()
    offer = make_offer(servers, deployment)
    yield LoadFindings(faults=store(servers, offer, is_stored=workload.dataset is not None))
    if workload.program:
        for command in workload.program.prepare:
            report(f"load: {' '.join(command)}")
        offer.prepare_program()
        servers.watch()
    spent.enter("settle")
    yield LoadFindings(remarks=servers.settle())
    spent.enter("warm-up")
    with open_snapshots(servers.system, cluster) as (look, unconnected):
        if unconnected:
            yield LoadFindings(remarks=(_missing(unconnected),))
        run = _MeasuringRun(servers, offer, look, profiler, spent)
        for place in range(len(workload.sequence)):
            yield from run.count(place)
        if planned:
            report(describe_load(workload))
        for mix, stages in plan_loads(workload):
            if workload.program:
                yield from run.run_program(stages)
            else:
                yield from run.offer_planned(mix, stages)
        for phase, search in searches(workload):
            yield from run.search(phase, search)


def judge(findings: LoadFindings, deployment: Deployment) -> tuple[Reason, ...]:
    """Return every reason why the load of a trial cannot be trusted."""
    workload = deployment.workload
    ladders = ladder_phases(workload)
    plain = [stage for stage in findings.planned if stage.phase not in ladders]
    plain += findings.counted
    validity = deployment.testbed.validity
    # A release that cannot hold even the lowest load has no point in the series: that must be heard.
    unanswered = [
        Reason(kind="search-without-answer", text=f"{phase.name}: {found.text}")
        for phase, found in findings.answers
        if found.estimate is None
    ]
    return (
        *findings.faults,
        *find_faults(plain, findings.outcome, findings.windows, validity),
        *find_unsteady_reports(plain, findings.outcome, validity),
        *find_lost_time(plain, findings.outcome, workload.operation_timeout_s),
        *unanswered,
    )


def diagnose(findings: LoadFindings, workload: Workload) -> Diagnostics:
    """Return what the looks at servers and hosts say about each planned phase."""
    operations = steady_phases(workload)
    return summarize_windows(
        [window for window in findings.windows if window.phase in operations],
        findings.outcome.counters,
        {phase: row_bytes(workload) for phase, offered in operations.items() if writes_only(offered)},
    )


def summarize_load(findings: LoadFindings, deployment: Deployment) -> tuple[Sample, ...]:
    """Return the samples of all measured phases."""
    workload, servers = deployment.workload, deployment.topology.servers
    if workload.program:
        return tuple(summarize_reported(findings.planned, findings.outcome))
    return summarize(
        workload,
        (*findings.counted, *findings.planned),
        findings.outcome,
        findings.load_steps,
        findings.answers,
        price_per_hour_usd=price_per_hour_usd(deployment.testbed, servers),
    )


@dataclass(frozen=True, slots=True)
class _MeasuringRun:
    """Offers load and looks at servers and hosts while it does."""

    servers: Servers
    offer: Offer
    look: Callable[[], Snapshot]
    profiler: Profiler
    spent: Spent

    def offer_planned(
        self, mix: Mapping[OperationName, float], stages: Sequence[Stage]
    ) -> Iterator[LoadFindings]:
        """Run all of one mix that is known beforehand, in one go."""
        found = yield from self._load(partial(self.offer.run, mix, stages))
        yield LoadFindings(remarks=find_remarks(stages, found.outcome))
        for name in ladder_phases(self.offer.deployment.workload):
            if own := [stage for stage in stages if stage.phase == name]:
                yield LoadFindings(load_steps=(self._judge(own, found, None),))

    def count(self, place: int) -> Iterator[LoadFindings]:
        """Run one phase of the sequence until all its operations are done."""
        workload = self.offer.deployment.workload
        phase = workload.sequence[place]
        self.servers.progress.report(describe_counted(workload, phase))
        outcome = (yield from self._load(partial(self.offer.count, place))).outcome
        stage = counted_stage(
            phase, max(one.counted_s for one in outcome.results if one.counted_s is not None)
        )
        yield LoadFindings(counted=(stage,), remarks=find_remarks([stage], outcome))
        if phase.operation is Operation.LOAD and isinstance(records := workload.records, Devops):
            # Loaded rows are made visible to queries, and counted.
            with connect(self.servers.system, self.offer.target, records) as session:
                session.finish_load()
                yield LoadFindings(faults=compare_stored(session, devops_stored(records)))

    def run_program(self, stages: Sequence[Stage]) -> Iterator[LoadFindings]:
        """Have the workload's own program offer each stage: its warm-up, then its iterations."""
        for stage in stages:
            for iteration in (0, *stage.iterations):
                run = partial(self.offer.run_program, stage, iteration)
                found = yield from self._load(run)
                if iteration:
                    yield LoadFindings(remarks=tuple(find_unknown(stage, found.outcome)))

    def search(self, phase: Measurement, search: SearchLoad) -> Iterator[LoadFindings]:
        """Offer one load after the other until the search has its answer."""
        taken: list[LoadStep] = []
        objective_ms = search.response_time_p99_objective_ms
        while isinstance(load := next_load(search, taken), float):
            stage = search_stage(phase, search, len(taken) + 1, load)
            self.servers.progress.report(
                f"{stage.phase}: {load:.1f} ops/s, with a p99 of at most {objective_ms:g} ms?"
            )
            mix = self.offer.deployment.workload.mix_of(phase)
            found = yield from self._load(partial(self.offer.run, mix, [stage]))
            taken.append(self._judge([stage], found, objective_ms))
            yield LoadFindings(load_steps=(taken[-1],))
        text = f"{phase.name}: {load.text}"
        yield LoadFindings(answers=((phase, load),), remarks=(Reason(kind="search-ended", text=text),))
        self.servers.progress.report(text)

    def _load(
        self, run: Callable[[Callable[[Edge], None], Callable[[LoadOutcome], None]], LoadOutcome]
    ) -> Generator[LoadFindings, None, LoadFindings]:
        """Offer one load; yield and return what was recorded and seen, of one that fails as well."""
        looks: list[tuple[Edge, Snapshot]] = []
        kept: list[LoadOutcome] = []
        try:
            outcome = run(partial(self._observe, looks), kept.append)
            self.servers.watch()  # a load that a node did not outlive is no load of this cluster
        except KnickpointError:
            yield _combine(sum(kept, LoadOutcome()), looks)
            raise
        found = _combine(outcome, looks)
        yield found
        return found

    def _judge(
        self, stages: Sequence[Stage], found: LoadFindings, objective_ms: float | None
    ) -> LoadStep:
        limits = self.offer.deployment.testbed.validity
        step = judge_step(stages, found.outcome, found.windows, limits, objective_ms)
        self.servers.progress.report(f"{step.phase}: {step.outcome}: {step.text}")
        return step

    def _observe(self, looks: list[tuple[Edge, Snapshot]], edge: Edge) -> None:
        """Look as iterations begin and end."""
        # Engines do not wait for the look: it is part of what begins, and of what follows.
        self.spent.enter(MEASURED if edge.is_start else "warm-up")
        if not edge.is_start:
            self.profiler.observe(edge)
        try:
            looks.append((edge, self.look()))
        except StepFailed:
            self.servers.watch()  # a node that died says more than that it could not be read
            raise
        if edge.is_start:
            self.profiler.observe(edge)
            numbers = ", ".join(map(str, edge.iterations))
            self.servers.progress.report(f"{edge.phase}: measure iteration {numbers}")


def _combine(outcome: LoadOutcome, looks: Sequence[tuple[Edge, Snapshot]]) -> LoadFindings:
    """Put together what engines recorded and what was seen of them: two looks make a window."""
    windows = tuple(
        Window(phase=edge.phase, iterations=edge.iterations, before=before, after=after)
        for (begin, before), (edge, after) in pairwise(looks)
        if begin.is_start and not edge.is_start
    )
    missing = dict.fromkeys(seen.missing for _, seen in looks if seen.missing)
    return LoadFindings(
        outcome=outcome,
        windows=windows,
        remarks=tuple(map(_missing, missing)),
    )


def _missing(why: str) -> Reason:
    return Reason(kind="telemetry-missing", text=f"{MISSING}: {why}")


def describe_counted(workload: Workload, phase: CountedPhase) -> str:
    """Describe what a phase of the sequence does."""
    return (
        f"{phase.name}: {operations_of(workload, phase)} × {phase.operation}, closed loop, "
        f"{phase.in_flight} in flight per engine process"
    )


def describe_load(workload: Workload) -> str:
    """Describe what will be offered, one line per measured phase."""
    return "\n".join(
        f"{phase.name}: {_name_mix(workload.mix_of(phase))}, {_how(phase)}; "
        f"{phase.iterations} × {phase.iteration_s:g} s, each after "
        f"{phase.warmup_s:g} to {phase.warmup_cap_s:g} s of warm-up"
        for phase in workload.measurements
    )


def _name_mix(mix: Mapping[OperationName, float]) -> str:
    if not mix:
        return "what the workload's program does"
    if len(mix) == 1:
        return str(next(iter(mix)))
    total = sum(mix.values())
    return " + ".join(f"{weight / total:.3g} {operation}" for operation, weight in mix.items())


def _how(phase: Measurement) -> str:
    match phase.load:
        case ClosedLoop() as load:
            return f"closed loop, {load.in_flight} in flight"
        case SteppedLoad() as load:
            return f"a ladder of {' · '.join(f'{one:g}' for one in load.offered_loads_ops_per_s)} ops/s"
        case SearchLoad() as load:
            return (
                f"search between {load.lowest_ops_per_s:g} and {load.highest_ops_per_s:g} ops/s "
                f"for a p99 of {load.response_time_p99_objective_ms:g} ms"
            )
        case OpenLoop() as load:
            return f"open loop, {load.offered_load_ops_per_s:g} ops/s offered"
