"""The order of a proof: what a deployment promises step by step, amid it what sessions promise.

Everything is asked through the steps of a trial, so that what holds here holds there. Whatever happens,
the testbed is cleaned up at the end, as after a trial.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from perf.hosts.ports import find_taken
from perf.hosts.remote import run_repeatable, running_pid
from perf.model.design import Workload
from perf.model.records import Records
from perf.model.results import Reason
from perf.systems.contract import (
    BootstrapsOnce,
    Connect,
    KnowsVersion,
    Node,
    ReportsTelemetry,
    Settles,
    StandsIn,
    System,
)
from perf.systems.promises import connecting, devops, key_values, sensor
from perf.systems.promises.connecting import Reach
from perf.systems.promises.promise import NotAsked, Promise, require
from perf.trial.proving.finding import Ended, PromiseFinding, PromiseFindings
from perf.trial.steps import POLL_S, Steps

# What lies in a node's directory: every file with its size and time, and small ones by their content.
_FILES = 'find "$1" -type f ! -name "*.log" -printf "%p %s %T@\\n" | sort'
_CONTENTS = 'find "$1" -type f -size -1024k ! -name "*.log" -exec sha256sum {} + | sort'
_ANYTHING = 'find "$1" -mindepth 1 | head -n 3'


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A data model that a system offers: how its clients connect, and what they promise."""

    name: str
    connect: Connect[Any]
    records: Records
    promises: tuple[Promise[Any], ...]


_PROMISES: Mapping[str, tuple[Records, tuple[Promise[Any], ...]]] = {
    "sensor": (sensor.RECORDS, sensor.PROMISES),
    "key-value": (key_values.RECORDS, key_values.PROMISES),
    "devops": (devops.RECORDS, devops.PROMISES),
}


def models(system: System) -> Iterator[Model]:
    """Yield the data models that a system offers."""
    for name, (records, promises) in _PROMISES.items():
        if connect := system.sessions.find(records):
            yield Model(name=name, connect=connect, records=records, promises=promises)


@dataclass(slots=True)
class Proof:
    """One product on one testbed, asked for all that it promises."""

    steps: Steps
    workload: Workload
    findings: PromiseFindings
    _stored: dict[str, Any] = field(default_factory=dict)

    def run(self, logs: Path) -> None:
        """Ask everything; leave the testbed clean, and the servers' logs below `logs`."""
        try:
            with suppress(Ended):
                self._install()
                self._serve()
                for model in models(self.steps.system):
                    self._ask_sessions(model)
                self._stop()
                self._restart()
                self._wipe()
        finally:
            undone = self.steps.clean_up(logs)
            seen = "; ".join(undone) or "all servers are gone, and their directories"
            self.findings.add(
                PromiseFinding(promise="the testbed is left clean", kept=not undone, seen=seen)
            )

    def _install(self) -> None:
        ask, steps = self.findings.ask, self.steps
        ask("stop and wipe are fine where nothing is", self._stop_nothing)
        ask("the release is installed", partial(self._do, steps.install), needed=True)
        same = partial(self._do_again, _FILES, steps.install)
        ask("a second installation changes no file", same)
        ask("the servers are configured", partial(self._do, steps.configure), needed=True)
        same = partial(self._do_again, _CONTENTS, steps.configure)
        ask("a second configuration writes the same", same)

    def _serve(self) -> None:
        ask = self.findings.ask
        ask("the servers start, and serve as a whole", self._start, needed=True)
        ask("a second start starts nothing", self._start_again)
        ask("what runs is the release that was asked for", self._verify_version)
        ask("pinned servers run where the testbed says", self._prove_pinning)
        ask("each server tells of itself while it serves", self._look)
        ask("its background work comes to rest", self._settle)
        ask("each server writes a log", self._read_logs)

    def _ask_sessions(self, model: Model) -> None:
        ask, system = self.findings.ask, self.steps.system
        target = self.steps.target(self.workload)

        def create() -> str:
            with model.connect(target) as session:
                session.create_schema(model.records)
            return f"as of {model.records.kind}"

        with suppress(Ended):  # another data model may do better
            ask(f"{model.name}: its schema is created", create, needed=True)
            ask(f"{model.name}: a client connects", partial(self._connect, model), needed=True)
            with model.connect(target) as session:
                for promise in model.promises:
                    ask(f"{model.name}: {promise.sentence}", _question(promise, session, system))
                reach = Reach(model.connect, target, session)
                for of_all in connecting.PROMISES:
                    ask(f"{model.name}: {of_all.sentence}", _question(of_all, reach, system))
                with suppress(Exception):  # told above, where it was a promise
                    self._stored[model.name] = session.stored()

    def _stop(self) -> None:
        self.findings.ask("the servers end when they are asked to", self._stop_all, needed=True)
        self.findings.ask("they let go of their ports", self._free_ports)

    def _restart(self) -> None:
        ask = self.findings.ask
        ask("what was acknowledged is there after a restart", self._keep_over_restart)
        ask("the servers end again", self._stop_all, needed=True)

    def _wipe(self) -> None:
        self.findings.ask("a wipe leaves nothing", self._wipe_all)

    def _nodes(self) -> tuple[Node, ...]:
        return self.steps.cluster.nodes

    def _do(self, step: Callable[[], None]) -> str:
        step()
        return f"on {', '.join(node.name for node in self._nodes())}"

    def _do_again(self, look: str, step: Callable[[], None]) -> str:
        before = self._show(look)
        step()
        after = self._show(look)
        changed = sorted(name for name in before if before[name] != after[name])
        require(not changed, f"files differ on {', '.join(changed)}")
        count = sum(len(text.splitlines()) for text in before.values())
        return f"{count} files, as before"

    def _show(self, look: str) -> Mapping[str, str]:
        return {
            node.name: run_repeatable(node.remote, ["sh", "-c", look, "look", node.work_dir]).stdout
            for node in self._nodes()
        }

    def _stop_nothing(self) -> str:
        for node in self._nodes():
            self.steps.system.stop(node, force=False)
            self.steps.system.wipe(node)
            require(not self.steps.system.is_running(node), f"{node.name} is said to run")
        return f"on {len(self._nodes())} nodes"

    def _start(self) -> str:
        begun_s = time.monotonic()
        self.steps.start()
        return f"{len(self._nodes())} after {time.monotonic() - begun_s:.0f} s"

    def _pids(self) -> Mapping[str, int | None]:
        return {node.name: running_pid(node.remote, node.pid_file) for node in self._nodes()}

    def _start_again(self) -> str:
        before = self._pids()
        steps = self.steps
        for node in self._nodes():
            steps.system.start(node, steps.cluster)
        if isinstance(steps.system, BootstrapsOnce):
            steps.system.bootstrap(steps.cluster)
        steps.system.check(steps.cluster)
        after = self._pids()
        require(after == before, f"processes {after}, which were {before}")
        return f"the same {len(after)} processes"

    def _verify_version(self) -> str:
        if not isinstance(self.steps.system, KnowsVersion):
            raise NotAsked("its servers cannot be asked")
        self.steps.verify_version()
        return f"{self.steps.cluster.release.version} on every node"

    def _prove_pinning(self) -> str:
        facts = self.steps.prove_pinning()
        if not facts:
            raise NotAsked("this testbed pins nothing")
        return ", ".join(f"{fact.host} {fact.name} {fact.value}" for fact in facts)

    def _look(self) -> str:
        if not isinstance(self.steps.system, ReportsTelemetry):
            raise NotAsked("this system has nothing to tell")
        missing: list[Reason] = []
        with self.steps.telemetry(missing.append) as look:
            seen = look()
        require(not missing, "; ".join(reason.text for reason in missing))
        return ", ".join(sorted({level.name for level in seen.levels}))

    def _settle(self) -> str:
        if not isinstance(self.steps.system, Settles):
            raise NotAsked("this system cannot say")
        self.steps.settle()
        return "on every node"

    def _read_logs(self) -> str:
        silent = [node.name for node in self._nodes() if not self.steps.tail(node).strip()]
        require(not silent, f"nothing from {', '.join(silent)}")
        return "on every node"

    def _connect(self, model: Model) -> str:
        with model.connect(self.steps.target(self.workload)) as session:
            return f"{type(session).__name__} at consistency {self.workload.consistency}"

    def _stop_all(self) -> str:
        system, limit_s = self.steps.system, self.steps.cluster.testbed.limits.stop_s
        begun_s = time.monotonic()
        for _ in range(2):  # a second request must not harm
            for node in self._nodes():
                system.stop(node, force=False)
        while left := [node.name for node in self._nodes() if system.is_running(node)]:
            require(time.monotonic() < begun_s + limit_s, f"{', '.join(left)} after {limit_s:g} s")
            time.sleep(POLL_S)
        return f"after {time.monotonic() - begun_s:.1f} s"

    def _free_ports(self) -> str:
        ports = {*self.steps.system.ports(), *(n.part.port for n in self._nodes() if n.part)}
        addresses = {node.address for node in self._nodes()}
        end_s = time.monotonic() + self.steps.cluster.testbed.limits.stop_s
        while taken := find_taken(addresses, ports):
            where = ", ".join(f"{address}:{port}" for address, port in taken)
            require(time.monotonic() < end_s, f"still taken: {where}")
            time.sleep(POLL_S)
        return ", ".join(map(str, sorted(ports)))

    def _keep_over_restart(self) -> str:
        if isinstance(self.steps.system, StandsIn):
            raise NotAsked(self.steps.system.forgets)
        self.steps.start()
        target = self.steps.target(self.workload)
        for model in models(self.steps.system):
            if before := self._stored.get(model.name):
                with model.connect(target) as session:
                    after = session.stored()
                require(after == before, f"{model.name}: {before.rows} rows, then {after.rows}")
        return ", ".join(f"{model} {stored.rows} rows" for model, stored in self._stored.items())

    def _wipe_all(self) -> str:
        for _ in range(2):
            self.steps.wipe()
        left = " ".join(self._show(f'[ ! -e "$1" ] || {_ANYTHING}').values()).split()
        require(not left, f"there is still {' '.join(left[:3])}")
        return f"{len(self._nodes())} directories are empty or gone"


def _question(promise: Promise[Any], asked: object, system: System) -> Callable[[], str]:
    def ask() -> str:
        if promise.reads_back and isinstance(system, StandsIn) and system.loses_rows:
            raise NotAsked(system.loses_rows)
        return promise.ask(asked)

    return ask
