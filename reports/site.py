"""The site on disk: written aside, then put in place in one step, so that no reader sees a part."""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from perf.errors import SiteError, UsageError
from reports.pages import SiteFile

_MARKER = ".knickpoint-site"
_MARKER_TEXT = "Written by `knickpoint report`, which replaces this whole directory.\n"
_ASIDE = ".new-site-"


def write_site(target: Path, files: Iterable[SiteFile]) -> Path:
    """Replace the site at `target` by these files; return the path of its front page.

    Equal files give an equal directory, byte for byte. If anything fails, the old site stays.

    Raises:
        SiteError: the operating system refuses.
        UsageError: `target` holds something that is not a site of ours; it is never replaced.

    """
    with explained(target):
        target = target.resolve()
        check_target(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=_ASIDE, dir=target.parent))
        fresh = aside / target.name
        try:
            fresh.mkdir()
            (fresh / _MARKER).write_text(_MARKER_TEXT)
            for file in files:
                path = fresh / file.path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file.content)
            _swap(target, fresh)
        finally:
            shutil.rmtree(aside)
    return target / "index.html"


@contextmanager
def explained(target: Path) -> Iterator[None]:
    """Turn what the operating system refuses while the site `target` is made into a SiteError."""
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise SiteError(
            f"the site {target} cannot be made: {error.strerror or error}{where}; give room and rights "
            "there, or choose another place with --output or --data"
        ) from error


def check_target(target: Path) -> None:
    """Refuse a directory that a site must not replace.

    Raises:
        UsageError: it holds something that is not a site of ours.

    """
    if not os.path.lexists(target):
        return
    is_ours = (target / _MARKER).is_file()
    is_empty = target.is_dir() and not any(target.iterdir())
    if not is_ours and not is_empty:
        raise UsageError(
            f"{target} holds files that Knickpoint did not write, and a site replaces its whole "
            "directory; give --output an empty or a new directory"
        )


def _swap(target: Path, fresh: Path) -> None:
    if not target.exists():
        fresh.rename(target)
        return
    # Beside the temporary directory, not in it: whatever happens, its removal must not take the old
    # site along.
    old = target.with_name(f"{fresh.parent.name}-old")
    target.rename(old)
    try:
        fresh.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old)
