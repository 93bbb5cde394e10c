"""What must not reach the testbed: strangers without approval, and commits that nobody approved."""

from collections.abc import Callable
from zipfile import ZipFile

import events
import pytest
from act_runner import Done, Runner
from actions_server import Forge
from origin import DEFAULT, Origin

from analysis.comparing.results import read_comparisons
from analysis.detection.verdict import Outcome

HARMLESS = {DEFAULT: ("system: cassandra", "# why\nsystem: cassandra")}
OTHER = {DEFAULT: ("system: cassandra", "# why not\nsystem: cassandra")}
RULES = [{"type": "required_reviewers", "reviewers": [{"type": "User", "reviewer": {"id": 1}}]}]
Start = Callable[..., Done]


@pytest.fixture
def start(make_runner: Callable[..., Runner], origin: Origin) -> Start:
    """Return `start(head, is_fork=True)`: `candidate`, after a push of that head."""

    def start(head: str, *, is_fork: bool) -> Done:
        event = events.pull_request_target(head, origin.main, is_fork=is_fork)
        return make_runner().run("candidate.yml", "pull_request_target", event)

    return start


@pytest.mark.slow
@pytest.mark.parametrize("rules", [None, [], [{"type": "wait_timer", "wait_timer": 1}]], ids=str)
def test_a_stranger_is_held_where_nobody_can_have_approved(
    origin: Origin, forge: Forge, start: Start, rules: list[events.JSON] | None
) -> None:
    if rules is not None:
        forge.environments["lab-strangers"] = rules
    done = start(origin.propose(HARMLESS), is_fork=True)
    assert done.jobs == {"admit": "failure"}, done.log
    assert done.outputs["environment"] == "lab-strangers"


@pytest.mark.slow
def test_an_approved_stranger_is_read_as_data(origin: Origin, forge: Forge, start: Start) -> None:
    # What the head changes beside configs/ has no effect: neither its Makefile nor its workflow runs.
    forge.environments["lab-strangers"] = RULES
    script = "setup:\n\ttouch owned; false\n"
    edits = {**HARMLESS, "Makefile": ("setup:", script), "conftest.py": ("", "raise SystemExit(99)\n")}
    head = origin.propose(edits)
    done = start(head, is_fork=True)
    assert done.jobs == {"admit": "success", "measure": "success"}, done.log
    assert "Nothing to measure" in done.summary
    (artifact,) = forge.store.glob("*/comparison.zip")
    with ZipFile(artifact) as archive:
        content = read_comparisons(archive.read("comparison.json"), artifact)
    assert content.outcome is Outcome.UNCHANGED


@pytest.mark.slow
def test_what_was_pushed_after_the_approval_is_not_measured(
    origin: Origin, forge: Forge, start: Start
) -> None:
    forge.environments["lab-strangers"] = RULES
    approved = origin.propose(HARMLESS)
    origin.propose(OTHER)
    done = start(approved, is_fork=True)
    assert done.jobs == {"admit": "success", "measure": "failure"}
    assert f"the pull request has moved on from {approved}" in done.log
    assert list(forge.store.glob("*/*.zip")) == []


@pytest.mark.slow
def test_a_stranger_who_is_dispatched_as_one_of_us_is_refused(
    origin: Origin, make_runner: Callable[..., Runner]
) -> None:
    head = origin.propose(HARMLESS)
    inputs = {"pull": "7", "sha": head, "stranger": "false", "minutes": "10"}
    done = make_runner().run("candidate.yml", "workflow_dispatch", {"inputs": inputs})
    assert done.jobs == {"admit": "success", "measure": "failure"}, done.log
    assert f"no branch of this repository has {head}" in done.log


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"draft": True}, {"fork": True}], ids=str)
def test_drafts_and_forks_of_the_repository_start_nothing(
    origin: Origin, make_runner: Callable[..., Runner], change: dict[str, bool]
) -> None:
    event = events.pull_request_target(origin.main, origin.main)
    event["pull_request"]["draft"] = change.get("draft", False)
    repository = {**events.REPOSITORY, "fork": change.get("fork", False)}
    done = make_runner().run(
        "candidate.yml", "pull_request_target", {**event, "repository": repository}
    )
    assert (done.code, done.jobs) == (0, {}), done.log
