"""How a new site takes the place of the old one: in one step, by the name of its directory.

What was made waits in a room beside the site. There a stand-in is put together: the whole new site, of
hard links. It is exchanged with the site in one step, which only Linux can. While it stands in, the
site's own directory is brought up to date file by file, and exchanged back in one step: so its rights
stay, and who holds it open goes on reading, as a server that was started in it or a bind mount.

Where that cannot be, for the site is a mount point or the system has no such step, the room is inside
of the site, which is brought up to date file by file, the front page last. What is made in a room gets
the group and the rights that it would get in the site.
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

_INSIDE = ".new-site-"
_BESIDE = ".knickpoint-"
_RANDOM = r"[a-z0-9_]{8}"
"""What `tempfile` adds to a name."""
_MADE, _STAND_IN, _OURS = "made", "site", f"{MARKER}.room"
"""What a room beside a site holds; the last one says that it is a room, and not somebody's backup."""
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
def room_for(place: Path) -> Iterator[Path]:
    """Yield an empty directory for what is made of the site at `place`; it is gone afterwards.

    What a build that was killed left goes first: only one builds at a time.

    Raises:
        OSError: there is no room.

    """
    for left in _find_left(place):
        _remove_room(left)
    room = _make_beside(place) or Path(tempfile.mkdtemp(prefix=_INSIDE, dir=place))
    try:
        made = room / _MADE
        made.mkdir(exist_ok=True)
        yield made
    finally:
        _remove_room(room)


def put_in_place(made: Path, place: Path, kept: Collection[str], marker: str) -> None:
    """Make a site of the files of `kept`, as they were made or, not made again, are in place.

    `made` is what `room_for` gave; `marker` is what the site remembers of itself.

    Raises:
        NotDurableError: the new site is in place, and may not be there any more if the power fails.
        OSError: the old site is as it was; if it was changed file by file, of both.

    """
    stand_in = made.with_name(_STAND_IN)
    if not (stand_in.is_dir() and _stands_in(made, place, stand_in, kept, marker)):
        _sync([file.path for _, file in walk_files(made)], place)
        _update(made, place, kept, marker)
        return
    # The new site is whole, and in place.
    try:
        try:
            _sync_names(stand_in, place)
        finally:
            # Should this fail, the stand-in stays there as it is.
            with suppress(OSError):
                _update(made, stand_in, kept, marker)
                _sync(_names_in(stand_in), stand_in)
                exchange(stand_in, place)
        _sync_names(stand_in, place)
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
    """Yield the rooms of builds that were killed."""
    yield from place.glob(f"{_INSIDE}*")
    beside = re.compile(re.escape(f".{place.name}{_BESIDE}") + _RANDOM)
    for path in place.parent.glob(".*"):
        if not beside.fullmatch(path.name) or path.is_symlink() or not path.is_dir():
            continue
        # Whoever made an empty one was killed before it could say that it is a room.
        if (path / _OURS).is_file() or not any(path.iterdir()):
            yield path


def _remove_room(room: Path) -> None:
    """Remove a room, as far as that can be; what says that it is one goes last."""
    for inner in (_MADE, _STAND_IN):
        shutil.rmtree(room / inner, ignore_errors=True)
    shutil.rmtree(room, ignore_errors=True)


def _make_beside(place: Path) -> Path | None:
    """Make a room from which a stand-in can be exchanged with the site; None where none can."""
    if os.path.ismount(place):
        return None
    try:
        room = Path(tempfile.mkdtemp(prefix=f".{place.name}{_BESIDE}", dir=place.parent))
    except OSError:
        return None
    try:
        (room / _OURS).touch()
        _inherit(place, room)
        (room / _MADE).mkdir()
        (room / _STAND_IN).mkdir()
        # Asked before anything is made. A bind mount of the same file system shows in the link alone.
        exchange(room / _MADE, room / _STAND_IN)
        os.link(place / LOCK, room / _MADE / LOCK, follow_symlinks=False)
        (room / _MADE / LOCK).unlink()
    except OSError:
        _remove_room(room)
        return None
    return room


def _inherit(place: Path, room: Path) -> None:
    """Let what is made in a room get the group and rights that it would get in the site."""
    shutil.copystat(place, room)  # with the rights that an ACL says for what is made there
    found = place.stat()
    if found.st_mode & stat.S_ISGID:
        os.chown(room, -1, found.st_gid)
    room.chmod(stat.S_IRWXU | found.st_mode & stat.S_ISGID)


def _stands_in(made: Path, place: Path, stand_in: Path, kept: Collection[str], marker: str) -> bool:
    """Exchange the site with a stand-in, which is the whole new site; return whether that can be."""
    try:
        _link_all(made, place, stand_in, kept)
        (stand_in / MARKER).write_text(marker)
        fresh = [file.path for _, file in walk_files(made)]
        _sync([*fresh, *_names_in(stand_in)], stand_in)
        exchange(stand_in, place)
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


def _names_in(place: Path) -> list[str]:
    """Return what must be on the disk for the names in a site to be there: folders and the marker."""
    return [*(root for root, _, _ in os.walk(place)), f"{place}/{MARKER}"]


def _sync_names(stand_in: Path, place: Path) -> None:
    """Bring the names of two exchanged sites to the disk."""
    for one in {stand_in.parent, place.parent}:
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
