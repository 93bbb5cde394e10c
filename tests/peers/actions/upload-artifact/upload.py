"""Pack files as actions/upload-artifact packs them, into the store of the local GitHub.

Names in the zip are relative to the least common directory of the paths that were asked for, each
taken up to its first wildcard; a single file stands alone. Hidden files stay out, and what a name may
not hold on Windows is refused: https://github.com/actions/upload-artifact, src/shared/search.ts.
"""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

WILDCARD = re.compile(r"[*?\[]")
FORBIDDEN = re.compile(r'["<>|*?:\r\n]')
HERE = Path()


def split(pattern: str) -> tuple[Path, str]:
    """Return the directory or file to search below, and what is left of the pattern."""
    parts = Path(pattern).parts
    wild = next((index for index, part in enumerate(parts) if WILDCARD.search(part)), len(parts))
    return HERE.absolute().joinpath(*parts[:wild]), "/".join(parts[wild:])


def find_files(top: Path, pattern: str, *, is_hidden_wanted: bool) -> Iterator[Path]:
    """Yield the files below `top`, with all that lies in directories that match."""
    for place in top.glob(pattern) if pattern else [top]:
        for file in [place, *place.rglob("*")]:
            is_hidden = any(part.startswith(".") for part in file.relative_to(top).parts)
            if file.is_file() and (is_hidden_wanted or not is_hidden):
                yield file


def find_root(tops: list[Path], files: list[Path]) -> Path:
    """Return the directory that names in the zip are relative to."""
    if len(tops) > 1:
        return Path(os.path.commonpath(tops))
    return files[0].parent if files == tops else tops[0]


def main() -> None:
    """Pack what the inputs name, or end as they ask where there is nothing."""
    name, wanted = os.environ["NAME"], os.environ["HIDDEN"] == "true"
    lines = [line.strip() for line in os.environ["FILES"].splitlines() if line.strip()]
    if unknown := [line for line in lines if line.startswith(("!", "~"))]:
        sys.exit(f"::error::this stand-in does not know {unknown}")
    asked = [split(line) for line in lines]
    found = {one for top, rest in asked for one in find_files(top, rest, is_hidden_wanted=wanted)}
    files = sorted(found)
    if not files:
        if os.environ["IF_NONE"] == "error":
            sys.exit(f"::error::No files were found with the provided path: {lines}")
        sys.stdout.write(f"::{os.environ['IF_NONE']}::No files were found: {lines}\n")
        return
    root = find_root([top for top, _ in asked], files)
    target = Path(os.environ["KNICKPOINT_PEER_STORE"], os.environ["GITHUB_RUN_ID"], f"{name}.zip")
    if bad := [one for one in [name, *map(str, files)] if FORBIDDEN.search(one)]:
        sys.exit(f"::error::Not allowed in the name of an artifact or a file: {bad}")
    if target.exists() and os.environ["OVERWRITE"] != "true":
        sys.exit(f"::error::an artifact with the name {name} exists already on this run")
    target.parent.mkdir(parents=True, exist_ok=True)
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, file.relative_to(root))
    sys.stdout.write(f"artifact {name}: {len(files)} files, {target.stat().st_size} bytes\n")


main()
