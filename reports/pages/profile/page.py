"""A page for each comparison of profiles: which code costs more or less per operation."""

from collections.abc import Iterator
from dataclasses import dataclass

from analysis.comparing.profiles import (
    CONFIDENCE,
    KINDS,
    FrameDifference,
    ProfileComparison,
    ProfileDifference,
)
from reports.site.context import SiteContext
from reports.site.rendering import render, to_script
from reports.site.writing import Batch, SiteFile, batch_of
from reports.wording.links import comparison_page, profile_page
from reports.wording.markdown import clean
from reports.wording.wording import number, phase_words, times


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRow:
    """One method in words."""

    name: str
    full_name: str
    levels: str
    difference: str
    interval: str
    own: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One phase and kind of cost in words; `data` is the name of what its flame graph is drawn of."""

    title: str
    unit: str
    levels: str
    factor: str
    rows: tuple[FrameRow, ...]
    data: str


def batches(context: SiteContext) -> Iterator[Batch]:
    """Yield the pages of all comparisons of profiles, with the data of their flame graphs."""
    for one in context.profiles:
        compared = [comparison_page(each.id) for each in context.comparisons if one.is_of(each)]
        yield batch_of(*render_profiles(one, compared))


def render_profiles(found: ProfileComparison, compared: list[str]) -> Iterator[SiteFile]:
    """Yield the page and its data; `compared` are the pages of comparisons of the same sides."""
    parts = [_view(f"profile-{found.id}-{number}", one) for number, one in enumerate(found.differences)]
    page = profile_page(found.id)
    moved = [(part, row) for part in parts for row in part.rows]
    yield render(
        "profile.html",
        page,
        found=found,
        parts=parts,
        first=next(iter(moved), None),
        compared=compared,
        confidence=CONFIDENCE,
        clean=clean,
    )
    for part, one in zip(parts, found.differences, strict=True):
        yield to_script(part.data, {"names": one.names, "nodes": one.nodes}, of=page)


def _view(data: str, one: ProfileDifference) -> Part:
    what, _, unit = KINDS[one.kind].partition(", ")
    return Part(
        title=f"{what} {phase_words(one.phase)}",
        unit=unit,
        levels=f"{number(one.before)} → {number(one.after)}",
        factor=times(one.before, one.after),
        rows=tuple(map(_view_frame, one.frames)),
        data=data,
    )


def _view_frame(frame: FrameDifference) -> FrameRow:
    return FrameRow(
        name=clean(frame.short_name),
        full_name=clean(frame.name),
        levels=f"{number(frame.before)} → {number(frame.after)}",
        difference=_signed(frame.difference),
        interval=f"{_signed(frame.low)} to {_signed(frame.high)}",
        own=_signed(frame.own),
    )


def _signed(value: float) -> str:
    return f"+{number(value)}" if value > 0 else number(value)
