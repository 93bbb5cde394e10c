"""How a new site takes the place of the old one: in one step, by the name of its directory.

What was made waits in a room beside the site. There a stand-in is put together: the whole new site, of
hard links. It is exchanged with the site in one step, which only Linux can. While it stands in, the
site's own directory is brought up to date file by file, and exchanged back in one step: so its rights
stay, and who holds it open goes on reading, as a server that was started in it or a bind mount.

Where that cannot be, for the site is a mount point or the system has no such step, the room is inside
of the site, which is brought up to date file by file, the front page last.
"""

import ctypes
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FRONT = "index.html"
MARKER = ".knickpoint-site"
LOCK = f"{MARKER}.lock"

_INSIDE = ".new-site-"
_BESIDE = ".knickpoint-"
_RANDOM = r"[a-z0-9_]{8}"
"""What `tempfile` adds to a name."""
_MADE, _STAND_IN = "made", "site"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_CANNOT_BE = frozenset(
    {
        *(errno.EACCES, errno.EBUSY, errno.EINVAL, errno.EMLINK, errno.ENAMETOOLONG),
        *(errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM, errno.EROFS, errno.EXDEV),
    }
)
"""What the operating system says where it has no such step; of a full disk it says others."""


@contextmanager
def room_for(place: Path) -> Iterator[Path]:
    """Give an empty directory for what is made of the site at `place`; it is gone afterwards.

    What a build that was killed left goes first: only one builds at a time.

    Raises:
        OSError: there is no room.

    """
    for left in _find_left(place):
        shutil.rmtree(left, ignore_errors=True)
    room = _make_beside(place) or Path(tempfile.mkdtemp(prefix=_INSIDE, dir=place))
    try:
        made = room / _MADE
        made.mkdir(exist_ok=True)
        yield made
    finally:
        shutil.rmtree(room, ignore_errors=True)


def put_in_place(made: Path, place: Path, kept: Collection[str], marker: str) -> None:
    """Make a site of the files of `kept`, as they were made or, not made again, are in place.

    `made` is what `room_for` gave; `marker` is what the site remembers of itself.

    Raises:
        OSError: the old site is as it was; if it was changed file by file, of both.

    """
    stand_in = made.with_name(_STAND_IN)
    if stand_in.is_dir() and _stands_in(made, place, stand_in, kept, marker):
        # The new site is whole, and in place. Should this fail, it stays there as it is.
        with suppress(OSError):
            _update(made, stand_in, kept, marker)
            _exchange_durably(stand_in, place)
        return
    _sync(made)
    _update(made, place, kept, marker)


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
    """Give all files below a directory, with their paths from there; no links."""
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from walk_files(entry, f"{path}{entry.name}/")
            elif entry.is_file(follow_symlinks=False):
                yield f"{path}{entry.name}", entry


def _find_left(place: Path) -> Iterator[Path]:
    """Give the rooms of builds that were killed."""
    yield from place.glob(f"{_INSIDE}*")
    beside = re.compile(re.escape(f".{place.name}{_BESIDE}") + _RANDOM)
    yield from (path for path in place.parent.glob(".*") if beside.fullmatch(path.name))


def _make_beside(place: Path) -> Path | None:
    """Make a room from which a stand-in can be exchanged with the site; None where none can."""
    if os.path.ismount(place):
        return None
    try:
        room = Path(tempfile.mkdtemp(prefix=f".{place.name}{_BESIDE}", dir=place.parent))
    except OSError:
        return None
    try:
        (room / _MADE).mkdir()
        (room / _STAND_IN).mkdir()
        exchange(room / _MADE, room / _STAND_IN)  # asked before anything is made
    except OSError:
        shutil.rmtree(room, ignore_errors=True)
        return None
    return room


def _stands_in(made: Path, place: Path, stand_in: Path, kept: Collection[str], marker: str) -> bool:
    """Exchange the site with a stand-in, which is the whole new site; tell whether that can be."""
    try:
        _link_all(made, place, stand_in, kept)
        (stand_in / MARKER).write_text(marker)
        _exchange_durably(stand_in, place)
    except OSError as error:
        if error.errno in _CANNOT_BE:
            return False
        raise
    return True


def _link_all(made: Path, place: Path, stand_in: Path, kept: Collection[str]) -> None:
    """Put a whole site together of links to what was made and what is in place; with the same lock."""
    fresh = {path for path, _ in walk_files(made)}
    _copy_rights(place, stand_in)
    os.link(place / LOCK, stand_in / LOCK, follow_symlinks=False)
    folders = {""}
    for path in kept:
        folder = path.rpartition("/")[0]
        if folder not in folders:
            _make_like(place, stand_in, folder)
            folders.add(folder)
        source = made if path in fresh else place
        os.link(f"{source}/{path}", f"{stand_in}/{path}", follow_symlinks=False)


def _make_like(place: Path, stand_in: Path, folder: str) -> None:
    """Make a folder of the stand-in with the rights of the site's own, where it has one."""
    (stand_in / folder).mkdir(parents=True, exist_ok=True)
    for one in (Path(folder), *Path(folder).parents[:-1]):
        if (place / one).is_dir() and not (place / one).is_symlink():
            _copy_rights(place / one, stand_in / one)


def _copy_rights(source: Path, target: Path) -> None:
    shutil.copystat(source, target)
    found = source.stat()
    with suppress(PermissionError):  # a group that is not ours
        os.chown(target, found.st_uid, found.st_gid)


def _exchange_durably(stand_in: Path, place: Path) -> None:
    """Exchange two whole sites, so that power that fails leaves one of them in place, and it whole."""
    _sync(stand_in)
    exchange(stand_in, place)
    _sync(place)


def _sync(place: Path) -> None:
    """Bring the file system of a directory to the disk: in one call, however many files there are."""
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
