"""One Cassandra with its release's own defaults, the sensor workload's schema, and rows to read."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from case import RECORDS

from perf.config.catalog import load_catalog
from perf.hosts.remote import LocalHost
from perf.model.errors import NotReady
from perf.releases.artifacts import fetch, find_release
from perf.systems.cassandra.system import Cassandra
from perf.systems.contract import Cluster, Node, Target

_CONFIGS = Path(__file__).parents[3] / "configs"
_SYSTEM = Cassandra()
_RELEASE = "5.0.9"
_ADDRESS = "127.0.0.48"
_HEAP_MB = 1024


@contextmanager
def serve(directory: Path) -> Iterator[Target]:
    """Run it for as long as the context lasts."""
    catalog = load_catalog(_CONFIGS)
    release = find_release(_SYSTEM, _RELEASE)
    directory.mkdir()
    node = Node(
        name="node-1", index=0, address=_ADDRESS, remote=LocalHost(), work_dir=str(directory / "node-1")
    )
    cluster = Cluster(
        release=release,
        artifact=fetch(_SYSTEM, release, report=print),
        nodes=(node,),
        topology=catalog.topologies["local-one"],
        testbed=replace(catalog.testbeds["local"], jvm_options=()),
        config=replace(catalog.systems["cassandra"]["default"], heap_mb=_HEAP_MB),
    )
    limits = cluster.testbed.limits
    for step in (_SYSTEM.install, _SYSTEM.configure, _SYSTEM.start):
        step(node, cluster)
    try:
        _wait(lambda: _SYSTEM.check(cluster), limits.start_s)
        target = _SYSTEM.target(cluster, consistency="quorum", timeout_s=10.0)
        with _SYSTEM.sessions.sensor(target) as session:
            session.create_schema(RECORDS)
        yield target
    finally:
        _SYSTEM.stop(node, force=True)
        _wait(lambda: _require_gone(node), limits.stop_s)
        _SYSTEM.wipe(node)


def _require_gone(node: Node) -> None:
    if _SYSTEM.is_running(node):
        raise NotReady("stop", node.name, "still runs")


def _wait(step: Callable[[], None], limit_s: float) -> None:
    end_s = time.monotonic() + limit_s
    while True:
        try:
            return step()
        except NotReady:
            if time.monotonic() > end_s:
                raise
        time.sleep(0.1)
