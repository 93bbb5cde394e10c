"""What `analysis` gets of the history: observations, and the environment of each trial. SQL and values.

Both are values of `perf.model.results`, so that judging needs neither the history nor its tables.
"""

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from perf.history.rows import HistoryRow, refuse_odd_times
from perf.model.columns import Columns, Observations, ObservedSeries, OccasionKind, Occasions
from perf.model.errors import HistoryError
from perf.model.facts import BOOT_ID, MAY_MOVE, THERMAL_THROTTLE_COUNT
from perf.model.results import Purpose, Release, SeriesKey, TrialId, TrialStatus

_Work: TypeAlias = tuple[tuple[str, ...], list[int]]
"""What the keys of a trial's series have in common, and the places of the trials."""
_Places: TypeAlias = NDArray[np.integer]
_Values: TypeAlias = NDArray[np.float64]
_KEY = tuple(SeriesKey.__dataclass_fields__)
_OF_TRIAL = ("system", "line", "topology", "testbed_class", "config", "workload", "engine")
_OF_SAMPLE = tuple(name for name in _KEY if name not in _OF_TRIAL)
_OF_RELEASE = tuple(Release.__dataclass_fields__)
_IN_ORDER = "ordinal, started_at, trial_id"
OBSERVED = (
    ("trial_id", "started_at", "night", "bundle_sha256"),
    (*_OF_TRIAL, "workload_sha256", "version", "ordinal", "released_at", "status", "purpose"),
    f"WHERE purpose IN (SELECT unnest(?::VARCHAR[])) ORDER BY {_IN_ORDER}",
)
"""Of the trials that were observed: their own columns, those that many have in common, and which they
are. Takes a list of purposes."""
_KIND = f"hash({', '.join(_OF_SAMPLE)})"
_ASKED = f"""
    WITH observed AS (
        SELECT row_number() OVER (ORDER BY {_IN_ORDER}) - 1 AS trial, trial_id
        FROM trials WHERE purpose IN (SELECT unnest(?::VARCHAR[]))
    ),
    asked AS (SELECT unnest(?::JSON::INTEGER[]) AS trial)
"""  # noqa: S608  our own names
KINDS = f"""
    {_ASKED}
    SELECT DISTINCT {_KIND} AS kind, {", ".join(_OF_SAMPLE)}
    FROM samples JOIN observed USING (trial_id) JOIN asked USING (trial) ORDER BY ALL
"""  # noqa: S608  our own names
VALUES = f"""
    {_ASKED}
    SELECT trial::INTEGER AS trial, {_KIND} AS kind, coalesce(iteration, 0)::INTEGER AS iteration,
           iteration IS NULL AS is_whole, value
    FROM samples JOIN observed USING (trial_id) JOIN asked USING (trial)
"""  # noqa: S608  our own names
"""Both take a list of purposes, and trials (as JSON): their places among those of `OBSERVED`. Columns
of numbers are read in seconds, where a row for each of millions of values takes minutes.
"""
_NO_ITERATIONS = (np.empty(0, dtype=int), np.empty(0))
AT_ONCE = 10_000
"""Trials of which the values are sorted at a time: all of a large history take gigabytes."""

ALWAYS_NEW = (*MAY_MOVE, THERMAL_THROTTLE_COUNT, BOOT_ID)
"""Facts that differ by nature from one trial to the next, so that they explain nothing.

The first three count or average what a host has been through; whether it was disturbed *while* a trial
ran is judged there, and makes that trial invalid. A boot has a new id each time: what a restart may
have brought (kernel, microcode, settings) are facts of their own.
"""
_CIRCUMSTANCES = """
    SELECT trial_id, name || if(host = '', '', ' of ' || host) AS name, value
    FROM facts WHERE moment = 'before' AND name NOT IN (SELECT unnest(?::VARCHAR[]))
    UNION ALL SELECT trial_id, 'config ' || config, config_sha256 FROM trials
    UNION ALL SELECT trial_id, 'testbed ' || testbed, testbed_sha256 FROM trials
    UNION ALL SELECT trial_id, 'topology ' || topology, topology_sha256 FROM trials
    UNION ALL SELECT trial_id, 'artifact', artifact_sha256 FROM trials WHERE artifact_sha256 NOT NULL
    UNION ALL SELECT trial_id, 'knickpoint', harness_version FROM trials WHERE harness_version <> ''
"""
"""Takes a list of facts to leave out. The workload's hash names the series: there it never differs."""
_CODED = f"WITH coded AS (SELECT *, hash(name, value) AS code FROM ({_CIRCUMSTANCES}))"  # noqa: S608  our own names
CODES = f"{_CODED} SELECT DISTINCT code, name, value FROM coded"  # noqa: S608  our own names
CODED = f"""
    {_CODED}, of_trials AS (
        SELECT trial_id, list(code ORDER BY code) AS codes FROM coded GROUP BY trial_id
    )
    SELECT codes, list(trial_id ORDER BY trial_id) FROM of_trials GROUP BY codes ORDER BY codes
"""  # noqa: S608  our own names
"""Both take a list of facts to leave out. Most trials share their environment with others."""


class ObservedTrials(NamedTuple):
    """The trials that were observed, in columns; `alike` is the number of what one shares with many."""

    trial_id: Sequence[str]
    started_at: NDArray[np.datetime64]
    night: Sequence[str]
    bundle_sha256: Sequence[str]
    alike: Sequence[int]


def read_trials(columns: Mapping[str, NDArray[Any]]) -> ObservedTrials:
    """Return the trials of the columns of `OBSERVED`.

    Raises:
        ValueError: a time lies outside of the years 1 to 9999.

    """
    refuse_odd_times(columns["started_at"])
    others: dict[str, Any] = {name: column.tolist() for name, column in columns.items()}
    return ObservedTrials(**{**others, "started_at": columns["started_at"]})


def group_by_work(
    common: Mapping[int, HistoryRow], trials: ObservedTrials, asked: Iterable[int]
) -> Mapping[tuple[str, ...], list[int]]:
    """Return the places of the `asked` trials by what the keys of their series have in common."""
    works = defaultdict[tuple[str, ...], list[int]](list)
    for place in asked:
        row = common[trials.alike[place]]
        work = {**row, "workload": f"{row['workload']}@{row['workload_sha256']}"}
        works[tuple(work[name] for name in _OF_TRIAL)].append(place)
    return works


def observations(
    works: Mapping[tuple[str, ...], list[int]],
    occasions: Occasions,
    kinds: Sequence[HistoryRow],
    read: Callable[[Sequence[int]], Mapping[str, NDArray[Any]]],
) -> Iterator[ObservedSeries]:
    """Yield the observations of the trials of `group_by_work`, by series.

    `kinds` answers `KINDS` about them, `read` answers `VALUES` about some. Keys, releases and times
    that many have in common are one object in memory.
    """
    work_of = np.zeros(len(occasions), dtype=np.int64)
    for number, of_work in enumerate(works.values()):
        work_of[of_work] = number
    keys, hashes = tuple(works), np.array([row["kind"] for row in kinds], dtype=np.uint64)
    if len(np.unique(hashes)) < len(hashes):
        raise ValueError("two kinds of samples have the same hash")
    for some in _portions(tuple(works.items())):
        values = read([place for _, places in some for place in places])
        kind = np.searchsorted(hashes, values["kind"])
        series = work_of[values["trial"]] * len(kinds) + kind
        is_whole = values["is_whole"]
        iterations = dict(_by_series(series, values, ~is_whole))
        for number, (places, wholes) in _by_series(series, values, is_whole):
            work, at = divmod(number, len(kinds))
            key = SeriesKey(
                **dict(zip(_OF_TRIAL, keys[work], strict=True)),
                **{name: kinds[at][name] for name in _OF_SAMPLE},
            )
            own = iterations.get(number, _NO_ITERATIONS)
            yield ObservedSeries(key, _columns(occasions, places, wholes, *own))


def join(known: dict[SeriesKey, Columns], new: Iterable[ObservedSeries]) -> Observations:
    """Add what is new to what was known; return all, by series, and within one by trial."""
    for one in new:
        own = known.get(one.key)
        known[one.key] = one.columns if own is None else own.merge(one.columns)
    return Observations(tuple(ObservedSeries(key, known[key]) for key in sorted(known)))


def _by_series(
    series: NDArray[np.int64], values: Mapping[str, NDArray[Any]], wanted: NDArray[np.bool_]
) -> Iterator[tuple[int, tuple[_Places, _Values]]]:
    """Yield for each series the trials of the wanted values, and the values, by trial and iteration."""
    # Of each trial they nearly always lie in the order of the iterations already: one sort does.
    chosen = np.flatnonzero(wanted)
    at = series[chosen] << 32 | values["trial"][chosen]
    chosen = chosen[np.argsort(at, kind="stable")]
    number: NDArray[np.int64] = series[chosen]
    trial: _Places = values["trial"][chosen]
    iteration: _Places = values["iteration"][chosen]
    value: _Values = values["value"][chosen]
    same = (np.diff(number) == 0) & (np.diff(trial) == 0)
    steps = np.diff(iteration)
    if (same & ((steps < 0) | ((steps == 0) & (value[1:] < value[:-1])))).any():
        order = np.lexsort((value, iteration, trial, number))
        number, trial, value = number[order], trial[order], value[order]
    starts = map(int, np.flatnonzero(np.diff(number, prepend=-1)))
    for start, end in pairwise((*starts, len(number))):
        yield int(number[start]), (trial[start:end], value[start:end])


def _portions(works: Sequence[_Work]) -> Iterator[Sequence[_Work]]:
    """Yield works in portions of about so many trials as are read at once."""
    some: list[_Work] = []
    for work in works:
        some.append(work)
        if sum(len(places) for _, places in some) >= AT_ONCE:
            yield some
            some = []
    if some:
        yield some


def _columns(
    occasions: Occasions,
    places: _Places,
    values: _Values,
    of_iterations: _Places,
    iterations: _Values,
) -> Columns:
    """Put values and their places, and iterations and theirs, into columns; all places ascend."""
    starts = np.searchsorted(of_iterations, places, "left")
    counts = np.searchsorted(of_iterations, places, "right") - starts
    ends = np.cumsum(counts)
    of_each = np.repeat(starts - ends + counts, counts) + np.arange(counts.sum())
    return Columns(
        occasions,
        array("I", places.astype(np.uintc).tobytes()),
        array("d", values.tobytes()),
        array("d", iterations[of_each].tobytes()),
        array("I", ends.astype(np.uintc).tobytes()),
    )


def occasions_of(common: Mapping[int, HistoryRow], trials: ObservedTrials) -> Occasions:
    """Return the occasions of trials; `common` are the rows that these have in common, by number."""
    release_of = cache(Release)
    kinds = [
        OccasionKind(
            release=release_of(**{field: row[field] for field in _OF_RELEASE}),
            status=TrialStatus(row["status"]),
            purpose=Purpose(row["purpose"]),
        )
        for row in common.values()
    ]
    place_of = {number: place for place, number in enumerate(common)}
    return Occasions(
        [*map(TrialId, trials.trial_id)],
        trials.night,
        trials.started_at,
        kinds,
        np.array([place_of[number] for number in trials.alike], dtype=int),
    )


def environments(
    codes: Iterable[tuple[int, str, str]], coded: Iterable[tuple[Sequence[int], Sequence[str]]]
) -> dict[TrialId, Mapping[str, str]]:
    """Return the environment of each trial, by name, of the rows of `CODES` and `CODED`.

    Those that trials have in common are one object in memory.

    Raises:
        HistoryError: different facts have the same hash.

    """
    rows = tuple(codes)
    pairs = {code: (name, value) for code, name, value in rows}
    if len(pairs) < len(rows):
        raise HistoryError("two facts in the history have the same hash: no trial's are known for sure")
    found: dict[TrialId, Mapping[str, str]] = {}
    for numbers, trials in coded:
        known = dict(sorted(pairs[number] for number in numbers))
        found.update((TrialId(trial), known) for trial in trials)
    return found
