"""Data sets that are kept: a workload with `dataset: kept` starts from files, not from its preload.

    <base>/kept/<system>/<node>/<key>/files/          what a stopped, settled node had stored
    <base>/kept/<system>/<node>/<key>/manifest.json   of what, by whom, when; written last

The first trial of a key makes the set before it begins. From then on each trial, that one too, starts
from the same files: they are hard links to those that are never changed in place, and copies of the
others. A set without a manifest is half-made, and removed. A set is checked before each use, and all
rows are read back after the start.
"""

import hashlib
import json
import secrets
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from perf.hosts.remote import make_directory, remove_tree, run_repeatable, write_text
from perf.model.design import Deployment, SystemConfig, flatten_settings
from perf.model.errors import StepFailed
from perf.model.facts import DATASET
from perf.model.identity import canonical, content_hash
from perf.model.results import Fact, Reason
from perf.model.scalars import STRICT
from perf.model.sources import DEV
from perf.systems.contract import Cluster, KeepsData, Node
from perf.trial.method import read_method
from perf.trial.preflight import read_room
from perf.trial.servers import Servers
from perf.trial.spent import Spent
from perf.trial.storing import expected_rows, make_offer, store

MOST_AGE = timedelta(days=30)
"""What is older is made anew: a month of small differences between files and trials is enough."""
_SAMPLED, _SAMPLED_BYTES = 16, 16 * 1024**2
"""The largest files, and of each its first bytes: a second or two, however large the data set is."""
_SUSPECT = {"start-failed", "client-failed", "node-died", f"{DATASET}-failed"}
"""Kinds of reasons after which files are not trusted again, whoever is to blame."""
_LIST_SETS = """cd "$1" 2>/dev/null || exit 0
for set in *; do
  if [ -d "$set" ]; then
    printf '%s\\t' "$set"
    if [ -f "$set/manifest.json" ]; then tr -d '\\n' <"$set/manifest.json"; fi
    echo
  fi
done"""
# The file system may know no links. Names after the two directories are patterns of what may be linked.
_COPY = """from=$1 to=$2; shift 2
mkdir -p "$(dirname "$to")" || exit 1
if ! cp -al "$from" "$to" 2>/dev/null; then
  rm -rf "$to"; cp -a --reflink=auto "$from" "$to"; exit
fi
find "$to" -type f "$@" -exec sh -c '
  for file; do
    cp -p --reflink=auto "$file" "$file.own" && mv -f "$file.own" "$file" || exit 1
  done' own {} +"""
_LIST_FILES = """cd "$1" && find . -type f -printf '%s %P\\n'"""
_HASH = 'cd "$1" && shift && for file; do head -c "$BYTES" -- "$file" | sha256sum; done'


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What lies in a node's part of a data set, and where it comes from."""

    __pydantic_config__ = STRICT
    set: str
    """The same on all nodes, and in no other set."""
    made_of: Mapping[str, Any]
    """All that shapes the files, but for the release of the line; its hash is the key."""
    version: str
    config: str
    ordinal: int
    artifact_sha256: str
    made_at: AwareDatetime
    rows: int
    payload_bytes: int
    disk_bytes: int
    files_sha256: str
    sample_sha256: str

    @property
    def fact(self) -> Fact:
        """Return which files a trial started from."""
        made_by = f"{self.version} with {self.config}"
        text = f"{self.set}, made by {made_by} on {self.made_at:%Y-%m-%d %H:%M} UTC"
        return Fact(host="", name=DATASET, value=text)


_MANIFEST = TypeAdapter(Manifest)


def describe(
    deployment: Deployment, cluster: Cluster, serving: Collection[str] = ()
) -> Mapping[str, Any]:
    """Return all that shapes the files of a data set, but for the release within its line.

    Builds of no release are of no order: each reads its own sets alone. Of a workload it is what the
    preload stores; of a config all but heap, JVM and the settings `serving`; of Knickpoint itself what
    makes tables and stores rows.
    """
    workload, release = deployment.workload, cluster.release
    is_build = release.line.endswith(DEV)
    preload = (workload.preload, workload.preload_rows_per_device, workload.seed)
    return {
        "system": release.system,
        "line": release.line,
        "build": cluster.artifact.sha256 if is_build else "",
        "topology": content_hash(deployment.topology),
        "nodes": [[node.name, node.address] for node in cluster.nodes],
        "config": content_hash(_keep_shaping(deployment.config, serving)),
        "records": canonical(workload.records),
        "preload": canonical(preload),
        "method": [fact.value for fact in read_method(release.system)],
    }


def _keep_shaping(config: SystemConfig, serving: Collection[str]) -> SystemConfig:
    """Return a config without what only says how files are read.

    Two configs that differ in no more are compared over the same files.
    """
    return replace(
        config,
        heap_mb=None,
        jvm_options=tuple(one for one in config.jvm_options if not one.startswith("-X")),
        settings={way: one for way, one in flatten_settings(config.settings) if way not in serving},
    )


@dataclass(frozen=True, slots=True)
class KeptData:
    """The data sets on the hosts of one trial; of a workload without `dataset`, none is used."""

    servers: Servers
    deployment: Deployment

    def provide(self, spent: Spent) -> tuple[Fact, ...]:
        """Put the workload's data set into the nodes' directories, made first if there is none to use.

        What is too old or broken is removed, whatever the workload. The nodes are empty when it begins,
        and hold the data set alone afterwards.

        Raises:
            StepFailed: it could not be made, or there is no room to keep it.
            NodeDied: a server process ended meanwhile.

        """
        self._tidy()
        if self._system is None or not self.deployment.workload.dataset:
            return ()
        if (manifest := self._find()) is None:
            manifest = self._make(spent)
        for node in self.servers.cluster.nodes:
            self._copy(node, f"{self._place(node)}/files", node.work_dir)
        return (manifest.fact,)

    def doubt(self, reasons: Iterable[Reason]) -> tuple[Reason, ...]:
        """Remove the set if a trial did not come as far as to trust it; say that in a remark."""
        suspect = [reason.kind for reason in reasons if reason.kind in _SUSPECT]
        if self._system is None or not self.deployment.workload.dataset or not suspect:
            return ()
        nodes = self.servers.cluster.nodes
        if not any(self._read_own(node) for node in nodes):
            return ()
        for node in nodes:
            remove_tree(node.remote, self._place(node))
        text = f"{suspect[0]}: the kept data set was removed; the next trial stores its rows anew"
        return (Reason(kind="dataset-removed", text=text),)

    @property
    def _name(self) -> str:
        return self.servers.cluster.release.system

    @property
    def _system(self) -> KeepsData | None:
        return self.servers.system if isinstance(self.servers.system, KeepsData) else None

    def _place(self, node: Node) -> str:
        return f"{sets_of(node, self._name)}/{content_hash(self._made_of)}"

    @property
    def _made_of(self) -> Mapping[str, Any]:
        serving = self._system.serving if self._system else ()
        return describe(self.deployment, self.servers.cluster, serving)

    def _tidy(self) -> None:
        """Remove what was left half-made, or is too old."""
        for node in self.servers.cluster.nodes if self._system else ():
            for name, manifest in self._read_sets(node):
                if manifest is None or datetime.now(UTC) - manifest.made_at > MOST_AGE:
                    remove_tree(node.remote, f"{sets_of(node, self._name)}/{name}")

    def _read_sets(self, node: Node) -> Iterator[tuple[str, Manifest | None]]:
        """Yield the keys of all sets of a node, each with its manifest if it has one."""
        argv = ["sh", "-c", _LIST_SETS, "sets", sets_of(node, self._name)]
        for line in run_repeatable(node.remote, argv).stdout.splitlines():
            key, _, text = line.partition("\t")
            try:
                yield key, _MANIFEST.validate_json(text)
            except ValidationError:
                yield key, None

    def _read_own(self, node: Node) -> Manifest | None:
        return dict(self._read_sets(node)).get(self._place(node).rpartition("/")[2])

    def _find(self) -> Manifest | None:
        """Return the manifest of a set that this release can read and that is whole on all nodes."""
        release, found = self.servers.cluster.release, []
        for node in self.servers.cluster.nodes:
            manifest = self._read_own(node)
            if manifest is None or manifest.ordinal > release.ordinal:
                return None
            read = self._read_files(node, f"{self._place(node)}/files")
            if read != (manifest.disk_bytes, manifest.files_sha256, manifest.sample_sha256):
                self.servers.progress.report(f"{node.name}: the kept data set was changed: not used")
                return None
            found.append(manifest)
        return found[0] if len({manifest.set for manifest in found}) == 1 else None

    def _read_files(self, node: Node, directory: str) -> tuple[int, str, str]:
        """Return the bytes of all files, the digest of their names and sizes, and that of a sample."""
        run, limit_s = node.remote.run, self.servers.cluster.testbed.limits.load_s
        lines = run(["sh", "-c", _LIST_FILES, "files", directory]).stdout.splitlines()
        sizes = {name: int(size) for size, _, name in (line.partition(" ") for line in lines)}
        largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:_SAMPLED]
        hashing = _HASH.replace("$BYTES", str(_SAMPLED_BYTES))
        hashed = run(["sh", "-c", hashing, "hash", directory, *largest], timeout_s=limit_s).stdout
        listed = json.dumps(sizes, sort_keys=True)
        return sum(sizes.values()), _sha256(listed), _sha256(hashed)

    def _make(self, spent: Spent) -> Manifest:
        """Store the rows in servers that are then stopped, and keep their files; empty the nodes."""
        servers, cluster = self.servers, self.servers.cluster
        for node in cluster.nodes:
            remove_tree(node.remote, self._place(node))
        servers.progress.report("there is no kept data set to use: it is made first")
        spent.enter("install")
        servers.install()
        servers.configure()
        spent.enter("start")
        servers.start()
        with servers.naming_the_dead():
            servers.verify_version()
            spent.enter("load")
            if lacking := store(servers, make_offer(servers, self.deployment)):
                raise StepFailed("load", cluster.nodes[0].name, lacking[0].text)
            spent.enter("settle")
            servers.settle()
        spent.enter("keep")
        servers.stop()
        # What was in memory is in small files now: compacted once, not at the start of each trial.
        servers.start()
        with servers.naming_the_dead():
            servers.settle()
        servers.stop()
        made = self._keep()
        servers.wipe()
        spent.enter("prepare")
        return made

    def _keep(self) -> Manifest:
        """Keep the files of all nodes, whose servers are stopped."""
        nodes, cluster = self.servers.cluster.nodes, self.servers.cluster
        rows = expected_rows(self.deployment.workload)
        name, made_at = secrets.token_hex(4), datetime.now(UTC)
        manifests = []
        for node in nodes:
            self._copy(node, node.work_dir, f"{self._place(node)}/files")
            disk_bytes, files, sample = self._read_files(node, f"{self._place(node)}/files")
            manifests.append(
                Manifest(
                    set=name,
                    made_of=self._made_of,
                    version=cluster.release.version,
                    config=cluster.config.name,
                    ordinal=cluster.release.ordinal,
                    artifact_sha256=cluster.artifact.sha256,
                    made_at=made_at,
                    rows=rows.rows,
                    payload_bytes=rows.payload_bytes,
                    disk_bytes=disk_bytes,
                    files_sha256=files,
                    sample_sha256=sample,
                )
            )
        self._make_room([(node, one.disk_bytes) for node, one in zip(nodes, manifests, strict=True)])
        for node, manifest in zip(nodes, manifests, strict=True):
            text = _MANIFEST.dump_json(manifest).decode()
            write_text(node.remote, f"{self._place(node)}/manifest.json", text)
        return manifests[0]

    def _make_room(self, wanted: Sequence[tuple[Node, int]]) -> None:
        """Remove the oldest sets until, on each host, all take no more than what is free besides.

        Raises:
            StepFailed: the new set by itself takes more. It has no manifest yet, so it is removed next.

        """
        hosts: defaultdict[str, list[tuple[Node, int]]] = defaultdict(list)
        for node, size in wanted:
            hosts[node.remote.name].append((node, size))
        for placed in hosts.values():
            first, needed = placed[0][0], sum(size for _, size in placed)
            others = sorted(
                (one.made_at, one.disk_bytes, node.index, f"{sets_of(node, self._name)}/{key}")
                for node, _ in placed
                for key, one in self._read_sets(node)
                if one
            )
            while others and sum(size for _, size, _, _ in others) + needed > _free_bytes(first):
                remove_tree(first.remote, others.pop(0)[-1])
            if needed > (free := _free_bytes(first)):
                why = (
                    f"the data set takes {needed / 1e9:.3g} GB, and only {free / 1e9:.3g} GB are free "
                    "besides: at most half of a disk is kept; make room, or remove `dataset: kept` "
                    f"from workload {self.deployment.workload.name}"
                )
                raise StepFailed("keep", first.name, why)

    def _copy(self, node: Node, source: str, target: str) -> None:
        if self._system is not None:
            limit_s = self.servers.cluster.testbed.limits.load_s
            copy_data(self._system, node, source, target, limit_s)


def copy_data(system: KeepsData, node: Node, source: str, target: str, limit_s: float) -> None:
    """Link or copy the directories that hold a stopped node's data from one place to another."""
    patterns = [word for one in system.unchanging for word in ("!", "-name", one)]
    for name in system.kept_dirs:
        make_directory(node.remote, target)
        argv = ["sh", "-c", _COPY, "copy", f"{source}/{name}", f"{target}/{name}", *patterns]
        node.remote.run(argv, timeout_s=limit_s)


def sets_of(node: Node, system: str) -> str:
    """Return the directory of all sets of a node; what lies in it without a manifest is removed."""
    return f"{node.base_dir}/kept/{system}/{node.name}"


def _free_bytes(node: Node) -> int:
    return read_room(node.remote, node.base_dir)[0] * 1024**2


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
