"""What cannot be chosen, set or touched on an attached cluster is refused before anything starts."""

import shutil
from pathlib import Path

import pytest

from perf.config.catalog import load_catalog
from perf.model.errors import ConfigError

CONFIGS = Path(__file__).parents[4] / "configs"
SUITE, TESTBED = "suites/attached.yaml", "testbeds/attached.yaml"
CONFIG, WORKLOAD = "systems/cassandra/attached.yaml", "workloads/own-index.yaml"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CONFIGS, tmp_path / "configs"))


def edit(root: Path, path: str, old: str, new: str) -> None:
    text = (root / path).read_text()
    assert old in text
    (root / path).write_text(text.replace(old, new))


def problems(root: Path) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        load_catalog(root)
    return list(refused.value.problems)


@pytest.mark.parametrize(
    ("path", "old", "new", "said"),
    [
        (
            SUITE,
            "[running]",
            '["5.0.9"]',
            "releases chooses releases, but testbed attached is attached",
        ),
        (
            SUITE,
            "testbed: attached",
            "testbed: local",
            "releases has running, but the servers of testbed",
        ),
        (
            SUITE,
            "testbed: attached",
            "testbed: attached\nhint_minutes: 5",
            "hint_minutes needs servers",
        ),
        (CONFIG, "name: attached", "name: attached\nheap_mb: 512", "which has heap_mb"),
        (
            TESTBED,
            "steadiness:",
            'jvm_options: ["-XX:+UseZGC"]\nsteadiness:',
            "jvm_options is for servers",
        ),
        (
            TESTBED,
            "127.0.0.1}\n  - {name: client",
            "127.0.0.1, cores: [1]}\n  - {name: client",
            "pins a",
        ),
    ],
)
def test_what_cannot_be_there_is_refused(root: Path, path: str, old: str, new: str, said: str) -> None:
    edit(root, path, old, new)
    assert any(said in one for one in problems(root)), problems(root)


def test_an_address_of_another_machine_is_fine(root: Path) -> None:
    edit(root, TESTBED, "role: server, address: 127.0.0.1", "role: server, address: db.example.org")
    assert load_catalog(root).testbed("attached").own_hosts[0].name == "client"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("INSERT INTO customers", "INSERT INTO prod.customers"),
        ("INSERT INTO customers", 'INSERT INTO "prod" . customers'),
        ("CREATE TABLE customers", "CREATE TABLE IF NOT EXISTS prod.customers"),
        ("SELECT id FROM customers", "SELECT id FROM system_auth.roles"),
        ("    - CREATE TABLE customers", "    - DROP KEYSPACE prod\n    - CREATE TABLE customers"),
        ("    - CREATE TABLE customers", "    - DROP SCHEMA prod\n    - CREATE TABLE customers"),
        *(
            ("    - CREATE TABLE customers", f"    - {text}\n    - CREATE TABLE customers")
            for text in (
                "DROP ROLE admin",
                "DROP SERVICE LEVEL gold",
                "DROP IDENTITY 'x'",
                'TRUNCATE others."kept"',
                'DROP TABLE IF EXISTS "others"."kept"',
                'DROP TABLE IF EXISTS others . "kept"',
                "'BEGIN BATCH INSERT INTO t (a) VALUES ($$''$$); DELETE FROM others.kept; APPLY BATCH'",
                "USE others",
            )
        ),
    ],
)
def test_statements_stay_in_the_keyspace_of_the_trial(root: Path, old: str, new: str) -> None:
    edit(root, SUITE, "sensor-write-short", "own-index")
    load_catalog(root)
    edit(root, WORKLOAD, old, new)
    assert any("on an attached cluster statements" in one for one in problems(root)), problems(root)


def test_text_numbers_and_the_own_keyspace_are_no_others(root: Path) -> None:
    edit(root, SUITE, "sensor-write-short", "own-index")
    edit(root, WORKLOAD, "WHERE email = :email", "WHERE email = :email AND note != 'a.b' AND x > 1.5")
    edit(root, WORKLOAD, "SELECT id FROM customers", "SELECT id FROM knickpoint.customers -- prod.x")
    load_catalog(root)


def test_a_system_that_cannot_be_attached_is_refused(root: Path) -> None:
    (root / "systems/fake/attached.yaml").write_text(
        "system: fake\nname: attached\ndescription: Nothing.\n"
    )
    edit(root, SUITE, "system: cassandra", "system: fake")
    assert any(
        "which cannot be attached; it can be: cassandra, scylladb" in one for one in problems(root)
    )
