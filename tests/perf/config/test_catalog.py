"""The configuration that is shipped, resolving names in it, and the content hash."""

import json
import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from catalogs import shipped

from perf.config.catalog import Catalog, default_root, load_catalog
from perf.config.schema import schema_texts, write_schemas
from perf.model.design import OpenLoop, PriceSource, Testbed, Workload
from perf.model.errors import UsageError
from perf.model.identity import canonical, content_hash, named
from perf.model.metrics import METRICS
from perf.model.scaling import unscaled_name
from perf.workloads.stages import plan_stages

CONFIGS = Path(__file__).parents[3] / "configs"
DEMO = Path(__file__).parents[3] / "reports" / "demo" / "configs"
FRESH = "run `knickpoint schema` and commit what it writes"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return shipped()


def edited(tmp_path: Path, name: str, old: str, new: str) -> Workload:
    """Load the sensor-read workload from a copy of configs/ with one text replaced in it."""
    for path in CONFIGS.rglob("*.yaml"):
        copy = tmp_path / path.relative_to(CONFIGS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text())
    text = (tmp_path / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new))
    return load_catalog(tmp_path).workloads["sensor-read"]


def test_shipped_files_hold_what_they_promise(catalog: Catalog) -> None:
    assert {"lab-three", "local-one", "local-three", "rack-three"} <= set(catalog.topologies)
    assert {"lab", "local", "example-rack"} <= set(catalog.testbeds)
    assert {"sensor-write", "sensor-read"} <= set(catalog.workloads)
    assert {"cassandra", "mongodb", "fake"} <= set(catalog.systems)
    assert {"lab", "quickstart", "nightly", "single"} <= set(catalog.suites)
    assert catalog.systems["cassandra"]["default"].heap_mb == 512
    assert set(catalog.detection.relevant_change) == set(METRICS)


@pytest.mark.parametrize("root", [CONFIGS, DEMO], ids=["shipped", "demo"])
def test_no_caveat_of_a_testbed_says_how_many_servers_there_are(root: Path) -> None:
    """A testbed serves topologies of one node and of several; a trial of either shows its caveat."""
    numbers = r"one|two|three|four|five|six|seven|eight|nine|ten|both|all|\d+"
    counted = re.compile(
        rf"\b(?:{numbers})\s+(?:\w+\s+)?(?:servers?|nodes?|replicas?)\b", re.IGNORECASE
    )
    assert counted.search("One machine ran client and all three servers")
    caveats = {name: one.caveat for name, one in load_catalog(root).testbeds.items()}
    assert any(caveats.values())
    assert not {name: text for name, text in caveats.items() if counted.search(text)}


def test_local_testbed_shows_that_its_numbers_are_its_own(catalog: Catalog) -> None:
    local = catalog.testbeds["local"]
    assert local.jvm_options == ("-XX:TieredStopAtLevel=1",)
    assert "compare only with" in local.caveat
    assert [host.address for host in local.hosts if host.role == "server"] == [
        "127.0.0.1",
        "127.0.0.2",
        "127.0.0.3",
    ]


def test_every_experiment_resolves(catalog: Catalog) -> None:
    for suite in catalog.suites.values():
        for experiment in suite.experiments:
            deployment = catalog.resolve(suite, experiment)
            assert deployment.topology.name == experiment.topology
            assert unscaled_name(deployment.workload.name) == experiment.workload
            assert deployment.config.system == experiment.system
            assert deployment.testbed.name == suite.testbed


def test_quickstart_measures_for_less_than_five_minutes(catalog: Catalog) -> None:
    """Keep the sum in the suite's comment true: the rest of its ten minutes is starting servers."""
    suite = catalog.suite("quickstart")
    measured_s = 0.0
    for experiment in suite.experiments:
        workload = catalog.resolve(suite, experiment).workload
        measured_s += len(experiment.releases) * sum(
            stage.warmup_cap_s + stage.iteration_s for stage in plan_stages(workload)
        )
    assert measured_s <= 2 * 2 * (33 + 33)


def test_unknown_suite_is_refused_with_the_nearest_name(catalog: Catalog) -> None:
    with pytest.raises(UsageError) as caught:
        catalog.suite("quikstart")
    known = ", ".join(sorted(catalog.suites))
    assert str(caught.value) == (
        f"there is no suite 'quikstart'; did you mean quickstart? (known: {known})"
    )


def test_unknown_names_in_a_foreign_experiment_are_refused(catalog: Catalog) -> None:
    suite = catalog.suite("quickstart")
    foreign = replace(suite.experiments[0], config="defualt")
    with pytest.raises(UsageError, match=r"no cassandra config 'defualt'; did you mean default\?"):
        catalog.resolve(suite, foreign)


def test_default_root_prefers_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    packaged = default_root()
    assert packaged.is_absolute()
    assert packaged.parts[-2:] == ("perf", "configs")
    (tmp_path / "configs").mkdir()
    assert default_root() == Path("configs")


def test_committed_schemas_are_fresh(tmp_path: Path) -> None:
    written = write_schemas(tmp_path)
    assert {path.name for path in written} == set(schema_texts())
    committed = {path.name: path.read_text() for path in (CONFIGS / "schema").iterdir()}
    assert committed == {path.name: path.read_text() for path in written}, FRESH


def test_every_file_names_the_schema_of_its_kind() -> None:
    kinds = {
        "topologies": "topology",
        "testbeds": "testbed",
        "workloads": "workload",
        "sources": "source",
        "suites": "suite",
        "reference": "reference",
    }
    for path in CONFIGS.rglob("*.yaml"):
        is_on_top = path.parent == CONFIGS
        kind = path.stem if is_on_top else kinds.get(path.parent.name, "system-config")
        marker, _, reference = path.read_text().splitlines()[0].partition("$schema=")
        assert marker == "# yaml-language-server: ", path
        assert (path.parent / reference).resolve() == CONFIGS / "schema" / f"{kind}.schema.json", path


def test_schemas_refuse_unknown_keys() -> None:
    for text in schema_texts().values():
        schema = json.loads(text)
        kinds = [schema["$defs"][one["$ref"].split("/")[-1]] for one in schema.get("oneOf", ())]
        for kind in kinds or [schema]:
            assert kind["additionalProperties"] is False


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# Two more than", "# Three more than"),
        ("operation: read-latest\nconsistency: quorum", "consistency: quorum\noperation: read-latest"),
        ("operation_timeout_s: 10", "operation_timeout_s: 10.0"),
        ("owner: Knickpoint maintainers", "owner: somebody else"),
        ("description: Each operation", "description: Every operation"),
    ],
    ids=["comment", "order", "spelling", "owner", "description"],
)
def test_what_moves_no_number_keeps_the_hash(
    catalog: Catalog, tmp_path: Path, old: str, new: str
) -> None:
    workload = edited(tmp_path, "workloads/sensor-read.yaml", old, new)
    assert content_hash(workload) == content_hash(catalog.workloads["sensor-read"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("seed: 42", "seed: 43"),
        ("in_flight: 64", "in_flight: 65"),
        ("consistency: quorum", "consistency: all"),
        ("warmup_cap_s: ", "warmup_cap_s: 1"),
        ("name: steady", "name: calm"),
    ],
)
def test_what_moves_a_number_changes_the_hash(
    catalog: Catalog, tmp_path: Path, old: str, new: str
) -> None:
    workload = edited(tmp_path, "workloads/sensor-read.yaml", old, new)
    assert content_hash(workload) != content_hash(catalog.workloads["sensor-read"])


def test_hash_is_the_same_on_every_machine() -> None:
    load = OpenLoop(kind="open", offered_load_ops_per_s=100.0, in_flight=64)
    # sha256 of {"in_flight":64,"kind":"open","offered_load_ops_per_s":100.0}
    assert content_hash(load) == "810b1cb3de7f"


def test_absent_optional_fields_are_not_hashed(catalog: Catalog) -> None:
    local: Testbed = catalog.testbeds["local"]
    host = local.hosts[0]
    assert content_hash(host) == content_hash(replace(host, user=None, cores=()))
    assert content_hash(host) != content_hash(replace(host, user="root"))


def test_a_price_is_part_of_the_testbed_and_none_leaves_its_hash(catalog: Catalog) -> None:
    local = catalog.testbeds["local"]
    assert {host.price_per_hour_usd for host in local.hosts} == {None}
    assert "price" not in str(canonical(local))
    first, *others = local.hosts
    priced = replace(local, hosts=(replace(first, price_per_hour_usd=1.0), *others))
    assert content_hash(priced) != content_hash(local)
    source = PriceSource(date=date(2026, 1, 1), source="a list")
    assert content_hash(replace(priced, prices_from=source)) == content_hash(priced)


def test_named_carries_name_and_hash(catalog: Catalog) -> None:
    topology = catalog.topologies["local-three"]
    assert named(topology).name == "local-three"
    assert named(topology).sha256 == content_hash(topology)
    assert len(named(topology).sha256) == 12
    # The shape is the same, the names are not: a hash alone is no identity.
    assert named(catalog.topologies["rack-three"]).sha256 == named(topology).sha256
