"""Read a history and judge it."""

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from functools import partial
from pathlib import Path

from analysis.detection.series import Series
from analysis.detection.step_detector import StepDetector
from analysis.judging.findings import SeriesFinding
from analysis.judging.judgement import Judgement, judge
from analysis.judging.remeasurement import PURPOSES, read_answers
from analysis.orchestration import readings
from analysis.orchestration.comparing import read_results
from analysis.orchestration.readings import RememberingDetector
from analysis.orchestration.workers import SMALL, Pace, work_forked
from perf import config
from perf.history.store import open_history
from perf.local.places import Places
from perf.local.progress import Progress
from perf.model.errors import HistoryError
from perf.model.results import Purpose


def judge_history(
    places: Places, configs_root: Path, today: date, progress: Progress | None = None
) -> Judgement:
    """Judge the history of a data directory by the rules of a configuration directory.

    `today` decides which triage entries have expired. Canaries and sentinels watch the testbed. What
    finished comparisons of two releases came to counts, if their trials are in the history.

    Raises:
        ConfigError: the configuration is wrong.
        HistoryError: the history cannot be read, or holds values that no trial can have measured.
        InputError: the result of a comparison is not one.

    """
    catalog = config.load_catalog(configs_root)
    with open_history(places.history, read_only=True) as history, history.snapshot():
        observations = history.observed_series()
        sentinels = history.observations(Purpose.SENTINEL)
        in_turns = history.observations(*PURPOSES)
        circumstances = history.circumstances()
    steps = StepDetector(settings=catalog.detection)
    method = readings.describe_method(steps)
    days = readings.read_file(places.readings, method)
    known = {digest: one for of_day in days.values() for digest, one in of_day.items()}
    detector = RememberingDetector(steps, known)
    try:
        judgement = judge(
            observations,
            catalog.detection,
            detector,
            watched=sentinels,
            circumstances=circumstances,
            answers=read_answers(read_results(places), in_turns),
            triage=catalog.triage,
            today=today,
            spread=partial(_search_all, progress or Progress(), detector),
        )
    except ValueError as error:
        raise HistoryError(
            f"{places.history}: {error}; mend or remove the bundle of this trial in {places.trials},"
            " then run: knickpoint history rebuild"
        ) from error
    if (asked := readings.add_day(days, today, detector.asked)) != days:
        readings.write_file(places.readings, method, asked)
    return judgement


def _search_all(
    progress: Progress,
    detector: RememberingDetector,
    search: Callable[[Series], SeriesFinding],
    series: Sequence[Series],
) -> Iterable[SeriesFinding]:
    """Search all series: many on all cores, few in this process, since forking takes time, too."""
    if sum(len(one.points) for one in series) <= SMALL:
        return map(search, series)
    course = Pace(progress, [len(one.points) for one in series], "series judged")
    answers = work_forked(
        lambda one: detector.noting(partial(search, one)),
        series,
        course.tell,
        lambda one: (one, one.key),
    )
    for _, asked in answers:
        detector.asked |= asked
    return tuple(finding for finding, _ in answers)
