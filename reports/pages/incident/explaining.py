"""Competing explanations of an incident: what speaks for or against each, how it could be ruled out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from analysis.comparing.results import ComparisonResult, KnobValues
from analysis.detection.detection import ChangeState
from analysis.detection.verdict import Outcome
from analysis.judging.drift import WatchEvidence
from analysis.judging.explanations import Explanation
from analysis.judging.incidents import Cause, Incident
from analysis.judging.remeasurement import ARTIFACT, CONFIG
from analysis.orchestration.setting_words import NO_SETTINGS, ChangedSettings
from perf.config.difference import Knob
from perf.model.facts import METHOD
from perf.model.metrics import PRICE_PER_HOUR, PRICES_FROM
from reports.wording.changes import name_watch
from reports.wording.wording import NOTHING, Badge, count, probability, sentence

_OUT = Badge(kind="calm", symbol="=", word="Ruled out")
_OPEN = Badge(kind="unsure", symbol="?", word="Not ruled out")
_LIKELY = Badge(kind="unsure", symbol="≠", word="Speaks for it")
_UNLIKELY = Badge(kind="calm", symbol="●", word="Unlikely")
_PUT_DOWN = Badge(kind="calm", symbol="◈", word="Attributed to it")
_VERSION = "version:"
_SAME_FILE = "Check out the old file under configs/, {again}, and look whether the old level is back."
_WAYS = {
    "testbed ": _SAME_FILE,
    "topology ": _SAME_FILE,
    ARTIFACT: "Install the old artifact as a local copy of {release}, and {again} interleaved with the "
    "new.",
    "knickpoint": "Install Knickpoint {old} and {again}: the same release must then be as it was.",
    PRICE_PER_HOUR: "No trial shows it: a price moves what is counted per dollar, and nothing else.",
    PRICES_FROM: "No trial shows it: it says since when a price holds, and changes nothing by itself.",
    METHOD: "Let the Knickpoint that measured before, and this one, measure {release} interleaved: "
    "knickpoint compare --experiment {experiment} --baseline {release} --candidate {release} "
    "--baseline-by PROGRAM",
    "kernel": "Boot the old kernel on the host and {again}, or do so on a host that still has it.",
    "version:java": "Install the old Java on the host and {again}.",
    _VERSION: "Install the old version where the load is offered, and {again}.",
}
"""By the beginning of a circumstance's name; the first that fits says how to rule it out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationRow:
    """One explanation other than the release; `before` and `after` where something recorded changed.

    `knobs` are the settings that differ, where it is known what the hashes stand for.
    """

    name: str
    standing: Badge
    text: str
    how: str
    before: str = ""
    after: str = ""
    knobs: tuple[Knob, ...] = ()


def explain_otherwise(
    incident: Incident,
    experiment: str,
    settings: ChangedSettings = NO_SETTINGS,
    comparisons: Sequence[ComparisonResult] = (),
) -> tuple[ExplanationRow, ...]:
    """List what else may have made a change: what changed with it, the testbed, chance.

    `settings` are those that changed, by what they explain. Among the `comparisons` may be some of an
    old and a new method of measuring.
    """
    is_proven = _is_proven(incident)
    return (
        *(
            replace(
                _view_method(tried, one)
                if not is_proven and (tried := _find_tried(comparisons, one, incident))
                else _view_recorded(one, incident, experiment, is_proven=is_proven),
                knobs=settings.get(one, ()),
            )
            for one in incident.explanations
        ),
        _view_testbed(incident, is_proven=is_proven),
        _view_chance(incident, is_proven=is_proven),
    )


def _is_proven(incident: Incident) -> bool:
    """Return whether trials in turns agree with the lead: then both sides had all else in common."""
    return any(reply.agrees for change, reply in incident.replies if change == incident.lead)


def _view_recorded(
    one: Explanation, incident: Incident, experiment: str, *, is_proven: bool
) -> ExplanationRow:
    standing = _OPEN
    text = "It changed between the last trial without the change and the first with it."
    if is_proven:
        standing, text = _OUT, "Both releases took turns under the same of it, and differ all the same."
    elif incident.cause is Cause.CONFIGURATION:
        standing = _PUT_DOWN
        text = f"{text} No release lies between, and nothing else that is recorded changed."
    return ExplanationRow(
        name=one.name.removeprefix(_VERSION),
        before=one.before or NOTHING,
        after=one.after or NOTHING,
        standing=standing,
        text=text,
        how="" if is_proven else _how(one, incident, experiment),
    )


def _find_tried(
    comparisons: Sequence[ComparisonResult], one: Explanation, incident: Incident
) -> ComparisonResult | None:
    """Return the newest comparison of the two methods of measuring of which this change is one."""
    moved = KnobValues(path=one.name, before=one.before, after=one.after)
    system = incident.lead.series.key.system
    tried = (each for each in reversed(comparisons) if each.system == system)
    return next((each for each in tried if moved in each.method), None)


def _view_method(tried: ComparisonResult, one: Explanation) -> ExplanationRow:
    """Put into words what a comparison of both methods says."""
    standings = {
        Outcome.UNCHANGED: _OUT,
        Outcome.REGRESSED: _LIKELY,
        Outcome.IMPROVED: _LIKELY,
    }
    return ExplanationRow(
        name=one.name,
        before=one.before or NOTHING,
        after=one.after or NOTHING,
        standing=standings.get(tried.outcome, _OPEN),
        text=sentence(
            f"both methods measured {tried.candidate.version} interleaved ({tried.id}): {tried.reason}"
        ),
        how="",
    )


def _how(one: Explanation, incident: Incident, experiment: str) -> str:
    """Describe how a recorded circumstance could be ruled out."""
    release = incident.lead.first_after.release.version
    if one.name.startswith(CONFIG):
        return "Let old and new settings take turns on the same hosts: this page has the commands."
    again = f"measure {release} of {experiment} again"
    otherwise = (
        f"Set it back on the host and {again}; a sentinel measured before and after shows it as well."
    )
    ways = (way for name, way in _WAYS.items() if one.name.startswith(name))
    return next(ways, otherwise).format(
        again=again, release=release, experiment=experiment, old=one.before or NOTHING
    )


def _view_testbed(incident: Incident, *, is_proven: bool) -> ExplanationRow:
    sentinels = [one for one in incident.evidence if one.is_of_sentinel and one.is_decisive]
    followed = [one for one in incident.evidence if one.follows]
    if is_proven:
        standing, text = _OUT, "Both releases took turns on the same hosts, and differ all the same."
    elif followed:
        standing, text = _LIKELY, sentence(f"moved with it: {_list(followed)}")
    elif sentinels:
        standing = _OUT
        text = sentence(f"would have moved, and did not: {_list(sentinels)}")
    else:
        standing, text = _OPEN, _say_silence(incident.evidence)
    how = "" if standing is _OUT else _describe_apart(incident)
    return ExplanationRow(
        name="a drift of the testbed that nothing records",
        standing=standing,
        text=text,
        how=how,
    )


def _say_silence(evidence: Sequence[WatchEvidence]) -> str:
    if not evidence:
        return "No canary and no sentinel was measured there."
    still = sum(one.is_decisive for one in evidence)
    watched = count(
        len(evidence), "series of canaries and sentinels", "series of canaries and sentinels"
    )
    return (
        f"Of {watched}, {still:,} did not move that far and the rest cannot tell yet. A canary that "
        "stood still does not show that the hosts did."
    )


def _describe_apart(incident: Incident) -> str:
    lead = incident.lead
    if lead.last_before.release == lead.first_after.release:
        if any(one.is_of_sentinel for one in incident.evidence):
            return "Measure more nights: the sentinel that is measured there cannot tell yet."
        return (
            "Measure a sentinel on the nights of this experiment; once it has points on both sides "
            "of a change it can answer."
        )
    return "Let both releases take turns on the same hosts: this page has the command."


def _view_chance(incident: Incident, *, is_proven: bool) -> ExplanationRow:
    lead = incident.lead
    if is_proven:
        standing, text = _OUT, "Interleaved trials found it once more, independently of the nights."
    elif lead.state is ChangeState.CONFIRMED:
        standing = _UNLIKELY
        text = (
            f"Confirmed, {probability(lead.p_value)}, from {count(lead.points_after, 'point')} after "
            "it."
        )
    else:
        standing = _OPEN
        after = count(lead.points_after, "point")
        text = f"Suspected: {probability(lead.p_value)}, {after} after it."
    again = "More nights, or interleaved trials, would show it once more or not."
    how = again if standing is _OPEN else ""
    return ExplanationRow(name="chance", standing=standing, text=text, how=how)


def _list(evidence: Sequence[WatchEvidence]) -> str:
    names = (name_watch(one.key) for one in evidence)
    return ", ".join(name if name[1:2].isupper() else name[:1].lower() + name[1:] for name in names)
