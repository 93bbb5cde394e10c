"""The load of a trial: preload and verify, settle, measure; with looks at servers and hosts around it.

What was found is kept as it comes, so that a trial that ends early still says what it saw.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from perf.hosts.testbed import price_per_hour_usd
from perf.load.engines import Edge
from perf.load.offer import Offer
from perf.load.results.outcome import LoadOutcome
from perf.load.results.search import Found, next_load
from perf.load.results.summary import summarize
from perf.model.design import (
    ClosedLoop,
    Deployment,
    Measurement,
    OpenLoop,
    SearchLoad,
    SteppedLoad,
    Workload,
)
from perf.model.errors import StepFailed
from perf.model.records import Devops, Operation, Stored
from perf.model.results import LoadStep, Reason, Release, Sample
from perf.systems.sessions import Session
from perf.trial.diagnostics import Diagnostics, summarize_windows
from perf.trial.steps import Steps
from perf.trial.telemetry import Snapshot, Window
from perf.trial.validity import find_faults, find_lost_time, find_remarks, judge_step
from perf.workloads.loading import devops_stored, row_bytes, writes_only
from perf.workloads.stages import (
    Stage,
    counted_stage,
    ladder_phases,
    operations_of,
    search_stage,
    searches,
)


@dataclass(slots=True)
class LoadFindings:
    """All that the load of a trial brought to light so far; `planned` are its iterated stages."""

    planned: tuple[Stage, ...]
    outcome: LoadOutcome = field(default_factory=LoadOutcome)
    windows: list[Window] = field(default_factory=list)
    counted: list[Stage] = field(default_factory=list)
    """The phases of the sequence that ran to their end, with their lengths."""
    load_steps: list[LoadStep] = field(default_factory=list)
    answers: list[tuple[Measurement, Found]] = field(default_factory=list)
    faults: list[Reason] = field(default_factory=list)
    remarks: list[Reason] = field(default_factory=list)


def measure(steps: Steps, deployment: Deployment, findings: LoadFindings) -> None:
    """Run a trial's whole load on a cluster that serves; `findings` gets all that comes.

    Raises:
        StepFailed: a step of it failed.
        NodeDied: a server process ended under load.

    """
    workload = deployment.workload
    target = steps.target(workload)
    offer = Offer(
        deployment=deployment, target=target, clients=steps.cluster.clients, watch=steps.watch
    )
    with steps.connect(target, workload.records) as session:
        session.create_schema(workload.records)
        _require_answers(workload, session, steps.cluster.release)
        if offer.preload_rows:
            findings.faults += _preload(steps, offer, session)
    steps.settle()
    with steps.telemetry(findings.remarks.append) as look:
        run = _Run(steps, offer, look, findings)
        for place in range(len(workload.sequence)):
            run.count(place)
        if findings.planned:
            steps.progress.tell(describe_load(workload))
            run.offer_planned(findings.planned)
        for phase, search in searches(workload):
            run.search(phase, search)


def judge(findings: LoadFindings, deployment: Deployment) -> tuple[Reason, ...]:
    """Give every reason why the load of a trial cannot be trusted."""
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
        *find_lost_time(plain, findings.outcome, workload.operation_timeout_s),
        *unanswered,
    )


def diagnose(findings: LoadFindings, workload: Workload) -> Diagnostics:
    """Give what the looks at servers and hosts say about each planned phase.

    Not about a search: the loads that it offers differ from trial to trial.
    """
    operations: dict[str, tuple[Operation, ...]] = {
        phase.name: (phase.operation,) for phase in workload.sequence
    }
    operations |= {stage.phase: tuple(workload.offered_mix) for stage in findings.planned}
    return summarize_windows(
        [window for window in findings.windows if window.phase in operations],
        findings.outcome.counters,
        {phase: row_bytes(workload) for phase, offered in operations.items() if writes_only(offered)},
    )


def summarize_load(findings: LoadFindings, deployment: Deployment) -> tuple[Sample, ...]:
    """Give the samples of all measured phases."""
    workload, servers = deployment.workload, deployment.topology.servers
    return summarize(
        workload,
        (*findings.counted, *findings.planned),
        findings.outcome,
        findings.load_steps,
        findings.answers,
        price_per_hour_usd=price_per_hour_usd(deployment.testbed, servers),
    )


def _require_answers(workload: Workload, session: Any, release: Release) -> None:  # noqa: ANN401  of the records' data model
    """Raise StepFailed before anything is loaded if the release cannot be asked what a phase asks."""
    if isinstance(workload.records, Devops):
        asked = [one.operation for one in workload.sequence if one.operation is not Operation.LOAD]
        asked += [operation for operation in workload.offered_mix if operation is not Operation.LOAD]
        missing = [operation.value for operation in asked if not session.can_ask(operation)]
        if missing:
            why = f"{release.system} {release.version} cannot be asked {', '.join(missing)}"
            raise StepFailed("load", "the client", why)


def _preload(steps: Steps, offer: Offer, session: Session) -> tuple[Reason, ...]:
    """Write the rows that must be there and read them back: count and bytes."""
    rows = offer.preload_rows
    expected = Stored(rows=rows, payload_bytes=round(rows * row_bytes(offer.deployment.workload)))
    steps.progress.tell(f"load: {rows} rows, {expected.payload_bytes / 1e6:.1f} MB")
    offer.preload()
    steps.watch()
    return _compare_stored(session, expected)


def _compare_stored(session: Session, expected: Stored) -> tuple[Reason, ...]:
    stored = session.stored()
    if stored == expected:
        return ()
    text = (
        f"{stored.rows} of {expected.rows} rows and {stored.payload_bytes} of "
        f"{expected.payload_bytes} bytes were stored after the load phase"
    )
    return (Reason(kind="not-loaded", text=text),)


@dataclass(slots=True)
class _Run:
    """Offers load and looks at servers and hosts while it does."""

    steps: Steps
    offer: Offer
    look: Callable[[], Snapshot]
    findings: LoadFindings
    _before: Snapshot | None = field(init=False, default=None)

    def offer_planned(self, stages: Sequence[Stage]) -> None:
        """Run all that is known beforehand, in one go."""
        outcome = self._offer(stages)
        self.findings.remarks += find_remarks(stages, outcome)
        for name in ladder_phases(self.offer.deployment.workload):
            self._judge([stage for stage in stages if stage.phase == name], outcome, None)

    def count(self, place: int) -> None:
        """Run one phase of the sequence until all its operations are done."""
        workload = self.offer.deployment.workload
        phase = workload.sequence[place]
        operations = operations_of(workload, phase)
        self.steps.progress.tell(
            f"{phase.name}: {operations} × {phase.operation.value}, closed loop, "
            f"{phase.in_flight} in flight per engine process"
        )
        outcome = self.offer.count(place, self._observe, self._keep)
        self.steps.watch()
        self._keep(outcome)
        lengths_s = [one.counted_s for one in outcome.results if one.counted_s is not None]
        stage = counted_stage(phase, max(lengths_s))
        self.findings.counted.append(stage)
        self.findings.remarks += find_remarks([stage], outcome)
        if phase.operation is Operation.LOAD and isinstance(workload.records, Devops):
            self._finish_load(workload.records)

    def _finish_load(self, records: Devops) -> None:
        """Make loaded rows visible to queries, and count them."""
        with self.steps.connect(self.offer.target, records) as session:
            session.finish_load()
            self.findings.faults += _compare_stored(session, devops_stored(records))

    def search(self, phase: Measurement, search: SearchLoad) -> None:
        """Offer one load after the other until the search has its answer."""
        taken: list[LoadStep] = []
        objective_ms = search.response_time_p99_objective_ms
        while isinstance(load := next_load(search, taken), float):
            stage = search_stage(phase, search, len(taken) + 1, load)
            self.steps.progress.tell(
                f"{stage.phase}: {load:.1f} ops/s, with a p99 of at most {objective_ms:g} ms?"
            )
            taken.append(self._judge([stage], self._offer([stage]), objective_ms))
        self.findings.answers.append((phase, load))
        text = f"{phase.name}: {load.text}"
        self.findings.remarks.append(Reason(kind="search-ended", text=text))
        self.steps.progress.tell(text)

    def _offer(self, stages: Sequence[Stage]) -> LoadOutcome:
        outcome = self.offer.run(stages, self._observe, self._keep)
        self.steps.watch()
        self._keep(outcome)
        return outcome

    def _keep(self, outcome: LoadOutcome) -> None:
        self.findings.outcome += outcome

    def _judge(
        self, stages: Sequence[Stage], outcome: LoadOutcome, objective_ms: float | None
    ) -> LoadStep:
        limits = self.offer.deployment.testbed.validity
        step = judge_step(stages, outcome, self.findings.windows, limits, objective_ms)
        self.findings.load_steps.append(step)
        self.steps.progress.tell(f"{step.phase}: {step.outcome}: {step.text}")
        return step

    def _observe(self, edge: Edge) -> None:
        """Look as iterations begin and end; two looks make a window."""
        try:
            now = self.look()
        except StepFailed:
            self.steps.watch()  # a node that died says more than that it could not be read
            raise
        if edge.is_start:
            numbers = ", ".join(map(str, edge.iterations))
            self.steps.progress.tell(f"{edge.phase}: measure iteration {numbers}")
            self._before = now
        elif self._before is not None:
            self.findings.windows.append(
                Window(phase=edge.phase, iterations=edge.iterations, before=self._before, after=now)
            )
            self._before = None


def describe_load(workload: Workload) -> str:
    """Say what will be offered, one line per measured phase."""
    return "\n".join(
        f"{phase.name}: {_name_mix(workload)}, {_how(phase)}; "
        f"{phase.iterations} × {phase.iteration_s:g} s, each after "
        f"{phase.warmup_s:g} to {phase.warmup_cap_s:g} s of warm-up"
        for phase in workload.measurements
    )


def _name_mix(workload: Workload) -> str:
    mix = workload.offered_mix
    if len(mix) == 1:
        return next(iter(mix)).value
    total = sum(mix.values())
    return " + ".join(f"{weight / total:.3g} {operation.value}" for operation, weight in mix.items())


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
