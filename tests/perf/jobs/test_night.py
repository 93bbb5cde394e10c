import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from perf.config.catalog import Catalog, load_catalog
from perf.jobs import night as module
from perf.jobs.night import (
    RESUMABLE_FOR,
    find_missing,
    finish_night,
    open_night,
    plan_hash,
    read_nights,
)
from perf.local.paths import DataPaths
from perf.model.design import Suite
from perf.model.errors import BundleError, UsageError
from perf.model.nights import Night

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
NOW = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)


@pytest.fixture
def catalog() -> Catalog:
    return load_catalog(CONFIGS)


@pytest.fixture
def suite(catalog: Catalog) -> Suite:
    return catalog.suite("fake-night")


def finish(paths: DataPaths, *ids: str) -> None:
    for one in ids:
        (paths.trials / one).mkdir(parents=True)


def test_a_first_night_plans_every_release_of_every_experiment(
    tmp_path: Path, catalog: Catalog, suite: Suite
) -> None:
    paths = DataPaths(tmp_path)
    night, is_resumed = open_night(paths, catalog, suite, NOW)
    assert not is_resumed
    assert [trial.id for trial in night.trials] == [
        "2026-03-01-1.01.fake-write.1.0.0",
        "2026-03-01-1.02.fake-write.1.0.1",
        "2026-03-01-1.03.fake-read.1.0.0",
        "2026-03-01-1.04.fake-read.1.0.1",
    ]
    assert find_missing(night, paths) == night.trials
    assert read_nights(paths) == (night,)


def test_an_unfinished_night_is_resumed_with_what_is_missing(
    tmp_path: Path, catalog: Catalog, suite: Suite
) -> None:
    paths = DataPaths(tmp_path)
    first, _ = open_night(paths, catalog, suite, NOW)
    finish(paths, first.trials[0].id, first.trials[2].id)
    again, is_resumed = open_night(paths, catalog, suite, NOW + timedelta(hours=5))
    assert is_resumed
    assert again == first
    assert find_missing(again, paths) == (first.trials[1], first.trials[3])


def test_after_a_finished_night_comes_the_next_in_the_other_order(
    tmp_path: Path, catalog: Catalog, suite: Suite
) -> None:
    paths = DataPaths(tmp_path)
    first, _ = open_night(paths, catalog, suite, NOW)
    finish(paths, *(trial.id for trial in first.trials))
    second, is_resumed = open_night(paths, catalog, suite, NOW + timedelta(minutes=10))
    assert not is_resumed
    assert second.id == "2026-03-01-2"
    assert [trial.version for trial in second.trials] == ["1.0.1", "1.0.0", "1.0.1", "1.0.0"]


def test_a_night_that_is_to_be_reported_is_resumed_until_it_was(
    tmp_path: Path, catalog: Catalog, suite: Suite
) -> None:
    paths = DataPaths(tmp_path)
    first, _ = open_night(paths, catalog, suite, NOW, is_to_be_reported=True)
    finish(paths, *(trial.id for trial in first.trials))
    again = open_night(paths, catalog, suite, NOW + timedelta(hours=1), is_to_be_reported=True)
    assert again == (first, True)
    finish_night(paths, first.id)
    second, is_resumed = open_night(
        paths, catalog, suite, NOW + timedelta(hours=2), is_to_be_reported=True
    )
    assert (second.id, is_resumed) == ("2026-03-01-2", False)
    # Who only measures has nothing to tell, and does not wait for it.
    finish(paths, *(trial.id for trial in second.trials))
    third, is_resumed = open_night(paths, catalog, suite, NOW + timedelta(hours=3))
    assert (third.id, is_resumed) == ("2026-03-01-3", False)
    finish_night(paths, third.id)  # and reporting what was not announced is no fault


def test_the_mark_of_a_night_that_nobody_resumed_goes_with_the_next(
    tmp_path: Path, catalog: Catalog, suite: Suite
) -> None:
    paths = DataPaths(tmp_path)
    open_night(paths, catalog, suite, NOW, is_to_be_reported=True)
    second, is_resumed = open_night(
        paths, catalog, suite, NOW + timedelta(days=1), is_to_be_reported=True
    )
    assert not is_resumed
    assert len(list(paths.nights.glob("*.untold"))) == 2
    finish_night(paths, second.id)
    assert not list(paths.nights.glob("*.untold"))


@pytest.mark.parametrize("cause", ["old", "other plan"])
def test_a_stale_or_changed_night_is_not_resumed(
    tmp_path: Path, catalog: Catalog, suite: Suite, cause: str
) -> None:
    paths = DataPaths(tmp_path)
    open_night(paths, catalog, suite, NOW)
    later = NOW + (timedelta(hours=21) if cause == "old" else timedelta(minutes=1))
    if cause == "other plan":
        suite = dataclasses.replace(suite, experiments=suite.experiments[:1])
    night, is_resumed = open_night(paths, catalog, suite, later)
    assert not is_resumed
    assert len(read_nights(paths)) == 2
    assert night.id == "2026-03-01-2"


@pytest.fixture
def watched(suite: Suite) -> Suite:
    """Turn the reading experiment into a sentinel on every third night."""
    write, read = suite.experiments
    sentinel = dataclasses.replace(read, releases=("1.0.0",), sentinel_every_nights=3)
    return dataclasses.replace(suite, experiments=(write, sentinel))


def sentinels(night: Night) -> list[str]:
    return [trial.version for trial in night.trials if trial.experiment == "fake-read"]


def test_a_sentinel_is_planned_on_the_first_night_and_on_every_n_th_after_it(
    tmp_path: Path, catalog: Catalog, watched: Suite
) -> None:
    paths = DataPaths(tmp_path)
    nights = [open_night(paths, catalog, watched, NOW + n * RESUMABLE_FOR)[0] for n in range(7)]
    assert [bool(sentinels(night)) for night in nights] == [True, False, False] * 2 + [True]
    assert [len(night.trials) for night in nights] == [3, 2, 2, 3, 2, 2, 3]
    assert nights[3].trials[-1].id == "2026-03-03-1.03.fake-read.1.0.0"
    assert [trial.version for trial in nights[3].trials] == ["1.0.1", "1.0.0", "1.0.0"]


def test_nights_of_other_suites_do_not_count_towards_a_sentinel(
    tmp_path: Path, catalog: Catalog, watched: Suite
) -> None:
    paths, other = DataPaths(tmp_path), catalog.suite("fake-short")
    first, _ = open_night(paths, catalog, watched, NOW)
    for n in (1, 2):
        open_night(paths, catalog, other, NOW + n * timedelta(minutes=1))
    second, is_resumed = open_night(paths, catalog, watched, NOW + timedelta(hours=1))
    assert (sentinels(first), sentinels(second), is_resumed) == (["1.0.0"], [], False)


def test_a_resumed_night_keeps_its_sentinel_and_counts_once(
    tmp_path: Path, catalog: Catalog, watched: Suite
) -> None:
    paths = DataPaths(tmp_path)
    first, _ = open_night(paths, catalog, watched, NOW)
    finish(paths, *(trial.id for trial in first.trials if trial.experiment == "fake-write"))
    again, is_resumed = open_night(paths, catalog, watched, NOW + timedelta(hours=1))
    assert is_resumed
    assert [trial.experiment for trial in find_missing(again, paths)] == ["fake-read"]
    finish(paths, first.trials[-1].id)
    second, _ = open_night(paths, catalog, watched, NOW + timedelta(hours=2))
    third, _ = open_night(paths, catalog, watched, NOW + 2 * RESUMABLE_FOR)
    fourth, _ = open_night(paths, catalog, watched, NOW + 3 * RESUMABLE_FOR)
    assert [sentinels(night) for night in (second, third, fourth)] == [[], [], ["1.0.0"]]


def test_another_rhythm_of_a_sentinel_is_another_plan(catalog: Catalog, watched: Suite) -> None:
    write, read = watched.experiments
    slower = dataclasses.replace(read, sentinel_every_nights=4)
    changed = dataclasses.replace(watched, experiments=(write, slower))
    assert plan_hash(catalog, watched) != plan_hash(catalog, changed)


def test_before_the_newest_night_none_is_planned(
    tmp_path: Path, catalog: Catalog, suite: Suite
) -> None:
    paths = DataPaths(tmp_path)
    open_night(paths, catalog, suite, NOW + timedelta(days=365))
    with pytest.raises(
        UsageError, match=r"began later than now \(2026-03-01 02:00 UTC\): 2027-03-01-1"
    ):
        open_night(paths, catalog, suite, NOW)
    assert len(read_nights(paths)) == 1
    # Clocks of labs differ somewhat.
    other = DataPaths(tmp_path / "other")
    open_night(other, catalog, suite, NOW + timedelta(hours=23))
    open_night(other, catalog, suite, NOW)


def test_a_foreign_file_among_the_nights_is_named(
    tmp_path: Path, catalog: Catalog, suite: Suite
) -> None:
    paths = DataPaths(tmp_path)
    paths.nights.mkdir()
    (paths.nights / "x.json").write_text('{"id": 3}')
    with pytest.raises(BundleError, match=r"x\.json is not the plan of a night"):
        open_night(paths, catalog, suite, NOW)


def test_where_labs_share_a_history_the_lab_is_part_of_each_id(
    tmp_path: Path, catalog: Catalog, suite: Suite
) -> None:
    paths = DataPaths(tmp_path)
    named = 'history: "ducklake:postgres:dbname=x"\ndata_path: /srv/x/\nlab: rack-a\n'
    (tmp_path / "history.yaml").write_text(named, encoding="utf-8")
    finish(paths, "2026-03-01-7.01.fake-write.1.0.0", "2026-03-01-rack-a-b-9.01.fake-write.1.0.0")
    finish(paths, "2026-03-01-rack-aT020000.fake-write.1.0.0")
    first, _ = open_night(paths, catalog, suite, NOW)
    assert first.trials[0].id == "2026-03-01-rack-a-1.01.fake-write.1.0.0"
    finish(paths, *(trial.id for trial in first.trials))
    second, is_resumed = open_night(paths, catalog, suite, NOW + timedelta(hours=1))
    assert not is_resumed
    assert second.id == "2026-03-01-rack-a-2"


@pytest.fixture
def planned(tmp_path: Path, catalog: Catalog, suite: Suite) -> tuple[DataPaths, Night, Night]:
    """Return a data directory of two nights that were read."""
    paths = DataPaths(tmp_path)
    nights = [open_night(paths, catalog, suite, NOW + timedelta(days=day))[0] for day in (0, 1)]
    assert read_nights(paths) == tuple(nights)
    return paths, nights[0], nights[1]


def test_plans_that_were_read_are_not_opened_again(
    planned: tuple[DataPaths, Night, Night], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, first, second = planned
    opened: list[Path] = []
    monkeypatch.setattr(module, "_read_night", opened.append)
    assert read_nights(paths) == (first, second)
    assert opened == []


def test_a_plan_that_was_changed_is_read_anew_and_one_that_is_gone_is_not_there(
    planned: tuple[DataPaths, Night, Night],
) -> None:
    paths, first, second = planned
    (paths.nights / f"{first.id}.json").unlink()
    assert read_nights(paths) == (second,)
    path = paths.nights / f"{second.id}.json"
    path.write_text(path.read_text().replace("fake-night", "other-name"))
    assert read_nights(paths)[0].suite == "other-name"
    path.write_text("{}")
    with pytest.raises(BundleError):
        read_nights(paths)


@pytest.mark.parametrize("text", ["", "[]", '{"2026-03-01-1.json 1 1": {}}'])
def test_what_is_known_of_plans_may_be_lost(planned: tuple[DataPaths, Night, Night], text: str) -> None:
    paths, *nights = planned
    paths.known_nights.write_text(text)
    assert read_nights(paths) == tuple(nights)
    paths.known_nights.unlink()
    paths.known_nights.mkdir()  # nothing can be kept
    assert read_nights(paths) == tuple(nights)
