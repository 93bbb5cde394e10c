"""What a rebuild may drop, what an append says of bundles that are gone, how damage is mended."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from perf.history import bundle
from perf.history.store import append_all, open_history, rebuild, replace_damaged
from perf.local.paths import DataPaths
from perf.model.errors import DamagedHistory, HistoryError
from perf.model.results import Trial


def silent(_text: str) -> None:
    """Swallow progress."""


def cut(place: Path) -> None:
    content = (place / bundle.TRIAL).read_bytes()
    (place / bundle.TRIAL).write_bytes(content[: len(content) // 2])


def flip(place: Path) -> None:
    content = bytearray((place / bundle.TRIAL).read_bytes())
    content[len(content) // 2] ^= 1
    (place / bundle.TRIAL).write_bytes(content)


def lose_trial(place: Path) -> None:
    (place / bundle.TRIAL).unlink()


def replace(place: Path) -> None:
    """Put another trial in its place, whole and sealed."""
    trial, intervals = bundle.read(place)
    shutil.rmtree(place)
    staged = bundle.stage(DataPaths(place.parents[1]), trial.id)
    bundle.seal(staged, dataclasses.replace(trial, seed=trial.seed + 1), intervals)


DAMAGES = (cut, flip, lose_trial, shutil.rmtree)


def trials_of(path: Path) -> list[str]:
    with open_history(path, read_only=True) as history:
        return [trial.id for trial in history.trials()]


@pytest.mark.parametrize("damage", [*DAMAGES, replace])
def test_a_rebuild_drops_no_trial_that_nobody_gave_up(
    filled: DataPaths, bundles: tuple[Path, ...], damage: Callable[[Path], None]
) -> None:
    before = filled.history.read_bytes()
    damage(bundles[1])
    with pytest.raises(HistoryError, match=f"(?s)a trial whose.*{bundles[1].name}.*--drop-lost"):
        rebuild(filled.history, bundle.find(filled), silent)
    assert filled.history.read_bytes() == before
    left = [place.name for place in bundles if damage is replace or place != bundles[1]]
    assert rebuild(filled.history, bundle.find(filled), silent, drops_lost=True).new == len(left)
    assert trials_of(filled.history) == left
    assert not list(filled.data.glob("history.damaged*")), "the old one could be read"


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_append_says_which_bundles_are_gone_or_changed(
    filled: DataPaths, bundles: tuple[Path, ...], damage: Callable[[Path], None]
) -> None:
    damage(bundles[1])
    reported: list[str] = []
    done = append_all(filled, reported.append)
    is_gone = not bundles[1].exists()
    assert (done.new, done.known, len(done.bad)) == (0, 2, 0 if is_gone else 1)
    assert done.gone == ((bundles[1].name,) if is_gone else ())
    assert bundles[1].name in reported[-1]
    assert trials_of(filled.history) == [place.name for place in bundles]


def test_of_trials_without_a_bundle_an_append_names_a_few(
    paths: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    for number in range(9):
        make_bundle(make_trial(id=f"t-{number}"))
    append_all(paths, silent)
    shutil.rmtree(paths.trials)
    reported: list[str] = []
    assert len(append_all(paths, reported.append).gone) == 9
    assert "9 trials whose bundle" in reported[-1]
    assert "t-4\n  … and 4 more" in reported[-1]


def empty(path: Path) -> None:
    path.write_bytes(b"")


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garble(path: Path) -> None:
    """Flip bits all over the file, its header left as it is."""
    content = bytearray(path.read_bytes())
    for at in range(3 * 4096, len(content), 997):
        content[at] ^= 0x55
    path.write_bytes(content)


@pytest.mark.parametrize("ruin", [empty, halve, garble])
def test_a_history_that_cannot_be_read_is_made_new_and_kept(
    filled: DataPaths, bundles: tuple[Path, ...], ruin: Callable[[Path], None]
) -> None:
    ruin(filled.history)
    ruined = filled.history.read_bytes()
    with pytest.raises(DamagedHistory, match=r"the 3 trial bundles .*: knickpoint history rebuild"):
        append_all(filled, silent)
    replace_damaged(filled, DamagedHistory("it is damaged"), silent)
    assert trials_of(filled.history) == [place.name for place in bundles]
    kept = [one.read_bytes() for one in filled.data.glob("history.damaged*.duckdb")]
    assert kept == ([ruined] if ruined else [])


def test_a_person_decides_where_a_bundle_is_bad_too(
    filled: DataPaths, bundles: tuple[Path, ...]
) -> None:
    empty(filled.history)
    flip(bundles[0])
    with pytest.raises(HistoryError, match="stays as it is"):
        replace_damaged(filled, DamagedHistory("it is empty"), silent)
    assert filled.history.read_bytes() == b""
    assert len(rebuild(filled.history, bundles, silent).bad) == 1
    assert trials_of(filled.history) == [place.name for place in bundles[1:]]


def test_without_bundles_there_is_nothing_to_make_it_from(filled: DataPaths) -> None:
    shutil.rmtree(filled.trials)
    halve(filled.history)
    with pytest.raises(DamagedHistory, match="no trial bundles beside it: restore"):
        append_all(filled, silent)
    with pytest.raises(DamagedHistory, match="as it was"):
        replace_damaged(filled, DamagedHistory("as it was"), silent)
