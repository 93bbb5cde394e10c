"""The search for the highest load, on simulated systems: exact, noisy, disturbed, and hostile."""

import random
from collections.abc import Callable, Sequence
from math import ceil, exp, log, log2, sqrt
from statistics import mean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.load.results.search import Found, most_steps, next_load
from perf.model.design import SearchLoad
from perf.model.results import LoadStep, StepOutcome

HELD, MISSED, LIMITED = StepOutcome.HELD, StepOutcome.MISSED, StepOutcome.CLIENT_LIMITED
System = Callable[[float], StepOutcome]


def make_search(
    lowest: float = 100.0, highest: float = 1600.0, resolution: float = 0.05, confirmations: int = 2
) -> SearchLoad:
    return SearchLoad(
        kind="search",
        lowest_ops_per_s=lowest,
        highest_ops_per_s=highest,
        response_time_p99_objective_ms=20.0,
        resolution=resolution,
        confirmations=confirmations,
        in_flight=8,
    )


SEARCHES = st.builds(
    make_search,
    lowest=st.floats(1.0, 1000.0),
    highest=st.floats(1001.0, 1e6),
    resolution=st.floats(0.005, 1.0),
    confirmations=st.integers(1, 4),
)


def step(load: float, outcome: StepOutcome) -> LoadStep:
    return LoadStep(
        phase="sought",
        offered_load_ops_per_s=load,
        achieved_ops_per_s=load,
        response_time_p99_ms=1.0,
        send_lateness_p99_ms=0.1,
        client_cpu_share=0.1,
        outcome=outcome,
        text="",
    )


def run(search: SearchLoad, system: System) -> tuple[Found, list[LoadStep]]:
    """Search until there is an answer; no search may take more steps than it says."""
    steps: list[LoadStep] = []
    while isinstance(load := next_load(search, steps), float):
        assert search.lowest_ops_per_s <= load <= search.highest_ops_per_s
        assert len(steps) < most_steps(search)
        steps.append(step(load, system(load)))
    assert next_load(search, tuple(steps)) == load
    return load, steps


def exact(capacity: float, client: float = float("inf")) -> System:
    """Make a system whose every load always holds or always misses."""
    return lambda load: LIMITED if load > client else HELD if load <= capacity else MISSED


def noisy(capacity: float, width: float, seed: int) -> System:
    """Make a system on which a load holds with a probability that falls around its capacity.

    Half of the runs hold at the capacity, 73 % at a load lower by the share `width`.
    """
    generator = random.Random(seed)  # noqa: S311  a simulation

    def answer(load: float) -> StepOutcome:
        return HELD if generator.random() < 1 / (1 + exp(log(load / capacity) / width)) else MISSED

    return answer


@given(search=SEARCHES, place=st.floats(0.0, 1.0, exclude_max=True))
def test_an_exact_capacity_is_found_within_the_resolution(search: SearchLoad, place: float) -> None:
    lowest, highest = search.lowest_ops_per_s, search.highest_ops_per_s
    capacity = min(max(lowest, lowest * (highest / lowest) ** place), highest * (1 - 1e-9))
    found, steps = run(search, exact(capacity))
    assert found.lower is not None
    assert found.upper is not None
    assert found.estimate is not None
    assert found.lower <= capacity < found.upper <= found.lower * (1 + search.resolution) * (1 + 1e-6)
    assert found.estimate == sqrt(found.lower * found.upper)
    for end in (found.lower, found.upper):
        outcomes = [one.outcome for one in steps if one.offered_load_ops_per_s == end]
        assert len(outcomes) == 1 + search.confirmations
    halvings = max(0, ceil(log2(log(highest / lowest) / log(1 + search.resolution))))
    assert len(steps) <= 2 + halvings + 2 * search.confirmations


def test_an_answer_carries_its_ends_and_its_runs() -> None:
    found, steps = run(make_search(), exact(412.0))
    assert found.text == (
        "the highest load with a p99 of at most 20 ms is 408.8 ops/s: "
        "400 held and 417.7 missed, each in 3 runs"
    )
    offered = [round(one.offered_load_ops_per_s) for one in steps]
    assert offered[:7] == [100, 400, 800, 566, 476, 436, 418]  # the ratio is halved each time
    assert offered[7:] == [418, 400, 400, 418]  # it missed again; 400 holds for certain; as 418 misses


def test_when_the_lowest_misses_there_is_no_answer_but_a_bound() -> None:
    found, steps = run(make_search(), exact(99.0))
    assert (found.estimate, found.lower, found.upper) == (None, None, 100.0)
    assert [one.offered_load_ops_per_s for one in steps] == [100.0, 100.0]
    assert found.text == (
        "the highest load with a p99 of at most 20 ms is below 100 ops/s, the lowest of the search; "
        "lower lowest_ops_per_s"
    )


def test_when_the_highest_holds_there_is_no_answer_but_a_bound() -> None:
    found, steps = run(make_search(), exact(1600.0))
    assert (found.estimate, found.lower, found.upper) == (None, 1600.0, None)
    assert [one.offered_load_ops_per_s for one in steps][-3:] == [1600.0] * 3
    assert "is at least 1600 ops/s: the highest of the search" in found.text


def test_overload_is_kept_for_last() -> None:
    _, steps = run(make_search(), exact(200.0))
    assert max(one.offered_load_ops_per_s for one in steps) == 400.0


@given(search=SEARCHES, place=st.floats(0.0, 1.0, exclude_max=True))
def test_when_the_client_was_the_limit_the_answer_is_a_lower_bound(
    search: SearchLoad, place: float
) -> None:
    lowest, highest = search.lowest_ops_per_s, search.highest_ops_per_s
    client = min(max(lowest, lowest * (highest / lowest) ** place), highest * (1 - 1e-9))
    found, _ = run(search, exact(float("inf"), client))
    assert (found.estimate, found.upper) == (None, None)
    assert found.lower is not None
    assert found.lower <= client <= found.lower * (1 + search.resolution) * (1 + 1e-6)
    assert "the client cannot offer" in found.text


def test_a_client_that_cannot_even_offer_the_lowest_load_leaves_nothing_known() -> None:
    found, _ = run(make_search(), exact(float("inf"), 50.0))
    assert (found.estimate, found.lower, found.upper) == (None, None, None)
    assert found.text == (
        "the highest load with a p99 of at most 20 ms is not known: the client cannot offer 100"
    )


def test_a_client_that_is_limited_above_the_capacity_does_not_matter() -> None:
    assert run(make_search(), exact(300.0, 700.0))[0].estimate == pytest.approx(300.0, rel=0.05)


@pytest.mark.parametrize("disturbed", range(11))
def test_one_disturbed_run_moves_the_answer_by_a_resolution_at_most(disturbed: int) -> None:
    """A disturbance hides nothing above it, unless it falls into the confirmation of the lower end."""
    capacity, taken = 412.0, [0]

    def system(load: float) -> StepOutcome:
        taken[0] += 1
        return MISSED if taken[0] == disturbed + 1 else exact(capacity)(load)

    found, _ = run(make_search(), system)
    assert found.estimate == pytest.approx(capacity, rel=0.06)
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower <= capacity < found.upper


def test_a_load_that_held_and_missed_in_turn_is_neither_end() -> None:
    # 400 ops/s hold twice and miss then; everything below holds, everything above misses.
    runs: list[float] = []

    def system(load: float) -> StepOutcome:
        runs.append(load)
        if load == pytest.approx(400.0):
            return MISSED if sum(one == load for one in runs) > 2 else HELD
        return exact(400.0)(load)

    found, _ = run(make_search(), system)
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower < 400.0 < found.upper
    assert found.upper / found.lower == pytest.approx(16 ** (2 / 64), rel=0.02)


@given(search=SEARCHES, seed=st.integers(0, 1000), share=st.floats(0.0, 1.0))
def test_no_system_makes_a_search_endless(search: SearchLoad, seed: int, share: float) -> None:
    generator = random.Random(seed)  # noqa: S311  a simulation
    outcomes: Sequence[StepOutcome] = (HELD, MISSED, LIMITED)
    weights = (share, (1 - share) / 2, (1 - share) / 2)
    found, _ = run(search, lambda _: generator.choices(outcomes, weights)[0])
    ends = [one for one in (found.lower, found.estimate, found.upper) if one is not None]
    assert ends == sorted(ends)
    assert found.text


def test_a_system_that_cannot_make_up_its_mind_gets_no_estimate() -> None:
    turns = [0]

    def system(_: float) -> StepOutcome:
        turns[0] += 1
        return HELD if turns[0] % 3 else MISSED

    search = make_search(resolution=0.001)
    found, steps = run(search, system)
    if len(steps) == most_steps(search):
        assert found.estimate is None
        assert found.text.startswith(f"no answer after {len(steps)} steps")


# Width of the noise as a share of the load, then at least how often [lower, upper] holds the
# capacity, and at most how far the estimate is off in the median and in 19 of 20 searches.
@pytest.mark.parametrize(
    ("width", "coverage", "typical", "worst"),
    [(0.005, 0.96, 0.015, 0.035), (0.02, 0.90, 0.03, 0.07), (0.05, 0.80, 0.05, 0.13)],
    ids=["a tenth of the resolution", "less than half of it", "as wide as it"],
)
def test_noise_makes_the_answer_wider_and_hardly_wrong(
    width: float, coverage: float, typical: float, worst: float
) -> None:
    held, errors, steps = 0, [], []
    for seed in range(400):
        capacity = 100 * 16 ** random.Random(seed).uniform(0.1, 0.9)  # noqa: S311  a simulation
        found, taken = run(make_search(), noisy(capacity, width, seed))
        assert found.lower is not None
        assert found.estimate is not None
        assert found.upper is not None
        held += found.lower <= capacity <= found.upper
        errors.append(abs(found.estimate / capacity - 1))
        steps.append(len(taken))
    assert held / 400 >= coverage
    assert median(errors) <= typical
    assert sorted(errors)[380] <= worst
    assert mean(steps) <= 17
