"""What a bisection is asked: which release of a range changed a measure, and by which command."""

import shlex
from dataclasses import dataclass

from analysis.comparing.blocks import Measure
from perf.config.catalog import Catalog, find_experiment
from perf.model.design import Suite
from perf.model.errors import UsageError
from perf.model.results import Release
from perf.releases import artifacts as releases
from perf.systems import registry


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionQuestion:
    """Which release, after `first` and up to `last`, changed a measure of an experiment of a suite.

    `trials` and `minutes` are what was said of the budget, if anything; the command repeats it.
    """

    catalog: Catalog
    suite: Suite
    experiment: str
    measure: Measure
    first: str
    last: str
    trials: int | None = None
    minutes: float | None = None

    @property
    def releases(self) -> tuple[Release, ...]:
        """Give the range; raise UsageError where it is none."""
        system = find_experiment(self.suite, self.experiment).system
        return releases_between(system, self.first, self.last)

    @property
    def command(self) -> str:
        """Give the command line that asks it."""
        system = find_experiment(self.suite, self.experiment).system
        return shlex.join(
            (
                *("knickpoint", "bisect", system, f"{self.first}..{self.last}"),
                *("--suite", self.suite.name, "--experiment", self.experiment),
                *("--metric", str(self.measure)),
                *(("--trials", str(self.trials)) if self.trials else ()),
                *(("--minutes", f"{self.minutes:g}") if self.minutes else ()),
            )
        )


def releases_between(system: str, first: str, last: str) -> tuple[Release, ...]:
    """Give the releases of a line from the first to the last, both included, in order.

    Raises:
        UsageError: a release is unknown, the two are of different lines, or the first is not before
            the last.

    """
    loaded = registry.load(system)
    good, bad = (releases.find_release(loaded, version) for version in (first, last))
    if good.line != bad.line:
        raise UsageError(
            f"{first} is of line {good.line} and {last} of line {bad.line}: only releases of one line"
            " have an order. To compare two of different lines: knickpoint compare"
        )
    if good.ordinal >= bad.ordinal:
        raise UsageError(
            f"{first} is not before {last}: give the known good end first, then the known bad one;"
            f" the order is that of: knickpoint releases {system}"
        )
    within = (
        release
        for release in loaded.releases()
        if release.line == good.line and good.ordinal <= release.ordinal <= bad.ordinal
    )
    return tuple(sorted(within, key=lambda release: release.ordinal))
