"""Night after night, unattended: what was planted is found and told once, and nothing is left."""

from collections.abc import Callable
from pathlib import Path

import pytest
import real_nights
import season_checks
import season_run
from needs import need

from perf.model.errors import KnickpointError
from perf.releases import artifacts as releases
from perf.systems import registry


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(1800)
@pytest.mark.keeps("season-reported-right")
def test_a_season_of_simulated_nights(
    tmp_path: Path, figures: dict[str, object], effort: Callable[[int, int], int]
) -> None:
    with season_run.run_season(effort(36, 108), tmp_path, tmp_path / "log", real_every=6) as seen:
        wrong, reported = season_checks.check_all(seen)
    figures.update(reported)
    assert wrong == []


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.alone
@pytest.mark.timeout(600)
@pytest.mark.keeps("real-nights-in-a-row")
def test_real_nights_in_a_row(tmp_path: Path, figures: dict[str, object]) -> None:
    cassandra = registry.load("cassandra")
    for version in ("5.0.0", "5.0.9"):
        try:
            releases.fetch(cassandra, releases.find_release(cassandra, version))
        except KnickpointError as missing:
            need(condition=False, what=str(missing))
    wrong, reported = real_nights.check(real_nights.run_nights(2, tmp_path))
    figures.update(reported)
    assert wrong == []
