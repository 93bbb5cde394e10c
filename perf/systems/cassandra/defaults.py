"""What a node begins with: the release's own conf/ where its artifact has one, else what stands here.

The archives that Cassandra's project publishes have conf/cassandra.yaml and JVM options, and these
defaults are part of the release as its code is. The libraries on Maven have none: a setting then has
the default in that release's code, and the JVM has the options of jvm.options.

`FORCED_SETTINGS` and `FORCED_OPTIONS` are laid over either, each for its reason, and so are
`NODE_SETTINGS` and `NODE_OPTIONS`, whose values differ from node to node. cassandra-env.sh, a program
of the archive, is not run: the heap is that of the config, and no agent is loaded.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import JsonValue

from perf.local.plain_files import read_plain
from perf.model.errors import ConfigError
from perf.systems.processes import MOST_SHIPPED_BYTES, list_shipped, read_shipped

_SETTINGS = "cassandra.yaml"
FORCED_SETTINGS: Mapping[str, tuple[JsonValue, str]] = {
    "cluster_name": ("knickpoint", "servers of one trial belong together"),
    "partitioner": ("org.apache.cassandra.dht.Murmur3Partitioner", "tokens are computed for it"),
    "endpoint_snitch": ("SimpleSnitch", "a topology has no racks"),
    "auto_bootstrap": (False, "a fresh ring has nothing to stream"),
    "start_native_transport": (True, "clients are to connect"),
}
FORCED_OPTIONS: Mapping[str, str] = {
    "-XX:+ExitOnOutOfMemoryError": "a server out of memory ends, and its trial with it",
    # In one file, so that its pauses add up over the whole life.
    "-Xlog:gc,gc+phases:file=gc.log:utctime,uptime:filecount=0": "pauses are read from this log",
    "-Dcassandra.skip_wait_for_gossip_to_settle=0": "a fresh ring that starts at once waits for nobody",
    # Looked at each second, and waited for until it is passed: 2000 ms take three seconds.
    "-Dcassandra.ring_delay_ms=1999": "a fresh ring that starts at once waits for nobody",
    "-Dcassandra.test.flush_local_schema_changes=false": "no data outlive a trial without a clean stop",
    "-Dcassandra-foreground=yes": "the process is watched by its own pid",
}
_APART = "nodes keep to directories of their own"
NODE_SETTINGS: Mapping[str, str] = {
    "initial_token": "a fixed ring: each node of the topology has an even share",
    "listen_address": "the testbed's address of the node",
    "rpc_address": "the testbed's address of the node",
    "native_transport_port": "the port that clients are given",
    "storage_port": "the port that the other nodes are given",
    "seed_provider": "every node of the topology is a seed",
    "data_file_directories": _APART,
    "commitlog_directory": _APART,
    "saved_caches_directory": _APART,
    "hints_directory": _APART,
    "cdc_raw_directory": _APART,
}
NODE_OPTIONS: Mapping[str, str] = {
    "-Djava.io.tmpdir": _APART,
    "-Djna.tmpdir": _APART,
    "-Dcassandra.config": _APART,
    "-Dcassandra.storagedir": _APART,
    "-Dlogback.configurationFile": "all that a server says is printed, and kept with the trial",
}


def read_settings(artifact: str) -> dict[str, JsonValue] | None:
    """Return the settings of the cassandra.yaml in the directory of an artifact; None without one.

    Raises:
        ConfigError: it is there, and cannot be read, or has no tokens.

    """
    if not artifact:
        return None
    path = Path(artifact, "conf", _SETTINGS)
    settings = read_shipped(path)
    if settings is not None and "num_tokens" not in settings:
        raise ConfigError(
            [f"{path}: has no num_tokens, of which a ring is made; get the release again"]
        )
    return settings


def read_options(artifact: str, java_major: int) -> tuple[str, ...]:
    """Return the JVM options that an artifact has for a server on this Java, else our own.

    As bin/cassandra takes them: the lines that begin with a dash.
    """
    if read_settings(artifact) is None:
        return _dashed(_own("jvm.options"))
    names = ("jvm-server.options", f"jvm{java_major}-server.options")
    paths = (Path(artifact, "conf", name) for name in names)
    return tuple(
        option
        for path in paths
        if path.is_file()
        for option in _dashed(read_plain(path, MOST_SHIPPED_BYTES).decode(errors="replace"))
    )


def list_defaults(artifact: str, java_major: int) -> dict[str, str]:
    """Return what an artifact's own conf/ sets, each with its file, as JSON; nothing without conf/.

    Raises:
        ConfigError: its cassandra.yaml cannot be read.

    """
    settings = read_settings(artifact)
    if settings is None:
        return {}
    options = dict.fromkeys(read_options(artifact, java_major), "true")
    return {
        **list_shipped(_SETTINGS, settings),
        **{f"jvm*-server.options: {option}": value for option, value in options.items()},
    }


def list_forced(settings: Mapping[str, JsonValue]) -> dict[str, str]:
    """Return what is laid over, each with the reason: what these settings have the same way is not."""
    return {
        **{
            key: f"{json.dumps(value)}: {reason}"
            for key, (value, reason) in FORCED_SETTINGS.items()
            if settings.get(key) != value
        },
        **NODE_SETTINGS,
        **FORCED_OPTIONS,
        **NODE_OPTIONS,
    }


def _dashed(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.startswith("-"))


@cache
def _own(name: str) -> str:
    return files("perf.systems.cassandra").joinpath(name).read_text(encoding="utf-8")
