"""The list of all releases, a page for each, and what compares any two of them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from analysis.detection.detection import ChangePoint, ChangeState
from analysis.detection.series import Point, position
from analysis.detection.verdict import Outcome
from analysis.judging.echoes import split_changes
from analysis.judging.incidents import Cause, Incident
from perf.model.results import Release, TrialHead
from reports.pages.nights.view import count_statuses
from reports.pages.releases import compare
from reports.pages.releases.heatmap import LEGEND, HeatPair, leave_out_calm, view_heatmap
from reports.pages.releases.medians import Medians, Variant, read_medians
from reports.site.context import SiteContext
from reports.site.rendering import render
from reports.site.writing import Batch, LazyBatches, SiteFile, digest, in_parts
from reports.wording.attention import Attention, view_incidents
from reports.wording.links import RELEASES_PAGE, release_page
from reports.wording.wording import CAUSE_BADGES, OUTCOME_BADGES, Badge, count, join_caveats

_MOST_TRIALS, _MOST_TRIALS_OF_OLD = 60, 20
_AT_ONCE = 20
_MOST_ROWS, _MOST_ROWS_OF_OLD = 80, 10
"""Of a release whose trials are all old, mostly what moved is of interest: ten years have 600."""
_COUNT = partial(count_statuses, best_first=True)
_Kinds: TypeAlias = defaultdict[tuple[Outcome, ChangeState, bool, bool], list[ChangePoint]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How many changes of one outcome and state were found at a release, and the largest of them.

    `is_within` if they lie between two nights of it, `is_of_config` if a config change made those.
    """

    outcome: Outcome
    state: ChangeState
    many: int
    largest: ChangePoint
    is_within: bool
    is_of_config: bool

    @property
    def badge(self) -> Badge:
        """Return the badge of its outcome; a config change is no outcome of the release."""
        return CAUSE_BADGES[Cause.CONFIGURATION] if self.is_of_config else OUTCOME_BADGES[self.outcome]

    @property
    def text(self) -> str:
        """Describe how many measures changed, and that the release is not the cause where it is not."""
        if self.is_of_config:
            worse = "worse" if self.outcome == Outcome.REGRESSED else "better"
            return f"A config change made {count(self.many, 'measure')} {worse} (not the release)"
        within = ", between two nights of it (not the release)" if self.is_within else ""
        return f"{count(self.many, 'measure')}{within}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """A release with all its trials in order of time, its variants, and what was found at it."""

    release: Release
    trials: tuple[TrialHead, ...]
    variants: tuple[Variant, ...]
    incidents: tuple[Incident, ...]

    @property
    def name(self) -> tuple[str, str]:
        """Return the system and the version."""
        return self.release.system, self.release.version

    @property
    def changes(self) -> list[ChangePoint]:
        """Return the changes at this release, of all its incidents, but none that repeats another."""
        return [
            change
            for incident in self.incidents
            for change in split_changes(incident)[0]
            if (change.first_after.release.system, change.first_after.release.version) == self.name
        ]

    @property
    def found(self) -> list[Found]:
        """Return how many changes of which outcome and state it has, by where they come from."""
        causes = {id(one): incident.cause for incident in self.incidents for one in incident.changes}
        kinds: _Kinds = defaultdict(list)
        for one in self.changes:
            within = one.last_before.release.version == one.first_after.release.version
            of_config = within and causes[id(one)] is Cause.CONFIGURATION
            kinds[one.outcome, one.state, within, of_config].append(one)
        return [
            Found(
                outcome=outcome,
                state=state,
                many=len(own),
                largest=max(own, key=lambda one: abs(one.relative_change)),
                is_within=within,
                is_of_config=of_config,
            )
            for (outcome, state, within, of_config), own in sorted(kinds.items())
        ]


def batches(context: SiteContext) -> Iterator[Batch | LazyBatches]:
    """Yield the list and the pages of all releases, and the page Compare."""
    medians = read_medians(
        context.heads.values(), (*context.judgement.series, *context.judgement.watched)
    )
    releases = find_releases(context.heads.values(), medians, context.judgement.incidents)
    yield from compare.batches(context, medians)
    yield Batch({RELEASES_PAGE: ""}, lambda _: [_render_list(releases, medians)])
    noise = _digest_noise(medians)
    yield from in_parts(releases, _AT_ONCE, partial(_batches_of_some, context, medians, noise))


def _batches_of_some(
    context: SiteContext,
    medians: Medians,
    noise: Mapping[tuple[str, ...], str],
    some: Iterable[Measuring],
) -> Iterator[Batch]:
    for one in some:
        version = _digest_release(context, one, medians, noise)
        yield Batch({release_page(*one.name): version}, partial(_make_release, context, one, medians))


def find_releases(
    heads: Iterable[TrialHead], medians: Medians, incidents: Sequence[Incident]
) -> tuple[Measuring, ...]:
    """Return all releases that were ever tried, in the order of system, line and release."""
    trials: defaultdict[tuple[str, str], list[TrialHead]] = defaultdict(list)
    for head in heads:
        trials[head.release.system, head.release.version].append(head)
    variants: defaultdict[tuple[str, str], list[Variant]] = defaultdict(list)
    for variant in medians.variants.values():
        variants[variant.release.system, variant.release.version].append(variant)
    found: defaultdict[tuple[str, str], dict[str, Incident]] = defaultdict(dict)
    for incident in incidents:
        for change in incident.changes:
            release = change.first_after.release
            found[release.system, release.version][incident.name] = incident
    measured = (
        Measuring(
            release=of_release[-1].release,
            trials=tuple(of_release),
            variants=tuple(variants[identity]),
            incidents=tuple(found[identity].values()),
        )
        for identity, of_release in trials.items()
    )
    return tuple(sorted(measured, key=_order))


def _order(one: Measuring) -> tuple[object, ...]:
    first = one.trials[0]
    point = Point(trial=first.id, release=one.release, started_at=first.started_at, value=0.0)
    return one.release.system, *position(point)


def _render_list(releases: Sequence[Measuring], medians: Medians) -> SiteFile:
    """Return the page of all releases, by system and line; the newest release of a line comes first."""
    lines: defaultdict[str, list[Measuring]] = defaultdict(list)
    for one in releases:
        lines[f"{one.release.system} {one.release.line}"].insert(0, one)
    return render(
        "releases.html",
        RELEASES_PAGE,
        lines=lines,
        before=medians.before,
        count_trials=_COUNT,
        name_comparison=name_comparison,
    )


def name_comparison(before: Variant | None, newest: Variant) -> str:
    """Name a comparison of a release by what it is compared with."""
    if before is None:
        return "with another release"
    if before.release.version == newest.release.version:
        return f"{newest.release.version} with its config before"
    config = ", another config" if before.config != newest.config else ""
    return f"with {before.release.version}{config}"


def _make_release(
    context: SiteContext, one: Measuring, medians: Medians, _: Collection[str]
) -> Iterator[SiteFile]:
    variants, changed = [], {}
    is_old = all(trial.id in context.old_trials for trial in one.trials)
    most = _MOST_ROWS_OF_OLD if is_old else _MOST_ROWS
    trials = one.trials[-(_MOST_TRIALS_OF_OLD if is_old else _MOST_TRIALS) :]
    for variant in reversed(one.variants):
        heat, left_out = None, 0
        if before := medians.before.get(variant.id):
            changed[variant.id] = compare.name_change(before, variant, context)
            pair = HeatPair(before=medians.measured[before.id], after=medians.measured[variant.id])
            heat, left_out = leave_out_calm(view_heatmap([pair], context.catalog.detection), most)
        variants.append((variant, before, heat, left_out))
    yield render(
        "release.html",
        release_page(*one.name),
        one=one,
        incidents=_view_incidents(one, context),
        variants=variants,
        changed=changed,
        shown=trials[::-1],
        count_trials=_COUNT,
        caveat=join_caveats({trial.testbed.name for trial in one.trials}, context.caveats),
        legend=LEGEND,
    )


def _view_incidents(one: Measuring, context: SiteContext) -> tuple[Attention, ...]:
    """Describe of the incidents with a change at a release, with links from its page."""
    reported = view_incidents(one.incidents, context.heads, context.settings)
    return tuple(replace(attention, page=f"../{attention.page}") for attention in reported)


def _digest_release(
    context: SiteContext, one: Measuring, medians: Medians, noise: Mapping[tuple[str, ...], str]
) -> str:
    """Digest all that the page of a release is made of, without comparing anything."""
    before = [medians.before.get(variant.id) for variant in one.variants]
    variants: list[Variant] = [*one.variants, *filter(None, before)]
    of_variants = (trial.id for each in variants for trial in each.trials)
    trials = dict.fromkeys((*(trial.id for trial in one.trials), *of_variants))
    if not (contents := context.digest_of(trials)):
        return ""
    testbeds = sorted({trial.testbed.name for trial in one.trials})
    parts = (
        contents,
        context.places_of(trial.id for trial in one.trials),
        *(variant.id for variant in variants),
        *sorted({noise.get(variant.branch, "") for variant in variants}),
        *(compare.name_change(medians.before.get(each.id), each, context) for each in one.variants),
        *(compare.digest_changes(variant, medians, context.catalog.detection) for variant in variants),
        *(context.caveats.get(name, "unknown") for name in testbeds),
        repr(_view_incidents(one, context)),
        repr(context.catalog.detection),
    )
    return digest(parts)


def _digest_noise(medians: Medians) -> Mapping[tuple[str, ...], str]:
    """Digest by branch the noise that medians are compared with, and which series are echoes."""
    found: dict[tuple[str, ...], list[str]] = {}
    for key in medians.series:
        noise = medians.noise[key]
        known = noise and (noise.deviation, noise.persistence, noise.all_points)
        found.setdefault((key.system, key.line, key.config), []).append(
            repr((key, known, key in medians.echoes))
        )
    return {branch: digest(parts) for branch, parts in found.items()}
