"""What no line of the product does: start a shell, run text as code, load objects of others."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(
    path for package in ("perf", "analysis", "reports") for path in ROOT.glob(f"{package}/**/*.py")
)
RUNS_TEXT = {"eval", "exec", "compile", "__import__"}
RUNS_A_SHELL = {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}
LOADS_OBJECTS = {"pickle.load", "pickle.loads", "marshal.load", "marshal.loads", "shelve.open"}
# Results of our own worker processes, through a pipe that nobody else holds.
OWN_PIPES = {"analysis/orchestration/workers.py"}


def find_calls(path: Path) -> list[tuple[int, str, ast.Call]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        (node.lineno, ast.unparse(node.func), node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    ]


@pytest.mark.keeps("no-shell")
def test_no_text_is_run_as_a_command_or_as_code() -> None:
    found, calls = [], 0
    for path in FILES:
        name = path.relative_to(ROOT).as_posix()
        refused = RUNS_TEXT | RUNS_A_SHELL | (set() if name in OWN_PIPES else LOADS_OBJECTS)
        for line, function, call in find_calls(path):
            calls += 1
            has_shell = any(
                word.arg == "shell" and ast.unparse(word.value) != "False" for word in call.keywords
            )
            if has_shell or function in refused:
                found.append(f"{name}:{line}: {ast.unparse(call)[:80]}")
    assert calls > 5000
    assert found == []


@pytest.mark.keeps("no-shell")
def test_each_rule_of_security_that_is_set_aside_says_why() -> None:
    rule = re.compile(r"# noqa: (?P<codes>[A-Z]+\d+(?:, [A-Z]+\d+)*)(?P<why>.*)")
    set_aside = [
        (path.relative_to(ROOT).as_posix(), number, match["why"])
        for path in FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        for match in rule.finditer(line)
        if re.search(r"\bS\d", match["codes"])
    ]
    assert set_aside
    assert [one for one in set_aside if not re.fullmatch(r"  \S.{3,}", one[2])] == []
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
    assert lint["select"] == ["ALL"]
    ours = {
        place: codes
        for place, codes in lint["per-file-ignores"].items()
        if not place.startswith(("tests", "infra"))
    }
    assert not [
        code for codes in (lint["ignore"], *ours.values()) for code in codes if code.startswith("S")
    ]
