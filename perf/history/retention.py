"""Old histograms take less room: those of each second become one for each iteration.

No percentile of an iteration, a phase or several trials changes: they come from merged histograms, and
merging adds counts. What is lost is how an iteration went second by second. That a trial was rolled up
stands in the table rolled_up, so it is never silent.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from perf.history.rows import HistoryRow
from perf.history.storage import file, upgrades
from perf.history.storage.lake import LakeStorage
from perf.history.tables import Tables
from perf.model.histograms import decode, merge
from perf.model.results import TrialId

_OLD = """
    SELECT trial_id, count(*) AS histograms FROM histograms JOIN trials USING (trial_id)
    WHERE started_at < ? AND trial_id NOT IN (SELECT trial_id FROM rolled_up)
    GROUP BY ALL ORDER BY trial_id
"""
_OF_TRIAL = "SELECT * FROM histograms WHERE trial_id = ? ORDER BY position"
_OF_TRIALS = """
    SELECT * FROM histograms WHERE trial_id IN (SELECT unnest(?::VARCHAR[])) ORDER BY trial_id, position
"""
_ROLLED_UP = "SELECT trial_id FROM rolled_up WHERE trial_id IN (SELECT unnest(?::VARCHAR[]))"
_REMOVE = "DELETE FROM histograms WHERE trial_id IN (SELECT unnest(?::VARCHAR[]))"
AT_ONCE = 100
"""Trials of a lake that are rolled up in one transaction: so long other labs wait, seconds."""
_TOGETHER = ("phase", "operation", "kind", "iteration")


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledUp:
    """How many trials were rolled up, and their histograms before and after."""

    trials: int
    before: int
    after: int


def find_old(tables: Tables, before: datetime) -> dict[TrialId, int]:
    """Return the trials that started before a time and were not rolled up, with their histograms."""
    rows = tables.rows(_OLD, [before.astimezone(UTC).replace(tzinfo=None)])
    return {TrialId(row["trial_id"]): row["histograms"] for row in rows}


def roll_up_old(path: Path, before: datetime, report: Callable[[str], None]) -> RolledUp:
    """Replace a history by a copy in which the old trials are rolled up; report each.

    The history itself is only read, and stays as it is until the copy is whole. Nothing is removed in
    place: the file would not become smaller, and DuckDB 1.5 may lose rows later, without a word, where
    it could not commit that some are removed, as on a disk that fails.

    Raises:
        HistoryError: another process uses the history, the copy cannot be written, or a histogram is
            damaged; the history is as it was.

    """
    after = 0
    with file.replacing(path) as (fresh, connection), file.explained(path):
        version = file.check_schema(connection, path)
        tables = Tables(connection, partial(file.explained, path))
        old = find_old(tables, before)
        upgrades.copy_rows(connection, fresh, version, seconds_left_out=list(old))
        with closing(file.connect(fresh, read_only=False)) as written:
            into = Tables(written, partial(file.explained, path))
            for done, (trial, histograms) in enumerate(old.items(), start=1):
                try:
                    merged = roll_up(tables.rows(_OF_TRIAL, [trial]))
                except ValueError as error:
                    raise file.damage(path, error) from error
                with into.transaction():
                    into.insert("histograms", merged)
                    into.insert("rolled_up", [{"trial_id": trial, "histograms": histograms}])
                after += len(merged)
                report(f"rolled up {done} of {len(old)} trials")
    return RolledUp(trials=len(old), before=sum(old.values()), after=after)


def roll_up_lake(
    storage: LakeStorage, old: Mapping[TrialId, int], report: Callable[[str], None]
) -> RolledUp:
    """Roll up these trials of a lake, some in each transaction; report how far it is.

    What was done is kept if it is ended, and done by no one twice. Nothing becomes smaller until
    `LakeStorage.give_up_past`.

    Raises:
        HistoryError: the lake cannot be read or written, or a histogram is damaged.

    """
    trials = list(old)
    done = before = after = 0
    for start in range(0, len(trials), AT_ONCE):
        some = trials[start : start + AT_ONCE]
        merged: dict[str, Sequence[HistoryRow]] = {}
        try:
            found = storage.tables.each_row(_OF_TRIALS, [some])
            for trial, rows in groupby(found, itemgetter("trial_id")):
                merged[trial] = roll_up([*rows])
        except ValueError as error:
            raise storage.damage(error) from error
        with storage.explained():
            kept = storage.transact(partial(_keep, storage.tables, old, merged), "roll up histograms")
        done, before = done + len(kept), before + sum(old[trial] for trial in kept)
        after += sum(len(merged[trial]) for trial in kept)
        report(f"rolled up {start + len(some)} of {len(trials)} trials")
    return RolledUp(trials=done, before=before, after=after)


def _keep(
    tables: Tables, old: Mapping[TrialId, int], merged: Mapping[str, Sequence[HistoryRow]]
) -> Sequence[TrialId]:
    """Put merged histograms in the place of theirs; return of which trials: not of what others did."""
    others = {row["trial_id"] for row in tables.rows(_ROLLED_UP, [list(merged)])}
    kept = [TrialId(trial) for trial in merged if trial not in others]
    tables.execute(_REMOVE, [kept])
    tables.insert("histograms", [row for trial in kept for row in merged[trial]])
    rolled_up = [{"trial_id": trial, "histograms": old[trial]} for trial in kept]
    tables.insert("rolled_up", rolled_up)
    return kept


def roll_up(rows: Sequence[HistoryRow]) -> tuple[HistoryRow, ...]:
    """Merge the histograms of a trial that are of one phase, operation, kind and iteration.

    Raises:
        ValueError: one of them cannot be decoded.

    """
    groups: defaultdict[tuple[object, ...], list[HistoryRow]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in _TOGETHER)].append(row)
    return tuple(_merge(group, position) for position, group in enumerate(groups.values()))


def _merge(rows: Sequence[HistoryRow], position: int) -> HistoryRow:
    merged = merge([decode(row["encoded"]) for row in rows])
    start_s = min(row["start_s"] for row in rows)
    end_s = max(row["start_s"] + row["length_s"] for row in rows)
    return {
        **rows[0],
        "position": position,
        "start_s": start_s,
        "length_s": end_s - start_s,
        "max_us": max(row["max_us"] for row in rows),
        "encoded": merged.encode().decode("ascii"),
    }
