"""A page for each public report that trials reproduce, at each scale."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

from perf.model.design import Topology, Workload
from perf.model.metrics import PRICES_FROM, RESPONSE_TIME, THROUGHPUT
from perf.model.references import ERRORS, MISSES, PublishedCourse
from perf.model.results import SeriesKey, TrialHead, TrialStatus
from perf.model.scaling import unscaled_name
from reports.pages.nights.view import count_statuses
from reports.pages.reproduction.courses import Drawn, cut, draw_course, find_recorded_drift
from reports.pages.reproduction.published import match, view_table
from reports.pages.reproduction.ratios import (
    MeasuredSetting,
    Reproduction,
    choose_newest,
    find_reproductions,
    gather,
)
from reports.pages.reproduction.scaling import find_divided, find_scaling, list_dollars
from reports.site.context import SiteContext
from reports.site.rendering import render
from reports.site.writing import Batch, SiteFile, digest
from reports.wording.links import reproduction_page
from reports.wording.wording import caveat_words, join_caveats

_MOST_READ = 10
"""Of a setting and workload, the newest, whose values are read together."""
_MOST_LISTED = 100
"""Trials that the page lists, the newest."""
_WINDOWS = 12
"""Of a phase that is drawn over time: those of an hour each, in a soak of twelve."""


def batches(context: SiteContext) -> Iterator[Batch]:
    """Yield the pages of all reproduced reports."""
    series = frozenset(judged.series.key for judged in context.judgement.series)
    for found in find_reproductions(context.catalog.reports, context.heads.values()):
        page = reproduction_page(found.name)
        yield Batch({page: _digest(context, found, series)}, partial(_make, context, found, series))


def _make(
    context: SiteContext, found: Reproduction, series: Collection[SeriesKey], _: Collection[str]
) -> Iterator[SiteFile]:
    newest = [head.id for head in choose_newest(found.trials, _MOST_READ)]
    measured = gather(context.archive.trials(newest))
    drawn = [one for course in found.report.courses for one in _draw(context, course, measured)]
    yield render_reproduction(
        found,
        measured,
        drawn,
        topologies=context.catalog.topologies,
        workloads=context.catalog.workloads,
        caveats=context.caveats,
        series=series,
    )


def render_reproduction(
    found: Reproduction,
    measured: Sequence[MeasuredSetting],
    drawn: Sequence[Drawn] = (),
    *,
    topologies: Mapping[str, Topology],
    workloads: Mapping[str, Workload],
    caveats: Mapping[str, str],
    series: Collection[SeriesKey] = (),
) -> SiteFile:
    """Return the page of a report and what was measured of it; `series` have a page of their own."""
    matched = match(found.report, measured, found.trials)
    tables = [view_table(table, matched) for table in found.report.tables]
    names = sorted({unscaled_name(one.workload.name) for one in found.trials})
    known = [workloads[name] for name in names if name in workloads]
    without = [one for one in found.trials if one.status is not TrialStatus.COMPLETED]
    return render(
        "reproduction.html",
        reproduction_page(found.name),
        found=found,
        report=found.report,
        divided=find_divided(known, found.scale),
        cells=[cell for one in tables for line in one.grid.lines for cell in line.cells],
        systems=sorted({one.setting.system for one in measured}),
        statuses=count_statuses(found.trials),
        without=without,
        reasons=Counter(one.reasons[0].kind for one in without if one.reasons).most_common(),
        changes=list_changes(found.trials),
        standing_for=matched.standing_for,
        tables=tables,
        scalings=[
            find_scaling(one, found.report, measured, topologies) for one in found.report.scalings
        ],
        dollars=list(list_dollars(found.report, measured)),
        drawn=drawn,
        draw=draw_course,
        measured=measured,
        list_places=list_places,
        find_series=partial(_find_series, series=series),
        counted=(ERRORS, MISSES),
        prices_from=PRICES_FROM,
        listed=found.trials[: -_MOST_LISTED - 1 : -1],
        caveat=join_caveats({one.testbed.name for one in found.trials}, caveats),
    )


def list_changes(trials: Sequence[TrialHead]) -> Iterator[tuple[str, str, TrialHead, int]]:
    """Yield each workload that was changed: name, hash before, first trial after, and trials before.

    `trials` are in order of time; the values of the page are those of the newest content.
    """
    of_workload: defaultdict[str, list[TrialHead]] = defaultdict(list)
    for one in trials:
        if one.status is TrialStatus.COMPLETED:
            of_workload[one.workload.name].append(one)
    for name, own in sorted(of_workload.items()):
        turns = [(old, new) for old, new in pairwise(own) if old.workload.sha256 != new.workload.sha256]
        if turns:
            old, first = turns[-1]
            earlier = sum(one.workload.sha256 != first.workload.sha256 for one in own)
            yield unscaled_name(name), old.workload.sha256, first, earlier


def list_places(measured: MeasuredSetting) -> list[tuple[str, str, str]]:
    """Return workload, phase and operation of all throughputs and response times of a setting."""
    of_rows = (THROUGHPUT.name, RESPONSE_TIME.name)
    return sorted(
        {(at.workload, at.phase, at.operation) for at in measured.values if at.metric in of_rows}
    )


def _find_series(
    measured: MeasuredSetting, place: tuple[str, str, str], series: Collection[SeriesKey]
) -> SeriesKey | None:
    """Return the series of an operation that has a page, that of throughput before its p99, or None."""
    workload, phase, operation = place
    setting = measured.setting
    newest = reversed(measured.trials)
    trial = next((one for one in newest if unscaled_name(one.workload.name) == workload), None)
    for metric, statistic in ((THROUGHPUT.name, "mean"), (RESPONSE_TIME.name, "p99")):
        if trial is None:
            return None
        key = SeriesKey(
            system=setting.system,
            line=trial.release.line,
            topology=setting.topology,
            testbed_class=setting.testbed_class,
            config=setting.config,
            workload=f"{trial.workload.name}@{trial.workload.sha256}",
            engine=setting.engine,
            phase=phase,
            operation=operation,
            metric=metric,
            statistic=statistic,
        )
        if key in series:
            return key
    return None


def _draw(
    context: SiteContext, course: PublishedCourse, measured: Sequence[MeasuredSetting]
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
        for one in context.archive.recordings([trial.id], RESPONSE_TIME.name)
        if not course.phases or one.phase in course.phases
    ]
    for operation in operations:
        # Without an operation that is wanted, whole ones are drawn.
        own = [
            one
            for one in recordings
            if (one.operation == operation if operation else "." not in one.operation)
        ]
        try:
            windows = cut(own, _WINDOWS)
        except ValueError as error:
            yield Drawn(course=course, operation=operation, problem=str(error))
        else:
            drift = find_recorded_drift(trial, course, operation)
            yield Drawn(course=course, operation=operation, windows=windows, drift=drift)


def _digest(context: SiteContext, found: Reproduction, series: Collection[SeriesKey]) -> str:
    """Digest all that a page is made of, without reading a trial."""
    if not (contents := context.digest_of(head.id for head in found.trials)):
        return ""
    names = {head.workload.name for head in found.trials}
    plain = {unscaled_name(name) for name in names}
    parts = (
        contents,
        context.places_of(head.id for head in found.trials),
        repr(found.report),
        repr(found.trials),
        repr(sorted(context.catalog.topologies.items())),
        repr([one for name, one in sorted(context.catalog.workloads.items()) if name in plain]),
        *(
            caveat_words(name, context.caveats)
            for name in sorted({it.testbed.name for it in found.trials})
        ),
        *sorted(repr(key) for key in series if key.workload_name in names),
    )
    return digest(parts)
