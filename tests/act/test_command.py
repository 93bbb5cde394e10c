"""A comment asks for a measurement: from the comment to the check run, through three workflows."""

from collections.abc import Callable

import events
import pytest
from act_runner import Done, Runner
from actions_server import Forge
from origin import DEFAULT, Origin

HARMLESS = {DEFAULT: ("system: cassandra", "# why\nsystem: cassandra")}
Ask = Callable[..., Done]


@pytest.fixture
def ask(make_runner: Callable[..., Runner], forge: Forge) -> Ask:
    """Return `ask(body, login)`: `command`, after that comment."""

    def ask(body: str, login: str, *, is_pull: bool = True) -> Done:
        comment = forge.write(body, login)
        event = events.issue_comment(body, comment["id"], login=login, is_pull=is_pull)
        return make_runner().run("command.yml", "issue_comment", event)

    return ask


@pytest.mark.slow
def test_who_may_write_has_a_pull_request_measured_and_reported(
    origin: Origin,
    forge: Forge,
    ask: Ask,
    make_runner: Callable[..., Runner],
    report: Callable[..., Done],
) -> None:
    forge.head = head = origin.propose(HARMLESS, branch="commented")
    forge.roles["alice"] = "write"
    done = ask("/knickpoint measure --suite single --minutes 30", "alice")
    assert done.jobs == {"answer": "success"}, done.log
    (sent,) = forge.dispatched
    assert (sent["workflow"], sent["ref"]) == ("candidate.yml", "main")
    assert sent["inputs"]["sha"] == head
    assert [content for _, content in forge.reactions] == ["eyes"]

    # What was dispatched is what candidate takes, and what candidate leaves is what comment tells.
    runner = make_runner()
    measured = runner.run("candidate.yml", "workflow_dispatch", {"inputs": sent["inputs"]})
    assert measured.jobs == {"admit": "success", "measure": "success"}, measured.log
    assert "Nothing to measure" in measured.summary
    reported = report(runner.next_run, head, event="workflow_dispatch")
    assert reported.jobs == {"comment": "success"}, reported.log
    (check,) = forge.runs.values()
    assert (check["head_sha"], check["conclusion"]) == (head, "success")


@pytest.mark.slow
def test_a_stranger_starts_nothing(forge: Forge, ask: Ask) -> None:
    done = ask("/knickpoint measure", "mallory")
    assert done.jobs == {"answer": "success"}, done.log
    assert (forge.dispatched, forge.reactions) == ([], [])
    assert "Sorry, mallory" in forge.shown[-1]


@pytest.mark.slow
def test_a_comment_elsewhere_starts_no_machine(forge: Forge, ask: Ask) -> None:
    assert ask("/knickpoint measure", "alice", is_pull=False).jobs == {}
    assert ask("I would /knickpoint measure it", "alice").jobs == {}
    assert forge.asked == []
