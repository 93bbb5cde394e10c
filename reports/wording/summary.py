"""A comparison in one word, one sentence, and whether anybody must act: what is read in ten seconds."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from analysis.comparing.results import (
    Attribution,
    ComparisonFile,
    ComparisonResult,
    ExperimentChange,
    KnobValues,
    MeasureResult,
)
from analysis.detection.verdict import WORST_FIRST, Outcome
from perf.model.results import SIDES, Purpose, SideName, TrialStatus
from reports.wording.markdown import clean
from reports.wording.measures import MeasureRow, length_words, view_measure, weight
from reports.wording.wording import OUTCOME_BADGES, Badge, count, first_sentence, one_sentence

FAILED_BADGE = Badge(kind="bad", symbol="✕", word="Does not run")
OURS_BADGE = Badge(kind="bad", symbol="!", word="Knickpoint error")
NOTHING_BADGE = Badge(kind="calm", symbol="=", word="Nothing differs")
CANNOT_TELL_BADGE = Badge(kind="unsure", symbol="?", word="Cannot tell")
_MOST_NAMED = 2
_MOST_HEADLINE = 250
_ACTION, _NO_ACTION = "action needed", "no action needed"
_OPEN, _UNKNOWN = "not shown to be harmless", "nothing is known yet"
_PARTLY = "part of it is not known"
_AGAIN = "Measure again."
_LOST = "Find out why trials were lost; what is left of them cannot be trusted."
_FIND = "Find the cause, or say why the change is accepted as it is."
_JUDGE = "What was not compared needs a reviewer's judgement."
_MOST_NAME = 80
_MOST_PATH = 120
_MOST_REASON = 400
_MOST_RATIO = 30
"""Beyond it nobody measures so many trials: their number grows with its square."""
_SHORT_SHA = 8
_SHOWN = 2
"""Failed trials that show that a side does not run, where others were not valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The verdict in a word, whether to act, what it rests on, and what to do; plain untrusted text."""

    outcome: Outcome
    badge: Badge
    action: str
    sentence: str
    advice: str = ""


def summarize(content: ComparisonFile) -> Summary:
    """Say what a file came to; the worst comparison speaks for all."""
    if not content.comparisons:
        return _summarize_unmeasured(content)
    worst = max(content.comparisons, key=lambda one: (-WORST_FIRST.index(one.outcome), _weight(one)))
    found = _summarize_result(worst, content)
    more = " ".join(_tell_others(worst, content))
    told = replace(found, outcome=content.outcome, sentence=f"{found.sentence} {more}".rstrip())
    if content.outcome is worst.outcome:
        return told
    # What was measured is good enough; what was not decides.
    if content.problems:
        again = "Measure again what is missing, once this is fixed."
        return replace(told, badge=OURS_BADGE, action=_PARTLY, advice=again)
    said = f"{more} {found.sentence}"
    return replace(told, badge=CANNOT_TELL_BADGE, action=_PARTLY, sentence=said, advice=_JUDGE)


def headline(content: ComparisonFile) -> str:
    """Give verdict and action in one line of plain text; what writes it into markup must escape it."""
    told = summarize(content)
    return clean(f"{told.badge.word}, {told.action}: {told.sentence}", _MOST_HEADLINE)


def summarize_result(result: ComparisonResult) -> Summary:
    """Say what one comparison came to, without the revisions behind it."""
    return _summarize_result(result, None)


def find_change(content: ComparisonFile, result: ComparisonResult) -> ExperimentChange | None:
    """Give the change of configuration that a comparison measured."""
    same = (
        one
        for one in content.changes
        if (one.suite, one.experiment) == (result.suite, result.experiment) and not one.text
    )
    return next(same, None)


def knob_words(knob: KnobValues) -> str:
    """Name a setting with its file and both values; one that is absent is said."""
    if not knob.before and not knob.after:  # a note on further ones
        return clean(knob.path, _MOST_PATH)
    values = (clean(value, _MOST_NAME) or "not set" for value in (knob.before, knob.after))
    return f"{clean(knob.path, _MOST_PATH)} {' → '.join(values)}"


def _name_knob(knob: KnobValues) -> str:
    """Name a setting without its file, as a sentence does."""
    return knob_words(replace(knob, path=knob.path.rpartition(": ")[2]))


def side_words(content: ComparisonFile | None, result: ComparisonResult, side: SideName) -> str:
    """Name a side: base and head of a pull request, else its label."""
    if content is not None and content.head is not None:
        return "base" if side == "baseline" else "head"
    return clean((result.baseline if side == "baseline" else result.candidate).label, _MOST_NAME)


def _summarize_unmeasured(content: ComparisonFile) -> Summary:
    if content.problems:
        return _summarize_problems(content)
    unmeasured = [one for one in content.changes if one.text]
    if unmeasured:
        differ = count(len(unmeasured), "experiment")
        return Summary(
            outcome=content.outcome,
            badge=CANNOT_TELL_BADGE,
            sentence=f"{differ} changed, and could not be compared side by side.",
            action=_OPEN,
            advice=_JUDGE,
        )
    if content.outcome is not Outcome.UNCHANGED:
        return Summary(
            outcome=content.outcome,
            badge=OUTCOME_BADGES[content.outcome],
            sentence="The file holds no comparison, and does not say which revisions were compared.",
            action=_UNKNOWN,
            advice=_AGAIN,
        )
    return Summary(
        outcome=content.outcome,
        badge=NOTHING_BADGE,
        sentence=(
            f"{_name_revisions(content)}No experiment is configured otherwise than before, so nothing"
            " was measured."
        ),
        action=_NO_ACTION,
    )


def _name_revisions(content: ComparisonFile) -> str:
    sides = (("Base", content.base), ("head", content.head))
    told = [f"{name} {one.sha[:_SHORT_SHA]}" for name, one in sides if one]
    return f"{', '.join(told)}: " if told else ""


def _summarize_problems(content: ComparisonFile) -> Summary:
    return Summary(
        outcome=Outcome.INVALID,
        badge=OURS_BADGE,
        sentence=f"Knickpoint could not finish: {one_sentence(first_sentence(content.problems[0]))}"
        " This is no finding about the change.",
        action=_UNKNOWN,
        advice="Measure again once this is fixed.",
    )


def _summarize_result(result: ComparisonResult, content: ComparisonFile | None) -> Summary:
    if result.outcome is Outcome.INVALID:
        return _summarize_invalid(result, content)
    if result.purpose is Purpose.BISECTION:
        # It asks which level a release belongs to, so the rule behind its verdict is another one.
        sides = (side_words(content, result, side) for side in SIDES)
        said = f"{_name(result)}, {' → '.join(sides)}: {one_sentence(clean(result.reason))}"
        return _summary(result, "a step of a bisection", said)
    told = _pick(result)
    row_words = _tell_rows(told)
    cause = _name_cause(result, content)
    if result.outcome is Outcome.UNDECIDED:
        begin = f"It is unknown whether {cause} changes {_name(result)}"
        if is_beyond_measures(result):
            said = clean(f"{begin}: {one_sentence(result.reason)}", _MOST_REASON)
            return _summary(result, _OPEN, said, _LOST)
        return _summary(result, _OPEN, f"{begin}: {row_words}.", tell_what_it_takes(result))
    if result.outcome is Outcome.UNCHANGED:
        return _summary(result, _NO_ACTION, f"{_tell_equivalence(result, content)}: {row_words}.")
    is_worse = result.outcome is Outcome.REGRESSED
    said = f"{_tell_cause(result, content, 'worse' if is_worse else 'better')}: {row_words}."
    return _summary(result, _ACTION, said, _FIND) if is_worse else _summary(result, _NO_ACTION, said)


def is_beyond_measures(result: ComparisonResult) -> bool:
    """Tell whether a comparison is undecided for another reason than its measures: lost trials."""
    trusted = {one.outcome for one in result.measures if one.is_trusted}
    return result.outcome is Outcome.UNDECIDED and bool(trusted) and Outcome.UNDECIDED not in trusted


def _summary(result: ComparisonResult, action: str, said: str, advice: str = "") -> Summary:
    badge = OUTCOME_BADGES[result.outcome]
    return Summary(outcome=result.outcome, badge=badge, action=action, sentence=said, advice=advice)


def _summarize_invalid(result: ComparisonResult, content: ComparisonFile | None) -> Summary:
    name = _name(result)
    ran = {one.side for one in result.trials if one.status is TrialStatus.COMPLETED}
    if not ran and result.trials:
        # The hosts may be at fault, or the release: nothing of it is a finding about the change.
        of = count(len(result.trials), "trial")
        said = f"{name} could not be judged, none of {of} on either side can be used: {_why(result)}"
        has_failed = any(one.status is TrialStatus.FAILED for one in result.trials)
        advice = "Mend that first, then measure again." if has_failed else _AGAIN
        return _summary(result, _UNKNOWN, f"{said} This is no finding about the change.", advice)
    if "candidate" not in ran and (failed := _find_failures(result, "candidate")):
        trials = _count_failures(result, "candidate")
        return Summary(
            outcome=result.outcome,
            badge=FAILED_BADGE,
            action=_ACTION,
            sentence=f"{name} does not run with {_name_cause(result, content)}, {trials}: {failed}",
            advice="Nothing can be compared until it runs.",
        )
    if "baseline" not in ran and (failed := _find_failures(result, "baseline")):
        side, trials = side_words(content, result, "baseline"), _count_failures(result, "baseline")
        said = f"{name} has nothing to be compared with, {trials} of {side}: {failed}"
        return _summary(result, _UNKNOWN, said)
    said = f"{name} could not be judged: {one_sentence(result.reason)}"
    return _summary(result, _UNKNOWN, said, _AGAIN)


def _why(result: ComparisonResult) -> str:
    """Give the reason that most trials have, of those that cannot be used."""
    kinds = Counter(reason.kind for one in result.trials for reason in one.reasons)
    if not kinds:
        return one_sentence(result.reason)
    ((kind, _),) = kinds.most_common(1)
    texts = (one.text for trial in result.trials for one in trial.reasons if one.kind == kind)
    return one_sentence(first_sentence(next(texts)))


def _find_failures(result: ComparisonResult, side: SideName) -> str:
    """Give the reason why a side does not run; nothing if that is not shown."""
    taken = [one for one in result.trials if one.side == side]
    failed = [one for one in taken if one.status is TrialStatus.FAILED]
    if not failed or len(failed) < min(_SHOWN, len(taken)):
        return ""
    why = "; ".join(reason.text for reason in failed[-1].reasons)
    return one_sentence(clean(why or "no reason was recorded", _MOST_REASON))


def _count_failures(result: ComparisonResult, side: SideName) -> str:
    taken = [one for one in result.trials if one.side == side]
    failed = sum(one.status is TrialStatus.FAILED for one in taken)
    return f"{failed} of {count(len(taken), 'trial')} failed"


def _tell_equivalence(result: ComparisonResult, content: ComparisonFile | None) -> str:
    cause = _name_cause(result, content)
    if content is None or content.head is None:
        before = side_words(content, result, "baseline")
        return f"{cause} is shown equivalent to {before} in {_name(result)}"
    return f"{_name(result)} is shown equivalent with {cause}"


def _name_cause(result: ComparisonResult, content: ComparisonFile | None) -> str:
    """Name what differs between the sides: one setting by name, several by their number."""
    if content is None or content.head is None:
        return side_words(content, result, "candidate")
    change = find_change(content, result)
    knobs = change.knobs if change else ()
    if len(knobs) == 1:
        return _name_knob(knobs[0])
    return f"the change of {count_knobs(knobs)} settings" if knobs else "this change"


def _tell_cause(result: ComparisonResult, content: ComparisonFile | None, how: str) -> str:
    begin, cause = f"{_name(result)} gets {how}", _name_cause(result, content)
    if content is None or content.head is None:
        return f"{begin} with {cause} than with {side_words(content, result, 'baseline')}"
    change = find_change(content, result)
    tried = find_attributions(content, result.suite, result.experiment)
    guilty = [one for one in tried if one.comparison.outcome is result.outcome]
    total = count_knobs(change.knobs) if change and change.knobs else str(len(tried))
    if not guilty:
        # Two that would each do it both stay in place when the other one is left out.
        which = f"any of the {len(tried)} tried" if len(tried) > 1 else "the one that was tried"
        which = "any single one" if total == str(len(tried)) else which
        alone = f"; leaving out {which} is not shown to undo it" if tried else ""
        return f"{begin} with {cause}{alone}"
    names = " and ".join(_name_knob(one.knob) for one in guilty[:_MOST_NAMED])
    more = f" and {len(guilty) - _MOST_NAMED} more" if len(guilty) > _MOST_NAMED else ""
    makes = "makes" if len(guilty) == 1 else "make"
    share = f"{len(guilty)} of {total} changed settings"
    return f"{names}{more} ({share}) {makes} {_name(result)} {how}"


def find_attributions(content: ComparisonFile, suite: str, experiment: str) -> tuple[Attribution, ...]:
    """Give what is known of single settings of an experiment."""
    return tuple(
        one
        for one in content.attributions
        if (one.comparison.suite, one.comparison.experiment) == (suite, experiment)
    )


def count_knobs(knobs: Sequence[KnobValues]) -> str:
    """Count settings; where the last entry stands for further ones, say so."""
    listed = sum(bool(one.before or one.after) for one in knobs)
    return str(listed) if listed == len(knobs) else f"more than {listed}"


def _tell_others(worst: ComparisonResult, content: ComparisonFile) -> Sequence[str]:
    """Say what else is in the file, worst first, so that one headline hides nothing."""
    others = [one for one in content.comparisons if one is not worst]
    outcomes = [one.outcome for one in others]
    told = [f"{outcomes.count(each)} {each}" for each in WORST_FIRST if each in outcomes]
    said = [f"Of {len(others)} other comparisons: {', '.join(told)}."] if told else []
    if len(others) == 1:
        said = [f"{_name(others[0])}: {others[0].outcome}."]
    unmeasured = sum(bool(one.text) for one in content.changes)
    if unmeasured:
        said.append(f"{count(unmeasured, 'changed experiment')} could not be compared.")
    if content.problems:
        why = one_sentence(first_sentence(content.problems[0]))
        said.append(f"Knickpoint failed, not this change: {why}")
    return said


def _pick(result: ComparisonResult) -> list[MeasureResult]:
    """Give the trusted measures that made the verdict, the most moved first."""
    trusted = [one for one in result.measures if one.is_trusted]
    chosen = [one for one in trusted if one.outcome is result.outcome]
    return sorted(chosen or trusted, key=weight, reverse=True)


def _tell_rows(measures: Sequence[MeasureResult]) -> str:
    if not measures:
        return "nothing that can be trusted was measured"
    told = ", ".join(_tell_row(view_measure(one)) for one in measures[:_MOST_NAMED])
    more = len(measures) - _MOST_NAMED
    return f"{told} and {more} more" if more > 0 else told


def _tell_row(row: MeasureRow) -> str:
    effect, outcome = row.result.effect, row.result.outcome
    if effect is None:
        return row.title
    if outcome is Outcome.UNCHANGED and effect.lies_within(row.result.relevant_change):
        return f"{row.title} within ±{row.relevant}"
    if outcome in {Outcome.UNDECIDED, Outcome.UNCHANGED}:
        return f"{row.title} {row.change} ({row.interval})"
    # A real change may still be too small to act on: it is told with what would be enough.
    is_small = abs(effect.relative_change) < row.result.relevant_change
    return f"{row.title} {row.change}{f' (relevant from {row.relevant} on)' if is_small else ''}"


def _name(result: ComparisonResult) -> str:
    return clean(result.experiment, _MOST_NAME)


def _weight(result: ComparisonResult) -> float:
    return max((weight(one) for one in result.measures if one.is_trusted), default=0.0)


def tell_what_it_takes(result: ComparisonResult) -> str:
    """Say how many trials would show a relevant change in what is undecided.

    The width of an interval falls with the square root of the number of trials, so
    n · (detectable / relevant)² trials of each side would do.
    """
    undecided = [one for one in result.measures if one.is_trusted and one.outcome is Outcome.UNDECIDED]
    if any(one.detectable is None for one in undecided):
        return "Too few trials to estimate how many would be needed."
    needed, relevant = 0, ""
    for one in undecided:
        if not one.detectable:
            continue
        ratio = one.detectable / one.relevant_change if one.relevant_change > 0 else 0.0
        if not ratio <= _MOST_RATIO:
            return "It would take more trials than can be measured: they scatter too much."
        if ratio <= 1:
            continue
        trials = ceil(min(len(one.baseline), len(one.candidate)) * ratio**2)
        if trials > needed:
            needed, relevant = trials, view_measure(one).relevant
    if not needed:
        return "The change lies too close to the border of what is relevant; more trials may decide it."
    seconds = sum(one.duration_s for one in result.trials) / max(1, len(result.trials))
    took = length_words(2 * needed * seconds)
    trials_words = f"About {needed:,} trials of each side ({took})"
    return f"{trials_words} would show a change of {relevant}, if there is one."
