"""A load generator of the user's own (`engine: command`): it is run on the client host, and read.

Every warm-up and every iteration is a run of its own. What the program printed or wrote is read by the
importers of `knickpoint history import`; what it does not tell (how late it sent) stays unknown.
"""

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from perf.history.importers.formats import FORMATS
from perf.history.importers.run import Done, File, ForeignRun, Naming, Unreadable
from perf.hosts.leftovers import end_marked
from perf.hosts.pinning import pin
from perf.hosts.remote import (
    LocalHost,
    make_directory,
    read_tail,
    remove_tree,
    run_repeatable,
    running_pid,
    write_text,
)
from perf.hosts.testbed import Client
from perf.load.engines import Edge
from perf.load.handover import write_secret
from perf.load.results.outcome import LoadOutcome
from perf.load.results.reported import FAILED
from perf.load.spec import PASSWORD, EngineResult, Usage
from perf.model.design import Deployment, OpenLoop
from perf.model.errors import HostUnfit, StepFailed, TimedOut, Unreachable
from perf.model.program import Command, Program, fill
from perf.model.records import Answer
from perf.model.results import (
    ATTEMPTED,
    COMPLETED_IN_WINDOW,
    SENT_IN_WINDOW,
    Counter,
    Fact,
)
from perf.model.shown import printable
from perf.systems.contract import Target
from perf.systems.credentials import read_login
from perf.workloads.stages import Stage

_POLL_S, _LOCAL_POLL_S, _STOP_S = 1.0, 0.1, 3.0
_QUOTED = 400
# What it prints apart from its complaints, then what all of it used; how it ended comes last.
_RUN = '"$@" >out 2>err; code=$?; times >times; echo "$code" >code.new; mv code.new code'
# Of the second line: user and system time of what the shell has started.
_TIMES = re.compile(r"(\d+)m([\d.]+)s")
# A file by its path, or the program that PATH finds; ends with 3 if it is nowhere.
_DIGEST = """case $1 in */*) path=$1 ;; *) path=$(command -v "$1") || exit 3 ;; esac
[ -f "$path" ] || exit 3; sha256sum <"$path\""""
_FILES = ("out", "err", "times", "code", "figures", "engine.pid", "engine.log")
# Its group, for what has another environment than it was given; the leader may be gone.
_END_GROUP = 'read -r pid _ <"$1" && kill -s KILL -- "-$pid"'
_LEAST_SHARE = 0.95
"""Of its seconds: a run that was shorter did something else than it was asked."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a run ended: its exit code, how long it took, and the CPU time of all its processes."""

    code: int
    wall_s: float
    cpu_s: float


def check_program(program: Program, clients: Sequence[Client]) -> None:
    """Insist that each client host has all that the program is made of.

    Raises:
        HostUnfit: with all that is missing, and where.
        StepFailed: a host cannot be reached.

    """
    missing = [
        f"{client.remote.name}: there is no {part}"
        for client in clients
        for part in program.parts
        if not _read_digest(client, part)
    ]
    if missing:
        raise HostUnfit(
            "the workload's program cannot offer the load:\n  " + "\n  ".join(missing) + "\n"
            "install it there, or name it by its path in program.run"
        )


def read_program_facts(program: Program, client: Client) -> Iterator[Fact]:
    """Yield the SHA-256 of all that the program is made of; StepFailed if the host is out of reach."""
    for part in program.parts:
        digest = _read_digest(client, part) or "unavailable"
        yield Fact(host=client.remote.name, name=f"sha256:{part}", value=digest)


def _read_digest(client: Client, part: str) -> str:
    done = run_repeatable(client.remote, ["sh", "-c", _DIGEST, "digest", part], check=False)
    return done.stdout.split()[0] if done.returncode == 0 and done.stdout else ""


@dataclass(slots=True, kw_only=True)
class OwnProgram:
    """The program of a deployment's workload, on its client host."""

    deployment: Deployment
    target: Target
    client: Client
    watch: Callable[[], None]

    @property
    def program(self) -> Program:
        """What the workload says of it."""
        program = self.deployment.workload.program
        if program is None:
            raise ValueError(f"workload {self.deployment.workload.name} has no program")
        return program

    @property
    def _directory(self) -> str:
        return f"{self.client.engines_dir}/program"

    @property
    def _pid_file(self) -> str:
        return f"{self._directory}/engine.pid"

    def prepare(self) -> None:
        """Write its files, and run what is to be run once; StepFailed if one of it fails."""
        remove_tree(self.client.remote, self._directory)
        make_directory(self.client.remote, self._directory)
        for name, text in self.program.files.items():
            write_text(self.client.remote, f"{self._directory}/{name}", text)
        limit_s = self.deployment.testbed.limits.load_s
        for place, command in enumerate(self.program.prepare):
            ended = self._run(fill(command, self._values()), limit_s)
            if ended.code:
                raise self._failed(f"program.prepare[{place}] ended with {ended.code}")

    def offer(self, stage: Stage, iteration: int, observe: Callable[[Edge], None]) -> LoadOutcome:
        """Run the program for an iteration of a stage, or for its warm-up (0); return what it reported.

        Raises:
            StepFailed: it failed, or what it wrote cannot be read.
            TimedOut: it did not end.

        """
        seconds = stage.iteration_s if iteration else stage.warmup_s
        values = {
            **self._values(),
            "seconds": f"{seconds:g}",
            "in_flight": str(stage.load.in_flight),
            "output": f"{self._directory}/figures",
        }
        if isinstance(stage.load, OpenLoop):
            values["rate"] = f"{stage.load.offered_load_ops_per_s:g}"
        command = self.program.command(is_open=isinstance(stage.load, OpenLoop))
        limits = self.deployment.testbed.limits
        edge = Edge(phase=stage.phase, iterations=(iteration,), is_start=True)
        if iteration:
            observe(edge)
        ended = self._run(fill(command, values), limits.connect_s + seconds + limits.stop_s)
        if iteration:
            observe(replace(edge, is_start=False))
        if ended.code:
            raise self._failed(f"it ended with {ended.code}")
        if ended.wall_s < _LEAST_SHARE * seconds:
            raise self._failed(f"it ended after {ended.wall_s:.2f} s; {seconds:g} s were asked for")
        if not iteration:
            return LoadOutcome()
        is_printed = not any("{output}" in argument for argument in command)
        run = self._read("out" if is_printed else "figures")
        return self._outcome(run, stage, iteration, ended)

    def _values(self) -> Mapping[str, str]:
        target, workload = self.target, self.deployment.workload
        access = self.deployment.config.access
        return {
            "addresses": ",".join(target.addresses),
            "address": target.addresses[0],
            "port": str(target.port),
            "consistency": target.consistency.upper(),
            "seed": str(workload.seed),
            "directory": self._directory,
            "username": (access and access.username) or "",
            "password_file": f"{self._directory}/{PASSWORD}",
        }

    def _run(self, command: Command, limit_s: float) -> _Ended:
        """Run a command to its end, whatever it ends with."""
        client = self.client
        remote, cores = client.remote, client.host.cores[: self.deployment.testbed.client_cores]
        run_repeatable(remote, ["rm", "-f", *(f"{self._directory}/{name}" for name in _FILES)])
        with self._password(), self._ending():
            began_s = time.monotonic()
            remote.start(
                pin(("sh", "-c", _RUN, "program", *command), cores, client.host.numa_node),
                pid_file=self._pid_file,
                log=f"{self._directory}/engine.log",
                cwd=self._directory,
            )
            poll_s = _LOCAL_POLL_S if isinstance(remote, LocalHost) else _POLL_S
            while running_pid(remote, self._pid_file) is not None:
                self.watch()
                if time.monotonic() > began_s + limit_s:
                    why = f"{command[0]} had not ended after {limit_s:g} s"
                    raise TimedOut("program", remote.name, why, self._tail())
                time.sleep(poll_s)
            wall_s = time.monotonic() - began_s
        said = run_repeatable(remote, ["sh", "-c", 'cat "$1/code" "$1/times"', "end", self._directory])
        code, *lines = said.stdout.splitlines()
        used = _TIMES.findall(lines[1])
        cpu_s = sum(int(minutes) * 60 + float(seconds) for minutes, seconds in used)
        return _Ended(int(code), wall_s, cpu_s)

    @contextmanager
    def _password(self) -> Iterator[None]:
        """Have the password in a file that only its user may read, while the program runs."""
        access = self.deployment.config.access if self.program.asks_password else None
        if (login := read_login(access)) is None:
            yield
            return
        remote, path = self.client.remote, f"{self._directory}/{PASSWORD}"
        write_secret(remote, path, login.password)
        try:
            yield
        finally:
            run_repeatable(remote, ["rm", "-f", path])

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Leave nothing of the program running, however this ends."""
        try:
            yield
        finally:
            # Out of reach: the next trial on that host ends it.
            with suppress(Unreachable):
                remote = self.client.remote
                left = end_marked(remote, self._directory, _STOP_S)
                ending = ["sh", "-c", _END_GROUP, "end", self._pid_file]
                run_repeatable(remote, ending, check=False)
                running_pid(remote, self._pid_file)  # takes note of the end of a child
                if left:
                    raise self._failed(f"processes {', '.join(left)} of it still run after a kill")

    def _read(self, name: str) -> ForeignRun:
        """Read the figures of a run; StepFailed says what is wrong with them."""
        kind = FORMATS[self.program.figures]
        with tempfile.TemporaryDirectory(prefix="knickpoint-") as directory:
            path = Path(directory, "figures")
            self.client.remote.get(f"{self._directory}/{name}", path)
            with path.open("rb") as file:
                read = file.read(kind.most_bytes + 1)
        if len(read) > kind.most_bytes:
            raise self._failed(f"it wrote more than {kind.most_bytes} bytes of figures")
        said = Naming(times=self.program.times, unit=self.program.unit)
        text = read.decode(errors="replace")
        try:
            (run,) = kind.read(File(name=f"its {self.program.figures} figures", text=text, said=said))
        except Unreadable as why:
            raise self._failed("; ".join(why.problems[:3])) from why
        if not run.done:
            raise self._failed("its figures do not say how many operations it completed")
        return run

    def _outcome(self, run: ForeignRun, stage: Stage, iteration: int, ended: _Ended) -> LoadOutcome:
        client, cores = self.client, self.deployment.testbed.client_cores
        usage = Usage(
            phase=stage.phase,
            iteration=iteration,
            wall_s=ended.wall_s,
            cpu_s=ended.cpu_s / cores,
            waited_s=0.0,
        )
        complaint = printable(self._tail().strip().rpartition("\n")[2], _QUOTED)
        has_failed = any(one.failed for one in run.done)
        # As if each core had an engine of its own: limits of a testbed are those of one core.
        results = tuple(
            EngineResult(
                engine_index=index,
                counters=(),
                usages=(usage,),
                examples=(complaint,) if has_failed and complaint else (),
            )
            for index in range(cores)
        )
        where = {"phase": stage.phase, "iteration": iteration}
        return LoadOutcome(
            intervals=tuple(replace(one, **where) for one in run.intervals),  # type: ignore[arg-type]
            counters=tuple(_count(run.done, stage, iteration)),
            results=results,
            engine_hosts=(client.remote.name,) * cores,
            reported=tuple(replace(one, **where) for one in run.samples),  # type: ignore[arg-type]
        )

    def _failed(self, why: str) -> StepFailed:
        name = self.program.run[0]
        return StepFailed("program", self.client.remote.name, f"{name}: {why}", self._tail())

    def _tail(self) -> str:
        """Return what it last complained about, or else printed."""
        directory, remote = self._directory, self.client.remote
        tails = (read_tail(remote, f"{directory}/{name}") for name in ("err", "out", "engine.log"))
        return next((tail for tail in tails if tail.strip()), "")


def _count(done: Sequence[Done], stage: Stage, iteration: int) -> Iterator[Counter]:
    """Count as an engine would; what an open loop was to send is shared out as what it did send."""
    sent = sum(one.completed + (one.failed or 0) for one in done)
    intended: float = sent
    if isinstance(stage.load, OpenLoop):
        intended = max(sent, stage.load.offered_load_ops_per_s * stage.iteration_s)
    for one in done:
        own = one.completed + (one.failed or 0)
        counts = {
            ATTEMPTED: round(own * intended / max(sent, 1)),
            SENT_IN_WINDOW: own,
            Answer.COMPLETED.value: one.completed,
            COMPLETED_IN_WINDOW: one.completed,
        }
        if one.failed is not None:
            counts[FAILED] = one.failed
        for name, value in counts.items():
            yield Counter(
                phase=stage.phase,
                operation=one.operation,
                iteration=iteration,
                name=name,
                value=value,
            )
