"""What a config may say of its tables: words alone; nothing else ever reaches a server."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, TypeAdapter

from perf.config.checks.files import ConfigFile
from perf.config.checks.systems import check_layout
from perf.local.document import read_document
from perf.model.design import SystemConfig, Topology
from perf.model.errors import ConfigError
from perf.model.results import Artifact, Release, Source
from perf.systems import registry
from perf.systems.contract import Cluster, Node
from perf.systems.cql import layout as cql_layout
from perf.systems.mongodb import devops as mongo_devops
from perf.systems.mongodb import layout as mongo_layout

JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2000) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=3,
)


def check(tmp_path: Path, system: str, layout: str) -> list[str]:
    path = tmp_path / "x.yaml"
    path.write_text(f"system: {system}\nname: x\ndescription: y\nlayout:\n{layout}\n")
    document = read_document(path)
    value = TypeAdapter(SystemConfig).validate_python(document.tree, strict=False)
    found = check_layout(system, ConfigFile(document, value))
    return [problem.removeprefix(f"{path}:") for problem in found]


@pytest.mark.parametrize(
    ("system", "layout", "problem"),
    [
        (
            "cassandra",
            "  compaction: lcs",
            "5: layout.compaction is 'lcs'; known: LCS, STCS, TWCS, UCS",
        ),
        (
            "cassandra",
            "  compaction: \"LCS'} AND x = {'a\"",
            "5: layout.compaction is \"LCS'} AND x = {'a\"; known: LCS, STCS, TWCS, UCS",
        ),
        (
            "cassandra",
            "  compaction: TWCS\n  window_minutes: 0",
            "6: layout.window_minutes is 0; set a whole number from 1 to 1440",
        ),
        (
            "cassandra",
            "  compaction: LCS\n  window_minutes: 5",
            "6: layout.window_minutes is of compaction: TWCS alone; say that, or remove it",
        ),
        (
            "cassandra",
            "  compactoin: LCS",
            (
                "5: layout.compactoin is no word of this system's layouts; "
                "known: compaction, window_minutes"
            ),
        ),
        ("scylladb", "  compaction: UCS", "5: layout.compaction is 'UCS'; known: LCS, STCS, TWCS, ICS"),
        (
            "cassandra",
            "  compaction: ICS",
            "5: layout.compaction is 'ICS'; known: LCS, STCS, TWCS, UCS",
        ),
        (
            "scylladb",
            "  replication: rack",
            "5: layout.replication is 'rack'; known: simple, network-topology",
        ),
        (
            "mongodb",
            "  collection: capped",
            "5: layout.collection is 'capped'; known: time-series, plain",
        ),
        (
            "mongodb",
            "  collection: plain\n  granularity: hours",
            "6: layout.granularity is of time-series collections alone; remove it",
        ),
        (
            "mongodb",
            "  indexes: [time, time]",
            "5: layout.indexes holds time twice; list each once",
        ),
        (
            "mongodb",
            "  indexes: [tags]",
            "5: layout.indexes one is 'tags'; known: time, hostname-time",
        ),
        (
            "fake",
            "  compaction: LCS",
            '4: layout is "compaction", but fake lays out its tables in one way only; remove it',
        ),
    ],
)
def test_a_wrong_word_is_reported_with_its_place(
    tmp_path: Path, system: str, layout: str, problem: str
) -> None:
    assert check(tmp_path, system, layout) == [problem]


@pytest.mark.parametrize(
    ("system", "layout"),
    [
        ("cassandra", "  compaction: UCS"),
        ("cassandra", "  compaction: TWCS\n  window_minutes: 30"),
        ("scylladb", "  compaction: ICS\n  replication: network-topology"),
        ("mongodb", "  collection: time-series\n  granularity: minutes"),
        ("mongodb", "  collection: plain\n  indexes: [hostname-time]"),
    ],
)
def test_known_words_are_taken(tmp_path: Path, system: str, layout: str) -> None:
    assert check(tmp_path, system, layout) == []


@given(st.dictionaries(st.sampled_from(["compaction", "window_minutes", "x"]), JSON))
def test_no_text_of_a_layout_reaches_a_statement(layout: dict[str, JsonValue]) -> None:
    if cql_layout.check_layout(layout):
        return
    text = cql_layout.with_options(layout)
    known = {"", *(cql_layout.with_options({"compaction": word}) for word in ("LCS", "STCS", "UCS"))}
    windows = (f"'{minutes}'}}" for minutes in range(1, 1441))
    twcs = "'class': 'TimeWindowCompactionStrategy'"
    assert text in known or (twcs in text and text.endswith(tuple(windows)))


def test_a_word_that_was_never_checked_makes_no_statement() -> None:
    with pytest.raises(KeyError):
        cql_layout.with_options({"compaction": "'} AND x = {'"})


def test_the_clauses_of_a_table() -> None:
    assert cql_layout.with_options({}) == ""
    assert cql_layout.with_options({}, "CLUSTERING ORDER BY (ts DESC)", default="LCS") == (
        " WITH CLUSTERING ORDER BY (ts DESC) AND compaction = {'class': 'LeveledCompactionStrategy'}"
    )
    assert cql_layout.with_options({"compaction": "TWCS", "window_minutes": 30}, default="LCS") == (
        " WITH compaction = {'class': 'TimeWindowCompactionStrategy', "
        "'compaction_window_unit': 'MINUTES', 'compaction_window_size': '30'}"
    )


def test_the_collections_of_mongodb() -> None:
    fields = {"time_field": "ts", "meta_field": "device_id"}
    series = {"timeField": "ts", "metaField": "device_id", "granularity": "seconds"}
    assert mongo_layout.collection_options({}, **fields) == {"timeseries": series}
    assert mongo_layout.collection_options({"granularity": "hours"}, **fields) == {
        "timeseries": series | {"granularity": "hours"}
    }
    assert mongo_layout.collection_options({"collection": "plain"}, **fields) == {}
    assert tuple(mongo_devops.INDEXES) == mongo_layout.DEVOPS_INDEXES


@pytest.mark.parametrize(("version", "line"), [("4.0.19", "4.0"), ("4.1.10", "4.1")])
def test_unified_compaction_is_refused_before_5_0(
    make_testbed: Callable[..., Any], version: str, line: str
) -> None:
    release = Release(system="cassandra", version=version, line=line, ordinal=0)
    config = SystemConfig(system="cassandra", name="ucs", description="d", layout={"compaction": "UCS"})
    node = Node(name="n", index=0, address="127.0.0.1", remote=None, work_dir="/none")  # type: ignore[arg-type]  # never used
    cluster = Cluster(
        release=release,
        artifact=Artifact(source=Source.PATH, sha256="0" * 64),
        nodes=(node,),
        topology=Topology(name="one", description="one", servers=1),
        testbed=make_testbed(),
        config=config,
    )
    cassandra = registry.load("cassandra")
    with pytest.raises(ConfigError, match=f"UCS, which came with 5.0, but {version} is of the line"):
        cassandra.configure(node, cluster)
    later = replace(release, version="6.0", line="6.0")
    with pytest.raises(AttributeError):  # goes on to the node, and there is none
        cassandra.configure(node, replace(cluster, release=later))
