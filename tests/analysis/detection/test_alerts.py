import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.detection.alerts import Alert, Sighting, follow, replay_series, sight
from analysis.detection.detection import ChangeState, DetectorResult, Shift
from analysis.detection.series import Series, build_series
from perf.model.results import Observation

Make = Callable[..., tuple[Observation, ...]]
CONFIRMED, PROVISIONAL = ChangeState.CONFIRMED, ChangeState.PROVISIONAL


def sighting(
    index: int, within: int = 1, state: ChangeState = PROVISIONAL, *, rises: bool = True
) -> Sighting:
    return Sighting(
        index=index,
        earliest=index - within,
        latest=index + within,
        rises=rises,
        relative_change=0.1 if rises else -0.1,
        state=state,
    )


def followed(*nights: Sequence[Sighting]) -> tuple[Alert, ...]:
    return follow(enumerate(nights))


def test_an_alert_keeps_its_identity_while_its_place_moves_within_the_interval() -> None:
    (alert,) = followed([sighting(50)], [sighting(52)], [sighting(51, state=CONFIRMED)])
    assert (alert.index, alert.earliest, alert.latest) == (51, 50, 52)
    assert (alert.provisional_at, alert.confirmed_at, alert.reported_at) == (0, 2, 2)
    assert alert.withdrawn_at is None


def test_beyond_the_interval_or_in_the_other_direction_it_is_another_alert() -> None:
    old, new = followed([sighting(50)], [sighting(53)])
    assert (old.withdrawn_at, new.withdrawn_at) == (1, None)
    fallen, risen = followed([sighting(50)], [sighting(50, rises=False)])
    assert (fallen.rises, fallen.reported_at, risen.rises, risen.withdrawn_at) == (False, 1, True, 1)


def test_of_several_the_nearest_is_the_same_and_only_one_can_be() -> None:
    first, second = followed([sighting(50, 5)], [sighting(47, 5), sighting(52, 5)])
    assert (first.index, first.reported_at) == (47, 1)
    assert (second.index, second.reported_at) == (52, 0)


def test_a_standing_alert_comes_before_a_withdrawn_one_at_the_same_distance() -> None:
    alerts = followed([sighting(48, 2)], [sighting(52, 1)], [sighting(50, 3)])
    assert [(alert.index, alert.reported_at, alert.withdrawn_at) for alert in alerts] == [
        (48, 0, 1),
        (50, 1, None),
    ]


def test_an_alert_that_fades_is_withdrawn_with_the_first_night_that_misses_it() -> None:
    (alert,) = followed([sighting(50)], [], [])
    assert (alert.state, alert.reported_at, alert.withdrawn_at) == (PROVISIONAL, 0, 1)


def test_an_alert_that_comes_back_to_its_place_is_the_same_and_stands_again() -> None:
    (alert,) = followed([sighting(50)], [], [sighting(51)], [sighting(51, state=CONFIRMED)])
    assert (alert.provisional_at, alert.confirmed_at, alert.withdrawn_at) == (0, 3, None)


def test_an_alert_keeps_the_strongest_state_and_when_it_reached_it() -> None:
    (alert,) = followed([sighting(50, state=CONFIRMED)], [sighting(50)], [])
    assert (alert.state, alert.reported_at, alert.provisional_at) == (CONFIRMED, 0, 1)
    assert alert.withdrawn_at == 2


NIGHTS = st.lists(
    st.lists(
        st.builds(
            sighting,
            index=st.integers(1, 40),
            within=st.integers(0, 4),
            state=st.sampled_from(ChangeState),
            rises=st.booleans(),
        ),
        max_size=5,
    ),
    min_size=1,
    max_size=8,
)


@given(nights=NIGHTS)
def test_what_stands_is_what_the_last_night_saw(nights: list[list[Sighting]]) -> None:
    standing = [alert for alert in followed(*nights) if alert.withdrawn_at is None]
    seen = [(one.index, one.earliest, one.rises) for one in nights[-1]]
    assert sorted((one.index, one.earliest, one.rises) for one in standing) == sorted(seen)


@given(nights=NIGHTS, cut=st.integers(1, 8))
def test_later_nights_do_not_rewrite_what_was_reported(nights: list[list[Sighting]], cut: int) -> None:
    def reported(alerts: Sequence[Alert], before: int) -> list[int]:
        first = [
            min(night for night in (one.provisional_at, one.confirmed_at) if night is not None)
            for one in alerts
        ]
        return sorted(night for night in first if night < before)

    assert reported(followed(*nights), cut) == reported(followed(*nights[:cut]), cut)


@dataclass(frozen=True, slots=True)
class Jumps:
    """Sees a shift wherever neighbours differ by more than five, to within a point."""

    name: str = "jumps"

    def read(self, values: Sequence[float], days: Sequence[int] = ()) -> DetectorResult:
        places = [index for index, (a, b) in enumerate(pairwise(values), start=1) if abs(b - a) > 5]
        return DetectorResult(
            shifts=tuple(
                Shift(
                    index=index,
                    earliest=index,
                    latest=index,
                    p_value=0.0,
                    is_confirmed=3 <= index <= len(values) - 3,
                )
                for index in places
            )
        )


@pytest.fixture
def observe(make_observations: Make) -> Callable[[Sequence[float]], tuple[Observation, ...]]:
    """Return `observe(values)`: a series of a point each night, one release each."""

    def make(values: Sequence[float]) -> tuple[Observation, ...]:
        return tuple(
            replace(observation, night=f"2026-03-{1 + index // 10:02d}-{1 + index % 10}")
            for index, observation in enumerate(make_observations(values))
        )

    return make


STEP = [100.0] * 12 + [120.0] * 8


def series_of(observations: Sequence[Observation]) -> Series:
    (series,) = build_series(observations)
    return series


def test_a_step_is_provisional_the_first_night_and_confirmed_by_the_third(
    observe: Callable[..., tuple[Observation, ...]],
) -> None:
    (alert,) = replay_series(series_of(observe(STEP)), Jumps(), 20)
    assert (alert.index, alert.provisional_at, alert.confirmed_at) == (12, 12, 14)
    assert alert.relative_change == pytest.approx(0.2)


def test_a_point_that_fills_in_between_can_refute_an_alert(
    observe: Callable[..., tuple[Observation, ...]],
) -> None:
    *known, between, last = observe([100.0] * 9 + [103.0, 106.0])
    filled = [*known, replace(between, night="2026-04-01-1"), last]
    (alert,) = replay_series(series_of(filled), Jumps(), 99)
    assert (alert.index, alert.reported_at, alert.withdrawn_at) == (10, 9, 10)


def test_only_the_last_nights_are_replayed_and_too_few_points_are_not_judged(
    observe: Callable[..., tuple[Observation, ...]],
) -> None:
    (alert,) = replay_series(series_of(observe(STEP)), Jumps(), 3)
    assert (alert.provisional_at, alert.confirmed_at) == (None, 17)
    (alert,) = replay_series(series_of(observe(STEP)), Jumps(), 20, minimum_points=14)
    assert alert.provisional_at == 13


@given(seed=st.integers(0, 10_000))
def test_the_order_of_arrival_changes_no_alert(make_observations: Make, seed: int) -> None:
    generator = random.Random(seed)  # noqa: S311  test data, not a secret
    values = [generator.choice((100.0, 120.0)) for _ in range(12)]
    nights = [f"2026-03-01-{generator.randint(1, 12)}" for _ in values]
    observations = [
        replace(observation, night=night)
        for observation, night in zip(make_observations(values), nights, strict=True)
    ]
    shuffled = generator.sample(observations, len(observations))
    expected = replay_series(series_of(observations), Jumps(), 99)
    assert replay_series(series_of(shuffled), Jumps(), 99) == expected


@given(seed=st.integers(0, 10_000))
def test_backfilled_in_any_order_the_same_stands_as_in_order(
    make_observations: Make, seed: int
) -> None:
    generator = random.Random(seed)  # noqa: S311  test data, not a secret
    values = [generator.choice((100.0, 120.0)) for _ in range(12)]
    in_order = list(range(12))

    def standing(nights: list[int]) -> list[tuple[int, int, int, bool, float]]:
        observations = [
            replace(observation, night=f"2026-03-01-{night}")
            for observation, night in zip(make_observations(values), nights, strict=True)
        ]
        alerts = replay_series(series_of(observations), Jumps(), 99)
        return [
            (alert.index, alert.earliest, alert.latest, alert.rises, alert.relative_change)
            for alert in alerts
            if alert.withdrawn_at is None
        ]

    assert standing(generator.sample(in_order, 12)) == standing(in_order)


def test_a_place_between_points_still_to_come_covers_them_all() -> None:
    shift = Shift(index=2, earliest=1, latest=2, p_value=0.0, is_confirmed=False)
    (seen,) = sight([100.0, 100.0, 80.0, 80.0], DetectorResult(shifts=(shift,)), (0, 3, 7, 8), ())
    assert (seen.index, seen.earliest, seen.latest, seen.rises) == (7, 1, 7, False)
