"""What the page of a reproduced report shows: published figures beside measured ones."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from perf.model.design import Topology, Workload
from perf.model.metrics import PRICES_FROM, RESPONSE_TIME, THROUGHPUT
from perf.model.references import ERRORS, MISSES, Report
from perf.model.results import SeriesKey, Trial, TrialHead, TrialId
from perf.model.scaling import unscaled_name
from reports.pages.reproduction.course import CourseView, Drawn, view_course
from reports.pages.reproduction.dollars import DollarRow, view_dollars
from reports.pages.reproduction.published import TableView, match, view_table
from reports.pages.reproduction.ratios import (
    MeasuredSetting,
    Reproduction,
    SideSetting,
    Value,
    ValueAddress,
    find_reproductions,
    throughput_cell,
)
from reports.pages.reproduction.scaling import ScalingRow, tell_scale, view_scaling
from reports.pages.reproduction.trials import WithoutResult, tell_changes, view_without_result
from reports.wording import links
from reports.wording.wording import (
    NOTHING,
    Moment,
    NamedValue,
    count,
    join_caveats,
    moment,
    number,
    quantity,
)

MOST_TRIALS = 100
"""Trials that the page lists, the newest."""
_NEVER_A_GOAL = (
    "Absolute figures of other hardware, releases and clients are no goal: what compares is the shape, "
    "in ratios inside of each side."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproductionRow:
    """A reproduced report at one scale, in a line."""

    title: str
    scale: str
    trials: str
    newest: Moment
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectRow:
    """What the report measured, and what stands for it here."""

    title: str
    setup: str
    here: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow:
    """One operation in one phase of a workload, with its spread and its series."""

    cells: tuple[str, ...]
    spread: str
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingView:
    """All that was measured in one setting."""

    title: str
    rows: tuple[MeasuredRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproductionView:
    """All that the page of one reproduced report at one scale shows."""

    page: str
    name: str
    title: str
    scale: str
    lead: str
    without_result: WithoutResult | None
    changes: tuple[str, ...]
    goal: str
    url: str
    link: str
    source: tuple[NamedValue, ...]
    left_open: tuple[str, ...]
    not_compared: tuple[str, ...]
    left_out: tuple[str, ...]
    subjects: tuple[SubjectRow, ...]
    tables: tuple[TableView, ...]
    scalings: tuple[ScalingRow, ...]
    dollars: tuple[DollarRow, ...]
    published: str
    courses: tuple[CourseView, ...]
    settings: tuple[SettingView, ...]
    trials: tuple[TrialHead, ...]
    trials_count: int
    caveat: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What the page takes from elsewhere: the configuration, and the series that have a page."""

    topologies: Mapping[str, Topology] = field(default_factory=dict)
    workloads: Mapping[str, Workload] = field(default_factory=dict)
    caveats: Mapping[str, str] = field(default_factory=dict)
    series: Collection[SeriesKey] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLink:
    """A page with its title."""

    title: str
    page: str


def link_reproductions(
    reports: Iterable[Report], heads: Iterable[TrialHead]
) -> Mapping[TrialId, Sequence[PageLink]]:
    """Give by trial the pages of the reports that it reproduces."""
    result: dict[TrialId, list[PageLink]] = {}
    for found in find_reproductions(reports, heads):
        link = PageLink(title=found.report.title, page=links.reproduction_page(found.name))
        for head in found.trials:
            result.setdefault(head.id, []).append(link)
    return result


def list_reproductions(
    reports: Iterable[Report], heads: Iterable[TrialHead]
) -> tuple[ReproductionRow, ...]:
    """Put each reproduced report into a line, by report and scale."""
    return tuple(
        ReproductionRow(
            title=found.report.title,
            scale=f"1 : {found.scale:,}",
            trials=count(len(found.trials), "trial"),
            newest=moment(found.trials[-1].finished_at),
            page=links.reproduction_page(found.name),
        )
        for found in find_reproductions(reports, heads)
    )


def view_reproduction(
    found: Reproduction, measured: Sequence[MeasuredSetting], drawn: Sequence[Drawn], around: Around
) -> ReproductionView:
    """Put a report and what was measured of it into words."""
    report = found.report
    matched = match(report, measured, found.trials)
    tables = tuple(view_table(table, matched) for table in report.tables)
    return ReproductionView(
        page=links.reproduction_page(found.name),
        name=found.name,
        title=report.title,
        scale=tell_scale(found, around.workloads),
        lead=_lead(tables, found, measured),
        without_result=view_without_result(found.trials),
        changes=tell_changes(found.trials),
        goal=_NEVER_A_GOAL,
        url=report.url,
        link=report.link or "",
        source=_view_source(report),
        left_open=report.left_open,
        not_compared=report.not_compared,
        left_out=report.left_out,
        subjects=tuple(
            SubjectRow(
                title=one.title,
                setup=one.setup,
                here=" ".join(map(_tell_setting, matched.standing_for(one.name)))
                or "Not measured here.",
            )
            for one in report.subjects
        ),
        tables=tables,
        scalings=tuple(
            view_scaling(one, report, measured, around.topologies) for one in report.scalings
        ),
        dollars=view_dollars(report, measured),
        published=report.published,
        courses=tuple(view_course(place, one) for place, one in enumerate(drawn, start=1)),
        settings=tuple(_view_setting(one, around) for one in measured),
        trials=tuple(reversed(found.trials[-MOST_TRIALS:])),
        trials_count=len(found.trials),
        caveat=join_caveats({one.testbed.name for one in found.trials}, around.caveats),
    )


def _lead(tables: Iterable[TableView], found: Reproduction, measured: Sequence[MeasuredSetting]) -> str:
    cells = [cell for table in tables for line in table.grid.lines for cell in line.here]
    here = sum(cell.text != NOTHING for cell in cells)
    systems = sorted({one.setting.system for one in measured})
    told = ", ".join(systems) if systems else "no system"
    return (
        f"{here:,} of {count(len(cells), 'cell')} of its tables were measured here, with {told}, in "
        f"{count(len(found.trials), 'trial')}."
    )


def _view_source(report: Report) -> tuple[NamedValue, ...]:
    return (
        NamedValue(name="Authors", value=", ".join(report.authors)),
        NamedValue(name="Publisher", value=report.publisher),
        NamedValue(name="Published", value=report.published),
        NamedValue(name="Retrieved", value=report.retrieved),
        NamedValue(name="Hardware there", value=report.hardware),
        NamedValue(name="Client there", value=report.client),
        NamedValue(name="Suites", value=", ".join(report.suites), note="that reproduce it here"),
    )


def _name_setting(setting: SideSetting) -> str:
    return (
        f"{setting.system} {setting.version}, config {setting.config}, topology {setting.topology}, "
        f"testbed class {setting.testbed_class}, engine {setting.engine}"
    )


def _tell_setting(measured: MeasuredSetting) -> str:
    price = measured.price_per_hour_usd
    return f"{_name_setting(measured.setting)}; {_tell_price(price, measured.trials)}."


def _tell_price(price: float | None, trials: Sequence[Trial]) -> str:
    if price is None:
        return "no price is stated"
    found = (fact.value for fact in trials[-1].environment_before if fact.name == PRICES_FROM)
    since = next(found, "of no day that is known")
    return f"its servers cost ${number(price)} per hour ({since})"


def _view_setting(measured: MeasuredSetting, around: Around) -> SettingView:
    places = sorted(
        {
            (cell.workload, cell.phase, cell.operation)
            for cell in measured.values
            if cell.metric in (THROUGHPUT.name, RESPONSE_TIME.name)
        }
    )
    return SettingView(
        title=_name_setting(measured.setting),
        rows=tuple(_view_place(measured, place, around) for place in places),
    )


def _view_place(measured: MeasuredSetting, place: tuple[str, str, str], around: Around) -> MeasuredRow:
    throughput = measured.values.get(throughput_cell(*place))
    times = [
        measured.values.get(ValueAddress(*place, RESPONSE_TIME.name, statistic))
        for statistic in ("p50", "p99", "max")
    ]
    return MeasuredRow(
        cells=(
            *place,
            quantity(throughput.value, THROUGHPUT.name) if throughput else NOTHING,
            *(quantity(one.value, RESPONSE_TIME.name) if one else NOTHING for one in times),
            *(
                _tell_count(measured.values.get(ValueAddress(*place, it, "mean")))
                for it in (ERRORS, MISSES)
            ),
        ),
        spread=_tell_spread(throughput or times[0]),
        page=next(_find_pages(measured, place, around), ""),
    )


def _tell_count(value: Value | None) -> str:
    """Write how often something happened: in one trial a whole number, of several their median."""
    return f"{value.value:,.10g}" if value else NOTHING


def _tell_spread(value: Value | None) -> str:
    if value is None:
        return NOTHING
    runs, trials = len(value.runs), count(len(value.trials), "trial")
    if runs == 1:
        return f"1 run in {trials}"
    return f"{number(min(value.runs))} to {number(max(value.runs))} in {runs} runs of {trials}"


def _find_pages(
    measured: MeasuredSetting, place: tuple[str, str, str], around: Around
) -> Iterator[str]:
    """Give the pages of the series of an operation, throughput first, if they have any."""
    workload, phase, operation = place
    setting = measured.setting
    trial = next((one for one in reversed(measured.trials) if _is_of(one, workload)), None)
    for metric, statistic in ((THROUGHPUT.name, "mean"), (RESPONSE_TIME.name, "p99")):
        if trial is None:
            return
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
        if key in around.series:
            yield links.series_page(key)


def _is_of(trial: Trial, workload: str) -> bool:
    return unscaled_name(trial.workload.name) == workload
