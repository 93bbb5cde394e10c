"""`knickpoint history`: what a person types and reads."""

import csv
import inspect
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import click
import pytest
from catalogs import shipped
from click.testing import CliRunner, Result

from perf.commands.history import history
from perf.history import bundle
from perf.history.store import Appended, append_all
from perf.local.paths import DataPaths
from perf.model.errors import BundleError, HistoryError, UsageError
from perf.model.results import Interval, Reason, Trial, TrialStatus

IMPORTS = Path(__file__).parents[2] / "data" / "imports"


def run(paths: DataPaths, *arguments: str) -> str:
    """Run a subcommand; raise what it raises, return what it prints."""
    return invoke(paths, *arguments).stdout


def invoke(paths: DataPaths, *arguments: str) -> Result:
    return CliRunner().invoke(
        history, [*arguments, "--data", str(paths.data)], catch_exceptions=False, standalone_mode=False
    )


def silent(_text: str) -> None:
    """Swallow progress."""


def test_show_lists_trials_with_reasons(
    paths: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    reasons = (
        Reason(kind="errors", text="2 % of\nwrites failed\x1b[2J"),
        Reason(kind="b", text="more"),
    )
    make_bundle(make_trial(status=TrialStatus.INVALID, reasons=reasons))
    append_all(paths, silent)
    head, line, foot = run(paths, "show").splitlines()
    assert head.split() == ["night", "release", "experiment", "status", "reason", "trial"]
    assert line == (
        "2026-03-01  cassandra 5.0.4  sensor-write  invalid  2 % of writes failed [2J; more  "
        "2026-03-01-sensor-write-cassandra-5.0.4"
    )
    assert foot == "(1 row)"


def test_percentile_of_a_release(filled_once: DataPaths) -> None:
    by_release = run(filled_once, "percentile", "--release", "5.0.4", "--experiment", "sensor-write")
    head, *lines = by_release.splitlines()
    assert head == "response_time of write in saturation, all iterations, 1 trial"
    assert [line.split()[0] for line in lines] == ["p50", "p99", "p99.9"]
    assert by_release == run(filled_once, "percentile", "--trial", "trial-4")
    narrow = ("--metric", "service_time", "--iteration", "1", "--percentile", "99.99")
    text = run(filled_once, "percentile", "--trial", "trial-4", "--phase", "saturation", *narrow)
    assert text.startswith("service_time of write in saturation, iteration 1, 1 trial\np99.99")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name trials either by"),
        (("--trial", "trial-4", "--release", "5.0.4"), "name trials either by"),
        (("--trial", "absent"), "no such trial in the history: absent"),
        (("--release", "9.9"), "no completed trial has release 9.9"),
        (("--experiment", "sensor-write"), r"differ in version \(5.0.3, 5.0.4, 5.0.5\)"),
        (("--trial", "trial-4", "--phase", "steady"), "have: --phase saturation --operation write"),
    ],
)
def test_percentile_refuses_what_has_no_answer(
    filled_once: DataPaths, arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        run(filled_once, "percentile", *arguments)


def test_sql_as_table_and_as_csv(filled: DataPaths) -> None:
    query = "SELECT version, ordinal, NULL AS nothing, 'a,b' AS text FROM trials ORDER BY ordinal DESC"
    assert run(filled, "sql", query).splitlines()[:2] == [
        "version  ordinal  nothing  text",
        "5.0.5    5                 a,b",
    ]
    assert list(csv.reader(run(filled, "sql", query, "--csv").splitlines()))[1] == [
        "5.0.5",
        "5",
        "",
        "a,b",
    ]
    assert run(filled, "sql", "SELECT 1 AS one WHERE false") == "one\n(0 rows)\n"
    with pytest.raises(UsageError, match="the query failed"):
        run(filled, "sql", "DROP TABLE trials")


@pytest.mark.parametrize("query", ["", "  ", ";", "/* only a comment */"])
def test_sql_without_a_statement_is_refused(filled_once: DataPaths, query: str) -> None:
    with pytest.raises(UsageError, match=r"no statement in the query .*: knickpoint history schema"):
        run(filled_once, "sql", query)


def test_schema_explains_each_table() -> None:
    text = CliRunner().invoke(history, ["schema"], catch_exceptions=False).stdout
    assert "trials: One row per trial" in text
    assert "SHA-256 of the bundle's manifest" in text


def test_rebuild_reports_what_it_left_out(paths: DataPaths, bundles: tuple[Path, ...]) -> None:
    (bundles[1] / bundle.TRIAL).unlink()
    with pytest.raises(BundleError, match="1 of 3 bundles were left out"):
        run(paths, "rebuild")
    assert "(2 rows)" in run(paths, "show")


def test_rebuild_says_what_it_did(paths: DataPaths, bundles: tuple[Path, ...]) -> None:
    result = invoke(paths, "rebuild")
    assert result.stdout == f"{paths.history}: rebuilt from 3 trial bundles\n"
    assert result.stderr.splitlines() == [f"appended {place.name}" for place in bundles]


def test_verify_says_which_bundles_are_bad(filled: DataPaths, bundles: tuple[Path, ...]) -> None:
    assert run(filled, "verify") == f"{len(bundles)} of {len(bundles)} bundles are whole\n"
    (bundles[0] / "trial.json").write_text("{")
    with pytest.raises(BundleError, match=r"2 of 3 bundles are whole; bad or gone, see above: 1"):
        run(filled, "verify")


def test_nothing_to_read_or_to_rebuild_from(paths: DataPaths) -> None:
    with pytest.raises(HistoryError, match="there is no history"):
        run(paths, "show")
    with pytest.raises(UsageError, match=r"no trial bundles.*knickpoint nightly"):
        run(paths, "rebuild")


def test_append_without_bundles_makes_no_history(paths: DataPaths) -> None:
    with pytest.raises(UsageError, match=r"no trial bundles in .*trials to append; .*--data"):
        append_all(paths, silent)
    assert not paths.data.exists()
    paths.trials.mkdir(parents=True)
    with pytest.raises(UsageError, match="no trial bundles"):
        append_all(paths, silent)
    assert [path.name for path in paths.data.iterdir()] == ["trials"]


def test_append_without_bundles_to_a_history_adds_nothing(filled: DataPaths) -> None:
    names = tuple(sorted(path.name for path in filled.trials.iterdir()))
    shutil.rmtree(filled.trials)
    assert append_all(filled, silent) == Appended(new=0, known=0, bad=(), gone=names)


@pytest.mark.slow
def test_examples_of_the_help_answer_where_the_shipped_suite_was_measured(
    paths: DataPaths,
    make_bundle: Callable[..., Path],
    make_trial: Callable[..., Trial],
    make_interval: Callable[..., Interval],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Run each example as it stands, on a trial of the newest release that `quickstart` measures."""
    shutil.copy(IMPORTS / "results.csv", tmp_path)
    shutil.copy(IMPORTS / "ycsb-new.txt", tmp_path / "run-1.txt")
    monkeypatch.chdir(tmp_path)
    experiment = shipped().suite("quickstart").experiments[0]
    release = replace(make_trial().release, version=experiment.releases[-1])
    intervals = [
        make_interval([1000, 2000], phase=phase) for phase in ("write-saturation", "write-steady")
    ]
    make_bundle(make_trial(id="TRIAL", experiment=experiment.name, release=release), intervals)
    append_all(paths, silent)
    examples = [
        each
        for command in (history, *history.commands.values())
        for each in _examples(command)
        if each[0] not in {"at", "migrate"}  # of a lake: test_lake_commands
    ]
    assert len(examples) >= 8
    for example in examples:
        place = [] if example == ["schema"] else ["--data", str(paths.data)]
        done = CliRunner().invoke(history, [*example, *place], catch_exceptions=False)
        assert (done.exit_code, done.stdout != "") == (0, True), example


def _examples(command: click.Command) -> Iterator[list[str]]:
    """Give the arguments of each example in a command's help; an example may go on, deeper indented."""
    text = re.sub(r"\\\n *", "", inspect.cleandoc(command.help or ""))
    for example in re.findall(r"^knickpoint history (.*(?:\n {2,}.*)*)", text, re.MULTILINE):
        yield shlex.split(re.split(" {6,}", example)[0])  # what explains it stands far to the right


def test_each_command_explains_itself() -> None:
    for name in history.commands:
        result = CliRunner().invoke(history, [name, "--help"])
        assert result.exit_code == 0
        assert len(result.stdout.splitlines()) > 5
