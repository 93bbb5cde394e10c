"""Heads from rows: those of the whole trials, with one object for what trials have in common."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from datetime import UTC, timedelta
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from perf.history.rows import HEADS, HistoryRow, heads_of_columns, rows_of_trial
from perf.model.results import Reason, Trial, TrialHead, TrialId, TrialStatus

REASONS = (Reason(kind="stopped", text="it stopped"),)


def row_of(trial: Trial) -> HistoryRow:
    rows = dict(rows_of_trial(trial, (), "0" * 64))
    return rows["trials"][0]


def split(rows: Sequence[HistoryRow]) -> tuple[dict[int, HistoryRow], dict[str, NDArray[Any]]]:
    """Split rows as `Tables.trials` does: what they have in common, by number, and their own."""
    own, common, _ = HEADS
    numbers = {repr([row[column] for column in common]): number for number, row in enumerate(rows)}
    columns = {column: np.array([row[column] for row in rows], dtype=object) for column in own}
    alike = [numbers[repr([row[column] for column in common])] for row in rows]
    return dict(enumerate(rows)), {**columns, "alike": np.array(alike)}


def head_of(trial: Trial) -> TrialHead:
    return TrialHead(**{one.name: getattr(trial, one.name) for one in fields(TrialHead)})


def test_heads_are_those_of_the_trials_and_share_what_they_have_in_common(
    make_trial: Callable[..., Trial],
) -> None:
    first = make_trial(reasons=(), status=TrialStatus.COMPLETED)
    later = replace(
        first,
        id=TrialId("later"),
        night="another",
        started_at=first.started_at + timedelta(days=1),
        finished_at=first.finished_at + timedelta(days=1),
    )
    other = replace(later, id=TrialId("other"), release=replace(first.release, version="9.9"))
    failed = replace(later, id=TrialId("failed"), status=TrialStatus.FAILED, reasons=REASONS)
    again = replace(failed, id=TrialId("again"), reasons=())
    trials = (first, later, other, failed, again)
    found = {"failed": [{"kind": "stopped", "text": "it stopped"}]}
    heads = heads_of_columns(*split([*map(row_of, trials)]), found)
    assert heads == tuple(map(head_of, trials))
    assert heads[0].started_at.tzinfo is UTC
    assert heads[1].release is heads[0].release
    assert heads[1].config is heads[0].config


@pytest.mark.parametrize("wrong", [{"night": None}, {"trial_id": 7}, {"status": "odd"}, {"seed": "x"}])
def test_a_row_of_another_schema_is_refused_wherever_it_is(
    make_trial: Callable[..., Trial], wrong: HistoryRow
) -> None:
    row = row_of(make_trial())
    with pytest.raises(ValidationError):
        heads_of_columns(*split([row, {**row, **wrong}]), {})


@pytest.mark.parametrize("microseconds", [2**62, -(2**62), -(2**63)])
def test_a_time_in_no_year_is_refused(make_trial: Callable[..., Trial], microseconds: int) -> None:
    common, columns = split([row_of(make_trial())])
    columns["finished_at"] = np.array([microseconds]).astype("datetime64[us]")
    with pytest.raises(ValueError, match="outside of the years 1 to 9999"):
        heads_of_columns(common, columns, {})
