"""Run, put and get on one host: this machine, or another over SSH. The only place that knows which.

Both forms offer the same few verbs, and a process started here is identified by a pid file that also
holds the process's start time, so that a recycled pid is never signalled by mistake.
"""

import os
import shlex
import shutil
import signal as signals
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeAlias

from perf.hosts.connections import SHARED
from perf.local.children import environment, measured_environment, tie
from perf.model.errors import StepFailed, TimedOut, Unreachable

RUN_TIMEOUT_S = 60.0
# ssh says so when it failed itself; below zero, a signal has ended it.
_SSH_ITSELF_FAILED = 255
# Arguments: lines, bytes, file. A log may be one line of gigabytes.
_TAIL = 'test -f "$3" && tail -c "$2" "$3" | tail -n "$1"'
_LINE_BYTES = 1000
# Of copies: what a slow network carries, beside the time of any command.
_COPY_BYTES_PER_S = 1_000_000

# Reads "pid start-time" and prints the pid only while that very process lives (not as a zombie). Exit
# code 1 says that it does not; any other is no answer.
_ALIVE = (
    'read -r pid born <"$1" 2>/dev/null || exit 1; '
    's=$(cat "/proc/$pid/stat" 2>/dev/null) || exit 1; s="${s##*) }"; '
    'set -- $s; [ "$1" != Z ] && [ "${20}" = "$born" ] && echo "$pid"'
)
MARK = "KNICKPOINT_PID_FILE"
"""In the environment of each process that is started: its pid file. There before the pid file is, and
inherited by what it starts, so that it is found whatever interrupts its start."""
# Starts a command in a session of its own, then writes "pid start-time" in one step.
_START = (
    f"export {MARK}"
    '="$1"; pid_file=$1; log=$2; cd "$3" || exit 1; shift 3; '
    'setsid "$@" >>"$log" 2>&1 </dev/null & pid=$!; '
    's=$(cat "/proc/$pid/stat") || exit 1; s="${s##*) }"; set -- $s; '
    'echo "$pid ${20}" >"$pid_file.new" && mv "$pid_file.new" "$pid_file"'
)


@dataclass(frozen=True, slots=True)
class Completed:
    """What a finished command printed and returned."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """A line of a program far away, and when it was asked for and was here: monotonic time, in ns."""

    asked_ns: int
    answer: str
    answered_ns: int


@dataclass(slots=True)
class LocalHost:
    """This machine. Processes it starts die with the process that started them."""

    name: str = "local"
    _children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, repr=False)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = RUN_TIMEOUT_S,
        stdin: str | None = None,
        check: bool = True,
    ) -> Completed:
        """Run a command to its end; raise StepFailed on a non-zero exit if `check`."""
        return _run_here(self.name, argv, argv[0], timeout_s, stdin, check=check)

    def start(
        self,
        argv: Sequence[str],
        *,
        pid_file: str,
        log: str,
        cwd: str,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Start a process that dies with this one. Call from the main thread.

        The kernel's parent-death signal follows the *thread* that started the child.
        """
        with Path(log).open("ab") as output:
            child = subprocess.Popen(  # noqa: S603  no shell; the command is ours
                tie(argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env={**measured_environment(), **(env or {}), MARK: pid_file},
                start_new_session=True,
            )
        self._children[pid_file] = child
        born = Path(f"/proc/{child.pid}/stat").read_text().rsplit(") ", 1)[1].split()[19]
        fresh = Path(f"{pid_file}.new")
        fresh.write_text(f"{child.pid} {born}\n")
        fresh.rename(pid_file)

    def child(self, pid_file: str) -> subprocess.Popen[bytes] | None:
        """Return the process that this object itself started under `pid_file`, to be reaped."""
        return self._children.get(pid_file)

    def put(self, source: Path, target: str) -> None:
        """Copy a file or a directory tree; hard links where the file system allows them."""
        if source.is_dir():
            shutil.copytree(source, target, copy_function=_link_or_copy, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)

    def get(self, source: str, target: Path) -> None:
        """Copy a file."""
        shutil.copy2(source, target)


def _link_or_copy(source: str, target: str) -> None:
    Path(target).unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@dataclass(frozen=True, slots=True)
class SshHost:
    """Another machine, through the OpenSSH client with the operator's own configuration and keys.

    Host keys are checked as that configuration says; no password is ever asked for.
    """

    name: str
    address: str
    user: str | None = None
    port: int = 22
    options: tuple[str, ...] = ()

    def _ssh(self) -> tuple[str, ...]:
        destination = f"{self.user}@{self.address}" if self.user else self.address
        return (
            "ssh",
            *("-o", "BatchMode=yes", "-o", "ConnectTimeout=10"),
            *("-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3"),
            *self.options,
            *("-p", str(self.port), destination),
        )

    @contextmanager
    def _connection(self) -> Iterator[list[str]]:
        """Yield how a command reaches the host; what fails on the way ends the shared connection."""
        ssh = self._ssh()
        try:
            yield [*ssh[:1], *SHARED.options(ssh), *ssh[1:], "--"]
        except (Unreachable, TimedOut):
            SHARED.drop(ssh)
            raise
        SHARED.open(ssh)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = RUN_TIMEOUT_S,
        stdin: str | None = None,
        check: bool = True,
    ) -> Completed:
        """Run a command to its end; raise StepFailed on a non-zero exit if `check`.

        Raises:
            Unreachable: ssh itself failed: the command may have run, in part, wholly or not at all.

        """
        with self._connection() as ssh:
            done = _run_here(
                self.name, [*ssh, shlex.join(argv)], argv[0], timeout_s, stdin, check=False
            )
            self._check_reached(done.returncode, done.stderr)
        if check and done.returncode:
            raise StepFailed(argv[0], self.name, _describe_failure(done))
        return done

    def ask(self, argv: Sequence[str], times: int) -> tuple[RoundTrip, ...]:
        """Start a program that answers each line with a line, and ask it so often, one after the other.

        The connection is that of one command, so that a round trip costs no more than the way.
        """
        with self._connection() as ssh:
            found, done = _ask([*ssh, shlex.join(argv)], times)
            self._check_reached(done.returncode, done.stderr)
        if done.returncode or len(found) < times:
            raise StepFailed(argv[0], self.name, f"{len(found)} answers; {_describe_failure(done)}")
        return found

    def _check_reached(self, returncode: int, stderr: str) -> None:
        # A host out of reach must never read as "the process there has ended".
        if returncode == _SSH_ITSELF_FAILED or returncode < 0:
            said = stderr.strip()[-2000:].removeprefix("ssh: ")
            raise Unreachable("ssh", self.name, said or "the connection to the host was lost")

    def start(
        self,
        argv: Sequence[str],
        *,
        pid_file: str,
        log: str,
        cwd: str,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Start a process that outlives the SSH session; Ctrl-C waits until its pid file is written."""
        words = [*(["env"] if env else []), *(f"{k}={v}" for k, v in (env or {}).items()), *argv]
        before = signals.pthread_sigmask(signals.SIG_BLOCK, {signals.SIGINT, signals.SIGTERM})
        try:
            self.run(["sh", "-c", _START, "start", pid_file, log, cwd, *words])
        finally:
            signals.pthread_sigmask(signals.SIG_SETMASK, before)

    def put(self, source: Path, target: str) -> None:
        """Copy a file or a directory tree as a tar stream."""
        parent, name = (str(source), ".") if source.is_dir() else (str(source.parent), source.name)
        where = target if source.is_dir() else str(Path(target).parent)
        unpack = shlex.join(["sh", "-c", 'mkdir -p "$1" && tar -xf - -C "$1"', "put", where])
        size = sum(path.lstat().st_size for path in (source, *source.rglob("*")) if path.is_file())
        with self._connection() as ssh, tempfile.TemporaryFile() as complaints:
            with subprocess.Popen(  # noqa: S603  no shell; the command is ours
                ["tar", "-cf", "-", "-C", parent, name],  # noqa: S607  tar of the system
                stdout=subprocess.PIPE,
                stderr=complaints,
                env=environment(),
            ) as packing:
                done = _copy(self.name, [*ssh, unpack], size, stdin=packing.stdout)
            # Leaving has closed the pipe: tar does not wait for a host that takes no more.
            complaints.seek(0)
            why = done.stderr.strip() or complaints.read().decode(errors="replace").strip()
            self._check_reached(done.returncode, why)
        if done.returncode or packing.returncode:
            raise StepFailed("copy", self.name, f"{source} → {where}: {why}")
        if not source.is_dir() and Path(target).name != name:
            self.run(["mv", f"{where}/{name}", target])

    def get(self, source: str, target: Path) -> None:
        """Copy a file; a partial copy is never left under its final name."""
        size = int(run_repeatable(self, ["stat", "-Lc", "%s", source]).stdout)
        fresh = target.with_name(f"{target.name}.part")
        try:
            with self._connection() as ssh, fresh.open("wb") as output:
                done = _copy(self.name, [*ssh, shlex.join(["cat", source])], size, stdout=output)
                self._check_reached(done.returncode, done.stderr)
            if done.returncode:
                raise StepFailed("copy", self.name, f"{source}: {done.stderr.strip()}")
            fresh.rename(target)
        finally:
            fresh.unlink(missing_ok=True)


Remote: TypeAlias = LocalHost | SshHost
"""A host on which commands run and files lie. `name` appears in messages."""


def _ask(command: Sequence[str], times: int) -> tuple[tuple[RoundTrip, ...], Completed]:
    """Ask a program until it has answered so often, or says no more; it has the time of any command."""
    found: list[RoundTrip] = []
    with (
        tempfile.TemporaryFile() as complaints,
        subprocess.Popen(  # noqa: S603  no shell; the command is ours
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env=environment(),
        ) as child,
    ):
        limit = threading.Timer(RUN_TIMEOUT_S, child.kill)
        limit.start()
        try:
            while len(found) < times:
                asked_ns = time.monotonic_ns()
                os.write(child.stdin.fileno(), b"\n")  # type: ignore[union-attr]  # it is a pipe
                answer = child.stdout.readline()  # type: ignore[union-attr]  # it is a pipe
                answered_ns = time.monotonic_ns()
                if not answer.endswith(b"\n"):
                    break
                found.append(RoundTrip(asked_ns, answer.decode(errors="replace").strip(), answered_ns))
            child.communicate()
        except BrokenPipeError:
            child.wait()
        except BaseException:
            child.kill()
            raise
        finally:
            limit.cancel()
        complaints.seek(0)
        said = complaints.read().decode(errors="replace")
    return tuple(found), Completed(child.returncode, "", said)


def _copy(
    host: str,
    command: Sequence[str],
    size: int,
    *,
    stdin: IO[bytes] | None = None,
    stdout: IO[bytes] | None = None,
) -> Completed:
    """Run a command that carries about `size` bytes, within a time that fits them."""
    limit_s = RUN_TIMEOUT_S + size / _COPY_BYTES_PER_S
    try:
        done = subprocess.run(  # noqa: S603  no shell; the command is ours
            list(command),
            stdin=stdin or subprocess.DEVNULL,
            stdout=stdout or subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment(),
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimedOut("copy", host, f"{size} bytes had not arrived after {limit_s:.0f} s") from error
    return Completed(done.returncode, "", done.stderr.decode(errors="replace"))


def _run_here(
    host: str,
    command: Sequence[str],
    what: str,
    timeout_s: float,
    stdin: str | None,
    *,
    check: bool,
) -> Completed:
    try:
        done = subprocess.run(  # noqa: S603  no shell; the command is ours
            list(command),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment(),
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise StepFailed(what, host, f"command not found: {error.filename}") from error
    except subprocess.TimeoutExpired as error:
        raise TimedOut(what, host, f"no end after {timeout_s:g} s") from error
    completed = Completed(done.returncode, done.stdout, done.stderr)
    if check and done.returncode:
        raise StepFailed(what, host, _describe_failure(completed))
    return completed


def _describe_failure(done: Completed) -> str:
    return f"exit {done.returncode}: {done.stderr.strip()[-2000:]}"


def code_here() -> dict[str, str]:
    """Return the environment in which a Python on this machine runs the very code that runs here."""
    return {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def run_repeatable(
    remote: Remote, argv: Sequence[str], *, stdin: str | None = None, check: bool = True
) -> Completed:
    """Run a command that may run twice without harm; once more if the way to its host was lost.

    Raises:
        Unreachable: it was lost again.
        StepFailed: the command failed, if `check`.

    """
    try:
        return remote.run(argv, stdin=stdin, check=check)
    except Unreachable:
        return remote.run(argv, stdin=stdin, check=check)


def make_directory(remote: Remote, path: str) -> None:
    """Create a directory and its parents."""
    run_repeatable(remote, ["mkdir", "-p", path])


def remove_tree(remote: Remote, path: str) -> None:
    """Remove a directory tree if it exists."""
    remote.run(["rm", "-rf", "--one-file-system", path], timeout_s=300)


def write_text(remote: Remote, path: str, text: str) -> None:
    """Write a small text file in one step."""
    argv = ["sh", "-c", 'cat >"$1.new" && mv "$1.new" "$1"', "write", path]
    run_repeatable(remote, argv, stdin=text)


def read_tail(remote: Remote, path: str, lines: int = 40) -> str:
    """Return the last lines of a text file, or nothing if there is none.

    Of lines that are longer than any that people read, no more than the end is given.
    """
    argv = ["sh", "-c", _TAIL, "tail", str(lines), str(lines * _LINE_BYTES), path]
    return run_repeatable(remote, argv, check=False).stdout


def running_pid(remote: Remote, pid_file: str) -> int | None:
    """Return the pid of the process behind `pid_file` while it lives, else None.

    Raises:
        StepFailed: the host cannot be asked, which says nothing about the process.

    """
    if isinstance(remote, LocalHost) and (known := remote.child(pid_file)) is not None:
        return known.pid if known.poll() is None else None
    answer = run_repeatable(remote, ["sh", "-c", _ALIVE, "alive", pid_file], check=False)
    if answer.returncode not in {0, 1}:
        raise StepFailed("look", remote.name, f"{pid_file}: {_describe_failure(answer)}")
    return int(answer.stdout) if answer.returncode == 0 else None


def send_signal(remote: Remote, pid_file: str, signal: signals.Signals) -> None:
    """Signal the process behind `pid_file` and its session's group; do nothing if it is gone."""
    pid = running_pid(remote, pid_file)
    if pid is not None:
        # By the shell's own: a small system has no program of that name.
        argv = ["sh", "-c", 'kill -s "$1" -- "-$2"', "signal", str(signal.value), str(pid)]
        run_repeatable(remote, argv, check=False)
