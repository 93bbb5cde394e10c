"""The order in which a matrix is filled, and what counts as filled."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.config.catalog import load_catalog
from perf.jobs.feasible import planned_s
from perf.jobs.matrix import (
    ATTEMPTS,
    Cell,
    Grid,
    MatrixRow,
    Tally,
    choose_rows,
    count_known,
    expect_s,
    next_cell,
    plan_cells,
)
from perf.model.design import Deployment
from perf.model.errors import UsageError
from perf.model.identity import named
from perf.model.results import Purpose, Release, Trial, TrialStatus

CATALOG = load_catalog(Path(__file__).parents[2] / "data" / "configs")
SUITE = CATALOG.suite("fake-night")
WRITE, READ = (CATALOG.resolve(SUITE, each) for each in SUITE.experiments)


def line(name: str, count: int) -> tuple[Release, ...]:
    return tuple(
        Release(system="fake", version=f"{name}.{n}", line=name, ordinal=n) for n in range(count)
    )


def grid(*lines: tuple[Release, ...], of: Sequence[Deployment] = (WRITE,), repeat: int = 1) -> Grid:
    return Grid(rows=tuple(MatrixRow(deployment=each, lines=lines) for each in of), repeat=repeat)


def tally(wanted: Grid, **measured: Sequence[str]) -> Tally:
    """Count one trial for each version, by experiment (with _ for -)."""
    known = Tally()
    for cell in wanted.cells():
        versions = measured.get(cell.experiment.replace("-", "_"), ())
        known.completed[cell] += versions.count(cell.release.version)
    return known


def versions(cells: Sequence[Cell]) -> list[str]:
    return [cell.release.version for cell in cells]


def test_the_ends_come_first_then_the_middle_of_the_largest_gap() -> None:
    wanted = grid(line("5", 9))
    order = versions(plan_cells(wanted, Tally()))
    assert order == ["5.8", "5.0", "5.4", "5.6", "5.2", "5.7", "5.5", "5.3", "5.1"]


def test_whenever_it_stops_no_gap_is_twice_as_large_as_needed() -> None:
    order = [
        int(each.removeprefix("5.")) for each in versions(plan_cells(grid(line("5", 33)), Tally()))
    ]
    for stop in range(2, len(order) + 1):
        done = sorted(order[:stop])
        gaps = [high - low for low, high in pairwise(done)]
        assert max(gaps) <= 2 * -(-32 // (stop - 1)), done


def test_what_is_known_counts_as_measured_for_the_gaps() -> None:
    wanted = grid(line("5", 9))
    order = versions(plan_cells(wanted, tally(wanted, fake_write=["5.6", "5.8"])))
    assert order == ["5.0", "5.3", "5.5", "5.2", "5.7", "5.4", "5.1"]


def test_of_several_lines_all_ends_come_before_any_middle() -> None:
    wanted = grid(line("4", 3), line("5", 6), line("6", 1))
    order = versions(plan_cells(wanted, Tally()))
    assert order[:5] == ["6.0", "5.5", "4.2", "5.0", "4.0"]
    assert order[5:] == ["5.3", "5.2", "5.4", "5.1", "4.1"]


def test_experiments_take_turns_and_the_one_that_is_behind_goes_first() -> None:
    wanted = grid(line("5", 3), of=(WRITE, READ))
    fresh = plan_cells(wanted, Tally())
    assert [cell.experiment for cell in fresh] == ["fake-write", "fake-read"] * 3
    ahead = plan_cells(wanted, tally(wanted, fake_write=["5.0", "5.2"]))
    assert [(cell.experiment, cell.release.version) for cell in ahead] == [
        ("fake-read", "5.2"),
        ("fake-read", "5.0"),
        ("fake-write", "5.1"),
        ("fake-read", "5.1"),
    ]


def test_repeats_begin_when_all_has_one_trial_and_go_the_same_way() -> None:
    wanted = grid(line("5", 3), repeat=2)
    assert versions(plan_cells(wanted, Tally())) == ["5.2", "5.0", "5.1"] * 2
    known = tally(wanted, fake_write=["5.2", "5.2", "5.0"])
    assert versions(plan_cells(wanted, known)) == ["5.1", "5.0", "5.1"]


@pytest.mark.slow
@given(
    done=st.integers(0, 30),
    known=st.lists(st.sampled_from(["4.0", "4.2", "5.1", "5.4"]), max_size=5),
    repeat=st.integers(1, 2),
)
def test_what_was_stopped_goes_on_as_if_it_had_not_been(
    done: int, known: list[str], repeat: int
) -> None:
    wanted = grid(line("4", 3), line("5", 6), of=(WRITE, READ), repeat=repeat)
    before = tally(wanted, fake_read=known)
    whole = plan_cells(wanted, before)
    stopped = replace(before, completed=before.completed.copy())
    stopped.completed.update(whole[:done])
    assert plan_cells(wanted, stopped) == whole[done:]
    counts = before.completed.copy()
    counts.update(whole)
    assert all(counts[cell] >= repeat for cell in wanted.cells())


def test_what_failed_is_stood_in_for_and_gets_one_more_attempt_at_the_end() -> None:
    wanted = grid(line("5", 5))
    seen, counted = [], Tally()
    while cell := next_cell(wanted, counted):
        seen.append(cell.release.version)
        bad = cell.release.version in {"5.4", "5.2"}
        (counted.failed if bad else counted.completed)[cell] += 1
    # 5.3 stands in for the end 5.4.
    assert seen == ["5.4", "5.3", "5.0", "5.2", "5.1", "5.2", "5.4"]


def test_what_was_given_up_is_left() -> None:
    wanted = grid(line("5", 2))
    counted = Tally()
    counted.give_up(wanted.cells()[1])
    assert versions(plan_cells(wanted, counted)) == ["5.0"]
    assert counted.failed[wanted.cells()[1]] == ATTEMPTS


@pytest.fixture
def answer(make_trial: Callable[..., Trial]) -> Callable[..., Trial]:
    """Return `answer(**changes)`: a trial that answers the cell of fake-write at 5.1."""

    def make(**changes: object) -> Trial:
        trial = make_trial(
            release=line("5", 2)[1],
            topology=named(WRITE.topology),
            testbed=named(WRITE.testbed),
            workload=named(WRITE.workload),
            config=named(WRITE.config),
        )
        return replace(trial, **changes)  # type: ignore[arg-type]  # fields of Trial

    return make


def test_known_is_a_point_of_the_same_series_by_content(answer: Callable[..., Trial]) -> None:
    wanted = grid(line("5", 2), of=(WRITE, READ))
    cell = wanted.rows[0].cell(line("5", 2)[1])
    same = (
        answer(),
        answer(purpose=Purpose.IMPORTED),
        answer(testbed=replace(answer().testbed, name="x")),
    )
    assert dict(count_known(wanted, same).completed) == {cell: 3}
    others = [
        *(
            answer(purpose=each)
            for each in Purpose
            if each not in {Purpose.SCHEDULED, Purpose.IMPORTED}
        ),
        *(
            answer(**{part: replace(getattr(answer(), part), sha256="0" * 12)})
            for part in ("topology", "testbed", "workload", "config")
        ),
        answer(release=replace(answer().release, system="other")),
        answer(release=replace(answer().release, version="5.7")),
    ]
    counted = count_known(wanted, others)
    assert not any(counted.completed.values())
    assert not any(counted.failed.values())


def test_what_failed_before_waits_for_the_end_unless_it_completed_since(
    answer: Callable[..., Trial],
) -> None:
    wanted = grid(line("5", 2), repeat=2)
    invalid = answer(status=TrialStatus.INVALID)
    counted = count_known(wanted, [invalid] * 3)
    assert versions(plan_cells(wanted, counted)) == ["5.0", "5.0", "5.1", "5.1"]
    mended = count_known(wanted, [invalid, answer()])
    assert versions(plan_cells(wanted, mended)) == ["5.0", "5.1", "5.0"]


def test_own_trials_say_how_long_the_rest_takes_else_the_configuration(
    answer: Callable[..., Trial],
) -> None:
    wanted = grid(line("5", 3), of=(WRITE, READ))
    slow = answer(finished_at=answer().started_at + timedelta(seconds=70))
    counted = count_known(wanted, [slow])
    assert expect_s(wanted, counted, wanted.cells()) == pytest.approx(3 * 70 + 3 * planned_s(READ))


KNOWN = {"fake": (*line("4", 3), *line("5", 4)), "other": (replace(line("6", 1)[0], system="other"),)}
OTHER = replace(
    WRITE, experiment=replace(WRITE.experiment, name="o", system="other", releases=("6.0",))
)


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        (["5.1"], ["5.1"]),
        (["4"], ["4.0", "4.1", "4.2"]),
        (["5.1..5.3", "4.0", "5.2"], ["4.0", "5.1", "5.2", "5.3"]),
        (["6"], []),
    ],
)
def test_releases_are_chosen_one_by_one_by_span_or_by_line(
    wanted: list[str], chosen: list[str]
) -> None:
    rows = choose_rows((WRITE, OTHER), KNOWN, wanted)
    mine = [row for row in rows if row.experiment == "fake-write"]
    assert [cell.release.version for row in mine for cell in row.cells()] == chosen


def test_without_a_choice_the_lines_that_an_experiment_lists_are_wanted_whole() -> None:
    listing = replace(WRITE, experiment=replace(WRITE.experiment, releases=("5.1",)))
    (own, other) = choose_rows((listing, OTHER), KNOWN, ())
    assert own.lines == (line("5", 4),)
    assert [cell.release.version for cell in other.cells()] == ["6.0"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("5.7", r"fake and other: there is no release or line '5\.7'; did you mean 5\."),
        ("5.0..5.7", r"there is no release '5\.7'"),
        ("5.3..5.1", r"ends before it begins; write 5\.1\.\.5\.3"),
        ("4.0..5.1", "spans the lines 4 and 5"),
    ],
)
def test_what_is_unknown_is_reported_with_a_suggestion(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        choose_rows((WRITE, OTHER), KNOWN, [text])
