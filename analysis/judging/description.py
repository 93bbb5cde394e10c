"""A judgement as lines of text, for a terminal and a log. Pure."""

from collections.abc import Iterator

from analysis.detection import words
from analysis.detection.alerts import Alert
from analysis.detection.detection import ChangePoint, Drift, SpreadChange
from analysis.detection.effects import relative_change
from analysis.detection.series import Series, nights_of
from analysis.detection.verdict import WORST_FIRST
from analysis.judging.findings import may_be_older
from analysis.judging.incidents import Incident
from analysis.judging.judgement import JudgedSeries, Judgement
from analysis.judging.remeasurement import measure_of, say
from analysis.judging.standing import find_told

_INDENT = " " * 12


def describe(judgement: Judgement) -> Iterator[str]:
    """Say what was found: series worst first, incidents news first, the testbed, then the verdict."""
    ranked = sorted(judgement.series, key=lambda judged: WORST_FIRST.index(judged.verdict.outcome))
    for judged in ranked:
        yield f"{judged.verdict.outcome:<11} {words.series(judged.series.key)}"
        yield f"{_INDENT}{say_reason(judged)}"
        yield from (f"{_INDENT}{line}" for line in _describe_series(judged))
    for incident in judgement.incidents:
        yield from _describe_incident(incident)
    for judged in judgement.watched:
        for change in judged.change_points:
            yield f"testbed     {words.series(judged.series.key)}"
            yield f"{_INDENT}{_describe_change(change)}"
    yield judgement.verdict.reason


def say_reason(judged: JudgedSeries) -> str:
    """Say in one sentence what a verdict rests on, what else is known, and what could be seen."""
    verdict, told = judged.verdict, find_told(judged.detectable)
    seen = (
        f"with this noise, {told.nights} nights see ≥ {words.percent(told.relative_change)}"
        if told
        else ""
    )
    return "; ".join(filter(None, (verdict.reason, *verdict.notes, seen)))


def _describe_series(judged: JudgedSeries) -> Iterator[str]:
    for change in judged.change_points:
        yield _describe_change(change)
    for alert in judged.alerts:
        if alert.withdrawn_at is not None:
            yield _describe_withdrawn(judged.series, alert, alert.withdrawn_at)
    for drift in judged.drifts:
        yield _describe_drift(judged.series, drift)
    for spread in judged.spreads:
        yield _describe_spread(judged.series, spread)
    if (noise := judged.newest_noise) is not None and judged.detectable:
        seen = (
            f"{words.counted(one.nights, 'night sees', 'nights see')}"
            f" ≥ {words.percent(one.relative_change)}"
            for one in judged.detectable
        )
        yield f"noise floor {words.percent(noise.floor)}: {', '.join(seen)}"


def _describe_change(change: ChangePoint) -> str:
    return "  ".join(
        (
            f"{change.outcome} {words.place(change)}:",
            f"{words.value(change.before)} → {words.value(change.after)} {words.unit(change)}",
            words.signed_percent(change.relative_change),
            words.p_value(change.p_value),
            f"{words.points(change.points_after)} after",
            change.state,
        )
    )


def _describe_withdrawn(series: Series, alert: Alert, withdrawn_at: int) -> str:
    nights = nights_of(series)
    when = "by" if may_be_older(series, alert.told_at) else "in"
    return (
        f"withdrawn: {words.signed_percent(alert.relative_change)} at"
        f" {_name(series, alert.index)}, {alert.state} {when} night {nights[alert.told_at]},"
        f" no longer seen since night {nights[withdrawn_at]}"
    )


def _describe_drift(series: Series, drift: Drift) -> str:
    return (
        f"drift: {words.signed_percent(relative_change(drift.before, drift.after))} slowly from"
        f" {_name(series, drift.first)} to {_name(series, drift.last)}"
    )


def _describe_spread(series: Series, spread: SpreadChange) -> str:
    return (
        f"scatter: standard deviation {words.value(spread.before)} → {words.value(spread.after)} since"
        f" {_name(series, spread.index)}  {words.p_value(spread.p_value)}"
    )


def _name(series: Series, index: int) -> str:
    point = series.points[index]
    return f"{point.release.version} (night {words.night(point)})"


def _describe_incident(incident: Incident) -> Iterator[str]:
    lead = incident.lead
    of_series = len({change.series.key for change in incident.changes})
    news = "news" if incident.is_news else "known"
    yield (
        f"incident    {incident.name}  {news}: {words.movement(lead)} {words.place(lead)}, in"
        f" {words.counted(of_series, 'series', 'series')}; cause: {incident.cause}"
    )
    for change in incident.changes:
        moved = words.signed_percent(change.relative_change)
        yield f"{_INDENT}{moved}  {words.series(change.series.key)}"
    for change in incident.mended_by:
        moved = words.signed_percent(change.relative_change)
        yield f"{_INDENT}mended {words.place(change)}: {moved}"
    if incident.price_move is not None:
        yield f"{_INDENT}{incident.price_move.text}"
    for evidence in incident.evidence:
        yield f"{_INDENT}{evidence.text}"
    for other in incident.explanations:
        yield f"{_INDENT}may explain it as well: {other.name}: {other.before} → {other.after}"
    if incident.triage is not None:
        entry = incident.triage
        yield f"{_INDENT}triage: {entry.state} by {entry.owner}: {entry.note} ({entry.name})"
    if incident.came_back_after is not None:
        yield f"{_INDENT}came back after its fix ({incident.came_back_after.name})"
    for change, reply in incident.replies:
        yield f"{_INDENT}{words.signed_percent(change.relative_change)} by nights; {say(reply)}"
    if (asked := incident.question) is not None:
        yield (
            f"{_INDENT}to be sure, measure both in turns: knickpoint compare --baseline"
            f" {asked.baseline.version} --candidate {asked.candidate.version}"
            f" --measure {measure_of(asked.key)} (and --suite, --experiment)"
        )
