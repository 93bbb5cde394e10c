import random
from collections.abc import Sequence

import pytest

from perf.load.steadiness import StageSecond, is_steady, merge_progress
from perf.model.design import Steadiness

RULE = Steadiness(window_s=5, tolerance=0.1)


def series(counts: Sequence[float], service_ms: Sequence[float] | float = 2.0) -> list[StageSecond]:
    times = service_ms if isinstance(service_ms, Sequence) else [service_ms] * len(counts)
    return [
        StageSecond(completed=round(count), service_s=round(count) * time_ms / 1000)
        for count, time_ms in zip(counts, times, strict=True)
    ]


def first_steady(seconds: Sequence[StageSecond], warmup_s: float = 1.0) -> int | None:
    """Return the second after which the rule is met for the first time."""
    ends = range(len(seconds) + 1)
    return next((end for end in ends if is_steady(seconds[:end], RULE, warmup_s)), None)


def test_an_even_load_is_steady_as_soon_as_two_windows_have_passed() -> None:
    assert first_steady(series([1000] * 30)) == 10


def test_the_shortest_warm_up_is_kept() -> None:
    assert first_steady(series([1000] * 30), warmup_s=17.0) == 17
    assert first_steady(series([1000] * 30), warmup_s=16.2) == 17


def test_a_ramp_is_not_steady_until_it_is_flat() -> None:
    ramp = [100 + 100 * second for second in range(15)]
    # Then the earlier window holds 1200, 1300, 1400 and twice 1500: 8 % below the later one.
    assert first_steady(series(ramp + [1500] * 15)) == 21
    assert first_steady(series(ramp)) is None


def test_a_step_is_steady_again_once_it_has_all_but_left_the_windows() -> None:
    seconds = series([1000] * 10 + [2000] * 10)
    met = [end for end in range(21) if is_steady(seconds[:end], RULE, 1.0)]
    assert met == [10, 19, 20]


def test_noise_below_the_tolerance_is_steady_and_above_it_is_not() -> None:
    generator = random.Random(4)  # noqa: S311  test data, not a secret
    quiet = series([1000 + generator.gauss(0, 50) for _ in range(40)])
    assert first_steady(quiet) == 10
    loud = series([1000 if second // 5 % 2 else 1250 for second in range(40)])
    assert not any(is_steady(loud[:end], RULE, 1.0) for end in range(10, 41, 5))


def test_service_time_counts_as_throughput_does() -> None:
    falling_ms = [20 * 0.9**second for second in range(25)]
    assert first_steady(series([1000] * 25, falling_ms)) is None
    assert first_steady(series([1000] * 40, [*falling_ms, *[falling_ms[-1]] * 15])) == 32


def test_nothing_completed_is_never_steady() -> None:
    assert first_steady(series([0] * 30)) is None
    assert first_steady(series([1000] * 4 + [0] * 30)) is None
    assert first_steady([]) is None


def test_only_whole_seconds_that_every_engine_has_reported_count() -> None:
    texts = (
        "0,0,5,0.5\n0,1,5,0.5\n1,0,10,1.000000\n1,1,20,2.500000\n1,2,30,3.000000\n",
        "0,0,5,0.5\n0,1,5,0.5\n1,0,1,0.250000\n1,1,2,0.500000\n1,2,3",
    )
    assert merge_progress(texts, 1) == (
        StageSecond(completed=11, service_s=1.25),
        StageSecond(completed=22, service_s=3.0),
    )
    assert merge_progress(texts, 2) == ()
    assert merge_progress((*texts, ""), 1) == ()
    assert merge_progress((), 0) == ()


@pytest.mark.parametrize("window_s", [1, 3])
def test_the_window_is_as_long_as_the_rule_says(window_s: int) -> None:
    rule = Steadiness(window_s=window_s, tolerance=0.1)
    seconds = series([1000] * 10)
    assert [is_steady(seconds[:end], rule, 1.0) for end in range(10)].index(True) == 2 * window_s
