"""The commands that judge series of any origin: a JSON file in, a JSON file out."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import click

from analysis.detection.alerts import Alert
from analysis.detection.backtest import Backtest, Judge
from analysis.detection.detection import ChangeState
from analysis.detection.series_file import (
    MOST_BYTES,
    ForeignSeries,
    FoundChange,
    parse_series,
    write_alerts,
    write_findings,
)
from analysis.detection.step_detector import StepDetector
from analysis.orchestration.workers import SMALL, Pace, work_through
from perf.commands.options import configs_option
from perf.config.catalog import default_root, load_catalog
from perf.local import durable
from perf.local.plain_files import read_plain
from perf.local.progress import Progress
from perf.model.errors import InputError, UsageError
from perf.model.rules import Detection

INPUT_FORMAT = """\b
SERIES.json, UTF-8; other keys are left alone:
  {"series": [
    {"name": "a",              text, not empty, another one for each series
     "better": "higher",       or "lower": which direction is good news
     "values": [1.0, null]}    oldest first; null: a trial that is missing
  ]}

A missing trial is left out, never filled in; every index written counts all values from 0, nulls
too. All that is wrong with the file is said at once, and nothing is written (exit code 2)."""

Answer_co = TypeVar("Answer_co", covariant=True)

input_path = click.Path(path_type=Path, dir_okay=False)


def judge_file(series_file: Path, output: Path | None, configs: Path | None) -> None:
    """Write what is to be seen in each series of a file today.

    Raises:
        ConfigError: the configuration is wrong.
        InputError: the file is no file of series.
        UsageError: the output cannot be written.

    """
    settings = _settings(configs)
    _refuse_output(series_file, output)
    series = _read(series_file)
    judge = Judge(settings=settings, detector=StepDetector(settings=settings))
    progress = Progress()
    progress.report(f"{len(series):,} series to judge")
    findings = _work_through(judge, series, progress)
    _write(output, write_findings(findings))
    changes = [change for found in findings for change in found.changes]
    progress.expected_s = None
    progress.report(f"{len(series):,} series judged: {_count(changes)} changes")


@click.command(epilog=INPUT_FORMAT)
@click.option("--input", "series_file", type=input_path, required=True, help="The series.")
@click.option("--output", type=input_path, help="Where the alerts go.  [default: standard output]")
@click.option(
    "--from", "first", type=click.IntRange(min=1), required=True, help="Points on the first night."
)
@configs_option
def backtest(series_file: Path, output: Path | None, first: int, configs: Path | None) -> None:
    """Replay any series: what would be reported when.

    Each series is judged anew after each of its points, from the N-th known one on, as if those
    after it were still to come. A change that moves within its location interval from night to
    night stays the same alert. One that is no longer seen is retracted; if it comes back to its
    place, it counts again.

    \b
    ALERTS.json, series in the order of the input, alerts ascending by index:
      {"series": [
        {"name": "a",
         "alerts": [
           {"index": 120,             first point after the change, as last seen
            "told_at": 123,           the last index known on the night it reached
            "state": "confirmed",     this state, the strongest; or "provisional"
            "withdrawn_at": null}     the last index known on the night since
         ]}                           which it is no longer seen; null: it is still seen
      ]}

    Fewer points than minimum_points in detection.yaml are never judged.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    settings = _settings(configs)
    _refuse_output(series_file, output)
    series = _read(series_file)
    replay = Backtest(settings=settings, detector=StepDetector(settings=settings), first=first)
    progress = Progress()
    progress.report(f"{len(series):,} series to judge, night by night")
    replayed = _work_through(replay, series, progress)
    _write(output, write_alerts(replayed))
    alerts = [alert for one in replayed for alert in one.alerts]
    withdrawn = sum(alert.withdrawn_at is not None for alert in alerts)
    progress.expected_s = None
    progress.report(
        f"{len(series):,} series replayed: {_count(alerts)} alerts, {withdrawn:,} retracted"
    )


class _Work(Protocol[Answer_co]):
    """What is done with each series, and how many values it searches for that."""

    def __call__(self, series: ForeignSeries, /) -> Answer_co: ...

    def cost(self, series: ForeignSeries, /) -> int: ...


def _work_through(
    work: _Work[Answer_co], series: Sequence[ForeignSeries], progress: Progress
) -> tuple[Answer_co, ...]:
    costs = [work.cost(one) for one in series]
    pace = Pace(progress, costs, "series")
    return work_through(work, series, pace.report, is_small=sum(costs) <= SMALL)


def _settings(configs: Path | None) -> Detection:
    return load_catalog(configs or default_root()).detection


def _read(path: Path) -> tuple[ForeignSeries, ...]:
    try:
        content = read_plain(path, MOST_BYTES)
    except OSError as error:
        raise InputError(path, [f"cannot be read ({error.strerror}); check the path"]) from error
    return parse_series(path, content)


def _refuse_output(series_file: Path, output: Path | None) -> None:
    """Say before any work is done that its answer could not be kept."""
    if output is None:
        return
    if not output.resolve().parent.is_dir():
        raise UsageError(f"--output {output}: its directory does not exist; make it first")
    if output.exists() and series_file.exists() and output.samefile(series_file):
        raise UsageError(f"--output {output} is the input itself; name another file")


def _write(output: Path | None, content: bytes) -> None:
    """Put a whole file in place in one step; a device or a pipe is written to."""
    if output is None:
        click.echo(content, nl=False)
        return
    target = output.resolve()
    if target.exists() and not target.is_file():
        target.write_bytes(content)
    else:
        durable.atomic_write(target, content)


def _count(found: Sequence[FoundChange] | Sequence[Alert]) -> str:
    states = Counter(one.state for one in found)
    confirmed, suspected = states[ChangeState.CONFIRMED], states[ChangeState.PROVISIONAL]
    return f"{confirmed:,} confirmed and {suspected:,} suspected"
