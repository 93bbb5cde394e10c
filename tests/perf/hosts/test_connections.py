"""Ways to a host that are lost, shared or too narrow: proven against a real sshd on loopback."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from perf.hosts import remote
from perf.hosts.connections import SHARED
from perf.hosts.remote import SshHost, run_repeatable, running_pid
from perf.model.errors import StepFailed, TimedOut, Unreachable

# Of a command that ends the SSH session it runs in, as an operator's slip or a full memory does.
LOSE_SESSION = "kill -9 $PPID; sleep 5"


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    SHARED.close()
    yield
    SHARED.close()


def poll(condition: Callable[[], bool], limit_s: float = 10.0) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "not within the limit"
        time.sleep(0.02)


def masters(parent: int) -> list[int]:
    """Return the shared connections of a process; those of one that has ended belong to the machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            above = int((path / "stat").read_text().rsplit(") ", 1)[1].split()[1])
        except OSError:
            continue
        found += [int(path.name)] if words[:3] == [b"ssh", b"-M", b"-N"] and above == parent else []
    return found


def came_from(host: SshHost) -> str:
    """Return the client's port of the connection by which a command came."""
    return host.run(["sh", "-c", "echo $SSH_CONNECTION"]).stdout.split()[1]


def share(host: SshHost) -> str:
    """Wait until commands share a connection; give its port."""
    ports = [came_from(host)]

    def is_shared() -> bool:
        ports.append(came_from(host))
        return ports[-1] == ports[-2]

    poll(is_shared)
    return ports[-1]


def test_commands_share_one_connection(sshd: SshHost) -> None:
    port = share(sshd)
    (master,) = masters(os.getpid())
    os.kill(master, signal.SIGKILL)
    assert came_from(sshd) != port, "without it, a command connects by itself"
    assert share(sshd) != port, "and the next one is opened"
    SHARED.close()
    assert masters(os.getpid()) == []


@pytest.mark.slow
def test_what_the_operator_configured_of_shared_connections_is_set_aside(
    sshd: SshHost, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    shared = f"ControlMaster auto\nControlPath {tmp_path}/%C\nControlPersist 60\n"
    config.write_text(f"Host *\n{shared}")
    mine = replace(sshd, options=("-F", str(config), *sshd.options))
    share(mine)
    (master,) = masters(os.getpid())
    assert Path(f"/proc/{master}").exists(), "it went to the background, tied to nothing"
    assert [path.name for path in tmp_path.iterdir()] == ["config"]
    SHARED.close()
    assert masters(os.getpid()) == []


def test_what_killed_processes_left_is_swept(
    sshd: SshHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SHARED.close()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    gone, living = (tmp_path / f"knickpoint-ssh-{pid}-x" for pid in (ended.pid, os.getppid()))
    gone.mkdir()
    living.mkdir()
    sshd.run(["true"])  # which opens a shared connection
    assert not gone.exists()
    assert living.exists()
    SHARED.close()


@pytest.mark.slow
def test_a_shared_connection_ends_with_a_killed_process(sshd: SshHost) -> None:
    starter = (
        "import signal; from perf.hosts.remote import SshHost;"
        f"SshHost(*{(sshd.name, sshd.address, sshd.user, sshd.port, sshd.options)!r}).run(['true']);"
        "print('connected', flush=True); signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "connected\n"
        poll(lambda: len(masters(run.pid)) == 1)
        (master,) = masters(run.pid)
        run.kill()
    poll(lambda: not Path(f"/proc/{master}").exists())


@pytest.mark.slow
@pytest.mark.parametrize("is_shared", [False, True])
def test_a_session_that_dies_is_no_answer(sshd: SshHost, is_shared: bool) -> None:  # noqa: FBT001
    if is_shared:
        share(sshd)
    with pytest.raises(Unreachable, match="ssh failed on db1"):
        sshd.run(["sh", "-c", LOSE_SESSION], check=False)
    assert sshd.run(["echo", "here"]).stdout == "here\n"


@pytest.mark.slow
def test_what_may_run_twice_is_tried_again_once(sshd: SshHost, tmp_path: Path) -> None:
    count = tmp_path / "count"
    lose_first = f'echo >>"$1"; [ "$(wc -l <"$1")" -ge "$2" ] && exit 7; {LOSE_SESSION}'
    argv = ["sh", "-c", lose_first, "lose", str(count)]
    assert run_repeatable(sshd, [*argv, "2"], check=False).returncode == 7
    with pytest.raises(Unreachable):
        run_repeatable(sshd, [*argv, "99"])
    assert len(count.read_text().splitlines()) == 4


def test_a_client_that_is_killed_does_not_mean_that_a_process_has_ended(
    sshd: SshHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = tmp_path / "bin" / "ssh"
    killed.parent.mkdir()
    killed.write_text("#!/bin/sh\nkill -9 $$\n")
    killed.chmod(0o755)
    monkeypatch.setenv("PATH", str(killed.parent), prepend=":")
    with pytest.raises(Unreachable, match="the connection to the host was lost"):
        running_pid(sshd, str(tmp_path / "pid"))


def test_what_cannot_be_packed_unpacked_or_read_is_said(sshd: SshHost, tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match=r"copy failed on db1: .*nothing.* No such file"):
        sshd.put(tmp_path / "nothing", str(tmp_path / "far" / "nothing"))
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "large").write_bytes(bytes(3_000_000))
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    with pytest.raises(StepFailed, match="copy failed on db1"):
        sshd.put(tree, str(in_the_way))
    with pytest.raises(StepFailed, match="No such file"):
        sshd.get(str(tmp_path / "nothing"), tmp_path / "here")
    assert not list(tmp_path.glob("here*"))


@pytest.mark.slow
def test_a_copy_has_a_time_limit(
    sshd: SshHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "RUN_TIMEOUT_S", 0.5)
    os.mkfifo(tmp_path / "endless")
    with pytest.raises(TimedOut, match=r"copy failed on db1: 0 bytes had not arrived after 0 s"):
        sshd.get(str(tmp_path / "endless"), tmp_path / "here")
    assert not list(tmp_path.glob("here*"))
    # What waits on the host to read it ends with this.
    os.close(os.open(tmp_path / "endless", os.O_RDWR | os.O_NONBLOCK))


@pytest.mark.keeps("host-keys")
@pytest.mark.parametrize("known", ["another", "none"])
def test_a_host_that_shows_another_key_or_a_new_one_is_told_nothing(
    sshd: SshHost, tmp_path: Path, known: str
) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    kind, public, *_ = key.with_suffix(".pub").read_text().split()
    names = tmp_path / "known_hosts"
    names.write_text(f"[127.0.0.1]:{sshd.port} {kind} {public}\n" if known == "another" else "")
    before = names.read_text()
    options = [word for word in sshd.options if "UserKnownHostsFile" not in word]
    there = tmp_path / "it was here"
    stranger = replace(sshd, options=(*options[:-1], "-o", f"UserKnownHostsFile={names}"))
    with pytest.raises(Unreachable, match="Host key verification failed"):
        stranger.run(["touch", str(there)], stdin="pl4nted secret")
    with pytest.raises(StepFailed, match="Host key verification failed"):
        stranger.put(key, str(there))
    assert not there.exists()
    assert names.read_text() == before, "the key is not learnt"
