"""A comparison in one word, one line of at most 15 words, and whether to act: read in ten seconds."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
from reports.wording.measures import length_words, name_briefly, view_measure, weight
from reports.wording.wording import OUTCOME_BADGES, Badge, count, first_sentence, one_sentence

FAILED_BADGE = Badge(kind="bad", symbol="✕", word="Does not run")
OURS_BADGE = Badge(kind="bad", symbol="!", word="Knickpoint error")
NOTHING_BADGE = Badge(kind="calm", symbol="=", word="Nothing differs")
CANNOT_TELL_BADGE = Badge(kind="unsure", symbol="?", word="Cannot tell")
MOST_WORDS = 15
"""Of a headline: cause and worst measure, and no more."""
_MOST_NAMED = 2
_MOST_LINES = 5
_MOST_HEADLINE = 250
_ACTION, _NO_ACTION = "action needed", "no action needed"
_OPEN, _UNKNOWN = "not shown to be harmless", "nothing is known yet"
_PARTLY = "part of it is not known"
_AGAIN = "Measure again."
_FIX = "Fix that first, then measure again."
_LOST = "Find out why trials were lost; the remaining ones cannot be trusted."
_FIND = "Find the cause, or accept the change."
_JUDGE = "Review by hand what was not compared."
_NO_FINDING = "This is no finding about the change."
_MOST_NAME = 80
_MOST_PATH = 120
_MOST_REASON = 400
_MOST_RATIO = 30
"""Beyond it nobody measures so many trials: their number grows with its square."""
_SHOWN = 2
"""Failed trials that show that a side does not run, where others were not valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The verdict in a word, whether to act, what it rests on, and what to do; plain untrusted text.

    `sentence` has at most 15 words. `detail` is what a reader needs next: an error in its own words.
    """

    outcome: Outcome
    badge: Badge
    action: str
    sentence: str
    detail: str = ""
    advice: str = ""

    @property
    def needs_attention(self) -> bool:
        """Return whether there is anything to do."""
        return self.action != _NO_ACTION


def summarize(content: ComparisonFile) -> Summary:
    """Return what a file came to; the worst comparison speaks for all."""
    if not content.comparisons:
        return _summarize_unmeasured(content)
    worst = _sort(content)[0]
    found = replace(_summarize_result(worst, content), outcome=content.outcome)
    if content.outcome is worst.outcome:
        return found
    # What was measured is good enough; what was not decides.
    if content.problems:
        again = "Measure again what is missing, once this is fixed."
        return replace(found, badge=OURS_BADGE, action=_PARTLY, advice=again)
    return replace(found, badge=CANNOT_TELL_BADGE, action=_PARTLY, advice=_JUDGE)


def list_headlines(content: ComparisonFile) -> tuple[tuple[Outcome | None, str], ...]:
    """Return one line for each finding, worst first, so that the first one hides nothing.

    A line that is of no single comparison has no outcome. Each has at most 15 words.
    """
    if not content.comparisons:
        summary = summarize(content)
        return ((summary.outcome, summary.sentence),)
    results = _sort(content)
    found: list[tuple[Outcome | None, str]] = [
        (one.outcome, _summarize_result(one, content).sentence) for one in results[:_MOST_LINES]
    ]
    outcomes = [one.outcome for one in results[_MOST_LINES:]]
    if outcomes:
        counts = [f"{outcomes.count(each)} {each}" for each in WORST_FIRST if each in outcomes]
        found.append((None, f"{count(len(outcomes), 'more comparison')}: {', '.join(counts)}."))
    missing: list[tuple[Outcome | None, str]] = []
    if content.problems:
        missing.append((None, "Knickpoint failed on another part; that is not this change."))
    if unmeasured := sum(bool(one.text) for one in content.changes):
        missing.append((None, f"{count(unmeasured, 'changed experiment')} could not be compared."))
    # What is missing comes first where it makes the verdict.
    is_worst = content.outcome is results[0].outcome
    return (*found, *missing) if is_worst else (*missing, *found)


def headline(content: ComparisonFile, badge: Badge | None = None) -> str:
    """Return verdict and action in one line of plain text; whoever makes it markup must escape it."""
    summary = summarize(content)
    lines = " ".join(text for _, text in list_headlines(content))
    return clean(f"{(badge or summary.badge).word}, {summary.action}: {lines}", _MOST_HEADLINE)


def summarize_result(result: ComparisonResult) -> Summary:
    """Return what one comparison came to, without the revisions behind it."""
    return _summarize_result(result, None)


def _sort(content: ComparisonFile) -> list[ComparisonResult]:
    """Return the comparisons, worst first."""
    return sorted(content.comparisons, key=lambda one: (WORST_FIRST.index(one.outcome), -_weight(one)))


def find_change(content: ComparisonFile, result: ComparisonResult) -> ExperimentChange | None:
    """Return the change of configuration that a comparison measured."""
    same = (
        one
        for one in content.changes
        if (one.suite, one.experiment) == (result.suite, result.experiment) and not one.text
    )
    return next(same, None)


def knob_words(knob: KnobValues) -> str:
    """Name a setting with its file and both values; one that is absent is said."""
    return f"{clean(knob.path, _MOST_PATH)} {_value_words(knob)}"


def _value_words(knob: KnobValues) -> str:
    return " → ".join(clean(one, _MOST_NAME) or "not set" for one in (knob.before, knob.after))


def side_words(content: ComparisonFile | None, result: ComparisonResult, side: SideName) -> str:
    """Name a side: base and head of a pull request, else its label."""
    if content is not None and content.head is not None:
        return "base" if side == "baseline" else "head"
    return clean((result.baseline if side == "baseline" else result.candidate).label, _MOST_NAME)


def _summarize_unmeasured(content: ComparisonFile) -> Summary:
    if content.problems:
        return Summary(
            outcome=Outcome.INVALID,
            badge=OURS_BADGE,
            action=_UNKNOWN,
            sentence="Knickpoint failed, not your change: nothing was measured.",
            detail=quote(content.problems[0]),
            advice="Measure again once this is fixed.",
        )
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
            sentence="The file holds no comparison and names no revisions.",
            action=_UNKNOWN,
            advice=_AGAIN,
        )
    return Summary(
        outcome=content.outcome,
        badge=NOTHING_BADGE,
        sentence="No experiment's configuration changed, so nothing was measured.",
        action=_NO_ACTION,
    )


def _summarize_result(result: ComparisonResult, content: ComparisonFile | None) -> Summary:
    if result.outcome is Outcome.INVALID:
        return _summarize_invalid(result, content)
    if result.purpose is Purpose.BISECTION:
        # It asks which level a release belongs to, so the rule behind its verdict is another one.
        sides = (side_words(content, result, side) for side in SIDES)
        said = f"{_name(result)}, {' → '.join(sides)}: {one_sentence(clean(result.reason))}"
        return _summary(result, "a step of a bisection", said)
    name, causes = _name(result), _name_causes(result, content)
    if is_beyond_measures(result):
        said = _fit(f"{name}: cannot tell, too many trials were lost with {one}." for one in causes)
        detail = quote(result.reason)
        return replace(_summary(result, _OPEN, said, _LOST), detail=detail)
    form, action = {
        Outcome.REGRESSED: ("{name}: {rows} with {cause}.", _ACTION),
        Outcome.UNDECIDED: ("{name}: cannot tell whether {cause} changes {rows}.", _OPEN),
        Outcome.IMPROVED: ("{name}: {rows} with {cause}.", _NO_ACTION),
        Outcome.UNCHANGED: ("{name}: unchanged with {cause}: {rows}.", _NO_ACTION),
    }[result.outcome]
    measured = list(_describe_measures(result))
    said = _fit(form.format(name=name, cause=cause, rows=rows) for cause in causes for rows in measured)
    return _summary(result, action, said, _advise(result, content))


def _advise(result: ComparisonResult, content: ComparisonFile | None) -> str:
    if result.outcome is Outcome.UNDECIDED:
        return describe_what_it_takes(result)
    if result.outcome is Outcome.REGRESSED:
        return f"{_describe_unclear(result, content)} {_FIND}".lstrip()
    return ""


def _fit(texts: Iterable[str]) -> str:
    """Return the first text that is short enough, the fullest first; a last one that is not is cut."""
    text = ""
    for text in texts:
        if len(text.split()) <= MOST_WORDS:
            return text
    return f"{' '.join(text.split()[: MOST_WORDS - 1])} …"


def is_beyond_measures(result: ComparisonResult) -> bool:
    """Return whether a comparison is undecided for another reason than its measures: lost trials."""
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
        said = _fit((f"{name} could not be judged: none of {of} can be used.",))
        has_failed = any(one.status is TrialStatus.FAILED for one in result.trials)
        advice = f"{_NO_FINDING} {_FIX if has_failed else _AGAIN}"
        return replace(_summary(result, _UNKNOWN, said, advice), detail=_why(result))
    if "candidate" not in ran and (failed := _find_failures(result, "candidate")):
        trials = _count_failures(result, "candidate")
        causes = _name_causes(result, content, with_base=False)
        return Summary(
            outcome=result.outcome,
            badge=FAILED_BADGE,
            action=_ACTION,
            sentence=_fit(f"{name} does not run with {one}: {trials}." for one in causes),
            detail=failed,
            advice="Nothing can be compared until it runs.",
        )
    if "baseline" not in ran and (failed := _find_failures(result, "baseline")):
        side, trials = side_words(content, result, "baseline"), _count_failures(result, "baseline")
        said = _fit((f"{name} has nothing to be compared with: {trials} of {side}.",))
        return replace(_summary(result, _UNKNOWN, said), detail=failed)
    said = _fit((f"{name} could not be judged.",))
    detail = quote(result.reason)
    return replace(_summary(result, _UNKNOWN, said, _AGAIN), detail=detail)


def _why(result: ComparisonResult) -> str:
    """Return the reason that most trials have, of those that cannot be used."""
    kinds = Counter(reason.kind for one in result.trials for reason in one.reasons)
    if not kinds:
        return quote(result.reason)
    ((kind, _),) = kinds.most_common(1)
    texts = (one.text for trial in result.trials for one in trial.reasons if one.kind == kind)
    return quote(first_sentence(next(texts)))


def _find_failures(result: ComparisonResult, side: SideName) -> str:
    """Return the reason why a side does not run; nothing if that is not shown."""
    taken = [one for one in result.trials if one.side == side]
    failed = [one for one in taken if one.status is TrialStatus.FAILED]
    if not failed or len(failed) < min(_SHOWN, len(taken)):
        return ""
    why = "; ".join(reason.text for reason in failed[-1].reasons)
    return quote(why or "no reason was recorded")


def quote(text: str) -> str:
    """Return an error as one line that ends, cut where it is long."""
    return one_sentence(clean(one_sentence(text), _MOST_REASON))


def _count_failures(result: ComparisonResult, side: SideName) -> str:
    taken = [one for one in result.trials if one.side == side]
    failed = sum(one.status is TrialStatus.FAILED for one in taken)
    return f"{failed} of {count(len(taken), 'trial')} failed"


def _name_causes(
    result: ComparisonResult, content: ComparisonFile | None, *, with_base: bool = True
) -> Sequence[str]:
    """Name what differs between the sides, the fullest name first, then shorter ones."""
    if content is None or content.head is None:
        head = side_words(content, result, "candidate")
        base = side_words(content, result, "baseline")
        return (f"{head} instead of {base}", head) if with_base else (head,)
    change = find_change(content, result)
    knobs = change.knobs if change else ()
    guilty = _find_guilty(result, content)
    named = [one.knob for one in guilty] or (knobs if len(knobs) == 1 else ())
    if not named:
        return (f"{count_knobs(change)} changed settings" if change and knobs else "this change",)
    share = (
        f"{len(named)} of {count_knobs(change)} changed settings" if change and knobs else "this change"
    )
    shorter = "the changed setting" if len(knobs) == len(named) == 1 else share
    if len(named) > _MOST_NAMED:
        return (shorter,)
    keys = [clean(one.key or one.path, _MOST_PATH) for one in named]
    whole = [f"{key} {_value_words(one)}" for key, one in zip(keys, named, strict=True)]
    return " and ".join(whole), " and ".join(keys), shorter


def _find_guilty(result: ComparisonResult, content: ComparisonFile) -> tuple[Attribution, ...]:
    """Return the settings that make by themselves what the comparison found."""
    if result.outcome not in {Outcome.REGRESSED, Outcome.IMPROVED}:
        return ()
    tried = find_attributions(content, result.suite, result.experiment)
    return tuple(one for one in tried if one.comparison.outcome is result.outcome)


def _describe_unclear(result: ComparisonResult, content: ComparisonFile | None) -> str:
    """Say so where settings were tried alone, and none of them is shown to be the cause."""
    if content is None or content.head is None:
        return ""
    tried = find_attributions(content, result.suite, result.experiment)
    if not tried or _find_guilty(result, content):
        return ""
    change = find_change(content, result)
    total = count_knobs(change) if change and change.knobs else len(tried)
    # Two that would each do it both stay in place when the other one is left out.
    which = f"any of the {len(tried)} tried" if len(tried) > 1 else "the one that was tried"
    which = "any single one" if total == len(tried) else which
    return f"Leaving out {which} is not shown to undo it."


def find_attributions(content: ComparisonFile, suite: str, experiment: str) -> tuple[Attribution, ...]:
    """Return what is known of single settings of an experiment."""
    return tuple(
        one
        for one in content.attributions
        if (one.comparison.suite, one.comparison.experiment) == (suite, experiment)
    )


def count_knobs(change: ExperimentChange) -> int:
    """Return how many settings differ, listed or not."""
    return len(change.knobs) + change.unlisted


def _pick(result: ComparisonResult) -> list[MeasureResult]:
    """Return the trusted measures that made the verdict, the most moved first."""
    trusted = [one for one in result.measures if one.is_trusted]
    chosen = [one for one in trusted if one.outcome is result.outcome]
    return sorted(chosen or trusted, key=weight, reverse=True)


def _describe_measures(result: ComparisonResult) -> Iterator[str]:
    """Yield what moved, the fullest text first, then shorter ones; all of them name the worst."""
    measures = _pick(result)
    if not measures:
        yield "nothing that can be trusted was measured"
        return
    names = name_briefly([one for one in result.measures if one.is_trusted])
    rows = [_describe_measure(one, clean(names[one.measure], _MOST_NAME)) for one in measures]
    for shown in range(min(_MOST_NAMED, len(rows)), 0, -1):
        more = f" and {len(rows) - shown} more" if len(rows) > shown else ""
        yield f"{', '.join(rows[:shown])}{more}"
    yield rows[0]


def _describe_measure(result: MeasureResult, name: str) -> str:
    row, effect = view_measure(result), result.effect
    if effect is None:
        return name
    if result.outcome is Outcome.UNCHANGED and effect.lies_within(result.relevant_change):
        return f"{name} within ±{row.relevant}"
    if result.outcome in {Outcome.UNDECIDED, Outcome.UNCHANGED}:
        return f"{name} ({row.interval})"
    # A real change may still be too small to act on: it is reported with what would be enough.
    is_small = abs(effect.relative_change) < result.relevant_change
    return f"{name} {row.change}{f' (below the relevant {row.relevant})' if is_small else ''}"


def _name(result: ComparisonResult) -> str:
    return clean(result.experiment, _MOST_NAME)


def _weight(result: ComparisonResult) -> float:
    return max((weight(one) for one in result.measures if one.is_trusted), default=0.0)


def describe_what_it_takes(result: ComparisonResult) -> str:
    """Describe how many trials would show a relevant change in what is undecided.

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
