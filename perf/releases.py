"""Find a release and fetch its artifact: into a cache, verified, several releases side by side.

    cache/releases/<system>/<version>/<source>/     the files, and SHA256SUMS over them

`SHA256SUMS` is in the format of sha256sum(1); its own SHA-256 is the artifact's identity, whichever
origin the files came from. A cached artifact is checked against it each time it is used.
"""

import difflib
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from filelock import FileLock

from perf import downloads, maven
from perf.errors import ReleaseError, UsageError
from perf.model import Artifact, Release, Source
from perf.places import cache_dir
from perf.systems.contract import Origin, System

SUMS = "SHA256SUMS"


def _say_nothing(_: str) -> None:
    pass


def find_release(system: System, version: str) -> Release:
    """Give a system's release of this version.

    Raises:
        UsageError: there is none; the message names the nearest.

    """
    known = {release.version: release for release in system.releases()}
    if version in known:
        return known[version]
    near = difflib.get_close_matches(version, known, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else "it is not like any known release."
    raise UsageError(
        f"{system.name} has no release {version!r}; {hint} See: knickpoint releases {system.name}"
    )


def fetch(system: System, release: Release, *, tell: Callable[[str], None] = _say_nothing) -> Artifact:
    """Give the release's artifact: a verified copy in the cache, or the first origin that has it.

    $KNICKPOINT_RELEASE_<SYSTEM>_<VERSION> (all capitals, `_` for anything else) may name a local
    directory or tar archive, which is then the only origin. `tell` hears of progress.

    Raises:
        ReleaseError: no origin has it, or what an origin gave does not match its checksum.

    """
    own = os.environ.get(_variable(release))
    # A local copy is asked for first: a system may know no origin that fits this machine.
    origins = (Origin(source=Source.PATH, location=own),) if own else system.origins(release)
    if any(origin.source is Source.BUILTIN for origin in origins):
        return Artifact(source=Source.BUILTIN, sha256="")
    label = f"{system.name} {release.version}"
    home = cache_dir() / "releases" / system.name / release.version
    home.mkdir(parents=True, exist_ok=True)
    with FileLock(home / "lock"):
        for origin in origins:
            if found := _find_cached(home, origin, label, tell):
                return found
        return _fetch_first(home, origins, label, tell)


def fetch_maven(
    name: str, coordinates: Sequence[str], *, tell: Callable[[str], None] = _say_nothing
) -> Artifact:
    """Give libraries with their runtime dependencies, as jars under `lib/`, from the cache or Maven.

    Raises:
        ReleaseError: they cannot be had.

    """
    home = cache_dir() / "libraries" / name
    home.mkdir(parents=True, exist_ok=True)
    origin = Origin(source=Source.MAVEN, location=" ".join(coordinates))
    with FileLock(home / "lock"):
        return _find_cached(home, origin, name, tell) or _fetch_first(home, (origin,), name, tell)


def _variable(release: Release) -> str:
    return "KNICKPOINT_RELEASE_" + re.sub(
        "[^A-Z0-9]", "_", f"{release.system}_{release.version}".upper()
    )


def _find_cached(
    home: Path, origin: Origin, label: str, tell: Callable[[str], None]
) -> Artifact | None:
    directory = home / origin.source.value
    if origin.source is Source.PATH or not directory.is_dir():
        return None
    sums = directory / SUMS
    if sums.is_file() and sums.read_text() == _sum_files(directory):
        artifact = _artifact(origin, directory)
        if artifact.sha256 == (_pinned(origin) or artifact.sha256):
            return artifact
    tell(f"{label}: the cached copy is damaged; fetching it again")
    shutil.rmtree(directory)
    return None


def _fetch_first(
    home: Path, origins: Sequence[Origin], label: str, tell: Callable[[str], None]
) -> Artifact:
    reasons = []
    for origin in origins:
        directory = home / origin.source.value
        with tempfile.TemporaryDirectory(dir=home, prefix="part-") as part:
            fresh = Path(part, "files")
            try:
                _bring(origin, fresh, label, tell)
            except downloads.Unreachable as error:
                reasons.append(f"{origin.source}: {error}")
                tell(f"{label}: no answer from its {origin.source} origin; trying the next")
                continue
            (fresh / SUMS).write_text(_sum_files(fresh))
            artifact = _artifact(origin, fresh)
            _refuse_changed(artifact, origin)
            shutil.rmtree(directory, ignore_errors=True)
            fresh.rename(directory)
        return Artifact(source=origin.source, sha256=artifact.sha256, location=str(directory))
    listed = "".join(f"\n  {reason}" for reason in reasons)
    raise ReleaseError(
        f"{label} cannot be fetched from any of its origins:{listed}\nCheck the network, or set a "
        "local copy (KNICKPOINT_RELEASE_…, see `knickpoint releases --help`)."
    )


def _bring(origin: Origin, fresh: Path, label: str, tell: Callable[[str], None]) -> None:
    if origin.source is Source.MAVEN:
        tell(f"{label}: fetching its libraries with Maven (may take a minute)")
        maven.copy_libraries(origin.location.split(), fresh / "lib", tell=tell)
    elif origin.source is Source.PATH:
        _bring_path(Path(origin.location), fresh)
    else:
        tell(f"{label}: downloading {origin.location}")
        digest = downloads.published_digest(origin.checksum, tell=tell, work_dir=fresh.parent)
        archive = fresh.parent / origin.location.rsplit("/", 1)[1]
        downloads.download(origin.location, archive, tell=tell)
        downloads.verify(archive, digest)
        downloads.unpack(archive, fresh)


def _bring_path(source: Path, fresh: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, fresh, ignore=shutil.ignore_patterns(SUMS))
    elif source.is_file():
        downloads.unpack(source, fresh)
    else:
        raise downloads.Unreachable(f"{source}: no such file or directory")


def _artifact(origin: Origin, directory: Path) -> Artifact:
    found = hashlib.sha256((directory / SUMS).read_bytes()).hexdigest()
    return Artifact(source=origin.source, sha256=found, location=str(directory))


def _pinned(origin: Origin) -> str:
    # The checksum of an archive is that of the archive file, which is not kept.
    return origin.checksum if origin.source is Source.MAVEN else ""


def _refuse_changed(artifact: Artifact, origin: Origin) -> None:
    expected = _pinned(origin)
    if expected not in ("", artifact.sha256):
        raise ReleaseError(
            f"{origin.location}: the checksum of its set of libraries does not match: expected "
            f"{expected}, found {artifact.sha256}; other libraries would be another database, so it "
            "was deleted. Take the release from its official archive, or from a local copy"
        )


def _sum_files(directory: Path) -> str:
    files = sorted(
        path.relative_to(directory).as_posix()
        for path in directory.rglob("*")
        if path.is_file() and path != directory / SUMS
    )
    lines = []
    for name in files:
        with (directory / name).open("rb") as opened:
            lines.append(f"{hashlib.file_digest(opened, 'sha256').hexdigest()}  {name}\n")
    return "".join(lines)
