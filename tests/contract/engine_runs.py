"""Load engines that are run once, on servers of the contract suite."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from perf.hosts.remote import LocalHost
from perf.load.engines import Engine, run_engines
from perf.load.results.outcome import LoadOutcome
from perf.load.spec import LoadSpec
from perf.model.design import Steadiness

Counts = Counter[tuple[str, str]]
"""How often something happened, by operation and name of the counter."""


def run_specs(specs: Sequence[LoadSpec], commands: Sequence[tuple[str, ...]]) -> LoadOutcome:
    """Run an engine for each spec, all at once, by the command that belongs to it."""
    host = LocalHost()
    return run_engines(
        [
            Engine(spec=spec, remote=host, command=command)
            for spec, command in zip(specs, commands, strict=True)
        ],
        connect_s=60,
        limit_s=60,
        steadiness=Steadiness(window_s=1, tolerance=1.0),
        watch=lambda: None,
        observe=lambda _: None,
    )


def share(spec: LoadSpec, *commands: tuple[str, ...]) -> tuple[Counts, tuple[str, ...]]:
    """Let engines share what a spec says; return the sums of their counters, and their errors."""
    specs = [
        replace(
            spec,
            engine_index=index,
            engine_count=len(commands),
            output_dir=f"{spec.output_dir}-{index}",
        )
        for index in range(len(commands))
    ]
    outcome, total = run_specs(specs, commands), Counts()
    for counter in outcome.counters:
        total[counter.operation, counter.name] += counter.value
    return total, outcome.examples
