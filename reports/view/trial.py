"""What the page of one trial shows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perf.hosts.drift import MAY_MOVE
from perf.metrics import HIGHEST_LOAD, METRICS, ROW_THROUGHPUT, THROUGHPUT
from perf.model import (
    ATTEMPTED,
    CLAMPED,
    COMPLETED_IN_WINDOW,
    HELD,
    ROWS,
    SENT_IN_WINDOW,
    TIMEOUTS,
    Counter,
    Fact,
    Sample,
    Trial,
    TrialStatus,
)
from perf.workloads.sensor import Answer
from reports.view import links
from reports.view.diagnostics import DiagnosticsView, is_diagnostic, view_diagnostics
from reports.view.steps import StepTable, view_steps
from reports.view.wording import (
    NOTHING,
    STATISTICS,
    STATUS_BADGES,
    VOID_BADGE,
    Badge,
    Field,
    Moment,
    caveat_words,
    count,
    direction_words,
    duration,
    metric_words,
    moment,
    named,
    number,
    phase_words,
    rank,
    size,
    unit_words,
)

_METRICS = (THROUGHPUT.name, ROW_THROUGHPUT.name, *METRICS)
_COUNTERS = {
    ATTEMPTED: "",
    Answer.COMPLETED: "",
    Answer.NOT_FOUND: "the answer lacked a row",
    Answer.WRONG_DATA: "the answer held a wrong row",
    TIMEOUTS: "",
    COMPLETED_IN_WINDOW: "ended in the measured time, whenever they were to start",
    SENT_IN_WINDOW: "sent in the measured time",
    HELD: (
        "waited for one of the client's slots: the server was slower than the load, or in_flight is "
        "too small"
    ),
    ROWS: "in completed operations",
    CLAMPED: "times outside of a histogram's range",
}


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
    """A series in which this trial is a point."""

    title: str
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRow:
    """One metric and statistic, or one counter: over all iterations, then in each."""

    name: str
    note: str
    overall: str
    iterations: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTable:
    """The values of one operation in one phase."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[ValueRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRow:
    """A fact of a host before and after the trial."""

    host: str
    name: str
    before: str
    after: str
    differs: bool


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
    reasons: tuple[Field, ...]
    remarks: tuple[Field, ...]
    void: Badge | None
    log_tail: str
    started: Moment
    fields: tuple[Field, ...]
    data: str
    steps: tuple[StepTable, ...]
    samples: tuple[PhaseTable, ...]
    diagnostics: DiagnosticsView
    counters: tuple[PhaseTable, ...]
    facts: tuple[FactRow, ...]
    facts_summary: str
    files: tuple[FileRow, ...]
    series: tuple[SeriesLink, ...]
    reproduce: str
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
) -> TrialView:
    """Put a trial into words. `reproduce` is the command line that measures the same again."""
    facts = _compare_facts(trial.environment_before, trial.environment_after)
    steps = view_steps(trial.steps, trial.samples)
    return TrialView(
        page=links.trial_page(trial.id),
        id=trial.id,
        title=f"{trial.experiment} with {trial.release.system} {trial.release.version}",
        status=STATUS_BADGES[trial.status],
        meaning=_MEANINGS[trial.status],
        reasons=tuple(Field(name=reason.kind, value=reason.text) for reason in trial.reasons),
        remarks=tuple(Field(name=remark.kind, value=remark.text) for remark in trial.remarks),
        void=None if trial.status is TrialStatus.COMPLETED else VOID_BADGE,
        log_tail=trial.log_tail.rstrip(),
        started=moment(trial.started_at),
        fields=_view_fields(trial),
        data=links.trial_data(trial.id)
        if any(row.response_time_p99_ms is not None for table in steps for row in table.rows)
        else "",
        steps=steps,
        samples=_view_samples(trial.samples),
        diagnostics=view_diagnostics(trial.samples),
        counters=_view_counters(trial.counters),
        facts=facts,
        facts_summary=_summarize_facts(facts),
        files=tuple(FileRow(name=file.name, href=file.href, size=size(file.length)) for file in files),
        series=tuple(series),
        reproduce=reproduce,
        caveat=caveat_words(trial.testbed.name, caveats),
    )


def _view_fields(trial: Trial) -> tuple[Field, ...]:
    release, artifact = trial.release, trial.artifact
    released = f", released {release.released_at}" if release.released_at else ""
    return (
        Field(name="Experiment", value=trial.experiment),
        Field(name="System", value=release.system),
        Field(name="Release", value=release.version, note=f"line {release.line}{released}"),
        Field(
            name="Artifact",
            value=artifact.sha256 if artifact else NOTHING,
            note=f"SHA-256; from {artifact.source.value}" if artifact else "nothing was installed",
        ),
        Field(name="Topology", value=named(trial.topology)),
        Field(name="Testbed", value=named(trial.testbed), note=f"class {trial.testbed_class}"),
        Field(name="Workload", value=named(trial.workload)),
        Field(name="Config", value=named(trial.config)),
        Field(name="Load engine", value=trial.engine),
        Field(name="Seed", value=str(trial.seed)),
        Field(name="Night", value=trial.night or NOTHING, note=trial.purpose.value),
        Field(name="Started", value=moment(trial.started_at).text),
        Field(
            name="Finished",
            value=moment(trial.finished_at).text,
            note=f"after {duration(trial.finished_at - trial.started_at)}",
        ),
        Field(name="Harness", value=trial.harness_version or NOTHING),
    )


def _view_samples(samples: Sequence[Sample]) -> tuple[PhaseTable, ...]:
    # The answer of a search stands with its steps, what explains results among the diagnostics.
    shown = [s for s in samples if s.metric != HIGHEST_LOAD.name and not is_diagnostic(s)]
    return tuple(
        _tabulate_samples(phase, operation, [s for s in shown if _at(s) == (phase, operation)])
        for phase, operation in dict.fromkeys(_at(sample) for sample in shown)
    )


def _at(value: Sample | Counter) -> tuple[str, str]:
    return value.phase, value.operation


def _tabulate_samples(phase: str, operation: str, samples: Sequence[Sample]) -> PhaseTable:
    iterations = tuple(sorted({s.iteration for s in samples if s.iteration is not None}))
    cells = {(s.metric, s.statistic, s.host, s.iteration): number(s.value) for s in samples}
    ordered = sorted(
        {(s.metric, s.statistic, s.host) for s in samples},
        key=lambda name: (rank(name[0], _METRICS), name[0], rank(name[1], STATISTICS), *name[1:]),
    )
    return PhaseTable(
        title=f"{operation} {phase_words(phase)}",
        columns=_name_columns(iterations),
        rows=tuple(
            ValueRow(
                name=metric_words(metric, statistic) + (f", {host}" if host else ""),
                note=f"{unit_words(metric)}, {direction_words(metric)}",
                overall=cells.get((metric, statistic, host, None), NOTHING),
                iterations=tuple(cells.get((metric, statistic, host, i), NOTHING) for i in iterations),
            )
            for metric, statistic, host in ordered
        ),
    )


def _view_counters(counters: Sequence[Counter]) -> tuple[PhaseTable, ...]:
    return tuple(
        _tabulate_counters(phase, operation, [c for c in counters if _at(c) == (phase, operation)])
        for phase, operation in dict.fromkeys(_at(counter) for counter in counters)
    )


def _tabulate_counters(phase: str, operation: str, counters: Sequence[Counter]) -> PhaseTable:
    found = sorted({c.iteration for c in counters})
    # Iteration 0 is a warm-up, or all of a phase without iterations: never part of a measured sum.
    measured = [i for i in found if i > 0]
    iterations = tuple(found) if measured else ()
    names = sorted({c.name for c in counters}, key=lambda name: (rank(name, tuple(_COUNTERS)), name))
    values = {(c.name, c.iteration): c.value for c in counters}
    return PhaseTable(
        title=f"{operation} {phase_words(phase)}",
        columns=_name_columns(iterations),
        rows=tuple(
            ValueRow(
                name=name.replace("_", " "),
                note=_COUNTERS.get(name, ""),
                overall=f"{sum(values.get((name, i), 0) for i in measured or found):,}",
                iterations=tuple(
                    f"{values[name, i]:,}" if (name, i) in values else NOTHING for i in iterations
                ),
            )
            for name in names
        ),
    )


def _name_columns(iterations: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"Iteration {i}" if i else "Warm-up" for i in iterations)


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
            differs=bool(second) and at[1] not in MAY_MOVE and first.get(at) != second.get(at),
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
