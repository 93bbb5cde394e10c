"""The command that judges: read the history, judge it, say what was found."""

from datetime import UTC, datetime
from pathlib import Path

import click

from analysis.commands.backtest import INPUT_FORMAT, input_path, judge_file
from analysis.detection.verdict import Outcome
from analysis.orchestration.kept_answer import answer_for
from perf.commands.options import configs_option, data_option
from perf.config.catalog import default_root, load_catalog
from perf.local.paths import DataPaths
from perf.model.errors import UsageError

_REGRESSION_FOUND = 1


@click.command(epilog=INPUT_FORMAT)
@data_option
@configs_option
@click.option("--input", "series_file", type=input_path, help="Judge these series, not the history.")
@click.option("--output", type=input_path, help="Where their changes go.  [default: standard output]")
def detect(data: Path, configs: Path | None, series_file: Path | None, output: Path | None) -> None:
    """Judge the history: what changed, and where.

    Each series (one metric of one operation under one workload, over the releases of a line) is
    searched for change points and gets a verdict, worst first:

    \b
    regressed   its newest level is worse: significant, confirmed by enough points, relevant
    invalid     there is no valid trial, or no rule to judge it by
    undecided   too few points, too much scatter, or a change that more points must confirm
    improved    its newest level is better, by the same measures
    unchanged   shown to be equivalent to what came before

    "No change found" alone is never called unchanged. A change is provisional until enough points
    lie on both sides of it, or until both releases differ when compared on the same hosts: one point
    cannot tell a spike from a step. The numbers behind these words are in detection.yaml of the
    configuration directory, each with its reason.

    Where nothing is new since it was last asked on the same day, the last answer is given again.
    Exit code 1 if a series regressed, else 0. The history is only read; trials that were measured
    for another purpose than the schedule are no points of any series.

    With --input it judges the series of a file instead, of any origin, by the same rules:

    \b
    CHANGES.json, series in the order of the input, changes ascending by index:
      {"series": [
        {"name": "a",
         "changes": [
           {"index": 120,              first point after the change
            "state": "confirmed",      or "provisional"
            "before": 100.2,           mean levels of the segments on both sides
            "after": 91.0,
            "relative_change": -0.092, (after - before) / |before|; null from zero
            "p_value": 3.1e-9,
            "outcome": "regressed"}    or "improved", by the direction that is better
         ],
         "noise_floor": 0.011,         standard deviation of a point / level
         "minimum_detectable_effect": 0.041,
                                       smallest relative step that 3 nights show
         "drifts": [{"first": 40, "last": 90, "before": 99.8, "after": 104.1}],
         "spreads": [{"index": 70, "before": 1.0, "after": 2.9, "p_value": 1e-6}]}
      ]}

    Both noise figures are null where they are not known, so also with fewer points than
    minimum_points in detection.yaml; such a series has no changes. Drifts are slow movements, no
    steps; spreads are changes of the scatter. A file may hold regressions that were fixed long ago,
    so the exit code says only that it was judged: 0.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    if series_file is not None:
        judge_file(series_file, output, configs)
        return
    if output is not None:
        raise UsageError("--output is for the changes of --input; name the file of series, too")
    catalog = load_catalog(configs or default_root())
    answer = answer_for(DataPaths(data), catalog, datetime.now(UTC).date())
    for line in answer.lines:
        click.echo(line)
    if answer.outcome is Outcome.REGRESSED:
        click.get_current_context().exit(_REGRESSION_FOUND)
