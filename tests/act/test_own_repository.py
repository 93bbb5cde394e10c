"""A repository that `knickpoint init` made calls our workflows, which measure what is its own."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import events
import pytest
from act_runner import Runner, leave_out_queue
from actions_server import Forge
from click.testing import CliRunner
from origin import DEFAULT, ENVIRONMENT, Origin, replace

from analysis.comparing.results import read_comparisons
from analysis.detection.verdict import Outcome
from perf.commands.main import knickpoint
from perf.history.store import open_history
from perf.model.results import TrialStatus

OWN = "our-own-write"
RULES = [{"type": "required_reviewers", "reviewers": [{"type": "User", "reviewer": {"id": 1}}]}]


@dataclass(frozen=True)
class Calling:
    """A repository that `init` made, and a checkout of Knickpoint whose `calling.yml` is a flow of it.

    act has no second repository to call; the one that calls is checked out from its own all the same.
    """

    own: Origin
    tree: Path

    def take(self, flow: str) -> None:
        """Have `calling.yml` be this workflow of the repository that calls."""
        called = f"example/knickpoint/.github/workflows/{flow}@v1"
        text = (self.own.work / ".github/workflows" / flow).read_text()
        assert called in text
        text = text.replace(called, f"./.github/workflows/{flow}")
        (self.tree / ".github/workflows/calling.yml").write_text(text)

    @property
    def environ(self) -> dict[str, str]:
        """What the peers of actions and runner know of it."""
        return {"KNICKPOINT_PEER_CALLER": str(self.own.bare), "GITHUB_WORKFLOW_SHA": self.own.main}


@pytest.fixture
def calling(tmp_path: Path, origin: Origin) -> Calling:
    asked = ["init", str(tmp_path / "made"), "--suite", "single", "--github", "example/knickpoint@v1"]
    asked += ["--configs", str(origin.work / "configs")]
    assert CliRunner().invoke(knickpoint, asked).exit_code == 0
    # It is known by this experiment, which Knickpoint itself has not.
    replace(tmp_path / "made/configs/suites/single.yaml", {"cassandra-single-write": OWN})
    own = Origin(tmp_path / "own", tmp_path / "made")
    tree = tmp_path / "knickpoint"
    subprocess.run(["git", "clone", "--quiet", origin.bare, tree], env=ENVIRONMENT, check=True)
    for flow in (tree / ".github/workflows").glob("*.yml"):
        flow.write_text(leave_out_queue(flow.read_text()))
    return Calling(own, tree)


@pytest.mark.slow
def test_an_approved_head_of_a_repository_that_calls_is_read_as_data(
    calling: Calling, origin: Origin, make_runner: Callable[..., Runner], forge: Forge
) -> None:
    own = calling.own
    calling.take("candidate.yml")
    head = own.propose({DEFAULT: ("system: cassandra", "# why\nsystem: cassandra")})
    forge.environments["lab-strangers"] = RULES
    runner = make_runner()
    runner.repository = calling.tree
    event = events.pull_request_target(head, origin.main, is_fork=True)
    done = runner.run("calling.yml", "pull_request_target", event, environ=calling.environ)
    assert "Nothing to measure" in done.summary, done.log
    assert done.outputs["environment"] == "lab-strangers"
    (artifact,) = forge.store.glob("*/comparison.zip")
    with ZipFile(artifact) as archive:
        content = read_comparisons(archive.read("comparison.json"), artifact)
    assert content.outcome is Outcome.UNCHANGED
    assert content.head is not None
    assert content.head.sha == head


@pytest.mark.slow
@pytest.mark.real
def test_a_night_of_a_repository_that_calls_measures_its_own_suite(
    calling: Calling, make_runner: Callable[..., Runner], forge: Forge
) -> None:
    calling.take("nightly.yml")
    runner = make_runner()
    runner.repository = calling.tree
    event = {"schedule": "17 1 * * *"}
    done = runner.run("calling.yml", "schedule", event, environ=calling.environ)
    assert done.code == 0, done.log
    with open_history(runner.data / "history.duckdb", read_only=True) as history:
        trials = history.trials()
    assert {trial.experiment for trial in trials} == {OWN}
    assert {trial.status for trial in trials} == {TrialStatus.COMPLETED}
    kept = {path.stem for path in forge.find_artifacts(str(runner.next_run))}
    assert kept == {"site", "notices", f"night-{trials[0].night}"}
