"""Which release brought an incident: what a bisection found, or what is in question and how to ask."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.bisecting.bisection import Culprit
from analysis.bisecting.description import answer, chances_of, rest_of
from analysis.bisecting.record import BisectionRecord
from analysis.bisecting.words import say_chance
from analysis.detection.detection import ChangePoint
from analysis.judging.incidents import Cause, Incident
from reports.wording import links
from reports.wording.wording import Badge, sentence

_FOUND = Badge(kind="calm", symbol="◎", word="Found")
_NOT_FOUND = Badge(kind="unsure", symbol="?", word="Not found")
_UNDER_WAY = Badge(kind="unsure", symbol="…", word="Not finished")
_MOST_CHANCES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginRow:
    """What a bisection found; `page` is its own, `chances` are those of the most probable releases."""

    name: str
    state: Badge
    text: str
    page: str
    chances: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CulpritView:
    """What is known of the release that brought a change; `command` finds it, if that makes sense."""

    text: str
    origins: tuple[OriginRow, ...]
    command: str


def view_culprit(incident: Incident, bisections: Sequence[BisectionRecord]) -> CulpritView:
    """Say which release it was, or which are in question; `bisections` looked for its origin."""
    is_found = any(isinstance(one.found, Culprit) for one in bisections)
    text, is_askable = _say_question(incident)
    command = f"knickpoint bisect --change {shlex.quote(incident.name)}"
    return CulpritView(
        text="" if is_found else text,
        origins=tuple(map(_view_origin, bisections)),
        command=command if is_askable and not is_found else "",
    )


def _say_question(incident: Incident) -> tuple[str, bool]:
    """Say which releases are in question, and whether a bisection could find one."""
    lead = incident.lead
    old, new = lead.last_before.release, lead.first_after.release
    if old == new:
        return (
            (
                f"No release brought it: it began within {new.version}, between two measurements of "
                "the same release. Look at what else changed there."
            ),
            False,
        )
    if incident.cause is Cause.TESTBED:
        return (
            (
                f"It lies between {old.version} and {new.version}, but is put down to the testbed, "
                "so that no release is accused."
            ),
            False,
        )
    is_next = old.line == new.line and new.ordinal - old.ordinal == 1
    if is_next and _is_certain(lead):
        return (
            (
                f"{new.version} is the first release with it, and {old.version}, the release before, "
                "does not have it: no other release lies between."
            ),
            False,
        )
    if is_next:
        return (
            (
                f"{new.version} is the first release with it as far as can be told, but the place is "
                "not certain: the chart shades where else it may lie."
            ),
            True,
        )
    return (
        (
            f"In question are the releases after {old.version}, up to and including {new.version}: "
            "those between were not measured, or not well enough. This finds the one that brought "
            "it:"
        ),
        True,
    )


def _is_certain(change: ChangePoint) -> bool:
    return change.earliest >= change.latest


def _view_origin(record: BisectionRecord) -> OriginRow:
    found = record.found
    state = _UNDER_WAY if found is None else _FOUND if isinstance(found, Culprit) else _NOT_FOUND
    ranked = sorted(chances_of(record), key=lambda one: -one.probability)[:_MOST_CHANCES]
    rest = rest_of(record)
    return OriginRow(
        name=f"{record.good.version} → {record.bad.version}",
        state=state,
        text=sentence(answer(record)),
        page=links.bisection_page(record.id),
        chances=(
            *((one.release.version, say_chance(one.probability)) for one in ranked),
            *((("no single release", say_chance(rest)),) if rest is not None else ()),
        ),
    )
