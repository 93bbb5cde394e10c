"""Tonight in sentences: the verdict, what gave no result, the false alarms to expect."""

from collections import Counter
from collections.abc import Iterable, Sequence

from analysis.detection.verdict import WORST_FIRST, Outcome
from analysis.judging.incidents import Incident
from analysis.judging.judgement import JudgedSeries, Judgement
from perf.model.results import TrialHead, TrialStatus
from reports.pages.front.experiments import OUTCOME_WORDS
from reports.wording.attention import is_trouble
from reports.wording.wording import EMPTY_BADGE, OUTCOME_BADGES, Badge, count, sentence

_WORDS = {Outcome.UNDECIDED: "Cannot tell yet", Outcome.INVALID: "Cannot tell"}


def choose_badge(judgement: Judgement, *, is_empty: bool) -> Badge:
    """Give the verdict over all in a word; what nobody can tell is said as that."""
    if is_empty:
        return EMPTY_BADGE
    outcome = judgement.outcome
    badge = OUTCOME_BADGES[outcome]
    return Badge(kind=badge.kind, symbol=badge.symbol, word=_WORDS.get(outcome, badge.word))


def tell_verdict(
    judgement: Judgement, trials: Sequence[TrialHead], recent: Sequence[TrialHead], missing: int
) -> str:
    """Say in one sentence how things stand: what gave no result, what is news, what is known of all.

    Of all `trials`, `recent` are those since the newest night began; `missing` counts the planned ones
    of that night that never came.
    """
    is_fruitless = all(map(is_trouble, trials))
    parts = (
        "no trial has been completed yet" if is_fruitless else "",
        _tell_troubles(trials if is_fruitless else recent, missing),
        _tell_news(judgement.incidents),
        _tell_series(judgement.series),
    )
    return sentence("; ".join(part for part in parts if part))


def _tell_troubles(trials: Iterable[TrialHead], missing: int) -> str:
    counts = Counter(trial.status for trial in trials)
    told = (
        (counts[TrialStatus.FAILED], "failed"),
        (counts[TrialStatus.INVALID], "invalid"),
        (missing, "missing"),
    )
    parts = [f"{many:,} {word}" for many, word in told if many]
    total = sum(many for many, _ in told)
    return f"{count(total, 'trial')} gave no result ({', '.join(parts)})" if parts else ""


def _tell_news(incidents: Iterable[Incident]) -> str:
    news = [incident for incident in incidents if incident.is_news]
    worse = sum(incident.lead.outcome is Outcome.REGRESSED for incident in news)
    better = len(news) - worse
    if not news:
        return "no change is news"
    parts = [
        f"{count(worse, 'regression')} {'needs' if worse == 1 else 'need'} attention" if worse else "",
        f"{count(better, 'improvement')} {'is' if better == 1 else 'are'} news" if better else "",
    ]
    return ", ".join(part for part in parts if part)


def _tell_series(series: Sequence[JudgedSeries]) -> str:
    """Say how many series came to what; of those that nobody can tell, that."""
    if not series:
        return "no series has been measured yet"
    counts = Counter(judged.verdict.outcome for judged in series)
    known = [
        f"{counts[outcome]:,} {OUTCOME_WORDS[outcome]}"
        for outcome in WORST_FIRST
        if counts[outcome] and outcome is not Outcome.UNDECIDED
    ]
    unknown = counts[Outcome.UNDECIDED]
    of_all = f"of {count(len(series), 'series', 'series')}"
    if not known:
        return f"{of_all} none can be told yet"
    told = f"{of_all}, {', '.join(known)}"
    return f"{told}, and {unknown:,} cannot be told yet" if unknown else told


def tell_false_alarms(judgement: Judgement) -> str:
    """Say how often noise alone raises an alarm on a night like this, for somebody new to it."""
    expected = judgement.expected_false_alarms
    if not expected:
        return (
            "False alarms: none is to be expected, since no series that was measured tonight has "
            "points enough to raise one."
        )
    if expected < 1:
        often = f"once in {count(round(1 / expected), 'night')} like this one"
    else:
        times = "once" if round(expected, 1) == 1 else f"{expected:.2g} times"
        often = f"{times} on each night like this one"
    return (
        "False alarms: where nothing changed, chance alone confirms a change "
        f"about {often} ({expected:.2g} to be expected tonight, in "
        f"{count(judgement.asked, 'series', 'series')} with points enough to raise one; what derives "
        "from another series counts with it)."
    )
