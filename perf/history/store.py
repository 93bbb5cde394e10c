"""The history: all trials as tables, which the bundles can rebuild at any time.

Rows come only from sealed bundles, so a history that grew night by night and one rebuilt today answer
each query alike. What they are kept in is `storage`: a `file`, or a `lake` that several labs share.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from zlib import crc32

import duckdb
import numpy as np
from numpy.typing import NDArray

from perf.history import bundle, distributions, kept_observations, observed
from perf.history.place import has_history, read_place
from perf.history.rows import (
    HEADS,
    PARTS,
    HistoryRow,
    as_utc,
    heads_of_columns,
    rows_of_trial,
    trial_of_rows,
    values_of_rows,
)
from perf.history.storage import file, lake
from perf.history.storage.file import FileStorage
from perf.history.storage.lake import LakeStorage
from perf.history.tables import Tables
from perf.local.paths import DataPaths
from perf.model.columns import Observations
from perf.model.errors import BundleError, DamagedHistory, HistoryError, UsageError
from perf.model.histograms import percentile_us
from perf.model.metrics import HIGHEST_LOAD
from perf.model.nights import is_ahead
from perf.model.results import Observation, Purpose, Release, Source, Trial, TrialHead, TrialId
from perf.model.shown import list_some

COMPARED_AGAIN = 1_000
"""Known bundles that an append holds against the history once more: the latest. Ten years have 73,000
of them, and to open so many small files takes minutes where they are not in memory."""
READ_AGAIN = 100
"""Those of them of which all files are read again, at 4 ms each: the latest."""
VERIFIED_WITHIN_DAYS = 28
"""Of all others a share is read again each day, by their names: after so many days all were."""
MOST_READ_AGAIN = 500
"""A day, at most and more or less: of ten years of bundles a 28th would take longer than all else of an
append. The cycle is doubled where it would be more."""
_OF_A_LINE = (Purpose.SCHEDULED, Purpose.IMPORTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """What became of a set of bundles: two counts, and what is wrong with each bad one.

    `gone` are the trials of the history that have no bundle among them.
    """

    new: int
    known: int
    bad: tuple[str, ...]
    gone: tuple[TrialId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What all bundles came to: what is wrong with each bad one; whole ones that no history holds.

    `gone` are the trials of the history that have no bundle.
    """

    bundles: int
    bad: tuple[str, ...]
    unknown: tuple[TrialId, ...]
    gone: tuple[TrialId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAnswer:
    """The answer to a query."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class _NewTrial:
    """A bundle that was read, as rows."""

    id: TrialId
    sha256: str
    tables: Sequence[tuple[str, Sequence[HistoryRow]]]


class History:
    """An open history; made by `open_history`, closed at the end of its `with` block."""

    def __init__(self, storage: FileStorage | LakeStorage) -> None:
        """Take over what the history is kept in, open and checked."""
        self._storage = storage
        self._tables = storage.tables

    @property
    def tables(self) -> Tables:
        """Return its tables as plain rows."""
        return self._tables

    def __enter__(self) -> Self:
        """Return the history itself."""
        return self

    def snapshot(self) -> AbstractContextManager[None]:
        """Answer all that is asked meanwhile as of one moment, whatever other labs append."""
        return self._tables.snapshot()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it; all that was appended is on the disk already."""
        self._storage.close(is_fine=kind is None)

    def append(self, place: Path) -> bool:
        """Add the trial of a sealed bundle in one transaction; return False if it was there already.

        Raises:
            BundleError: the bundle is bad or from the future, or another content is in the history
                under the same id.
            HistoryError: the history cannot be written.

        """
        (outcome,) = self.append_together([place])
        if isinstance(outcome, BundleError):
            raise outcome
        return outcome

    def append_together(self, places: Sequence[Path]) -> Sequence[bool | BundleError]:
        """Do as `append` with each of some bundles, but with all good ones in one transaction.

        For each is given what `append` would return or raise.

        Raises:
            HistoryError: the history cannot be written; none of them was added.

        """
        outcomes: dict[Path, bool | BundleError] = dict.fromkeys(places, False)
        new: dict[Path, _NewTrial] = {}
        known = self._find_known(places)
        for place in places:
            try:
                if one := self._read_new(place, known):
                    new[place] = one
            except BundleError as error:
                outcomes[place] = error
        if not new:
            return [*outcomes.values()]
        message = f"append {', '.join(list_some([one.id for one in new.values()], 3))}"
        with self._storage.explained():
            try:
                outcomes |= self._storage.transact(partial(self._add, new), message)
            except (duckdb.InvalidInputException, duckdb.DataError) as error:
                if len(places) > 1:  # each by itself tells which one it is
                    return [one for place in places for one in self.append_together([place])]
                outcomes[places[0]] = BundleError(
                    f"{places[0]} has a value that the history cannot hold: {error}"
                )
        return [*outcomes.values()]

    def append_each(self, places: Sequence[Path]) -> Iterator[tuple[Path, bool | BundleError]]:
        """Append bundles, as many together as is good for the history; yield what became of each."""
        for some in bundle.in_portions(places, self._storage.together):
            yield from zip(some, self.append_together(some), strict=True)

    def _read_new(self, place: Path, known: Mapping[str, str]) -> "_NewTrial | None":
        """Read a bundle that the history does not hold."""
        sha256 = bundle.digest(place)
        if self._holds(place, sha256, known):
            return None
        trial, intervals = bundle.read(place)
        if is_ahead(trial.finished_at, datetime.now(UTC)):
            raise BundleError(
                f"{place} is dated {trial.finished_at:%Y-%m-%d}, which is still to come: its night "
                "would be the newest until then. If the clock that measured was wrong, move the bundle "
                "away; if this machine's is, set it and append again"
            )
        return _NewTrial(trial.id, sha256, rows_of_trial(trial, intervals, sha256))

    def _add(self, new: Mapping[Path, "_NewTrial"]) -> dict[Path, bool | BundleError]:
        """Insert what is not there by now: another lab may have appended it."""
        outcomes: dict[Path, bool | BundleError] = {}
        known = self._find_known([*new])
        for place, one in new.items():
            try:
                outcomes[place] = not self._holds(place, one.sha256, known)
            except BundleError as error:
                outcomes[place] = error
            for table, rows in one.tables if outcomes[place] is True else ():
                self._tables.insert(table, rows)  # all trials' at once would take longer
        return outcomes

    def observations(self, *purposes: Purpose) -> tuple[Observation, ...]:
        """Return all observations of `observed_series`, as objects."""
        return tuple(self.observed_series(*purposes))

    def observed_series(self, *purposes: Purpose, kept: Path | None = None) -> Observations:
        """Return each trial's value for each series it has samples of, whatever the trial's status.

        They are ordered by series, release line and ordinal, time and trial id. Without purposes these
        are scheduled and imported trials; others are left out unless asked for: the build of a pull
        request is no point on a release line. What is `kept` in that file is not read again, and what
        is read is kept there; ask for the same purposes each time.
        """
        chosen = [purpose.value for purpose in purposes or _OF_A_LINE]

        def read(trials: Sequence[int]) -> Mapping[str, NDArray[Any]]:
            return self._tables.columns(observed.VALUES, [chosen, json.dumps(trials)])

        with self.snapshot():  # what comes later names places in the rows that come first
            try:
                common, columns = self._tables.trials(*observed.OBSERVED, [chosen])
                trials = observed.read_trials(columns)
                occasions = observed.occasions_of(common, trials)
                known = kept_observations.read(kept, self._storage.origin, trials, occasions)
                asked = [*map(int, np.flatnonzero(~known.is_known))]
                if not asked:
                    return observed.join(known.series, ())
                kinds = self._tables.rows(observed.KINDS, [chosen, json.dumps(asked)])
                works = observed.group_by_work(common, trials, asked)
                new = observed.observations(works, occasions, kinds, read)
                found = observed.join(known.series, new)
            except ValueError as error:
                raise self._storage.damage(error) from error
        if kept:
            kept_observations.write(kept, self._storage.origin, trials, found)
        return found

    def environments(self) -> dict[TrialId, Mapping[str, str]]:
        """Return what was true of each trial beside its release, by trial and name; all purposes."""
        left_out = [list(observed.ALWAYS_NEW)]
        with self.snapshot():  # both are of the same names
            codes = tuple(self._tables.stream(observed.CODES, left_out))
            return observed.environments(codes, self._tables.stream(observed.CODED, left_out))

    def trials(
        self, only: Sequence[TrialId] | None = None, *, brief: bool = False
    ) -> tuple[Trial, ...]:
        """Return all trials, or only these, with all that belongs to them, by start and id.

        Brief ones lack counters, samples of single iterations and what was true after them, which
        take more than half of the time.

        Raises:
            HistoryError: a row does not fit the schema.

        """
        # As one text: DuckDB takes its time over each value of a Python list.
        chosen = "" if only is None else "AND trial_id IN (SELECT unnest(?::JSON::VARCHAR[]))"
        values = () if only is None else (json.dumps([*only]),)
        parts: dict[str, dict[str, Sequence[object]]] = defaultdict(dict)
        sql = f"SELECT * FROM trials WHERE true {chosen} ORDER BY started_at, trial_id"  # noqa: S608  our own names
        with self.snapshot():  # else one that is appended meanwhile would lack its parts
            for part in PARTS:
                if brief and part.of_brief is None:
                    continue
                which = f"{chosen} AND {part.of_brief}" if brief else chosen
                found_rows = self._tables.stream(part.select(which), values)
                for trial, found in groupby(found_rows, itemgetter(0)):
                    parts[trial][part.attribute] = values_of_rows(part, [row[1:] for row in found])
            rows = self._tables.rows(sql, values)
        try:
            return tuple(trial_of_rows(row, parts[row["trial_id"]]) for row in rows)
        except ValueError as error:
            raise self._storage.damage(error) from error

    def heads(self) -> tuple[TrialHead, ...]:
        """Return the heads of all trials by start and id: for all that asks no trial what it measured.

        Raises:
            HistoryError: a row does not fit the schema.

        """
        reasons: dict[str, list[HistoryRow]] = defaultdict(list)
        with self.snapshot():
            for row in self._tables.rows("SELECT * FROM reasons ORDER BY trial_id, position"):
                reasons[row["trial_id"]].append({"kind": row["kind"], "text": row["text"]})
            try:
                return heads_of_columns(*self._tables.trials(*HEADS), reasons)
            except ValueError as error:
                raise self._storage.damage(error) from error

    def bundle_digests(self) -> dict[TrialId, str]:
        """Return the SHA-256 of each trial's bundle, the latest first: equal digest, equal trial."""
        columns = self._tables.columns(
            "SELECT trial_id, bundle_sha256 FROM trials ORDER BY started_at DESC, trial_id DESC"
        )
        return dict(zip(map(TrialId, columns["trial_id"]), columns["bundle_sha256"], strict=True))

    def started_at(self, trial: TrialId) -> datetime:
        """Return when a trial began that is in the history."""
        (row,) = self._tables.rows("SELECT started_at FROM trials WHERE trial_id = ?", [trial])
        return as_utc(row["started_at"])

    def find_artifact(self, release: Release, source: Source) -> str:
        """Return the SHA-256 of what was installed as a release when it was measured first, or ""."""
        rows = self._tables.rows(
            "SELECT artifact_sha256 AS sha256 FROM trials WHERE system = ? AND version = ? "
            "AND artifact_source = ? AND artifact_sha256 <> '' ORDER BY started_at, trial_id LIMIT 1",
            [release.system, release.version, source.value],
        )
        return str(rows[0]["sha256"]) if rows else ""

    def search_bounds(self) -> dict[tuple[TrialId, str, str], tuple[float, float]]:
        """Return the ends between which each answer of a search lies, by trial, phase and operation."""
        rows = self._tables.stream(
            "SELECT trial_id, phase, operation, min(value), max(value) FROM samples "
            "WHERE metric = ? AND iteration IS NULL AND statistic IN ('lower', 'upper') "
            "GROUP BY ALL HAVING count(DISTINCT statistic) = 2",
            [HIGHEST_LOAD.name],
        )
        return {(TrialId(one), phase, of): (low, high) for one, phase, of, low, high in rows}

    def first_values(
        self, only: Sequence[TrialId], phase: str, metric: str, statistic: str
    ) -> dict[TrialId, tuple[str, float]]:
        """Return by trial the first operation with such a value of a whole phase, and the value."""
        rows = self._tables.rows(
            "SELECT trial_id, arg_min(operation, position) AS operation, "
            "arg_min(value, position) AS value FROM samples WHERE iteration IS NULL "
            "AND phase = ? AND metric = ? AND statistic = ? "
            "AND trial_id IN (SELECT unnest(?::JSON::VARCHAR[])) GROUP BY trial_id",
            [phase, metric, statistic, json.dumps([*only])],
        )
        return {TrialId(row["trial_id"]): (row["operation"], row["value"]) for row in rows}

    def find_trials(
        self, *, version: str | None = None, experiment: str | None = None
    ) -> tuple[TrialId, ...]:
        """Return the completed trials of a release or an experiment or both, by start and id."""
        sql = (
            "SELECT trial_id FROM trials WHERE status = 'completed' AND version = coalesce(?, version) "
            "AND experiment = coalesce(?, experiment) ORDER BY started_at, trial_id"
        )
        return tuple(TrialId(one) for (one,) in self._tables.stream(sql, [version, experiment]))

    def histogram_names(self, trials: Sequence[TrialId], kind: str) -> tuple[tuple[str, str], ...]:
        """Return the (phase, operation) pairs that the trials have measured histograms of, sorted.

        Raises:
            UsageError: a trial is unknown, or the trials are not comparable.

        """
        self._refuse_mixture(trials)
        sql = (
            "SELECT DISTINCT phase, operation FROM histograms WHERE trial_id IN "
            "(SELECT unnest(?::VARCHAR[])) AND kind = ? AND iteration > 0 ORDER BY ALL"
        )
        return tuple(self._tables.stream(sql, [list(trials), kind]))

    def percentile(
        self,
        trials: Sequence[TrialId],
        *,
        phase: str,
        operation: str,
        kind: str,
        percentile: float,
        iteration: int | None = None,
    ) -> float:
        """Return a percentile in milliseconds from the merged histograms of one or more trials.

        `kind` is response_time, service_time or send_lateness. Without an iteration all are merged;
        the warm-up never is.

        Raises:
            UsageError: there is no such histogram or trial, the trials are not comparable, or the
                percentile is not above 0 and up to 100.

        """
        self._refuse_mixture(trials)
        rows = self._tables.rows(
            "SELECT encoded FROM histograms WHERE trial_id IN (SELECT unnest(?::VARCHAR[])) "
            "AND phase = ? AND operation = ? AND kind = ? AND iteration > 0 "
            "AND iteration = coalesce(?::INTEGER, iteration) ORDER BY trial_id, position",
            [list(trials), phase, operation, kind, iteration],
        )
        if not rows:
            there = ", ".join("/".join(pair) for pair in self.histogram_names(trials, kind))
            raise UsageError(
                f"{', '.join(trials) or 'no trial'}: no {kind} histogram of phase {phase!r}, operation "
                f"{operation!r}, iteration {iteration or 'any'}; there is: {there or 'none'}"
            )
        try:
            return percentile_us([row["encoded"] for row in rows], percentile) / 1000
        except ValueError as error:
            raise self._storage.damage(error) from error

    def recordings(self, trials: Sequence[TrialId], *kinds: str) -> tuple[distributions.Recording, ...]:
        """Return what these trials measured of these kinds by trial, phase and operation; no warm-ups.

        A trial that is unknown, or measured none of these kinds, has none.
        """
        rows = self._tables.rows(distributions.RECORDED, [list(trials), list(kinds)])
        return tuple(distributions.gather(rows))

    def tables_digest(self) -> str:
        """Return a SHA-256 over all rows of all tables in order: equal histories have equal digests."""
        return self._tables.digest()

    def query(self, sql: str) -> QueryAnswer:
        """Answer any SQL query; open the history read-only for it.

        Raises:
            UsageError: DuckDB refuses the query (its explanation is part of the message), or there is
                no statement in it.

        """
        try:
            self._storage.check_query(sql)
            result: duckdb.DuckDBPyConnection | None = self._storage.connection.execute(sql)
            if result is None or not result.description:  # DuckDB's own types deny that None
                raise UsageError(
                    f"there is no statement in the query {sql!r}; see what can be asked for with: "
                    "knickpoint history schema"
                )
            columns = tuple(column[0] for column in result.description)
            return QueryAnswer(columns=columns, rows=tuple(result.fetchall()))
        except duckdb.Error as error:
            raise UsageError(f"the query failed: {error}") from error

    def _find_known(self, places: Sequence[Path]) -> Mapping[str, str]:
        """Return the digests of those of some bundles that it holds: at once, it may be far away."""
        # A name in another encoding than UTF-8 is that of no trial, and DuckDB does not take it.
        names = [place.name.encode(errors="replace").decode() for place in places]
        rows = self._tables.rows(
            "SELECT trial_id, bundle_sha256 FROM trials WHERE trial_id IN (SELECT unnest(?::TEXT[]))",
            [names],
        )
        return {row["trial_id"]: row["bundle_sha256"] for row in rows}

    def _holds(self, place: Path, sha256: str, known: Mapping[str, str]) -> bool:
        """Return whether the history has this bundle; refuse another one under its id."""
        if known.get(place.name, sha256) != sha256:
            raise BundleError(
                f"{place} is not the bundle that the history holds under this trial id: its manifest "
                f"has SHA-256 {sha256}, the history says {known[place.name]}. A sealed bundle must not "
                f"change; {self._storage.advice}"
            )
        return place.name in known

    def _refuse_mixture(self, trials: Sequence[TrialId]) -> None:
        """Refuse to merge the histograms of trials that are unknown or measured different things."""
        sql = "SELECT * FROM trials WHERE trial_id IN (SELECT unnest(?::VARCHAR[]))"
        distributions.refuse_mixture(trials, self._tables.rows(sql, [list(trials)]))


def open_history(path: Path, *, read_only: bool = False) -> History:
    """Open a history; make an empty one if there is none and it is opened for writing.

    It is the file at `path`, or what `history.yaml` beside it names.

    Raises:
        ConfigError: `history.yaml` is wrong.
        HistoryError: there is none to read, another process holds it, it cannot be reached, or it is
            corrupt, foreign or too new.

    """
    if place := read_place(path):
        return History(LakeStorage(place, read_only=read_only))
    if not path.exists():
        if read_only:
            raise HistoryError(f"there is no history at {path} yet: make one with: knickpoint append")
        file.create(path)
    return History(FileStorage(path, read_only=read_only))


def describe_state(path: Path) -> str:
    """Return what is different for each state of a history; empty without one, or out of reach.

    Ask before the history is read. If others append between the two, what was returned is of a state
    that never comes back, and fits nothing.
    """
    place = read_place(path)
    return lake.describe_state(place) if place else file.describe_state(path)


def append_all(paths: DataPaths, report: Callable[[str], None]) -> Appended:
    """Append every sealed bundle that the history does not hold; report each new or bad one.

    A bad bundle never stops the good ones. Of those that the history holds, the latest COMPARED_AGAIN
    are seen to have the same manifest still, the latest READ_AGAIN and those whose day it is the same
    content, and it is reported whose bundles are gone.

    Raises:
        UsageError: there is neither a bundle nor a history, so this is no data directory.
        BundleError: the directory of bundles cannot be read.
        HistoryError: the history cannot be opened or written.

    """
    names = bundle.list_names(paths)
    if not names and not has_history(paths):
        raise UsageError(
            f"there are no trial bundles in {paths.trials} to append; name the data directory with "
            "--data, or measure first: knickpoint nightly"
        )
    with open_history(paths.history) as history:
        # Known ones are found at once: asked one by one, a catalog far away would take minutes.
        digests = history.bundle_digests()
        known = dict.fromkeys(name for name in names if name in digests)
        changed = _find_changed(history, digests, known, paths.trials)
        new = [paths.trials / name for name in names if name not in known]
        done = _append_new(history, new, report)
        # Of a history of several labs, each has its own bundles only.
        gone = () if read_place(paths.history) else tuple(sorted(digests.keys() - {*names}))
    if changed:
        what = "not what was appended any more; the history keeps what it has"
        report(f"{_count(changed)} {what}:\n" + "\n".join(changed))
    if gone:
        report(
            f"The history has {_list_lost(gone, 'is not in ' + str(paths.trials))}\nIt keeps them. "
            "Unless you moved the bundles away yourself, restore them from a backup."
        )
    still = done.known + len(known) - len(changed)
    return replace(done, known=still, bad=(*done.bad, *changed), gone=gone)


def rebuild(
    path: Path, bundles: Sequence[Path], report: Callable[[str], None], *, drops_lost: bool = False
) -> Appended:
    """Replace the history by one made from these bundles alone, in one step; report each.

    The old history is untouched until the new one is whole and on the disk, and one that cannot be
    read is kept beside it. Of one that can, no trial is dropped unless `drops_lost`: where a bundle is
    gone or bad, it stays. Bad bundles that it does not know are left out and reported.

    Raises:
        UsageError: the history is one of several labs, of which these bundles are a part only.
        HistoryError: another process uses the history, the new one cannot be written, or trials that
            the old one has would be lost.

    """
    if place := read_place(path):
        raise UsageError(
            f"{place.history} holds the trials of several labs, and a lab has only its own bundles: "
            "refused. To append those that it lacks: knickpoint append"
        )
    with file.rebuilding(path, keeps_old=False) as (fresh, known):
        result, lost = _make_from(fresh, bundles, report, known)
        if lost and not drops_lost:
            raise HistoryError(
                f"{path} stays as it is, for a new one would lack {_list_lost(lost)}\n"
                "Restore the bundles from a backup, then run it again; or drop these trials: "
                "knickpoint history rebuild --drop-lost"
            )
    return result


def replace_damaged(paths: DataPaths, problem: DamagedHistory, report: Callable[[str], None]) -> None:
    """Make a damaged history new from all bundles, by itself; the old file is kept beside it.

    Raises:
        HistoryError: not all bundles are there and whole, so that a person has to decide; or the new
            one cannot be written.

    """
    found = bundle.find(paths)
    if not found:
        raise problem
    report(f"{problem}\nThat is done now.")
    with file.rebuilding(paths.history, keeps_old=True) as (fresh, known):
        result, lost = _make_from(fresh, found, report, known)
        if lost or result.bad:
            what = _list_lost(lost) if lost else "the bundles above"
            raise HistoryError(
                f"{paths.history} stays as it is, damaged, for a new one would lack {what}\n"
                "Restore the bundles from a backup, or do without them: knickpoint history rebuild "
                "--drop-lost"
            )


def _make_from(
    fresh: Path, bundles: Sequence[Path], report: Callable[[str], None], known: Mapping[str, str]
) -> tuple[Appended, list[str]]:
    """Fill an empty history; return also which of the known trials it has not as they were.

    `known` has the digest of each one's bundle.
    """
    with open_history(fresh) as history:
        result = _append_new(history, bundles, report)
        now = history.bundle_digests()
        return result, sorted(name for name in known if now.get(TrialId(name)) != known[name])


def _list_lost(lost: Sequence[str], how: str = "is gone, cannot be read or is another one now") -> str:
    trials = "a trial" if len(lost) == 1 else f"{len(lost):,} trials"
    listed = "\n".join(f"  {line}" for line in list_some(lost, 5))
    return f"{trials} whose bundle {how}:\n{listed}"


def _append_new(history: History, places: Sequence[Path], report: Callable[[str], None]) -> Appended:
    new, known, bad = 0, 0, list[str]()
    for place, outcome in history.append_each([*{place.name: place for place in places}.values()]):
        if isinstance(outcome, BundleError):
            bad.append(str(outcome))
        elif outcome:
            new += 1
            report(f"appended {place.name}")
        else:
            known += 1
    if bad:
        report(f"{_count(bad)} bad and NOT in the history:\n" + "\n".join(bad))
    return Appended(new=new, known=known, bad=tuple(bad))


def _count(bundles: Sequence[str]) -> str:
    return "1 bundle is" if len(bundles) == 1 else f"{len(bundles)} bundles are"


def _find_changed(
    history: History, digests: Mapping[TrialId, str], known: Collection[TrialId], folder: Path
) -> list[str]:
    """Return what is wrong with those of the known bundles that are due to be looked at again."""
    newest = next((name for name in digests if name in known), None)
    cycle = VERIFIED_WITHIN_DAYS
    while len(digests) > cycle * MOST_READ_AGAIN:  # doubled, so that days are dealt anew but rarely
        cycle *= 2
    days = _days_since(history.started_at(newest) if newest else None, cycle)
    due = {*_find_due(digests, days, cycle)}
    compared, read_whole = ({*islice(digests, most), *due} for most in (COMPARED_AGAIN, READ_AGAIN))
    changed: list[str] = []
    for name, place in ((one, folder / one) for one in known if one in compared):
        try:
            if digests[name] != bundle.digest(place):
                history.append(place)  # which refuses it
            if name in read_whole:
                bundle.check(place)
        except BundleError as error:
            changed.append(str(error))
    return changed


def _days_since(newest: datetime | None, most: int) -> range:
    """Return the days, as numbers, since what the history holds was measured: those of today, too.

    Whoever measures on working days only must read on Monday what was due on Sunday.
    """
    today = datetime.now(UTC).toordinal()
    first = newest.toordinal() + 1 if newest else today
    return range(max(min(first, today), today - most + 1), today + 1)


def _find_due(names: Iterable[TrialId], days: Iterable[int], cycle: int) -> Iterator[TrialId]:
    """Yield the trials whose bundles are read again on some days of a cycle of so many."""
    of_days = {day % cycle for day in days}
    for name in names:
        if crc32(name.encode()) % cycle in of_days:
            yield name


def verify(paths: DataPaths, report: Callable[[str], None]) -> Verified:
    """Read every bundle again, and hold it against its manifest and the history; change nothing.

    Raises:
        BundleError: the directory of bundles cannot be read.
        HistoryError: the history cannot be opened.

    """
    found = bundle.find(paths)
    bad: list[str] = []
    unknown: list[TrialId] = []
    with open_history(paths.history, read_only=True) as history:
        digests = history.bundle_digests()
        names = {TrialId(place.name) for place in found}
        gone = () if read_place(paths.history) else tuple(sorted(digests.keys() - names))
    for count, place in enumerate(found, 1):
        try:
            bundle.check(place)
            digest = bundle.digest(place)
        except BundleError as error:
            bad.append(str(error))
            continue
        appended = digests.get(TrialId(place.name))
        if appended is None:
            unknown.append(TrialId(place.name))
        elif appended != digest:
            bad.append(f"{place} is not the bundle that was appended under this id: it was replaced")
        report(f"{count:,} of {len(found):,} bundles are read")
    return Verified(bundles=len(found), bad=tuple(bad), unknown=tuple(unknown), gone=gone)
