"""Old histograms per second become one per iteration: no percentile moves, and it is never silent."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from perf.commands.history import history
from perf.history import retention
from perf.history.distributions import distribute
from perf.history.store import History, open_history
from perf.local.paths import DataPaths
from perf.model.errors import HistoryError, UsageError
from perf.model.results import Interval, Trial, TrialId

OLD, YOUNG = TrialId("old"), TrialId("young")
PER_SECOND, PER_ITERATION = 4 * 30 * 2, 4 * 2  # a warm-up and three iterations, of two kinds


@pytest.fixture
def kept(
    paths: DataPaths,
    make_bundle: Callable[..., Path],
    make_trial: Callable[..., Trial],
    make_intervals: Callable[..., tuple[Interval, ...]],
) -> DataPaths:
    """Return a history with an old and a young trial."""
    now = datetime.now(UTC).replace(microsecond=0)
    with open_history(paths.history) as opened:
        for name, days in ((OLD, 400), (YOUNG, 3)):
            started_at = now - timedelta(days=days)
            trial = make_trial(id=name, started_at=started_at, finished_at=started_at)
            opened.append(make_bundle(trial, make_intervals(iterations=3, seconds=30)))
    return paths


def prune(paths: DataPaths, *options: str) -> Result:
    return CliRunner().invoke(history, ["prune", "--data", str(paths.data), *options])


def count(opened: History, trial: str) -> int:
    return int(
        opened.query(f"SELECT count(*) FROM histograms WHERE trial_id = '{trial}'").rows[0][0]  # noqa: S608
    )


def read_percentiles(opened: History, *trials: TrialId) -> list[float]:
    return [
        opened.percentile(
            trials,
            phase="saturation",
            operation="write",
            kind=kind,
            percentile=percentile,
            iteration=iteration,
        )
        for kind in ("response_time", "service_time")
        for iteration in (None, 1, 2, 3)
        for percentile in (1, 50, 99, 99.9, 100)
    ]


@pytest.mark.slow
def test_no_percentile_moves_and_only_what_is_old_loses_its_seconds(kept: DataPaths) -> None:
    with open_history(kept.history, read_only=True) as opened:
        percentiles = [read_percentiles(opened, *trials) for trials in ((OLD,), (OLD, YOUNG))]
        trials = opened.trials()
        (before, _) = opened.recordings([OLD], "response_time", "service_time")
    done = prune(kept, "--older-than", "365")
    assert done.exit_code == 0, done.output
    assert f"1 trial from before {datetime.now(UTC) - timedelta(days=365):%Y-%m-%d}" in done.output
    assert f"with {PER_SECOND} histograms: rolled up, {PER_ITERATION} are left" in done.output
    with open_history(kept.history, read_only=True) as opened:
        assert [count(opened, OLD), count(opened, YOUNG)] == [PER_ITERATION, PER_SECOND]
        assert [read_percentiles(opened, *which) for which in ((OLD,), (OLD, YOUNG))] == percentiles
        assert opened.trials() == trials
        assert opened.query("SELECT * FROM rolled_up").rows == ((OLD, PER_SECOND),)
        (after, _) = opened.recordings([OLD], "response_time", "service_time")
    was, now = distribute(before.intervals), distribute(after.intervals)
    assert now.spectrum == was.spectrum
    assert len(was.course) == 90
    assert now.course == ()
    assert [interval.length_s for interval in after.intervals] == [30.0, 30.0, 30.0]
    assert "nothing to roll up" in prune(kept, "--older-than", "365").output


def test_a_dry_run_changes_nothing_and_a_rebuild_brings_the_seconds_back(kept: DataPaths) -> None:
    before = kept.history.read_bytes()
    assert "would be rolled up" in prune(kept, "--older-than", "365", "--dry-run").output
    assert kept.history.read_bytes() == before
    prune(kept, "--older-than", "365")
    assert CliRunner().invoke(history, ["rebuild", "--data", str(kept.data)]).exit_code == 0
    with open_history(kept.history, read_only=True) as opened:
        assert count(opened, OLD) == PER_SECOND
        assert opened.query("SELECT * FROM rolled_up").rows == ()


@pytest.mark.slow
def test_one_that_was_ended_leaves_all_as_it_was_and_the_next_one_does_all(
    kept: DataPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = kept.history.read_bytes()
    with monkeypatch.context() as ended:
        ended.setattr(retention, "roll_up", stop)
        assert prune(kept, "--older-than", "365").output.strip() == "Aborted!"
    assert kept.history.read_bytes() == before
    kept.history.with_name("history.duckdb.new").touch()
    assert "1 trial from before" in prune(kept, "--older-than", "365").output
    assert not list(kept.data.glob("history.duckdb.n*"))
    assert "nothing to roll up" in prune(kept, "--older-than", "365").output


def stop(_: object) -> None:
    """End as a kill would, without a clean-up."""
    raise KeyboardInterrupt


@pytest.mark.slow
def test_a_damaged_histogram_stops_it_and_loses_nothing(kept: DataPaths) -> None:
    with open_history(kept.history) as opened:
        opened.tables.execute("UPDATE histograms SET encoded = 'broken' WHERE position = ?", [7])
    done = prune(kept, "--older-than", "365")
    assert isinstance(done.exception, HistoryError)
    with open_history(kept.history, read_only=True) as opened:
        assert count(opened, OLD) == PER_SECOND


def test_a_wrong_directory_is_reported_and_left_alone(paths: DataPaths) -> None:
    assert isinstance(prune(paths, "--older-than", "365").exception, UsageError)
    assert not paths.data.exists()


def test_young_trials_cannot_be_chosen_by_mistake(kept: DataPaths) -> None:
    done = prune(kept, "--older-than", "3")
    assert done.exit_code == 2
    assert "30" in done.output
