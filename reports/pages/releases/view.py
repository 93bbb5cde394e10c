"""What the list of releases and the page of a release show: what was measured, what changed there."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from analysis.detection.detection import ChangePoint
from analysis.detection.series import Point, position
from analysis.judging.incidents import Incident
from perf.model.results import Purpose, Release, TrialHead, TrialId, TrialStatus
from perf.model.rules import Detection
from reports.pages.releases.heatmap import LEGEND, HeatMap, HeatPair, view_heatmap
from reports.pages.releases.medians import Medians, Variant
from reports.wording import links
from reports.wording.attention import Attention, first_reason, is_trouble, view_incidents
from reports.wording.wording import (
    NOTHING,
    OUTCOME_BADGES,
    STATUS_BADGES,
    Badge,
    Moment,
    NamedValue,
    count,
    join_caveats,
    moment,
    named,
)

_MOST_TRIALS = 60
_MOST_ROWS = 80
HINT = (
    "Both sides are medians over their own nights. Hosts, kernels and drivers may have changed between "
    "them, so a difference here is a hint; a verdict comes from both taking turns on the same hosts."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """How many changes were found at a release, by outcome."""

    badge: Badge
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRow:
    """One release in a line."""

    version: str
    page: str
    released: str
    trials: str
    measured: str
    found: tuple[Located, ...]
    compare: str
    compare_words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LineList:
    """The releases of one line, newest first."""

    title: str
    anchor: str
    rows: tuple[ReleaseRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseTrial:
    """A trial of a release in a line."""

    experiment: str
    config: str
    purpose: str
    status: Badge
    reason: str
    finished: Moment
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantView:
    """A variant of a release against the variant before; `map` is None where there is none."""

    anchor: str
    title: str
    trials: str
    against: str
    map: HeatMap | None
    left_out: str
    compare: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseView:
    """All that the page of a release shows."""

    page: str
    title: str
    lead: str
    badges: tuple[Located, ...]
    fields: tuple[NamedValue, ...]
    incidents: tuple[Attention, ...]
    variants: tuple[VariantView, ...]
    trials: tuple[ReleaseTrial, ...]
    trials_title: str
    trials_left_out: str
    caveat: str
    hint: str = HINT
    legend: tuple[tuple[Badge, str], ...] = LEGEND


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """A release with all its trials in order of time, its variants, and what was found at it."""

    release: Release
    trials: tuple[TrialHead, ...]
    variants: tuple[Variant, ...]
    incidents: tuple[Incident, ...]


def find_releases(
    heads: Iterable[TrialHead], medians: Medians, incidents: Sequence[Incident]
) -> tuple[Measuring, ...]:
    """Give all releases that were ever tried, in the order of system, line and release."""
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


def list_releases(releases: Sequence[Measuring], medians: Medians) -> tuple[LineList, ...]:
    """Put all releases into lines, by system and line; the newest release of a line comes first."""
    lines: defaultdict[tuple[str, str], list[ReleaseRow]] = defaultdict(list)
    for one in releases:
        lines[one.release.system, one.release.line].insert(0, _view_row(one, medians))
    return tuple(
        LineList(title=f"{system} {line}", anchor=f"line-{place}", rows=tuple(rows))
        for place, ((system, line), rows) in enumerate(lines.items(), start=1)
    )


def view_release(
    one: Measuring,
    medians: Medians,
    settings: Detection,
    by_id: Mapping[TrialId, TrialHead],
    caveats: Mapping[str, str],
) -> ReleaseView:
    """Put a release into words."""
    release, shown = one.release, tuple(reversed(one.trials))[:_MOST_TRIALS]
    variants = tuple(
        _view_variant(variant, medians, settings, place)
        for place, variant in enumerate(reversed(one.variants), start=1)
    )
    more = len(one.trials) - len(shown)
    return ReleaseView(
        page=links.release_page(release.system, release.version),
        title=f"{release.system} {release.version}",
        lead=_tell_lead(one),
        badges=_count_changes(one),
        fields=_list_fields(one),
        incidents=view_release_incidents(one, by_id),
        variants=variants,
        trials=tuple(map(_view_trial, shown)),
        trials_title=_count_trials(one.trials),
        trials_left_out=f"{count(more, 'older trial')} not listed here." if more else "",
        caveat=join_caveats({trial.testbed.name for trial in one.trials}, caveats),
    )


def view_release_incidents(one: Measuring, by_id: Mapping[TrialId, TrialHead]) -> tuple[Attention, ...]:
    """Tell of the incidents with a change at a release, with links from its page."""
    told = view_incidents(one.incidents, by_id)
    return tuple(replace(attention, page=f"../{attention.page}") for attention in told)


def variant_words(variant: Variant) -> str:
    """Name a variant: system, release, and its config by content."""
    return f"{variant.release.system} {variant.release.version}, config {named(variant.config)}"


def compare_link(before: Variant | None, after: Variant) -> str:
    """Give the address that opens the page Compare with two variants."""
    first = f"a={before.id}&" if before else ""
    return f"{links.COMPARE_PAGE}#{first}b={after.id}"


def _order(one: Measuring) -> tuple[object, ...]:
    first = one.trials[0]
    point = Point(trial=first.id, release=one.release, started_at=first.started_at, value=0.0)
    return one.release.system, *position(point)


def _changes_at(one: Measuring) -> list[ChangePoint]:
    release = one.release
    return [
        change
        for incident in one.incidents
        for change in incident.changes
        if (change.first_after.release.system, change.first_after.release.version)
        == (release.system, release.version)
    ]


def _count_changes(one: Measuring) -> tuple[Located, ...]:
    counts = Counter((change.outcome, change.state) for change in _changes_at(one))
    return tuple(
        Located(badge=OUTCOME_BADGES[outcome], text=f"{count(number, 'series', 'series')}, {state}")
        for (outcome, state), number in sorted(counts.items())
    )


def _tell_lead(one: Measuring) -> str:
    if not one.variants:
        return "No trial of it was completed, so nothing is known of how it performs."
    if not one.incidents:
        return "No change was found at this release. That is not a proof that there is none."
    changes = _changes_at(one)
    within = sum(
        change.last_before.release.version == change.first_after.release.version for change in changes
    )
    told = f"{count(len(changes), 'series', 'series')} changed at this release"
    return f"{told}, {within:,} of them from one night of it to another." if within else f"{told}."


def _list_fields(one: Measuring) -> tuple[NamedValue, ...]:
    release = one.release
    experiments = sorted({trial.experiment for trial in one.trials})
    return (
        NamedValue(name="Line", value=f"{release.system} {release.line}"),
        NamedValue(
            name="Released",
            value=release.released_at.isoformat() if release.released_at else "not known",
        ),
        NamedValue(name="Trials", value=_count_trials(one.trials)),
        NamedValue(name="Measured", value=_tell_span(one.trials)),
        NamedValue(name="Experiments", value=", ".join(experiments)),
        NamedValue(
            name="Configs", value=", ".join(named(one.config) for one in one.variants) or NOTHING
        ),
    )


def _count_trials(trials: Sequence[TrialHead]) -> str:
    counts = Counter(trial.status for trial in trials)
    order = (TrialStatus.COMPLETED, TrialStatus.INVALID, TrialStatus.FAILED)
    return ", ".join(f"{counts[status]:,} {status.value}" for status in order if counts[status])


def _tell_span(trials: Sequence[TrialHead]) -> str:
    """Say from which day to which trials, in order of time, were measured."""
    first, last = (moment(trial.started_at).day for trial in (trials[0], trials[-1]))
    return first if first == last else f"{first} to {last}"


def _view_row(one: Measuring, medians: Medians) -> ReleaseRow:
    release = one.release
    newest = one.variants[-1] if one.variants else None
    before = medians.before.get(newest.id) if newest else None
    return ReleaseRow(
        version=release.version,
        page=links.release_page(release.system, release.version),
        released=release.released_at.isoformat() if release.released_at else NOTHING,
        trials=_count_trials(one.trials),
        measured=_tell_span(one.trials),
        found=_count_changes(one),
        compare=compare_link(before, newest) if newest else "",
        compare_words="with the one before" if before else "with another",
    )


def _view_variant(variant: Variant, medians: Medians, settings: Detection, place: int) -> VariantView:
    before = medians.before.get(variant.id)
    heat = None
    left_out = ""
    if before:
        pair = HeatPair(before=medians.measured[before.id], after=medians.measured[variant.id])
        heat, left_out = _shorten(view_heatmap([pair], settings))
    return VariantView(
        anchor=f"config-{place}",
        title=f"Config {named(variant.config)}",
        trials=count(len(variant.trials), "completed trial"),
        against=_tell_against(variant, before),
        map=heat,
        left_out=left_out,
        compare=compare_link(before, variant),
        before=before.id if before else "",
        after=variant.id,
    )


def _tell_against(variant: Variant, before: Variant | None) -> str:
    if before is None:
        return (
            f"Nothing to compare with: no earlier release of line {variant.release.line} was measured "
            f"with the config {variant.config.name}."
        )
    count_before = count(len(before.trials), "completed trial")
    if before.release.version == variant.release.version:
        return (
            f"Against the same release with the content that the config had before, "
            f"{named(before.config)} ({count_before})."
        )
    told = f"Against {before.release.version}, the release before ({count_before})"
    if before.config != variant.config:
        return f"{told}, whose config had another content: {named(before.config)}. Both may matter."
    return f"{told}."


def _shorten(heat: HeatMap) -> tuple[HeatMap, str]:
    """Keep the page of a release readable: of very many rows, leave out those where nothing moved."""
    rows = [row for group in heat.groups for row in group.rows]
    if len(rows) <= _MOST_ROWS:
        return heat, ""
    kept = {id(row) for row in rows if any(cell and cell.strength for cell in row.cells)}
    groups = tuple(
        replace(group, rows=tuple(row for row in group.rows if id(row) in kept))
        for group in heat.groups
    )
    left_out = count(len(rows) - len(kept), "operation")
    return (
        replace(heat, groups=tuple(group for group in groups if group.rows)),
        f"{left_out} where nothing was found are left out here; the page Compare shows all.",
    )


def _view_trial(trial: TrialHead) -> ReleaseTrial:
    return ReleaseTrial(
        experiment=trial.experiment,
        config=named(trial.config),
        purpose="" if trial.purpose is Purpose.SCHEDULED else trial.purpose.value,
        status=STATUS_BADGES[trial.status],
        reason=first_reason(trial) if is_trouble(trial) else "",
        finished=moment(trial.finished_at),
        page=links.trial_page(trial.id),
    )
