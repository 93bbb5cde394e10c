"""How a new site takes the place of the old one: in one step, by the name of its directory.

What was made waits in a staging directory beside the site. There the replacement is put together: the
whole new site, of hard links. It is exchanged with the site in one step, which only Linux can. While it
is in place, the site's own directory is brought up to date file by file, and exchanged back in one
step: so its rights stay, and who holds it open goes on reading, as a server that was started in it or a
bind mount.

Where that cannot be, for the site is a mount point or the system has no such step, the staging
directory is inside of the site, which is brought up to date file by file, the front page last. What is
made there gets the group and the rights that it would get in the site.
"""

import ctypes
import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from perf.local import durable

FRONT = "index.html"
MARKER = ".knickpoint-site"
LOCK = f"{MARKER}.lock"
MOST_BYTES = 512 * 1024**2
"""Of the marker: it has a line for each file of the site."""

_INSIDE = ".new-site-"
_BESIDE = ".knickpoint-"
_RANDOM = r"[a-z0-9_]{8}"
"""What `tempfile` adds to a name."""
_MADE, _SITE, _OURS = "made", "site", f"{MARKER}.room"
"""What a staging directory holds; the last one says that it is one, and not somebody's backup."""
_FEW = 100
"""Up to so many files are brought to the disk one by one, which leaves what others wrote alone."""
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_CANNOT_BE = frozenset(
    {
        *(errno.EACCES, errno.EBUSY, errno.EINVAL, errno.EMLINK, errno.ENAMETOOLONG),
        *(errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM, errno.EROFS, errno.EXDEV),
    }
)
"""What the operating system says where it has no such step; of a full disk it says others."""


class NotDurableError(OSError):
    """The new site is in place, but the disk did not say that it stays there if the power fails."""


@contextmanager
def staging_for(place: Path) -> Iterator[Path]:
    """Yield an empty directory for what is made of the site at `place`; it is gone afterwards.

    What a build that was killed left goes first: only one builds at a time.

    Raises:
        OSError: there is no room on the disk.

    """
    for left in _find_left(place):
        _remove_staging(left)
    staging = _make_beside(place) or Path(tempfile.mkdtemp(prefix=_INSIDE, dir=place))
    try:
        made = staging / _MADE
        made.mkdir(exist_ok=True)
        yield made
    finally:
        _remove_staging(staging)


def put_in_place(made: Path, place: Path, kept: Collection[str], marker: str) -> None:
    """Make a site of the files of `kept`, as they were made or, not made again, are in place.

    `made` is what `staging_for` gave; `marker` is what the site remembers of itself.

    Raises:
        NotDurableError: the new site is in place, and may not be there any more if the power fails.
        OSError: the old site is as it was; if it was changed file by file, of both.

    """
    staged = made.with_name(_SITE)
    if not (staged.is_dir() and _exchange_whole(made, place, staged, kept, marker)):
        _sync([file.path for _, file in walk_files(made)], place)
        _update(made, place, kept, marker)
        return
    # The new site is whole, and in place.
    try:
        try:
            _sync_names(staged, place)
        finally:
            # Should this fail, the replacement stays there as it is.
            with suppress(OSError):
                _update(made, staged, kept, marker)
                _sync(_names_in(staged), staged)
                exchange(staged, place)
        _sync_names(staged, place)
    except OSError as error:
        raise NotDurableError(error.errno, error.strerror, str(place)) from error


def exchange(one: Path, other: Path) -> None:
    """Exchange the names of two directories or files in one step.

    Raises:
        OSError: the operating system or the file system has no such step, or refuses.

    """
    renameat2: Callable[..., int] | None = getattr(_libc(), "renameat2", None)
    if renameat2 is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(other))


def walk_files(
    place: Path | os.DirEntry[str], path: str = ""
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield all files below a directory, with their paths from there; no links."""
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from walk_files(entry, f"{path}{entry.name}/")
            elif entry.is_file(follow_symlinks=False):
                yield f"{path}{entry.name}", entry


def _find_left(place: Path) -> Iterator[Path]:
    """Yield the staging directories of builds that were killed."""
    yield from place.glob(f"{_INSIDE}*")
    beside = re.compile(re.escape(f".{place.name}{_BESIDE}") + _RANDOM)
    for path in place.parent.glob(".*"):
        if not beside.fullmatch(path.name) or path.is_symlink() or not path.is_dir():
            continue
        # Whoever made an empty one was killed before it could say that it is one.
        if (path / _OURS).is_file() or not any(path.iterdir()):
            yield path


def _remove_staging(staging: Path) -> None:
    """Remove a staging directory, as far as that can be; what says that it is one goes last."""
    for inner in (_MADE, _SITE):
        shutil.rmtree(staging / inner, ignore_errors=True)
    shutil.rmtree(staging, ignore_errors=True)


def _make_beside(place: Path) -> Path | None:
    """Make a staging directory whose content can be exchanged with the site; None where none can."""
    if os.path.ismount(place):
        return None
    try:
        staging = Path(tempfile.mkdtemp(prefix=f".{place.name}{_BESIDE}", dir=place.parent))
    except OSError:
        return None
    try:
        (staging / _OURS).touch()
        _inherit(place, staging)
        (staging / _MADE).mkdir()
        (staging / _SITE).mkdir()
        # Asked before anything is made. A bind mount of the same file system shows in the link alone.
        exchange(staging / _MADE, staging / _SITE)
        os.link(place / LOCK, staging / _MADE / LOCK, follow_symlinks=False)
        (staging / _MADE / LOCK).unlink()
    except OSError:
        _remove_staging(staging)
        return None
    return staging


def _inherit(place: Path, staging: Path) -> None:
    """Let what is made there get the group and rights that it would get in the site."""
    shutil.copystat(place, staging)  # with the rights that an ACL says for what is made there
    found = place.stat()
    if found.st_mode & stat.S_ISGID:
        os.chown(staging, -1, found.st_gid)
    staging.chmod(stat.S_IRWXU | found.st_mode & stat.S_ISGID)


def _exchange_whole(made: Path, place: Path, staged: Path, kept: Collection[str], marker: str) -> bool:
    """Exchange the site with the whole new one; return whether that can be."""
    try:
        _link_all(made, place, staged, kept)
        (staged / MARKER).write_text(marker)
        fresh = [file.path for _, file in walk_files(made)]
        _sync([*fresh, *_names_in(staged)], staged)
        exchange(staged, place)
    except OSError as error:
        if error.errno in _CANNOT_BE:
            return False
        raise
    return True


def _link_all(made: Path, place: Path, staged: Path, kept: Collection[str]) -> None:
    """Put a whole site together of links to what was made and what is in place; with the same lock."""
    fresh = {path for path, _ in walk_files(made)}
    _copy_rights(place, staged)
    os.link(place / LOCK, staged / LOCK, follow_symlinks=False)
    folders = {""}
    for path in kept:
        folder = path.rpartition("/")[0]
        if folder not in folders:
            _make_like(place, staged, folder)
            folders.add(folder)
        source = made if path in fresh else place
        os.link(f"{source}/{path}", f"{staged}/{path}", follow_symlinks=False)


def _make_like(place: Path, staged: Path, folder: str) -> None:
    """Make a folder of the replacement with the rights of the site's own, where it has one."""
    (staged / folder).mkdir(parents=True, exist_ok=True)
    for one in (Path(folder), *Path(folder).parents[:-1]):
        if (place / one).is_dir() and not (place / one).is_symlink():
            _copy_rights(place / one, staged / one)


def _copy_rights(source: Path, target: Path) -> None:
    shutil.copystat(source, target)
    found = source.stat()
    with suppress(PermissionError):  # a group that is not ours
        os.chown(target, found.st_uid, found.st_gid)


def _names_in(place: Path) -> list[str]:
    """Return what must be on the disk for the names in a site to be there: folders and the marker."""
    return [*(root for root, _, _ in os.walk(place)), f"{place}/{MARKER}"]


def _sync_names(staged: Path, place: Path) -> None:
    """Bring the names of two exchanged sites to the disk."""
    for one in {staged.parent, place.parent}:
        durable.sync(one)


def _sync(paths: Sequence[str], place: Path) -> None:
    """Bring files and folders to the disk; if they are many, in one call, all of their file system.

    One by one, each takes some milliseconds, and the disk flushes its cache for each.
    """
    if len(paths) <= _FEW:
        for path in paths:
            durable.sync(Path(path))
        return
    syncfs: Callable[[int], int] | None = getattr(_libc(), "syncfs", None)
    if syncfs is None:
        os.sync()
        return
    handle = os.open(place, os.O_RDONLY)
    try:
        if syncfs(handle):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(place))
    finally:
        os.close(handle)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _update(made: Path, target: Path, kept: Collection[str], marker: str) -> None:
    """Move what was made into a site, the front page last, and remove what is no part of it.

    So whoever reads meanwhile finds what the front page leads to, before and after.
    """
    # From here on what was known of the site does not hold.
    (target / MARKER).write_text("{}")
    folders = {target}
    for path, file in sorted(walk_files(made), key=lambda one: one[0] == FRONT):
        place = target / path
        if place.parent not in folders:
            _make_folder(place.parent, target)
            folders.add(place.parent)
        try:
            os.replace(file.path, place)  # noqa: PTH105  a path of its own for each of many takes time
        except IsADirectoryError:
            shutil.rmtree(place)
            os.replace(file.path, place)  # noqa: PTH105
    for root, inner, names in os.walk(target, topdown=False):
        inside = root[len(f"{target}") + 1 :]
        for name in (*names, *(one for one in inner if Path(root, one).is_symlink())):
            path = f"{inside}/{name}" if inside else name
            if path not in kept and path not in {MARKER, LOCK}:
                Path(root, name).unlink()
        with suppress(OSError):  # it is not empty
            Path(root).rmdir()
    (target / MARKER).write_text(marker)


def _make_folder(folder: Path, target: Path) -> None:
    """Make a folder of the site; what stands in its way goes, and no link leads out of the site."""
    for one in (*reversed(folder.parents), folder):
        if target in one.parents and (one.is_symlink() or one.is_file()):
            one.unlink()
    folder.mkdir(parents=True, exist_ok=True)
