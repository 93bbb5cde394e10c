"""Medians of variants: who comes before whom, and what may be said of two, with known answers."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from statistics import NormalDist

import pytest
from data import make_generator
from made_up_judgement import SETTINGS

from analysis.detection.noise import Noise
from analysis.detection.series import Point, Points, Series
from analysis.detection.verdict import Outcome
from analysis.judging.judgement import JudgedSeries
from analysis.judging.verdicts import Verdict, VerdictBasis
from perf.model.results import Named, Purpose, Release, SeriesKey, Trial, TrialId, TrialStatus
from reports.pages.releases.medians import (
    Condensed,
    MedianStatus,
    VariantValues,
    compare,
    condense,
    read_medians,
    variant_id,
)

KEY = SeriesKey(
    system="cassandra",
    line="5.0",
    topology="local-three",
    testbed_class="local",
    config="default",
    workload="sensor-write@0123456789ab",
    engine="python",
    phase="saturation",
    operation="write",
    metric="throughput",
    statistic="mean",
)
NOISE = Noise(deviation=10.0, persistence=0.0, level=1000.0, points=20, all_points=50)
RESPONSE_TIME = replace(KEY, metric="response_time", statistic="p99")


def judge(
    key: SeriesKey = KEY, noise: Noise | None = NOISE, points: Sequence[Point] = ()
) -> JudgedSeries:
    verdict = Verdict(outcome=Outcome.UNDECIDED, basis=VerdictBasis.NO_CHANGE)
    return JudgedSeries(
        series=Series(key=key, points=Points.of(points)), change_points=(), verdict=verdict, noise=noise
    )


def measured(
    median: float, values: int = 25, *, key: SeriesKey = KEY, noise: Noise | None = NOISE
) -> VariantValues:
    condensed = Condensed(median=median, values=values, deviation=0.0)
    ends = TrialId("first"), TrialId("last")
    return VariantValues(judged=judge(key, noise), noise=noise, condensed=condensed, ends=ends)


def test_the_interval_of_two_medians_has_a_known_answer() -> None:
    found = compare(measured(1000), measured(1100), SETTINGS)
    assert found.effect
    # Each median of 25 has an error of 10 · √(π/2/25) = 2.507; Student's t for 34 degrees is 2.728.
    reach = 2.7284 * math.sqrt(2) * 10 * math.sqrt(math.pi / 2 / 25) / 1000
    assert found.change == pytest.approx(0.1)
    assert found.effect.high - found.change == pytest.approx(reach, rel=1e-3)
    assert found.standing is MedianStatus.BETTER


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (measured(1000), measured(900), MedianStatus.WORSE),
        (measured(8, key=RESPONSE_TIME), measured(16, key=RESPONSE_TIME), MedianStatus.UNKNOWN),
        (measured(1000, key=RESPONSE_TIME), measured(1200, key=RESPONSE_TIME), MedianStatus.WORSE),
        (measured(1000), measured(1020), MedianStatus.SMALL),
        (measured(1000), measured(1001), MedianStatus.SAME),
        (measured(1000, 1), measured(1030, 1), MedianStatus.UNKNOWN),
        (measured(1000, noise=None), measured(2000, noise=None), MedianStatus.UNKNOWN),
        (measured(0), measured(2000), MedianStatus.UNKNOWN),
    ],
)
def test_what_may_be_said_depends_on_noise_and_on_what_matters(
    before: VariantValues, after: VariantValues, expected: MedianStatus
) -> None:
    assert compare(before, after, SETTINGS).standing is expected


def test_nights_of_one_release_that_scatter_more_widen_the_interval() -> None:
    quiet = compare(measured(1000), measured(1020), SETTINGS)
    wild = replace(measured(1020), condensed=condense([900.0, 1020.0, 1140.0]))
    noisy = compare(measured(1000), wild, SETTINGS)
    assert (quiet.standing, noisy.standing) == (MedianStatus.SMALL, MedianStatus.UNKNOWN)


@pytest.mark.parametrize("size", [2, 3, 9])
def test_of_a_hundred_equal_pairs_about_one_seems_to_differ(size: int) -> None:
    generator = random.Random(size)  # noqa: S311  test data
    pairs, draw = 1500, NormalDist(1000, 10)
    differing = 0
    for _ in range(pairs):
        sides = [
            replace(
                measured(0),
                condensed=condense([draw.inv_cdf(generator.random()) for _ in range(size)]),
            )
            for _ in range(2)
        ]
        effect = compare(sides[0], sides[1], SETTINGS).effect
        assert effect
        differing += effect.low > 0 or effect.high < 0
    assert differing / pairs <= 0.015


def test_variants_follow_each_other_by_release_and_then_by_time(
    make_trial: Callable[..., Trial],
) -> None:
    trial = make_trial()
    old = Named(name="default", sha256="aaaaaaaaaaaa")
    new = Named(name="default", sha256="bbbbbbbbbbbb")
    other = Named(name="other", sha256="cccccccccccc")
    planned = (
        ("5.0.10", 10, new, TrialStatus.COMPLETED, Purpose.SCHEDULED),
        ("5.0.9", 9, old, TrialStatus.COMPLETED, Purpose.SCHEDULED),
        ("5.0.9", 9, new, TrialStatus.COMPLETED, Purpose.SCHEDULED),
        ("5.0.9", 9, new, TrialStatus.COMPLETED, Purpose.SCHEDULED),
        ("5.0.9", 9, new, TrialStatus.INVALID, Purpose.SCHEDULED),
        ("5.0.8", 8, old, TrialStatus.COMPLETED, Purpose.COMPARISON),
        (
            "5.0.8",
            8,
            Named(name="other", sha256="cccccccccccc"),
            TrialStatus.COMPLETED,
            Purpose.SCHEDULED,
        ),
    )
    trials = [
        replace(
            trial,
            id=TrialId(f"trial-{place}"),
            release=replace(trial.release, version=version, ordinal=ordinal),
            config=config,
            status=status,
            purpose=purpose,
            started_at=trial.started_at + timedelta(days=place),
        )
        for place, (version, ordinal, config, status, purpose) in enumerate(planned)
    ]
    points = [
        Point(trial=one.id, release=one.release, started_at=one.started_at, value=100.0 + place)
        for place, one in enumerate(trials)
        if one.status is TrialStatus.COMPLETED
    ]
    diagnostic = judge(replace(KEY, metric="server_cpu"), points=points)
    medians = read_medians(trials, [judge(points=points), diagnostic])
    reported = [
        (one.release.version, one.config, [each.id for each in one.trials])
        for one in medians.variants.values()
    ]
    assert reported == [
        ("5.0.9", old, ["trial-1"]),
        ("5.0.9", new, ["trial-2", "trial-3"]),
        ("5.0.10", new, ["trial-0"]),
        ("5.0.8", other, ["trial-6"]),
    ]
    first, second, third, fourth = medians.variants.values()
    assert medians.before == {second.id: first, third.id: second}
    assert medians.newest() == (third, fourth)
    assert second.id == variant_id("cassandra", "5.0.9", "default", "bbbbbbbbbbbb")
    (only,) = medians.measured[second.id].values()
    assert (only.condensed.median, only.condensed.values) == (102.5, 2)


def nightly(count: int, *, begins: datetime = datetime(2026, 1, 10, tzinfo=UTC)) -> tuple[Point, ...]:
    noise = make_generator(1, "settled").standard_normal(count)
    return tuple(
        Point(
            trial=TrialId(f"{number}"),
            release=Release(system="cassandra", line="5.0", version="5.0.9", ordinal=9),
            started_at=begins + timedelta(days=number),
            value=1000.0 + 10 * float(noise[number]),
        )
        for number in range(count)
    )


def settle(points: Sequence[Point], deviation: float = 12.0) -> Noise | None:
    """Settle a noise that was seen last night, as of the quarter of the newest point."""
    judged = judge(KEY, replace(NOISE, deviation=deviation), points)
    return read_medians([], [judged]).noise[KEY]


def test_noise_stands_still_for_a_quarter() -> None:
    points = nightly(350)
    of_july, of_september, of_october = (settle(points[:count]) for count in (180, 260, 265))
    assert of_july is not None
    assert of_september is not None
    assert of_october is not None
    assert of_july.deviation == of_september.deviation == pytest.approx(10, rel=0.15)
    assert of_july.all_points == 172  # up to the end of June
    assert of_october.all_points == 264  # up to the end of September
    assert of_october.deviation != of_july.deviation


def test_noise_of_few_points_is_that_of_today() -> None:
    assert settle(nightly(99), 7.0) == replace(NOISE, deviation=7.0)
    assert settle((), 7.0) == replace(NOISE, deviation=7.0)


def test_a_week_is_left_out_of_the_noise() -> None:
    swing = [60.0 * (number % 7 > 4) for number in range(300)]
    points = [
        replace(one, value=one.value + more) for one, more in zip(nightly(300), swing, strict=True)
    ]
    settled = settle(points)
    assert settled is not None
    assert settled.deviation == pytest.approx(10, rel=0.2)


def test_a_series_that_stood_still_until_then_has_the_noise_of_today() -> None:
    points = [replace(one, value=1000.0) for one in nightly(172)]
    later = [replace(one, started_at=one.started_at + timedelta(days=172)) for one in nightly(50)]
    assert settle([*points, *later], 7.0) == replace(NOISE, deviation=7.0)
