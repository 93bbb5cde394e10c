"""Where Knickpoint keeps what it makes: one data directory, and one cache for downloads."""

import errno
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from filelock import FileLock


@dataclass(frozen=True, slots=True)
class DataPaths:
    """The files of one data directory (`--data`, by default var/)."""

    data: Path

    @property
    def trials(self) -> Path:
        """Trial bundles, one directory each."""
        return self.data / "trials"

    @property
    def nights(self) -> Path:
        """The plan of each night, one JSON file each."""
        return self.data / "nights"

    @property
    def known_nights(self) -> Path:
        """All plans of nights as they were read last, so that none of them is opened again."""
        return self.data / "known-nights.json"

    @property
    def comparisons(self) -> Path:
        """The plan and the result of each side-by-side comparison, one directory each."""
        return self.data / "comparisons"

    @property
    def bisections(self) -> Path:
        """What each bisection asked and learned, one directory each."""
        return self.data / "bisections"

    @property
    def history(self) -> Path:
        """The history file."""
        return self.data / "history.duckdb"

    @property
    def readings(self) -> Path:
        """What the detector saw in series, so that the next judgement need not look again."""
        return self.data / "readings.json"

    @property
    def observations(self) -> Path:
        """What trials measured, by series, so that the next judgement reads only those that are new."""
        return self.data / "observations.npz"

    @property
    def answer(self) -> Path:
        """What `detect` said last, so that nothing is judged again while nothing is new."""
        return self.data / "answer.json"

    @property
    def owner_id(self) -> Path:
        """A random id, by which this directory's own is known on an attached cluster."""
        return self.data / "owner-id"

    @property
    def found_releases(self) -> Path:
        """What the sources of builds have offered, and the checksums of what was fetched of it."""
        return self.data / "releases.json"

    @property
    def site(self) -> Path:
        """The static site."""
        return self.data / "site"

    @property
    def site_stamp(self) -> Path:
        """What the site was made from, so that a report without news need not look further."""
        return self.data / "site-stamp.json"

    @property
    def sent_log(self) -> Path:
        """What a chat channel was sent of each incident, so that nothing is reported twice."""
        return self.data / "told.json"

    @property
    def run(self) -> Path:
        """Working directories of nodes and engines while a trial runs."""
        return self.data / "run"

    @property
    def conformance_logs(self) -> Path:
        """The servers' logs of each `conformance` run, one directory each."""
        return self.data / "conformance"

    @property
    def tried_logs(self) -> Path:
        """The servers' logs of each workload that was tried, one directory each."""
        return self.data / "tried"

    @property
    def lock(self) -> Path:
        """Held by the one process that may measure into this data directory."""
        return self.data / "measuring.lock"


def cache_dir() -> Path:
    """Return the download cache: $KNICKPOINT_CACHE, or the user's cache directory."""
    chosen = os.environ.get("KNICKPOINT_CACHE")
    return Path(chosen) if chosen else platformdirs.user_cache_path("knickpoint")


@contextmanager
def hold_in_cache(lock: Path) -> Iterator[None]:
    """Hold a lock of the cache, or none where this user may only read there, and so changes nothing.

    Raises:
        OSError: the directory of the lock is not there, or cannot be used.

    """
    held: AbstractContextManager[object]
    try:
        held = FileLock(lock).acquire()
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EROFS) or not lock.parent.is_dir():
            raise
        held = nullcontext()
    with held:
        yield
