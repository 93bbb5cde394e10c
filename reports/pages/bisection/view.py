"""What a bisection comes to in a line, and what the probe of each release measured as a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from analysis.bisecting.bisection import Culprit
from analysis.bisecting.description import answer, is_inconclusive, is_regression
from analysis.bisecting.probing import Probed
from analysis.bisecting.record import BisectionRecord
from analysis.comparing.blocks import measure
from reports.site.svg import Scale
from reports.wording import links
from reports.wording.wording import Badge, Moment, heading, moment, sentence

_HEIGHT, _MARGIN, _SLOT, _LABEL = 180, 12, 64, 22
_LEAST = 0.02
_BOUND = 10.0
"""A bound beyond this factor says that nothing is known: it is drawn to the edge."""
_FOUND = Badge(kind="bad", symbol="✕", word="Regression found")
_GAINED = Badge(kind="good", symbol="✓", word="Improvement found")
_STILL = Badge(kind="calm", symbol="=", word="Nothing changed")
_OPEN = Badge(kind="unsure", symbol="?", word="Not decided")
_UNDER_WAY = Badge(kind="unsure", symbol="…", word="Not over")


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionView:
    """A bisection in a line, and the head of its page."""

    page: str
    title: str
    experiment: str
    badge: Badge
    answer: str
    started: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeChart:
    """All releases of the range with their places, the last probe of each, and the scale of changes.

    The last probe of a release holds all its trials.
    """

    places: dict[str, float]
    probes: Sequence[Probed]
    y: Scale
    width: float
    height: float = _HEIGHT + _LABEL


def view_bisection(record: BisectionRecord) -> BisectionView:
    """Put a bisection into a line."""
    span = f"{record.good.version} to {record.bad.version}"
    return BisectionView(
        page=links.bisection_page(record.id),
        title=f"{heading(measure(record.measure))}: {record.system} {span}",
        experiment=record.experiment,
        badge=_badge(record),
        answer=sentence(answer(record)),
        started=moment(record.started_at),
    )


def _badge(record: BisectionRecord) -> Badge:
    if record.found is None:
        return _UNDER_WAY
    if is_regression(record):
        return _FOUND
    if isinstance(record.found, Culprit):
        return _GAINED
    return _OPEN if is_inconclusive(record) else _STILL


def draw_probes(record: BisectionRecord) -> ProbeChart | None:
    """Place all releases of the range, and those that were probed by how much they differ."""
    names = dict.fromkeys(one.version for one in (record.good, *record.releases, record.bad))
    found = [
        (one.probed.release.version, one.probed, one.probed.effect)
        for one in record.probes
        if one.probed.effect is not None and isfinite(one.probed.effect.relative_change)
    ]
    last = {name: (probed, effect) for name, probed, effect in found if name in names}
    if not last:
        return None
    ends = [
        min(max(value, -_BOUND), _BOUND)
        for _, effect in last.values()
        for value in (effect.relative_change, effect.low, effect.high)
    ]
    return ProbeChart(
        places={name: _SLOT * (place + 0.5) for place, name in enumerate(names)},
        probes=[probed for probed, _ in last.values()],
        y=Scale(min(-_LEAST, *ends), max(_LEAST, *ends), _HEIGHT - _MARGIN, _MARGIN),
        width=_SLOT * len(names),
    )
