"""The method of a trial, as facts: digests of what Knickpoint itself runs and writes when it measures.

A number can move because these files did, not because the database did. As facts of each trial they
mark the series where they change, and stand among the explanations of a change there.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

from perf.model.facts import METHOD
from perf.model.results import Fact

_PACKAGE = Path(str(files("perf")))
_PARTS = {
    "load": ("load", "workloads", "model/histograms.py", "local/hlog.py"),
    "deployment": ("trial", "hosts"),
}
"""What each system has in common: folders and files of `perf` by the name of the fact."""
_NOT_MEASURING = {"selftest", "native", "conformance", "__pycache__"}
"""Folders without a part in a trial; of the native engine, the digest of the program is a fact."""
_RELEASES = {"releases.yaml", "builds.yaml"}
"""What a release is made of has a digest of its own, that of its artifact."""


@cache  # of what this process runs, whatever becomes of the files meanwhile
def read_method(system: str, package: Path = _PACKAGE) -> tuple[Fact, ...]:
    """Return the digests of what all systems share and of what this one is started and asked with.

    `package` is the folder of `perf`. Comments, docstrings and layout do not count.
    """
    found = {
        part: {path for place in places for path in _find(package / place)}
        for part, places in _PARTS.items()
    }
    own = set(_find(package / "systems" / system))
    found[system] = own | _imported(own, package)
    return tuple(
        Fact(host="", name=METHOD + part, value=_digest(paths, package))
        for part, paths in found.items()
    )


def _digest(paths: Iterable[Path], package: Path) -> str:
    content = hashlib.sha256()
    for path in sorted(paths):
        content.update(f"{path.relative_to(package)}\n{_meaning(path)}\n".encode())
    return content.hexdigest()[:12]


def _find(folder: Path) -> Iterator[Path]:
    if folder.is_file():
        yield folder
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        if path.is_file() and not _NOT_MEASURING.intersection(parts) and path.name not in _RELEASES:
            yield path


def _imported(found: Iterable[Path], package: Path) -> set[Path]:
    """Return the modules of `perf.systems` that these import, directly or by others."""
    known, new = set(found), set(found)
    while new:
        names = {
            name
            for path in new
            if path.suffix == ".py"
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("perf.systems")
            for name in (node.module or "", *(f"{node.module}.{one.name}" for one in node.names))
        }
        paths = {package.parent / f"{name.replace('.', '/')}.py" for name in names}
        new = {path for path in paths if path.is_file()} - known
        known |= new
    return known


def _meaning(path: Path) -> str:
    """Return what a file does, without what only its readers see."""
    text = path.read_text()
    if path.suffix != ".py":
        lines = (line.strip() for line in text.splitlines())
        return "\n".join(line for line in lines if line and not line.startswith("#"))
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            # Texts that stand alone: docstrings of all kinds.
            node.body = [one for one in node.body if not _is_text(one)] or [ast.Pass()]
    return ast.dump(tree)


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
