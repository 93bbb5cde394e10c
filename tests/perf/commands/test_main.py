"""Every way a command can end has its exit code; 1 is kept for a regression that was found."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import click.testing
import pytest

from perf.commands import main as cli
from perf.model.errors import ConfigError, HostUnfit, UsageError

COMMAND = [sys.executable, "-m", "perf.commands.main"]


@pytest.fixture(autouse=True)
def keep_signal_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (None, 0, ""),
        (UsageError("no suite x"), 2, "knickpoint: no suite x\n"),
        (ConfigError(["a.yaml: wrong", "b.yaml: wrong"]), 2, "2 problems in the configuration"),
        (HostUnfit("too little memory"), 3, "knickpoint: too little memory\n"),
        (click.UsageError("no such option"), 2, "no such option"),
        (KeyboardInterrupt(), 130, "the same command goes on from there"),
        (OSError(28, "No space left on device", "var/x"), 3, "var/x: No space left on device"),
        (OSError(13, "Permission denied"), 3, "knickpoint: Permission denied"),
        (BrokenPipeError(32, "Broken pipe"), 0, ""),
        (ZeroDivisionError("ours"), 3, "a defect of Knickpoint"),
    ],
)
def test_exit_codes(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException | None,
    code: int,
    said: str,
) -> None:
    def fail() -> None:
        if error is not None:
            raise error

    group = cli.knickpoint
    monkeypatch.setattr(group, "get_command", lambda *_: click.Command("x", callback=fail))
    monkeypatch.setattr(sys, "argv", ["knickpoint", "x"])
    out, err = sys.stdout, sys.stderr
    with pytest.raises(SystemExit) as ended:
        cli.main()
    sys.stdout, sys.stderr = out, err  # click wraps them on a broken pipe
    assert ended.value.code == code
    assert said in capsys.readouterr().err


def test_a_regression_found_is_exit_code_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> None:
        click.get_current_context().exit(1)

    monkeypatch.setattr(cli.knickpoint, "get_command", lambda *_: click.Command("x", callback=found))
    monkeypatch.setattr(sys, "argv", ["knickpoint", "x"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1


def test_a_reader_that_has_seen_enough_is_no_failure() -> None:
    with subprocess.Popen(
        [*COMMAND, "history", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdout is not None
        run.stdout.close()
        assert run.wait(60) == 0


@pytest.mark.slow
def test_a_data_directory_that_cannot_be_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    where = ("--configs", "tests/data/configs", "--data", str(tmp_path / "file" / "x"))
    run = subprocess.run(
        [*COMMAND, "measure", "--suite", "fake-short", *where],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    assert run.returncode == 3
    assert "Traceback" not in run.stderr
    assert "Not a directory" in run.stderr


def test_help_has_each_command_in_a_group_and_in_a_line() -> None:
    said = click.testing.CliRunner().invoke(cli.knickpoint, ["--help"]).output
    groups = dict(re.findall(r"^([A-Z][a-z ]+):\n((?:  .+\n)+)", said, re.MULTILINE))
    listed = {
        title: [line.split(maxsplit=1) for line in lines.splitlines()]
        for title, lines in groups.items()
        if title != "Options"
    }
    assert list(listed) == ["Every day", "Investigate", "Set up"]
    reported = [line for lines in listed.values() for line in lines]
    assert sorted(name for name, _ in reported) == sorted(
        one.name for one in entry_points(group=cli.GROUP)
    )
    context = click.Context(cli.knickpoint)
    for name, summary in reported:
        command = cli.knickpoint.get_command(context, name)
        assert command is not None
        assert command.get_short_help_str(200).rstrip(".") == summary


def test_each_summary_of_a_command_fits_in_a_line() -> None:
    def summaries(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                one = command.get_command(context, name)
                assert one is not None
                yield f"{path} {name}", one.get_short_help_str(200).rstrip(".")
                yield from summaries(one, f"{path} {name}")

    found = dict(summaries(cli.knickpoint, "knickpoint"))
    assert len(found) > 30
    assert {name: text for name, text in found.items() if not 0 < len(text) <= 50} == {}


@pytest.mark.parametrize(
    ("words", "meant"), [(["nightl"], "nightly"), (["history", "shw"], "show"), (["xyzzy"], None)]
)
def test_a_wrong_command_name_is_answered_with_the_nearest_one(words: list[str], meant: str) -> None:
    done = click.testing.CliRunner().invoke(cli.knickpoint, words)
    assert done.exit_code == 2
    assert re.findall(r"mean '(\w+)'", done.output) == ([meant] if meant else [])


def test_measure_without_arguments_says_what_it_would_do_and_starts_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "measure", "--data", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    start = f"`knickpoint measure --suite quickstart --data {tmp_path}` measures, in about"
    assert start in done.stderr
    assert "  cassandra-sensor at 5.0.0, 5.0.9\n" in done.stderr
    assert not list(tmp_path.glob("nights/*"))
