"""The whole playbook against a Debian of its own, booted with systemd: it prepares it, once."""

import http.server
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from ansible_site import (
    ROOT,
    Site,
    await_port,
    free_port,
    make_keys,
    write_site,
    write_ssh_config,
)
from needs import need

pytestmark = pytest.mark.slow

PACKAGES = "systemd,systemd-sysv,dbus,openssh-server,python3,python3-apt,sudo,ca-certificates"
TOKEN = "planted"  # noqa: S105  nobody's
# Stands in for the runner of GitHub: one job, which leaves behind what a job must not.
RUN = """#!/bin/sh
left=$(ls /tmp /var/tmp | grep -c planted)
stayed=$(pgrep -c -f 'sleep 98765')
touch ~/../../.ssh/planted 2>/dev/null && home=open || home=shut
found="left=$left stayed=$stayed ssh=$home $(sudo -n true 2>&1 | head -n 1)"
echo "$ACTIONS_RUNNER_INPUT_JITCONFIG as $(id -un): $found" >>"$KNICKPOINT_DATA/jobs"
setsid sleep 98765 &
touch /tmp/planted /var/tmp/planted ~/planted
"""


@dataclass
class GitHub:
    """Gives the runner's archive, and a configuration to whoever has the token."""

    archive: bytes
    asked: list[tuple[str, Any]] = field(default_factory=list)
    port: int = 0

    def serve(self) -> Iterator["GitHub"]:
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer(200, outer.archive)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                may = self.headers["Authorization"] == f"Bearer {TOKEN}"
                outer.asked.append((self.path, body))
                config = f"config-{len(outer.asked)}"
                self.answer(201 if may else 401, json.dumps({"encoded_jit_config": config}).encode())

            def answer(self, code: int, body: bytes) -> None:
                self.send_response(code)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            self.port = server.server_port
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield self
            server.shutdown()


@pytest.fixture
def github() -> Iterator[GitHub]:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo("run.sh")
        entry.size, entry.mode = len(RUN), 0o755
        archive.addfile(entry, io.BytesIO(RUN.encode()))
    yield from GitHub(packed.getvalue()).serve()


@dataclass(frozen=True)
class Machine:
    root: Path
    port: int


@pytest.fixture
def debian(tmp_path: Path) -> Iterator[Machine]:
    """Make a small Debian and boot it in namespaces of its own, with sshd on 127.0.0.1 and .2."""
    need(shutil.which("debootstrap"), "install debootstrap")
    need(shutil.which("systemd-nspawn"), "install systemd-container")
    need(os.geteuid() == 0, "booting a Debian in namespaces needs root")
    root, port = tmp_path / "root", free_port()
    command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(root)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    make_keys(tmp_path)
    write_ssh_config(tmp_path, ("127.0.0.1", "127.0.0.2"), port)
    (root / "root/.ssh").mkdir(mode=0o700, exist_ok=True)
    shutil.copy(tmp_path / "user.pub", root / "root/.ssh/authorized_keys")
    shutil.copy(tmp_path / "host", root / "etc/ssh/ssh_host_ed25519_key")
    shutil.copy(tmp_path / "host.pub", root / "etc/ssh/ssh_host_ed25519_key.pub")
    listen = f"Port {port}\nListenAddress 127.0.0.1\nListenAddress 127.0.0.2\n"
    (root / "etc/ssh/sshd_config.d/00-listen.conf").write_text(listen)
    # Its clock is this machine's, so that its chrony only looks.
    (root / "etc/default/chrony").write_text('DAEMON_OPTS="-F 1 -x"\n')
    # It reaches what this machine reaches, in the same way.
    for file in ("etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt", "etc/pip.conf"):
        if (Path("/") / file).exists():
            (root / file).unlink(missing_ok=True)
            shutil.copy(Path("/") / file, root / file)
    with (tmp_path / "boot.log").open("wb") as log:
        options = ["--boot", "--register=no", "--keep-unit", f"--machine=kp-{port}", "--console=pipe"]
        command = ["systemd-nspawn", "-D", str(root), *options, "--capability=CAP_SYS_TIME"]
        booted = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        await_port("127.0.0.1", port, 60)
        yield Machine(root, port)
    finally:
        booted.terminate()
        booted.wait(timeout=60)


def write_whole_site(home: Path, machine: Machine, github: GitHub) -> Site:
    place = {"ansible_host": "127.0.0.1", "ansible_port": machine.port}
    variables = {
        # Debian 12 has no Java 11; the role's default says what to do then.
        "java_jdks": [{"major": 17, "package": "openjdk-17-jdk-headless", "version": ""}],
        "runner_scope": "orgs/example",
        "runner_api": f"http://127.0.0.1:{github.port}",
        "runner_url": f"http://127.0.0.1:{github.port}/runner.tar.gz",
        "runner_version": "0.0.1",
        "runner_sha256": sha256(github.archive).hexdigest(),
    }
    # The wheel is of a tree that nobody edits meanwhile.
    leave = shutil.ignore_patterns(".*", "var", "tests", "docs", "__pycache__")
    shutil.copytree(ROOT, home / "checkout", ignore=leave)
    groups = {
        "runners": {"hosts": {"runner-1": place}},
        "token_holders": {"hosts": {"control-1": place}},
    }
    host = {"user": "knickpoint", "work_dir": "/var/lib/knickpoint"}
    return write_site(home, machine.port, {}, variables, groups, host)


def changes(said: str) -> dict[str, int]:
    return {
        name: int(count)
        for name, count in re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+)", said, re.MULTILINE)
    }


def await_jobs(file: Path, count: int) -> list[str]:
    end = time.monotonic() + 90
    while True:
        jobs = file.read_text().splitlines() if file.exists() else []
        if len(jobs) >= count:
            return jobs
        assert time.monotonic() < end, f"{len(jobs)} jobs ran"
        time.sleep(0.2)


def test_prepares_a_host_once_and_runs_jobs_one_by_one(
    tmp_path: Path, debian: Machine, github: GitHub
) -> None:
    site = write_whole_site(tmp_path, debian, github)
    # Settings of the kernel are this machine's; test_agreement.py applies those. All hosts are one
    # machine, so that they are prepared in turn.
    whole = ("--skip-tags", "tune", "--forks", "1", "-e", f"checkout={tmp_path}/checkout")

    # Without the token, it says where to put it, and nobody runs a job.
    said = site.play("--tags", "runner", code=2)
    assert "put the token into /etc/knickpoint-jit/token" in said
    token = debian.root / "etc/knickpoint-jit/token"
    token.write_text(TOKEN)
    shutil.chown(token, token.parent.stat().st_uid, token.parent.stat().st_gid)
    token.chmod(0o440)

    # An archive that is not the official one is not unpacked.
    wrong = {"runner_sha256": "0" * 63 + "1"}
    assert "did not match" in site.play("--tags", "runner", variables=wrong, code=2)
    assert not list((debian.root / "opt/actions-runner/0.0.1").iterdir())
    assert github.asked == []

    changed = changes(site.play(*whole))
    assert all(changed[name] > 0 for name in ("db-1", "load-1", "runner-1"))
    jobs = await_jobs(debian.root / "var/lib/knickpoint-data/jobs", 2)
    for number, job in enumerate(jobs[:2], start=1):
        assert job.startswith(f"config-{number} as knickpoint-runner: left=0 stayed=0 ssh=shut sudo:")
        assert "no new privileges" in job
    path, body = github.asked[0]
    assert path == "/orgs/example/actions/runners/generate-jitconfig"
    assert body["runner_group_id"] == 1
    assert body["work_folder"] == "_work"
    assert TOKEN not in (debian.root / "var/lib/knickpoint-data/jobs").read_text()

    assert changes(site.play(*whole)) == {"control-1": 0, "db-1": 0, "load-1": 0, "runner-1": 0}

    # And what check mode says of a host that is as it is to be is nothing, until it is not any more.
    (debian.root / "etc/sudoers.d/knickpoint").unlink()
    said = site.play("--tags", "base", "--limit", "db-1", "--check")
    assert changes(said) == {"db-1": 1}
    assert "TASK [base : Let the account tune this host, and do nothing else as root]" in said
