"""Old histograms take less room: those of each second become one for each iteration.

No percentile of an iteration, a phase or several trials changes: they come from merged histograms, and
merging adds counts. What is lost is how an iteration went second by second. That a trial was rolled up
stands in the table rolled_up, so it is never silent.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from perf.encoded import decode
from perf.history import file
from perf.history.percentiles import make_room
from perf.history.rows import Row
from perf.history.tables import Tables
from perf.model import TrialId

_OLD = """
    SELECT trial_id, count(*) AS histograms FROM histograms JOIN trials USING (trial_id)
    WHERE started_at < ? AND trial_id NOT IN (SELECT trial_id FROM rolled_up)
    GROUP BY ALL ORDER BY trial_id
"""
_OF_TRIAL = "SELECT * FROM histograms WHERE trial_id = ? ORDER BY position"
_TOGETHER = ("phase", "operation", "kind", "iteration")


def find_old(tables: Tables, before: datetime) -> dict[TrialId, int]:
    """Give the trials that started before a time and were not rolled up, with their histograms."""
    rows = tables.rows(_OLD, [before.astimezone(UTC).replace(tzinfo=None)])
    return {TrialId(row["trial_id"]): row["histograms"] for row in rows}


def roll_up_trial(tables: Tables, path: Path, trial: TrialId) -> int:
    """Roll up a trial in one transaction; give how many histograms are left.

    Raises:
        HistoryError: the history cannot be written, or a histogram is damaged; the trial is as it was.

    """
    with file.explained(path), tables.transaction():
        rows = tables.rows(_OF_TRIAL, [trial])
        try:
            merged = roll_up(rows)
        except ValueError as error:
            raise file.damage(path, error) from error
        tables.execute("DELETE FROM histograms WHERE trial_id = ?", [trial])
        tables.insert("histograms", merged)
        tables.insert("rolled_up", [{"trial_id": trial, "histograms": len(rows)}])
    return len(merged)


def roll_up(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Merge the histograms of a trial that are of one phase, operation, kind and iteration.

    Raises:
        ValueError: one of them cannot be decoded.

    """
    groups: defaultdict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in _TOGETHER)].append(row)
    # At new positions: DuckDB ends the process where a transaction that removes and adds one key cannot
    # be committed, as on a full disk.
    first = 1 + max((row["position"] for row in rows), default=0)
    return tuple(_merge(group, position) for position, group in enumerate(groups.values(), start=first))


def _merge(rows: Sequence[Row], position: int) -> Row:
    histograms = [decode(row["encoded"]) for row in rows]
    merged = make_room(histograms)
    for histogram in histograms:
        merged.add(histogram)
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
