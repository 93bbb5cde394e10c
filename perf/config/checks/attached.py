"""What cannot be on a cluster that somebody else runs: another release, settings, others' tables."""

import re
from collections.abc import Iterator
from contextlib import suppress

from perf.config.checks.files import Entries
from perf.local.problems import Place
from perf.model.design import Experiment, Suite, SystemConfig, Testbed, Workload
from perf.model.errors import UsageError
from perf.model.scalars import RUNNING
from perf.model.statements import Statements, strip_cql
from perf.systems import registry
from perf.systems.contract import Attaches

_FOLLOW_UPS = ("compare_minutes", "remeasure_minutes", "bisect", "explain_minutes", "hint_minutes")
_OWN = "knickpoint"
# Of any two names with a dot between, the first is taken for a keyspace; 1.5 is a number.
_DOTTED = re.compile(r"(?P<before>\w*)\s*\.\s*(?P<after>\w*)")
# What is about tables and what belongs to them: no other statement begins so.
_WITHIN = re.compile(
    r"\s*(SELECT|INSERT|UPDATE|DELETE|BEGIN|TRUNCATE"
    r"|(CREATE|ALTER|DROP)\s+(TABLE|COLUMNFAMILY|TYPE|INDEX|CUSTOM\s+INDEX|MATERIALIZED\s+VIEW))\b",
    re.IGNORECASE,
)


def check_attached(
    at: Place, suite: Suite, experiment: Experiment, testbed: Testbed, entries: Entries
) -> Iterator[str]:
    """Insist that an experiment measures what runs on an attached cluster, and touches nothing else.

    Of other testbeds: that it chooses its releases.
    """
    if not testbed.attached:
        if RUNNING in experiment.releases:
            yield (at / "releases").fault(
                f"has {RUNNING}, but the servers of testbed {testbed.name} are deployed; name releases"
            )
        return
    if experiment.releases != (RUNNING,):
        yield (at / "releases").fault(
            f"chooses releases, but testbed {testbed.name} is attached: what runs there is measured; "
            f"say [{RUNNING}]"
        )
    with suppress(UsageError):
        if not isinstance(registry.load(experiment.system), Attaches):
            can = ", ".join(name for name in registry.names() if _can_attach(name))
            yield (at / "system").say(f"which cannot be attached; it can be: {can}")
    for follow_up in _FOLLOW_UPS:
        if getattr(suite, follow_up):
            yield at.problem(
                f"{follow_up} needs servers that are deployed, and testbed {testbed.name} is attached; "
                f"remove {follow_up} from the suite"
            )
    topology = entries.topologies.get(experiment.topology)
    if topology and topology.value and topology.value.shards:
        why = "has shards, and how an attached cluster is laid out is its own; take another topology"
        yield (at / "topology").fault(why)
    config = entries.systems.get(experiment.system, {}).get(experiment.config)
    if config and config.value:
        yield from _check_config(at, config.value)
    workload = entries.workloads.get(experiment.workload)
    if workload and workload.value:
        yield from _check_workload(at, workload.value)


def _check_config(at: Place, config: SystemConfig) -> Iterator[str]:
    """Find settings that would not reach the servers of an attached cluster."""
    for key in ("settings", "heap_mb", "jvm_options"):
        if getattr(config, key):
            yield (at / "config").say(
                f"which has {key}, and nothing of it reaches an attached cluster; take a config with "
                "`access` and `layout` alone"
            )


def _check_workload(at: Place, workload: Workload) -> Iterator[str]:
    """Find statements that would leave the trial's own keyspace."""
    records = workload.records
    if not isinstance(records, Statements) or records.language != "cql":
        return
    for steps, text in records.texts.items():
        bare = strip_cql(text)
        where = f"whose records.{'.'.join(map(str, steps))}"
        if not _WITHIN.match(bare):
            yield (at / "workload").say(
                f"{where} is about more than tables; on an attached cluster statements are those of "
                "tables, types, indexes and views, and of their rows"
            )
        for found in _DOTTED.finditer(bare):
            before, after = found["before"], found["after"]
            if before.lower() != _OWN and not (before + after).isdigit():
                yield (at / "workload").say(
                    f"{where} names {before}.{after}; on an attached cluster statements stay in the "
                    "trial's own keyspace: name tables without one"
                )


def _can_attach(name: str) -> bool:
    try:
        return isinstance(registry.load(name), Attaches)
    except UsageError:
        return False
