"""`knickpoint selftest`: whether an instrument reports what was planted."""

import tempfile
from pathlib import Path

import click

from perf.errors import MeasureError
from perf.progress import Progress
from perf.selftest.finding import Finding, Outcome, merge_outcomes
from perf.selftest.floor import measure_floor
from perf.selftest.scenarios import SCENARIOS, Profile, run_until_told
from perf.selftest.stand import Stand
from perf.selftest.table import conclude, format_findings, format_floor

_EXPECTED_S = 65.0


@click.group()
def selftest() -> None:
    """Test Knickpoint's own instruments against a truth that is known."""


@selftest.command()
def engine() -> None:
    """Check that the load engine reports what was planted; then show what it costs.

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

    Needs a minute, two cores and nothing else that runs. It needs no configuration and keeps nothing.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    progress = Progress(expected_s=_EXPECTED_S)
    findings: list[Finding] = []
    with tempfile.TemporaryDirectory(prefix="knickpoint-selftest-") as directory:
        stand = Stand(directory=Path(directory))
        for scenario in SCENARIOS:
            findings += run_until_told(scenario, stand, Profile(), progress.tell)
        progress.tell("the engine's own floor")
        floor = measure_floor(stand)
    click.echo(f"{format_findings(findings)}\n\n{format_floor(floor)}\n")
    if merge_outcomes(findings) is not Outcome.OK:
        raise MeasureError(conclude(findings))
    click.echo(conclude(findings))
