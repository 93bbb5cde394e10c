"""Settings that nobody would write: refused with the configuration, or nodes are configured by them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from budget import tries
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from perf.config.checks.files import ConfigFile
from perf.config.checks.systems import check_system_config
from perf.hosts.remote import LocalHost
from perf.local.document import read_document
from perf.model.design import SystemConfig, Testbed, Topology
from perf.model.errors import ConfigError
from perf.model.results import Artifact, Source
from perf.systems import registry
from perf.systems.contract import Cluster, Node
from perf.trial.servers import Servers

# What a system takes from its archive to configure a node.
SHIPPED = {
    "scylladb": {"etc/scylla/scylla.yaml": "num_tokens: 256\nworkdir: /var/lib/scylla\n"},
    "cratedb": {"config/log4j2.properties": "rootLogger.level = info\n"},
}
KEYS = {
    "cassandra": ("num_tokens", "concurrent_writes", "commitlog_sync", "memtable", "initial_token"),
    "scylladb": (
        "num_tokens",
        "command_line",
        "command_line.smp",
        "command_line.memory",
        "commitlog_sync",
        "tablets_mode_for_new_keyspaces",
    ),
    "mongodb": (
        "storage",
        "storage.wiredTiger",
        "storage.wiredTiger.engineConfig.cacheSizeGB",
        "net",
        "replication",
        "sharding",
        "setParameter",
        "systemLog.verbosity",
    ),
    "cratedb": ("processors", "memory", "indices", "node", "stats.enabled", "cluster.routing"),
}
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 1, 16, 2**31, 2**63, 10**30, 0.5, -0.0, 1e308]),
    st.sampled_from(
        ["", " ", "abc", "16", "0x10", "1e3", "~", "null", "yes", "a: b", "- a", "#", "é", "%"]
    ),
    st.text(max_size=8),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["smp", "a", "memory", "num_tokens", ""]), inner, max_size=3),
    ),
    max_leaves=5,
)
PLAIN = TypeAdapter(SystemConfig)


class Still(LocalHost):
    """This machine, on which nothing is started."""

    def start(self, argv: Any, **_: Any) -> None:  # noqa: ANN401  as `LocalHost.start`
        assert all(isinstance(word, str) for word in argv)


def is_accepted(path: Path, document: Mapping[str, Any]) -> SystemConfig | None:
    """Return a configuration that passes all checks of its file; None if one refuses it, in words."""
    path.write_text(json.dumps(document), encoding="utf-8")
    try:
        value = PLAIN.validate_json(json.dumps(read_document(path).tree))
    except (ConfigError, ValidationError):
        return None
    entry = ConfigFile(document=read_document(path), value=value)
    return None if list(check_system_config(value.system, entry, registry.databases())) else value


@pytest.mark.keeps("hostile-configs")
@pytest.mark.parametrize("system", KEYS)
@pytest.mark.parametrize("servers", [1, 3])
def test_a_setting_that_passes_configures_a_node(
    tmp_path: Path, make_testbed: Callable[..., Testbed], system: str, servers: int
) -> None:
    verbs, passed = registry.load(system), []

    def place(index: int) -> Node:
        work_dir = tmp_path / f"s{index}"
        for name, text in SHIPPED.get(system, {}).items():
            shipped = work_dir / "server" / name
            shipped.parent.mkdir(parents=True)
            shipped.write_text(text)
        work_dir.mkdir(exist_ok=True)
        return Node(
            name=f"s{index}",
            index=index,
            address=f"127.0.0.{index + 1}",
            remote=Still(),
            work_dir=str(work_dir),
        )

    cluster = Cluster(
        release=verbs.releases()[-1],
        artifact=Artifact(source=Source.ARCHIVE, sha256="ab" * 32),
        nodes=tuple(place(index) for index in range(servers)),
        topology=Topology(name="test", description="test", servers=servers, replication_factor=servers),
        testbed=make_testbed(),
        config=SystemConfig(system=system, name="hostile", description="test"),
    )

    @settings(max_examples=tries(300, 15), suppress_health_check=list(HealthCheck))
    @given(st.dictionaries(st.sampled_from(KEYS[system]), VALUES, min_size=1, max_size=2))
    def attempt(chosen: Mapping[str, Any]) -> None:
        document = {"system": system, "name": "hostile", "description": "test", "settings": chosen}
        config = is_accepted(tmp_path / "hostile.yaml", document)
        if config is None:
            return
        now = replace(cluster, config=config)
        try:
            Servers(verbs, now, None).configure()  # type: ignore[arg-type]  # it reports nothing
            for node in now.nodes:
                verbs.start(node, now)
        except ConfigError:  # what depends on the topology is found where there is one
            return
        passed.append(chosen)

    attempt()
    assert passed
