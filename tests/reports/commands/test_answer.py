"""The command from the event to GitHub: who may, what is started once, and what is ignored."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from actions_server import Forge
from click.testing import CliRunner, Result
from github_server import BOT, HEAD, TOKEN, Fault, serve

from perf.model.errors import GitHubError, InputError, UsageError
from reports.commands.answer import answer

ASKED = 31


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Forge]:
    forge = Forge(roles={"alice": "write", "max": "maintain", "root": "admin", "tria": "triage"})
    with serve(forge):
        monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
        monkeypatch.delenv("KNICKPOINT_GITHUB_TOKEN", raising=False)
        monkeypatch.setenv("GITHUB_API_URL", forge.url)
        monkeypatch.setenv("GITHUB_REPOSITORY", "example/configs")
        yield forge


def event(body: str, login: str = "alice", **about: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return an event as GitHub writes it; `about` replaces parts by their way, as issue__state."""
    made: dict[str, Any] = {
        "action": "created",
        "issue": {"number": 7, "state": "open", "pull_request": {"url": "https://x"}, "title": "T"},
        "comment": {
            "id": ASKED,
            "body": body,
            "author_association": "OWNER",
            "user": {"login": login, "type": "User"},
        },
        "repository": {"full_name": "example/configs", "default_branch": "evil"},
        "sender": {"login": login},
    }
    for way, value in about.items():
        *steps, last = way.split("__")
        part = made
        for step in steps:
            part = part[step]
        part[last] = value
    return made


def run(tmp_path: Path, content: object, *arguments: str) -> Result:
    path = tmp_path / "event.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    result = CliRunner().invoke(answer, [f"--event={path}", *arguments])
    assert TOKEN not in result.output + repr(result.exception)
    return result


@pytest.mark.parametrize("login", ["alice", "max", "root"])
def test_who_may_write_starts_a_measurement_once(hub: Forge, tmp_path: Path, login: str) -> None:
    for again in (False, True):
        result = run(tmp_path, event("/knickpoint measure --minutes 30", login))
        assert (result.exit_code, "accepted before" in result.output) == (0, again)
    inputs = {"minutes": "30", "pull": "7", "sha": HEAD, "stranger": "false"}
    (sent,) = hub.dispatched
    assert (sent["workflow"], sent["ref"], sent["inputs"]) == ("candidate.yml", "main", inputs)
    assert hub.reactions == [(ASKED, "eyes")]
    (said,) = hub.shown
    assert "at most 30 minutes of trials" in said
    assert "(https://github.com/example/configs/actions/workflows/candidate.yml)" in said


@pytest.mark.parametrize("origin", ["mallory/configs", ""])
def test_a_head_elsewhere_is_a_strangers(hub: Forge, tmp_path: Path, origin: str) -> None:
    hub.head_repo = origin
    assert run(tmp_path, event("/knickpoint measure")).exit_code == 0
    assert hub.dispatched[0]["inputs"]["stranger"] == "true"


def test_a_bisection_needs_nothing_of_the_pull_request(hub: Forge, tmp_path: Path) -> None:
    assert run(tmp_path, event("/knickpoint bisect 3f9a1c20")).exit_code == 0
    assert hub.dispatched[0]["inputs"] == {"incident": "3f9a1c20", "minutes": "480"}
    assert "in the summary of the run" in hub.shown[0]


@pytest.mark.parametrize("login", ["mallory", "tria"])
def test_who_may_not_is_refused_once_whatever_the_event_says_of_them(
    hub: Forge, tmp_path: Path, login: str
) -> None:
    for body in ("/knickpoint measure", "/knickpoint help", "/knickpoint nonsense"):
        assert run(tmp_path, event(body, login)).exit_code == 0
    assert (hub.dispatched, hub.reactions) == ([], [])
    (said,) = hub.shown
    assert f"Sorry, {login}" in said


def test_a_mark_that_others_wrote_hides_nothing(hub: Forge, tmp_path: Path) -> None:
    hub.write(f"<!-- knickpoint:answer to={ASKED} -->", "mallory")
    hub.reactions.append((ASKED, "heart"))
    run(tmp_path, event("/knickpoint help"))
    assert len(hub.shown) == 2
    run(tmp_path, event("/knickpoint help"))
    assert len(hub.shown) == 2


def test_wrong_words_are_answered_with_the_usage(hub: Forge, tmp_path: Path) -> None:
    result = run(tmp_path, event("/knickpoint measure --suite @everyone"))
    assert result.exit_code == 0
    assert hub.dispatched == []
    assert "`@everyone` is no name" in hub.shown[0]
    assert "/knickpoint bisect INCIDENT" in hub.shown[0]


@pytest.mark.parametrize(
    "about",
    [
        {"action": "edited"},
        {"action": "deleted"},
        {"issue__state": "closed"},
        {"issue__pull_request": None},
        {"comment__user": None},
        {"comment__user": {"login": "dependabot[bot]", "type": "Bot"}},
        {"comment__user": {"login": "../../x", "type": "User"}},
        {"comment__body": None},
        {"comment__body": "I would /knickpoint measure it"},
    ],
    ids=str,
)
def test_all_else_is_ignored_without_asking_anybody(
    hub: Forge, tmp_path: Path, about: dict[str, Any]
) -> None:
    result = run(tmp_path, event("/knickpoint measure", **about))
    assert (result.exit_code, hub.asked) == (0, [])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "its form"),
        (b"[" * 100_000, "its form"),
        (b"\xff{}", "its form"),
        (b"{}", "action"),
        (event("x", issue__number="7; id"), "issue.number"),
        (event("x", issue__number=-7), "issue.number"),
        (event("x", comment__id=2**70), "comment.id"),
        (b" " * 5_000_001, "at most 5000000 are read"),
    ],
    ids=range(8),
)
def test_what_is_no_event_is_refused(hub: Forge, tmp_path: Path, content: object, why: str) -> None:
    result = run(tmp_path, content)
    assert isinstance(result.exception, InputError)
    assert why in str(result.exception)
    assert hub.asked == []


def test_an_event_of_elsewhere_is_refused(hub: Forge, tmp_path: Path) -> None:
    result = run(tmp_path, event("/knickpoint measure", repository__full_name="mallory/configs"))
    assert isinstance(result.exception, UsageError)
    assert hub.asked == []


def test_a_dry_run_asks_nobody(hub: Forge, tmp_path: Path) -> None:
    result = run(tmp_path, event("/knickpoint measure --suite=nightly"), "--dry-run")
    assert "would start candidate.yml" in result.output
    assert hub.asked == []


@pytest.mark.parametrize(("status", "said"), [(422, "could not be started"), (500, "did not say")])
def test_a_start_that_fails_is_answered_and_never_repeated(
    hub: Forge, tmp_path: Path, status: int, said: str
) -> None:
    hub.faults.append(Fault(method="POST", path="/dispatches", status=status, message="@you broke it"))
    result = run(tmp_path, event("/knickpoint measure"))
    assert isinstance(result.exception, GitHubError)
    assert result.exception.exit_code == 3
    assert said in hub.shown[0]
    assert "@you" not in hub.shown[0]
    assert [one for one in hub.writes if "dispatches" in one] == [
        "POST /repos/example/configs/actions/workflows/candidate.yml/dispatches"
    ]
    assert hub.shown[0].startswith(f"<!-- knickpoint:answer to={ASKED} -->\n")


def test_nothing_starts_if_nobody_says_who_may_write(hub: Forge, tmp_path: Path) -> None:
    hub.faults.append(Fault(method="GET", path="/permission", status=403, message="Forbidden"))
    result = run(tmp_path, event("/knickpoint measure"))
    assert isinstance(result.exception, GitHubError)
    assert "metadata: read" in str(result.exception)
    assert (hub.writes, hub.login) == ([], BOT)
