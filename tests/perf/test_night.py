import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from perf.config import Catalog, load_catalog
from perf.design import Suite
from perf.errors import BundleError
from perf.night import open_night, read_nights
from perf.places import Places

CONFIGS = Path(__file__).parent.parent / "data" / "configs"
NOW = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)


@pytest.fixture
def catalog() -> Catalog:
    return load_catalog(CONFIGS)


@pytest.fixture
def suite(catalog: Catalog) -> Suite:
    return catalog.suite("fake-night")


def finish(places: Places, *ids: str) -> None:
    for one in ids:
        (places.trials / one).mkdir(parents=True)


def test_a_first_night_plans_every_release_of_every_experiment(
    tmp_path: Path, catalog: Catalog, suite: Suite
) -> None:
    places = Places(tmp_path)
    night, is_resumed = open_night(places, catalog, suite, NOW)
    assert not is_resumed
    assert [trial.id for trial in night.trials] == [
        "2026-03-01-1.01.fake-write.1.0.0",
        "2026-03-01-1.02.fake-write.1.0.1",
        "2026-03-01-1.03.fake-read.1.0.0",
        "2026-03-01-1.04.fake-read.1.0.1",
    ]
    assert night.missing(places) == night.trials
    assert read_nights(places) == (night,)


def test_an_unfinished_night_is_resumed_with_what_is_missing(
    tmp_path: Path, catalog: Catalog, suite: Suite
) -> None:
    places = Places(tmp_path)
    first, _ = open_night(places, catalog, suite, NOW)
    finish(places, first.trials[0].id, first.trials[2].id)
    again, is_resumed = open_night(places, catalog, suite, NOW + timedelta(hours=5))
    assert is_resumed
    assert again == first
    assert again.missing(places) == (first.trials[1], first.trials[3])


def test_after_a_finished_night_comes_the_next_in_the_other_order(
    tmp_path: Path, catalog: Catalog, suite: Suite
) -> None:
    places = Places(tmp_path)
    first, _ = open_night(places, catalog, suite, NOW)
    finish(places, *(trial.id for trial in first.trials))
    second, is_resumed = open_night(places, catalog, suite, NOW + timedelta(minutes=10))
    assert not is_resumed
    assert second.id == "2026-03-01-2"
    assert [trial.version for trial in second.trials] == ["1.0.1", "1.0.0", "1.0.1", "1.0.0"]


@pytest.mark.parametrize("cause", ["old", "other plan"])
def test_a_stale_or_changed_night_is_not_resumed(
    tmp_path: Path, catalog: Catalog, suite: Suite, cause: str
) -> None:
    places = Places(tmp_path)
    open_night(places, catalog, suite, NOW)
    later = NOW + (timedelta(hours=21) if cause == "old" else timedelta(minutes=1))
    if cause == "other plan":
        suite = dataclasses.replace(suite, experiments=suite.experiments[:1])
    night, is_resumed = open_night(places, catalog, suite, later)
    assert not is_resumed
    assert len(read_nights(places)) == 2
    assert night.id == "2026-03-01-2"


def test_a_foreign_file_among_the_nights_is_named(
    tmp_path: Path, catalog: Catalog, suite: Suite
) -> None:
    places = Places(tmp_path)
    places.nights.mkdir()
    (places.nights / "x.json").write_text('{"id": 3}')
    with pytest.raises(BundleError, match=r"x\.json is not the plan of a night"):
        open_night(places, catalog, suite, NOW)
