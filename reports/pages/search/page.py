"""The index of the search, which every page loads when somebody begins to search.

It holds everything that has a page or a place in a list, by its name.
"""

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote

from analysis.bisecting.record import BisectionRecord
from analysis.comparing.results import ComparisonResult
from analysis.detection.verdict import Outcome
from analysis.judging.judgement import JudgedSeries
from analysis.orchestration.setting_words import setting_name
from perf.model.metrics import METRICS, RESPONSE_TIME, THROUGHPUT
from perf.model.results import SeriesKey, TrialHead, TrialId
from reports.pages.bisection.view import view_bisection
from reports.site.context import SiteContext
from reports.site.rendering import to_script
from reports.site.writing import Batch
from reports.wording import links
from reports.wording.changes import name_incident
from reports.wording.links import NAVIGATION, data_path
from reports.wording.markdown import clean
from reports.wording.series_list import experiment_of
from reports.wording.summary import summarize_result
from reports.wording.wording import OUTCOME_BADGES, count, moment, night_name, series_words

Entry = tuple[str, str, str]
"""What is found: its name, what is said beside it, and where it leads, from the root of the site."""
_METRIC_ALIASES = {
    RESPONSE_TIME.name: ("latency",),
    THROUGHPUT.name: ("qps", "tps", "rps"),
}
_OUTCOME_ALIASES = {Outcome.REGRESSED: ("worse",), Outcome.IMPROVED: ("better",)}
_NAME = "search"
_MOST = 120
"""Characters of a name or a remark: enough to tell, and a hostile one fills no page."""


def batches(context: SiteContext) -> Iterator[Batch]:
    """Yield the index."""
    yield Batch({data_path(_NAME): ""}, lambda _: (to_script(_NAME, index_all(context)),))


def index_all(context: SiteContext) -> tuple[tuple[str, tuple[Entry, ...]], ...]:
    """Return all that can be found, by kind; of equal fits, the kind listed first comes first."""
    heads = context.heads.values()
    kinds = (
        ("Page", (_entry(entry.name, "", entry.page) for entry in NAVIGATION)),
        ("System", _systems(heads)),
        ("Experiment", _experiments(heads)),
        ("Workload", _workloads(heads)),
        ("Release", _releases(heads)),
        ("Incident", _incidents(context)),
        ("Night", _nights(heads)),
        ("Comparison", _comparisons(context.comparisons)),
        ("Bisection", _bisections(context.bisections)),
        ("Series", _series(context.judgement.series, context.heads)),
        ("Testbed", _series(context.judgement.watched, context.heads)),
    )
    return tuple((kind, tuple(entries)) for kind, entries in kinds)


def _entry(title: str, detail: str, page: str) -> Entry:
    return clean(title, _MOST), clean(detail, _MOST), page


def _listed(page: str, name: str) -> str:
    """Return the address of a list that shows only what holds a name."""
    return f"{page}#find={quote(clean(name)[:_MOST], safe='')}"


def _systems(heads: Iterable[TrialHead]) -> Iterator[Entry]:
    releases: dict[str, set[str]] = {}
    for head in heads:
        releases.setdefault(head.release.system, set()).add(head.release.version)
    for system, versions in sorted(releases.items()):
        yield _entry(system, count(len(versions), "release"), _listed(links.SERIES_PAGE, system))


def _experiments(heads: Iterable[TrialHead]) -> Iterator[Entry]:
    newest = {head.experiment: head for head in heads}
    for name, head in sorted(newest.items()):
        made_of = (head.release.system, head.workload.name, head.topology.name, head.config.name)
        yield _entry(name, ", ".join(made_of), _listed(links.SERIES_PAGE, name))


def _workloads(heads: Iterable[TrialHead]) -> Iterator[Entry]:
    users: dict[str, set[str]] = {}
    for head in heads:
        users.setdefault(head.workload.name, set()).add(head.experiment)
    for name, experiments in sorted(users.items()):
        yield _entry(name, ", ".join(sorted(experiments)), _listed(links.SERIES_PAGE, name))


def _releases(heads: Iterable[TrialHead]) -> Iterator[Entry]:
    found = {(head.release.system, head.release.version): head.release for head in heads}
    for (system, version), release in sorted(found.items(), key=lambda one: one[1].ordinal):
        day = f", released {release.released_at}" if release.released_at else ""
        detail = f"line {release.line}{day}"
        yield _entry(f"{system} {version}", detail, links.release_page(system, version))


def _incidents(context: SiteContext) -> Iterator[Entry]:
    for one in context.judgement.incidents:
        settings = {
            setting_name(knob): None
            for each in one.explanations
            for knob in context.settings.get(each, ())
        }
        detail = ", ".join((one.name, count(len(one.changes), "change"), *settings))
        yield _entry(name_incident(one), detail, links.incident_page(one.name))


def _nights(heads: Iterable[TrialHead]) -> Iterator[Entry]:
    found: dict[str, list[TrialHead]] = {}
    for head in heads:
        if head.night:  # trials on request belong to none
            found.setdefault(head.night, []).append(head)
    for night, trials in sorted(found.items(), reverse=True):
        detail = f"{night}, {count(len(trials), 'trial')}"
        yield _entry(night_name(night), detail, links.night_page(night))


def _comparisons(results: Iterable[ComparisonResult]) -> Iterator[Entry]:
    for one in results:
        detail = f"{summarize_result(one).badge.word}, {moment(one.started_at).day}"
        yield _entry(f"{one.experiment} {one.id}", detail, links.comparison_page(one.id))


def _bisections(records: Iterable[BisectionRecord]) -> Iterator[Entry]:
    for view in map(view_bisection, records):
        yield _entry(view.title, f"{view.experiment}, {view.badge.word}", view.page)


def _series(judged: Iterable[JudgedSeries], heads: Mapping[TrialId, TrialHead]) -> Iterator[Entry]:
    places = {metric: place for place, metric in enumerate(METRICS)}
    for one in sorted(judged, key=lambda one: places.get(one.series.key.metric, len(places))):
        key = one.series.key
        parts = [OUTCOME_BADGES[one.verdict.outcome].word, experiment_of(one, heads), _shape(key)]
        parts += _list_aliases(one)
        yield _entry(series_words(key), ", ".join(parts), links.series_page(key))


def _list_aliases(judged: JudgedSeries) -> Iterator[str]:
    """Yield what else a reader may call a series: its metric, its statistic and its verdict."""
    key = judged.series.key
    yield from _METRIC_ALIASES.get(key.metric, ())
    if key.statistic.startswith("p") and key.statistic not in ("p50", "mean"):
        yield "tail"
    if key.statistic.startswith("p"):
        yield "percentile"
    yield from _OUTCOME_ALIASES.get(judged.verdict.outcome, ())


def _shape(key: SeriesKey) -> str:
    return f"{key.system} {key.line}, {key.workload_name}, {key.topology}, {key.config}"
