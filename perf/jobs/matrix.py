"""A matrix of releases × experiments: what of it is known, and which cell teaches most next. Pure.

Every choice follows from what has been measured so far alone, so a matrix that was stopped goes on as
if it had not been.
"""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NoReturn

from perf.local.problems import suggest_few
from perf.model.design import Deployment
from perf.model.errors import UsageError
from perf.model.identity import content_hash, named
from perf.model.results import Purpose, Release, Trial, TrialStatus

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
        """Give the cell at a release."""
        return Cell(experiment=self.experiment, release=release)

    def cells(self) -> Iterator[Cell]:
        """Give the row's cells by line, oldest first."""
        return (self.cell(release) for line in self.lines for release in line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """All that is wanted: `repeat` completed trials of each cell."""

    rows: tuple[MatrixRow, ...]
    repeat: int = 1

    def cells(self) -> tuple[Cell, ...]:
        """Give all cells, by experiment and line, oldest first."""
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

    def copy(self) -> "Tally":
        """Give a tally that can be changed without changing this one."""
        return replace(self, completed=self.completed.copy(), failed=self.failed.copy())


def count_trial(tally: Tally, grid: Grid, trial: Trial) -> bool:
    """Count a trial for each cell that it answers; tell whether there is any.

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
    return bool(answered)


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
    """Give the cell that teaches most now, or None when all is measured or was tried in vain.

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
    return _most_telling(row, still_open, measured)


def plan_cells(grid: Grid, tally: Tally) -> tuple[Cell, ...]:
    """Give the order in which the rest will be measured if every trial completes."""
    ahead, order = tally.copy(), []
    while cell := next_cell(grid, ahead):
        ahead.completed[cell] += 1
        order.append(cell)
    return tuple(order)


def expect_s(grid: Grid, tally: Tally, cells: Iterable[Cell], planned_s: Sequence[float]) -> float:
    """Give about how long these cells take, in seconds.

    The median of an experiment's own trials is the best guess; before the first, `planned_s` is, which
    has a value for each row of the grid.
    """
    guesses = {
        row.experiment: statistics.median(tally.taken_s.get(row.experiment, [planned]))
        for row, planned in zip(grid.rows, planned_s, strict=True)
    }
    return sum(guesses[cell.experiment] for cell in cells)


def choose_rows(
    deployments: Sequence[Deployment], known: Mapping[str, Sequence[Release]], wanted: Sequence[str]
) -> tuple[MatrixRow, ...]:
    """Give a row for each deployment that any of the wanted releases belongs to.

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
        listed = (each for each in all_of_it if each.version in deployment.experiment.releases)
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


def _most_telling(row: MatrixRow, still_open: set[Cell], measured: set[Cell]) -> Cell:
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
    """Give the releases that a text stands for; none if one that it names is unknown."""
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
