import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from analysis.commands.detect import detect
from analysis.detection.verdict import Outcome
from analysis.judging.description import say_judgement
from analysis.orchestration.judging import judge_history
from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.history.store import append_all
from perf.local.paths import DataPaths
from perf.model.errors import ConfigError, HistoryError
from perf.model.results import Purpose, Release, Sample, Trial, TrialId

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
TODAY = date(2026, 3, 8)


@pytest.fixture
def fill(tmp_path: Path, make_trial: Callable[..., Trial]) -> Callable[..., Path]:
    """Return `fill(values)`: a data directory whose history holds one throughput per release.

    `sentinels` are measured of 5.0.0 in the same nights.
    """

    def make(values: Sequence[float], sentinels: Sequence[float] = ()) -> Path:
        paths = DataPaths(tmp_path)
        for ordinal, value in enumerate(values, start=1):
            _seal(paths, make_trial(), ordinal, value)
        for night, value in enumerate(sentinels, start=1):
            _seal(paths, make_trial(purpose=Purpose.SENTINEL), night, value, of_release=0)
        append_all(paths, lambda _: None)
        return tmp_path

    return make


def _seal(
    paths: DataPaths, template: Trial, night: int, value: float, of_release: int | None = None
) -> None:
    ordinal = night if of_release is None else of_release
    trial = replace(
        template,
        id=TrialId(f"{template.purpose}-{night:03d}"),
        night=f"2026-03-{night:02d}-1",
        release=Release(system="cassandra", version=f"5.0.{ordinal}", line="5.0", ordinal=ordinal),
        started_at=template.started_at + timedelta(days=night, hours=ordinal),
        finished_at=template.finished_at + timedelta(days=night, hours=ordinal),
        samples=(
            Sample(
                phase="saturation",
                operation="write",
                metric="throughput",
                statistic="mean",
                value=value,
            ),
        ),
    )
    bundle.seal(bundle.stage(paths, trial.id), trial, ())


def noise(count: int, mean: float) -> list[float]:
    generator = random.Random(f"{count} {mean}")  # noqa: S311  test data, not a secret
    return [generator.gauss(mean, mean / 500) for _ in range(count)]


def run(data: Path) -> Result:
    return CliRunner().invoke(detect, ["--data", str(data), "--configs", str(CONFIGS)])


def test_a_regression_is_reported_with_its_numbers_and_exit_code_1(
    fill: Callable[[Sequence[float]], Path],
) -> None:
    result = run(fill([999.0, 1001.0] * 5 + [899.0, 901.0] * 3))
    assert result.exit_code == 1
    first, reason, change, *_, overall = result.output.splitlines()
    assert first.startswith(
        "regressed   cassandra 5.0  throughput of write at saturation  sensor-write@"
    )
    assert "a drop of 10 % between 5.0.10 and 5.0.11" in reason
    assert "regressed between 5.0.10 and 5.0.11:  1,000 → 900 ops/s  −10.0 %" in change
    assert change.endswith("6 points after  confirmed")
    assert overall.startswith("Regressed: of 1 series, 1 regressed")


@pytest.mark.slow
def test_a_change_that_the_sentinel_shares_is_put_down_to_the_testbed(
    fill: Callable[..., Path],
) -> None:
    drop, with_it = noise(8, 1000) + noise(6, 900), noise(8, 500) + noise(6, 450)
    reported = run(fill(drop, sentinels=with_it)).output
    assert "cause: testbed" in reported
    assert any(line.startswith("testbed ") for line in reported.splitlines())


def test_a_suspect_is_shown_as_provisional_and_exits_with_0(
    fill: Callable[[Sequence[float]], Path],
) -> None:
    result = run(fill(noise(10, 1000) + noise(1, 900)))
    assert result.exit_code == 0
    assert "1 point after  suspected" in result.output
    assert result.output.splitlines()[-1].startswith("Cannot tell yet: of 1 series, 1 undecided")


@pytest.mark.slow
def test_judging_twice_gives_the_same_and_leaves_the_history_alone(
    fill: Callable[[Sequence[float]], Path],
) -> None:
    data = fill(noise(8, 1000))
    before = DataPaths(data).history.read_bytes()
    first = run(data).output
    DataPaths(data).answer.unlink()
    assert run(data).output == first
    assert DataPaths(data).history.read_bytes() == before


def test_without_a_history_the_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"history\.duckdb"):
        judge_history(DataPaths(tmp_path), load_catalog(CONFIGS), TODAY)


def test_without_a_configuration_the_error_says_so(
    fill: Callable[[Sequence[float]], Path], tmp_path: Path
) -> None:
    options = ["--data", str(fill(noise(2, 1000))), "--configs", str(tmp_path / "nowhere")]
    assert isinstance(CliRunner().invoke(detect, options).exception, ConfigError)


def test_the_judgement_is_there_for_other_commands(fill: Callable[[Sequence[float]], Path]) -> None:
    judgement = judge_history(DataPaths(fill(noise(3, 1000))), load_catalog(CONFIGS), TODAY)
    assert judgement.outcome is Outcome.UNDECIDED
    assert "1 has fewer than 6 points (1 night so far, about 1 more needed)" in say_judgement(judgement)


def test_the_help_explains_every_outcome() -> None:
    text = CliRunner().invoke(detect, ["--help"]).output
    assert all(f"\n  {outcome}  " in text for outcome in Outcome)
    assert "Exit code 1 if a series regressed" in text
