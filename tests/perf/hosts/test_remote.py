"""Both kinds of host offer the same verbs; the SSH one is proven against a real sshd on loopback."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from perf.hosts.remote import (
    LocalHost,
    Remote,
    SshHost,
    make_directory,
    read_tail,
    remove_tree,
    running_pid,
    send_signal,
    write_text,
)
from perf.model.errors import StepFailed, Unreachable

SLEEPER = [sys.executable, "-c", "print('up', flush=True); import signal; signal.pause()"]


def poll(condition: Callable[[], bool], limit_s: float = 10.0) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "not within the limit"
        time.sleep(0.02)


@pytest.fixture(params=["local", "ssh"])
def host(request: pytest.FixtureRequest) -> Remote:
    return LocalHost() if request.param == "local" else request.getfixturevalue("sshd")


def test_runs_a_command_with_awkward_words(host: Remote) -> None:
    words = ["a b", "$HOME", "'quoted'", "", "*", "ü"]
    done = host.run(["printf", "%s|", *words])
    assert done.stdout == "".join(f"{word}|" for word in words)


def test_a_failing_command_says_what_where_and_why(host: Remote) -> None:
    with pytest.raises(StepFailed, match=rf"sh failed on {host.name}: exit 3: no luck"):
        host.run(["sh", "-c", "echo no luck >&2; exit 3"])
    assert host.run(["sh", "-c", "exit 3"], check=False).returncode == 3


def test_a_command_that_does_not_end_is_given_up(host: Remote) -> None:
    with pytest.raises(StepFailed, match=r"no end after 0\.5 s"):
        host.run(["sleep", "20"], timeout_s=0.5)


def test_a_process_is_started_seen_and_ended(host: Remote, tmp_path: Path) -> None:
    pid_file, log = str(tmp_path / "pid"), str(tmp_path / "log")
    assert running_pid(host, pid_file) is None
    host.start(SLEEPER, pid_file=pid_file, log=log, cwd=str(tmp_path), env={"A": "b c"})
    poll(lambda: read_tail(host, log).strip() == "up")
    pid = running_pid(host, pid_file)
    assert pid is not None
    assert b"A=b c" in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    send_signal(host, pid_file, signal.SIGTERM)
    poll(lambda: running_pid(host, pid_file) is None)
    send_signal(host, pid_file, signal.SIGTERM)  # gone: nothing happens


def test_processes_are_ended_where_the_system_has_no_program_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a Debian of the smallest kind: `kill` is the shell's own there."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "cat", "setsid", "mv"):
        (programs / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(programs))
    host, pid_file = LocalHost(), str(tmp_path / "pid")
    host.start(SLEEPER, pid_file=pid_file, log=str(tmp_path / "log"), cwd=str(tmp_path))
    send_signal(host, pid_file, signal.SIGKILL)
    poll(lambda: running_pid(host, pid_file) is None)


def test_a_recycled_pid_is_not_our_process(host: Remote, tmp_path: Path) -> None:
    (tmp_path / "pid").write_text(f"{os.getpid()} 12345\n")
    assert running_pid(host, str(tmp_path / "pid")) is None
    send_signal(host, str(tmp_path / "pid"), signal.SIGKILL)  # would end this test


def test_files_and_trees_travel_both_ways(host: Remote, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "jar").write_bytes(bytes(range(256)) * 100)
    far = tmp_path / "far"
    host.put(source, str(far / "tree"))
    host.put(source / "deep" / "jar", str(far / "one.bin"))
    host.get(str(far / "tree" / "deep" / "jar"), tmp_path / "back")
    content = (source / "deep" / "jar").read_bytes()
    assert (tmp_path / "back").read_bytes() == (far / "one.bin").read_bytes() == content


def test_small_file_verbs(host: Remote, tmp_path: Path) -> None:
    deep = f"{tmp_path}/a b/c"
    make_directory(host, deep)
    write_text(host, f"{deep}/file", "one\ntwo $x\nthree\n")
    assert read_tail(host, f"{deep}/file", 2) == "two $x\nthree\n"
    assert read_tail(host, f"{deep}/none") == ""
    remove_tree(host, f"{tmp_path}/a b")
    remove_tree(host, f"{tmp_path}/a b")
    assert not (tmp_path / "a b").exists()


def test_an_unreachable_host_is_an_error_not_a_hang(sshd: SshHost) -> None:
    far = SshHost("db9", "127.0.0.1", sshd.user, 9, sshd.options)
    for check in (True, False):
        with pytest.raises(StepFailed, match=r"ssh failed on db9: connect to host .*refused"):
            far.run(["true"], check=check)
    # Out of reach must never read as "its process has ended".
    with pytest.raises(StepFailed, match="refused"):
        running_pid(far, "/some/pid")


def test_local_processes_die_with_a_killed_starter(tmp_path: Path) -> None:
    starter = (
        "import sys, signal; from perf.hosts.remote import LocalHost;"
        f"LocalHost().start({SLEEPER!r}, pid_file={str(tmp_path / 'pid')!r},"
        f" log={str(tmp_path / 'log')!r}, cwd='.');"
        "print('started', flush=True); signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "started\n"
        assert running_pid(LocalHost(), str(tmp_path / "pid")) is not None
        run.kill()
    poll(lambda: running_pid(LocalHost(), str(tmp_path / "pid")) is None)


def test_what_is_measured_gets_no_secret_and_no_option_of_the_caller_s_shell(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    unwanted = {
        *("PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "KNICKPOINT_WEBHOOK_URL"),
        *("JAVA_TOOL_OPTIONS", "LD_PRELOAD_FOR_NOBODY", "https_proxy"),
    }
    for name in unwanted:
        monkeypatch.setenv(name, "pl4nted")
    monkeypatch.setenv("LC_ALL", "C")
    host, pid_file = LocalHost(), str(tmp_path / "pid")
    host.start(SLEEPER, pid_file=pid_file, log=str(tmp_path / "log"), cwd=str(tmp_path))
    found = Path(f"/proc/{running_pid(host, pid_file)}/environ").read_text()
    send_signal(host, pid_file, signal.SIGKILL)
    child = host.child(pid_file)
    assert child is not None
    child.wait(10)
    names = {one.partition("=")[0] for one in found.split("\0")}
    assert names >= {"PATH", "LC_ALL", "KNICKPOINT_PID_FILE"}
    assert not names & unwanted


@pytest.mark.parametrize(
    "variable",
    ["KNICKPOINT_PASSWORD_TEST", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "KNICKPOINT_GITHUB_TOKEN"],
)
def test_no_command_that_is_run_to_its_end_has_a_password(
    monkeypatch: pytest.MonkeyPatch, sshd: SshHost, tmp_path: Path, variable: str
) -> None:
    planted = "pl4nted secret"
    monkeypatch.setenv(variable, planted)
    assert planted not in LocalHost().run(["env"]).stdout
    # What the clients of SSH themselves have, and the tar that packs for them.
    seen = tmp_path / "seen"
    for program in ("ssh", "tar"):
        path = tmp_path / "bin" / program
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/sh\nenv >>{seen}\nexec {shutil.which(program)} "$@"\n')
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "sent").write_text("sent")
    sshd.put(tmp_path / "sent", str(tmp_path / "there" / "sent"))
    sshd.get(str(tmp_path / "there" / "sent"), tmp_path / "back")
    assert (tmp_path / "back").read_text() == "sent"
    assert f"PATH={tmp_path}" in seen.read_text()
    assert planted not in seen.read_text()


def test_a_program_far_away_is_asked_line_by_line(sshd: SshHost) -> None:
    trips = sshd.ask(["sh", "-c", 'while read -r _; do n=$((n + 1)); echo "answer $n"; done'], 3)
    assert [trip.answer for trip in trips] == ["answer 1", "answer 2", "answer 3"]
    moments = [moment for trip in trips for moment in (trip.asked_ns, trip.answered_ns)]
    assert moments == sorted(moments)


def test_a_program_that_does_not_answer_says_why(sshd: SshHost) -> None:
    with pytest.raises(StepFailed, match="sh failed on db1: 1 answers; exit 4: gone"):
        sshd.ask(["sh", "-c", "read -r _; echo first; echo gone >&2; exit 4"], 2)
    far = SshHost("db9", "127.0.0.1", sshd.user, 9, sshd.options)
    with pytest.raises(Unreachable, match="refused"):
        far.ask(["cat"], 2)
