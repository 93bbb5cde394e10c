"""A heat map in words: by what each measure of two variants differs, and how sure that is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import groupby
from urllib.parse import urlencode

from markupsafe import Markup, escape

from analysis.judging.description import echo_words
from perf.model.metrics import METRICS
from perf.model.results import SeriesKey
from perf.model.rules import Detection
from reports.pages.releases.medians import MedianDifference, MedianStatus, VariantValues, compare
from reports.wording.links import series_page
from reports.wording.measures import change_words, ends_words
from reports.wording.wording import (
    NOTHING,
    STATISTICS,
    Badge,
    count,
    direction_words,
    heading,
    metric_words,
    moment,
    phase_words,
    quantity,
    rank,
)

STANDING_BADGES = {
    MedianStatus.WORSE: Badge(kind="bad", symbol="✕", word="Worse"),
    MedianStatus.BETTER: Badge(kind="good", symbol="✓", word="Better"),
    MedianStatus.CHANGED: Badge(kind="unsure", symbol="↯", word="Changed inside"),
    MedianStatus.SMALL: Badge(kind="calm", symbol="≈", word="Small"),
    MedianStatus.SAME: Badge(kind="calm", symbol="=", word="Same"),
    MedianStatus.UNKNOWN: Badge(kind="unsure", symbol="?", word="Cannot tell"),
}
MISSING_BADGE = Badge(kind="missing", symbol=NOTHING, word="Not measured")
ALIEN_BADGE = Badge(kind="missing", symbol="≠", word="Not comparable")
ECHO_BADGE = Badge(kind="calm", symbol="↔", word="Repeats another")
LEGEND = (
    (STANDING_BADGES[MedianStatus.WORSE], "beyond noise, and large enough to matter"),
    (STANDING_BADGES[MedianStatus.BETTER], "the same, in the good direction"),
    (
        STANDING_BADGES[MedianStatus.CHANGED],
        "small or the same by its newest level, but one side changed from one night to another",
    ),
    (STANDING_BADGES[MedianStatus.SMALL], "beyond noise, but too small to matter"),
    (STANDING_BADGES[MedianStatus.SAME], "the whole interval is too small to matter"),
    (STANDING_BADGES[MedianStatus.UNKNOWN], "too few nights, or too much noise, to say any of these"),
    (ECHO_BADGE, "it cannot differ from another figure, or from the load that was offered"),
    (MISSING_BADGE, "on one of both sides"),
    (ALIEN_BADGE, "measured on both sides, but not alike: another workload, topology or testbed"),
)
_escape = lru_cache(100)(escape)
"""Badges are few, and cells are many."""
_STRONG = (1.0, 2.0, 4.0)
"""Times the change that matters: from each of them on, the colour is a shade stronger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatCell:
    """A difference, None where a side is missing; `strength` is 0 to 3, `sides` what was measured.

    `notes` say which side changed within itself.
    """

    badge: Badge
    sides: Sequence[VariantValues]
    difference: MedianDifference | None = None
    strength: int = 0
    notes: tuple[str, ...] = ()

    @property
    def is_echo(self) -> bool:
        """Whether the cell repeats another one."""
        return all(side.is_echo for side in self.sides)

    @property
    def zoom(self) -> str:
        """Return what the page of its series shows these two by: from which trial to which."""
        first, last = self.sides[0], self.sides[-1]
        if first.judged is not last.judged:
            first = last
        return f"{first.ends[0]}..{last.ends[1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatRow:
    """One operation in one phase; a cell is None where nobody measures that metric."""

    title: str
    cells: tuple[HeatCell | None, ...]

    @property
    def has_moved(self) -> bool:
        """Whether any of its cells has a colour, or a change inside."""
        return any(cell and (cell.strength or cell.notes) for cell in self.cells)

    def write_cells(self, columns: Iterable[tuple[str, str]], root: str) -> Markup:
        """Write the cells as HTML; `root` leads to the root of the site.

        A template takes longer for each, and a night moves all cells of every release a little.
        """
        titles = (escape(title) for title, _ in columns)
        cells = zip(self.cells, titles, strict=True)
        return Markup("".join(_write_cell(one, title, root) for one, title in cells))  # noqa: S704  escaped there


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatGroup:
    """What was measured by one workload on one topology; `note` says what belongs to its identity."""

    title: str
    note: str
    workload: str
    system: str
    rows: tuple[HeatRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatCount:
    """How many cells say the same; `largest` is the furthest, of what is worse or better."""

    badge: Badge
    cells: int
    largest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """Differences between two variants by workload, operation and metric.

    A column is a metric with its statistic, and which direction of it is good news. Cells that repeat
    others are not in `counts`, but in `echoes`.
    """

    columns: tuple[tuple[str, str], ...]
    groups: tuple[HeatGroup, ...]
    counts: tuple[HeatCount, ...]
    echoes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatPair:
    """Two variants to compare; `title` names them, and `system` theirs, in a map of several pairs."""

    before: Mapping[SeriesKey, VariantValues]
    after: Mapping[SeriesKey, VariantValues]
    title: str = ""
    system: str = ""


def _write_cell(cell: HeatCell | None, column: Markup, root: str) -> str:
    """Write a cell as HTML; what others have named is escaped, the rest are numbers and our words."""
    if cell is None:
        return f'<td class="heat empty" data-column="{column}"></td>\n'
    key, found, badge = cell.sides[-1].judged.series.key, cell.difference, cell.badge
    word = str(_escape(badge.word))
    data, said, ends = "", word, ""
    if found:
        before, after = (side.condensed.median for side in cell.sides)
        data = f' data-before="{before}" data-after="{after}" data-change="{found.change}"'
        ends = f'<span class="unseen">, {word}</span>'
        said = change_words(found.change)
        if effect := found.effect:
            data += f' data-low="{effect.low}" data-high="{effect.high}"'
            ends += f'<span class="note">{ends_words(effect.low, effect.high)}</span>'
    if cell.notes:
        data += f' data-note="{escape("; ".join(cell.notes))}"'
        ends += "".join(f'<span class="note inside">{escape(note)}</span>' for note in cell.notes)
    measured = " → ".join(
        f"{quantity(side.condensed.median, key.metric)} ({count(side.condensed.values, 'trial')})"
        for side in cell.sides
    )
    return (
        f'<td class="heat {badge.kind} s{cell.strength}" data-column="{column}" '
        f'data-verdict="{word}"{data}>'
        f'<a href="{root}{series_page(key)}#{urlencode({"zoom": cell.zoom})}" '
        f'title="{escape(measured)}"><span class="said"><span aria-hidden="true">'
        f"{_escape(badge.symbol)}</span> {said}</span>{ends}</a></td>\n"
    )


def view_heatmap(pairs: Sequence[HeatPair], settings: Detection) -> HeatMap:
    """Put the differences of pairs of variants into one map."""
    columns = sorted(
        {(key.metric, key.statistic) for pair in pairs for key in (*pair.before, *pair.after)},
        key=column_order,
    )
    groups: list[HeatGroup] = []
    cells: list[tuple[SeriesKey, HeatCell]] = []
    for pair in pairs:
        rows: dict[tuple[str, ...], dict[tuple[str, str], HeatCell]] = {}
        keys: dict[tuple[str, ...], SeriesKey] = {}
        shared = {loosely(key) for key in pair.before} & {loosely(key) for key in pair.after}
        for key in {**pair.after, **pair.before}:
            cell = _compare(key, pair, settings, is_on_both=loosely(key) in shared)
            rows.setdefault(place_of(key), {})[key.metric, key.statistic] = cell
            keys[place_of(key)] = key
            cells.append((key, cell))
        for _, places in groupby(sorted(rows), key=lambda place: group_of(keys[place])):
            own = list(places)
            workload, note = group_words(keys[own[0]])
            groups.append(
                HeatGroup(
                    title=f"{pair.title}: {workload}" if pair.title else workload,
                    note=note,
                    workload=workload,
                    system=pair.system,
                    rows=tuple(
                        HeatRow(
                            title=row_words(keys[place]),
                            cells=tuple(rows[place].get(column) for column in columns),
                        )
                        for place in own
                    ),
                )
            )
    return HeatMap(
        columns=tuple((heading(metric_words(*it)), direction_words(it[0])) for it in columns),
        groups=tuple(groups),
        counts=_count([one for one in cells if not one[1].is_echo]),
        echoes=echo_words(sum(cell.is_echo for _, cell in cells)),
    )


def leave_out_calm(heat: HeatMap, most: int) -> tuple[HeatMap, int]:
    """Leave out the rows where nothing moved, of more than `most`; give how many these are as well."""
    rows = [row for group in heat.groups for row in group.rows]
    if len(rows) <= most:
        return heat, 0
    kept = [
        replace(group, rows=tuple(row for row in group.rows if row.has_moved)) for group in heat.groups
    ]
    left_out = len(rows) - sum(len(group.rows) for group in kept)
    return replace(heat, groups=tuple(group for group in kept if group.rows)), left_out


def column_order(column: tuple[str, str]) -> tuple[object, ...]:
    """Order metrics as they are defined, and their statistics as tables show them."""
    metric, statistic = column
    return rank(metric, tuple(METRICS)), metric, rank(statistic, STATISTICS), statistic


def place_of(key: SeriesKey) -> tuple[str, ...]:
    """Return the row of a measure: first what makes its group, then what makes the row in it."""
    return *group_of(key), key.phase, key.operation, key.host


def group_of(key: SeriesKey) -> tuple[str, str, str, str]:
    """Return what the rows of a group have in common."""
    return key.workload, key.topology, key.testbed_class, key.engine


def group_words(key: SeriesKey) -> tuple[str, str]:
    """Name a group, and say what belongs to its identity."""
    workload, topology, testbed_class, engine = group_of(key)
    return (
        key.workload_name,
        f"{workload}, topology {topology}, testbed class {testbed_class}, {engine} engine",
    )


def row_words(key: SeriesKey) -> str:
    """Name a row of a group."""
    where = f", {key.host}" if key.host else ""
    return f"{heading(key.operation)} {phase_words(key.phase)}{where}"


@cache
def loosely(key: SeriesKey) -> SeriesKey:
    """Return the measure by what a reader calls it, whatever was changed about how it is measured."""
    name = key.workload_name
    return replace(key, workload=name, topology="", testbed_class="", engine="")


def strength(change: float, relevant: float) -> int:
    """Return how strong the colour of a change is, from 0 to 3."""
    return sum(abs(change) >= relevant * times for times in _STRONG) if relevant else 1


def _compare(key: SeriesKey, pair: HeatPair, settings: Detection, *, is_on_both: bool) -> HeatCell:
    before, after = pair.before.get(key), pair.after.get(key)
    if not before or not after:
        sides = [side for side in (before, after) if side]
        return HeatCell(
            badge=ALIEN_BADGE if is_on_both else MISSING_BADGE,
            sides=sides,
            notes=_list_notes(sides, settings),
        )
    difference = compare(before, after, settings)
    is_reported = difference.standing in (MedianStatus.WORSE, MedianStatus.BETTER)
    relevant = settings.relevant_change.get(key.metric, 0.0)
    is_echo = before.is_echo and after.is_echo
    return HeatCell(
        badge=ECHO_BADGE if is_echo else STANDING_BADGES[difference.standing],
        sides=(before, after),
        difference=difference,
        strength=strength(difference.change, relevant) if is_reported and not is_echo else 0,
        notes=_list_notes((before, after), settings),
    )


def _list_notes(sides: Iterable[VariantValues], settings: Detection) -> tuple[str, ...]:
    return tuple(note for side in sides if (note := change_note(side, settings)))


def change_note(side: VariantValues, settings: Detection) -> str:
    """Say by how much a series changed within a variant, and since when; empty if it did not matter."""
    if not side.change or not side.has_changed(settings):
        return ""
    first = side.change.first_after
    change = change_words(side.change.relative_change)
    return f"changed inside {first.release.version}: {change} since {moment(first.started_at).day}"


def _count(cells: Sequence[tuple[SeriesKey, HeatCell]]) -> tuple[HeatCount, ...]:
    """Count the cells by what they say, in the order of the legend."""
    found = ((badge, [one for one in cells if one[1].badge == badge]) for badge, _ in LEGEND)
    return tuple(
        HeatCount(badge=badge, cells=len(own), largest=_name_largest(own))
        for badge, own in found
        if own
    )


def _name_largest(cells: Sequence[tuple[SeriesKey, HeatCell]]) -> str:
    """Name the measure that moved furthest, whichever way; empty where none did."""
    moved = [(cell.difference.change, key) for key, cell in cells if cell.difference and cell.strength]
    if not moved:
        return ""
    change, key = max(moved, key=lambda one: abs(one[0]))
    said = f"{heading(metric_words(key.metric, key.statistic))} {change_words(change)}"
    return said if len(moved) == 1 else f"largest: {said}"
