"""The order of a conformance run: the checks of a deployment step by step, amid them those of sessions.

Everything is asked through what a trial does, so that what holds here holds there. Whatever happens,
the testbed is cleaned up at the end, as after a trial.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from perf.hosts.ports import find_taken
from perf.hosts.remote import remove_tree, run_repeatable, running_pid
from perf.model.records import Stored
from perf.systems.conformance.check import CheckResult, Skipped, find_out, require
from perf.systems.conformance.models import Model, list_models
from perf.systems.contract import (
    BootstrapsOnce,
    FakeSystem,
    KeepsData,
    KnowsVersion,
    Node,
    ReportsTelemetry,
    Settles,
    Target,
)
from perf.trial.kept_data import copy_data, sets_of
from perf.trial.servers import POLL_S, Servers
from perf.trial.telemetry import MISSING, open_snapshots

# What lies in a node's directory: every file with its size and time, and small ones by their content.
_FILES = 'find "$1" -type f ! -name "*.log" -printf "%p %s %T@\\n" | sort'
_CONTENTS = 'find "$1" -type f -size -1024k ! -name "*.log" -exec sha256sum {} + | sort'
_EVERY_BYTE = 'cd "$1" && find . -type f -exec sha256sum {} + | sort -k 2'
_ANYTHING = 'find "$1" -mindepth 1 | head -n 3'


class _Ended(Exception):  # noqa: N818  says what happened
    """Nothing that follows can be asked."""


@dataclass(slots=True)
class Conformance:
    """One product on one testbed, put to all checks."""

    servers: Servers
    target: Target
    report: Callable[[CheckResult], None]
    found: list[CheckResult] = field(default_factory=list)
    _stored: dict[str, Stored] = field(default_factory=dict)

    def run(self, logs: Path) -> None:
        """Ask everything; leave the testbed clean, and the servers' logs below `logs`."""
        try:
            with suppress(_Ended):
                self._ask_all()
        finally:
            undone = self.servers.clean_up(logs)
            seen = "; ".join(undone) or "all servers are gone, and their directories"
            self._note(CheckResult(check="the testbed is left clean", passed=not undone, seen=seen))

    def _ask_all(self) -> None:
        ask, need, servers = self._ask, partial(self._ask, needed=True), self.servers
        ask("stop and wipe are fine where nothing is", self._stop_nothing)
        need("the release is installed", partial(self._do, servers.install))
        ask("a second installation changes no file", partial(self._do_again, _FILES, servers.install))
        need("the servers are configured", partial(self._do, servers.configure))
        again = partial(self._do_again, _CONTENTS, servers.configure)
        ask("a second configuration writes the same", again)
        need("the servers start, and serve as a whole", self._start)
        ask("a second start starts nothing", self._start_again)
        ask("what runs is the release that was asked for", self._verify_version)
        ask("pinned servers run where the testbed says", self._prove_pinning)
        ask("each server reports on itself while it serves", self._look)
        ask("its background work comes to rest", self._settle)
        ask("each server writes a log", self._read_logs)
        for model in list_models(servers.system):
            with suppress(_Ended):  # another data model may do better
                self._ask_sessions(model)
        need("the servers end when they are asked to", self._stop_all)
        ask("they let go of their ports", self._free_ports)
        ask("what was acknowledged is there after a restart", self._keep_over_restart)
        ask("other servers start from the files of stopped ones", self._start_from_files)
        need("the servers end again", self._stop_all)
        ask("a wipe leaves nothing", self._wipe_all)

    def _ask(self, check: str, question: Callable[[], str], *, needed: bool = False) -> None:
        """Run a check; raise _Ended if it does not pass, and all that follows needs it."""
        finding = self._note(find_out(check, question))
        if needed and not finding.passed:
            raise _Ended

    def _note(self, finding: CheckResult) -> CheckResult:
        self.found.append(finding)
        self.report(finding)
        return finding

    def _ask_sessions(self, model: Model) -> None:
        def create() -> str:
            with model.connect(self.target) as session:
                session.create_schema(model.records)
            return f"as of {model.records.kind}"

        def connect() -> str:
            with model.connect(self.target) as session:
                return f"{type(session).__name__} at consistency {self.target.consistency}"

        self._ask(f"{model.name}: its schema is created", create, needed=True)
        self._ask(f"{model.name}: a client connects", connect, needed=True)
        with model.connect(self.target) as session:
            for check in model.checks:
                self._note(model.run(check, self.target, session))
            with suppress(Exception):  # reported above, where it was a check
                self._stored[model.name] = session.stored()

    def _nodes(self) -> tuple[Node, ...]:
        return self.servers.cluster.nodes

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

    def _show(self, look: str, places: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """Return what a command prints of a directory of each node: its own, if none is said."""
        found = {}
        for node in self._nodes():
            argv = ["sh", "-c", look, "look", places[node.name] if places else node.work_dir]
            found[node.name] = run_repeatable(node.remote, argv).stdout
        return found

    def _stop_nothing(self) -> str:
        for node in self._nodes():
            self.servers.system.stop(node, force=False)
            self.servers.system.wipe(node)
            require(not self.servers.system.is_running(node), f"{node.name} is reported to run")
        return f"on {len(self._nodes())} nodes"

    def _start(self) -> str:
        begun_s = time.monotonic()
        self.servers.start()
        return f"{len(self._nodes())} after {time.monotonic() - begun_s:.0f} s"

    def _pids(self) -> Mapping[str, int | None]:
        return {node.name: running_pid(node.remote, node.pid_file) for node in self._nodes()}

    def _start_again(self) -> str:
        before = self._pids()
        servers = self.servers
        for node in self._nodes():
            servers.system.start(node, servers.cluster)
        if isinstance(servers.system, BootstrapsOnce):
            servers.system.bootstrap(servers.cluster)
        servers.system.check(servers.cluster)
        after = self._pids()
        require(after == before, f"processes {after}, which were {before}")
        return f"the same {len(after)} processes"

    def _verify_version(self) -> str:
        if not isinstance(self.servers.system, KnowsVersion):
            raise Skipped("its servers cannot be asked")
        self.servers.verify_version()
        return f"{self.servers.cluster.release.version} on every node"

    def _prove_pinning(self) -> str:
        facts = self.servers.prove_pinning()
        if not facts:
            raise Skipped("this testbed pins nothing")
        return ", ".join(f"{fact.host} {fact.name} {fact.value}" for fact in facts)

    def _look(self) -> str:
        if not isinstance(self.servers.system, ReportsTelemetry):
            raise Skipped("this system reports nothing")
        with open_snapshots(self.servers.system, self.servers.cluster) as (look, _):
            seen = look()
        require(not seen.missing, f"{MISSING}: {seen.missing}")
        return ", ".join(sorted({level.name for level in seen.levels}))

    def _settle(self) -> str:
        if not isinstance(self.servers.system, Settles):
            raise Skipped("this system cannot say")
        self.servers.settle()
        return "on every node"

    def _read_logs(self) -> str:
        silent = [node.name for node in self._nodes() if not self.servers.tail(node).strip()]
        require(not silent, f"nothing from {', '.join(silent)}")
        return "on every node"

    def _stop_all(self) -> str:
        system, limit_s = self.servers.system, self.servers.cluster.testbed.limits.stop_s
        begun_s = time.monotonic()
        for _ in range(2):  # a second request must not harm
            for node in self._nodes():
                system.stop(node, force=False)
        while left := [node.name for node in self._nodes() if system.is_running(node)]:
            require(time.monotonic() < begun_s + limit_s, f"{', '.join(left)} after {limit_s:g} s")
            time.sleep(POLL_S)
        return f"after {time.monotonic() - begun_s:.1f} s"

    def _free_ports(self) -> str:
        ports = {*self.servers.system.ports(), *(n.part.port for n in self._nodes() if n.part)}
        addresses = {node.address for node in self._nodes()}
        end_s = time.monotonic() + self.servers.cluster.testbed.limits.stop_s
        while taken := find_taken(addresses, ports):
            where = ", ".join(f"{address}:{port}" for address, port in taken)
            require(time.monotonic() < end_s, f"still taken: {where}")
            time.sleep(POLL_S)
        return ", ".join(map(str, sorted(ports)))

    def _keep_over_restart(self) -> str:
        if isinstance(self.servers.system, FakeSystem):
            raise Skipped(self.servers.system.forgets)
        return self._start_with_rows()

    def _start_with_rows(self) -> str:
        self.servers.start()
        for model in list_models(self.servers.system):
            if before := self._stored.get(model.name):
                with model.connect(self.target) as session:
                    after = session.stored()
                require(after == before, f"{model.name}: {before.rows} rows, then {after.rows}")
        return ", ".join(f"{model} {stored.rows} rows" for model, stored in self._stored.items())

    def _start_from_files(self) -> str:
        """Do what trials of a data set that is kept do; see that they change none of its files."""
        servers, system = self.servers, self.servers.system
        if not isinstance(system, KeepsData):
            raise Skipped("this system keeps no data sets")
        limit_s = servers.cluster.testbed.limits.load_s
        # Without a manifest: what an end of this run leaves there, the next trial removes.
        kept = {node.name: f"{sets_of(node, system.name)}/conformance" for node in self._nodes()}
        self._stop_all()
        try:
            for node in self._nodes():
                remove_tree(node.remote, kept[node.name])
                copy_data(system, node, node.work_dir, kept[node.name], limit_s)
            before = self._show(_EVERY_BYTE, kept)
            servers.wipe()
            servers.install()
            servers.configure()
            for node in self._nodes():
                copy_data(system, node, kept[node.name], node.work_dir, limit_s)
            rows = self._start_with_rows()
            self._stop_all()
            after = self._show(_EVERY_BYTE, kept)
        finally:
            for node in self._nodes():
                remove_tree(node.remote, kept[node.name])
        changed = [name for name in kept if before[name] != after[name]]
        require(not changed, f"kept files were changed in place on {', '.join(changed)}")
        return rows

    def _wipe_all(self) -> str:
        for _ in range(2):
            self.servers.wipe()
        left = " ".join(self._show(f'[ ! -e "$1" ] || {_ANYTHING}').values()).split()
        require(not left, f"there is still {' '.join(left[:3])}")
        return f"{len(self._nodes())} directories are empty or gone"
