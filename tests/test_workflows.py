"""The workflows keep their promises, as far as that shows without GitHub."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PINNED = re.compile(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")


def read(path: Path) -> Any:  # noqa: ANN401  YAML is any tree; each test looks at its own branch
    """Parse a workflow as YAML 1.2, in which `on` is no boolean."""
    return YAML(typ="safe", pure=True).load(path.read_text())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_may_only_read_by_default(path: Path) -> None:
    assert read(path)["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_pins_each_action_to_a_commit_and_names_its_version(path: Path) -> None:
    uses = [line.strip() for line in path.read_text().splitlines() if "uses:" in line]
    assert uses
    assert [line for line in uses if not PINNED.search(line)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_limits_each_job_in_time_and_puts_no_expression_into_a_script(path: Path) -> None:
    for job in read(path)["jobs"].values():
        assert job["timeout-minutes"]
        assert [step["run"] for step in job["steps"] if "${{" in step.get("run", "")] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_is_a_row_of_the_readme(path: Path) -> None:
    assert f"| [{path.stem}](workflows/{path.name}) |" in (ROOT / ".github/README.md").read_text()


def test_our_own_hosts_run_reviewed_code_only() -> None:
    for path in WORKFLOWS:
        workflow = read(path)
        for job in workflow["jobs"].values():
            if "self-hosted" in job["runs-on"]:
                assert set(workflow["on"]) <= {"schedule", "workflow_dispatch", "pull_request_target"}
                assert "github.ref == 'refs/heads/main'" in job["if"]
                assert job["concurrency"] == {
                    "group": "testbed-knickpoint",
                    "cancel-in-progress": False,
                    "queue": "max",
                }


def test_nightly_offers_the_suites_that_exist() -> None:
    choice = read(ROOT / ".github/workflows/nightly.yml")["on"]["workflow_dispatch"]["inputs"]["suite"]
    suites = {path.stem for path in (ROOT / "configs/suites").glob("*.yaml")}
    assert set(choice["options"]) == suites
    assert choice["default"] in suites


TOLD = "one: completed\n\nVerdict: Cannot tell yet: of 2 series, 2 undecided\nSite:    index.html\n"


@pytest.mark.parametrize(
    ("code", "printed", "headline", "is_kept"),
    [
        (0, TOLD, "## Cannot tell yet: of 2 series, 2 undecided", True),
        (1, TOLD, "## A regression is confirmed", True),
        (2, "", "## Not measured: wrong usage or configuration; the log says which", False),
        (3, TOLD, "## Not everything could be measured; the log says why", True),
        (3, "", "## Not everything could be measured; the log says why", False),
        (70, "", "## Knickpoint itself failed with exit code 70; the log says how", False),
    ],
)
def test_nightly_passes_the_exit_code_on_and_says_what_it_means(
    tmp_path: Path, code: int, printed: str, headline: str, *, is_kept: bool
) -> None:
    jobs = read(ROOT / ".github/workflows/nightly.yml")["jobs"]
    script = next(step["run"] for step in jobs["night"]["steps"] if step.get("id") == "night")
    command = tmp_path / ".venv/bin/knickpoint"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\necho "$@" >arguments\ncat told\nexit {code}\n')
    command.chmod(0o755)
    (tmp_path / "told").write_text(printed)
    (tmp_path / ".github").symlink_to(ROOT / ".github")
    nights = tmp_path / "data/nights"
    nights.mkdir(parents=True)
    for age, night in enumerate(("2026-03-02-1", "2026-03-01-2")):
        (nights / f"{night}.json").touch()
        os.utime(nights / f"{night}.json", (1_800_000_000 - age, 1_800_000_000 - age))
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "SUITE": "odd name; exit 0",
            "SITE_URL": "",
            "KNICKPOINT_DATA": str(tmp_path / "data"),
            "RUNNER_TEMP": str(tmp_path),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
            "GITHUB_OUTPUT": str(tmp_path / "output"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    arguments = f"nightly --suite odd name; exit 0 --data {tmp_path}/data --site-url \n"
    assert (tmp_path / "arguments").read_text() == arguments
    summary = (tmp_path / "summary").read_text().splitlines()
    assert summary[0] == headline
    assert summary[2:] == [f"    {line}" for line in printed.splitlines()]
    assert ("::error" in done.stdout) == (code != 0)
    output = tmp_path / "output"
    kept = f"data={tmp_path}/data\nnight=2026-03-02-1\n"
    assert (output.read_text() if output.exists() else "") == (kept if is_kept else "")
