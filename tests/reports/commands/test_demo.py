"""The demonstration: a recording that is shipped becomes a site, the same each time."""

import html
import shutil
import tarfile
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from analysis.detection.detection import ChangeState
from analysis.detection.verdict import Outcome
from analysis.judging.incidents import Cause
from analysis.orchestration.setting_words import say_settings
from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.local.paths import DataPaths
from perf.model.errors import UsageError
from reports.commands.demo import build_site, demo
from reports.wording.reproducing import read_contents

CONFIGS = Path(__file__).parents[2] / "data" / "configs"


@pytest.fixture(scope="module")
def shipped(
    demo: Any,  # noqa: ANN401  conftest is no module
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Return a directory like the shipped one, with half of the made-up history as its recording."""
    shipped = tmp_path_factory.mktemp("shipped")
    paths = DataPaths(tmp_path_factory.mktemp("recorded"))
    for trial in demo.trials:
        if trial.experiment == "cassandra-sensor-write":
            bundle.seal(bundle.stage(paths, trial.id), trial, ())
    with tarfile.open(shipped / "trials.tar.xz", "w:xz") as archive:
        archive.add(paths.trials, "trials")
    shutil.copytree(CONFIGS, shipped / "configs")
    return shipped


@pytest.mark.slow
def test_a_recording_becomes_a_site_that_is_not_stale(shipped: Path, tmp_path: Path) -> None:
    judged, index = build_site(shipped, tmp_path / "site")
    trials = len(judged.heads)
    assert trials == 24
    assert index == tmp_path.resolve() / "site" / "index.html"
    text = html.unescape(index.read_text())
    assert "A recorded history of 2026-03-08: no night will be added." in text
    assert "Recorded" in text
    # However much later it is read.
    assert not [word for word in ("Stale", 'id="age"', "data-until", "nightly job") if word in text]
    pages = list((tmp_path / "site" / "trials").iterdir())
    assert len(pages) == trials
    assert "is not at hand where this site was built." in pages[0].read_text()


@pytest.mark.slow
def test_the_planted_cause_is_found_where_it_was_planted_and_nothing_else(tmp_path: Path) -> None:
    with as_file(files("reports.demo")) as recorded:
        judged, _ = build_site(recorded, tmp_path / "site")
        contents = read_contents(load_catalog(recorded / "configs"))
    # What its pages say of servers and hosts is of the files that it was recorded with.
    assert {head.testbed for head in judged.heads} <= contents.testbeds.keys()
    assert {head.topology for head in judged.heads} <= contents.topologies
    judgement = judged.judgement
    assert len(judged.heads) >= 40
    (incident,) = judgement.incidents
    assert (incident.cause, incident.is_news) == (Cause.CONFIGURATION, True)
    (knobs,) = judged.settings.values()
    assert say_settings(knobs) == (
        "commitlog_sync: not set (the release's default) → batch, "
        "commitlog_sync_period: not set (the release's default) → 0ms"
    )
    confirmed = [change for one in judgement.series for change in one.change_points]
    assert len(incident.changes) == len(confirmed) >= 3
    for change in incident.changes:
        key = change.series.key
        assert (change.state, change.outcome) == (ChangeState.CONFIRMED, Outcome.REGRESSED)
        assert (key.operation, key.phase) == ("write", "saturation")
        nights = [
            int(side.night.rsplit("-", 1)[1]) for side in (change.last_before, change.first_after)
        ]
        assert nights[0] <= 14 < nights[1]
    assert not any(one.change_points for one in judgement.watched if not one.series.key.host)
    regressed = [one for one in judgement.series if one.verdict.outcome is Outcome.REGRESSED]
    assert len(regressed) == len(incident.changes)


def test_the_demonstration_replaces_nothing_that_is_not_a_site(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").touch()
    done = CliRunner().invoke(demo, ["--out", str(tmp_path)])
    assert isinstance(done.exception, UsageError)
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]
