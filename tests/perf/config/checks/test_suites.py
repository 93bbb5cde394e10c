"""What a testbed or a system cannot do is refused with the suite: kept data, clocks without a limit."""

import shutil
from pathlib import Path

import pytest

from perf.config.catalog import load_catalog
from perf.model.errors import ConfigError

CONFIGS = Path(__file__).parents[4] / "configs"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CONFIGS, tmp_path / "configs"))


@pytest.mark.parametrize(
    ("suite", "system", "said"),
    [
        ("attached", "cassandra", "files of servers that are somebody else's"),
        ("single", "fake", "cannot do with the files of fake"),
    ],
)
def test_where_no_data_set_can_be_kept_it_is_refused(
    root: Path, suite: str, system: str, said: str
) -> None:
    path = root / f"suites/{suite}.yaml"
    text = path.read_text().replace("workload: sensor-write-short", "workload: sensor-read-kept")
    path.write_text(text.replace("system: cassandra", f"system: {system}"))
    with pytest.raises(ConfigError) as refused:
        load_catalog(root)
    assert any(said in one for one in refused.value.problems), refused.value.problems


def test_where_it_can_be_kept_it_is_taken(root: Path) -> None:
    path = root / "suites/single.yaml"
    path.write_text(path.read_text().replace("sensor-write-short", "sensor-read-kept"))
    catalog = load_catalog(root)
    suite = catalog.suite("single")
    assert catalog.resolve(suite, suite.experiments[0]).workload.dataset == "kept"


@pytest.mark.parametrize(
    ("topology", "limit", "problems"),
    [
        ("lab-three", "", 0),
        ("lab-three-two-clients", "  max_clock_offset_ms: 10\n", 0),
        ("lab-three-two-clients", "", 1),
    ],
)
def test_several_client_hosts_need_a_limit_to_what_their_clocks_differ_by(
    root: Path, topology: str, limit: str, problems: int
) -> None:
    testbed, suite = root / "testbeds/lab.yaml", root / "suites/lab.yaml"
    text = testbed.read_text()
    assert "  max_clock_offset_ms: 10\n" in text
    testbed.write_text(text.replace("  max_clock_offset_ms: 10\n", limit))
    suite.write_text(suite.read_text().replace("topology: lab-three\n", f"topology: {topology}\n"))
    (root / "suites/lab-two-clients.yaml").unlink()
    if not problems:
        assert load_catalog(root).suite("lab").experiments[0].topology == topology
        return
    with pytest.raises(ConfigError) as refused:
        load_catalog(root)
    assert len(refused.value.problems) == problems
    (problem,) = refused.value.problems
    assert "suites/lab.yaml" in problem
    assert "max_clock_offset_ms" in problem


def test_racks_have_the_native_engine_and_what_it_cannot_ask_says_python(root: Path) -> None:
    catalog = load_catalog(root)
    engines = {
        one.system: catalog.resolve(suite, one).engine
        for name in ("iot", "devops", "ycsb")
        for suite in [catalog.suite(name)]
        for one in suite.experiments
        if name != "devops"
    }
    assert engines == dict.fromkeys(("cassandra", "mongodb", "scylladb"), "native")
    devops = catalog.suite("devops")
    assert {catalog.resolve(devops, one).engine for one in devops.experiments} == {"python"}
    path = root / "workloads/devops.yaml"
    path.write_text(path.read_text().replace("\nengine: python\n", "\n"))
    with pytest.raises(ConfigError) as refused:
        load_catalog(root)
    assert all("cratedb" in one and "`engine: python`" in one for one in refused.value.problems)
