"""What systems share whose server is one process in its node's directory: verbs, archives, Java."""

import json
import signal
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

from pydantic import JsonValue
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from perf.hosts.remote import (
    LocalHost,
    make_directory,
    read_tail,
    remove_tree,
    running_pid,
    send_signal,
    write_text,
)
from perf.local.plain_files import read_plain
from perf.model.design import SystemConfig
from perf.model.errors import ConfigError, NotReady, StepFailed
from perf.model.results import Artifact, Fact, Release
from perf.releases import java
from perf.releases.artifacts import SUMS
from perf.systems.contract import GC_PAUSE_S, Cluster, Node, NodeFigure, Target

MOST_SHIPPED_BYTES = 4 * 1024**2
"""Of a file of settings that a release ships."""
MOST_RELEASES = 16
"""Of a system, those that were used last, that a host keeps: more than a night measures, as a rule."""
# A line of the sums is 64 digits, two spaces and a name. Links to files count, as they do there.
_IS_WHOLE = f"""cd "$1" && sha256sum --quiet -c {SUMS} >/dev/null 2>&1 &&
[ "$(find . -xtype f ! -path ./{SUMS} | sort)" = "$(sed 's|^.\\{{66\\}}|./|' {SUMS} | sort)" ]"""
_USE = """touch "$1" && cd "$(dirname "$1")" &&
ls -1t | tail -n +"$(($2 + 1))" | while IFS= read -r old; do rm -rf -- "./$old"; done"""


class ServerProcess(ABC):
    """A system with one server process on each node, known by the node's pid file."""

    def run(self, node: Node, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """Start the server, by its command, on the node's cores if it has any; nothing if it runs."""
        if not self.is_running(node):
            node.remote.start(
                node.pinned(command),
                pid_file=node.pid_file,
                log=self.logs(node)[0],
                cwd=node.work_dir,
                env=env,
            )

    def require_running(self, nodes: Sequence[Node]) -> None:
        """Return if each node's server process lives.

        Raises:
            StepFailed: one does not; with the end of its log.

        """
        for node in nodes:
            if not self.is_running(node):
                tail = read_tail(node.remote, self.logs(node)[0])
                raise StepFailed("start", node.name, "the server process ended", tail)

    def is_running(self, node: Node) -> bool:
        """Return whether the node's server process lives."""
        return running_pid(node.remote, node.pid_file) is not None

    def stop(self, node: Node, *, force: bool) -> None:
        """Send SIGTERM, which asks for a clean shutdown, or SIGKILL."""
        send_signal(node.remote, node.pid_file, signal.SIGKILL if force else signal.SIGTERM)

    def wipe(self, node: Node) -> None:
        """Remove the node's directory; what it links to stays."""
        remove_tree(node.remote, node.work_dir)

    @abstractmethod
    def ports(self) -> tuple[int, ...]:
        """Return the ports that a node listens on; clients connect to the first."""

    def logs(self, node: Node) -> tuple[str, ...]:
        """Return the path of the one log."""
        return (f"{node.work_dir}/server.log",)

    def target(self, cluster: Cluster, *, consistency: str, timeout_s: float) -> Target:
        """Return all nodes' addresses."""
        return Target.of(cluster, port=self.ports()[0], consistency=consistency, timeout_s=timeout_s)


class Product(ServerProcess):
    """A database as its vendor publishes it."""

    name: ClassVar[str]

    def tuning(self, release: Release) -> str:
        """Return the tuning profile of server hosts: the same for all releases."""
        return self.name


def require_port(node: Node, port: int) -> None:
    """Return if a client can connect to the node; raise NotReady if it cannot."""
    try:
        socket.create_connection((node.address, port), timeout=1).close()
    except OSError as error:
        why = f"port {port} is not open yet ({error.strerror or error})"
        raise NotReady("start", node.name, why) from error


def put_release(node: Node, cluster: Cluster) -> str:
    """Return the directory of the release on the node's host, which may be this machine's own copy.

    A host that is reached over the network keeps its copy, which is looked at file by file each time.

    Raises:
        StepFailed: the copy is not what was sent.

    """
    artifact, base = cluster.artifact, Path(node.work_dir).parent
    if _holds(node, artifact.location, artifact):
        return artifact.location
    target = str(base / "releases" / f"{cluster.release.version}-{artifact.sha256[:12]}")
    if not _holds(node, target, artifact):
        part = f"{target}.{node.name}"
        remove_tree(node.remote, part)
        make_directory(node.remote, part)
        node.remote.put(Path(artifact.location), part)
        if not _is_whole(node, part):
            raise StepFailed("install", node.name, f"{part} is not what {artifact.location} holds")
        remove_tree(node.remote, target)
        node.remote.run(["mv", part, target])
    node.remote.run(["sh", "-c", _USE, "use", target, str(MOST_RELEASES)])
    return target


def _holds(node: Node, directory: str, artifact: Artifact) -> bool:
    """Return whether a directory of the node's host has an artifact."""
    found = node.remote.run(["sha256sum", f"{directory}/{SUMS}"], check=False).stdout
    is_same = found.split(" ", 1)[0] == artifact.sha256
    # This machine's own copy was looked at file by file when the release was asked for.
    return is_same and (isinstance(node.remote, LocalHost) or _is_whole(node, directory))


def _is_whole(node: Node, directory: str) -> bool:
    """Return whether a directory has just the files that its sums list: any program there is run."""
    done = node.remote.run(["sh", "-c", _IS_WHOLE, "verify", directory], check=False)
    return done.returncode == 0


def install_archive(
    node: Node, cluster: Cluster, program: str, install: Callable[[str, str], str] | None = None
) -> None:
    """Link the node's server/ to the release on its host, or have `install` fill it, unless it is so.

    `install` is given the directory of the release and that of the server, and returns what it ran: of
    a program that is not there then, that is to blame.

    Raises:
        StepFailed: there is no such program then, or no whole copy of the release.

    """
    marker, server = f"{node.work_dir}/artifact", f"{node.work_dir}/server"
    artifact = cluster.artifact
    if node.remote.run(["cat", marker], check=False).stdout.strip() == artifact.sha256:
        return
    make_directory(node.remote, node.work_dir)
    remove_tree(node.remote, server)
    release = put_release(node, cluster)
    if install is None:
        node.remote.run(["ln", "-sfn", release, server])
        whose = f"{artifact.location} holds"
    else:
        whose = f"{install(release, server)} installed"
    if node.remote.run(["test", "-x", f"{server}/{program}"], check=False).returncode:
        raise StepFailed("install", node.name, f"{whose} no program {program}")
    write_text(node.remote, marker, f"{artifact.sha256}\n")


def java_facts(cluster: Cluster, path: str) -> tuple[Fact, ...]:
    """Ask each node for the version of its Java, at a path in its directory: it can move a number."""
    answers = ((n, n.remote.run([f"{n.work_dir}/{path}", "-version"])) for n in cluster.nodes)
    return tuple(
        Fact(host=node.name, name="version:java", value=answer.stderr.partition("\n")[0])
        for node, answer in answers
    )


def read_shipped(path: Path) -> dict[str, JsonValue] | None:
    """Return the settings of a YAML file that a release ships; None if there is no such file.

    Raises:
        ConfigError: it is there, and cannot be read.

    """
    if not path.is_file():
        return None
    try:
        read = YAML(typ="safe", pure=True).load(read_plain(path, MOST_SHIPPED_BYTES).decode())
    except (OSError, UnicodeDecodeError, YAMLError, ValueError) as error:
        raise ConfigError([f"{path}: cannot be read ({error}); get the release again"]) from error
    # A file may be all comments, as one without a value that differs from that in the code.
    if not isinstance(read, dict | None):
        raise ConfigError([f"{path}: holds no settings; get the release again"])
    return read or {}


def list_shipped(name: str, settings: Mapping[str, JsonValue]) -> dict[str, str]:
    """Return the settings of a shipped file, each by file and key, as JSON."""
    return {f"{name}: {key}": json.dumps(value, default=str) for key, value in settings.items()}


def defaults_facts(whose: str, forced: Mapping[str, str]) -> tuple[Fact, ...]:
    """Return whose defaults a trial begins with, and what is laid over them, with reasons."""
    return (
        Fact(host="", name="defaults", value=whose),
        *(Fact(host="", name=f"forced:{key}", value=why) for key, why in forced.items()),
    )


def read_pauses(cluster: Cluster, log: Callable[[Node], str]) -> Iterator[NodeFigure]:
    """Yield what each node's log of garbage collections adds up to."""
    for node in cluster.nodes:
        value = java.read_pauses_s(node.remote, log(node))
        yield NodeFigure(node=node.name, name=GC_PAUSE_S, value=value)


def refuse_jvm(config: SystemConfig, instead: str) -> list[str]:
    """Return what is wrong with a config that sets a JVM, for servers that have none."""
    if config.heap_mb is None and not config.jvm_options:
        return []
    return [f"config {config.name}: heap_mb and jvm_options are for servers on a JVM; set {instead}"]


@cache
def read_data(package: str, name: str) -> Any:  # noqa: ANN401  YAML
    """Read a YAML file that comes with a system's package."""
    return YAML(typ="safe", pure=True).load(files(package).joinpath(name).read_text("utf-8"))
