"""A data set is kept where Knickpoint may and can keep it; elsewhere that is refused beforehand."""

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
    ("suite", "old", "said"),
    [
        ("attached", "workload: sensor-write-short", "files of servers that are somebody else's"),
        ("put-get", "workload: put-get", "cannot do with the files of mongodb"),
    ],
)
def test_where_no_data_set_can_be_kept_it_is_refused(
    root: Path, suite: str, old: str, said: str
) -> None:
    path = root / f"suites/{suite}.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, "workload: sensor-read-kept"))
    with pytest.raises(ConfigError) as refused:
        load_catalog(root)
    assert any(said in one for one in refused.value.problems), refused.value.problems


def test_where_it_can_be_kept_it_is_taken(root: Path) -> None:
    path = root / "suites/single.yaml"
    path.write_text(path.read_text().replace("sensor-write-short", "sensor-read-kept"))
    catalog = load_catalog(root)
    suite = catalog.suite("single")
    assert catalog.resolve(suite, suite.experiments[0]).workload.dataset == "kept"
