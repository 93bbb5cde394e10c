"""Observations that are not read again: those of trials that the history has held for longer.

A trial in the history never changes, but to take its samples out of millions of rows takes seconds.
They are kept in a file beside it, as the columns that `observed` makes of them. It is believed as long
as the history is the same file, read by the same code, and has the same bundles of all the trials in
it; otherwise, or if anything is wrong with it, it is as if it were not there.
"""

import hashlib
import json
import zipfile
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perf.history.observed import ObservedTrials
from perf.local.standing import describe_code
from perf.model.columns import Columns, Observations, Occasions
from perf.model.results import SeriesKey

_BROKEN = (OSError, ValueError, LookupError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile)


@dataclass(frozen=True, slots=True)
class KeptObservations:
    """What is known of some trials, by series; `is_known` says which of all trials these are."""

    series: dict[SeriesKey, Columns]
    is_known: NDArray[np.bool_]


def read(
    path: Path | None, origin: str, trials: ObservedTrials, occasions: Occasions
) -> KeptObservations:
    """Return what `path` has of these trials, in the order of `observed.OBSERVED`.

    `origin` tells the history from all others.
    """
    nothing = KeptObservations({}, np.zeros(len(occasions), dtype=bool))
    if path is None:
        return nothing
    with suppress(*_BROKEN), path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
        names = _text(file["trials"]).split("\n")
        place = {name: number for number, name in enumerate(trials.trial_id)}
        places = np.array([place[name] for name in names], dtype=np.uint32)
        bundles = [*map(trials.bundle_sha256.__getitem__, places)]
        if _text(file["about"]) == _describe(origin, names, bundles):
            is_known = np.zeros(len(occasions), dtype=bool)
            is_known[places] = True
            return KeptObservations(_series(file, places, occasions), is_known)
    return nothing


def write(path: Path, origin: str, trials: ObservedTrials, observations: Observations) -> None:
    """Keep all that is known of these trials, if the data directory lets us: else all is read again."""
    series = observations.series
    columns: Mapping[str, Callable[[], NDArray[Any]]] = {
        "about": lambda: _bytes(_describe(origin, trials.trial_id, trials.bundle_sha256)),
        "trials": lambda: _bytes("\n".join(trials.trial_id)),
        "keys": lambda: _bytes(json.dumps([asdict(one.key) for one in series])),
        "counts": lambda: np.array([len(one) for one in series], dtype=np.uint32),
        "places": lambda: _join("I", (one.columns.places for one in series)),
        "values": lambda: _join("d", (one.columns.values for one in series)),
        "ends": lambda: _join("I", (one.columns.ends for one in series)),
        "iterations": lambda: _join("d", (one.columns.iterations for one in series)),
    }
    fresh = path.with_name(f"{path.name}.new")
    with suppress(OSError):
        try:
            # One after the other, as `numpy.savez` lays them out: all at once take memory.
            with zipfile.ZipFile(fresh, "w", zipfile.ZIP_STORED) as file:
                for name, make in columns.items():
                    with file.open(f"{name}.npy", "w", force_zip64=True) as column:
                        np.save(column, make(), allow_pickle=False)
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)


def _series(
    file: Mapping[str, NDArray[Any]], places: NDArray[np.uint32], occasions: Occasions
) -> dict[SeriesKey, Columns]:
    """Return the columns of each series, by trial.

    Raises:
        ValueError: they do not fit together.

    """
    keys = [SeriesKey(**parts) for parts in json.loads(_text(file["keys"]))]
    ends = np.cumsum(file["counts"], dtype=int).tolist()
    bounds = list(pairwise((0, *ends)))
    of_trial = places[file["places"]]
    orders = [np.argsort(of_trial[start:end], kind="stable") for start, end in bounds]
    parts = [
        _cut("I", of_trial, bounds),
        _cut("d", file["values"], bounds),
        _cut("I", file["ends"], bounds),
    ]
    iterations = np.cumsum([own[-1] if own else 0 for own in parts[2]], dtype=int).tolist()
    parts.append(_cut("d", file["iterations"], list(pairwise((0, *iterations)))))
    found = {}
    for key, order, of_series, values, own, repeated in zip(keys, orders, *parts, strict=True):
        if (np.diff(np.asarray(own, dtype=int), prepend=0) < 0).any():
            raise ValueError("iterations that end before they begin")
        # Trials that came later may lie between those that were there.
        found[key] = Columns(occasions, of_series, values, repeated, own).pick(order)
    return found


def _cut(kind: str, column: NDArray[Any], bounds: Sequence[tuple[int, int]]) -> list["array[Any]"]:
    """Cut a column into the parts that it was joined of. Raises ValueError if it has another length."""
    if len(column) != (bounds[-1][1] if bounds else 0):
        raise ValueError("columns of different lengths")
    return [array(kind, column[start:end].tobytes()) for start, end in bounds]


def _describe(origin: str, trials: Sequence[str], bundles: Sequence[str]) -> str:
    """Digest which history it is, what reads it, and which bundles these trials are of."""
    content = hashlib.sha256(f"{origin}\0{describe_code('perf')}\n".encode())
    content.update("".join(map("{}\0{}\n".format, trials, bundles)).encode())
    return content.hexdigest()


def _join(kind: str, columns: Iterable["array[Any]"]) -> NDArray[Any]:
    joined = array(kind)
    for one in columns:
        joined.extend(one)
    return np.asarray(joined)


def _bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), dtype=np.uint8)


def _text(content: NDArray[np.uint8]) -> str:
    return content.tobytes().decode()
