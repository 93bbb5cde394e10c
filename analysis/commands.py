"""The command that judges: read the history, judge it, say what was found."""

from collections.abc import Iterator
from pathlib import Path

import click

from analysis import words
from analysis.detection import ChangePoint
from analysis.judgement import JudgedSeries, Judgement, judge
from analysis.step_detector import StepDetector
from analysis.verdict import WORST_FIRST, Outcome
from perf import config
from perf.errors import HistoryError
from perf.history.store import open_history
from perf.options import configs_option, data_option
from perf.places import Places

_REGRESSION_FOUND = 1


@click.command()
@data_option
@configs_option
def detect(data: Path, configs: Path | None) -> None:
    """Judge the history: where performance changed, and how the newest state stands.

    Each series (one metric of one operation under one workload, over the releases of a line) is
    searched for change points and gets a verdict, worst first:

    \b
    regressed   its newest level is worse: significant, confirmed by enough points, relevant
    invalid     there is no valid trial, or no rule to judge it by
    undecided   too few points, too much scatter, or a change that more points must confirm
    improved    its newest level is better, by the same measures
    unchanged   shown to be equivalent to what came before

    "No change found" alone is never called unchanged. A change is provisional until enough points
    lie on both sides of it: one point cannot tell a spike from a step. The numbers behind these
    words are in detection.yaml of the configuration directory, each with its reason.

    Exit code 1 if a series regressed, else 0. The history is only read; trials that were measured
    for another purpose than the schedule are left out.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    judgement = judge_history(Places(data), configs or config.default_root())
    for line in describe(judgement):
        click.echo(line)
    if judgement.verdict.outcome is Outcome.REGRESSED:
        click.get_current_context().exit(_REGRESSION_FOUND)


def judge_history(places: Places, configs_root: Path) -> Judgement:
    """Judge the history of a data directory by the rules of a configuration directory.

    Raises:
        ConfigError: the configuration is wrong.
        HistoryError: the history cannot be read, or holds values that no trial can have measured.

    """
    settings = config.load_catalog(configs_root).detection
    with open_history(places.history, read_only=True) as history:
        observations = history.observations()
    try:
        return judge(observations, settings, StepDetector(settings=settings))
    except ValueError as error:
        raise HistoryError(
            f"{places.history}: {error}; mend or remove the bundle of this trial in {places.trials},"
            " then run: knickpoint history rebuild"
        ) from error


def describe(judgement: Judgement) -> Iterator[str]:
    """Say what was found, one line each: series worst first, then the verdict over all."""
    ranked = sorted(judgement.series, key=lambda judged: WORST_FIRST.index(judged.verdict.outcome))
    for judged in ranked:
        yield from _describe_series(judged)
    yield judgement.verdict.reason


def _describe_series(judged: JudgedSeries) -> Iterator[str]:
    yield f"{judged.verdict.outcome:<11} {words.series(judged.series.key)}"
    yield f"            {judged.verdict.reason}"
    for change in judged.change_points:
        yield f"            {_describe_change(change)}"


def _describe_change(change: ChangePoint) -> str:
    return "  ".join(
        (
            f"{change.outcome} {words.place(change)}:",
            f"{words.value(change.before)} → {words.value(change.after)} {words.unit(change)}",
            words.signed_percent(change.relative_change),
            words.p_value(change.p_value),
            f"{words.points(change.points_after)} after",
            change.state,
        )
    )
