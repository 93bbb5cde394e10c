"""The trial bundle: the files that one trial leaves behind, and the only source of the history.

A bundle is the directory `<data>/trials/<trial id>/`:

    trial.json       the whole Trial, readable, times in UTC
    intervals.hlog   its histograms, a HdrHistogram V2 interval log that the standard tools read
    settings.json    what was configured, resolved: config, workload and topology
    logs/…           what the servers logged
    profiles/…       where a profiled trial's servers spent their time, as collapsed stacks
    manifest.json    size and SHA-256 of each of these files

It is staged under another name beside its final place, and moved there in one step when it is
whole and on the disk. Once sealed it never changes. Rows and queries belong to `store`.
"""

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC
from errno import EFBIG
from pathlib import Path
from typing import Annotated

from annotated_types import Ge
from pydantic import JsonValue, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from perf.history.faults import find_faults
from perf.local import disk, durable, hlog
from perf.local.hlog import MOST_INTERVALS, read_hlog, write_hlog
from perf.local.paths import DataPaths
from perf.local.plain_files import read_json, read_plain
from perf.model import portions
from perf.model.design import Deployment
from perf.model.errors import BundleError
from perf.model.identity import canonical
from perf.model.results import Interval, Trial, TrialId
from perf.model.scalars import SAFE_ID, STRICT
from perf.model.shown import escape_control_characters, list_faults, list_some, printable

SCHEMA_VERSION = 2
"""Of the bundles that are written; those of version 1 lack the fields that have defaults in `model`."""

TRIAL = "trial.json"
INTERVALS = "intervals.hlog"
SETTINGS = "settings.json"
LOGS = "logs"
PROFILES = "profiles"
MANIFEST = "manifest.json"

MOST_TRIAL_BYTES = 64 * 1024**2
MOST_MANIFEST_BYTES = 16 * 1024**2
_MOST_SETTINGS_BYTES = 1024**2
"""So much is read at once; of the interval log, see `hlog`. Logs may be of any size."""
_PORTION_BYTES = 4 * 1024**2
"""Of bundles that are read together; as rows they take several times as much memory."""

IMPORTED = "imported-"
"""So begin the ids of trials that are imported, and not measured."""
_STAGING = ".staging-"
_MOST_BYTES = {TRIAL: MOST_TRIAL_BYTES, INTERVALS: hlog.MOST_BYTES}
_READABLE = (1, SCHEMA_VERSION)
_SAFE_ID = re.compile(SAFE_ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class _TrialDocument:
    """What trial.json holds."""

    __pydantic_config__ = STRICT
    schema_version: int
    trial: Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class _ListedFile:
    """One file of a bundle; `name` is its path inside the bundle, with forward slashes."""

    __pydantic_config__ = STRICT
    name: str
    size: Annotated[int, Ge(0)]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manifest:
    """What manifest.json holds; the files are sorted by name."""

    __pydantic_config__ = STRICT
    schema_version: int
    files: tuple[_ListedFile, ...]


_TRIAL_DOCUMENT = TypeAdapter(_TrialDocument)
_MANIFEST = TypeAdapter(_Manifest)


def stage(paths: DataPaths, trial_id: TrialId) -> Path:
    """Make an empty staging directory, with logs/ in it, for a trial that is about to run.

    What an interrupted attempt at the same trial left there is removed.

    Raises:
        BundleError: the id cannot be a directory name, or the directory cannot be made.

    """
    if not _SAFE_ID.fullmatch(trial_id):
        raise BundleError(
            f"trial id {trial_id!r} cannot name a bundle: use up to 200 letters, digits and ._+@- "
            "that begin with a letter or digit"
        )
    staged = paths.trials / f"{_STAGING}{trial_id}"
    with _explained(f"no bundle can be staged for trial {trial_id}"):
        if staged.exists():
            shutil.rmtree(staged)
        durable.make_directory(paths.trials)
        (staged / LOGS).mkdir(parents=True)
    return staged


def write_settings(staged: Path, deployment: Deployment) -> None:
    """Write what a trial's hashes of config, workload and topology stand for.

    Neither hosts nor how clients log in are among it: a site links the files of a bundle.
    """
    content = {
        "config": canonical(replace(deployment.config, access=None)),
        "workload": canonical(deployment.workload),
        "topology": canonical(deployment.topology),
    }
    (staged / SETTINGS).write_text(f"{json.dumps(content, indent=1, sort_keys=True)}\n")


def read_settings(path: Path) -> Mapping[str, JsonValue]:
    """Return what `write_settings` wrote; nothing of a bundle that is gone, older or not readable."""
    try:
        content = json.loads(read_plain(path / SETTINGS, _MOST_SETTINGS_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def remove_interrupted(paths: DataPaths) -> None:
    """Remove what is staged, but of imports, which go on beside: for the one process that measures.

    Raises:
        BundleError: something cannot be removed.

    """
    for staged in paths.trials.glob(f"{_STAGING}*"):
        if staged.name.startswith(f"{_STAGING}{IMPORTED}"):
            continue
        with _explained(f"{staged} cannot be removed"):
            shutil.rmtree(staged)


def seal(staged: Path, trial: Trial, intervals: Sequence[Interval]) -> Path:
    """Write the trial into its staging directory and move it to its final place; return that place.

    Everything is on the disk before the move, and the move is one step: a bundle is whole or absent.

    Raises:
        BundleError: the trial has values that a reader would refuse, a bundle of that id exists, or
            the files cannot be written. The staging directory is left as it is.

    """
    final = staged.with_name(trial.id)
    if staged.name != f"{_STAGING}{trial.id}":
        raise BundleError(f"{staged} was not staged for trial {trial.id}")
    if os.path.lexists(final):
        raise BundleError(f"{final} exists: a sealed bundle is never overwritten; use a new trial id")
    faults = find_faults(trial)
    if len(intervals) > MOST_INTERVALS:
        faults.append(f"{len(intervals)} histograms, and at most {MOST_INTERVALS} are read")
    if faults:
        raise BundleError(_listed(f"trial {trial.id} cannot be sealed from {staged}", faults))
    with _explained(f"trial {trial.id} could not be sealed from {staged}"):
        (staged / TRIAL).write_bytes(_dump_trial(trial))
        write_hlog(staged / INTERVALS, intervals)
        files = tuple(_describe(name, path) for name, path in _list_files(staged).items())
        if excess := [found for one in files if (found := _find_excess(one.name, one.size))]:
            raise BundleError(_listed(f"trial {trial.id} cannot be sealed from {staged}", excess))
        manifest = _Manifest(schema_version=SCHEMA_VERSION, files=files)
        (staged / MANIFEST).write_bytes(_MANIFEST.dump_json(manifest, indent=1) + b"\n")
        durable.move(staged, final)
    return final


def find(paths: DataPaths) -> tuple[Path, ...]:
    """Return the places of all sealed bundles, sorted by trial id; whether they are sound is open.

    Raises:
        BundleError: their directory cannot be read.

    """
    return tuple(map(paths.trials.joinpath, list_names(paths)))


def list_names(paths: DataPaths) -> list[TrialId]:
    """Return the trial ids of all sealed bundles, sorted: a path for each of many takes time.

    Raises:
        BundleError: their directory cannot be read.

    """
    if not os.path.lexists(paths.trials):
        return []
    with _explained("the trial bundles cannot be listed"):
        found = os.listdir(paths.trials)  # noqa: PTH208  paths take time
    return sorted(TrialId(name) for name in found if not name.startswith("."))


def read(path: Path) -> tuple[Trial, tuple[Interval, ...]]:
    """Read a sealed bundle and prove it whole.

    Raises:
        BundleError: it is truncated, changed, foreign or from a newer Knickpoint; all that is wrong
            is said at once.

    """
    check(path)
    trial = _read_trial(path / TRIAL)
    if trial.id != path.name:
        raise _unusable(
            path, f"{path}: {TRIAL} is of trial {trial.id!r}; a bundle is named by its trial"
        )
    if faults := find_faults(trial):
        raise _unusable(path, _listed(f"{path} cannot be used", faults))
    try:
        return trial, tuple(read_hlog(path / INTERVALS))
    except OSError as error:
        raise _unusable(path, f"{path / INTERVALS} cannot be read: {disk.explain(error)}") from error
    except BundleError as error:
        raise _unusable(path, str(error)) from error


def in_portions(places: Iterable[Path], most: int) -> Iterator[Sequence[Path]]:
    """Yield so many bundles at most, which take little memory together; a large one is alone."""
    return portions.in_portions(places, _count_bytes, _PORTION_BYTES, most)


def _count_bytes(path: Path) -> int:
    """Return how much of a bundle becomes rows of the history; nothing of what cannot be looked at."""
    size = 0
    for name in (TRIAL, INTERVALS):
        with suppress(OSError):
            size += (path / name).stat().st_size
    return size


def check(path: Path) -> None:
    """Prove that a sealed bundle still has the files that its manifest names, with that content.

    Raises:
        BundleError: it has not; all that is wrong is said at once.

    """
    _refuse_place(path)
    _refuse_difference(path, _read_manifest(path))


def digest(path: Path) -> str:
    """Return the SHA-256 of a bundle's manifest, which stands for the content of all its files.

    Raises:
        BundleError: there is no manifest.

    """
    _refuse_place(path)
    return hashlib.sha256(_read(path / MANIFEST, MOST_MANIFEST_BYTES)).hexdigest()


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Turn what the operating system refuses into a BundleError that says what to do."""
    try:
        yield
    except OSError as error:
        raise BundleError(f"{what}: {disk.explain(error)}") from error


def _dump_trial(trial: Trial) -> bytes:
    """Return trial.json: times in UTC, and no path of this machine."""
    artifact = replace(trial.artifact, location="") if trial.artifact else None
    portable = replace(
        trial,
        artifact=artifact,
        started_at=trial.started_at.astimezone(UTC),
        finished_at=trial.finished_at.astimezone(UTC),
    )
    document = _TrialDocument(schema_version=SCHEMA_VERSION, trial=portable)
    try:
        return _TRIAL_DOCUMENT.dump_json(document, indent=1) + b"\n"
    except PydanticSerializationError as error:  # text that is no Unicode
        raise BundleError(f"trial {trial.id} cannot be written as JSON: {error}") from error


def _list_files(root: Path) -> dict[str, Path]:
    """List a bundle's files by name, without the manifest; refuse all that is not a plain file."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            what = f"{path} is neither a file nor a directory; a bundle holds nothing else"
            raise _unusable(root, what)
        if path.is_file() and name != MANIFEST:
            found[name] = path
    return found


def _describe(name: str, path: Path) -> _ListedFile:
    """Return size and digest of a file, which is read in pieces: it may be of any size."""
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return _ListedFile(name=name, size=file.tell(), sha256=sha256)


def _find_excess(name: str, size: int) -> str | None:
    most = _MOST_BYTES.get(name, size)
    return f"{name} has {size} bytes, and at most {most} are read" if size > most else None


def _refuse_place(path: Path) -> None:
    """Refuse what cannot be a bundle by its kind or its name."""
    if not stat.S_ISDIR(_mode(path)):
        raise _unusable(path, f"{path} is not a trial bundle: it is not a directory")
    if not _SAFE_ID.fullmatch(path.name):
        raise _unusable(path, f"{path} is not a trial bundle: that is no name of a trial")


def _read_manifest(path: Path) -> _Manifest:
    """Read the manifest of a bundle that looks like one."""
    content = _read(path / MANIFEST, MOST_MANIFEST_BYTES)
    _refuse_version(path / MANIFEST, content)
    try:
        return _MANIFEST.validate_json(content)
    except ValidationError as error:
        raise _unusable(path, _explain(path / MANIFEST, error)) from error


def _refuse_difference(path: Path, manifest: _Manifest) -> None:
    """Compare each file of a bundle with its manifest, which must name exactly these files."""
    with _explained(f"{path} cannot be read"):
        present = _list_files(path)
        expected = {file.name: file for file in manifest.files}
        expected_names = expected.keys() | {TRIAL, INTERVALS}
        problems = [f"{name} is missing" for name in sorted(expected_names - present.keys())]
        problems += [
            f"{name} is not in {MANIFEST}" for name in sorted(present.keys() - expected.keys())
        ]
        both = (name for name in expected if name in present)
        problems += filter(None, (_find_difference(present[name], expected[name]) for name in both))
    if problems:
        raise _unusable(path, _listed(f"{path} cannot be used", problems))


def _find_difference(path: Path, expected: _ListedFile) -> str | None:
    """Say how a file differs from what the manifest says; one of another size is not read for that."""
    size = path.stat().st_size
    if excess := _find_excess(expected.name, size):
        return excess
    if size != expected.size:
        return f"{expected.name} has {size} bytes, but {MANIFEST} says {expected.size}"
    found = _describe(expected.name, path)
    if found == expected:
        return None
    return f"{found.name} has SHA-256 {found.sha256}, but {MANIFEST} says {expected.sha256}"


def _read_trial(path: Path) -> Trial:
    """Read trial.json."""
    content = _read(path, MOST_TRIAL_BYTES)
    _refuse_version(path, content)
    try:
        return _TRIAL_DOCUMENT.validate_json(content).trial
    except ValidationError as error:
        raise _unusable(path.parent, _explain(path, error)) from error


def _mode(path: Path) -> int:
    """Describe what is there, of a link that it is one; 0 where nothing is to be seen."""
    try:
        return os.lstat(path).st_mode
    except (OSError, ValueError):
        return 0


def _read(path: Path, most_bytes: int) -> bytes:
    """Read a file that must be there; never follow a link out of the bundle."""
    if not stat.S_ISREG(_mode(path)):
        raise _unusable(path.parent, f"{path.parent} is not a trial bundle: it has no {path.name}")
    try:
        return read_json(path, most_bytes)
    except OSError as error:
        what = f"{path} cannot be read: {disk.explain(error)}"
        raise _unusable(path.parent, what) if error.errno == EFBIG else BundleError(what) from error


def _refuse_version(path: Path, content: bytes) -> None:
    """Tell a truncated file, a foreign one and one of a newer Knickpoint apart."""
    try:
        document = json.loads(content, object_pairs_hook=_refuse_repeated)
    except (ValueError, RecursionError) as error:
        raise _unusable(path.parent, f"{path} is truncated or not JSON: {error}") from error
    version = document.get("schema_version") if isinstance(document, dict) else None
    if not isinstance(version, int):
        raise _unusable(path.parent, f"{path} is foreign: it has no schema_version")
    if version > SCHEMA_VERSION:
        raise BundleError(
            f"{path} has schema version {printable(str(version))}, written by a newer Knickpoint; "
            f"this one reads up to {SCHEMA_VERSION}: update it"
        )
    if version not in _READABLE:
        known = " and ".join(map(str, _READABLE))
        what = f"{path} has schema version {version}; known are {known}"
        raise _unusable(path.parent, what)


def _refuse_repeated(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make a mapping of what JSON holds; which of two values counts is anybody's guess."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {printable(twice)} is there twice in one place")
    return found


def _explain(path: Path, error: ValidationError) -> str:
    """List all that is wrong with a file, one field per line."""
    return _listed(f"{path} does not fit its schema version", list_faults(error))


def _listed(what: str, problems: Sequence[str]) -> str:
    return f"{what}:\n" + "\n".join(f"  {line}" for line in list_some(problems))


def _unusable(place: Path, what: str) -> BundleError:
    """Return the error for a bundle that only a person can put right."""
    return BundleError(
        f"{escape_control_characters(what)}\n"
        f"  move {printable(place.name, 300)} out of trials/ (or restore it from a copy); "
        "the other bundles are kept without it"
    )
