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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from perf.errors import StepFailed

RUN_TIMEOUT_S = 60.0
# A host out of reach must never read as "the process there has ended".
_SSH_ITSELF_FAILED = 255

# Reads "pid start-time" and prints the pid only while that very process lives (not as a zombie).
_ALIVE = (
    'read -r pid born <"$1" 2>/dev/null || exit 1; '
    's=$(cat "/proc/$pid/stat" 2>/dev/null) || exit 1; s="${s##*) }"; '
    'set -- $s; [ "$1" != Z ] && [ "${20}" = "$born" ] && echo "$pid"'
)
# Starts a command in a session of its own, then writes "pid start-time" in one step.
_START = (
    'pid_file=$1; log=$2; cd "$3" || exit 1; shift 3; '
    'setsid "$@" >>"$log" 2>&1 </dev/null & pid=$!; '
    's=$(cat "/proc/$pid/stat") || exit 1; s="${s##*) }"; set -- $s; '
    'echo "$pid ${20}" >"$pid_file.new" && mv "$pid_file.new" "$pid_file"'
)
# Local processes die with the process that started them, so that a killed Knickpoint leaves nothing
# behind: PR_SET_PDEATHSIG is 1, SIGKILL is 9. The parent is compared to close the race at the start.
_DIE_WITH_PARENT = (
    "import ctypes,os,sys;"
    "ctypes.CDLL(None).prctl(1,9,0,0,0);"
    "os.getppid()==int(sys.argv[1]) or os._exit(1);"
    "os.execvp(sys.argv[2],sys.argv[2:])"
)


@dataclass(frozen=True, slots=True)
class Completed:
    """What a finished command printed and returned."""

    returncode: int
    stdout: str
    stderr: str


class Remote(Protocol):
    """A host on which commands run and files lie. `name` appears in messages."""

    @property
    def name(self) -> str:
        """The host's name in messages."""
        ...

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = RUN_TIMEOUT_S,
        stdin: str | None = None,
        check: bool = True,
    ) -> Completed:
        """Run a command to its end; raise StepFailed on a non-zero exit if `check`."""
        ...

    def start(
        self,
        argv: Sequence[str],
        *,
        pid_file: str,
        log: str,
        cwd: str,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Start a long-lived process whose output is appended to `log`; write `pid_file`."""
        ...

    def put(self, source: Path, target: str) -> None:
        """Copy a file or a directory tree from this machine to the host."""
        ...

    def get(self, source: str, target: Path) -> None:
        """Copy a file from the host to this machine."""
        ...


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
        guarded = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *argv]
        with Path(log).open("ab") as output:
            child = subprocess.Popen(  # noqa: S603  no shell; the command is ours
                guarded,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        self._children[pid_file] = child
        born = Path(f"/proc/{child.pid}/stat").read_text().rsplit(") ", 1)[1].split()[19]
        fresh = Path(f"{pid_file}.new")
        fresh.write_text(f"{child.pid} {born}\n")
        fresh.rename(pid_file)

    def child(self, pid_file: str) -> subprocess.Popen[bytes] | None:
        """Give the process that this object itself started under `pid_file`, to be reaped."""
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

    def _ssh(self) -> list[str]:
        destination = f"{self.user}@{self.address}" if self.user else self.address
        return [
            "ssh",
            *("-o", "BatchMode=yes", "-o", "ConnectTimeout=10"),
            *("-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3"),
            *self.options,
            *("-p", str(self.port), destination, "--"),
        ]

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = RUN_TIMEOUT_S,
        stdin: str | None = None,
        check: bool = True,
    ) -> Completed:
        """Run a command to its end; raise StepFailed on a non-zero exit if `check`."""
        command = [*self._ssh(), shlex.join(argv)]
        done = _run_here(self.name, command, argv[0], timeout_s, stdin, check=False)
        if done.returncode == _SSH_ITSELF_FAILED or (check and done.returncode):
            raise StepFailed(argv[0], self.name, _describe_failure(done))
        return done

    def start(
        self,
        argv: Sequence[str],
        *,
        pid_file: str,
        log: str,
        cwd: str,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Start a process that outlives the SSH session."""
        words = [*(["env"] if env else []), *(f"{k}={v}" for k, v in (env or {}).items()), *argv]
        self.run(["sh", "-c", _START, "start", pid_file, log, cwd, *words])

    def put(self, source: Path, target: str) -> None:
        """Copy a file or a directory tree as a tar stream."""
        parent, name = (str(source), ".") if source.is_dir() else (str(source.parent), source.name)
        where = target if source.is_dir() else str(Path(target).parent)
        unpack = shlex.join(["sh", "-c", 'mkdir -p "$1" && tar -xf - -C "$1"', "put", where])
        with subprocess.Popen(  # noqa: S603  no shell; the command is ours
            ["tar", "-cf", "-", "-C", parent, name],  # noqa: S607  tar of the system
            stdout=subprocess.PIPE,
        ) as packing:
            done = subprocess.run(  # noqa: S603  no shell; the command is ours
                [*self._ssh(), unpack],
                stdin=packing.stdout,
                capture_output=True,
                text=True,
                timeout=1800,
                check=False,
            )
        if done.returncode or packing.returncode:
            raise StepFailed("copy", self.name, f"{source} → {where}: {done.stderr.strip()}")
        if not source.is_dir() and Path(target).name != name:
            self.run(["mv", f"{where}/{name}", target])

    def get(self, source: str, target: Path) -> None:
        """Copy a file; a partial copy is never left under its final name."""
        fresh = target.with_name(f"{target.name}.part")
        with fresh.open("wb") as output:
            done = subprocess.run(  # noqa: S603  no shell; the command is ours
                [*self._ssh(), shlex.join(["cat", source])],
                stdout=output,
                stderr=subprocess.PIPE,
                timeout=1800,
                check=False,
            )
        if done.returncode:
            fresh.unlink()
            raise StepFailed("copy", self.name, f"{source}: {done.stderr.decode().strip()}")
        fresh.rename(target)


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
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise StepFailed(what, host, f"command not found: {error.filename}") from error
    except subprocess.TimeoutExpired as error:
        raise StepFailed(what, host, f"no end after {timeout_s:g} s") from error
    completed = Completed(done.returncode, done.stdout, done.stderr)
    if check and done.returncode:
        raise StepFailed(what, host, _describe_failure(completed))
    return completed


def _describe_failure(done: Completed) -> str:
    return f"exit {done.returncode}: {done.stderr.strip()[-2000:]}"


def code_here() -> dict[str, str]:
    """Give the environment in which a Python on this machine runs the very code that runs here."""
    return {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def make_directory(remote: Remote, path: str) -> None:
    """Create a directory and its parents."""
    remote.run(["mkdir", "-p", path])


def remove_tree(remote: Remote, path: str) -> None:
    """Remove a directory tree if it exists."""
    remote.run(["rm", "-rf", "--one-file-system", path], timeout_s=300)


def write_text(remote: Remote, path: str, text: str) -> None:
    """Write a small text file in one step."""
    remote.run(["sh", "-c", 'cat >"$1.new" && mv "$1.new" "$1"', "write", path], stdin=text)


def read_tail(remote: Remote, path: str, lines: int = 40) -> str:
    """Give the last lines of a text file, or nothing if there is none."""
    return remote.run(["tail", "-n", str(lines), path], check=False).stdout


def running_pid(remote: Remote, pid_file: str) -> int | None:
    """Give the pid of the process behind `pid_file` while it lives, else None."""
    if isinstance(remote, LocalHost) and (known := remote.child(pid_file)) is not None:
        return known.pid if known.poll() is None else None
    answer = remote.run(["sh", "-c", _ALIVE, "alive", pid_file], check=False).stdout.strip()
    return int(answer) if answer else None


def send_signal(remote: Remote, pid_file: str, signal: signals.Signals) -> None:
    """Signal the process behind `pid_file` and its session's group; do nothing if it is gone."""
    pid = running_pid(remote, pid_file)
    if pid is not None:
        remote.run(["kill", f"-{signal.value}", "--", f"-{pid}"], check=False)
