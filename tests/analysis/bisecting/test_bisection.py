import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from budget import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.bisecting.bisection import Culprit, Ending, Inconclusive, NextStep, Probe, next_step
from analysis.bisecting.probing import Probed
from analysis.bisecting.search import trials_of_probe
from analysis.comparing.paired import Estimate
from analysis.detection.effects import Effect
from perf.model.results import Release

E = 0.10
"""The change between the ends, as a log ratio."""
RELEVANT = 0.03


def releases(count: int) -> tuple[Release, ...]:
    return tuple(
        Release(system="fake", version=f"5.0.{one}", line="5.0", ordinal=one) for one in range(count)
    )


def measured(release: Release, level: float, error: float = 0.01, trials: int = 16) -> Probed:
    width = 2.8 * error
    return Probed(
        release=release,
        trials=trials,
        estimate=Estimate(
            log_ratio=level,
            standard_error=error,
            degrees_of_freedom=11,
            baseline_trials=trials // 2,
            candidate_trials=trials // 2,
        ),
        effect=Effect(
            relative_change=math.expm1(level),
            low=math.expm1(level - width),
            high=math.expm1(level + width),
            confidence=0.95,
        ),
        relevant_change=RELEVANT,
    )


def ask(
    line: Sequence[Release],
    verdicts: Sequence[Probed],
    *,
    higher_is_better: bool = True,
    trials_left: int | None = None,
) -> NextStep:
    return next_step(
        line,
        verdicts,
        higher_is_better=higher_is_better,
        trials_per_probe=40,
        trials_left=trials_left,
    )


def run(
    line: Sequence[Release],
    levels: Sequence[float],
    *,
    broken: Sequence[int] = (),
    error: float = 0.01,
    known: Sequence[Probed] = (),
    higher_is_better: bool = True,
) -> tuple[Culprit | Inconclusive, list[int]]:
    """Bisect with probes that measure the very levels; gives the places in the order of probing."""
    verdicts, order = list(known), list[int]()
    while isinstance(step := ask(line, verdicts, higher_is_better=higher_is_better), Probe):
        place = line.index(step.release)
        order.append(place)
        assert len(order) <= 3 * len(line), order
        if place in broken:
            verdicts.append(Probed(release=step.release, trials=2, reason="it does not start"))
        else:
            again = math.sqrt(1 + order[:-1].count(place))
            verdicts.append(measured(step.release, levels[place], error / again))
    return step, order


def step_at(place: int, count: int = 16, size: float = E) -> tuple[float, ...]:
    return tuple(size * (one >= place) for one in range(count))


@pytest.mark.parametrize("count", [2, 3, 7, 16])
def test_every_release_can_be_the_culprit(count: int) -> None:
    line = releases(count)
    for place in range(1, count):
        found, order = run(line, step_at(place, count))
        assert isinstance(found, Culprit), found
        assert (found.step.predecessor, found.step.release) == (line[place - 1], line[place])
        assert found.probability > 0.85
        assert order[0] == count - 1, "the ends come first"
        # The ends, the halving, and once more the bad end where it is the culprit itself.
        assert len(order) <= 2 + math.ceil(math.log2(count))


def test_the_first_probe_asks_whether_anything_changed() -> None:
    step = ask(releases(16), [])
    assert isinstance(step, Probe)
    assert (step.release.version, step.full_change) == ("5.0.15", None)


def test_probes_halve_what_is_left() -> None:
    _, order = run(releases(16), step_at(5))
    assert order == [15, 7, 3, 5, 4]


@pytest.mark.parametrize(
    ("size", "higher_is_better", "word"),
    [
        (E, True, "improvement"),
        (E, False, "regression"),
        (-E, True, "regression"),
        (-E, False, "improvement"),
    ],
)
def test_an_improvement_is_told_apart(size: float, higher_is_better: bool, word: str) -> None:  # noqa: FBT001
    found, _ = run(releases(8), step_at(3, 8, size), higher_is_better=higher_is_better)
    assert isinstance(found, Culprit)
    assert found.is_improvement == (word == "improvement")
    assert f"The {word} came with 5.0.3 (after 5.0.2)" in found.sentence
    assert found.step.effect.relative_change == pytest.approx(math.expm1(size))


def test_no_change_between_the_ends_names_nobody() -> None:
    found, order = run(releases(16), [0.001] * 16)
    assert isinstance(found, Inconclusive)
    assert (found.ending, order, found.cost_to_finish) == (Ending.NOTHING_CHANGED, [15], None)
    assert "Nothing changed between 5.0.0 and 5.0.15 that is worth acting on" in found.sentence
    assert "(−2.7 % to +2.9 %), within ±3 %" in found.sentence


def test_that_nothing_is_shown_is_not_that_nothing_changed() -> None:
    line = releases(16)
    vague = measured(line[15], 0.01, error=0.02)
    found = ask(line, [vague])
    assert isinstance(found, Inconclusive)
    # Half the interval is 0.056, and 0.0196 of it would show that nothing relevant changed.
    assert (found.ending, found.cost_to_finish) == (Ending.UNDECIDED, 116)
    assert "It is unknown whether anything changed between 5.0.0 and 5.0.15" in found.sentence
    short = ask(line, [vague], trials_left=4)
    assert isinstance(short, Inconclusive)
    assert (short.ending, short.cost_to_finish) == (Ending.BUDGET, 116)
    assert "The budget is used up" in short.sentence


def test_a_change_that_is_not_worth_acting_on_is_not_looked_for() -> None:
    line = releases(16)
    found = ask(line, [measured(line[15], 0.012, error=0.001)])
    assert isinstance(found, Inconclusive)
    assert found.ending is Ending.NOTHING_CHANGED
    assert "+1.2 % (+0.9 % to +1.5 %), within ±3 %" in found.sentence


def test_a_change_that_vanishes_when_the_bad_end_is_asked_again_names_nobody() -> None:
    line = releases(8)
    known = [measured(line[-1], 0.05), *(measured(one, 0.0) for one in line[1:-1])]
    step = ask(line, known)
    assert isinstance(step, Probe)
    assert step.release == line[-1]
    assert step.full_change is not None
    assert step.full_change.is_firm
    found = ask(line, [*known, measured(line[-1], 0.015)])
    assert isinstance(found, Inconclusive)
    assert found.ending is Ending.UNDECIDED


def test_a_doubt_that_the_budget_leaves_open_names_nobody() -> None:
    line = releases(8)
    known = [measured(line[-1], 0.05), *(measured(one, 0.0) for one in line[1:-1])]
    found = ask(line, known, trials_left=7)
    assert isinstance(found, Inconclusive)
    assert (found.ending, found.cost_to_finish) == (Ending.BUDGET, 40)
    assert "most probable is 5.0.7" in found.sentence


def test_a_bad_end_that_cannot_be_measured_says_so() -> None:
    line = releases(4)
    found = ask(line, [Probed(release=line[-1], reason="no archive has it")])
    assert isinstance(found, Inconclusive)
    assert found.ending is Ending.END_NOT_MEASURED
    assert "no archive has it. Name an earlier release" in found.sentence


def test_broken_releases_are_skipped_and_part_of_the_answer() -> None:
    found, order = run(releases(9), step_at(5, 9), broken=(3, 4))
    assert isinstance(found, Culprit)
    assert order.count(4) == 1
    assert (found.step.predecessor.version, found.step.release.version) == ("5.0.2", "5.0.5")
    assert [one.version for one in found.step.skipped] == ["5.0.3", "5.0.4"]
    assert (
        "one of 5.0.3 (could not be measured), 5.0.4 (could not be measured), 5.0.5" in found.sentence
    )
    assert found.probability > 0.85
    each = {chance.release.version: chance.probability for chance in found.chances}
    assert each["5.0.3"] == each["5.0.4"] == pytest.approx(each["5.0.5"])


def test_broken_releases_away_from_the_change_do_not_widen_the_answer() -> None:
    found, _ = run(releases(9), step_at(2, 9), broken=(4, 5, 6))
    assert isinstance(found, Culprit)
    assert (found.step.predecessor.version, found.step.skipped) == ("5.0.1", ())


def test_known_results_are_not_asked_for_again() -> None:
    line = releases(16)
    known = [measured(line[15], E), measured(line[7], E), measured(line[4], 0.0)]
    found, order = run(line, step_at(5), known=known)
    assert isinstance(found, Culprit)
    assert set(order) == {5}
    assert found.trials == 4 * 16


def test_two_changes_are_both_reported() -> None:
    levels = tuple(0.4 * (one >= 3) + 0.6 * (one >= 11) for one in range(16))
    found, _ = run(releases(16), levels, error=0.02)
    assert isinstance(found, Culprit)
    assert found.step.release.version == "5.0.11"
    assert [one.release.version for one in found.other_steps] == ["5.0.3"]
    assert (
        "more than one change in the range: 1 other change (after 5.0.2, up to 5.0.3" in found.sentence
    )


def test_what_is_between_is_asked_again_before_the_search_parts() -> None:
    line = releases(16)
    step = ask(line, [measured(line[15], E), measured(line[7], 0.5 * E)])
    assert isinstance(step, Probe)
    assert (step.release, step.full_change and step.full_change.is_firm) == (line[7], True)
    after = ask(line, [measured(line[15], E), *[measured(line[7], 0.5 * E)] * 2])
    assert isinstance(after, Probe)
    assert after.release in {line[3], line[11]}
    assert after.full_change is not None
    assert after.full_change.size == pytest.approx(0.5 * E)


def test_a_gradual_change_names_no_release() -> None:
    levels = tuple(one / 15 for one in range(16))
    found, _ = run(releases(16), levels, error=0.005)
    assert isinstance(found, Inconclusive)
    assert found.ending is Ending.GRADUAL
    assert len(found.steps) > 2
    assert max(one.effect.relative_change for one in found.steps) < math.expm1(0.5)
    assert "little by little" in found.sentence


def test_a_change_that_came_went_and_came_again_is_reported() -> None:
    line = releases(16)
    levels = tuple(E if 3 <= one <= 5 or one >= 12 else 0.0 for one in range(16))
    known = [measured(line[place], levels[place]) for place in (4, 8)]
    found, _ = run(line, levels, known=known)
    assert isinstance(found, Culprit)
    assert found.step.release.version == "5.0.12"
    assert "5.0.4 was like the bad end already, and 5.0.8 like the good end again" in found.sentence
    assert "the last step to the bad end is 5.0.12 (after 5.0.11)" in found.sentence


def test_a_release_that_moved_the_other_way_is_reported() -> None:
    line = releases(8)
    levels = (0.0, 0.0, 0.0, -E, 0.0, 0.0, E, E)
    found, _ = run(line, levels)
    assert isinstance(found, Culprit)
    assert found.step.release.version == "5.0.6"
    assert "5.0.3 had changed in the other direction" in found.sentence


def test_trials_that_cannot_tell_leave_a_range() -> None:
    line = releases(3)
    doubtful = measured(line[1], 0.5 * E, error=0.03, trials=40)
    step = ask(line, [measured(line[2], E), doubtful])
    assert isinstance(step, Probe)
    assert step.release == line[1], "it gets a second probe, and no third"
    found = ask(line, [measured(line[2], E), doubtful, doubtful])
    assert isinstance(found, Inconclusive)
    assert (found.ending, found.good, found.bad) == (Ending.UNDECIDED, line[0], line[2])
    first, second = (one.probability for one in found.chances)
    assert first == pytest.approx(second, abs=0.05)
    assert 0.8 < first + second < 1
    assert found.cost_to_finish == 40
    assert "the trials of 5.0.1 cannot tell" in found.sentence


def test_the_posterior_decides_which_probe_is_next() -> None:
    # The trials of 5.0.8 cannot tell, but they lean to the bad end: what is before it is likelier.
    line = releases(17)
    leaning = measured(line[8], 0.75 * E, error=0.03, trials=40)
    step = ask(line, [measured(line[16], E), leaning])
    assert isinstance(step, Probe)
    assert line.index(step.release) in {4, 5, 6}
    assert "parts the chances best" in step.reason
    assert step.release not in step.others
    assert set(step.others) < set(line[1:16])


def test_the_only_release_left_is_not_said_to_part_anything() -> None:
    line = releases(4)
    step = ask(line, [measured(line[3], E), measured(line[1], 0.0)])
    assert isinstance(step, Probe)
    assert (step.release, step.others) == (line[2], ())
    assert step.reason.endswith("this is the only release between them that is worth a probe")


def test_a_budget_that_ends_between_two_steps_shows_both() -> None:
    line = releases(16)
    middle = [measured(line[7], 0.5 * E)] * 2
    found = ask(line, [measured(line[15], E), *middle], trials_left=4)
    assert isinstance(found, Inconclusive)
    assert (found.ending, len(found.steps)) == (Ending.BUDGET, 2)
    assert "1 other change (after 5.0." in found.sentence


def test_a_budget_ends_it_with_what_is_known() -> None:
    line = releases(16)
    known = [measured(line[15], E), measured(line[7], 0.0)]
    found = ask(line, known, trials_left=7)
    assert isinstance(found, Inconclusive)
    assert (found.ending, found.good, found.bad) == (Ending.BUDGET, line[7], line[15])
    assert found.trials == 32
    assert found.cost_to_finish == 3 * 8
    assert sum(one.probability for one in found.chances) == pytest.approx(1, abs=0.1)
    assert sum(one.probability for one in found.chances[:7]) < 0.01
    assert "after 5.0.7 and up to 5.0.15" in found.sentence
    assert isinstance(ask(line, known, trials_left=8), Probe)


def test_a_budget_too_small_for_the_ends_says_so() -> None:
    found = ask(releases(16), [], trials_left=4)
    assert isinstance(found, Inconclusive)
    assert (found.ending, found.cost_to_finish) == (Ending.BUDGET, 200)
    assert "too small to tell whether anything changed" in found.sentence


def test_it_keeps_nothing_so_a_killed_bisection_goes_on() -> None:
    line, levels = releases(16), step_at(11)
    verdicts: list[Probed] = []
    while isinstance(step := ask(line, verdicts), Probe):
        assert ask(line, list(verdicts)) == step
        verdicts.append(measured(step.release, levels[line.index(step.release)]))
    assert ask(line, verdicts) == step


def test_refuses_what_is_no_range() -> None:
    line = releases(4)
    with pytest.raises(ValueError, match="a good end and a bad one"):
        ask(line[:1], [])
    stranger = replace(line[1], version="4.1.0")
    with pytest.raises(ValueError, match=r"4\.1\.0 is not among the releases"):
        ask(line, [measured(stranger, 0.0)])


@settings(max_examples=tries(60), deadline=None)
@given(
    levels=st.lists(st.floats(-0.3, 0.3), min_size=2, max_size=9),
    broken=st.sets(st.integers(1, 8)),
    error=st.sampled_from([1e-9, 0.01, 0.1]),
)
def test_ends_whatever_was_measured(levels: list[float], broken: set[int], error: float) -> None:
    line = releases(len(levels))
    found, _ = run(line, levels, broken=tuple(broken), error=error)
    assert 0 <= sum(one.probability for one in found.chances) <= 1 + 1e-9
    assert found.sentence.strip()
    if isinstance(found, Culprit):
        inside = range(line.index(found.step.predecessor) + 1, line.index(found.step.release))
        assert [line[place] for place in inside] == [*found.step.skipped, *found.step.unmeasured]


@pytest.mark.parametrize(("size", "trials"), [(0.1, 8), (-0.1, 8), (0.04, 28), (0.02, 40)])
def test_a_smaller_step_takes_more_trials_by_the_square_of_its_size(size: float, trials: int) -> None:
    # 16 trials know the bad end to 0.01, so 2.5 errors are a half, 1.25 and 2.5 of half a step.
    assert trials_of_probe(measured(releases(2)[1], E), size, most=40) == trials


def test_a_range_left_undecided_shows_the_step_in_it() -> None:
    line = releases(3)
    doubtful = measured(line[1], 0.5 * E, error=0.03, trials=40)
    found = ask(line, [measured(line[2], E), doubtful, doubtful])
    assert isinstance(found, Inconclusive)
    (step,) = found.steps
    assert step.effect.relative_change == pytest.approx(math.expm1(E))


def test_where_every_chance_vanished_the_search_goes_on() -> None:
    def exact(place: int, level: float) -> Probed:
        one = measured(line[place], level, error=0.001)
        assert one.estimate
        return replace(one, estimate=replace(one.estimate, degrees_of_freedom=math.inf))

    line = releases(16)
    step = ask(line, [exact(15, E), exact(4, -2 * E), exact(4, -2 * E)])
    assert isinstance(step, Probe)
    assert line.index(step.release) in range(5, 15)
