"""A repository of one's own: it runs as it is, writes over nothing, shows what a newer version has."""

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from ruamel.yaml import YAML

from perf.commands.main import knickpoint
from perf.config.catalog import load_catalog
from perf.model.errors import UsageError

NIGHTLY = Path(__file__).parents[3] / ".github/workflows/nightly.yml"
KNOWN = load_catalog(Path("configs"))
CONFIGS = Path(__file__).parents[2] / "data" / "configs"


def init(directory: Path, *more: str) -> Result:
    return CliRunner().invoke(knickpoint, ["init", str(directory), *more])


def read(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): path.read_text()
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("suite", sorted(KNOWN.suites))
def test_each_suite_makes_a_repository_that_is_whole(tmp_path: Path, suite: str) -> None:
    done = init(tmp_path / "own", "--suite", suite)
    assert done.exit_code == 0, done.output
    made = load_catalog(tmp_path / "own" / "configs")
    assert list(made.suites) == [suite]
    mine, shipped = made.suites[suite], KNOWN.suites[suite]
    for one, other in zip(mine.experiments, shipped.experiments, strict=True):
        assert made.resolve(mine, one) == KNOWN.resolve(shipped, other)
    assert f"--suite {suite}" in (tmp_path / "own" / "README.md").read_text()


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    asked = ("--configs", str(CONFIGS), "--suite", "fake-short")
    (tmp_path / "README.md").write_text("ours\n")
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "detection.yaml").write_text("# ours\n")
    before = read(tmp_path)
    done = init(tmp_path, *asked)
    assert isinstance(done.exception, UsageError)
    assert "README.md, configs/detection.yaml" in str(done.exception)
    assert read(tmp_path) == before


def test_an_upgrade_is_a_diff_that_patch_applies(tmp_path: Path) -> None:
    asked = ("--configs", str(CONFIGS), "--suite", "fake-short")
    assert init(tmp_path, *asked).exit_code == 0
    made = read(tmp_path)
    same = init(tmp_path, *asked, "--upgrade")
    assert (same.exit_code, same.output) == (0, "")
    suite = tmp_path / "configs" / "suites" / "fake-short.yaml"
    suite.write_text(suite.read_text().replace("Two short trials", "Our trials"))
    (tmp_path / "configs" / "schema" / "suite.schema.json").unlink()
    edited = read(tmp_path)
    differing = init(tmp_path, *asked, "--upgrade")
    assert differing.exit_code == 1
    assert "-description: Our trials of the fake system." in differing.output
    assert read(tmp_path) == edited
    subprocess.run(["patch", "-s", "-p1"], cwd=tmp_path, input=differing.output, text=True, check=True)
    assert read(tmp_path) == made


def test_the_workflow_calls_the_nightly_of_knickpoint(tmp_path: Path) -> None:
    asked = ("--suite", "single", "--github", "example/knickpoint@v1.2")
    assert init(tmp_path, *asked).exit_code == 0
    text = (tmp_path / ".github/workflows/nightly.yml").read_text()
    (job,) = YAML(typ="safe").load(text)["jobs"].values()
    called = YAML(typ="safe").load(NIGHTLY.read_text())["on"]["workflow_call"]
    assert job["uses"] == "example/knickpoint/.github/workflows/nightly.yml@v1.2"
    assert job["with"] == {"suite": "single"}
    assert (job["with"].keys(), job["secrets"].keys()) == (
        called["inputs"].keys(),
        called["secrets"].keys(),
    )
    refused = init(tmp_path / "other", "--github", "example/knickpoint")
    assert isinstance(refused.exception, UsageError)
    assert not (tmp_path / "other").exists()


def test_a_suite_that_is_none_is_explained(tmp_path: Path) -> None:
    done = init(tmp_path / "own", "--suite", "quickstrat")
    assert isinstance(done.exception, UsageError)
    assert "quickstart" in str(done.exception)
    assert not (tmp_path / "own").exists()
