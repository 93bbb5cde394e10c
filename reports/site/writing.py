"""The site on disk: what changed is made aside, then put in place in one step (`publishing`).

A site remembers of each file by which version of its content it was made, so that a night which moves
ten series writes the pages of ten series. If making anything fails, the old site stays.
"""

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from analysis.orchestration.workers import work_through
from perf.local import disk
from perf.local.plain_files import read_plain
from perf.local.progress import Progress
from perf.local.standing import digest_sources
from perf.model.errors import SiteError, UsageError
from perf.model.shown import list_some
from reports.site.publishing import (
    FRONT,
    LOCK,
    MARKER,
    MOST_BYTES,
    NotDurableError,
    put_in_place,
    staging_for,
    walk_files,
)

Item = TypeVar("Item")

_WAIT_S = 600.0
"""How long a report waits for another one that writes the same site."""
_SMALL = 200
"""Up to so many files are made in this process: starting others would take as long."""


@dataclass(frozen=True, slots=True)
class SiteFile:
    """One file of the site; `path` is relative to its root, with forward slashes.

    `of` is the path of the page that the file comes and goes with, where its batch does not name it.
    """

    path: str
    content: bytes
    of: str = ""


def digest(parts: Iterable[str]) -> str:
    """Digest texts into the version of what is made of them."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Known:
    """What a site remembers of one of its files: version, content, and the page that it goes with."""

    version: str
    sha256: str
    length: int
    of: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """Files that are made together, since they share what is expensive to read.

    `versions` gives by path a digest of all that goes into a file: an equal one makes an equal file,
    which is not made again. An empty one says that only making it tells. `make` gives at least the
    files of the paths that it is asked for.
    """

    versions: Mapping[str, str]
    make: Callable[[Collection[str]], Iterable[SiteFile]]


@dataclass(frozen=True, slots=True)
class LazyBatches:
    """Batches that are found where they are made, since to tell what is new takes time, too.

    `files` is how many they hold, more or less: it tells how much there is to do.
    """

    files: int
    batches: Callable[[], Iterable[Batch]]


def in_parts(
    items: Iterable[Item],
    size: int,
    batches: Callable[[tuple[Item, ...]], Iterable[Batch]],
    files: int = 1,
) -> Iterator[LazyBatches]:
    """Yield the batches of all items, found for so many at a time; each item has so many files."""
    rest = iter(items)
    while some := tuple(islice(rest, size)):
        yield LazyBatches(files * len(some), partial(batches, some))


def flatten(batches: Iterable[Batch | LazyBatches]) -> Iterator[Batch]:
    """Yield all batches, also those of parts."""
    for one in batches:
        yield from one.batches() if isinstance(one, LazyBatches) else (one,)


def batch_of(*ready: SiteFile) -> Batch:
    """Return a batch of files that are made already."""
    return Batch({file.path: "" for file in ready}, lambda _: ready)


def write_site(
    target: Path, batches: Iterable[Batch | LazyBatches], progress: Progress | None = None
) -> Path:
    """Bring the site at `target` up to date; return the path of its front page.

    Equal batches give an equal directory, byte for byte, whatever was there. A file of no batch is
    removed. If making anything fails, the old site stays as it was. Many files are made on all cores.

    Raises:
        SiteError: the operating system refuses.
        UsageError: `target` holds something that is not a site of ours; it is never replaced.

    """
    progress = progress or Progress()
    with held(target, progress) as place, explained(target):
        marker = _read_marker(place)
        known, foreign = _read_known(place, marker), _find_foreign(place, marker)
        with staging_for(place) as aside:
            kept = _make(batches, aside, known, progress)
            put_in_place(aside, place, kept, _write_marker(kept))
    if foreign := [path for path in foreign if path not in kept]:
        progress.report(
            f"site: {target} is replaced as a whole; what Knickpoint had not written there is gone: "
            + ", ".join(list_some(foreign, 3))
        )
    return place / FRONT


@contextmanager
def held(target: Path, progress: Progress | None = None) -> Iterator[Path]:
    """Keep other reports from a site, which begins to be one here; give its resolved path.

    Whoever reads what a site tells does so in here, too: a report that began earlier would else put
    the older site back. May be entered again by the thread that is inside.

    Raises:
        SiteError: the operating system refuses.
        UsageError: `target` is no place for a site, or another report holds it for too long.

    """
    with explained(target):
        place = Path(os.path.realpath(target))
        check_target(place)
        place.mkdir(parents=True, exist_ok=True)
        # First: a folder with nothing but a lock in it would not be known as a site.
        with suppress(FileExistsError), (place / MARKER).open("x") as marker:
            marker.write("{}")
        lock = _acquire(place, progress or Progress())
    with lock:
        yield place


def _acquire(place: Path, progress: Progress) -> AbstractContextManager[object]:
    lock = FileLock(place / LOCK, is_singleton=True)
    try:
        return lock.acquire(timeout=0)
    except Timeout:
        progress.report(f"site: another report writes {place}; this one waits for it")
    try:
        return lock.acquire(timeout=_WAIT_S)
    except Timeout:
        raise UsageError(
            f"another report has been writing {place} for {_WAIT_S:g} s; wait until it has ended, then "
            "run this one again, or choose another place with --output"
        ) from None


@contextmanager
def explained(target: Path) -> Iterator[None]:
    """Turn what the operating system refuses while the site `target` is made into a SiteError."""
    try:
        yield
    except ChildProcessError as error:
        raise SiteError(
            f"the site {target} cannot be made: {error}; the old one stays as it was; run it again "
            "when the machine has room for it"
        ) from error
    except NotDurableError as error:
        raise SiteError(
            f"the site {target} is new, but may not stay if the power fails: {error.strerror}\n"
            f"{disk.next_step(error) or 'Look after the disk, then run it again'}"
        ) from error
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise SiteError(
            f"the site {target} cannot be made: {error.strerror or error}{where}\n"
            f"{disk.next_step(error) or 'Give room and rights there, then run it again'}; or choose "
            "another place with --output or --data"
        ) from error


def check_target(target: Path) -> None:
    """Refuse a directory that a site must not replace.

    Raises:
        UsageError: it holds something that is not a site of ours.

    """
    if not os.path.lexists(target):
        return
    # In this order: another report may begin here meanwhile, and writes the marker first.
    is_empty = target.is_dir() and not any(target.iterdir())
    if not is_empty and not (target / MARKER).is_file():
        raise UsageError(
            f"{target} holds files that Knickpoint did not write, and a site replaces its whole "
            "directory; move them away, or give --output an empty or a new directory"
        )


def digest_of_code() -> str:
    """Return a digest of this package: pages that another version made are made again."""
    return digest_sources("reports")


def _read_marker(target: Path) -> Mapping[str, Any]:
    """Return what the site remembers; nothing if in doubt."""
    try:
        content = json.loads(read_plain(target / MARKER, MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _find_foreign(target: Path, marker: Mapping[str, Any]) -> list[str]:
    """Return the files that the site does not remember; none if it remembers nothing."""
    own = marker.get("files")
    if not isinstance(own, dict):
        return []
    # Hidden ones are ours: marker, lock, what a killed build left.
    return sorted(
        path for path, _ in walk_files(target) if not path.startswith(".") and path not in own
    )


def _read_known(target: Path, marker: Mapping[str, Any]) -> dict[str, Known]:
    """Return what the site remembers of the files it still has as they were; nothing if in doubt."""
    try:
        return _compare(target, marker)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _compare(target: Path, content: Mapping[str, Any]) -> dict[str, Known]:
    """Hold what the marker says against the files; raise whatever a marker of another kind leads to."""
    written_ns = (target / MARKER).stat().st_mtime_ns
    is_same = content["code"] == digest_of_code()
    known = {
        path: Known(str(version), str(sha256), length, str(of))
        for path, (version, sha256, length, of) in content["files"].items()
    }
    there = {
        path
        for path, found in walk_files(target)
        if (one := known.get(path)) and _is_as_written(one, found.stat(), written_ns)
    }
    incomplete = {one.of for path, one in known.items() if path not in there}
    return {
        path: one if is_same and path not in incomplete else replace(one, version="")
        for path, one in known.items()
        if path in there
    }


def _is_as_written(known: Known, found: os.stat_result, written_ns: int) -> bool:
    """Return whether nobody has changed a file since: the marker is the last that a build writes."""
    return found.st_size == known.length and found.st_mtime_ns <= written_ns


def _make(
    batches: Iterable[Batch | LazyBatches], aside: Path, known: Mapping[str, Known], progress: Progress
) -> dict[str, Known]:
    """Make aside what is not in place; give what is to be remembered of each file of the new site."""
    going_with: dict[str, dict[str, Known]] = defaultdict(dict)
    for path, before in known.items():
        if before.of:
            going_with[before.of][path] = before
    same: list[str] = []
    todo: list[LazyBatches] = []
    for one in batches:
        if isinstance(one, LazyBatches):
            todo.append(one)
        elif wanted := _find_wanted(one, known):
            todo.append(LazyBatches(len(wanted), partial(iter, (one,))))
        else:
            same += one.versions
    done, size = 0, sum(part.files for part in todo)

    def report(place: int) -> None:
        nonlocal done
        done += todo[place].files
        progress.report_sometimes(f"site: {done:,} of {size:,} pages and their data made")

    make = partial(_make_part, aside=aside, known=known)
    kept: dict[str, Known] = {}
    for unchanged, made in work_through(make, todo, report, is_small=size <= _SMALL):
        same += unchanged
        kept |= made
    for path in same:
        kept[path] = known[path]
        kept |= going_with.get(path, {})
    return kept


def _find_wanted(batch: Batch, known: Mapping[str, Known]) -> Collection[str]:
    """Return the paths of the files that are not in place, or of which only making them tells."""
    return {
        path
        for path, version in batch.versions.items()
        if not (version and path in known and known[path].version == version)
    }


def _make_part(
    part: LazyBatches, aside: Path, known: Mapping[str, Known]
) -> tuple[list[str], dict[str, Known]]:
    """Make what is wanted of a part; give the paths of what need not be made, then what was."""
    same: list[str] = []
    made: dict[str, Known] = {}
    for batch in part.batches():
        wanted = _find_wanted(batch, known)
        same += batch.versions.keys() - wanted
        if wanted:
            made |= _make_batch(batch, wanted, aside, known)
    return same, made


def _make_batch(
    batch: Batch, wanted: Collection[str], aside: Path, known: Mapping[str, Known]
) -> dict[str, Known]:
    """Make what is wanted of a batch and keep aside what differs from what is in place."""
    made = {}
    for file in batch.make(wanted):
        sha256 = hashlib.sha256(file.content).hexdigest()
        version = batch.versions.get(file.path, "")
        made[file.path] = Known(version, sha256, len(file.content), file.of)
        if file.path in known and known[file.path].sha256 == sha256:
            continue
        place = aside / file.path
        try:
            place.write_bytes(file.content)
        except FileNotFoundError:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(file.content)
    return made


def _write_marker(kept: Mapping[str, Known]) -> str:
    content = {
        "about": "Written by `knickpoint report`, which replaces this whole directory.",
        "code": digest_of_code(),
        "files": {
            path: (one.version, one.sha256, one.length, one.of) for path, one in sorted(kept.items())
        },
    }
    return json.dumps(content)
