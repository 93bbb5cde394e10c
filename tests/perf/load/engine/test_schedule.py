import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.load.engine.schedule import Share, Starts, plan_starts
from perf.model.design import OpenLoop

ENGINES = st.integers(1, 5).flatmap(lambda count: st.tuples(st.integers(0, count - 1), st.just(count)))


def starts(
    load: float, duration_s: float, index: int = 0, count: int = 1, *, seed: int = 3, place: int = 0
) -> Starts:
    offered = OpenLoop(kind="open", offered_load_ops_per_s=load, in_flight=1)
    share = Share(seed=seed, run=0, stage_place=place, engine_index=index, engine_count=count)
    return plan_starts(offered, share, duration_s)


def poisson(
    load: float, duration_s: float, index: int = 0, count: int = 1, *, seed: int = 3, place: int = 0
) -> Starts:
    offered = OpenLoop(kind="open", offered_load_ops_per_s=load, in_flight=1, arrivals="poisson")
    share = Share(seed=seed, run=0, stage_place=place, engine_index=index, engine_count=count)
    return plan_starts(offered, share, duration_s)


def distance_to_exponential(gaps_s: Starts, mean_s: float) -> float:
    """Return the Kolmogorov-Smirnov distance, times the root of the number of gaps."""
    found = np.sort(gaps_s)
    expected = -np.expm1(-found / mean_s)
    places = np.arange(found.size + 1) / found.size
    above, below = np.abs(places[1:] - expected).max(), np.abs(expected - places[:-1]).max()
    return float(max(above, below) * np.sqrt(found.size))


@settings(deadline=None)
@given(st.floats(0.1, 5000.0), st.floats(0.01, 3.0), st.integers(1, 5))
def test_all_engines_together_are_evenly_spaced(load: float, duration_s: float, count: int) -> None:
    shares = [starts(load, duration_s, index, count) for index in range(count)]
    together = np.sort(np.concatenate(shares))
    assert np.array_equal(together, [number / load for number in range(together.size)])
    assert together.size / load >= duration_s  # the next one would be due behind the end
    for index, share in enumerate(shares):
        assert np.array_equal(share, together[index::count])


@settings(deadline=None)
@given(st.floats(0.1, 1e5), st.integers(1, 10**4))
def test_an_operation_due_at_the_end_lies_behind_it(load: float, number: int) -> None:
    assert starts(load, number / load).size == number


@settings(deadline=None)
@given(st.floats(0.1, 5000.0), st.floats(0.01, 3.0), ENGINES, st.integers(0, 2**40))
def test_poisson_arrivals_are_in_order_and_the_same_again(
    load: float, duration_s: float, engine: tuple[int, int], seed: int
) -> None:
    found = poisson(load, duration_s, *engine, seed=seed)
    assert (np.diff(found) >= 0).all()
    assert found.size == 0 or 0 <= found[0] <= found[-1] < duration_s
    assert found.tolist() == poisson(load, duration_s, *engine, seed=seed).tolist()
    longer = poisson(load, 2 * duration_s, *engine, seed=seed)
    assert found.tolist() == longer[: found.size].tolist()


@pytest.mark.parametrize("count", [1, 3])
def test_poisson_arrivals_of_all_engines_are_one_poisson_process(count: int) -> None:
    load, duration_s = 500.0, 400.0  # 200 000 gaps, more than one block of each engine
    shares = [poisson(load, duration_s, index, count) for index in range(count)]
    together = np.sort(np.concatenate(shares))
    # Counts of a Poisson process vary by their root; five of them are more than chance.
    assert together.size == pytest.approx(load * duration_s, abs=5 * np.sqrt(load * duration_s))
    # 1.63 is what chance exceeds once in a hundred; the seeds are fixed.
    assert distance_to_exponential(np.diff(together), 1 / load) < 1.63
    counts = np.bincount((together * 10).astype(int))
    assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.1)


def test_even_spacing_does_not_pass_for_a_poisson_process() -> None:
    assert distance_to_exponential(np.diff(starts(500.0, 10.0)), 1 / 500) > 10


def test_engines_stages_and_seeds_have_processes_of_their_own() -> None:
    found = [
        poisson(100.0, 1.0, 0, 2),
        poisson(100.0, 1.0, 1, 2),
        poisson(100.0, 1.0, 0, 2, place=1),
        poisson(100.0, 1.0, 0, 2, seed=4),
    ]
    assert len({float(one[0]) for one in found}) == len(found)
