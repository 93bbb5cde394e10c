"""All that a site is made of, read and judged once: the pages take from it what they show."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeAlias

from analysis.bisecting.record import BisectionRecord
from analysis.comparing.profiles import ProfileComparison
from analysis.comparing.results import ComparisonResult
from analysis.judging.judgement import Judgement
from analysis.orchestration.bisecting import read_bisections
from analysis.orchestration.comparing import read_results
from analysis.orchestration.explaining import read_profile_comparisons
from analysis.orchestration.inputs import describe_inputs
from analysis.orchestration.judging import judge_evidence, read_evidence
from analysis.orchestration.setting_words import ChangedSettings
from analysis.orchestration.settings import find_changed_settings
from perf.config.catalog import Catalog
from perf.history import bundle
from perf.history.distributions import Recording
from perf.history.place import has_history
from perf.history.store import open_history
from perf.jobs.night import read_nights
from perf.local.paths import DataPaths
from perf.model.errors import BundleError
from perf.model.nights import Night
from perf.model.results import Move, Purpose, Trial, TrialHead, TrialId, TrialStatus, find_moves
from reports.site.old_trials import find_old_trials
from reports.site.writing import digest
from reports.wording.attention import LeftOut

Bounds: TypeAlias = Mapping[tuple[TrialId, str, str], tuple[float, float]]

NO_BOUNDS: Bounds = {}


class Archive(Protocol):
    """What trials measured, read when a page is made: all of it would not fit into memory."""

    def trials(self, ids: Sequence[TrialId], *, brief: bool = False) -> tuple[Trial, ...]:
        """Return these trials, whole or as `History.trials` gives them in brief, by start and id."""
        ...

    def first_values(
        self, ids: Sequence[TrialId], phase: str, metric: str, statistic: str
    ) -> Mapping[TrialId, tuple[str, float]]:
        """Return by trial the first operation with such a value of a whole phase, and the value."""
        ...

    def moves(self, lists: Sequence[Sequence[TrialId]]) -> Sequence[Sequence[Move]]:
        """Return for each list of trials what was different from one to the next beside the release."""
        ...

    def recordings(self, ids: Sequence[TrialId], *kinds: str) -> tuple[Recording, ...]:
        """Return what these trials measured of these kinds of histogram."""
        ...


@dataclass(frozen=True, slots=True)
class StoredArchive:
    """What the history file at `path` holds; opened for each question, so processes can share it.

    `environments` are what was true of each trial, which is known of the judgement.
    """

    path: Path
    environments: Mapping[TrialId, Mapping[str, str]]

    def trials(self, ids: Sequence[TrialId], *, brief: bool = False) -> tuple[Trial, ...]:
        """Return these trials, whole or as `History.trials` gives them in brief, by start and id."""
        if not ids:
            return ()
        with open_history(self.path, read_only=True) as history:
            return history.trials(ids, brief=brief)

    def first_values(
        self, ids: Sequence[TrialId], phase: str, metric: str, statistic: str
    ) -> Mapping[TrialId, tuple[str, float]]:
        """Return by trial the first operation with such a value of a whole phase, and the value."""
        with open_history(self.path, read_only=True) as history:
            return history.first_values(ids, phase, metric, statistic)

    def moves(self, lists: Sequence[Sequence[TrialId]]) -> Sequence[Sequence[Move]]:
        """Return for each list of trials what was different from one to the next beside the release."""
        return [find_moves(trials, self.environments) for trials in lists]

    def recordings(self, ids: Sequence[TrialId], *kinds: str) -> tuple[Recording, ...]:
        """Return what these trials measured of these kinds of histogram."""
        if not ids:
            return ()
        with open_history(self.path, read_only=True) as history:
            return history.recordings(ids, *kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedHistory:
    """One state of a history with its judgement: every judged trial has its head.

    `heads` are in the order of start and id, `digests` the SHA-256 of the bundles, `bounds` the ends
    between which the answers of searches lie, by trial, phase and operation, `settings` those that
    changed at incidents, `environments` what was true of each trial, `inputs` a digest of all that it
    was judged from, empty where it is not known.
    """

    judgement: Judgement
    heads: Sequence[TrialHead] = ()
    digests: Mapping[TrialId, str] = field(default_factory=dict)
    bounds: Bounds = field(default_factory=dict)
    settings: ChangedSettings = field(default_factory=dict)
    environments: Mapping[TrialId, Mapping[str, str]] = field(default_factory=dict)
    inputs: str = ""


_NOTHING_TO_JUDGE = JudgedHistory(judgement=Judgement(series=()))


def judge_state(paths: DataPaths, catalog: Catalog, today: date) -> JudgedHistory:
    """Read the history of a data directory once, as of one moment, and judge it.

    Raises:
        HistoryError: the history cannot be read.
        InputError: the result of a comparison is not one.

    """
    inputs = describe_inputs(paths, catalog, today)
    with open_history(paths.history, read_only=True) as history, history.snapshot():
        evidence = read_evidence(history, paths)
        heads, digests = history.heads(), history.bundle_digests()
        bounds = history.search_bounds()
    # Closed first: the judging forks.
    judgement = judge_evidence(evidence, paths, catalog, today)
    by_id = {head.id: head for head in heads}
    settings = find_changed_settings(judgement.incidents, by_id, catalog, paths.trials)
    return JudgedHistory(
        judgement=judgement,
        heads=heads,
        digests=digests,
        bounds=bounds,
        settings=settings,
        environments=evidence.environments,
        inputs=inputs,
    )


def judge_any(paths: DataPaths, catalog: Catalog, today: date) -> JudgedHistory:
    """Judge as `judge_state` does; without a history there is nothing to judge."""
    return judge_state(paths, catalog, today) if has_history(paths) else _NOTHING_TO_JUDGE


@dataclass(frozen=True, kw_only=True)
class SiteContext:
    """A history with its judgement and all that surrounds it.

    `heads` are in the order of start and id, `digests` the SHA-256 of their bundles, `bounds` the ends
    between which the answers of searches lie, by trial, phase and operation, `left_out` the bundles
    that the history lacks. `bundles` is the directory of the trial bundles that pages link to, None
    where they will not stay; `target` is where the site will be. A recording is a history that ended:
    nothing of it can be late. `settings` are those that changed at incidents, `old_trials` gives the
    places of trials that have no page of their own.
    """

    heads: Mapping[TrialId, TrialHead]
    digests: Mapping[TrialId, str]
    bounds: Bounds
    archive: Archive
    judgement: Judgement
    catalog: Catalog
    nights: Sequence[Night]
    comparisons: Sequence[ComparisonResult]
    bisections: Sequence[BisectionRecord]
    left_out: Sequence[LeftOut]
    now: datetime
    target: Path
    bundles: Path | None = None
    is_recording: bool = False
    settings: ChangedSettings = field(default_factory=dict)
    profiles: Sequence[ProfileComparison] = ()
    old_trials: Mapping[TrialId, str] = field(default_factory=dict)

    @cached_property
    def previous(self) -> Mapping[TrialId, TrialId]:
        """Return the trial to compare each with, if there is one."""
        return find_previous(self.heads.values())

    def digest_of(self, trials: Iterable[TrialId]) -> str:
        """Digest what trials measured; empty where one has no digest, so that nothing is sure."""
        digests = [self.digests.get(trial, "") for trial in trials]
        return digest(digests) if all(digests) else ""

    def places_of(self, trials: Iterable[TrialId]) -> str:
        """Digest which of some trials are old, and so where links to them lead."""
        return digest(self.old_trials.get(trial, "") for trial in trials)

    @property
    def caveats(self) -> Mapping[str, str]:
        """What a reader must know of the numbers of each testbed, by its name."""
        return {name: testbed.caveat for name, testbed in self.catalog.testbeds.items()}


def find_previous(heads: Iterable[TrialHead]) -> Mapping[TrialId, TrialId]:
    """Return the trial to compare each with: the last completed one of its experiment and config name.

    Of the same release where there is one, else of another; both on the same class of testbed. An
    invalid trial may be of anything, and one that failed may have ended before its hosts were read.
    Results of other programs are passed over. `heads` are in the order of their start.
    """
    latest: dict[tuple[str, ...], TrialId] = {}
    found: dict[TrialId, TrialId] = {}
    for head in heads:
        if head.purpose is Purpose.IMPORTED:
            continue
        of_kind = head.release.system, head.experiment, head.config.name, head.testbed_class
        of_release = *of_kind, head.release.version
        if before := latest.get(of_release) or latest.get(of_kind):
            found[head.id] = before
        if head.status is TrialStatus.COMPLETED:
            latest[of_kind] = latest[of_release] = head.id
    return found


def read_context(
    paths: DataPaths,
    catalog: Catalog,
    now: datetime,
    target: Path,
    *,
    judged: JudgedHistory | None = None,
    links_bundles: bool = True,
    is_recording: bool = False,
) -> SiteContext:
    """Read a data directory; judge its history as of `now`, unless it is judged already.

    Raises:
        HistoryError: the history cannot be read.

    """
    judged = judged or judge_any(paths, catalog, now.date())
    by_id = {head.id: head for head in judged.heads}
    return SiteContext(
        heads=by_id,
        digests=judged.digests,
        bounds=judged.bounds,
        archive=StoredArchive(paths.history, judged.environments),
        judgement=judged.judgement,
        catalog=catalog,
        nights=read_nights(paths),
        comparisons=read_results(paths),
        bisections=read_bisections(paths),
        left_out=find_left_out(paths, by_id),
        now=now,
        target=target,
        bundles=paths.trials if links_bundles else None,
        is_recording=is_recording,
        settings=judged.settings,
        profiles=read_profile_comparisons(paths),
        old_trials=find_old_trials(judged.heads),
    )


def find_left_out(paths: DataPaths, known: Collection[TrialId]) -> tuple[LeftOut, ...]:
    """Return the bundles on disk that are none of the known trials; only these are read."""
    return tuple(
        LeftOut(name=name, fault=_find_fault(paths.trials / name))
        for name in bundle.list_names(paths)
        if name not in known
    )


def _find_fault(path: Path) -> str:
    """Describe what makes a bundle unreadable; nothing if it is sound."""
    try:
        bundle.read(path)
    except (BundleError, OSError) as error:
        # The site may be published: it names places inside of the data directory only.
        return str(error).replace(f"{path.parent}{os.sep}", "")
    return ""
