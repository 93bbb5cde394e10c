"""Whether files are as they were, told without reading them: by what their directory says of each."""

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from sysconfig import get_paths

_NO_SOURCE = (".pyc", ".xz")


def describe_file(path: Path) -> str:
    """Return what tells a file from what it was before or will be; empty where there is none.

    Whoever writes into it, replaces it or restores an older one moves one of these numbers.
    """
    try:
        return _describe(path.stat())
    except OSError:
        return ""


def describe_folder(folder: Path) -> str:
    """Digest what tells all files below a folder from what they were; without it there are none."""
    content = hashlib.sha256()
    for path, about in sorted(_walk(f"{folder}", "")):
        content.update(f"{path}\0{about}\n".encode())
    return content.hexdigest()


def describe_names(folder: Path) -> str:
    """Digest the names of what is directly in a folder, and which of it are folders themselves."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(f"{entry.name}\0{entry.is_dir()}" for entry in entries)
    except OSError:
        found = []
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def describe_code(*packages: str) -> str:
    """Digest the sources of some of our packages, and which libraries are installed."""
    sources = tuple(map(digest_sources, packages))
    return hashlib.sha256(f"{sources} {list_libraries()}".encode()).hexdigest()


@cache
def digest_sources(package: str) -> str:
    """Digest all files of one of our packages."""
    folder, content = Path(str(files(package))), hashlib.sha256()
    for path in sorted(_list_sources(folder)):
        content.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return content.hexdigest()


def _list_sources(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.suffix not in _NO_SOURCE and path.is_file():
            yield path


@cache
def list_libraries() -> tuple[str, ...]:
    """Return the version of Python, and the libraries that are installed, by name and version."""
    folders: Iterable[str] = {get_paths()[name] for name in ("purelib", "platlib")}
    names = {one.name for folder in folders for one in Path(folder).glob("*.dist-info")}
    return (sys.version, *sorted(names))


def _walk(folder: str, inner: str) -> Iterator[tuple[str, str]]:
    try:
        entries = os.scandir(folder)
    except OSError:
        return
    with entries:
        for entry in entries:
            if entry.is_dir():
                yield from _walk(entry.path, f"{inner}{entry.name}/")
            else:
                yield f"{inner}{entry.name}", describe_file(Path(entry))


def _describe(found: os.stat_result) -> str:
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"
