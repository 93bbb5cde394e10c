"""Turn a deployment's workload into engines, and offer the load: one engine per client core."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from perf.hosts.testbed import Client
from perf.load.engines import Edge, Engine, run_engines
from perf.load.own_program import OwnProgram
from perf.load.programs import command_of
from perf.load.results.outcome import LoadOutcome
from perf.load.spec import Counted, LoadSpec, Preload
from perf.model.design import Deployment
from perf.model.records import OperationName, Sensor
from perf.systems.contract import Target
from perf.workloads.loading import preload_rows, value_seed
from perf.workloads.stages import Stage, operations_of

# A stage's last operations may end one operation timeout after it; engines end and write after that.
_GRACE_S = 30.0
# The rows of each run of engines have numbers of their own; no run writes as many per device.
_RUN_ROWS_PER_DEVICE = 1_000_000
_RUN_ROWS = 1_000_000_000


@dataclass(slots=True, kw_only=True)
class Offer:
    """Offers the load of a deployment from its clients."""

    deployment: Deployment
    target: Target
    clients: tuple[Client, ...]
    watch: Callable[[], None]
    _runs: int = field(init=False, default=0)

    @property
    def preload_rows(self) -> int:
        """How many rows are stored before the first measured phase."""
        return preload_rows(self.deployment.workload)

    def preload(self) -> LoadOutcome:
        """Write the rows that must be there; StepFailed if a row could not be written."""
        preload = Preload(rows=self.preload_rows, in_flight=self.deployment.workload.preload_in_flight)
        engines = self._engines({}, preload=preload)
        return self._run(engines, self.deployment.testbed.limits.load_s, _ignore, _ignore)

    def count(
        self,
        place: int,
        observe: Callable[[Edge], None],
        keep: Callable[[LoadOutcome], None],
    ) -> LoadOutcome:
        """Run phase number `place` of the workload's sequence until all its operations are done."""
        workload = self.deployment.workload
        phase = workload.sequence[place]
        counted = Counted(
            phase=phase.name,
            operations=operations_of(workload, phase),
            in_flight=phase.in_flight,
        )
        first_row = self._next_first_row()
        engines = self._engines(
            {phase.operation: 1.0},
            counted=counted,
            first_row=first_row,
            value_seed=value_seed(workload.sequence, place),
        )
        return self._run(engines, self.deployment.testbed.limits.load_s, observe, keep)

    def run(
        self,
        mix: Mapping[OperationName, float],
        stages: Sequence[Stage],
        observe: Callable[[Edge], None],
        keep: Callable[[LoadOutcome], None],
    ) -> LoadOutcome:
        """Run stages of one mix back to back; `observe` and `keep` are called as `run_engines` says."""
        workload = self.deployment.workload
        first_row = self._next_first_row()
        engines = self._engines(
            mix,
            stages=tuple(stages),
            first_row=first_row,
            value_seed=value_seed(workload.sequence, len(workload.sequence)),
        )
        longest_s = sum(stage.longest_s for stage in stages)
        limit_s = longest_s + workload.operation_timeout_s + _GRACE_S
        return self._run(engines, limit_s, observe, keep)

    def prepare_program(self) -> None:
        """Run what the workload's own program needs once; StepFailed if it fails."""
        self._program().prepare()

    def run_program(
        self,
        stage: Stage,
        iteration: int,
        observe: Callable[[Edge], None],
        _: Callable[[LoadOutcome], None],
    ) -> LoadOutcome:
        """Have the workload's own program offer an iteration of a stage, or its warm-up (0)."""
        return self._program().offer(stage, iteration, observe)

    def _program(self) -> OwnProgram:
        (client,) = self.clients
        return OwnProgram(
            deployment=self.deployment, target=self.target, client=client, watch=self.watch
        )

    def _next_first_row(self) -> int:
        records = self.deployment.workload.records
        rows_per_run = _RUN_ROWS
        if isinstance(records, Sensor):
            rows_per_run = records.devices * _RUN_ROWS_PER_DEVICE
        first_row = self.preload_rows + self._runs * rows_per_run
        self._runs += 1
        return first_row

    def _run(
        self,
        engines: tuple[Engine, ...],
        limit_s: float,
        observe: Callable[[Edge], None],
        keep: Callable[[LoadOutcome], None],
    ) -> LoadOutcome:
        testbed = self.deployment.testbed
        return run_engines(
            engines,
            connect_s=testbed.limits.connect_s,
            limit_s=limit_s,
            steadiness=testbed.steadiness,
            watch=self.watch,
            observe=observe,
            keep=keep,
        )

    def _engines(
        self,
        mix: Mapping[OperationName, float],
        *,
        preload: Preload | None = None,
        counted: Counted | None = None,
        stages: tuple[Stage, ...] = (),
        first_row: int = 0,
        value_seed: int = 0,
    ) -> tuple[Engine, ...]:
        testbed, workload = self.deployment.testbed, self.deployment.workload
        places = [(client, core) for client in self.clients for core in range(testbed.client_cores)]
        engines = []
        for index, (client, core) in enumerate(places):
            spec = LoadSpec(
                target=self.target,
                records=workload.records,
                mix=mix,
                seed=workload.seed,
                engine_index=index,
                engine_count=len(places),
                preload=preload,
                counted=counted,
                stages=stages,
                readable_rows=self.preload_rows,
                first_row=first_row,
                value_seed=value_seed,
                run=self._runs,
                batch_rows=workload.batch_rows or 1,
                output_dir=f"{client.engines_dir}/{index}",
                cores=client.host.cores[core : core + 1],
            )
            engine = Engine(
                spec=spec,
                remote=client.remote,
                command=command_of(self.deployment.engine, client),
                numa_node=client.host.numa_node,
            )
            engines.append(engine)
        return tuple(engines)


def _ignore(_: object) -> None:
    """Look at nothing, keep nothing: a preload has no measured window."""
