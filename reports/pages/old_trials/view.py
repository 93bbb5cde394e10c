"""What is shown of an old trial: all that a reader of a series or an incident comes for.

Of what its page had, samples by iteration, counters, diagnostics, facts and validity rules stay in its
bundle and in the history. Nothing here depends on nights to come: old pages are not made again.
"""

import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perf.model.nights import Night
from perf.model.results import Trial, TrialHead, TrialId, TrialStatus
from reports.pages.trial.differences import Difference, list_differences
from reports.pages.trial.page import Beginning, find_beginnings
from reports.pages.trial.steps import view_steps
from reports.pages.trial.values import find_echoes, group_figures
from reports.site.changed_settings import name_changed_settings
from reports.site.context import SiteContext
from reports.wording.links import file_stem, series_search
from reports.wording.reproducing import find_suite, measure_command
from reports.wording.wording import STATUS_BADGES, Badge, named

_NONE = TrialId("")
_MOST_DIFFERENCES = 12
"""Of one trial from that before it; a new operating system moves more, and says no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OldTrial:
    """One trial as it is shown: `badge` where it gave no result, `means` what it was measured with.

    `figures` are by phase the operations and what they came to, `answers` those of searches.
    `differences` are those from `previous`, of which `more` are not listed; `unknown` says why some are
    not known.
    """

    trial: Trial
    badge: Badge | None
    begins: Sequence[Beginning]
    figures: Mapping[str, Sequence[tuple[str, str]]]
    answers: Sequence[str]
    means: Sequence[str]
    previous: Trial | None
    settings: str
    differences: Sequence[Difference]
    more: int
    unknown: str
    command: str
    series: str

    @property
    def place(self) -> str:
        """Return its place on the page."""
        return file_stem(self.trial.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all old trials share: incidents that begin, plans of nights."""

    context: SiteContext
    beginnings: Mapping[TrialId, Sequence[Beginning]]
    nights: Mapping[str, Sequence[Night]]


def find_surroundings(context: SiteContext) -> Surroundings:
    """Find what all old trials share."""
    return Surroundings(
        context=context,
        beginnings=find_beginnings(context.judgement.incidents),
        nights={night.id: (night,) for night in reversed(context.nights)},
    )


def split_old(
    trials: Iterable[TrialHead], context: SiteContext
) -> tuple[Sequence[TrialHead], Sequence[TrialHead]]:
    """Return which of some trials are old, and which are not."""
    old: list[TrialHead] = []
    fresh: list[TrialHead] = []
    for trial in trials:
        (old if trial.id in context.old_trials else fresh).append(trial)
    return old, fresh


def list_shared(trials: Sequence[OldTrial]) -> Sequence[str]:
    """Return what most of some trials were measured with: named once, it need not be at each."""
    found = Counter(mean for one in trials for mean in enumerate(one.means))
    return [text for (_, text), times in sorted(found.items()) if 2 * times > len(trials)]


def _list_means(trial: Trial) -> tuple[str, ...]:
    return (
        f"config {named(trial.config)}",
        f"workload {named(trial.workload)}",
        f"testbed {named(trial.testbed)}",
        f"topology {named(trial.topology)}",
        f"load engine {trial.engine}",
        f"seed {trial.seed}",
        f"harness {trial.harness_version or 'not known'}",
    )


def _find_suite(around: Surroundings, trial: TrialHead) -> str:
    return find_suite(trial, around.context.catalog, around.nights.get(trial.night, ()))


def describe(around: Surroundings, heads: Collection[TrialHead]) -> Iterator[str]:
    """Yield all that is shown of some trials beside what their bundles hold."""
    context = around.context
    for head in heads:
        before = context.heads.get(around.context.previous.get(head.id, _NONE))
        yield from (
            _find_suite(around, head),
            context.digests.get(before.id, "") if before else "",
            context.old_trials.get(before.id, "") if before else "",
            name_changed_settings(before, head, context) if before else "",
            *(f"{one.title} {one.page}" for one in around.beginnings.get(head.id, ())),
        )


def read_old_trials(around: Surroundings, heads: Iterable[TrialHead]) -> Mapping[TrialId, OldTrial]:
    """Read trials from the history in brief, with those before them."""
    if not (wanted := {head.id for head in heads}):
        return {}
    before = {around.context.previous[one] for one in wanted if one in around.context.previous}
    read = around.context.archive.trials(sorted(wanted | before), brief=True)
    known = {one.id: one for one in read}
    return {
        one: _view(around, known[one], known.get(around.context.previous.get(one, _NONE)))
        for one in wanted & known.keys()
    }


def _view(around: Surroundings, trial: Trial, previous: Trial | None) -> OldTrial:
    context, echoes = around.context, find_echoes(trial.samples)
    differences = _list_differences(previous, trial) if previous else []
    steps = view_steps(trial.steps, trial.samples)
    return OldTrial(
        trial=trial,
        badge=None if trial.status is TrialStatus.COMPLETED else STATUS_BADGES[trial.status],
        begins=around.beginnings.get(trial.id, ()),
        figures=group_figures(trial, echoes),
        answers=[f"{table.title}: {table.answer}" for table in steps if table.answer],
        means=_list_means(trial),
        previous=previous,
        settings=name_changed_settings(previous, trial, context) if previous else "",
        differences=differences[:_MOST_DIFFERENCES],
        more=max(0, len(differences) - _MOST_DIFFERENCES),
        unknown=_say_unknown(previous, trial),
        command=measure_command(_find_suite(around, trial), "EXPERIMENT", "RELEASE"),
        series=series_search(trial.experiment),
    )


def _list_differences(before: Trial, after: Trial) -> list[Difference]:
    """List what differs, but not that another release is another artifact."""
    is_same = before.release.version == after.release.version
    return [one for one in list_differences(before, after) if is_same or one.name != "artifact"]


def _say_unknown(before: Trial | None, after: Trial) -> str:
    if before is None:
        return "No earlier trial of this experiment and config was completed."
    if before.environment_before and after.environment_before:
        return ""
    return "The facts of the hosts are not recorded of both it and the completed trial before it."


def samples_command(group: str) -> str:
    """Return the command line that prints all samples of the trials of a night or a comparison."""
    name = group.replace("'", "''")
    query = (
        "SELECT * FROM trials JOIN samples USING (trial_id) "  # noqa: S608  a reader copies it
        f"WHERE starts_with(trial_id, '{name}.')"
    )
    # Whoever reads it is spared the quotes of quotes.
    return (
        f'knickpoint history sql "{query}"'
        if file_stem(group) == group
        else shlex.join(("knickpoint", "history", "sql", query))
    )


def group_old(context: SiteContext) -> Mapping[str, Sequence[TrialHead]]:
    """Return the old trials by the page that shows them, in the order of start."""
    found: defaultdict[str, list[TrialHead]] = defaultdict(list)
    for trial, place in context.old_trials.items():
        found[place.partition("#")[0]].append(context.heads[trial])
    return found
