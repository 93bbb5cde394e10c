"""Whole trials of which something breaks while they run: a test says what, and at which moment.

`Disturbed.run` measures one trial on this machine and does the deed once, in a thread of its own, when
its moment has come. Servers and engines are found by the pid files of that data directory alone.
"""

import io
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from needs import need

from perf.config.catalog import load_catalog
from perf.load.spec import PROGRESS
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.design import ClosedLoop, Deployment, Measurement, OpenLoop, Workload
from perf.model.results import Artifact, Purpose, Release, Source, Trial, TrialId
from perf.systems.contract import System
from perf.systems.fake import system as fake
from perf.trial.harness import Order, run_trial

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
# Of this process alone: others may run the same tests beside it.
NETWORK = f"127.71.{os.getpid() % 250}."
_POLL_S = 0.01
_LIMIT_S = 60.0


class Moment(StrEnum):
    """When something breaks; the value is what the progress of a trial says just before."""

    START = ": start on "
    PRELOAD = "load: "
    WARM_UP = "saturation: "
    MEASUREMENT = "measure iteration 1"


Deed = Callable[["Disturbed"], None]


class _Heard(io.StringIO):
    """A stream of progress that sets an event when a text has come by."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self.event = threading.Event()

    def write(self, text: str) -> int:
        if self._text in text:
            self.event.set()
        return super().write(text)


def change_load(
    workload: Workload,
    *,
    seconds: float,
    rate: float | None = None,
    timeout_s: float = 3.0,
    rows_per_device: int = 20,
) -> Workload:
    """Return a workload with a preload, a short warm-up and one iteration of `seconds`, at most."""
    load: ClosedLoop | OpenLoop = ClosedLoop(kind="closed", in_flight=4)
    if rate is not None:
        load = OpenLoop(kind="open", offered_load_ops_per_s=rate, in_flight=16)
    phase = Measurement(
        name="saturation",
        load=load,
        warmup_s=seconds / 2,
        warmup_cap_s=seconds / 2,
        iteration_s=seconds,
        iterations=1,
    )
    return replace(
        workload,
        measurements=(phase,),
        preload_rows_per_device=rows_per_device,
        operation_timeout_s=timeout_s,
    )


def deploy_fake(
    settings: Mapping[str, Any] | None = None,
    limits: Mapping[str, float] | None = None,
    **load: Any,  # noqa: ANN401  the arguments of change_load
) -> Deployment:
    """Return three nodes of the fake, on addresses that no other test has; answers take 5 ms."""
    catalog = load_catalog(CONFIGS)
    suite = catalog.suite("fake-short")
    deployment = catalog.resolve(suite, suite.experiments[0])
    testbed = deployment.testbed
    hosts = (replace(one, address=one.address.replace("127.0.0.", NETWORK)) for one in testbed.hosts)
    return replace(
        deployment,
        config=replace(deployment.config, settings={"service_time_ms": 5, **(settings or {})}),
        testbed=replace(
            testbed,
            hosts=tuple(hosts),
            limits=replace(testbed.limits, **(limits or {})),
        ),
        workload=change_load(deployment.workload, **{"seconds": 3.0, **load}),
    )


@dataclass
class Disturbed:
    """A data directory, and trials in it one after the other."""

    paths: DataPaths
    deployment: Deployment
    system: System = field(default_factory=fake.Fake)
    release: Release = field(default_factory=lambda: fake.SYSTEM.releases()[0])
    artifact: Artifact = field(default_factory=lambda: Artifact(source=Source.BUILTIN, sha256=""))
    said: str = field(init=False, default="")
    took_s: float = field(init=False, default=0.0)
    """From the deed to the end of the trial."""
    _trials: int = field(init=False, default=0)

    def run(self, moment: Moment | None = None, deed: Deed = lambda _: None) -> Trial:
        """Measure one trial and do the deed in it. Call from the main thread, which starts servers."""
        self._trials += 1
        order = Order(
            trial=TrialId(f"n.{self._trials:02d}.disturbed"),
            night="n",
            purpose=Purpose.SCHEDULED,
            deployment=self.deployment,
            release=self.release,
            artifact=self.artifact,
        )
        heard, failures = _Heard(moment or "\0"), list[Exception]()
        is_over = threading.Event()

        def disturb() -> None:
            heard.event.wait()
            try:
                if moment and not is_over.is_set():
                    self._await(moment)
                    self.took_s = -time.monotonic()
                    deed(self)
            except Exception as error:  # noqa: BLE001  the main thread raises it
                failures.append(error)

        thread = threading.Thread(target=disturb)
        thread.start()
        try:
            return run_trial(order, self.system, self.paths, Progress(heard))
        finally:
            self.took_s += time.monotonic()
            is_over.set()
            heard.event.set()
            thread.join()
            self.said = heard.getvalue()
            for failure in failures:
                raise failure

    def _await(self, moment: Moment) -> None:
        """Wait until what was announced goes on: servers run, or an engine counts its first second."""
        if moment is Moment.START:
            await_that(self._server_file("node-1").exists)
        elif moment is not Moment.MEASUREMENT:
            progress = self.paths.run / "engines" / "0" / PROGRESS
            is_warm_up = moment is Moment.WARM_UP
            spec = progress.with_name("spec.json")
            # The files of one engine are gone before the next one starts.
            await_that(lambda: progress.exists() and ("saturation" in spec.read_text()) is is_warm_up)

    def _server_file(self, name: str) -> Path:
        return self.paths.run / self.system.name / name / "server.pid"

    def find(self, name: str) -> int:
        """Return the pid of a node's server, or of `engine`."""
        path = self.paths.run / "engines" / "0" / "engine.pid"
        return int((path if name == "engine" else self._server_file(name)).read_text().split()[0])

    def leftovers(self) -> list[str]:
        """Name what is left of nodes and engines: processes that live, directories of nodes."""
        left = [str(path) for path in (self.paths.run / self.system.name).glob("node-*")]
        home = os.fsencode(self.paths.run.absolute())
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                if home in (words := path.read_bytes()):
                    left.append(f"{path.parent.name}: {words!r}")
        return left


def await_that(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds; a file that is not there yet does not hold it."""
    end_s = time.monotonic() + _LIMIT_S
    while True:
        with suppress(FileNotFoundError):
            if condition():
                return
        assert time.monotonic() < end_s, "its moment never came"
        time.sleep(_POLL_S)


def kill(name: str) -> Deed:
    """Return a deed that kills a node, or the engine."""
    return lambda trial: os.kill(trial.find(name), signal.SIGKILL)


def pause(name: str, seconds: float | None = None) -> Deed:
    """Return a deed that stops a node or the engine, for so long or for ever."""

    def stop(trial: Disturbed) -> None:
        pid = trial.find(name)
        os.kill(pid, signal.SIGSTOP)
        if seconds is not None:
            time.sleep(seconds)
            os.kill(pid, signal.SIGCONT)

    return stop


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[None]:
    """Let a directory be a file system of its own, of so much; needs root."""
    need(os.geteuid() == 0, "a small file system needs root")
    path.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "knickpoint-tests", str(path)]
    subprocess.run(mount, check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(path)], check=True)


@contextmanager
def cut_link(last: str) -> Iterator[None]:
    """Let nothing more reach one of this process's own addresses, by its last number; needs root."""
    need(os.geteuid() == 0, "a link is cut by a route, which needs root")
    route = ["blackhole", f"{NETWORK}{last}/32", "table", "local"]
    subprocess.run(["ip", "route", "add", *route], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "route", "del", *route], check=True)


_DATE = """\
#!/bin/sh
# The clock of this host, as far as the harness reads it: moved by what a file says.
by=$(cat "{step}" 2>/dev/null) || by=0
exec /bin/date -d "now $by seconds" "$@"
"""


class SteppedClock:
    """All clocks that the harness reads, here and of its hosts; none of the machine is moved."""

    def __init__(self, directory: Path, patched: pytest.MonkeyPatch) -> None:
        self.by_s = 0
        self._file, self._true_s = directory / "step", time.time
        wrapper = directory / "bin" / "date"
        wrapper.parent.mkdir()
        wrapper.write_text(_DATE.format(step=self._file))
        wrapper.chmod(0o755)
        patched.setenv("PATH", str(wrapper.parent), prepend=":")
        patched.setattr(time, "time", lambda: self._true_s() + self.by_s)

    def step(self, by_s: int) -> None:
        self.by_s = by_s
        self._file.write_text(f"{by_s:+d}")
