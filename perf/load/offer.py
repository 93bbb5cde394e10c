"""Turn a deployment's workload into engines, and offer the load: one engine per client core."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perf.deployment import base_dir, client_hosts
from perf.design import ClosedLoop, Deployment, Load, Measurement, Operation
from perf.load.engines import Engine, LoadOutcome, run_engines
from perf.load.spec import LoadSpec, TimedPhase
from perf.remote import LocalHost
from perf.systems.contract import Target

# A phase's last operations may end one operation timeout after it; engines end and write after that.
_GRACE_S = 30.0
# Rows written by one measured phase have numbers of their own; no phase writes as many per device.
_PHASE_ROWS_PER_DEVICE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A deployment's clients: where engines run, and where they keep their files."""

    deployment: Deployment
    target: Target
    run_dir: Path
    """Where engines of a local testbed keep their files; on SSH hosts, the host says."""
    watch: Callable[[], None]

    @property
    def preload_rows(self) -> int:
        """How many rows are stored before the first measured phase."""
        workload = self.deployment.workload
        return workload.preload_rows_per_device * workload.records.devices

    def preload(self) -> LoadOutcome:
        """Write the rows that must be there; StepFailed if a row could not be written."""
        load = ClosedLoop(kind="closed", in_flight=self.deployment.workload.preload_in_flight)
        engines = self._engines(load, Operation.WRITE, preload_rows=self.preload_rows)
        return self._run(engines, self.deployment.testbed.limits.load_s)

    def measure(self, place: int) -> LoadOutcome:
        """Run the workload's measured phase number `place` (from 0): warm-up and iterations."""
        workload = self.deployment.workload
        phase = workload.measurements[place]
        first_row = self.preload_rows + place * workload.records.devices * _PHASE_ROWS_PER_DEVICE
        engines = self._engines(
            phase.load, workload.operation, first_row=first_row, phases=_timed_phases(phase)
        )
        planned_s = phase.warmup_s + phase.iterations * phase.iteration_s
        return self._run(engines, planned_s + workload.operation_timeout_s + _GRACE_S)

    def _run(self, engines: tuple[Engine, ...], limit_s: float) -> LoadOutcome:
        connect_s = self.deployment.testbed.limits.connect_s
        return run_engines(engines, connect_s=connect_s, limit_s=limit_s, watch=self.watch)

    def _engines(
        self,
        load: Load,
        operation: Operation,
        *,
        preload_rows: int = 0,
        first_row: int = 0,
        phases: tuple[TimedPhase, ...] = (),
    ) -> tuple[Engine, ...]:
        testbed, workload = self.deployment.testbed, self.deployment.workload
        clients = client_hosts(testbed, self.deployment.topology.clients)
        places = [
            (host, remote, core) for host, remote in clients for core in range(testbed.client_cores)
        ]
        engines = []
        for index, (host, remote, core) in enumerate(places):
            is_local = isinstance(remote, LocalHost)
            spec = LoadSpec(
                target=self.target,
                records=workload.records,
                operation=operation,
                load=load,
                seed=workload.seed,
                engine_index=index,
                engine_count=len(places),
                preload_rows=preload_rows,
                readable_rows=self.preload_rows,
                first_row=first_row,
                phases=phases,
                output_dir=f"{base_dir(testbed, host, self.run_dir)}/engines/{index}",
                cores=host.cores[core : core + 1],
            )
            python = {} if is_local else {"python": host.python}
            engines.append(Engine(spec=spec, remote=remote, **python))
        return tuple(engines)


def _timed_phases(phase: Measurement) -> tuple[TimedPhase, ...]:
    warm_up = TimedPhase(name=phase.name, iteration=0, duration_s=phase.warmup_s)
    measured = (
        TimedPhase(name=phase.name, iteration=number, duration_s=phase.iteration_s)
        for number in range(1, phase.iterations + 1)
    )
    return (warm_up, *measured)
