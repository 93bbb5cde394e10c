"""What the testbed's page shows: canaries and sentinels, read by the test that judges all series."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from analysis.drift import is_canary
from analysis.incidents import Cause
from analysis.judgement import JudgedSeries, Judgement
from perf.model import SeriesKey, TrialHead, TrialId
from perf.rules import Detection
from reports.view import links
from reports.view.attention import Attention, view_incidents
from reports.view.changes import TYPICAL, view_change_briefly
from reports.view.series_list import ExperimentGroup, SeriesRow, group_series, view_series_row
from reports.view.wording import (
    MOVED_BADGE,
    NOTHING,
    SHORT_BADGE,
    STILL_BADGE,
    count,
    join_caveats,
    percent,
    sentence,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestbedView:
    """All that the testbed's page shows: first what tells most, then all other quantities."""

    __test__ = False
    page: str
    summary: str
    incidents: tuple[Attention, ...]
    groups: tuple[ExperimentGroup, ...]
    others: tuple[ExperimentGroup, ...]
    others_title: str
    caveat: str


def view_testbed(
    judgement: Judgement,
    trials: Mapping[TrialId, TrialHead],
    settings: Detection,
    caveats: Mapping[str, str],
) -> TestbedView:
    """Put what watches the testbed into words."""
    watching = {point.trial for one in judgement.watched for point in one.series.points}
    of_testbed = [one for one in judgement.incidents if one.cause is Cause.TESTBED]
    telling = [one for one in judgement.watched if _tells_most(one.series.key, settings)]
    others = [one for one in judgement.watched if not _tells_most(one.series.key, settings)]
    return TestbedView(
        page=links.TESTBED_PAGE,
        summary=summarize_testbed(judgement),
        incidents=view_incidents(of_testbed, trials),
        groups=group_series(telling, trials, _view_row),
        others=group_series(others, trials, _view_row),
        others_title=f"{count(len(others), 'further series', 'further series')} of the same trials, "
        f"a step in {sum(bool(one.change_points) for one in others):,} of them",
        caveat=join_caveats({trials[trial].testbed.name for trial in watching}, caveats),
    )


def _tells_most(key: SeriesKey, settings: Detection) -> bool:
    if is_canary(key):
        return key.statistic == TYPICAL
    return key.statistic in settings.judged.get(key.metric, ())


def _view_row(judged: JudgedSeries) -> SeriesRow:
    """Put a watching series into a line: it says whether a step was seen, in place of a verdict."""
    newest = judged.change_points[-1] if judged.change_points else None
    return replace(
        view_series_row(judged),
        verdict=MOVED_BADGE if newest else STILL_BADGE if judged.noise else SHORT_BADGE,
        change=percent(newest.relative_change) if newest else NOTHING,
        reason=sentence(view_change_briefly(newest)) if newest else "",
    )


def summarize_testbed(judgement: Judgement) -> str:
    """Say how many series watch the testbed, and in how many of them a step was seen."""
    watched = judgement.watched
    if not watched:
        return "No canary or sentinel has been measured yet: nothing tells the testbed's changes apart."
    moved = sum(bool(one.change_points) for one in watched)
    short = sum(one.noise is None for one in watched)
    return (
        f"{count(len(watched), 'series', 'series')} of canaries and sentinels watch the testbed; "
        f"a step was seen in {moved:,} of them"
        f"{f', and {short:,} have too few points to tell' if short else ''}."
    )
