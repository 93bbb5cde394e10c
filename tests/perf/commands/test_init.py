"""A repository of one's own: it runs as it is, writes over nothing, shows what a newer version has."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from ruamel.yaml import YAML

from perf.commands.main import knickpoint
from perf.config.catalog import load_catalog
from perf.model.errors import UsageError

FLOWS = Path(__file__).parents[3] / ".github/workflows"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
KNOWN = load_catalog(Path("configs"))
CONFIGS = Path(__file__).parents[2] / "data" / "configs"


def init(directory: Path, *more: str) -> Result:
    return CliRunner().invoke(knickpoint, ["init", str(directory), *more])


def load(text: str) -> Any:  # noqa: ANN401  YAML is any tree
    return YAML(typ="safe", pure=True).load(text)


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


def test_the_workflows_call_those_of_knickpoint(tmp_path: Path) -> None:
    asked = ("--suite", "single", "--github", f"example/knickpoint@{COMMIT}")
    assert init(tmp_path, *asked).exit_code == 0
    made = {path.name: path.read_text() for path in (tmp_path / ".github/workflows").iterdir()}
    called = {path.name: load(path.read_text()) for path in FLOWS.iterdir()}
    # `build` is called by a database's repository, and `command` starts what is by hand as well.
    assert made.keys() == called.keys() - {"audit.yml", "build.yml", "ci.yml", "command.yml"}
    for name, text in made.items():
        (job,) = load(text)["jobs"].values()
        asks = called[name]["on"]["workflow_call"] or {}
        assert job["uses"] == f"example/knickpoint/.github/workflows/{name}@{COMMIT}"
        # Only `build` calls `comment` about a run of its own.
        taken = () if name == "comment.yml" else asks.get("inputs", {}).keys()
        assert job.get("with", {}).keys() == set(taken)
        assert job.get("secrets", {}).keys() == asks.get("secrets", {}).keys()
        # A job that is called may do no more than the one that calls, or GitHub starts none of them.
        for one in called[name]["jobs"].values():
            granted = {"contents": "read"} | one.get("permissions", {})
            assert granted.items() <= job["permissions"].items(), name
        # What starts it, and how it is called where others look for it, is as with Knickpoint itself.
        for key in ("name", "run-name"):
            assert load(text).get(key) == called[name].get(key)
        starts = {key: one for key, one in called[name]["on"].items() if key != "workflow_call"}
        assert load(text)["on"].keys() == starts.keys()
        # Its suite is the one that was asked for.
        for key in starts.keys() - ({"workflow_dispatch"} if name == "nightly.yml" else set()):
            assert load(text)["on"][key] == starts[key]
    assert load(made["nightly.yml"])["jobs"]["nightly"]["with"] == {"suite": "single"}
    refused = init(tmp_path / "other", "--github", "example/knickpoint")
    assert isinstance(refused.exception, UsageError)
    assert not (tmp_path / "other").exists()


def test_zizmor_finds_nothing_in_these_workflows(tmp_path: Path) -> None:
    assert init(tmp_path, "--github", f"example/knickpoint@{COMMIT}").exit_code == 0
    zizmor = Path(sys.executable).with_name("zizmor")
    asked = [zizmor, "--offline", "--pedantic", "--quiet", tmp_path / ".github"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_suite_that_is_none_is_explained(tmp_path: Path) -> None:
    done = init(tmp_path / "own", "--suite", "quickstrat")
    assert isinstance(done.exception, UsageError)
    assert "quickstart" in str(done.exception)
    assert not (tmp_path / "own").exists()
