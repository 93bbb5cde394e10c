"""A pull request on its way: measured on a real Cassandra, its result told by another workflow."""

from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import events
import pytest
from act_runner import Done, Runner
from actions_server import Forge
from origin import DEFAULT, WINDOW, Origin

from analysis.comparing.results import read_comparisons
from analysis.detection.verdict import Outcome

SLOWER = {DEFAULT: (f"{WINDOW}: 2ms", f"{WINDOW}: 100ms")}


@pytest.mark.slow
@pytest.mark.real
def test_a_slower_configuration_is_measured_and_reported(
    origin: Origin, forge: Forge, make_runner: Callable[..., Runner], report: Callable[..., Done]
) -> None:
    head = origin.propose(SLOWER, branch="slower")
    forge.head = head
    runner = make_runner()
    begun = report(runner.next_run + 1, head, action="in_progress")
    assert begun.code == 0, begun.log
    (check,) = forge.runs.values()
    assert (check["head_sha"], check["status"]) == (head, "in_progress")
    assert forge.comments == {}

    measured = runner.run(
        "candidate.yml", "pull_request_target", events.pull_request_target(head, origin.main)
    )
    assert measured.jobs == {"admit": "success", "measure": "failure"}, measured.log
    assert measured.outputs["environment"] == "lab"
    assert measured.left == ()
    assert not Path("/tmp/owned").exists()  # noqa: S108  what the title of the event asks for
    assert "## Regressed" in measured.summary
    (artifact,) = forge.find_artifacts(str(runner.next_run))
    with ZipFile(artifact) as archive:
        assert archive.namelist() == ["comparison.json"]
        content = read_comparisons(archive.read("comparison.json"), artifact)
    assert content.outcome is Outcome.REGRESSED
    assert content.head is not None
    assert content.head.sha == head

    reported = report(runner.next_run, head, conclusion="failure")
    assert reported.code == 0, reported.log
    assert forge.leaked == []
    (comment,) = forge.shown
    assert "cassandra-single-write" in comment
    assert WINDOW in comment
    assert "https://perf.example/site" in comment
    (check,) = forge.runs.values()
    assert (check["status"], check["conclusion"]) == ("completed", "failure")
    assert check["name"] == "knickpoint / candidate"
    # Told twice, nothing changes: GitHub may run a workflow again.
    before = dict(forge.comments)
    assert report(runner.next_run, head, conclusion="failure").code == 0
    assert forge.comments == before
