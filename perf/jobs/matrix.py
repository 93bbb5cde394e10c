"""A matrix of releases × experiments: what of it is known, which cell teaches most next, measuring it.

Every choice follows from what has been measured so far alone, so a matrix that was stopped goes on as
if it had not been.
"""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NoReturn

from perf.history import bundle
from perf.jobs.feasible import planned_s
from perf.jobs.measuring import Job, measure_extra
from perf.local.problems import suggest_few
from perf.model.design import Deployment
from perf.model.errors import BundleError, ReleaseError, UsageError
from perf.model.identity import content_hash, named
from perf.model.results import Purpose, Release, Source, Trial, TrialStatus
from perf.model.shown import format_duration
from perf.releases.artifacts import copy_variable

ATTEMPTS = 2
"""A cell that could not be measured is tried so often, the second time behind all others."""
_COUNTED = (Purpose.SCHEDULED, Purpose.IMPORTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One experiment at one release."""

    experiment: str
    release: Release


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """The wanted releases of one experiment, by line, oldest first."""

    deployment: Deployment
    lines: tuple[tuple[Release, ...], ...]

    @property
    def experiment(self) -> str:
        """The experiment's name."""
        return self.deployment.experiment.name

    def cell(self, release: Release) -> Cell:
        """Return the cell at a release."""
        return Cell(experiment=self.experiment, release=release)

    def cells(self) -> Iterator[Cell]:
        """Return the row's cells by line, oldest first."""
        return (self.cell(release) for line in self.lines for release in line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """All that is wanted: `repeat` completed trials of each cell."""

    rows: tuple[MatrixRow, ...]
    repeat: int = 1

    def cells(self) -> tuple[Cell, ...]:
        """Return all cells, by experiment and line, oldest first."""
        return tuple(cell for row in self.rows for cell in row.cells())


@dataclass(frozen=True, slots=True)
class Tally:
    """How often each cell was measured and how often in vain, and how long trials took (seconds)."""

    completed: Counter[Cell] = field(default_factory=Counter)
    failed: Counter[Cell] = field(default_factory=Counter)
    taken_s: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """By experiment."""

    def give_up(self, cell: Cell) -> None:
        """Note that a cell cannot be measured at all: its release is out of reach, for example."""
        self.failed[cell] = max(self.failed[cell], ATTEMPTS)


def count_trial(tally: Tally, grid: Grid, trial: Trial) -> None:
    """Count a trial for each cell that it answers.

    It answers a cell if its release, topology, testbed, workload and config are the same by content
    hash, so that a changed configuration is measured anew; and if it is a point of a release's series.
    """
    answered = [
        row.cell(release)
        for row in grid.rows
        if trial.purpose in _COUNTED and _is_of(trial, row.deployment)
        for line in row.lines
        for release in line
        if release.version == trial.release.version
    ]
    counter = tally.completed if trial.status is TrialStatus.COMPLETED else tally.failed
    counter.update(answered)
    if trial.status is TrialStatus.COMPLETED:
        for cell in answered:
            seconds = (trial.finished_at - trial.started_at).total_seconds()
            tally.taken_s[cell.experiment].append(seconds)


def count_known(grid: Grid, trials: Iterable[Trial]) -> Tally:
    """Count what earlier commands measured.

    A cell that was only ever tried in vain has one attempt left: it may have been the day's fault.
    """
    tally = Tally()
    for trial in trials:
        count_trial(tally, grid, trial)
    for cell in tuple(tally.failed):
        tally.failed[cell] = 0 if tally.completed[cell] else min(tally.failed[cell], ATTEMPTS - 1)
    return tally


def next_cell(grid: Grid, tally: Tally) -> Cell | None:
    """Return the cell that teaches most now, or None when all is measured or was tried in vain.

    What has fewest trials comes first, and of that the experiment with fewest measured cells. In
    it, the ends of each line come first, then the middle of the largest gap. What failed comes last.
    """
    pending = [cell for cell in grid.cells() if tally.completed[cell] < grid.repeat]
    fresh = {cell for cell in pending if not tally.failed[cell]}
    if not fresh:
        again = [cell for cell in pending if tally.failed[cell] < ATTEMPTS]
        return min(again, key=lambda cell: tally.completed[cell], default=None)
    level = min(tally.completed[cell] for cell in fresh)
    still_open = {cell for cell in fresh if tally.completed[cell] == level}
    rows = [row for row in grid.rows if not still_open.isdisjoint(row.cells())]
    tried = [cell for cell in grid.cells() if tally.completed[cell] > level or tally.failed[cell]]
    turns = Counter(cell.experiment for cell in tried)
    row = min(rows, key=lambda row: turns[row.experiment])
    measured = {cell for cell in row.cells() if tally.completed[cell] > level}
    return _most_informative(row, still_open, measured)


def plan_cells(grid: Grid, tally: Tally) -> tuple[Cell, ...]:
    """Return the order in which the rest will be measured if every trial completes."""
    ahead = replace(tally, completed=tally.completed.copy())
    order = []
    while cell := next_cell(grid, ahead):
        ahead.completed[cell] += 1
        order.append(cell)
    return tuple(order)


def expect_s(grid: Grid, tally: Tally, cells: Iterable[Cell]) -> float:
    """Return about how long these cells take, in seconds.

    The median of an experiment's own trials is the best guess; before the first, its configuration is.
    """
    guesses = {
        row.experiment: statistics.median(taken)
        if (taken := tally.taken_s.get(row.experiment))
        else planned_s(row.deployment)
        for row in grid.rows
    }
    return sum(guesses[cell.experiment] for cell in cells)


@dataclass(slots=True)
class Backfill:
    """A matrix under way: what is wanted, what is there, and what could not be had."""

    job: Job
    grid: Grid
    tally: Tally
    trials: list[Trial] = field(default_factory=list)
    lost: dict[Cell, str] = field(default_factory=dict)
    """What could not be measured, with the reason."""

    def announce(self) -> str:
        """Say how many cells there are, how many of them are known, and how long the rest takes."""
        cells, left = self.grid.cells(), plan_cells(self.grid, self.tally)
        if not left:
            return f"{len(cells)} cells, all known: nothing is left to measure"
        count, about = self.count_left(left)
        return f"{len(cells)} cells, {len(cells) - len(set(left))} known; {count} to measure, {about}"

    def count_left(self, left: Sequence[Cell]) -> tuple[str, str]:
        """Describe how many trials are left by this plan, and about how long they take."""
        about = f"about {format_duration(expect_s(self.grid, self.tally, left))}"
        return "1 trial" if len(left) == 1 else f"{len(left)} trials", about

    def measure(self, minutes: float | None) -> None:
        """Measure cell after cell until all is measured or no further trial fits; hold the lock.

        Raises:
            HostUnfit: the hosts cannot carry any trial.
            UsageError: not even the first trial fits.

        """
        clock, progress = self.job.progress.clock, self.job.progress
        begun_s, number = clock(), 0
        while cell := next_cell(self.grid, self.tally):
            needs_s = expect_s(self.grid, self.tally, [cell])
            if minutes is not None and clock() - begun_s + needs_s > 60 * minutes:
                if number:
                    return
                raise UsageError(
                    f"no trial fits into {minutes:g} minutes: {cell.experiment} takes about "
                    f"{format_duration(needs_s)}; give --minutes more"
                )
            number += 1
            left = plan_cells(self.grid, self.tally)
            progress.expect(expect_s(self.grid, self.tally, left))
            what = f"{cell.experiment} at {cell.release.version}"
            progress.heading(f"cell {number} of {number - 1 + len(left)}: {what}")
            self._measure_cell(cell)

    def _measure_cell(self, cell: Cell) -> None:
        # What a cell needs is fetched just before it: most of a large matrix may wait for another day.
        try:
            fetched = self.job.fetch(cell.release.system, cell.release.version)
        except ReleaseError as error:
            self._give_up(cell, str(error))
            return
        if fetched.artifact.source is Source.PATH:
            name = copy_variable(cell.release)
            self._give_up(cell, f"a local copy is no point of a release's series; unset {name}")
            return
        (row,) = (row for row in self.grid.rows if row.experiment == cell.experiment)
        trial = measure_extra(self.job, row.deployment, fetched)
        self.trials.append(trial)
        count_trial(self.tally, self.grid, trial)
        if trial.status is TrialStatus.COMPLETED:
            self.lost.pop(cell, None)
        else:
            self.lost[cell] = "; ".join(reason.text for reason in trial.reasons)

    def _give_up(self, cell: Cell, why: str) -> None:
        self.job.progress.report(f"skipped: {why}")
        for each in self.grid.cells():
            if each.release == cell.release and self.tally.completed[each] < self.grid.repeat:
                self.tally.give_up(each)
                self.lost[each] = why


def open_backfill(job: Job, grid: Grid) -> Backfill:
    """Count the trials of the data directory; report each bundle that cannot be read."""
    return Backfill(job, grid, count_known(grid, _read_trials(job)))


def _read_trials(job: Job) -> Iterator[Trial]:
    # The bundles are read, not the history: they are there at once, and none of them is missing.
    for place in bundle.find(job.paths):
        try:
            yield bundle.read(place)[0]
        except BundleError as error:
            job.progress.report(f"not counted: {error}")


def choose_rows(
    deployments: Sequence[Deployment], known: Mapping[str, Sequence[Release]], wanted: Sequence[str]
) -> tuple[MatrixRow, ...]:
    """Return a row for each deployment that any of the wanted releases belongs to.

    `known` holds the releases of each system, oldest first in each line. `wanted` holds releases
    ("5.0.5"), spans of one line ("5.0.2..5.0.9") and lines ("5.0"). If it is empty, each row has the
    lines that its experiment lists releases of.

    Raises:
        UsageError: no system has such a release or line, or a span is none.

    """
    systems = tuple(dict.fromkeys(each.experiment.system for each in deployments))
    for text in wanted:
        if not any(_read(text, known[system]) for system in systems):
            _refuse(text, known, systems)
    rows = []
    for deployment in deployments:
        all_of_it = known[deployment.experiment.system]
        listed = (each for each in all_of_it if each.version in deployment.experiment.versions)
        texts = wanted or tuple(dict.fromkeys(each.line for each in listed))
        chosen = {release for text in texts for release in _read(text, all_of_it)}
        by_line: dict[str, list[Release]] = {}
        for release in all_of_it:
            if release in chosen:
                by_line.setdefault(release.line, []).append(release)
        if chosen:
            rows.append(MatrixRow(deployment=deployment, lines=tuple(map(tuple, by_line.values()))))
    return tuple(rows)


def _is_of(trial: Trial, deployment: Deployment) -> bool:
    # A series is named by topology, workload and config, too: by equal contents alone, a renamed
    # config would stay without its points. The name of a testbed is in no series.
    return (
        trial.release.system == deployment.experiment.system
        and trial.topology == named(deployment.topology)
        and trial.workload == named(deployment.workload)
        and trial.config == named(deployment.config)
        and trial.testbed.sha256 == content_hash(deployment.testbed)
    )


def _most_informative(row: MatrixRow, still_open: set[Cell], measured: set[Cell]) -> Cell:
    """Choose among the open cells of a row: newest ends, oldest ends, then middles of large gaps."""
    choices = []
    for age, line in enumerate(reversed(row.lines)):  # of equals, the newer teaches more
        cells = [row.cell(release) for release in line]
        free = [place for place, cell in enumerate(cells) if cell in still_open]
        known = [place for place, cell in enumerate(cells) if cell in measured]
        if not free:
            continue
        # The outermost cell that can be measured stands for an end that cannot.
        if not known or free[-1] > known[-1]:
            choices.append(((0, 0, 0, age), cells[free[-1]]))
        if not known or free[0] < known[0]:
            choices.append(((1, 0, 0, age), cells[free[0]]))
        for low, high in pairwise(known):
            inside = [place for place in free if low < place < high]
            if inside:
                middle = min(inside, key=lambda place: (abs(2 * place - low - high), -place))
                choices.append(((2, low - high, age, -low), cells[middle]))
    return min(choices, key=lambda choice: choice[0])[1]


def _read(text: str, known: Sequence[Release]) -> tuple[Release, ...]:
    """Return the releases that a text stands for; none if one that it names is unknown."""
    by_version = {release.version: place for place, release in enumerate(known)}
    first, dots, last = text.partition("..")
    if not dots:
        if text in by_version:
            return (known[by_version[text]],)
        return tuple(release for release in known if release.line == text)
    if first not in by_version or last not in by_version:
        return ()
    begin, end = known[by_version[first]], known[by_version[last]]
    if begin.line != end.line:
        raise UsageError(
            f"{text} spans the lines {begin.line} and {end.line}, which are branches beside each "
            "other; give a span, or the line itself, for each"
        )
    if by_version[first] > by_version[last]:
        raise UsageError(f"{text} ends before it begins; write {last}..{first}")
    within = known[by_version[first] : by_version[last] + 1]
    return tuple(release for release in within if release.line == begin.line)


def _refuse(text: str, known: Mapping[str, Sequence[Release]], systems: Sequence[str]) -> NoReturn:
    words = {word for system in systems for each in known[system] for word in (each.version, each.line)}
    versions = {each.version for system in systems for each in known[system]}
    _, dots, _ = text.partition("..")
    wrong = next((end for end in text.split("..") if end not in versions), text) if dots else text
    what = "release" if dots else "release or line"
    hint = suggest_few(wrong, versions if dots else words, f"see knickpoint releases {systems[0]}")
    raise UsageError(f"{' and '.join(systems)}: there is no {what} {wrong!r}; {hint}")
