"""The night as GitHub starts it, by its schedule, and what follows: its site, and the watchdog."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import events
import pytest
from act_runner import Runner
from actions_server import Forge

from perf.history.store import open_history
from perf.model.results import TrialStatus

WORKFLOW = Path(__file__).parents[2] / ".github/workflows/nightly.yml"


@pytest.mark.slow
@pytest.mark.real
def test_a_scheduled_night_is_measured_reported_published_and_seen(
    make_runner: Callable[..., Runner], forge: Forge
) -> None:
    runner = make_runner(is_prepared=False)
    done = runner.run("nightly.yml", "schedule", {"schedule": "17 1 * * *"})
    assert done.code == 0, done.log
    assert done.jobs == {"night": "success", "notify": "success"}
    assert done.left == ()
    assert set(done.steps.values()) == {"success"}

    # The actions are those that the workflow pins, to the digit.
    pins = set(re.findall(r"uses: (\S+)@([0-9a-f]{40})", WORKFLOW.read_text()))
    assert len(pins) >= 2
    for action, commit in pins:
        assert f"matched https://github.com/{action} with ref {commit}" in done.log

    with open_history(runner.data / "history.duckdb", read_only=True) as history:
        (trial,) = history.trials()
    assert (trial.release.system, trial.release.version) == ("cassandra", "5.0.9")
    assert trial.status is TrialStatus.COMPLETED

    night, run = done.outputs["night"], runner.next_run
    assert any(line.startswith("## Cannot tell") for line in done.summary.splitlines())
    assert "    cassandra-single-write at 5.0.9: completed" in done.summary
    assert f"    Site:    {runner.data}/site/index.html" in done.summary
    kept = {path.stem: ZipFile(path) for path in forge.find_artifacts(str(run))}
    assert set(kept) == {"site", "notices", f"night-{night}"}
    assert "index.html" in kept["site"].namelist()
    assert all(name.startswith(f"{night}.01.") for name in kept[f"night-{night}"].namelist())
    assert any(name.endswith("/trial.json") for name in kept[f"night-{night}"].namelist())
    assert forge.issues == {}

    published = make_runner().run("publish.yml", "workflow_run", events.nightly_run(run))
    assert published.jobs == {"take": "success", "deploy": "success"}, published.log
    assert (forge.store / "pages/index.html").read_bytes() == kept["site"].read("index.html")

    forge.flows["nightly.yml"] = [record_run(forge, run)]
    watched = make_runner().run("watchdog.yml", "schedule", {"schedule": "43 13 * * *"})
    assert watched.jobs == {"look": "success"}, watched.log
    assert forge.issues == {}


def record_run(forge: Forge, number: int) -> events.JSON:
    """Return the run as GitHub lists it."""
    api = f"{forge.url}/repos/example/configs/actions/runs/{number}"
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {
        "id": number,
        "url": api,
        "artifacts_url": f"{api}/artifacts",
        "html_url": f"https://github.com/example/configs/actions/runs/{number}",
        "head_branch": "main",
        "event": "schedule",
        "status": "completed",
        "conclusion": "success",
        "created_at": now,
        "updated_at": now,
    }


@pytest.mark.slow
def test_where_no_night_was_reported_the_watchdog_fails_and_opens_an_issue(
    make_runner: Callable[..., Runner], forge: Forge
) -> None:
    forge.flows["nightly.yml"] = []
    for _ in range(2):
        done = make_runner().run("watchdog.yml", "schedule", {"schedule": "43 13 * * *"})
        assert done.jobs == {"look": "failure"}, done.log
    (issue,) = forge.issues.values()
    assert issue["state"] == "open"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["../index.html", "evil.php"])
def test_a_site_that_is_none_is_not_published(
    make_runner: Callable[..., Runner], forge: Forge, name: str
) -> None:
    (forge.store / "5").mkdir()
    with ZipFile(forge.store / "5/site.zip", "w") as archive:
        archive.writestr("index.html", "hello")
        archive.writestr(name, "hello")
    done = make_runner().run("publish.yml", "workflow_run", events.nightly_run(5))
    assert done.jobs == {"take": "failure"}, done.log
    assert not (forge.store / "pages").exists()
