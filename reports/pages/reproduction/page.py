"""A page for each public report that trials reproduce, at each scale."""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from functools import partial

from perf.model.metrics import RESPONSE_TIME
from perf.model.references import PublishedCourse
from perf.model.scaling import unscaled_name
from reports.pages.reproduction.course import Drawn, find_recorded_drift
from reports.pages.reproduction.courses import cut
from reports.pages.reproduction.ratios import (
    MeasuredSetting,
    Reproduction,
    choose_newest,
    find_reproductions,
    gather,
)
from reports.pages.reproduction.view import Around, view_reproduction
from reports.site.context import SiteContext
from reports.site.rendering import render
from reports.site.writing import Batch, SiteFile
from reports.wording.links import reproduction_page
from reports.wording.wording import caveat_words

_MOST_TRIALS = 10
"""Of a setting and workload, the newest, whose values are read together."""
_WINDOWS = 12
"""Of a phase that is drawn over time: those of an hour each, in a soak of twelve."""


def batches(scene: SiteContext) -> Iterator[Batch]:
    """Give the pages of all reproduced reports."""
    series = frozenset(judged.series.key for judged in scene.judgement.series)
    around = Around(
        topologies=scene.catalog.topologies,
        workloads=scene.catalog.workloads,
        caveats=scene.caveats,
        series=series,
    )
    for found in find_reproductions(scene.catalog.reports, scene.heads.values()):
        page = reproduction_page(found.name)
        yield Batch({page: _digest(scene, found, around)}, partial(_make, scene, found, around))


def _make(
    scene: SiteContext, found: Reproduction, around: Around, _: Collection[str]
) -> Iterator[SiteFile]:
    newest = [head.id for head in choose_newest(found.trials, _MOST_TRIALS)]
    trials = scene.archive.trials(newest)
    measured = gather(trials)
    drawn = [one for course in found.report.courses for one in _draw(scene, course, measured)]
    page = view_reproduction(found, measured, drawn, around)
    yield render("reproduction.html", page.page, page=page)


def _draw(
    scene: SiteContext, course: PublishedCourse, measured: Sequence[MeasuredSetting]
) -> Iterator[Drawn]:
    """Cut what the newest trial of a course recorded, by operation where it names some."""
    trials = [
        trial
        for one in measured
        for trial in one.trials
        if unscaled_name(trial.workload.name) == course.workload
    ]
    operations = course.operations or ("",)
    if not trials:
        yield from (Drawn(course=course, operation=one) for one in operations)
        return
    trial = max(trials, key=lambda one: (one.started_at, one.id))
    recordings = [
        one
        for one in scene.archive.recordings([trial.id], RESPONSE_TIME.name)
        if not course.phases or one.phase in course.phases
    ]
    for operation in operations:
        own = [one for one in recordings if _belongs(one.operation, operation)]
        try:
            windows = cut(own, _WINDOWS)
        except ValueError as error:
            yield Drawn(course=course, operation=operation, problem=str(error))
        else:
            drift = find_recorded_drift(trial, course, operation)
            yield Drawn(course=course, operation=operation, windows=windows, drift=drift)


def _belongs(recorded: str, wanted: str) -> bool:
    """Tell whether times are of the wanted operation; of whole ones, where none is wanted."""
    return recorded == wanted if wanted else "." not in recorded


def _digest(scene: SiteContext, found: Reproduction, around: Around) -> str:
    """Digest all that a page is made of, without reading a trial."""
    contents = [scene.digests.get(head.id, "") for head in found.trials]
    if not all(contents):
        return ""
    testbeds = sorted({head.testbed.name for head in found.trials})
    names = {head.workload.name for head in found.trials}
    plain = {unscaled_name(name) for name in names}
    series = sorted(repr(key) for key in around.series if key.workload.partition("@")[0] in names)
    parts = (
        *contents,
        repr(found.report),
        repr(found.trials),
        repr(sorted(around.topologies.items())),
        repr([one for name, one in sorted(around.workloads.items()) if name in plain]),
        *(caveat_words(name, scene.caveats) for name in testbeds),
        *series,
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
