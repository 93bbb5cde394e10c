"""Profiles of two sides whose truth is known: what was planted comes first, else nothing."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from analysis.comparing.profiles import (
    Profile,
    ProfileComparison,
    ProfileDifference,
    compare_profiles,
    read_profile_comparison,
    write_profile_comparison,
)
from analysis.comparing.results import SideRecord
from perf.model.errors import InputError
from perf.model.results import Named, SideName
from perf.model.stacks import read_stacks

CALL = "java.Thread.run_[j];org.db.Stage$$Lambda"
COLLAPSED = f"""\
{CALL}$1064.run_[j];org.db.Log.add_[1];java.nio.Buffer.put_[i];memcpy 30
{CALL}$77.run_[i];org.db.Log.add_[j];/a/b/libnetty_12.so (deleted);writev 12
start_thread;G1ParTask::work 5
odd line
"""
TREE = {
    ("java.Thread.run()", "org.db.Stage.run()", "org.db.Log.add()", "memcpy"): 120.0,
    ("java.Thread.run()", "org.db.Stage.run()", "org.db.Log.add()", "org.db.Crc.of()"): 30.0,
    ("java.Thread.run()", "org.db.Stage.run()", "org.db.Table.put()"): 90.0,
    ("java.Thread.run()", "org.db.Stage.run()", "org.db.Table.put()", "org.db.Tree.add()"): 200.0,
    ("java.Thread.run()", "org.db.Net.write()", "writev"): 60.0,
    ("start_thread", "G1Task::work"): 25.0,
}
"""By stack, how often it is seen in a trial on the mean."""
LOG = ("java.Thread.run()", "org.db.Stage.run()", "org.db.Log.add()", "memcpy")
GC = ("start_thread", "G1Task::work")
US_PER_OPERATION = 0.4


def draw(
    seed: int, plant: Mapping[tuple[str, ...], float], *, trials: int = 4, scatter: float = 0.08
) -> list[Profile]:
    """Draw profiles of both sides: Poisson counts about means that scatter from trial to trial."""
    generator = np.random.default_rng(seed)
    profiles = []
    sides: tuple[SideName, ...] = ("baseline", "candidate")
    for side in sides:
        for _ in range(trials):
            whole = generator.lognormal(0, scatter)
            stacks = {
                stack: float(
                    generator.poisson(
                        whole
                        * generator.lognormal(0, scatter)
                        * (mean + (plant.get(stack, 0.0) if side == "candidate" else 0.0))
                    )
                )
                for stack, mean in TREE.items()
            }
            unit = US_PER_OPERATION
            profiles.append(Profile(side=side, stacks=stacks, unit=unit, grain=unit))
    return profiles


def compare(profiles: list[Profile]) -> ProfileDifference:
    found = compare_profiles("write", "cpu", profiles)
    assert found is not None
    return found


def test_a_caller_of_several_that_moved_in_one_stack_is_taken_off_once() -> None:
    # Stage.run calls Log.add, and, further in, Table.put as well; both moved.
    nested = ("org.db.Stage.run()", "org.db.Log.add()", "org.db.Stage.run()", "org.db.Table.put()")
    profiles = [
        replace(one, stacks={**one.stacks, nested: 4000.0})
        for one in draw(1, {})
        if one.side == "candidate"
    ]
    before = [one for one in draw(1, {}) if one.side == "baseline"]
    (first, *_) = compare([*before, *profiles]).frames
    assert first.difference == pytest.approx(4000 * US_PER_OPERATION, rel=0.1)


def test_frames_match_between_processes() -> None:
    add = ("java.Thread.run()", "org.db.Stage$$Lambda.run()", "org.db.Log.add()")
    assert read_stacks(COLLAPSED, "cpu") == {
        (*add, "java.nio.Buffer.put()", "memcpy"): 30,
        (*add, "libnetty_12.so", "writev"): 12,
        ("start_thread", "G1ParTask::work"): 5,
    }


def test_what_is_allocated_is_no_method() -> None:
    stacks = read_stacks("org.db.Log.add_[j];org.db.Cell_[i] 4096\n", "alloc")
    assert stacks == {("org.db.Log.add()", "new org.db.Cell"): 4096}


def test_the_method_that_became_slower_is_named_first_with_how_much() -> None:
    for seed in range(20):
        found = compare(draw(seed, {LOG: 140.0}))
        first = found.frames[0]
        assert first.short_name == "Log.add"
        assert first.low < 140 * US_PER_OPERATION < first.high
        assert first.own == pytest.approx(140 * US_PER_OPERATION, rel=0.6)
        # Its callers moved because of it alone.
        assert "Stage.run" not in {one.short_name for one in found.frames}


def test_equal_sides_show_nothing_in_99_of_100() -> None:
    shown = sum(bool(compare(draw(seed, {})).frames) for seed in range(400))
    assert shown <= 8  # 1 % of 400 is 4; more than 8 of them would come by chance once in 50


def test_what_comes_in_bursts_is_not_taken_for_a_difference() -> None:
    shown = 0
    for seed in range(200):
        profiles = draw(seed, {})
        bursts = np.random.default_rng((seed, 1)).random(len(profiles)) < 0.3
        more = [
            replace(one, stacks={**one.stacks, GC: one.stacks[GC] + 300.0 * burst})
            for one, burst in zip(profiles, bursts, strict=True)
        ]
        shown += bool(compare(more).frames)
    assert shown <= 6


def test_the_tree_adds_up_and_names_callers_first() -> None:
    found = compare(draw(1, {LOG: 100.0}))
    assert found.nodes[0][2:] == (
        pytest.approx(found.before, rel=1e-3),
        pytest.approx(found.after, rel=1e-3),
    )
    for place, (caller, _, before, _) in enumerate(found.nodes[1:], start=1):
        assert caller < place
        assert before <= found.nodes[caller][2] * 1.001


def test_one_trial_of_a_side_says_nothing() -> None:
    assert compare_profiles("write", "cpu", draw(1, {}, trials=1)) is None


def test_a_file_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"profiles\.json"):
        read_profile_comparison(b'{"id": 1}', Path("profiles.json"))


def test_what_was_written_is_read_again() -> None:
    named = Named(name="default", sha256="a" * 64)
    side = SideRecord(
        label="5.0.9", version="5.0.9", config=named, topology=named, testbed=named, workload=named
    )
    found = ProfileComparison(
        id="cmp-1",
        experiment="writes",
        baseline=side,
        candidate=side,
        measured_at=datetime(2026, 11, 26, tzinfo=UTC),
        trials=("a", "b"),
        differences=(compare(draw(1, {LOG: 100.0})),),
    )
    content = write_profile_comparison(found)
    assert read_profile_comparison(content, Path("profiles.json")) == found
