"""Names that others chose: a terminal shows them and obeys none; what goes to a file is as it was."""

import json
import os
import pty
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.detection.series_file import FileFindings, parse_series, write_findings
from perf.commands.main import escape
from perf.history import bundle
from perf.history.store import open_history
from perf.local.paths import DataPaths
from perf.model.results import Named, Trial

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp\u2066\r\x08\x7f\u2028"
OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}
COMMAND = [sys.executable, "-m", "perf.commands.main"]


def run_on_terminal(*arguments: str | Path) -> tuple[int, str]:
    """Run a command whose output is a terminal; give its exit code and what the terminal got."""
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [*COMMAND, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
        ) as running:
            os.close(theirs)
            got = b""
            try:
                while part := os.read(ours, 65_536):
                    got += part
            except OSError:  # how the end of a terminal's program reads
                pass
        return running.returncode, got.decode()
    finally:
        os.close(ours)


def find_obeyed(text: str) -> set[str]:
    """Find what a terminal would obey; lines of one end with a carriage return."""
    return {one for one in text.replace("\r\n", "") if unicodedata.category(one) in OBEYED}


@pytest.fixture
def data(tmp_path: Path, make_trial: Callable[..., Trial]) -> Path:
    """Return a data directory whose history has a trial with hostile names."""
    paths = DataPaths(tmp_path / "var")
    named = Named(name=f"config{HOSTILE}", sha256="333333333333")
    trial = make_trial(experiment=f"write{HOSTILE}", config=named, night=f"night{HOSTILE}")
    path = bundle.seal(bundle.stage(paths, trial.id), trial, ())
    with open_history(paths.history) as history:
        history.append(path)
    return paths.data


@pytest.mark.keeps("terminals-obey-no-name")
@pytest.mark.parametrize(
    "arguments",
    [
        ("history", "show"),
        ("history", "sql", "SELECT experiment, config FROM trials"),
        ("history", "sql", "SELECT experiment, config FROM trials", "--csv"),
        pytest.param(("triage", "list"), marks=pytest.mark.slow),
        pytest.param(("detect",), marks=pytest.mark.slow),
    ],
    ids=range(5),
)
def test_no_command_hands_a_name_of_others_to_the_terminal(
    arguments: tuple[str, ...], data: Path
) -> None:
    code, text = run_on_terminal(*arguments, "--data", data)
    assert code == 0, text
    assert find_obeyed(text) == set()


@pytest.mark.slow
@pytest.mark.keeps("terminals-obey-no-name")
def test_no_error_hands_a_name_of_others_to_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / f"{HOSTILE.replace('/', '')}.json"
    item = {"name": HOSTILE, "better": HOSTILE, "values": [HOSTILE], HOSTILE: 1}
    path.write_text(json.dumps({"series": [item, item]}), encoding="utf-8")
    code, text = run_on_terminal("detect", "--input", path)
    assert code == 2
    assert "better is" in text
    assert find_obeyed(text) == set()


@pytest.mark.keeps("terminals-obey-no-name")
def test_findings_are_written_in_ascii_and_keep_their_names(tmp_path: Path) -> None:
    path = tmp_path / "series.json"
    name = f"{HOSTILE}💥é"
    path.write_text(json.dumps({"series": [{"name": name, "better": "lower", "values": []}]}))
    (series,) = parse_series(path, path.read_bytes())
    content = write_findings([FileFindings(name=series.name)])
    assert content.isascii()
    assert json.loads(content)["series"][0]["name"] == name


@pytest.mark.keeps("terminals-obey-no-name")
def test_what_goes_to_a_pipe_is_as_it_was(data: Path) -> None:
    asked = subprocess.run(
        [*COMMAND, "history", "sql", "SELECT experiment FROM trials", "--csv", "--data", data],
        capture_output=True,
        check=True,
    )
    assert HOSTILE.encode() in asked.stdout


@pytest.mark.keeps("terminals-obey-no-name")
def test_nothing_but_lines_and_tabs_is_left_to_obey_and_the_rest_stays(
    effort: Callable[[int, int], int],
) -> None:
    @settings(max_examples=effort(50, 5000), database=None)
    @given(text=st.text() | st.text(st.characters(categories=sorted(OBEYED))))
    def write(text: str) -> None:
        shown = escape(text)
        assert find_obeyed(shown) <= {"\n", "\t"}
        assert [one for one in shown if one in "\n\t"] == [one for one in text if one in "\n\t"]
        if not find_obeyed(text):
            assert shown == text

    write()
