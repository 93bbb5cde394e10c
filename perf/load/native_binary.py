"""Where the built native load engine is, and whether it is that of these very sources.

`make native` builds it; a digest of the sources names the directory of what was built from them, so a
binary of other sources is never taken for it.
"""

import hashlib
import os
import sys
from pathlib import Path

from perf.local.paths import cache_dir
from perf.local.progress import note
from perf.model.errors import UsageError

ENGINE = "knickload"
"""The program that offers load."""
NULL_SERVER = "knicknull"
"""The program beside it that answers as CQL and MongoDB servers do, and keeps nothing."""
SETTING = "KNICKPOINT_NATIVE"
"""The environment variable that names the engine's program where it was built elsewhere."""
SOURCES = Path(__file__).with_name("native")
DEVOPS_TABLES = Path(__file__).parents[1] / "workloads" / "devops" / "tables.json"
"""What the sources include from elsewhere."""
_DIGITS = 16


def find_native(program: str = ENGINE) -> Path:
    """Return the path of a built program: of what KNICKPOINT_NATIVE names, else of what was built here.

    The environment variable names the engine; other programs are looked for beside it.

    Raises:
        UsageError: there is none; the text says how to get one.

    """
    if named := os.environ.get(SETTING):
        path = (
            Path(named).absolute().with_name(program) if program != ENGINE else Path(named).absolute()
        )
        if _is_program(path):
            return path
        raise UsageError(
            f"the environment variable {SETTING} is {named}, but {path} is no program; let it name a "
            f"built {ENGINE}, or unset it"
        )
    path = built_dir() / program
    if _is_program(path):
        return path
    raise UsageError(
        f"the native load engine is not built from these sources: {path} is not there; "
        f"say: {build_command()}"
    )


def build_command() -> str:
    """Return what builds the engine: in a checkout, its Makefile; else what was installed with it."""
    is_checkout = Path(__file__).parents[2].joinpath("Makefile").is_file()
    return "make native" if is_checkout else f"{sys.executable} -m perf.load.native_build"


def source_digest(sources: Path) -> str:
    """Return 16 hexadecimal digits that name all that the build reads: manifest, lock file, code."""
    digest = hashlib.sha256()
    code = sorted(path for path in (sources / "src").rglob("*") if path.is_file())
    for path in (sources / "Cargo.toml", sources / "Cargo.lock", *code, DEVOPS_TABLES):
        name = path.relative_to(sources).as_posix() if path.is_relative_to(sources) else path.name
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:_DIGITS]


def native_cache() -> Path:
    """Return where all builds are kept, outside of the tree; it may be removed at any time."""
    return cache_dir() / "native"


def built_dir() -> Path:
    """Return where the programs built from these sources are, or are to be."""
    return native_cache() / source_digest(SOURCES)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def main() -> int:
    """Print where the engine is, for those who install it elsewhere; exit code 2 if it is not built."""
    try:
        sys.stdout.write(f"{find_native()}\n")
    except UsageError as error:
        note(str(error))
        return error.exit_code
    return 0


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


if __name__ == "__main__":
    sys.exit(main())
