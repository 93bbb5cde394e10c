"""What changed from one trial to the next in a list of trials, as the history tells it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from perf.history.store import append_all, open_history
from perf.local.paths import DataPaths
from perf.model.results import Fact, Trial, TrialId, find_moves


def test_moves_are_reported_for_each_list_in_its_own_order(
    paths: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    first = make_trial(harness_version="0.1.0")
    for place, (name, kernel) in enumerate((("a", "6.1"), ("b", "6.2"), ("c", "6.1"), ("d", ""))):
        facts = (
            *((Fact(host="node-1", name="kernel", value=kernel),) if kernel else ()),
            Fact(host="node-1", name="boot_id", value=name),  # always another one
        )
        started = first.started_at + timedelta(days=place)
        trial = replace(first, id=TrialId(name), environment_before=facts, started_at=started)
        make_bundle(trial, ())
    append_all(paths, lambda _: None)
    lists = [[TrialId(name) for name in names] for names in ("abcd", "acb", "ac", "d", "")]
    with open_history(paths.history, read_only=True) as history:
        environments = history.environments()
    reported = [find_moves(trials, environments) for trials in lists]
    assert [[(m.place, m.name, m.before, m.after) for m in moves] for moves in reported] == [
        [(1, "kernel of node-1", "6.1", "6.2"), (2, "kernel of node-1", "6.2", "6.1")],
        [(2, "kernel of node-1", "6.1", "6.2")],
        [],
        [],
        [],
    ]
