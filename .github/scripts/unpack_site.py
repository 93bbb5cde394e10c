# ruff: noqa: INP001  a script, in no package
"""unpack_site.py ZIP DIRECTORY: unpack the site of a night, after a look at every entry.

The zip comes from a testbed, so it is data that nobody vouches for: plain files of the kinds that a
site has, in a limited number and size, and nothing that lies elsewhere. Exit code 2: it is refused as a
whole. Only the standard library, so that the job that runs this installs nothing.
"""

import re
import stat
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

MOST_FILES = 50_000
MOST_BYTES = 1_000_000_000
"""What GitHub Pages takes."""
_NEAR = 0.7
"""Of either limit: from here on it is said how much is left, as long as something can be done."""
_NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,199}/){0,6}[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
_KINDS = frozenset(
    "css gz html ico js json parquet png svg txt webmanifest woff2 xml".split()  # noqa: SIM905  one line
)
_REFUSED = 2


def find_problems(entries: list[zipfile.ZipInfo]) -> Iterator[str]:
    """Describe what is wrong with the entries of the zip."""
    if len(entries) > MOST_FILES:
        yield f"{len(entries):,} entries, at most {MOST_FILES:,} are taken"
        return
    if (size := sum(one.file_size for one in entries)) > MOST_BYTES:
        yield f"{size:,} bytes, at most {MOST_BYTES:,} are taken"
    names = [one.filename for one in entries]
    if len({one.casefold() for one in names}) < len(names):
        yield "two entries of one name"
    if "index.html" not in names:
        yield "no index.html"
    for one in entries:
        if problem := find_problem(one):
            yield f"{problem}: {one.filename[:80]!r}"


def find_growth(path: Path) -> str:
    """Describe how near to its limits a site is; nothing if it is far from them."""
    with zipfile.ZipFile(path) as archive:
        sizes = [one.file_size for one in archive.infolist()]
    if len(sizes) < _NEAR * MOST_FILES and sum(sizes) < _NEAR * MOST_BYTES:
        return ""
    return (
        f"{len(sizes):,} files of at most {MOST_FILES:,}, "
        f"{sum(sizes):,} bytes of at most {MOST_BYTES:,}; beyond either no site is published: "
        "give some experiments a data directory of their own"
    )


def find_problem(one: zipfile.ZipInfo) -> str:
    """Describe what is wrong with an entry; nothing if it may be unpacked."""
    if not _NAME.fullmatch(one.filename.removesuffix("/")):
        return "a name that no file of a site has"
    if one.flag_bits & 1:
        return "encrypted"
    if stat.S_IFMT(one.external_attr >> 16) not in {0, stat.S_IFDIR if one.is_dir() else stat.S_IFREG}:
        return "no plain file"
    if not one.is_dir() and one.filename.rpartition(".")[2] not in _KINDS:
        return "a kind of file that no site has"
    return ""


def unpack(path: Path, directory: Path) -> list[str]:
    """Unpack it if nothing is wrong with it; give what is."""
    try:
        with zipfile.ZipFile(path) as archive:
            if problems := list(find_problems(archive.infolist())):
                return problems
            # Python holds every entry to the size that was just looked at, and to its checksum.
            archive.extractall(directory)
    # zipfile raises each of these on some archive: damaged, cut off, of a method it lacks, too large.
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
        return [f"it cannot be unpacked: {error}"]
    return []


def main() -> int:
    """Do it, and say what is wrong."""
    problems = unpack(Path(sys.argv[1]), Path(sys.argv[2]))
    for problem in problems[:20]:
        sys.stdout.write(f"::error title=The site was refused::{problem}\n")
    if problems:
        return _REFUSED
    if growth := find_growth(Path(sys.argv[1])):
        sys.stdout.write(f"::warning title=The site is near its limits::{growth}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
