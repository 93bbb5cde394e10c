"""A repository that `knickpoint init` made calls `candidate`: its head is read by our code."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import events
import pytest
from act_runner import Runner, leave_out_queue
from actions_server import Forge
from click.testing import CliRunner
from origin import DEFAULT, ENVIRONMENT, Origin

from analysis.comparing.results import read_comparisons
from analysis.detection.verdict import Outcome
from perf.commands.main import knickpoint

RULES = [{"type": "required_reviewers", "reviewers": [{"type": "User", "reviewer": {"id": 1}}]}]
CALLED = "example/knickpoint/.github/workflows/candidate.yml@v1"


@pytest.mark.slow
def test_an_approved_head_of_a_repository_that_calls_is_read_as_data(
    tmp_path: Path, origin: Origin, make_runner: Callable[..., Runner], forge: Forge
) -> None:
    asked = ["init", str(tmp_path / "made"), "--suite", "single", "--github", "example/knickpoint@v1"]
    assert CliRunner().invoke(knickpoint, asked).exit_code == 0
    own = Origin(tmp_path / "own", tmp_path / "made")
    tree = tmp_path / "knickpoint"
    subprocess.run(["git", "clone", "--quiet", origin.bare, tree], env=ENVIRONMENT, check=True)
    flows = tree / ".github/workflows"
    for flow in flows.glob("*.yml"):
        flow.write_text(leave_out_queue(flow.read_text()))
    text = (own.work / ".github/workflows/candidate.yml").read_text()
    assert CALLED in text
    # act has no second repository to call; the one that calls is checked out from its own all the same.
    text = text.replace(CALLED, "./.github/workflows/candidate.yml")
    (flows / "calling.yml").write_text(text)

    head = own.propose({DEFAULT: ("system: cassandra", "# why\nsystem: cassandra")})
    forge.environments["lab-strangers"] = RULES
    runner = make_runner()
    runner.repository = tree
    event = events.pull_request_target(head, origin.main, is_fork=True)
    known = {"KNICKPOINT_PEER_CALLER": str(own.bare), "GITHUB_WORKFLOW_SHA": own.main}
    done = runner.run("calling.yml", "pull_request_target", event, environ=known)
    assert "Nothing to measure" in done.summary, done.log
    assert done.outputs["environment"] == "lab-strangers"
    (artifact,) = forge.store.glob("*/comparison.zip")
    with ZipFile(artifact) as archive:
        content = read_comparisons(archive.read("comparison.json"), artifact)
    assert content.outcome is Outcome.UNCHANGED
    assert content.head is not None
    assert content.head.sha == head
