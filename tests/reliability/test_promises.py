"""docs/reliability.md promises what tests hold, and tests hold what it promises."""

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest
from kept import DOCS, main, read_promises

ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"^\| `([a-z-]+)` \| .+? \| (.+?) \| .*\|$", re.MULTILINE)
_MARK = re.compile(r"mark\.keeps\(([^)]*)\)")


def find_holders() -> dict[str, set[str]]:
    """Return the test files that hold each promise, by its name."""
    holders = defaultdict(set)
    for path in ROOT.glob("tests/**/test_*.py"):
        for names in _MARK.findall(path.read_text(encoding="utf-8")):
            for name in re.findall(r'"([a-z-]+)"', names):
                holders[name].add(path.relative_to(ROOT).as_posix())
    return holders


@pytest.mark.parametrize("name", sorted(read_promises().keys() | find_holders().keys()))
def test_a_promise_is_held_by_the_files_that_the_docs_name(name: str) -> None:
    rows = dict(_ROW.findall(DOCS.read_text(encoding="utf-8")))
    assert set(re.findall(r"`(tests/[^`]+)`", rows.get(name, ""))) == find_holders()[name]


def test_each_promise_is_made_once() -> None:
    names = [name for name, _ in _ROW.findall(DOCS.read_text(encoding="utf-8"))]
    assert len(names) == len(set(names)), names


def write_told(reported: Path, outcomes: dict[str, list[str]]) -> Path:
    """Write down how the tests of promises ended, each with a figure."""
    lines = (
        {"keeps": [name], "seconds": 1.0, "outcome": one, "figures": [f"tries: {number}"]}
        for name, all_of_them in outcomes.items()
        for number, one in enumerate(all_of_them, start=7)
    )
    reported.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return reported


def test_the_table_has_what_was_shown_of_each_promise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = {name: ["passed", "passed"] for name in read_promises()}
    assert main(str(write_told(tmp_path / "told", outcomes))) == 0
    printed = capsys.readouterr().out
    assert "kept      a-kill-loses-no-trial [2 s]\n" in printed
    assert "2 passed; tries: 7; tries: 8\n" in printed
    assert f"{len(outcomes)} of {len(outcomes)} promises kept" in printed


@pytest.mark.parametrize("ended", [[], ["passed", "skipped"], ["passed", "failed"]])
def test_a_promise_that_is_not_shown_in_full_is_reported_and_fails_the_command(
    ended: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = {name: ["passed"] for name in read_promises()} | {"host-keys": ended}
    assert main(str(write_told(tmp_path / "told", outcomes))) == 1
    assert f"NOT SHOWN host-keys [{len(ended)} s]\n" in capsys.readouterr().out
