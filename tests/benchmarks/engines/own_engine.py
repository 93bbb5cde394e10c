"""Our own engines as clients of a comparison: the Python one, and the native one, as shipped."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from case import MEASURED_S, PRELOADED, RECORDS, WARM_UP_S, Case, Figures

from perf.hosts.remote import LocalHost
from perf.load.engines import Engine, run_engines
from perf.load.histogram import merge
from perf.load.results.outcome import LoadOutcome
from perf.load.spec import LoadSpec, Preload
from perf.model.design import ClosedLoop, OpenLoop, Steadiness
from perf.model.records import Operation
from perf.systems.contract import Target
from perf.workloads.stages import Stage

_SEED = 42
_IN_FLIGHT = 32
_LIMIT_S = WARM_UP_S + MEASURED_S + 120


@dataclass(frozen=True, slots=True)
class OwnEngine:
    """One engine process, started by `command`."""

    directory: Path
    command: tuple[str, ...]

    def __call__(self, case: Case, target: Target, first_row: int) -> Figures:
        """Run a case."""
        load = (
            ClosedLoop(kind="closed", in_flight=case.in_flight)
            if case.rate is None
            else OpenLoop(kind="open", offered_load_ops_per_s=case.rate, in_flight=case.in_flight)
        )
        stage = Stage(
            phase="bench",
            load=load,
            warmup_s=WARM_UP_S,
            warmup_cap_s=WARM_UP_S,
            iteration_s=MEASURED_S,
            iterations=(1,),
        )
        spec = self._spec(target, case.operation, stages=(stage,), first_row=first_row)
        return _read(self._run(spec), is_open=case.rate is not None)

    def preload(self, target: Target) -> None:
        """Write the rows that reads will find."""
        rows = Preload(rows=PRELOADED, in_flight=_IN_FLIGHT)
        self._run(self._spec(target, Operation.WRITE, preload=rows))

    def _spec(self, target: Target, operation: Operation, **more: object) -> LoadSpec:
        common: Mapping[str, object] = {
            "target": target,
            "records": RECORDS,
            "mix": {operation: 1.0},
            "seed": _SEED,
            "readable_rows": PRELOADED,
            "engine_index": 0,
            "engine_count": 1,
            "output_dir": str(self.directory),
        }
        return LoadSpec(**common, **more)  # type: ignore[arg-type]  # fields by name

    def _run(self, spec: LoadSpec) -> LoadOutcome:
        return run_engines(
            [Engine(spec=spec, remote=LocalHost(), command=self.command)],
            connect_s=60,
            limit_s=_LIMIT_S,
            steadiness=Steadiness(window_s=1, tolerance=1.0),
            watch=lambda: None,
            observe=lambda _: None,
        )


def _read(outcome: LoadOutcome, *, is_open: bool) -> Figures:
    (result,) = outcome.results
    counts = {one.name: one.value for one in outcome.counters if one.iteration == 1}
    cpu_s = sum(one.cpu_s for one in result.usages if one.iteration == 1)
    done = counts["completed_in_window"]

    def times_ms(kind: str, *percentiles: float) -> list[float]:
        merged = merge(one for one in outcome.intervals if one.kind == kind and one.iteration == 1)
        return [merged.get_value_at_percentile(one) / 1000 for one in percentiles]

    p50, p99 = times_ms("service_time", 50, 99)
    late_p50, late_p99, late_max = times_ms("send_lateness", 50, 99, 100) if is_open else (0.0,) * 3
    return Figures(
        cpu_us=cpu_s / done * 1e6,
        achieved=done / MEASURED_S,
        late_ms=(late_p50, late_p99, late_max) if is_open else None,
        service_ms=(p50, p99),
        failed=counts["attempted"] - counts["completed"],
    )
