"""A judgement in words: verdicts, what is known of a change, all of it for a terminal. Pure.

Here, and nowhere else in `analysis`, a verdict becomes a sentence; `reports` says the same ones.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from analysis.detection import words
from analysis.detection.alerts import Alert
from analysis.detection.detection import ChangePoint, Drift, SpreadChange
from analysis.detection.effects import relative_change
from analysis.detection.series import Series
from analysis.detection.verdict import WORST_FIRST, Outcome
from analysis.judging.drift import WatchEvidence, WatchState, is_canary
from analysis.judging.echoes import without_echoes
from analysis.judging.explanations import Explanation, PriceMove
from analysis.judging.findings import may_be_older
from analysis.judging.hints import Hint
from analysis.judging.incidents import Incident
from analysis.judging.judgement import JudgedSeries, Judgement, Shortage, find_shortage
from analysis.judging.remeasurement import Reply, measure_of
from analysis.judging.triage import Obstacle
from analysis.judging.verdicts import (
    ChangeRemark,
    FalseDiscovery,
    Known,
    Verdict,
    VerdictBasis,
    WithinRelease,
    find_reported,
    list_confirmable,
)
from perf.model.night_names import night_name, night_span
from perf.model.results import SeriesKey
from perf.model.rules import TriageEntry
from perf.model.series_names import series_words
from perf.model.stacks import short_name

SettingsInWords: TypeAlias = Mapping[Explanation, str]
"""The settings behind what changed with both values, where they are known."""
NO_WORDS: SettingsInWords = {}
_INDENT = " " * 12
_MOST_LISTED = 3
"""Of explanations and pieces of evidence in a sentence; the incident holds them all."""
_WITHIN = {
    WithinRelease.NOTHING_CHANGED: "no release lies between, and nothing that is recorded of the trials"
    " changed there",
    WithinRelease.NOTHING_RECORDED: "no release lies between, so look at the host and the configuration"
    " first",
}
_MOVED = {
    WatchState.FOLLOWED: "moved too",
    WatchState.MOVED_LESS: "moved, but not far enough to explain the change",
    WatchState.MOVED_AGAINST: "moved the other way",
}
_HEADLINES = {
    Outcome.REGRESSED: "Regressed",
    Outcome.INVALID: "Cannot tell",
    Outcome.UNDECIDED: "Cannot tell yet",
    Outcome.IMPROVED: "Improved",
    Outcome.UNCHANGED: "Unchanged",
}

ECHOES = ("repeats another figure", "repeat other figures")
"""What one series that says nothing of its own does, and what several do."""


def describe(judgement: Judgement, settings: SettingsInWords = NO_WORDS) -> Iterator[str]:
    """Describe what was found: series worst first, incidents news first, the testbed, then the verdict.

    `settings` name those that changed, by what they explain, as far as they are known.
    """
    ranked = sorted(judgement.series, key=lambda judged: WORST_FIRST.index(judged.verdict.outcome))
    for judged in ranked:
        yield f"{judged.verdict.outcome:<11} {words.series(judged.series.key)}"
        yield f"{_INDENT}{say_reason(judged, settings)}"
        yield from (f"{_INDENT}{line}" for line in _describe_series(judged))
    for incident in judgement.incidents:
        yield from _describe_incident(incident, settings)
    for hint in judgement.hints:
        yield f"hint        {describe_hint(hint)}"
    for judged in judgement.watched:
        for change in judged.change_points:
            yield f"testbed     {words.series(judged.series.key)}"
            yield f"{_INDENT}{_describe_change(change)}"
    yield say_judgement(judgement)


def describe_hint(hint: Hint) -> str:
    """Return which cost grew, where, by how much and since when."""
    key, unit = hint.key, words.unit(hint.change)
    what = short_name(key.statistic) if hint.is_code else key.metric
    size = f"{words.value(hint.before)} → {words.value(hint.after)} {unit}"
    where = f"{key.system} {key.line}, {key.workload_name}, {key.phase}"
    return f"{where}: {what} {size} since {words.beginning(hint.change)}"


def say_judgement(judgement: Judgement) -> str:
    """Say how many series came to what, how many are too short, and what chance may make of them."""
    if not judgement.series:
        is_read = judgement.minimum_points is not None
        nothing = "Nothing to judge: the history holds no measured series yet"
        return nothing if is_read else "nothing has been measured yet"
    own = without_echoes(judgement.series) or judgement.series
    counts = Counter(one.verdict.outcome for one in own)
    of_all = words.counted(len(own), "series", "series")
    shortage = find_shortage(own, judgement.minimum_points or 0)
    echoes = echo_words(len(judgement.series) - len(own))
    said = ", ".join(f"{counts[outcome]} {outcome}" for outcome in WORST_FIRST if counts[outcome])
    said += f" ({echoes})" if echoes else ""
    parts = [f"{_HEADLINES[judgement.outcome]}: of {of_all}, {said}", _say_shortage(shortage)]
    if judgement.asked:
        series = f"the {judgement.asked} series that could confirm a change"
        parts.append(f"expected false alarms: {judgement.expected_false_alarms:.1g} in {series}")
    return "; ".join(filter(None, parts))


def echo_words(many: int) -> str:
    """Describe how many series are left out of a count; empty if none is."""
    if not many:
        return ""
    return f"{many:,} more only {ECHOES[0] if many == 1 else ECHOES[1]}"


def _say_shortage(found: Shortage | None) -> str:
    """Say how many series have too few points, and about how many nights cure it; empty if none has."""
    if found is None:
        return ""
    have = "1 has" if found.series == 1 else f"{found.series} have"
    return (
        f"{have} fewer than {found.minimum} points"
        f" ({words.counted(found.nights, 'night', 'nights')} so far, about {found.missing} more needed)"
    )


def say_reason(judged: JudgedSeries, settings: SettingsInWords = NO_WORDS) -> str:
    """Describe in one sentence what a verdict rests on, what else is known, and what could be seen."""
    reported = find_reported(judged.detectable)
    seen = (
        f"detectable: ≥ {words.percent(reported.relative_change)} after {reported.nights} nights"
        if reported
        else ""
    )
    notes = list_notes(judged.verdict, settings=settings)
    return "; ".join(filter(None, (say_basis(judged), *notes, seen)))


def say_basis(judged: JudgedSeries) -> str:
    """Describe what a verdict rests on."""
    verdict, series = judged.verdict, judged.series
    if verdict.basis is VerdictBasis.NEWEST_LOST and (newest := verdict.newest):
        return (
            f"{verdict.so_far} up to its last valid point, but the newest trial,"
            f" {newest.trial} of {newest.release.version}, is {newest.status}"
        )
    if verdict.change:
        return _say_of_change(verdict, verdict.change)
    metric, points = series.key.metric, len(series.points)
    unjudged = {
        VerdictBasis.NO_RULE: f"no relevant change is configured for metric {metric}, so nothing can be"
        " judged",
        VerdictBasis.NO_TRIAL: "no valid trial: every trial of this series is invalid or failed",
        VerdictBasis.FEW_POINTS: f"{points} of at least {verdict.needed} points: too few to judge",
        VerdictBasis.WATCH: f"{name_watch(series.key)}: watches the testbed and is not judged",
    }
    said = unjudged.get(verdict.basis)
    return said or f"no change found; {_say_equivalence(verdict, series)}"


def _say_of_change(verdict: Verdict, change: ChangePoint) -> str:
    moved = words.movement(change)
    if verdict.basis is VerdictBasis.SUSPICION:
        return f"{moved} since {words.beginning(change)} shows, but {_say_doubt(verdict)}"
    found = f"{moved} {words.place(change)}"
    if verdict.basis is VerdictBasis.TESTBED:
        return f"{found} is the testbed's, not the database's: {_say_testbed(verdict.remark)}"
    shown = _say_equivalence(verdict, change.series)
    if verdict.basis is VerdictBasis.SET_ASIDE:
        return f"{found}: {_say_set_aside(verdict.remark)}; since then, no change found; {shown}"
    sizes = f"{words.points(verdict.sides[0])} before, {verdict.sides[1]} after"
    found = f"{found} ({words.p_value(change.p_value)}, {sizes}): significant"
    least = words.percent(verdict.relevant_change)
    if verdict.is_relevant:
        return f"{found}, and relevant: {least} matter"
    return f"{found}, but smaller than the {least} that matter; {shown}"


def _say_equivalence(verdict: Verdict, series: Series) -> str:
    found = verdict.equivalence
    if found is None:
        return "too few points to compare the newest with those before them"
    newest = f"{words.points(found.after)} ({words.releases((found.first, found.last), series)})"
    effect = found.effect
    # Nothing falls by more than all of it, however wide the interval is.
    low, high = (words.signed_percent(bound) for bound in (max(effect.low, -1.0), effect.high))
    return (
        f"the newest {newest} differ from the {found.before} before by {low} to {high}"
        f" ({words.percent(effect.confidence)} interval),"
        f" {'within' if found.is_shown else 'which is not within'}"
        f" ±{words.percent(verdict.relevant_change)}"
    )


def _say_doubt(verdict: Verdict) -> str:
    """Describe why a change that shows is not believed yet."""
    if verdict.remark.waits:
        return "; ".join(map(say_known, verdict.remark.waits))
    before, after = verdict.sides
    for points, where in ((after, "after"), (before, "before")):
        if points < verdict.needed:
            return f"only {words.points(points)} {where} it; {verdict.needed} needed"
    return "is not confirmed yet: the evidence is too weak"


def _say_set_aside(remark: ChangeRemark) -> str:
    if isinstance(entry := remark.set_aside, TriageEntry):
        said = f"{entry.state} by {entry.owner}: {entry.note.strip()}"
        return f"{said} (triage entry {entry.name})"
    return "all that lies after it was imported in bulk, which is no news"


def _say_testbed(remark: ChangeRemark) -> str:
    followed = [say_evidence(one) for one in remark.testbed if isinstance(one, WatchEvidence)]
    known = [say_known(one) for one in remark.testbed if not isinstance(one, WatchEvidence)]
    return "; ".join(filter(None, (*known, _some(followed))))


def list_notes(
    verdict: Verdict,
    name_watch: Callable[[SeriesKey], str] | None = None,
    settings: SettingsInWords = NO_WORDS,
) -> tuple[str, ...]:
    """Describe what else is known of what a verdict rests on, one thing each.

    `name_watch` names canaries and sentinels where they have other names than on a terminal;
    `settings` are those that changed, by what they explain.
    """
    if verdict.basis not in {VerdictBasis.CHANGE, VerdictBasis.SUSPICION}:
        return ()
    notes = tuple(say_known(one, name_watch, settings) for one in verdict.remark.notes)
    if verdict.basis is VerdictBasis.SUSPICION and verdict.remark.testbed:
        return (f"it looks like the testbed's: {_say_testbed(verdict.remark)}", *notes)
    return notes


def say_known(
    one: Known,
    name_watch: Callable[[SeriesKey], str] | None = None,
    settings: SettingsInWords = NO_WORDS,
) -> str:
    """Say one thing that is known of a change."""
    match one:
        case PriceMove():
            said = say_price(one)
        case Reply():
            said = say_reply(one)
        case WatchEvidence():
            said = say_evidence(one, name_watch(one.key) if name_watch else "")
        case FalseDiscovery(p_value=p_value, believed=believed):
            of = words.counted(one.series, "series", "series")
            said = (
                f"among tonight's {of} chance alone may make it: there, its p-value becomes"
                f" {p_value:.2g}, and at most {believed:g} is believed"
            )
        case TriageEntry():
            said = f"it came back: fixed in {one.fixed_in} by triage entry {one.name} of {one.owner}"
        case WithinRelease():
            said = _WITHIN[one]
        case explanations:
            named = [_say_explanation(each, settings) for each in explanations]
            said = f"what else changed there: {_some(named)}"
    return said


def _say_explanation(one: Explanation, settings: SettingsInWords) -> str:
    return f"{one.name} ({settings.get(one) or f'{one.before} → {one.after}'})"


def _some(texts: Sequence[str]) -> str:
    """List the first few of many."""
    rest = len(texts) - _MOST_LISTED
    return ", ".join((*texts[:_MOST_LISTED], *((f"{rest} more",) if rest > 0 else ())))


def say_price(move: PriceMove) -> str:
    """Describe how a price moved, and what that makes."""
    if move.is_event:
        verb = "rose" if move.makes < 0 else "fell"
        how = f"the price per hour {verb} from ${move.before} to ${move.after}"
    else:
        how = (
            f"an hour cost ${move.before} before it and ${move.after} after it, in the order of"
            " releases, not of time"
        )
    return f"{how}, which makes {words.signed_percent(move.makes)} by itself"


def say_reply(reply: Reply) -> str:
    """Describe what came of the trials in turns."""
    answer = reply.answer
    meaning = {
        True: "which agrees",
        False: "which rules out a difference of its size",
        None: "which cannot tell",
    }[reply.agrees]
    trials = f"{answer.baseline_trials} and {answer.candidate_trials} interleaved trials"
    when = f"{answer.finished_at:%Y-%m-%d}"
    if answer.effect is None:
        return f"side by side, {trials} ({when}) gave nothing that can be compared"
    low, high = (words.signed_percent(end) for end in (answer.effect.low, answer.effect.high))
    middle = words.signed_percent(answer.effect.relative_change)
    return f"side by side, {trials} ({when}) differ by {middle} ({low} to {high}), {meaning}"


def say_evidence(one: WatchEvidence, name: str = "") -> str:
    """Describe what a canary or a sentinel shows, by its name on a terminal if `name` is empty."""
    name = name or name_watch(one.key)
    if one.state is WatchState.ALTERNATED:
        return say_silence(one)
    if (change := one.change) is None:
        return f"{name}: {say_silence(one)}"
    nights = night_span(words.night(change.last_before), words.night(change.first_after), "and")
    return (
        f"{name} {_MOVED[one.state]}: {words.movement(change)} between the nights {nights}"
        f" ({words.p_value(change.p_value)}, {change.state.word})"
    )


def say_silence(one: WatchEvidence) -> str:
    """Say, without a name, why no movement of a canary or sentinel is seen."""
    sides = f"{words.points(one.before)} before, {one.after} after"
    shown = "" if one.visible is None else f", which show ≥ {words.percent(one.visible)}"
    return {
        WatchState.ALTERNATED: "what lies before and after was measured on the same nights by turns, so"
        " no change of the testbed lies between",
        WatchState.SILENT: f"not measured since (last: {night_name(one.last_night) or 'never'})",
        WatchState.SHORT: f"too few points to tell ({sides})",
        WatchState.UNSEEN: f"was not seen to move, but cannot tell yet ({sides}{shown})",
    }.get(one.state, f"did not move ({sides}{shown})")


def name_watch(key: SeriesKey) -> str:
    """Name a canary or a sentinel."""
    if is_canary(key):
        when = key.phase.removeprefix("canary-")
        return f"{key.metric}{f' on {key.host}' if key.host else ''}, {when} each trial"
    return f"sentinel {key.system} {key.line}, {key.workload_name}: {series_words(key)}"


def say_obstacle(entry: TriageEntry, found: Obstacle) -> str:
    """Describe why an entry covers nothing."""
    if found.name:
        listed = ", ".join(found.known) or "none"
        return f"no series has {found.name} {getattr(entry, found.name)}; the history has {listed}"
    if not found.fitting:
        return "no series has all that its patterns ask for"
    if found.release:
        return f"{found.release} was measured in none of the {found.fitting} series that fit"
    return f"no {entry.sign} there in any of the {found.fitting} series that fit"


def _describe_series(judged: JudgedSeries) -> Iterator[str]:
    for change in judged.change_points:
        yield _describe_change(change)
    for alert in judged.alerts:
        if alert.withdrawn_at is not None:
            yield _describe_retracted(judged.series, alert, alert.withdrawn_at)
    for drift in judged.drifts:
        yield _describe_drift(judged.series, drift)
    for spread in judged.spreads:
        yield _describe_spread(judged.series, spread)
    if (noise := judged.newest_noise) is not None and judged.detectable:
        seen = ", ".join(
            f"≥ {words.percent(one.relative_change)} after {one.nights} nights"
            for one in list_confirmable(judged.detectable)
        )
        yield f"noise floor {words.percent(noise.floor)}{f'; detectable: {seen}' if seen else ''}"


def _describe_change(change: ChangePoint) -> str:
    return "  ".join(
        (
            f"{change.outcome} {words.place(change)}:",
            f"{words.value(change.before)} → {words.value(change.after)} {words.unit(change)}",
            words.signed_percent(change.relative_change),
            words.p_value(change.p_value),
            f"{words.points(change.points_after)} after",
            change.state.word,
        )
    )


def _describe_retracted(series: Series, alert: Alert, withdrawn_at: int) -> str:
    nights = series.points.nights_in_order
    when = "by" if may_be_older(series, alert.reported_at) else "in"
    reported, gone = night_name(nights[alert.reported_at]), night_name(nights[withdrawn_at])
    return (
        f"retracted: {words.signed_percent(alert.relative_change)} at"
        f" {_name(series, alert.index)}, {alert.state.word} {when} night {reported},"
        f" no longer seen since night {gone}"
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
    return f"{point.release.version} (night {words.name_night(point)})"


def _describe_incident(incident: Incident, settings: SettingsInWords) -> Iterator[str]:
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
    for change in incident.fixed_by:
        moved = words.signed_percent(change.relative_change)
        yield f"{_INDENT}resolved {words.place(change)}: {moved}"
    if incident.price_move is not None:
        yield f"{_INDENT}{say_price(incident.price_move)}"
    for evidence in incident.evidence:
        yield f"{_INDENT}{say_evidence(evidence)}"
    for other in incident.explanations:
        said = settings.get(other) or f"{other.before} → {other.after}"
        yield f"{_INDENT}may explain it as well: {other.name}: {said}"
    if incident.triage is not None:
        entry = incident.triage
        yield f"{_INDENT}triage: {entry.state} by {entry.owner}: {entry.note} ({entry.name})"
    if incident.came_back_after is not None:
        yield f"{_INDENT}came back after its fix ({incident.came_back_after.name})"
    for change, reply in incident.replies:
        yield f"{_INDENT}{words.signed_percent(change.relative_change)} by nights; {say_reply(reply)}"
    if (asked := incident.question) is not None:
        yield (
            f"{_INDENT}to be sure, measure both interleaved: knickpoint compare --baseline"
            f" {asked.baseline.version} --candidate {asked.candidate.version}"
            f" --measure {measure_of(asked.key)} (and --suite, --experiment)"
        )
