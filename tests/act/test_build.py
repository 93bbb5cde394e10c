"""The build of a database's CI on its way to the comment, called as docs/pull-requests.md shows it."""

import re
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import events
import pytest
from act_runner import Done, Runner, leave_out_queue
from actions_server import Forge
from origin import ENVIRONMENT, Origin

from analysis.comparing.results import Revision, read_comparisons
from analysis.detection.verdict import Outcome

ROOT = Path(__file__).parents[2]
HEAD = "0123456789abcdef0123456789abcdef01234567"
RULES = [{"type": "required_reviewers", "reviewers": [{"type": "User", "reviewer": {"id": 1}}]}]
CI = 5
Call = Callable[[], tuple[Done, Path]]


@pytest.fixture
def call(tmp_path: Path, origin: Origin, make_runner: Callable[..., Runner], forge: Forge) -> Call:
    """Return `call()`: the workflow of the docs, after a CI that built the head of pull request 7."""
    tree = tmp_path / "database"
    subprocess.run(["git", "clone", "--quiet", origin.bare, tree], env=ENVIRONMENT, check=True)
    flows = tree / ".github/workflows"
    for flow in flows.glob("*.yml"):
        flow.write_text(leave_out_queue(flow.read_text()))
    docs = (ROOT / "docs/pull-requests.md").read_text()
    (text,) = re.findall(r"^```yaml\n(name: performance\n.*?)^```", docs, re.MULTILINE | re.DOTALL)
    # Here Knickpoint's repository is the database's, and its short suites are what there is.
    text = text.replace("OWNER/NAME/.github/workflows/build.yml@main", "./.github/workflows/build.yml")
    (flows / "performance.yml").write_text(f"{text.rstrip()}\n      suite: single\n")
    forge.head = HEAD
    forge.built = {
        "head_sha": HEAD,
        "head_branch": "topic/1",
        "head_repository": {"owner": {"login": "stranger"}},
    }

    def call() -> tuple[Done, Path]:
        runner = make_runner()
        runner.repository = tree
        event = events.workflow_run(CI, "whatever a stranger says", event="pull_request")
        event["workflow_run"]["head_sha"] = HEAD
        done = runner.run("performance.yml", "workflow_run", event)
        return done, forge.store / str(runner.next_run) / "comparison.zip"

    return call


def keep_build(forge: Forge, tmp_path: Path) -> None:
    """Let the CI have kept an archive of a Cassandra in which there is no Cassandra."""
    (tmp_path / "lib").mkdir()
    with tarfile.open(tmp_path / "head.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "lib", "head/lib")
    kept = forge.store / f"{CI}/build.zip"
    kept.parent.mkdir()
    with ZipFile(kept, "w") as zipped:
        zipped.write(tmp_path / "head.tar.gz", "head.tar.gz")


@pytest.mark.slow
@pytest.mark.real
def test_a_build_that_was_approved_is_measured_and_reported(
    forge: Forge, call: Call, tmp_path: Path
) -> None:
    forge.environments["lab-strangers"] = RULES
    keep_build(forge, tmp_path)
    done, kept = call()
    assert done.left == ()
    assert "## Not everything could be measured" in done.summary, done.log
    with ZipFile(kept) as archive:
        content = read_comparisons(archive.read("comparison.json"), kept)
    assert content.head == Revision(ref=f"0.build.{HEAD[:10]}", sha=HEAD)
    assert content.outcome is Outcome.INVALID
    (comment,) = forge.shown
    # The baseline ran, within wide limits: so it is known that the head does not.
    assert f"state=broken sha={HEAD}" in comment, f"{comment}\n{done.summary}"
    (check,) = forge.runs.values()
    assert (check["head_sha"], check["status"], check["conclusion"]) == (HEAD, "completed", "failure")
    assert forge.leaked == []


@pytest.mark.slow
def test_a_build_that_nobody_approved_is_not_even_fetched(
    forge: Forge, call: Call, tmp_path: Path
) -> None:
    keep_build(forge, tmp_path)
    forge.environments["lab-strangers"] = []
    done, kept = call()
    # By what it asked, not by what it printed: act may lose the last lines of a step that ends at once.
    assert (done.code, done.jobs) == (1, {"admit": "failure"}), done.log
    assert [one.rpartition("/")[2] for one in forge.asked] == ["lab-strangers"], done.log
    assert not kept.exists()
    assert (forge.shown, forge.runs) == ([], {})
