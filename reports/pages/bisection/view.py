"""What a bisection page shows: the answer, each probe and what it taught, probabilities, the cost."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from analysis.bisecting.bisection import Culprit
from analysis.bisecting.description import (
    answer,
    chances_of,
    cost,
    is_inconclusive,
    is_regression,
    lesson,
    rest_of,
)
from analysis.bisecting.probing import ReleaseStatus
from analysis.bisecting.record import BisectionRecord, ProbeRecord
from analysis.bisecting.words import say_chance
from analysis.comparing.blocks import measure
from analysis.judging.incidents import Incident
from reports.pages.bisection.chart import ProbeChart, draw_probes
from reports.wording import links
from reports.wording.changes import name_incident
from reports.wording.wording import (
    NOTHING,
    Badge,
    Moment,
    NamedValue,
    direction_words,
    heading,
    moment,
    percent,
    quantity,
    sentence,
)

_BAR_PX = 160
_FOUND = Badge(kind="bad", symbol="✕", word="Regression found")
_GAINED = Badge(kind="good", symbol="✓", word="Improvement found")
_STILL = Badge(kind="calm", symbol="=", word="Nothing changed")
_OPEN = Badge(kind="unsure", symbol="?", word="Not decided")
_UNDER_WAY = Badge(kind="unsure", symbol="…", word="Not over")
_END = Badge(kind="calm", symbol="◎", word="The bad end")
_STANDINGS = {
    ReleaseStatus.GOOD: Badge(kind="good", symbol="✓", word="Before the change"),
    ReleaseStatus.BAD: Badge(kind="bad", symbol="✕", word="Has the change"),
    ReleaseStatus.BETWEEN: Badge(kind="unsure", symbol="≈", word="Between"),
    ReleaseStatus.OPPOSITE: Badge(kind="unsure", symbol="↔", word="The other way"),
    ReleaseStatus.UNDECIDED: Badge(kind="unsure", symbol="?", word="Cannot tell"),
    ReleaseStatus.SKIPPED: Badge(kind="unsure", symbol="!", word="Skipped"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRow:
    """One probe; `page` is that of its comparison, empty where there was none."""

    number: int
    release: str
    standing: Badge
    levels: str
    change: str
    interval: str
    trials: str
    asked: str
    taught: str
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChanceRow:
    """How probable one release is; `width` of its bar in pixels."""

    release: str
    text: str
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionView:
    """All that the page of a bisection shows, and its line on the front page."""

    page: str
    name: str
    title: str
    experiment: str
    badge: Badge
    answer: str
    started: Moment
    question: tuple[NamedValue, ...]
    remarks: tuple[str, ...]
    caveat: str
    probes: tuple[ProbeRow, ...]
    chances: tuple[ChanceRow, ...]
    rest: str
    cost: str
    command: str
    chart: ProbeChart | None
    edges: tuple[str, str]
    chart_text: str
    incidents: tuple[tuple[str, str], ...]
    bar_px: int = _BAR_PX


def view_bisection(
    record: BisectionRecord,
    incidents: Iterable[Incident] = (),
    comparisons: Collection[str] | None = None,
) -> BisectionView:
    """Put a bisection into words; its trials are on the pages of its comparisons.

    `incidents` are those whose origin it looked for, `comparisons` those that have a page; None means
    all of them.
    """
    rest, chart = rest_of(record), _draw(record)
    span = f"{record.good.version} to {record.bad.version}"
    return BisectionView(
        page=links.bisection_page(record.id),
        name=record.id,
        title=f"{heading(measure(record.measure))}: {record.system} {span}",
        experiment=record.experiment,
        badge=_badge(record),
        answer=sentence(answer(record)),
        started=moment(record.started_at),
        question=_view_question(record),
        remarks=record.remarks,
        caveat=record.caveat,
        probes=tuple(
            _view_probe(number, probe, record, comparisons)
            for number, probe in enumerate(record.probes, start=1)
        ),
        chances=tuple(
            ChanceRow(
                release=one.release.version,
                text=say_chance(one.probability),
                width=round(one.probability * _BAR_PX),
            )
            for one in chances_of(record)
        ),
        rest=say_chance(rest) if rest is not None else "",
        cost=sentence(cost(record)),
        command=record.command,
        chart=chart,
        edges=(percent(chart.top), percent(chart.bottom)) if chart else ("", ""),
        chart_text=_tell_chart(record) if chart else "",
        incidents=tuple((links.incident_page(one.name), name_incident(one)) for one in incidents),
    )


def _draw(record: BisectionRecord) -> ProbeChart | None:
    """Draw all releases of the range, and of those that were probed by how much they differ."""
    releases = dict.fromkeys(one.version for one in (record.good, *record.releases, record.bad))
    return draw_probes(
        tuple(releases),
        [
            (
                probe.probed.release.version,
                effect.relative_change,
                effect.low,
                effect.high,
                (
                    f"{probe.probed.release.version}: {percent(effect.relative_change)}, "
                    f"{percent(effect.low)} to {percent(effect.high)}"
                ),
            )
            for probe in record.probes
            if (effect := probe.probed.effect) is not None
        ],
    )


def _tell_chart(record: BisectionRecord) -> str:
    what = f"{measure(record.measure)}, {direction_words(record.measure.metric)}"
    return (
        f"Change from {record.good.version} to each probed release, with its interval: {what}. The"
        " table below holds the same numbers"
    )


def _badge(record: BisectionRecord) -> Badge:
    if record.found is None:
        return _UNDER_WAY
    if is_regression(record):
        return _FOUND
    if isinstance(record.found, Culprit):
        return _GAINED
    return _OPEN if is_inconclusive(record) else _STILL


def _view_question(record: BisectionRecord) -> tuple[NamedValue, ...]:
    metric = record.measure.metric
    allowed = f"{record.most_trials:,} trials, {record.most_minutes:g} minutes"
    return (
        NamedValue(name="What", value=measure(record.measure), note=direction_words(metric)),
        NamedValue(name="Experiment", value=record.experiment, note=f"suite {record.suite}"),
        NamedValue(name="Known good end", value=record.good.version),
        NamedValue(name="Known bad end", value=record.bad.version),
        NamedValue(name="Releases", value=", ".join(release.version for release in record.releases)),
        NamedValue(
            name="Budget", value=allowed, note=f"at most {record.trials_per_probe} trials a probe"
        ),
    )


def _view_probe(
    number: int, probe: ProbeRecord, record: BisectionRecord, comparisons: Collection[str] | None
) -> ProbeRow:
    effect, metric = probe.probed.effect, record.measure.metric
    before, after = (
        NOTHING if value is None else quantity(value, metric) for value in (probe.before, probe.after)
    )
    earlier = len(probe.trials) - len(probe.measured)
    has_page = bool(probe.comparison) and (comparisons is None or probe.comparison in comparisons)
    return ProbeRow(
        number=number,
        release=probe.probed.release.version,
        standing=_END if probe.standing is None else _STANDINGS[probe.standing],
        levels=f"{before} → {after}",
        change=percent(effect.relative_change) if effect else NOTHING,
        interval=f"{percent(effect.low)} to {percent(effect.high)}" if effect else NOTHING,
        trials=f"{len(probe.trials)}" + (f", {earlier} from before" if earlier else ""),
        asked=sentence(probe.asked),
        taught=sentence(lesson(probe, record)),
        page=links.comparison_page(probe.comparison) if has_page else "",
    )
