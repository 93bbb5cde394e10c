"""What to do about an incident: the steps in their order, each with the commands that do it."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from analysis.detection.detection import ChangeState
from analysis.detection.verdict import Outcome
from analysis.judging.explanations import Explanation
from analysis.judging.incidents import Cause, Incident
from analysis.judging.remeasurement import CONFIG, RemeasurementQuestion, compare_command
from perf.model.results import Named, TrialHead
from perf.model.rules import TriageEntry
from perf.model.sources import DEV
from reports.wording.incidents import triage_command
from reports.wording.reproducing import Contents

_BEFORE, _AFTER = "-before", "-after"
"""Of the names under which contents that no file has any more are put beside the others."""
_DECIDE = "Write down what was decided:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing to do; `commands` are empty where no command does it."""

    text: str
    commands: str = ""


def advise(
    incident: Incident, first: TrialHead, suite: str, contents: Contents, *, is_traced: bool = False
) -> tuple[Step, ...]:
    """Return what to do about an incident, in order.

    `first` is the first trial with it, `suite` one that measures its experiment, `contents` what the
    configuration holds now; `is_traced` says that a bisection has found the release.
    """
    lead = incident.lead
    if incident.triage:
        return (Step(text=_say_decided(incident.triage)),)
    if incident.question:
        return (
            Step(
                text="Make sure: an interleaved comparison on the same hosts answers sooner than "
                "nights.",
                commands=compare_command(incident.question, suite, first.experiment),
            ),
        )
    if incident.cause is Cause.TESTBED:
        return (Step(text="Look at the testbed first: what watches it moved, too."),)
    if lead.state is ChangeState.PROVISIONAL:
        return (Step(text="Wait for the next nights: only more points can decide."),)
    if lead.outcome is Outcome.IMPROVED:
        text = "Nothing has to be done. If it was meant, write that down:"
        return (Step(text=text, commands=triage_command(incident.name, "expected")),)
    back = incident.came_back_after
    return (
        *((Step(text=f"It was fixed and came back: inform {back.owner}."),) if back else ()),
        *_list_causes(incident, first, suite, contents, is_traced=is_traced),
        Step(text=_DECIDE, commands=triage_command(incident.name)),
    )


def _list_causes(
    incident: Incident, first: TrialHead, suite: str, contents: Contents, *, is_traced: bool
) -> Iterator[Step]:
    """Yield what to do about what made a change, before somebody decides."""
    lead = incident.lead
    if incident.cause is Cause.CONFIGURATION:
        for one in incident.explanations:
            yield Step(text=_say_undo(one, lead.series.key.system, contents))
            yield compare_settings(one, incident, first.experiment, suite, contents)
    elif incident.cause is Cause.DATABASE:
        old, new = lead.last_before.release, lead.first_after.release
        if say_question(incident)[1] and not is_traced:
            yield Step(
                text=f"The last release without it is {old.version}, the first with it {new.version}. "
                "Find the one that brought it:",
                commands=shlex.join(("knickpoint", "bisect", "--change", incident.name)),
            )
        else:
            yield Step(
                text=f"Release {new.version} has it, {old.version} does not. See it once more:",
                commands=compare_command(
                    RemeasurementQuestion(changes=(lead,)), suite, first.experiment
                ),
            )
    else:
        yield Step(text="Find an owner.")


def _say_decided(entry: TriageEntry) -> str:
    until = f" until {entry.expires:%Y-%m-%d}" if entry.expires else ""
    return f"Nothing: {entry.state} by {entry.owner}{until}."


def _say_undo(one: Explanation, system: str, contents: Contents) -> str:
    """Describe where the settings can be undone, as far as the configuration has the file."""
    name = one.name.removeprefix(CONFIG)
    own = {each.name: each.sha256 for of, each in contents.systems if of == system}
    if own.get(name) == one.before:
        return f"{_path(system, name)} has the old settings again: the next nights show what that does."
    if name in own:
        return f"Undo the settings in {_path(system, name)}, or accept them."
    return f"Undo the settings of config {name}, or accept them."


def compare_settings(
    one: Explanation, incident: Incident, experiment: str, suite: str, contents: Contents
) -> Step:
    """Return how old and new settings take turns; contents that no file has are to be saved first."""
    system, name = incident.lead.series.key.system, one.name.removeprefix(CONFIG)
    release = incident.lead.first_after.release.version
    sides = [
        (find_name(system, Named(name=name, sha256=content), contents), which, f"{name}{suffix}")
        for content, which, suffix in ((one.before, "old", _BEFORE), (one.after, "new", _AFTER))
    ]
    if not contents.systems:  # then the usual one is that the file is as it was measured last
        sides[1] = name, *sides[1][1:]
    lost = [(which, aside) for found, which, aside in sides if not found]
    before, after = (found or aside for found, _, aside in sides)
    compare = shlex.join(
        (
            *("knickpoint", "compare", *(("--suite", suite) if suite else ())),
            *("--experiment", experiment),
            *("--baseline", f"{release}/{before}", "--candidate", f"{release}/{after}"),
        )
    )
    turns = "let old and new settings take turns on the same hosts:"
    if not lost:
        return Step(text=f"To prove it, {turns}", commands=compare)
    path = _path(system, name)
    saved = " and ".join(f"the {which} settings as {_path(system, aside)}" for which, aside in lost)
    show = [f"git show REVISION:{path} > {_path(system, aside)}" for _, aside in lost]
    return Step(
        text=f"To prove it, save {saved} first (with that name inside), then {turns}",
        commands="\n".join((f"git log --oneline -- {path}", *show, compare)),
    )


def find_name(system: str, wanted: Named, contents: Contents) -> str:
    """Return the name of a config that has a content now, its own name first; empty where none has."""
    named = sorted(
        each.name for of, each in contents.systems if of == system and each.sha256 == wanted.sha256
    )
    return wanted.name if wanted.name in named else next(iter(named), "")


def _path(system: str, config: str) -> str:
    return f"configs/systems/{system}/{config}.yaml"


def say_question(incident: Incident) -> tuple[str, bool]:
    """Describe which releases are in question, and whether a bisection could find one."""
    lead = incident.lead
    old, new = lead.last_before.release, lead.first_after.release
    is_next = old.line == new.line and new.ordinal - old.ordinal == 1
    if old == new:
        return _say_within(incident), False
    if incident.cause is Cause.TESTBED:
        said = (
            f"It lies between {old.version} and {new.version}, but is attributed to the testbed, "
            "so that no release is accused."
        )
        return said, False
    if new.line.endswith(DEV) and old.line == new.line:
        said = (
            f"In question are the commits after {old.version}, up to and including {new.version}: "
            "those between, if there are any, were not measured. A bisection finds the one that "
            "brought it."
        )
        return said, True
    if not is_next:
        said = (
            f"In question are the releases after {old.version}, up to and including {new.version}: "
            "those between were not measured, or not well enough. A bisection finds the one that "
            "brought it."
        )
        return said, True
    if lead.earliest >= lead.latest:
        said = (
            f"{new.version} is the first release with it, and {old.version}, the release before, "
            "does not have it: no other release lies between."
        )
        return said, False
    said = (
        f"{new.version} is the first release with it as far as is known, but the place is "
        "not certain: the chart shades where else it may lie."
    )
    return said, True


def _say_within(incident: Incident) -> str:
    """Describe of a change inside of a release what else is recorded to have changed there."""
    both = f"Both sides are release {incident.lead.first_after.release.version}"
    if incident.cause is Cause.CONFIGURATION:
        return f"{both}; the configuration is the only difference that is recorded."
    if incident.explanations:
        return f'{both}, so no release brought it. "What else may explain it" lists what changed there.'
    return f"{both}, so no release brought it, and nothing else that is recorded changed there."
