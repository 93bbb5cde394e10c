"""Read one state of a history, and judge it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache, partial

from analysis.detection.series import Series
from analysis.detection.step_detector import StepDetector
from analysis.judging.findings import SeriesFinding
from analysis.judging.hints import find_hints
from analysis.judging.judgement import Judgement, judge
from analysis.judging.remeasurement import PURPOSES, read_answers
from analysis.orchestration import detector_cache
from analysis.orchestration.comparing import read_results
from analysis.orchestration.detector_cache import RememberingDetector
from analysis.orchestration.workers import SMALL, Pace, work_through
from perf.config.catalog import Catalog, find_experiment_of
from perf.history.store import History, open_history
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.columns import Observations, ObservedSeries
from perf.model.errors import HistoryError
from perf.model.results import Observation, Purpose, SeriesKey, TrialId


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All of one state of a history that a judgement rests on."""

    observed: Observations
    sentinels: tuple[Observation, ...]
    interleaved: tuple[Observation, ...]
    profiled: Observations
    environments: Mapping[TrialId, Mapping[str, str]]


def read_evidence(history: History, paths: DataPaths) -> Evidence:
    """Read what a judgement rests on, as of one moment; what `paths` keeps of it is not read again."""
    with history.snapshot():
        return Evidence(
            observed=history.observed_series(kept=paths.observations),
            sentinels=history.observations(Purpose.SENTINEL),
            interleaved=history.observations(*PURPOSES),
            profiled=history.observed_series(Purpose.PROFILE),
            environments=history.environments(),
        )


def judge_history(paths: DataPaths, catalog: Catalog, today: date) -> Judgement:
    """Read the history of a data directory, and judge it as `judge_evidence` does.

    Raises:
        HistoryError: the history cannot be read, or holds values that no trial can have measured.
        InputError: the result of a comparison is not one.

    """
    with open_history(paths.history, read_only=True) as history:
        evidence = read_evidence(history, paths)
    return judge_evidence(evidence, paths, catalog, today)


def judge_evidence(evidence: Evidence, paths: DataPaths, catalog: Catalog, today: date) -> Judgement:
    """Judge what the history of a data directory holds by the rules of a catalog.

    `today` decides which triage entries have expired. Canaries and sentinels watch the testbed. What
    finished comparisons of two releases came to counts, if their trials are in the history.

    Raises:
        HistoryError: the history holds values that no trial can have measured.
        InputError: the result of a comparison is not one.

    """
    steps = StepDetector(settings=catalog.detection)
    method = detector_cache.describe_method(steps)
    days = detector_cache.read_file(paths.readings, method)
    known = {digest: one for of_day in days.values() for digest, one in of_day.items()}
    detector = RememberingDetector(steps, known)
    try:
        judgement = judge(
            evidence.observed,
            catalog.detection,
            detector,
            watched=evidence.sentinels,
            environments=evidence.environments,
            answers=read_answers(read_results(paths), evidence.interleaved),
            triage=catalog.triage,
            today=today,
            spread=partial(_search_all, detector),
        )
        hints = find_hints(
            evidence.profiled,
            Observations(tuple(_choose_diagnostics(evidence.observed, catalog))),
            catalog.detection.minimum_points,
            detector,
            partial(_search_all, detector),
        )
    except ValueError as error:
        raise HistoryError(
            f"{paths.history}: {error}; fix or remove the bundle of this trial in {paths.trials},"
            " then run: knickpoint history rebuild"
        ) from error
    if (asked := detector_cache.add_day(days, today, detector.asked)) != days:
        detector_cache.write_file(paths.readings, method, asked)
    return replace(judgement, hints=hints)


def _choose_diagnostics(observed: Observations, catalog: Catalog) -> Iterator[ObservedSeries]:
    """Yield the diagnostics that a suite which measures them has judged as hints."""
    suites = [one for one in catalog.suites.values() if one.hint_diagnostics]
    wanted = {metric for one in suites for metric in one.hint_diagnostics}

    @cache
    def asked(key: SeriesKey) -> set[str]:
        mine = (one for one in suites if find_experiment_of(catalog, one, key))
        return {metric for one in mine for metric in one.hint_diagnostics}

    for one in observed.series:
        if one.key.metric in wanted and not one.key.host:
            experiment = replace(one.key, phase="", operation="", metric="", statistic="")
            if one.key.metric in asked(experiment):
                yield one


def _search_all(
    detector: RememberingDetector,
    search: Callable[[Series], SeriesFinding],
    series: Sequence[Series],
) -> Iterable[SeriesFinding]:
    """Search all series: many on all cores, few in this process, since forking takes time, too."""
    if sum(len(one.points) for one in series) <= SMALL:
        return map(search, series)
    course = Pace(Progress(), [len(one.points) for one in series], "series judged")
    answers = work_through(
        lambda one: detector.noting(partial(search, one)),
        series,
        course.report,
        lambda one: (one, one.key),
    )
    for _, asked in answers:
        detector.asked |= asked
    return tuple(finding for finding, _ in answers)
