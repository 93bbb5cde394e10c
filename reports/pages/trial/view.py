"""What the page of one trial shows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perf.model.facts import MAY_MOVE
from perf.model.results import Fact, Reason, Trial, TrialStatus
from reports.pages.reproduction.ratios import Reproduction
from reports.pages.trial.diagnostics import DiagnosticsView, view_diagnostics
from reports.pages.trial.phases import PhasesView, view_phases
from reports.pages.trial.previous import PreviousView, view_previous
from reports.pages.trial.steps import StepTable, view_steps
from reports.pages.trial.validity import ValidityView, view_validity
from reports.pages.trial.values import PhaseTable, view_counters, view_samples
from reports.wording import links
from reports.wording.reproducing import (
    NOTHING_KNOWN,
    Contents,
    ReproductionCommands,
    list_changed,
    view_reproduction,
)
from reports.wording.wording import (
    NOTHING,
    STATUS_BADGES,
    VOID_BADGE,
    Badge,
    Moment,
    NamedValue,
    caveat_words,
    count,
    duration,
    moment,
    named,
    size,
    space_percent,
)

_LOGS = "logs/"
_SAME = "the same"


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleFile:
    """A file of the trial's bundle; `href` leads to it from the folder of trial pages."""

    name: str
    href: str
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """A link to a file of the bundle."""

    name: str
    href: str
    size: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesLink:
    """A series in which this trial is a point; `is_canary` if only its hosts are measured there."""

    title: str
    page: str
    is_canary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRow:
    """A fact of a host before and after the trial; `cells` are those of its row, its name first."""

    host: str
    name: str
    before: str
    after: str
    differs: bool

    @property
    def cells(self) -> tuple[str, ...]:
        """Give the texts of its row."""
        return self.name, self.host, self.before, _SAME if self.before == self.after else self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialView:
    """All that the page of one trial shows.

    `void` marks the numbers of a trial that enters no series; `data` is the script of its chart, empty
    if it has none.
    """

    page: str
    id: str
    title: str
    status: Badge
    meaning: str
    reasons: tuple[NamedValue, ...]
    remarks: tuple[NamedValue, ...]
    void: Badge | None
    log_tail: str
    started: Moment
    fields: tuple[NamedValue, ...]
    data: str
    steps: tuple[StepTable, ...]
    phases: PhasesView
    validity: ValidityView
    samples: tuple[PhaseTable, ...]
    diagnostics: DiagnosticsView
    counters: tuple[PhaseTable, ...]
    facts: tuple[FactRow, ...]
    facts_summary: str
    previous: PreviousView
    logs: tuple[FileRow, ...]
    files: tuple[FileRow, ...]
    series: tuple[SeriesLink, ...]
    canaries: tuple[SeriesLink, ...]
    reproduction: ReproductionCommands
    reproduces: tuple[Reproduction, ...]
    caveat: str


_MEANINGS = {
    TrialStatus.COMPLETED: "This trial is a point in its series.",
    TrialStatus.INVALID: "This trial was measured but cannot be trusted; it is in no series.",
    TrialStatus.FAILED: "This trial did not finish; it is in no series.",
}


def view_trial(
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
) -> TrialView:
    """Put a trial into words.

    `reproduce` is the command line that measures the same again, `contents` those of the configuration
    that stands beside the history, `previous` the trial that is compared with, if there is one,
    `reproductions` the pages of reports that it reproduces.
    """
    rows = [FileRow(name=file.name, href=file.href, size=size(file.length)) for file in files]
    facts = _compare_facts(trial.environment_before, trial.environment_after)
    steps = view_steps(trial.steps, trial.samples)
    return TrialView(
        page=links.trial_page(trial.id),
        id=trial.id,
        title=f"{trial.experiment} with {trial.release.system} {trial.release.version}",
        status=STATUS_BADGES[trial.status],
        meaning=_MEANINGS[trial.status],
        reasons=tuple(_view_reason(reason) for reason in trial.reasons),
        remarks=tuple(_view_reason(remark) for remark in trial.remarks),
        void=None if trial.status is TrialStatus.COMPLETED else VOID_BADGE,
        log_tail=trial.log_tail.rstrip(),
        started=moment(trial.started_at),
        fields=_view_fields(trial, bundle_sha256),
        data=links.trial_data(trial.id)
        if any(row.response_time_p99_ms is not None for table in steps for row in table.rows)
        else "",
        steps=steps,
        phases=view_phases(trial, contents.workloads),
        validity=view_validity(trial, contents.testbeds),
        samples=view_samples(trial.samples),
        diagnostics=view_diagnostics(trial.samples),
        counters=view_counters(trial.counters),
        facts=facts,
        facts_summary=_summarize_facts(facts),
        previous=view_previous(trial, previous),
        logs=tuple(row for row in rows if row.name.startswith(_LOGS)),
        files=tuple(row for row in rows if not row.name.startswith(_LOGS)),
        series=tuple(link for link in series if not link.is_canary),
        canaries=tuple(link for link in series if link.is_canary),
        reproduction=view_reproduction(list_changed(trial, contents), reproduce),
        reproduces=tuple(reproductions),
        caveat=caveat_words(trial.testbed.name, caveats),
    )


def _view_reason(reason: Reason) -> NamedValue:
    return NamedValue(name=reason.kind, value=space_percent(reason.text))


def _view_fields(trial: Trial, bundle_sha256: str) -> tuple[NamedValue, ...]:
    release, artifact = trial.release, trial.artifact
    released = f", released {release.released_at}" if release.released_at else ""
    return (
        NamedValue(name="Experiment", value=trial.experiment),
        NamedValue(name="System", value=release.system),
        NamedValue(name="Release", value=release.version, note=f"line {release.line}{released}"),
        NamedValue(
            name="Artifact",
            value=artifact.sha256 if artifact else NOTHING,
            note=f"SHA-256; from {artifact.source.value}" if artifact else "nothing was installed",
        ),
        NamedValue(name="Topology", value=named(trial.topology)),
        NamedValue(name="Testbed", value=named(trial.testbed), note=f"class {trial.testbed_class}"),
        NamedValue(name="Workload", value=named(trial.workload)),
        NamedValue(name="Config", value=named(trial.config)),
        NamedValue(name="Load engine", value=trial.engine),
        NamedValue(name="Seed", value=str(trial.seed)),
        NamedValue(name="Night", value=trial.night or NOTHING, note=trial.purpose.value),
        NamedValue(name="Started", value=moment(trial.started_at).text),
        NamedValue(
            name="Finished",
            value=moment(trial.finished_at).text,
            note=f"after {duration(trial.finished_at - trial.started_at)}",
        ),
        NamedValue(name="Harness", value=trial.harness_version or NOTHING),
        NamedValue(
            name="Bundle",
            value=bundle_sha256 or NOTHING,
            note="SHA-256 of its list of files, each with its own"
            if bundle_sha256
            else "not known here",
        ),
    )


def _compare_facts(before: Iterable[Fact], after: Iterable[Fact]) -> tuple[FactRow, ...]:
    first = {(fact.host, fact.name): fact.value for fact in before}
    second = {(fact.host, fact.name): fact.value for fact in after}
    rows = (
        FactRow(
            host=at[0],
            name=at[1],
            before=first.get(at, NOTHING),
            after=second.get(at, NOTHING),
            # A trial that failed early has no second reading: unknown, which is no difference. Nor is
            # it one that what measures something that goes on has gone on.
            differs=bool(second) and first.get(at) != second.get(at) and at[1] not in MAY_MOVE,
        )
        for at in dict.fromkeys((*first, *second))
    )
    return tuple(sorted(rows, key=lambda row: (not row.differs, row.host)))


def _summarize_facts(facts: Sequence[FactRow]) -> str:
    if not facts:
        return "No facts about the hosts were recorded."
    differing = sum(row.differs for row in facts)
    if not differing:
        return f"{count(len(facts), 'fact')}; none is known to differ after the trial."
    return f"{count(len(facts), 'fact')}, {differing:,} of them different after the trial."
