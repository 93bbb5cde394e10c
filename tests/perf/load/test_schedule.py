import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.load.schedule import UniformArrivals


def arrivals(offered_load: float, index: int = 0, count: int = 1) -> UniformArrivals:
    return UniformArrivals(offered_load_ops_per_s=offered_load, engine_index=index, engine_count=count)


def test_all_engines_together_are_evenly_spaced() -> None:
    starts = sorted(
        arrivals(250.0, engine, 3).intended_start_s(number)
        for engine in range(3)
        for number in range(engine, 300, 3)
    )
    assert starts == pytest.approx([number / 250 for number in range(300)])


@settings(deadline=None)
@given(
    st.floats(0.1, 100.0),
    st.integers(1, 5).flatmap(lambda count: st.tuples(st.integers(0, count - 1), st.just(count))),
    st.floats(0.0, 10.0),
)
def test_count_before_counts_exactly(load: float, engine: tuple[int, int], time_s: float) -> None:
    index, count = engine
    schedule = arrivals(load, index, count)
    numbers = range(index, 1100 * count, count)
    before = [number for number in numbers if schedule.intended_start_s(number) < time_s]
    assert schedule.count_before(time_s) == len(before)


@settings(deadline=None)
@given(st.floats(0.1, 1e5), st.integers(0, 10**6))
def test_an_operation_due_at_the_edge_belongs_behind_it(load: float, number: int) -> None:
    schedule = arrivals(load)
    assert schedule.count_before(schedule.intended_start_s(number)) == number
