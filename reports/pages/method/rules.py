"""How results are judged, in words: the part of the method's page that rests on detection.yaml."""

from analysis.detection.detection import ChangeState
from analysis.detection.verdict import Outcome
from analysis.judging.incidents import Cause
from perf.model.rules import Detection
from reports.pages.method.section import Section, Term
from reports.wording.wording import (
    CAUSE_BADGES,
    OUTCOME_BADGES,
    STATE_BADGES,
    WITHDRAWN_BADGE,
    metric_name,
    metric_words,
    number,
    plain_percent,
)

_OUTCOMES = {
    Outcome.REGRESSED: "The newest level is worse: significant, confirmed and relevant.",
    Outcome.IMPROVED: "The newest level is better: significant, confirmed and relevant.",
    Outcome.UNCHANGED: "Shown to be equal within the relevant change: the 99 % interval of the "
    "difference lies inside of it. That no change was found is not enough.",
    Outcome.UNDECIDED: "Cannot tell: too few points or too much scatter to say any of the others.",
    Outcome.INVALID: "There is no valid trial, or no rule to judge it by.",
}
_CAUSES = {
    Cause.DATABASE: "Between two releases, and either a sentinel stood still while nothing else that "
    "is recorded changed, or both releases took turns on the same hosts and differ.",
    Cause.CONFIGURATION: "The settings of the system changed there, inside of one release, and nothing "
    "else that is recorded did.",
    Cause.TESTBED: "What watches the testbed moved too, or its price did, or trials in turns rule out "
    "what the nights confirm, or somebody said so.",
    Cause.UNKNOWN: "None of these can be shown.",
}


def judging_sections(rules: Detection) -> tuple[Section, ...]:
    """Give what is to be known of verdicts, in the order in which a reader meets it."""
    return (
        _noise(),
        _smallest(),
        _changes(rules),
        _states(rules),
        _movements(),
        _verdicts(),
        _relevance(rules),
        _order(),
        _freshness(),
        _false_alarms(rules),
        _incidents(),
        _watches(),
        _turns(rules),
        _bisection(),
    )


def _noise() -> Section:
    return Section(
        id="noise-floor",
        title="Noise floor",
        text=(
            (
                "How far one night scatters around its level although nothing changed: the standard "
                "deviation of a single point, as a share of the level."
            ),
            (
                "It is read from differences of neighbouring points, so that changes of the level do "
                "not enter; that nights depend on each other is estimated with it and allowed for."
            ),
            (
                "Where the points of the newest level (six or more) scatter further than the series "
                "as a whole, what is told is their own scatter."
            ),
        ),
    )


def _smallest() -> Section:
    return Section(
        id="smallest-visible",
        title="Smallest visible change",
        text=(
            (
                "The smallest change that so many nights after it would confirm four times in five, "
                "with the noise of this very series (statisticians call it the minimum detectable "
                "effect). More nights see smaller changes."
            ),
            (
                "A verdict says nothing about a change below it. Any smaller one may be there; now and "
                "then one is found, less often than four times in five."
            ),
        ),
    )


def _changes(rules: Detection) -> Section:
    return Section(
        id="change-points",
        title="Change points",
        text=(
            (
                "A place between two neighbouring points of a series where its level changed. "
                "Candidates come from two searches: Apache Otava's e-divisive, and moving sums of "
                "eight widths. Each that is told needs two votes:"
            ),
        ),
        points=(
            (
                "The vote of the size: how many standard errors apart the two levels are, allowing "
                "for nights that depend on each other. Its p-value must be at most "
                f"{rules.max_p_value:g}."
            ),
            (
                "The vote of the ranks (Mann and Whitney): which points are higher, not by how "
                f"much, so that no single wild night decides. At most {rules.max_rank_p_value:g}, "
                "unless there are too few points for that and the size leaves no doubt."
            ),
            (
                f"Up to {rules.window_points} points on each side count; a series of fewer than "
                f"{rules.minimum_points} points is not searched."
            ),
        ),
        after=(
            (
                "p: how often noise alone would look at least as much like a change as this does. It "
                "is not the probability that the change is false."
            ),
            "Where the change may lie as well is shaded on the chart and said beside it.",
            (
                "The interval beside a change is a 99 % interval. Each of both levels counts with its "
                "own scatter, at the least with the noise of the whole series. It takes the place of "
                "the change for known; and since the place was chosen where the difference is large, "
                "a change that could barely be seen is told on the large side."
            ),
        ),
    )


def _states(rules: Detection) -> Section:
    few = rules.confirming_points
    return Section(
        id="states",
        title="Provisional, confirmed, withdrawn",
        terms=(
            Term(
                id="provisional",
                badge=STATE_BADGES[ChangeState.PROVISIONAL],
                text=f"It first shows: p at most {rules.provisional_p_value:g} by size and "
                f"{rules.provisional_rank_p_value:g} by ranks. A single wild night looks like this "
                "as well, which is what the question mark is for.",
            ),
            Term(
                id="confirmed",
                badge=STATE_BADGES[ChangeState.CONFIRMED],
                text=f"At least {few} points lie on both sides, both votes are there, and it stands "
                "against all the other series that were asked in the same night; or both releases "
                "took turns on the same hosts and agree with it.",
            ),
            Term(
                id="withdrawn",
                badge=WITHDRAWN_BADGE,
                text="It was told, and later points do not bear it out. It stays visible.",
            ),
        ),
    )


def _movements() -> Section:
    return Section(
        id="drift",
        title="Drifts and changes of scatter",
        text=(
            (
                "A drift is a slow movement without a place: no release and no night made it. A "
                "change of scatter moves no level. Both are told and neither makes a verdict. A "
                "drift that has just begun looks like a step until it has gone on for a while."
            ),
        ),
    )


def _verdicts() -> Section:
    return Section(
        id="verdicts",
        title="The words of verdicts",
        text=("A verdict speaks of the newest level of a series.",),
        terms=tuple(
            Term(id=f"outcome-{outcome.value}", badge=OUTCOME_BADGES[outcome], text=text)
            for outcome, text in _OUTCOMES.items()
        ),
    )


def _relevance(rules: Detection) -> Section:
    return Section(
        id="relevant",
        title="Significant is not relevant",
        text=(
            (
                "Significant: larger than this series' own noise explains. Relevant: large enough to "
                "act on. These are two questions, and both are answered. Relevant is, as configured:"
            ),
        ),
        terms=tuple(
            Term(
                id=f"relevant-{metric}",
                name=metric_name(metric),
                text=f"a change by {plain_percent(share)} or more; judged are "
                + ", ".join(metric_words(metric, one) for one in rules.judged.get(metric, ()))
                if rules.judged.get(metric)
                else f"a change by {plain_percent(share)} or more; no series of it is judged",
            )
            for metric, share in rules.relevant_change.items()
        ),
    )


def _order() -> Section:
    return Section(
        id="order",
        title="What comes first",
        text=(
            (
                "Where changes are listed, the first is not the one with most percent: percent would "
                "put the noisiest series on top. It is the one that stands out most from its own "
                "noise and is large at the same time: factor × effect."
            ),
            (
                "The factor says how many times the smallest visible change of its series the change "
                "is; the effect is the relative change. A change in a series whose noise is not "
                "known comes after all of these."
            ),
        ),
    )


def _freshness() -> Section:
    return Section(
        id="freshness",
        title="Fresh, stale",
        text=(
            (
                "An experiment is stale once its newest result is older than its own rhythm "
                "explains: how long a pause may be follows from the pauses before it, and is never "
                "less than a night and a half. A front page that nobody has made anew says so itself."
            ),
        ),
    )


def _false_alarms(rules: Detection) -> Section:
    rate = rules.false_alarms_per_1000_series_nights
    return Section(
        id="false-alarms",
        title="Expected false alarms",
        text=(
            (
                "Among many series, noise alone now and then looks like a confirmed change. The "
                f"expected number is the number of series asked in a night × {number(rate)} per "
                "1,000. That rate was measured on made-up series of many kinds of noise in which "
                "nothing happened, and is that of the worst kind with independent nights; on your "
                "hosts it may differ."
            ),
            "So a night with that many confirmed changes and not more says little by itself.",
        ),
    )


def _incidents() -> Section:
    return Section(
        id="incidents",
        title="Incidents and their causes",
        text=(
            (
                "Changes that can have one place and so one cause are told as one incident. Its lead "
                "is the change that tells most. It is put down to:"
            ),
        ),
        terms=tuple(
            Term(id=f"cause-{cause.value}", badge=CAUSE_BADGES[cause], text=text)
            for cause, text in _CAUSES.items()
        ),
        after=(
            (
                "Competing explanations are what is recorded of the trials and was different, nearly "
                "always, on the two sides of the change: files, kernel, Java, drivers, settings of "
                "hosts. What is not recorded cannot be among them."
            ),
        ),
    )


def _watches() -> Section:
    return Section(
        id="watches",
        title="Canaries and sentinels",
        text=(
            (
                "A canary is a fixed piece of work that is timed on each host before and after a "
                "trial. A sentinel is an old release with a config that nobody touches, measured "
                "again and again. Neither knows the release under test, so what moves them at the "
                "same place may well have moved the database's series."
            ),
            (
                "A sentinel is moved by all that moves a database: where it can answer, it is "
                "believed. A canary can only accuse: that it stood still does not show that the "
                "hosts did."
            ),
        ),
    )


def _turns(rules: Detection) -> Section:
    false = plain_percent(rules.comparison.false_regression_share)
    return Section(
        id="side-by-side",
        title="Side by side",
        text=(
            (
                "Two sides take turns on the same hosts in blocks of four trials (A B B A, or B A A "
                "B), each on a fresh deployment. What grows slower meanwhile harms both alike. A "
                "difference between two nights is a hint, one between turns is a verdict."
            ),
            (
                "The change is the median of all differences between the sides inside of their "
                "blocks; its interval holds although it is looked at after each block. Two equal "
                f"sides are called regressed in at most {false} of comparisons, over all trusted "
                "measures together."
            ),
        ),
        terms=(
            Term(name="Agrees", text="The interval excludes zero, in the direction of the change."),
            Term(
                name="Rules it out",
                text="The whole interval is smaller than the change, and leaves no relevant one in its "
                "direction.",
            ),
            Term(name="Cannot tell", text="Neither: more trials are needed."),
        ),
    )


def _bisection() -> Section:
    return Section(
        id="bisection",
        title="Bisection",
        text=(
            (
                "Which release brought a change? Each probe measures one release in turns with the "
                "known good end, never with its neighbour, since errors would add up. The known bad "
                "end is probed first: if the ends do not differ, nobody is named."
            ),
            (
                "A probability is given for each release, beginning with one in ten that there is no "
                "single change. The next probe is the one that parts them best. A release that "
                "contradicts the others is probed again before anything is built on it. A culprit is "
                "named only with a probability of at least one half (0.8 beside releases that are "
                "not decided); else the answer is a range, and what it would cost to finish."
            ),
        ),
    )
