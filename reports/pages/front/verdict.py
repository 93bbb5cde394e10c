"""The verdict in one sentence, what the newest night brought, and how far to trust both."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.detection.verdict import Outcome
from analysis.judging.echoes import without_echoes
from analysis.judging.judgement import JudgedSeries, Judgement, find_shortage
from analysis.judging.verdicts import VerdictBasis
from perf.model.results import TrialHead, TrialStatus
from reports.pages.front.incident_rows import IncidentLine
from reports.pages.front.trends import list_outcomes
from reports.wording import links
from reports.wording.attention import is_trouble
from reports.wording.wording import EMPTY_BADGE, OUTCOME_BADGES, Badge, count, sentence

_WORDS = {Outcome.UNDECIDED: "Cannot tell yet", Outcome.INVALID: "Cannot tell"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the series are on the way to a first verdict, by the ones that lack most points."""

    points: int
    needed: int
    nights: int


def choose_badge(judgement: Judgement, *, is_empty: bool) -> Badge:
    """Return the verdict over all in a word; what nobody can tell is said as that."""
    if is_empty:
        return EMPTY_BADGE
    outcome = judgement.outcome
    badge = OUTCOME_BADGES[outcome]
    return Badge(kind=badge.kind, symbol=badge.symbol, word=_WORDS.get(outcome, badge.word))


def say_verdict(judgement: Judgement, top: IncidentLine | None, trials: Iterable[TrialHead]) -> str:
    """Describe in one sentence what is worst, or why nothing is said."""
    if top:
        return top.headline
    if all(map(is_trouble, trials)):
        return "No trial has been completed yet."
    progress = find_progress(judgement)
    if progress and has_no_verdict(judgement):
        return f"Too early to tell: {progress.points:,} of the {progress.needed:,} points needed."
    counts = Counter(one.verdict.outcome for one in without_echoes(judgement.series))
    if counts[Outcome.REGRESSED]:
        return "No new regressions; those that are left are known."
    unknown = counts[Outcome.UNDECIDED] + counts[Outcome.INVALID]
    rest = f" {count(unknown, 'series', 'series')} cannot be judged yet." if unknown else ""
    return f"No regressions found.{rest}"


def has_no_verdict(judgement: Judgement) -> bool:
    """Return whether no series has points enough for a verdict."""
    early = (VerdictBasis.FEW_POINTS, VerdictBasis.NO_TRIAL)
    return all(one.verdict.basis in early for one in judgement.series)


def find_progress(judgement: Judgement) -> Progress | None:
    """Return how many points the shortest series has of those that it needs; None if none is short."""
    shortage = find_shortage(judgement.series, judgement.minimum_points or 0)
    if shortage is None:
        return None
    points = min(len(one.series.points) for one in judgement.series if one.series.points)
    return Progress(points=points, needed=shortage.minimum, nights=shortage.missing)


def count_series(series: Iterable[JudgedSeries]) -> tuple[tuple[str, str, str], ...]:
    """Return how many series came to what, the worst first: a kind, words, and the page of those."""
    return tuple(
        (badge.kind, f"{many:,} {badge.word.lower()}", f"{links.SERIES_PAGE}#find={badge.word.lower()}")
        for outcome, many in list_outcomes(series)
        for badge in [OUTCOME_BADGES[outcome]]
    )


def say_troubles(recent: Sequence[TrialHead], missing: int) -> str:
    """Describe how many trials of a night gave no result; empty where all did."""
    counts = Counter(trial.status for trial in recent)
    reported = (
        (counts[TrialStatus.FAILED], "failed"),
        (counts[TrialStatus.INVALID], "invalid"),
        (missing, "missing"),
    )
    parts = [f"{many:,} {word}" for many, word in reported if many]
    total = sum(many for many, _ in reported)
    of_all = count(len(recent) + missing, "trial")
    return (
        f"{total:,} of {of_all} of the newest night gave no result: {', '.join(parts)}" if parts else ""
    )


def say_false_alarms(judgement: Judgement) -> str:
    """Describe how often noise alone raises an alarm, for somebody new to it."""
    expected = judgement.expected_false_alarms
    if not expected:
        return "No false alarm is to be expected: no series has points enough to raise one."
    if expected < 1:
        return f"Expect one false alarm in about {count(round(1 / expected), 'such night')}."
    return sentence(f"expect about {count(round(expected), 'false alarm')} in each such night")
