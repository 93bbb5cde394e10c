"""`knickpoint selftest`: whether an instrument reports what was planted."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import click

from perf.load.engines import PYTHON_ENGINE
from perf.load.native_binary import find_native
from perf.load.selftest.finding import CheckOutcome, SelftestFinding, merge_outcomes
from perf.load.selftest.floor import LADDER, NATIVE_LADDER, Floor, measure_floor
from perf.load.selftest.scenarios import SCENARIOS, LoadProfile, run_until_reported
from perf.load.selftest.stand import Stand
from perf.load.selftest.table import conclude, format_findings, format_floor
from perf.local.progress import Progress
from perf.model.design import OwnEngine
from perf.model.errors import MeasureError
from perf.systems.null.dialects import CQL, MONGO, OWN, Dialect


@dataclass(frozen=True, slots=True)
class _Plan:
    """How an engine is tested: against servers of which protocols, and up to which rates."""

    dialects: tuple[Dialect, ...]
    ladder: tuple[int, ...]
    expected_s: float


_PLANS: dict[OwnEngine, _Plan] = {
    "python": _Plan((OWN,), LADDER, 65.0),
    "native": _Plan((CQL, MONGO), NATIVE_LADDER, 140.0),
}


@click.group()
def selftest() -> None:
    """Check the load engines against known truth."""


@selftest.command()
@click.option(
    "--engine",
    "name",
    type=click.Choice(get_args(OwnEngine)),
    default="python",
    show_default=True,
    help="Which engine; the native one (make native) is tested over CQL and over MongoDB's protocol.",
)
def engine(name: OwnEngine) -> None:
    """Check that an engine reports what was planted.

    Then show what it costs.

    Starts null servers on this machine: processes that answer at planted times, with a planted stall,
    planted errors and a record of their own. Real engine processes offer them load, just as in a
    trial. Then each reported number is compared with what was planted:

    \b
      schedule       what was to start is what arrived: counts, drift, spacing
      service time   planted percentiles come back
      closed loop    as many operations in flight as planned, never more
      intended time  who had to start in a stall waited for the rest of it
      send lateness  an engine that was stopped is late, and does not blame the server
      merge          two engines make one histogram; no percentile is averaged
      counters       each operation ends in exactly one, and in the right one

    A line is ok, FAILED, or "cannot tell" where this machine's own delays, measured meanwhile, could
    explain the difference, three times in a row. Neither of the latter two is fine: the command then
    exits with 3.

    Last comes the floor: what the engine itself costs and how late it sends on this machine. A trial
    can say nothing about a database that is faster than that.

    Needs a minute for each protocol, two cores and nothing else that runs. It needs no configuration
    and keeps nothing.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    plan = _PLANS[name]
    command = PYTHON_ENGINE if name == "python" else (str(find_native()),)
    progress = Progress(expected_s=plan.expected_s)
    findings: list[SelftestFinding] = []
    for dialect in plan.dialects:
        with tempfile.TemporaryDirectory(prefix="knickpoint-selftest-") as directory:
            stand = Stand(directory=Path(directory), engine=command, dialect=dialect)
            found, floor = _test(stand, plan.ladder, progress)
        findings += found
        if dialect is not OWN:
            click.echo(f"== the {name} engine, against servers that speak {dialect.title}\n")
        click.echo(f"{format_findings(found)}\n\n{format_floor(floor)}\n")
    if merge_outcomes(findings) is not CheckOutcome.OK:
        raise MeasureError(conclude(findings))
    click.echo(conclude(findings))


def _test(
    stand: Stand, ladder: Sequence[int], progress: Progress
) -> tuple[tuple[SelftestFinding, ...], Floor]:
    findings: list[SelftestFinding] = []
    for scenario in SCENARIOS:
        findings += run_until_reported(scenario, stand, LoadProfile(), progress.report)
    progress.report("the engine's own floor")
    return tuple(findings), measure_floor(stand, ladder)
