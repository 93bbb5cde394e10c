"""What a job measured is root's after it: a later job of the same user can add to it, and no more."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_site import ROOT
from jinja2 import Environment
from needs import need

TEMPLATE = ROOT / "infra/roles/runner/templates/knickpoint-runner-clean.j2"
USER = "nobody"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    need(os.geteuid() == 0, "run it as root")
    # Others must be able to come to it.
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o011)
    data = tmp_path / "data"
    bundle = data / "trials" / "night.1"
    bundle.mkdir(parents=True)
    (bundle / "trial.json").write_text("{}")
    (data / "trials" / ".staged").mkdir()
    for path in (data, *data.rglob("*")):
        os.chown(path, 65534, 65534)
    return data


@pytest.fixture
def clean(data: Path) -> Callable[[], None]:
    """Return what seals; the rest of the script ends and removes whatever is that user's."""
    text = TEMPLATE.read_text()
    part = "set -eu\n" + text[text.index("# What a job measured") :]
    script = Environment(autoescape=False).from_string(part)  # noqa: S701  a shell script
    group = subprocess.run(["id", "-gn", USER], capture_output=True, text=True, check=True)
    rendered = script.render(runner_data=data, runner_user=USER)
    rendered = rendered.replace(f"group={USER}", f"group={group.stdout.strip()}")
    return lambda: subprocess.run(["sh", "-c", rendered], check=True) and None


def can(data: Path, command: str) -> bool:
    """Try as a job would."""
    asked = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", command]
    return subprocess.run(asked, cwd=data, capture_output=True, check=False).returncode == 0


def test_a_later_job_adds_bundles_and_changes_none(data: Path, clean: Callable[[], None]) -> None:
    clean()
    for command in (
        "echo x >> trials/night.1/trial.json",
        "rm -r trials/night.1",
        "mv trials/night.1 trials/other",
        "touch trials/night.1/more",
        "mv trials elsewhere",
    ):
        assert not can(data, command), command
    for command in (
        "cat trials/night.1/trial.json",
        "mkdir trials/.new && touch trials/.new/trial.json && mv trials/.new trials/night.2",
        "touch history.duckdb && mv history.duckdb history.old",
        "rm -r trials/.staged",
    ):
        assert can(data, command), command
    clean()
    assert not can(data, "rm -r trials/night.2")


def test_a_link_leads_root_nowhere(data: Path, clean: Callable[[], None], tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "night.1").mkdir(parents=True)
    os.chown(other / "night.1", 65534, 65534)
    (data / "trials").rename(data / "away")
    (data / "trials").symlink_to(other)
    clean()
    assert (other / "night.1").stat().st_uid == 65534
    (data / "trials").unlink()
    (data / "away").rename(data / "trials")
    (data / "trials" / "night.1" / "link").symlink_to(other / "night.1")
    clean()
    assert (other / "night.1").stat().st_uid == 65534
    assert (data / "trials" / "night.1" / "link").lstat().st_uid == 0
