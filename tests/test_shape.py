"""The shape of the code: small files, small functions, names that say something. No exceptions."""

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("perf", "analysis", "reports")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

MAX_FILE_LINES = 450
"""Hard bound; from 400 lines on, look for the seam along which the file comes apart."""
MAX_FUNCTION_LINES = 60
VAGUE = {"utils", "helpers", "common", "manager", "misc", "base"}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is asked of a file; its tree is not kept, since all of them together slow Python down."""

    lines: int
    function_lines: Mapping[str, int]
    docstring: str | None
    stray_strings: Sequence[int]
    patches_by_string: bool


@cache
def read_facts(path: Path) -> Facts:
    """Give what is asked of a file, parsed once."""
    code = path.read_text()
    module = ast.parse(code)
    nodes = tuple(ast.walk(module))
    return Facts(
        lines=len(code.splitlines()),
        function_lines={
            node.name: (node.end_lineno or 0) - node.lineno + 1
            for node in nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        },
        docstring=ast.get_docstring(module),
        stray_strings=stray_strings(nodes, code),
        patches_by_string=any(map(is_patch_by_string, nodes)),
    )


def test_finds_the_code() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in SOURCES} == set(PACKAGES)


@pytest.mark.parametrize("path", [*SOURCES, *TESTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_fit_a_head(path: Path) -> None:
    assert read_facts(path).lines <= MAX_FILE_LINES
    sizes = read_facts(path).function_lines
    assert {name: size for name, size in sizes.items() if size > MAX_FUNCTION_LINES} == {}


def stray_strings(parts: Iterable[ast.AST], code: str) -> list[int]:
    """Give the lines of strings that nothing uses; in triple quotes they are documentation."""
    lines = code.splitlines()
    alone = (
        node
        for node in parts
        if isinstance(node, ast.Expr)
        and (
            isinstance(node.value, ast.JoinedStr)
            or (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str))
        )
    )
    # Columns count bytes; all that stands before a string on its own is white space.
    return [
        node.lineno for node in alone if not lines[node.lineno - 1].lstrip().startswith(('"""', 'r"""'))
    ]


def test_no_string_stands_where_a_longer_one_was_meant() -> None:
    # `a, b = c, "one " ⏎ "two"` without parentheses ends after "one ": half a sentence for people.
    planted = 'a = 1, "one "\n"two"\n"""What a is."""\nf"{a}"'
    assert stray_strings(ast.walk(ast.parse(planted)), planted) == [2, 4]
    found = {path: read_facts(path).stray_strings for path in (*SOURCES, *TESTS)}
    assert {str(path): lines for path, lines in found.items() if lines} == {}


def test_modules_have_telling_names_and_say_what_belongs_in_them() -> None:
    assert [path for path in SOURCES if path.stem in VAGUE] == []
    silent = [path for path in SOURCES if not read_facts(path).docstring]
    assert silent == []


def test_systems_own_no_sleep_clock_thread_or_print() -> None:
    # A database that waits, retries or times by itself is treated unlike the others; the fake, which
    # is a server too, does that in its own process.
    forbidden = {"time", "threading", "asyncio", "concurrent", "print", "sleep"}
    for path in (ROOT / "perf/systems").glob("*.py"):
        if path.stem == "fake":
            continue
        tree = ast.parse(path.read_text())
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            if isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.split(".")[0])
        assert names.isdisjoint(forbidden), path


def is_patch_by_string(node: ast.AST) -> bool:
    """Tell whether this is a call like mock.patch("module.name")."""
    if not (isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)):
        return False
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return called == "patch" and isinstance(node.args[0].value, str)


def test_no_test_replaces_code_by_a_path_in_a_string() -> None:
    # mock.patch("perf.…") patches nothing once the name moves; a fake is passed in instead.
    assert is_patch_by_string(ast.parse("mock.patch('perf.night.open_night')", mode="eval").body)
    assert [path for path in TESTS if read_facts(path).patches_by_string] == []
