"""docs/reliability.md promises what tests hold, and tests hold what it promises."""

import re
from collections import defaultdict
from pathlib import Path

import pytest
from kept import DOCS, read_promises

ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"^\| `([a-z-]+)` \| .+? \| (.+?) \| .*\|$", re.MULTILINE)
_MARK = re.compile(r"mark\.keeps\(([^)]*)\)")


def find_holders() -> dict[str, set[str]]:
    """Give the test files that hold each promise, by its name."""
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
