"""A page for each trial, with the data of its chart; many are read from the history at once."""

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import itemgetter
from pathlib import Path
from urllib.parse import quote

from analysis.detection.detection import ChangePoint
from analysis.detection.effects import relative_change
from analysis.judging.drift import is_canary
from analysis.judging.incidents import Incident
from analysis.judging.judgement import JudgedSeries
from perf.history.distributions import Recording
from perf.model.nights import Night
from perf.model.results import Trial, TrialHead, TrialId, TrialStatus
from perf.trial.seconds import read_seconds
from perf.trial.spent import describe_spent
from reports.pages.reproduction.ratios import Reproduction, find_reproductions
from reports.pages.trial.differences import compare_facts, list_differences
from reports.pages.trial.phases import find_phases, sum_measured
from reports.pages.trial.spectrum import draw_course, draw_servers, draw_spectrum
from reports.pages.trial.steps import draw_steps, view_steps
from reports.pages.trial.times import KINDS, describe_curves
from reports.pages.trial.validity import apply_rules
from reports.pages.trial.values import (
    find_echoes,
    list_canaries,
    list_counters,
    list_diagnostics,
    list_figures,
    list_samples,
)
from reports.site.changed_settings import name_changed_settings
from reports.site.context import SiteContext
from reports.site.rendering import render, to_script
from reports.site.writing import Batch, LazyBatches, SiteFile, batch_of, digest, in_parts
from reports.wording.links import (
    data_path,
    incident_page,
    reproduction_page,
    series_page,
    times_data,
    trial_data,
    trial_page,
)
from reports.wording.reproducing import (
    NOTHING_KNOWN,
    Contents,
    list_changed,
    read_contents,
    reproduce_command,
    view_reproduction,
)
from reports.wording.wording import (
    VOID_BADGE,
    caveat_words,
    heading,
    percent,
    quantity,
    series_words,
)

_LOGS = "logs/"
_AT_ONCE = 200
"""Trials that are read together: many against the cost of a query, few against memory."""
_NONE = TrialId("")
WITH_CURVES = 100
"""Trials with curves on their pages, the newest: decoding the histograms of one may take 0.1 s."""
_DECODED_AT_ONCE = 20
"""Trials of which histograms are decoded together: they are large."""
_CHARTS = "trial-charts"
"""The name of the data with the charts that the curves of all trials are drawn by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleFile:
    """A file of the trial's bundle; `href` leads to it from the folder of trial pages."""

    name: str
    href: str
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesLink:
    """A series in which a trial is a point; `is_canary` if only its hosts are measured there.

    `of` is phase, operation and metric.
    """

    title: str
    page: str
    is_canary: bool = False
    of: tuple[str, str, str] = ("", "", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """An incident of which a trial is the first point after a change, and how far off it was there.

    `title` names what moved, not by how much: that moves with each night, and is on the page of the
    incident.
    """

    title: str
    page: str
    text: str


class _Links:
    """Links from each trial to its series, in their order; many series share all of their trials."""

    def __init__(self, judged: Iterable[JudgedSeries]) -> None:
        groups: defaultdict[tuple[TrialId, ...], list[tuple[int, SeriesLink]]] = defaultdict(list)
        for number, one in enumerate(judged):
            key = one.series.key
            link = SeriesLink(
                title=series_words(key),
                page=series_page(key),
                is_canary=is_canary(key),
                of=(key.phase, key.operation, key.metric),
            )
            groups[one.series.points.trials].append((number, link))
        self._groups = tuple(groups.values())
        self._groups_of: dict[TrialId, tuple[int, ...]] = {}
        for place, trials in enumerate(groups):
            for trial in trials:
                self._groups_of[trial] = (*self._groups_of.get(trial, ()), place)
        self._digests: dict[tuple[int, ...], str] = {}

    def of(self, trial: TrialId) -> list[SeriesLink]:
        groups = self._groups_of.get(trial, ())
        found = [one for place in groups for one in self._groups[place]]
        return [link for _, link in sorted(found, key=itemgetter(0))]

    def digest(self, trial: TrialId) -> str:
        groups = self._groups_of.get(trial, ())
        if groups not in self._digests:
            self._digests[groups] = digest(link.page for link in self.of(trial))
        return self._digests[groups]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Surroundings:
    """What all trial pages share: series, the trials before, the contents of the configuration."""

    links: _Links
    bundles: frozenset[TrialId]
    caveats: Mapping[str, str]
    contents: Contents
    nights: Mapping[str, Sequence[Night]]
    reproductions: Mapping[TrialId, Sequence[Reproduction]]
    newest: frozenset[TrialId]
    beginnings: Mapping[TrialId, Sequence[Beginning]]


def find_beginnings(incidents: Iterable[Incident]) -> Mapping[TrialId, Sequence[Beginning]]:
    """Return, by the first trial after a change of them, the incidents that begin there.

    Of several changes of an incident at one trial, the one that says most is said.
    """
    found: defaultdict[TrialId, dict[str, Beginning]] = defaultdict(dict)
    for incident in incidents:
        for change in incident.changes:
            found[change.first_after.trial].setdefault(
                incident.name,
                Beginning(
                    title=heading(series_words(incident.lead.series.key)),
                    page=incident_page(incident.name),
                    text=_say_distance(change, is_lead=change is incident.lead),
                ),
            )
    return {trial: tuple(of_trial.values()) for trial, of_trial in found.items()}


def _say_distance(change: ChangePoint, *, is_lead: bool) -> str:
    """Describe how far the first value after a change is off the level before."""
    key, value = change.series.key, change.first_after.value
    what = "" if is_lead else f"{series_words(key)} "
    off = f"{percent(relative_change(change.before, value))} against " if change.before else "after "
    level = f"{off}the level before ({quantity(change.before, key.metric)})"
    return f"{what}{quantity(value, key.metric)} here, {level}"


def find_newest(heads: Iterable[TrialId], most: int = WITH_CURVES) -> frozenset[TrialId]:
    """Return the newest of trials in the order of their start: those whose pages have curves."""
    return frozenset(list(heads)[-most:])


def batches(context: SiteContext, with_curves: int = WITH_CURVES) -> Iterator[Batch | LazyBatches]:
    """Yield the pages of all trials, the newest of them with curves."""
    reproductions: defaultdict[TrialId, list[Reproduction]] = defaultdict(list)
    for found in find_reproductions(context.catalog.reports, context.heads.values()):
        for head in found.trials:
            reproductions[head.id].append(found)
    heads = [head for head in context.heads.values() if head.id not in context.old_trials]
    around = _Surroundings(
        links=_Links((*context.judgement.series, *context.judgement.watched)),
        bundles=_find_bundles(context.bundles, heads),
        caveats=context.caveats,
        contents=read_contents(context.catalog),
        nights={night.id: (night,) for night in reversed(context.nights)},
        reproductions=reproductions,
        newest=find_newest(context.heads, with_curves),
        beginnings=find_beginnings(context.judgement.incidents),
    )
    charts = {
        "spectrum": draw_spectrum(),
        "p99": draw_course("p99"),
        "rate": draw_course("rate"),
        "cores": draw_servers("cores", "cores of each server"),
        "written": draw_servers("written", "MB/s written"),
    }
    yield batch_of(to_script(_CHARTS, charts))
    yield from in_parts(heads, _AT_ONCE, partial(_batches_of_some, context, around))
    drawn = (head.id for head in heads if head.id in around.newest)
    yield from in_parts(drawn, _DECODED_AT_ONCE, partial(_batches_of_curves, context, around.bundles))


def _batches_of_some(
    context: SiteContext, around: _Surroundings, some: Iterable[TrialHead]
) -> Iterator[Batch]:
    by_page = {trial_page(head.id): head for head in some}
    yield Batch(
        {page: _digest(context, head, around) for page, head in by_page.items()},
        partial(_make, context, by_page, around),
    )


def _make(
    context: SiteContext,
    by_page: Mapping[str, TrialHead],
    around: _Surroundings,
    paths: Collection[str],
) -> Iterator[SiteFile]:
    wanted = {by_page[path].id for path in paths}
    before = {context.previous[one] for one in wanted if one in context.previous}
    known = {trial.id: trial for trial in context.archive.trials(sorted(wanted | before))}
    drawn = {one.trial for one in context.archive.recordings(sorted(wanted & around.newest), *KINDS)}
    for trial in known.values():
        if trial.id in wanted:
            previous = known.get(context.previous.get(trial.id, _NONE))
            yield render_trial(
                trial,
                series=around.links.of(trial.id),
                files=list_bundle(context.bundles, trial.id, context.target) if context.bundles else (),
                reproduce=reproduce_command(trial, context.catalog, around.nights.get(trial.night, ())),
                caveats=around.caveats,
                contents=around.contents,
                previous=previous,
                settings=name_changed_settings(previous, trial, context) if previous else "",
                bundle_sha256=context.digests.get(trial.id, ""),
                reproductions=around.reproductions.get(trial.id, ()),
                begins=around.beginnings.get(trial.id, ()),
                has_curves=trial.id in drawn,
                newest=around.newest,
            )
            if has_chart(trial):
                yield to_script(
                    trial_data(trial.id),
                    draw_steps(view_steps(trial.steps, trial.samples)),
                    of=trial_page(trial.id),
                )


def _batches_of_curves(
    context: SiteContext, with_seconds: Collection[TrialId], trials: Iterable[TrialId]
) -> Iterator[Batch]:
    """Yield what curves are drawn from; decoding is dear, and nothing but its own trial moves it."""
    by_path = {data_path(times_data(trial)): trial for trial in trials}
    digests = {path: (context.digests.get(one, ""), one) for path, one in by_path.items()}
    versions = {
        path: digest((known, str(trial in with_seconds))) if known else ""
        for path, (known, trial) in digests.items()
    }

    def make(paths: Collection[str]) -> Iterator[SiteFile]:
        wanted = sorted(by_path[path] for path in paths)
        found: defaultdict[TrialId, list[Recording]] = defaultdict(list)
        for recording in context.archive.recordings(wanted, *KINDS):
            found[recording.trial].append(recording)
        for trial in context.archive.trials(wanted, brief=True):
            seconds = read_seconds(context.bundles / trial.id) if context.bundles else ()
            yield to_script(times_data(trial.id), describe_curves(trial, found[trial.id], seconds))

    yield Batch(versions, make)


def render_trial(
    trial: Trial,
    *,
    series: Sequence[SeriesLink],
    files: Sequence[BundleFile],
    reproduce: str,
    caveats: Mapping[str, str],
    contents: Contents = NOTHING_KNOWN,
    previous: Trial | None = None,
    bundle_sha256: str = "",
    reproductions: Sequence[Reproduction] = (),
    begins: Sequence[Beginning] = (),
    settings: str = "",
    has_curves: bool = False,
    newest: Collection[TrialId] = (),
) -> SiteFile:
    """Return the page of a trial.

    `reproduce` is the command line that measures the same again, `contents` those of the configuration
    that stands beside the history, `previous` the trial that is compared with, if there is one,
    `settings` names those that differ from it, `reproductions` are the reports that it reproduces,
    `begins` the incidents that begin with it, `newest` the trials that are new enough for curves.
    """
    phases, echoes = find_phases(trial, contents.workloads), find_echoes(trial.samples)
    return render(
        "trial.html",
        trial_page(trial.id),
        trial=trial,
        void=None if trial.status is TrialStatus.COMPLETED else VOID_BADGE,
        begins=begins,
        curves=times_data(trial.id) if has_curves else "",
        charts=_CHARTS,
        curves_before=times_data(previous.id) if previous and previous.id in newest else "",
        is_old=bool(newest) and trial.id not in newest,
        figures=list_figures(trial, echoes),
        rules=apply_rules(trial, contents.testbeds),
        has_limits=trial.testbed in contents.testbeds,
        phases=phases,
        measured_s=sum_measured(phases),
        spent=describe_spent([trial]),
        steps=view_steps(trial.steps, trial.samples),
        data=trial_data(trial.id) if has_chart(trial) else "",
        samples=list_samples(trial.samples, echoes),
        counters=list_counters(trial.counters),
        diagnostics=list_diagnostics(trial.samples),
        canaries=list_canaries(trial.samples),
        facts=compare_facts(trial),
        previous=previous,
        settings=settings,
        differences=list_differences(previous, trial) if previous else [],
        bundle_sha256=bundle_sha256,
        logs=[one for one in files if one.name.startswith(_LOGS)],
        files=[one for one in files if not one.name.startswith(_LOGS)],
        series=[link for link in series if link.of not in echoes],
        echoing=[link for link in series if link.of in echoes],
        reproduction=view_reproduction(list_changed(trial, contents), reproduce),
        reproduces=reproductions,
        caveat=caveat_words(trial.testbed.name, caveats),
    )


def has_chart(trial: Trial) -> bool:
    """Return whether a trial has load steps that can be drawn."""
    return any(step.response_time_p99_ms is not None for step in trial.steps)


def _digest(context: SiteContext, head: TrialHead, around: _Surroundings) -> str:
    """Digest all that the page of a trial is made of, without reading the trial."""
    own = context.digests.get(head.id, "")
    previous = context.heads.get(context.previous.get(head.id, _NONE))
    parts = (
        own,
        context.digests.get(previous.id, "") if previous else "",
        around.caveats.get(head.testbed.name, "unknown"),
        reproduce_command(head, context.catalog, around.nights.get(head.night, ())),
        str(head.id in around.bundles),
        str(head.id in around.newest),
        str(previous.id in around.newest) if previous else "",
        context.places_of([previous.id]) if previous else "",
        name_changed_settings(previous, head, context) if previous else "",
        # Equal names and contents are equal files, so what has changed since says it all.
        *list_changed(head, around.contents),
        around.links.digest(head.id),
        *map(repr, around.beginnings.get(head.id, ())),
        *(
            f"{one.report.title} {reproduction_page(one.name)}"
            for one in around.reproductions.get(head.id, ())
        ),
    )
    return digest(parts) if own else ""


def _find_bundles(bundles: Path | None, heads: Iterable[TrialHead]) -> frozenset[TrialId]:
    """Return which of some trials have their bundles at hand."""
    if bundles is None:
        return frozenset()
    return frozenset(head.id for head in heads if os.path.isdir(f"{bundles}/{head.id}"))  # noqa: PTH112  paths take time


def list_bundle(bundles: Path, trial: TrialId, site: Path) -> tuple[BundleFile, ...]:
    """Return the files of a trial's bundle, with links from the trial pages of `site`; none if gone."""
    way = _find_way(bundles, site)
    return tuple(
        BundleFile(name=name, href=f"{way}/{quote(f'{trial}/{name}')}", length=length)
        for name, length in sorted(_walk(f"{bundles / trial}", ""), key=lambda one: one[0].split("/"))
    )


@lru_cache(8)
def _find_way(bundles: Path, site: Path) -> str:
    """Return the way from the trial pages of a site to a folder of bundles, as part of a URL."""
    page = (site / trial_page(_NONE)).parent
    way = Path(os.path.relpath(os.path.realpath(bundles), os.path.realpath(page)))
    return quote(way.as_posix())


def _walk(folder: str, inner: str) -> Iterator[tuple[str, int]]:
    """Yield name and length of all files below a folder; a site asks for tens of thousands."""
    try:
        entries = os.scandir(folder)
    except OSError:  # it is gone, or not for us: its files are not at hand
        return
    with entries:
        for entry in entries:
            if not entry.is_dir():
                yield f"{inner}{entry.name}", entry.stat().st_size
            elif not entry.is_symlink():
                yield from _walk(entry.path, f"{inner}{entry.name}/")
