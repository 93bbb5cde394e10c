"""Whether a site is still what a report would make: then a report has nothing to do, and does nothing.

A file of the data directory holds a digest of all that a site was made from: the history and what it
was judged by, plans, comparisons, bisections, which bundles there are, its own place, the code. Text
that tells how old something is says that of when the site was built; until when badges hold is kept.
Without that file, or with anything wrong in it, a report looks at each page.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from pydantic import AwareDatetime, TypeAdapter

from perf.local import durable, standing
from perf.local.paths import DataPaths
from perf.local.plain_files import read_plain
from perf.model.scalars import STRICT
from reports.site.publishing import MARKER, MOST_BYTES, walk_files
from reports.site.writing import digest

MOST_OF_STAMP = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What a site was made from, when, and until when it says the same: no time, if for good.

    `marker_sha256` is of what the site remembers of its files.
    """

    __pydantic_config__ = STRICT
    made_from: str
    built: AwareDatetime
    until: AwareDatetime | None
    marker_sha256: str


_FORM = TypeAdapter(Stamp)


def describe_surroundings(
    paths: DataPaths, target: Path, *, links_bundles: bool, is_recording: bool
) -> str:
    """Digest what a site is made from beside its judgement and the bundles that no history holds."""
    return digest(
        (
            standing.describe_code("perf", "analysis", "reports"),
            standing.describe_folder(paths.nights),
            standing.describe_folder(paths.comparisons),
            standing.describe_folder(paths.bisections),
            standing.describe_names(paths.trials),
            os.path.realpath(paths.data),
            os.path.realpath(target),
            f"{links_bundles} {is_recording}",
        )
    )


def describe_all(inputs: str, around: str, now: datetime) -> str:
    """Digest all that a site is made from; empty where what it is judged from is not known."""
    return digest((inputs, around, now.date().isoformat())) if inputs else ""


def is_current(stamp: Path, target: Path, made_from: str, now: datetime) -> bool:
    """Return whether the site in place was made from this, and nobody has touched it since."""
    try:
        kept = read_stamp(stamp)
        if not made_from or kept.made_from != made_from or now < kept.built:
            return False
        if kept.until and now >= kept.until:
            return False
        marker = read_plain(target / MARKER, MOST_BYTES)
        is_its_own = sha256(marker).hexdigest() == kept.marker_sha256
        return is_its_own and _is_whole(target, json.loads(marker)["files"])
    except (OSError, ValueError):
        return False


def read_stamp(stamp: Path) -> Stamp:
    """Read a stamp. Raises OSError or ValueError where there is none."""
    return _FORM.validate_json(read_plain(stamp, MOST_OF_STAMP))


def keep_stamp(
    stamp: Path, target: Path, made_from: str, now: datetime, until: datetime | None
) -> None:
    """Keep what a site was made from that has just been written, if the data directory lets us."""
    with suppress(OSError):
        marker = read_plain(target / MARKER, MOST_BYTES)
        kept = Stamp(
            made_from=made_from, built=now, until=until, marker_sha256=sha256(marker).hexdigest()
        )
        durable.atomic_write(stamp, _FORM.dump_json(kept))


def _is_whole(target: Path, files: Mapping[str, tuple[str, str, int, str]]) -> bool:
    """Return whether a site has all of its files, as they were written, and no others."""
    written_ns = (target / MARKER).stat().st_mtime_ns
    seen = 0
    for path, entry in walk_files(target):
        if path.startswith("."):  # ours: marker, lock
            continue
        found = entry.stat()
        if path not in files or found.st_size != files[path][2] or found.st_mtime_ns > written_ns:
            return False
        seen += 1
    return seen == len(files)
