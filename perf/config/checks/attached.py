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
# A name of another keyspace before a table, or what is about more than tables.
_FOREIGN = re.compile(r"(?P<before>\w+)?\s*\.\s*[A-Za-z_]")
_BEYOND = re.compile(r"\b(KEYSPACES?|SCHEMA|ROLES?|USERS?|GRANT|REVOKE|USE)\b", re.IGNORECASE)


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
        others = [found for found in _FOREIGN.finditer(bare) if found["before"] != _OWN]
        if others or _BEYOND.search(bare):
            where = ".".join(map(str, steps))
            yield (at / "workload").say(
                f"whose records.{where} names a keyspace or a role; on an attached cluster statements "
                "stay in the trial's own keyspace: name tables without one"
            )


def _can_attach(name: str) -> bool:
    try:
        return isinstance(registry.load(name), Attaches)
    except UsageError:
        return False
