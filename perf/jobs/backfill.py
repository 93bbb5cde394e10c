"""Fill the past: measure the cells of a matrix that are not known yet, the most informative first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from perf.history import bundle
from perf.jobs.feasible import planned_s
from perf.jobs.matrix import (
    Cell,
    Grid,
    Tally,
    count_known,
    count_trial,
    expect_s,
    next_cell,
    plan_cells,
)
from perf.jobs.measuring import Job, fetch_release, measure_extra
from perf.model.errors import BundleError, ReleaseError, UsageError
from perf.model.results import Source, Trial, TrialStatus
from perf.model.shown import format_duration
from perf.releases.artifacts import copy_variable


@dataclass(slots=True)
class Backfill:
    """A matrix under way: what is wanted, what is there, and what could not be had."""

    session: Job
    grid: Grid
    tally: Tally
    trials: list[Trial] = field(default_factory=list)
    lost: dict[Cell, str] = field(default_factory=dict)
    """What could not be measured, with the reason."""

    def announce(self) -> str:
        """Say how many cells there are, how many of them are known, and how long the rest takes."""
        cells, left = self.grid.cells(), plan_cells(self.grid, self.tally)
        known = len(cells) - len(set(left))
        if not left:
            return f"{len(cells)} cells, all known: nothing is left to measure"
        about = format_duration(self.expect_s(left))
        return f"{len(cells)} cells, {known} known; {count_cells(left)} to measure, about {about}"

    def expect_s(self, cells: Sequence[Cell]) -> float:
        """Give about how long these cells take, in seconds."""
        planned = [planned_s(row.deployment) for row in self.grid.rows]
        return expect_s(self.grid, self.tally, cells, planned)

    def measure(self, minutes: float | None) -> None:
        """Measure cell after cell until all is measured or no further trial fits; hold the lock.

        Raises:
            HostUnfit: the hosts cannot carry any trial.
            UsageError: not even the first trial fits.

        """
        clock = self.session.progress.clock
        begun_s, number = clock(), 0
        while cell := next_cell(self.grid, self.tally):
            needs_s = self.expect_s([cell])
            if minutes is not None and clock() - begun_s + needs_s > 60 * minutes:
                if number:
                    return
                raise UsageError(
                    f"no trial fits into {minutes:g} minutes: {cell.experiment} takes about "
                    f"{format_duration(needs_s)}; give --minutes more"
                )
            number += 1
            left = plan_cells(self.grid, self.tally)
            self.session.progress.expect(self.expect_s(left))
            what = f"{cell.experiment} at {cell.release.version}"
            self.session.progress.heading(f"cell {number} of {number - 1 + len(left)}: {what}")
            self._measure_cell(cell)

    def _measure_cell(self, cell: Cell) -> None:
        # What a cell needs is fetched just before it: most of a large matrix may wait for another day.
        try:
            fetched = fetch_release(self.session, cell.experiment, cell.release.version)
        except ReleaseError as error:
            self._give_up(cell, str(error))
            return
        if fetched[1].source is Source.PATH:
            name = copy_variable(cell.release)
            self._give_up(cell, f"a local copy is no point of a release's series; unset {name}")
            return
        trial = measure_extra(self.session, cell.experiment, fetched)
        self.trials.append(trial)
        count_trial(self.tally, self.grid, trial)
        if trial.status is TrialStatus.COMPLETED:
            self.lost.pop(cell, None)
        else:
            self.lost[cell] = "; ".join(reason.text for reason in trial.reasons)

    def _give_up(self, cell: Cell, why: str) -> None:
        self.session.progress.tell(f"skipped: {why}")
        for each in self.grid.cells():
            if each.release == cell.release and self.tally.completed[each] < self.grid.repeat:
                self.tally.give_up(each)
                self.lost[each] = why


def read_known(session: Job, grid: Grid) -> Tally:
    """Count the trials of the data directory; tell of each bundle that cannot be read."""
    return count_known(grid, _read_trials(session))


def _read_trials(session: Job) -> Iterator[Trial]:
    # The bundles are read, not the history: they are there at once, and none of them is missing.
    for place in bundle.find(session.places):
        try:
            yield bundle.read(place)[0]
        except BundleError as error:
            session.progress.tell(f"not counted: {error}")


def count_cells(cells: Sequence[Cell]) -> str:
    """Return how many trials these cells take, in words."""
    return "1 trial" if len(cells) == 1 else f"{len(cells)} trials"
