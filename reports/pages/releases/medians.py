"""Medians of all variants, and what may be said of two of them. Pure.

A variant is a release under one content of a config. Two variants are compared where they were measured
alike: same workload by content, topology, testbed class, engine, phase, operation and statistic.
Where a series changed within a variant, the median is that of its newest level: one over all its nights
would average the change away, and contradict the verdict.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache, partial
from itertools import pairwise
from statistics import median

import numpy as np
from scipy.special import stdtrit

from analysis.detection.detection import ChangePoint, ChangeState
from analysis.detection.effects import Effect, error_of_middle, relative_change
from analysis.detection.noise import Noise, degrees_of_freedom, estimate_noise
from analysis.detection.series import Point, find_newest_occasion, position
from analysis.detection.weeks import find_week, without_week
from analysis.judging.echoes import find_echoes
from analysis.judging.judgement import JudgedSeries
from perf.model.metrics import METRICS, Better
from perf.model.results import Named, Purpose, Release, SeriesKey, TrialHead, TrialId, TrialStatus
from perf.model.rules import Detection

CONFIDENCE = 0.99
"""Of the intervals: of a hundred equal pairs, one seems to differ."""
_LEAST_SETTLED, _SETTLED_POINTS = 100, 730
"""Points that noise is settled by: fewer say too little, more only take longer."""
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_OWN_PURPOSES = frozenset({Purpose.SCHEDULED, Purpose.IMPORTED, Purpose.SENTINEL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A release under one content of a config, with its completed trials in order of time.

    `id` is short and safe for file names. Trials that took turns belong to their comparison, not here.
    """

    id: str
    release: Release
    config: Named
    trials: tuple[TrialHead, ...]

    @property
    def branch(self) -> tuple[str, str, str]:
        """Return what variants that follow each other share: system, line, name of the config."""
        return self.release.system, self.release.line, self.config.name


class MedianStatus(StrEnum):
    """What may be said of two medians from different nights."""

    WORSE = "worse"
    BETTER = "better"
    SMALL = "small"
    """Beyond noise, but too small to matter."""
    CHANGED = "changed"
    """Small or the same, but one of both changed within itself by what matters."""
    SAME = "same"
    """Shown to lie within what matters."""
    UNKNOWN = "unknown"
    """The interval holds both nothing and a change that matters, or there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condensed:
    """What the trials of a variant say of one measure: `deviation` is 0 for a single value."""

    median: float
    values: int
    deviation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantValues:
    """What a variant measured in one series, at its newest level.

    `change` is the largest confirmed change from one night of the variant to another, `ends` are its
    first and its last trial in the series. An echo repeats another series, so that it is not counted.
    """

    judged: JudgedSeries
    noise: Noise | None
    condensed: Condensed
    ends: tuple[TrialId, TrialId]
    change: ChangePoint | None = None
    is_echo: bool = False

    def has_changed(self, settings: Detection) -> bool:
        """Return whether it changed within the variant by what matters."""
        relevant = settings.relevant_change.get(self.judged.series.key.metric, 0.0)
        return self.change is not None and abs(self.change.relative_change) >= relevant


@dataclass(frozen=True, slots=True, kw_only=True)
class MedianDifference:
    """By what two medians differ; `effect` is None where nothing is known of the noise."""

    change: float
    effect: Effect | None
    standing: MedianStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Medians:
    """All variants by id, and what each measured by what must be equal to compare, both in order.

    Variants are in the order of system, line, config and release; those of one release by time.
    `before` gives, by id, the variant that comes before: of the release before, or of the same release
    with the config before. `changes` gives, by id, the confirmed changes within the variant. `noise` is
    that which medians are compared with, by series. `echoes` are series that repeat others.
    """

    variants: Mapping[str, Variant]
    series: Mapping[SeriesKey, JudgedSeries]
    noise: Mapping[SeriesKey, Noise | None]
    measured: Mapping[str, Mapping[SeriesKey, VariantValues]]
    before: Mapping[str, Variant]
    changes: Mapping[str, Sequence[ChangePoint]]
    echoes: frozenset[SeriesKey]

    def newest(self) -> tuple[Variant, ...]:
        """Return the last variant of each branch."""
        return tuple({variant.branch: variant for variant in self.variants.values()}.values())


def read_medians(heads: Iterable[TrialHead], judged: Iterable[JudgedSeries]) -> Medians:
    """Sort the points of all series with a known metric by the variant that was measured.

    `heads` are all trials, in order of time. Diagnostics and canaries have no place here.
    """
    variants = _find_variants(heads)
    series = {one.series.key: one for one in judged if one.series.key.metric in METRICS}
    echoes = find_echoes(series.values())
    since = _begin_of_quarter(series.values())
    noise = {key: settle_noise(one, since) for key, one in series.items()}
    measured = _Condensing(variants, series.values(), noise, echoes)
    return Medians(
        variants={variant.id: variant for variant in variants},
        series=series,
        noise=noise,
        measured=measured,
        changes=measured.changes,
        echoes=echoes,
        before={
            later.id: earlier for earlier, later in pairwise(variants) if earlier.branch == later.branch
        },
    )


def settle_noise(judged: JudgedSeries, since: datetime) -> Noise | None:
    """Return the noise of a series as it was known at a moment; that of today where little was.

    Each night moves what is known of the noise in its fourth digit, and with it each interval on the
    pages of all releases. As of the beginning of a quarter it stands still until the next.
    """
    noise, points = judged.noise, judged.series.points
    if noise is None or not noise.deviation:
        return noise
    moments = points.columns.occasions.moments[np.asarray(points.columns.places)]
    known = np.flatnonzero(moments < np.datetime64(since.replace(tzinfo=None)))[-_SETTLED_POINTS:]
    if len(known) < _LEAST_SETTLED:
        return noise
    values, days = np.asarray(points.values)[known], points.days[known]
    week = find_week(values, days)
    deviation, persistence = estimate_noise(without_week(values, days, week))
    if not deviation:  # equal values until then say nothing of how it scatters now
        return noise
    return replace(noise, deviation=deviation, persistence=persistence, all_points=len(known))


def _begin_of_quarter(series: Iterable[JudgedSeries]) -> datetime:
    """Return when the quarter began, in UTC, in which the newest point was measured."""
    last = find_newest_occasion(one.series for one in series)
    newest = last.started_at.astimezone(UTC) if last else _NEVER
    return datetime(newest.year, newest.month - (newest.month - 1) % 3, 1, tzinfo=UTC)


class _Condensing(Mapping[str, Mapping[SeriesKey, VariantValues]]):
    """What each variant measured, condensed when it is asked for: most builds ask for few of many."""

    def __init__(
        self,
        variants: Sequence[Variant],
        series: Iterable[JudgedSeries],
        noise: Mapping[SeriesKey, Noise | None],
        echoes: frozenset[SeriesKey],
    ) -> None:
        self._noise, self._echoes = noise, echoes
        self._known: dict[str, Mapping[SeriesKey, VariantValues]] = {}
        self.changes: dict[str, list[ChangePoint]] = {variant.id: [] for variant in variants}
        homes = {trial.id: variant.id for variant in variants for trial in variant.trials}
        # The series of an experiment share their trials.
        find_places = cache(partial(_find_places, homes))
        self._series = [(one, find_places(one.series.points.trials)) for one in series]
        for one, places in self._series:
            if confirmed := _list_confirmed(one):
                for home, of_home in places.items():
                    self.changes[home] += _find_within(confirmed, of_home)

    def __getitem__(self, variant: str) -> Mapping[SeriesKey, VariantValues]:
        if variant not in self._known:
            if variant not in self.changes:
                raise KeyError(variant)
            self._known[variant] = {
                shared_part(one.series.key): _condense_newest(
                    one,
                    places[variant],
                    self._noise[one.series.key],
                    is_echo=one.series.key in self._echoes,
                )
                for one, places in self._series
                if variant in places
            }
        return self._known[variant]

    def __iter__(self) -> Iterator[str]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)


def _find_places(
    homes: Mapping[TrialId, str], trials: tuple[TrialId, ...]
) -> Mapping[str, Sequence[int]]:
    """Return by variant the places of its trials."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for place, trial in enumerate(trials):
        if home := homes.get(trial):
            found[home].append(place)
    return found


def _list_confirmed(one: JudgedSeries) -> list[ChangePoint]:
    return [change for change in one.change_points if change.state is ChangeState.CONFIRMED]


def _find_within(changes: Sequence[ChangePoint], places: Sequence[int]) -> list[ChangePoint]:
    """Return the changes between the first and the last of these places."""
    first, last = places[0], places[-1]
    return [change for change in changes if first < change.index <= last]


def _condense_newest(
    one: JudgedSeries, places: Sequence[int], noise: Noise | None, *, is_echo: bool
) -> VariantValues:
    changes = _find_within(_list_confirmed(one), places)
    start = changes[-1].index if changes else 0
    trials = one.series.points.trials
    return VariantValues(
        judged=one,
        noise=noise,
        ends=(trials[places[0]], trials[places[-1]]),
        condensed=condense([one.series.points.values[place] for place in places if place >= start]),
        change=max(changes, key=lambda change: abs(change.relative_change), default=None),
        is_echo=is_echo,
    )


def variant_id(system: str, version: str, config: str, config_sha256: str) -> str:
    """Return the id of the variant that is this release under this content of a config."""
    identity = f"{system}\0{version}\0{config}\0{config_sha256}"
    return hashlib.sha256(identity.encode()).hexdigest()[:12]


def _find_variants(heads: Iterable[TrialHead]) -> tuple[Variant, ...]:
    found: defaultdict[tuple[str, str, str, str], list[TrialHead]] = defaultdict(list)
    for head in heads:
        if head.status is TrialStatus.COMPLETED and head.purpose in _OWN_PURPOSES:
            release, config = head.release, head.config
            found[release.system, release.version, config.name, config.sha256].append(head)
    variants = [
        Variant(
            id=variant_id(*identity),
            release=trials[0].release,
            config=trials[0].config,
            trials=tuple(trials),
        )
        for identity, trials in found.items()
    ]
    return tuple(sorted(variants, key=_order))


def _order(variant: Variant) -> tuple[object, ...]:
    first, release = variant.trials[0], variant.release
    line, *rest = position(
        Point(trial=first.id, release=release, started_at=first.started_at, value=0.0)
    )
    return release.system, line, variant.config.name, *rest


@cache
def shared_part(key: SeriesKey) -> SeriesKey:
    """Return what must be equal to compare two series: all but the system, the line and the config."""
    return replace(key, system="", line="", config="")


def condense(values: Sequence[float]) -> Condensed:
    """Return the median of at least one value, their number, and their sample standard deviation."""
    size = len(values)
    middle = math.fsum(values) / size
    squares = math.fsum([(value - middle) ** 2 for value in values])
    deviation = math.sqrt(squares / (size - 1)) if size > 1 else 0.0
    return Condensed(median=median(values), values=size, deviation=deviation)


def compare(before: VariantValues, after: VariantValues, settings: Detection) -> MedianDifference:
    """Compare two medians with the noise that is known of their series.

        (m₂ - m₁)/|m₁| ± t · √(e₁² + e₂²)/|m₁|

    with e the error of a median by the noise of its series and the scatter of the variant's own values
    (`analysis.comparison.error_of_middle`), and t the quantile of Student's t, of the series that is
    known less. It says nothing of what else differed between the nights.
    """
    change = relative_change(before.condensed.median, after.condensed.median)
    errors = [standard_error(one) for one in (before, after)]
    base = abs(before.condensed.median)
    if not base or None in errors:
        return MedianDifference(change=change, effect=None, standing=MedianStatus.UNKNOWN)
    quantile = max(quantile_of(one.noise) for one in (before, after))
    reach = quantile * math.hypot(*(error for error in errors if error is not None)) / base
    effect = Effect(
        relative_change=change, low=change - reach, high=change + reach, confidence=CONFIDENCE
    )
    metric = after.judged.series.key.metric
    relevant = settings.relevant_change.get(metric, 0.0)
    standing = _stand(effect, metric, relevant)
    if standing in (MedianStatus.SAME, MedianStatus.SMALL) and (
        before.has_changed(settings) or after.has_changed(settings)
    ):
        standing = MedianStatus.CHANGED
    return MedianDifference(change=change, effect=effect, standing=standing)


def standard_error(measured: VariantValues) -> float | None:
    """Return the standard error of a median; None where no scatter is known."""
    noise, known = measured.noise, measured.condensed
    if noise is None or not noise.deviation:
        return None
    return error_of_middle(known.deviation, known.values, noise)


def quantile_of(noise: Noise | None) -> float:
    """Return the quantile of Student's t for the points that the noise rests on."""
    return _quantile(noise.all_points) if noise else 0.0


@cache
def _quantile(points: int) -> float:
    return float(stdtrit(degrees_of_freedom(points), (1 + CONFIDENCE) / 2))


def _stand(effect: Effect, metric: str, relevant: float) -> MedianStatus:
    if effect.low > 0 or effect.high < 0:
        if abs(effect.relative_change) < relevant:
            return MedianStatus.SMALL
        is_better = (effect.relative_change > 0) is (METRICS[metric].better is Better.HIGHER)
        return MedianStatus.BETTER if is_better else MedianStatus.WORSE
    return MedianStatus.SAME if effect.lies_within(relevant) else MedianStatus.UNKNOWN


def newest_trials(variant: Variant) -> dict[str, TrialHead]:
    """Return the newest completed trial of each experiment of a variant."""
    return {trial.experiment: trial for trial in variant.trials}
