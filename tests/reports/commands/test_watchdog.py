"""The watchdog against a GitHub in memory: it is quiet only if GitHub shows it a fresh night."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from actions_server import Forge, write_time
from click.testing import CliRunner, Result
from github_server import TOKEN, Fault, serve

from perf.model.errors import GitHubError, KnickpointError, MeasureError, UsageError
from reports.commands.watchdog import watchdog

HOUR_S = 3600.0


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Forge]:
    forge = Forge(store=tmp_path / "store", flows={"nightly.yml": []})
    with serve(forge):
        monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
        monkeypatch.delenv("KNICKPOINT_GITHUB_TOKEN", raising=False)
        monkeypatch.setenv("GITHUB_API_URL", forge.url)
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
        yield forge


def let_run(hub: Forge, number: int, hours: float, *, night: bool = False, **about: Any) -> None:  # noqa: ANN401
    """Let a run have ended so many hours ago, and keep a night or not."""
    api = f"{hub.url}/repos/example/configs/actions/runs/{number}"
    made = {
        "id": number,
        "url": api,
        "artifacts_url": f"{api}/artifacts",
        "html_url": f"https://github.com/example/configs/actions/runs/{number}",
        "head_branch": "main",
        "event": "schedule",
        "status": "completed",
        "conclusion": "success",
        "created_at": write_time(time.time() - (hours + 1) * HOUR_S),
        "updated_at": write_time(time.time() - hours * HOUR_S),
        **about,
    }
    hub.flows["nightly.yml"].append(made)
    for name in ["site", *(["night-2026-03-09-nightly"] if night else [])]:
        kept = hub.store / f"{number}" / f"{name}.zip"
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.touch()
        then = time.time() - hours * HOUR_S
        os.utime(kept, (then, then))


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(watchdog, ["--repo=example/configs", *arguments])
    assert TOKEN not in result.output + repr(result.exception)
    return result


@pytest.mark.parametrize("conclusion", ["failure", "success"])
def test_a_fresh_night_is_enough_whatever_it_found(hub: Forge, conclusion: str) -> None:
    let_run(hub, 2, 3)  # measured nothing
    let_run(hub, 1, 20, night=True, conclusion=conclusion)
    result = run("--max-age-hours=30")
    assert (result.exit_code, "20 hours old: https://github.com" in result.output) == (0, True)
    assert "::error" not in result.output
    assert hub.writes == []


@pytest.mark.parametrize(
    "about",
    [
        {},
        {"night": True, "head_branch": "feature"},
        {"night": True, "event": "pull_request"},
        {"night": True, "event": "workflow_dispatch"},
        {"night": True, "conclusion": "cancelled"},
        {"night": True, "status": "in_progress", "conclusion": None},
    ],
    ids=str,
)
def test_it_shouts_where_it_is_heard(hub: Forge, tmp_path: Path, about: dict[str, Any]) -> None:
    let_run(hub, 1, 2, **about)
    result = run()
    assert isinstance(result.exception, MeasureError)
    assert result.exception.exit_code == 3
    said = "no night of nightly.yml was reported within 30 hours"
    assert said in str(result.exception)
    (line,) = [one for one in result.output.splitlines() if one.startswith("::")]
    assert line.startswith(f"::error title=No fresh night::{said}")
    assert said in (tmp_path / "summary.md").read_text()


def test_a_queue_for_a_runner_that_is_offline_is_named(hub: Forge) -> None:
    let_run(hub, 2, 25, status="queued", conclusion=None)
    let_run(hub, 1, 49, night=True)
    result = run()
    assert isinstance(result.exception, MeasureError)
    assert "waits for a runner: is its host up" in result.output
    assert "told no night" not in result.output


def test_the_issue_is_opened_once_and_closed(hub: Forge) -> None:
    let_run(hub, 1, 49, night=True)
    for _ in range(2):
        assert isinstance(run("--issue").exception, MeasureError)
    assert [one["state"] for one in hub.issues.values()] == ["open"]
    hub.flows["nightly.yml"].clear()
    let_run(hub, 2, 1, night=True)
    assert run("--issue").exit_code == 0
    (issue,) = hub.issues.values()
    assert (issue["state"], "nights are back." in issue["body"]) == ("closed", True)
    before = list(hub.writes)
    assert run("--issue").exit_code == 0
    assert hub.writes == before


@pytest.mark.parametrize("path", ["/artifacts", "/configs", "/runs", "/workflows/nightly.yml"])
@pytest.mark.parametrize("status", [403, 404])
def test_it_is_never_silent_when_github_refuses(
    hub: Forge, tmp_path: Path, path: str, status: int
) -> None:
    let_run(hub, 1, 2, night=True)
    hub.faults.append(Fault(method="GET", path=path, status=status, message="100% no\n::x"))
    result = run()
    assert isinstance(result.exception, GitHubError)
    (line,) = [one for one in result.output.splitlines() if one.startswith("::")]
    assert "it is unknown whether there was a night" in line
    assert "100%25 no ::x" in line
    assert "it is unknown" in (tmp_path / "summary.md").read_text()


@pytest.mark.parametrize("wrong", ["--max-age-hours=0", "--max-age-hours=nan", "--workflow=../x.yml"])
def test_wrong_use_is_refused(hub: Forge, wrong: str) -> None:
    assert run(wrong).exit_code == 2
    assert hub.asked == []


def test_it_needs_a_token(hub: Forge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    error = run().exception
    assert isinstance(error, UsageError)
    assert isinstance(error, KnickpointError)
    assert hub.asked == []
