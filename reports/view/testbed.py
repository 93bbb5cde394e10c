"""What the testbed's page shows: canaries and sentinels, read by the test that judges all series."""

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.incidents import Cause
from analysis.judgement import Judgement
from perf.model import Trial, TrialId
from reports.view import links
from reports.view.attention import Attention, view_incidents
from reports.view.series_list import ExperimentGroup, group_series
from reports.view.wording import count, join_caveats


@dataclass(frozen=True, slots=True, kw_only=True)
class TestbedView:
    """All that the testbed's page shows."""

    __test__ = False
    page: str
    summary: str
    incidents: tuple[Attention, ...]
    groups: tuple[ExperimentGroup, ...]
    caveat: str


def view_testbed(
    judgement: Judgement, trials: Mapping[TrialId, Trial], caveats: Mapping[str, str]
) -> TestbedView:
    """Put what watches the testbed into words."""
    watching = {point.trial for one in judgement.watched for point in one.series.points}
    of_testbed = [one for one in judgement.incidents if one.cause is Cause.TESTBED]
    return TestbedView(
        page=links.TESTBED_PAGE,
        summary=summarize_testbed(judgement),
        incidents=view_incidents(of_testbed, trials),
        groups=group_series(judgement.watched, trials),
        caveat=join_caveats({trials[trial].testbed.name for trial in watching}, caveats),
    )


def summarize_testbed(judgement: Judgement) -> str:
    """Say how many series watch the testbed, and in how many of them a step was seen."""
    watched = judgement.watched
    if not watched:
        return "No canary or sentinel has been measured yet: nothing tells the testbed's changes apart."
    moved = sum(bool(one.change_points) for one in watched)
    return (
        f"{count(len(watched), 'series', 'series')} of canaries and sentinels watch the testbed; "
        f"a step was seen in {moved:,} of them."
    )
