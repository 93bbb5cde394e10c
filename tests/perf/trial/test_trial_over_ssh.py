"""A whole trial on hosts over SSH: nodes, engines, logs, cleaning up; the servers are the fake."""

import io
import shutil
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.hosts.remote import SshHost
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.design import Host
from perf.model.results import Artifact, Purpose, Source, TrialId, TrialStatus
from perf.systems.fake import system as fake
from perf.trial.harness import Order, run_trial

pytestmark = [pytest.mark.usefixtures("fake_ports"), pytest.mark.slow]

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
ADDRESSES = ("127.0.0.1", "127.0.0.2", "127.0.0.3")


def test_a_trial_over_ssh(sshd: SshHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Operators name keys in their SSH configuration; here a wrapper on PATH names them.
    wrapper = tmp_path / "bin" / "ssh"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} {" ".join(sshd.options)} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", str(wrapper.parent), prepend=":")
    far = tmp_path / "far"
    far.mkdir()
    hosts = [
        Host(
            name=f"db{number}" if role == "server" else "load1",
            address=address,
            role=role,
            user=sshd.user,
            port=sshd.port,
            work_dir=f"{far}/{role}{number}",
            python=sys.executable,
        )
        for role, addresses in (("server", ADDRESSES), ("client", ADDRESSES[:1]))
        for number, address in enumerate(addresses, start=1)
    ]
    catalog = load_catalog(CONFIGS)
    suite = catalog.suite("fake-short")
    deployment = catalog.resolve(suite, suite.experiments[0])
    testbed = replace(deployment.testbed, transport="ssh", hosts=tuple(hosts))
    deployment = replace(deployment, testbed=testbed)
    order = Order(
        trial=TrialId("n.01.over-ssh.1.0.0"),
        night="n",
        purpose=Purpose.SCHEDULED,
        deployment=deployment,
        release=fake.SYSTEM.releases()[0],
        artifact=Artifact(source=Source.BUILTIN, sha256=""),
    )
    paths = DataPaths(tmp_path / "var")
    trial = run_trial(order, fake.Fake(), paths, Progress(io.StringIO()))
    assert trial.status is TrialStatus.COMPLETED, trial.reasons
    assert {fact.host for fact in trial.environment_before} >= {"db1", "db2", "db3"}
    kept, intervals = bundle.read(paths.trials / trial.id)
    assert kept == trial
    assert intervals
    logs = sorted(path.name for path in (paths.trials / trial.id / "logs").iterdir())
    assert logs == [f"db{number}-server.log" for number in (1, 2, 3)]
    for address in ADDRESSES:
        with socket.socket() as probe:
            assert probe.connect_ex((address, fake.PORT)) != 0, "a server still answers"
