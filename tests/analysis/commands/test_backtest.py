import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from analysis.commands.backtest import backtest
from analysis.commands.detect import detect
from perf.model.errors import ConfigError, InputError, UsageError

CONFIGS = str(Path(__file__).parents[2] / "data" / "configs")


def step(seed: int, size: float = 0.06) -> list[float | None]:
    generator = random.Random(seed)  # noqa: S311  test data, not a secret
    values: list[float | None] = [
        generator.gauss(100 * (1 + size) if index >= 24 else 100, 1) for index in range(40)
    ]
    values[30] = None
    return values


@pytest.fixture
def series_file(tmp_path: Path) -> Path:
    """Return a file of a rise, a drop and a series of two values."""
    path = tmp_path / "series.json"
    series = [
        {"name": "rise", "better": "lower", "values": step(1)},
        {"name": "drop", "better": "lower", "values": step(2, -0.06)},
        {"name": "short", "better": "higher", "values": [1.0, 2.0]},
    ]
    path.write_text(json.dumps({"series": series}))
    return path


def run(command: click.Command, *arguments: object) -> Result:
    result = CliRunner().invoke(command, ["--configs", CONFIGS, *map(str, arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_the_changes_of_each_series_are_written_in_the_order_of_the_file(series_file: Path) -> None:
    result = run(detect, "--input", series_file)
    rise, drop, short = json.loads(result.stdout)["series"]
    assert result.exit_code == 0
    for found, outcome, size in ((rise, "regressed", 0.06), (drop, "improved", -0.06)):
        (change,) = found["changes"]
        assert (change["index"], change["state"], change["outcome"]) == (24, "confirmed", outcome)
        assert change["relative_change"] == pytest.approx(size, abs=0.02)
        assert 0 <= change["p_value"] < 0.001
        assert 0.003 < found["noise_floor"] < 0.02
        assert 0.01 < found["minimum_detectable_effect"] < 0.1
    assert short == {
        "name": "short",
        "changes": [],
        "noise_floor": None,
        "minimum_detectable_effect": None,
        "drifts": [],
        "spreads": [],
    }
    assert "3 series judged: 2 confirmed and 0 suspected changes" in result.stderr


def test_the_nights_of_each_series_are_replayed(series_file: Path) -> None:
    result = run(backtest, "--input", series_file, "--from", 20)
    rise, drop, short = json.loads(result.stdout)["series"]
    for replayed in (rise, drop):
        (alert,) = [one for one in replayed["alerts"] if one["state"] == "confirmed"]
        assert abs(alert["index"] - 24) <= 1
        assert 25 <= alert["told_at"] <= 29
        assert alert["withdrawn_at"] is None
    assert short == {"name": "short", "alerts": []}
    assert "3 series replayed: 2 confirmed" in result.stderr


@pytest.mark.parametrize("command", [detect, backtest])
def test_an_output_is_put_in_place_whole_and_nothing_else_is_said(
    command: click.Command, series_file: Path
) -> None:
    output = series_file.with_name("out.json")
    output.write_text("of yesterday")
    more = ("--from", 39) if command is backtest else ()
    result = run(command, "--input", series_file, "--output", output, *more)
    assert result.stdout == ""
    assert [one["name"] for one in json.loads(output.read_bytes())["series"]] == [
        "rise",
        "drop",
        "short",
    ]
    assert sorted(series_file.parent.iterdir()) == [output, series_file]


@pytest.mark.parametrize("command", [detect, backtest])
def test_a_wrong_file_leaves_the_output_alone(command: click.Command, series_file: Path) -> None:
    output = series_file.with_name("out.json")
    output.write_text("of yesterday")
    series_file.write_text(series_file.read_text().replace("2.0", "NaN").replace("drop", "rise"))
    more = ("--from", 39) if command is backtest else ()
    with pytest.raises(InputError) as caught:
        run(command, "--input", series_file, "--output", output, *more)
    assert len(caught.value.problems) == 2
    assert str(series_file) in str(caught.value)
    assert output.read_text() == "of yesterday"


def test_a_file_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        run(detect, "--input", tmp_path / "nothing.json")


def test_an_output_that_cannot_be_kept_is_refused_before_any_work(series_file: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        run(detect, "--input", series_file, "--output", series_file.parent / "no" / "out.json")
    with pytest.raises(UsageError, match="the input itself"):
        run(detect, "--input", series_file, "--output", series_file)
    with pytest.raises(UsageError, match="name the file of series"):
        run(detect, "--output", series_file)


def test_an_output_may_be_a_device(series_file: Path) -> None:
    assert run(detect, "--input", series_file, "--output", "/dev/null").exit_code == 0
    assert Path("/dev/null").is_char_device()


def test_without_a_configuration_the_error_says_so(series_file: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        run(detect, "--input", series_file, "--configs", tmp_path)


@pytest.mark.parametrize(("command", "reported"), [(detect, '"changes"'), (backtest, '"alerts"')])
def test_the_help_describes_both_formats(command: click.Command, reported: str) -> None:
    text = CliRunner().invoke(command, ["--help"]).output
    assert '"better": "higher"' in text
    assert reported in text
    assert "exit code 2" in text


@pytest.mark.slow
def test_an_interruption_leaves_no_output_no_traceback_and_no_process(tmp_path: Path) -> None:
    values: list[Any] = step(3) * 25
    series = [{"name": f"s{n}", "better": "lower", "values": values} for n in range(200)]
    series_file, output = tmp_path / "series.json", tmp_path / "out.json"
    series_file.write_text(json.dumps({"series": series}))
    arguments = ["detect", "--input", str(series_file), "--output", str(output), "--configs", CONFIGS]
    program = "from perf.commands.main import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        assert "200 series to judge" in process.stderr.readline()
        os.kill(process.pid, signal.SIGINT)
        rest = process.stderr.read()  # ends when the last process that holds it has ended
        assert process.wait() == 130
    assert "Traceback" not in rest
    assert "interrupted" in rest
    assert list(tmp_path.iterdir()) == [series_file]
