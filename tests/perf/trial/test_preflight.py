import os
import socket
from pathlib import Path

import pytest

from perf.hosts.remote import LocalHost
from perf.model.design import Needs
from perf.model.errors import HostUnfit
from perf.systems.contract import Node
from perf.trial.preflight import check_hosts


def nodes(tmp_path: Path) -> tuple[Node, ...]:
    return tuple(
        Node(
            name=f"node-{i + 1}",
            index=i,
            address=f"127.0.0.{i + 1}",
            remote=LocalHost(),
            work_dir=f"{tmp_path}/not/there/yet/{i}",
        )
        for i in range(2)
    )


def test_a_fit_host_passes(tmp_path: Path) -> None:
    check_hosts(nodes(tmp_path), (1,), Needs(memory_mb=1, disk_mb=1))


def test_all_shortfalls_are_reported_at_once_with_what_to_do(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.2", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(HostUnfit) as caught:
            check_hosts(nodes(tmp_path), (port,), Needs(memory_mb=10**9, disk_mb=10**9))
    text = str(caught.value)
    assert "1000000000 MB needed; end other programs" in text
    assert "1000000000 MB needed; make room" in text
    assert f"node-2: port {port} on 127.0.0.2 is in use by pid {os.getpid()} (" in text
    assert "node-1: port" not in text
