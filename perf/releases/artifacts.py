"""Find a release and fetch its artifact: into a cache, verified, several releases side by side.

    cache/releases/<system>/<version>/<source>/     the files, and SHA256SUMS over them

`SHA256SUMS` is in the format of sha256sum(1); its own SHA-256 is the artifact's identity, whichever
origin the files came from. A cached artifact is checked against it each time it is used.

A variable of the environment may name a local copy of a release (`copy_variable`). It is then the only
origin, and is read before the system is asked for any.
"""

import difflib
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from perf.local.paths import cache_dir, hold_in_cache
from perf.model.errors import ReleaseError, UsageError
from perf.model.results import Artifact, Release, Source
from perf.releases import downloads, maven
from perf.releases.origin import Origin
from perf.releases.signatures import find_gpg, verify_signature

SUMS = "SHA256SUMS"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """An artifact: its name, where it is kept, what helps if none can be had, who hears of it."""

    label: str
    home: Path
    advice: str
    report: Callable[[str], None]


class HasReleases(Protocol):
    """What is asked of a system here."""

    @property
    def name(self) -> str:
        """What the system is called in configs and results."""
        ...

    def releases(self) -> tuple[Release, ...]:
        """Return all releases there are, oldest first."""
        ...

    def origins(self, release: Release) -> tuple[Origin, ...]:
        """Return where the artifact of a release can come from, in the order to be tried."""
        ...


def _say_nothing(_: str) -> None:
    pass


def find_release(system: HasReleases, version: str) -> Release:
    """Return the release of this version that a system knows by itself.

    Raises:
        UsageError: there is none; the message names the nearest.

    """
    return choose_release(system.name, version, system.releases())


def choose_release(system: str, version: str, releases: Iterable[Release]) -> Release:
    """Return the one of a system's releases that has this version.

    Raises:
        UsageError: there is none; the message names the nearest.

    """
    known = {release.version: release for release in releases}
    if version in known:
        return known[version]
    near = difflib.get_close_matches(version, known, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else "it is not like any known release."
    raise UsageError(
        f"{system} has no release {version!r}; {hint} See: knickpoint releases {system}. To ask for new"
        " ones: knickpoint releases --refresh"
    )


def fetch(
    system: HasReleases,
    release: Release,
    *,
    build: Origin | None = None,
    report: Callable[[str], None] = _say_nothing,
) -> Artifact:
    """Return the release's artifact: a verified copy in the cache, or the first origin that has it.

    A local copy that `copy_variable` names is the only origin, else the `build` that a source offered.
    `report` hears of progress.

    Raises:
        ReleaseError: no origin has it, what an origin gave does not match its checksum, or the cache
            cannot be used.

    """
    variable = copy_variable(release)
    own = os.environ.get(variable)
    # A local copy is asked for first: a system may know no origin that fits this machine.
    if own:
        origins: tuple[Origin, ...] = (Origin(source=Source.PATH, location=own),)
    else:
        origins = (build,) if build else system.origins(release)
    if any(origin.source is Source.BUILTIN for origin in origins):
        return Artifact(source=Source.BUILTIN, sha256="")
    name_a_copy = (
        f"set {variable} to the path of a local copy, a directory or a tar archive "
        "(see `knickpoint releases --help`)"
    )
    correct_it = f"correct {variable}, or unset it to take the release from its official origins"
    wanted = _Wanted(
        label=f"{system.name} {release.version}",
        home=cache_dir() / "releases" / system.name / release.version,
        advice=correct_it if own else name_a_copy,
        report=report,
    )
    try:
        wanted.home.mkdir(parents=True, exist_ok=True)
        with hold_in_cache(wanted.home / "lock"):
            for origin in origins:
                if found := _find_cached(wanted, origin):
                    return found
            return _fetch_first(wanted, origins)
    except OSError as error:
        raise ReleaseError(
            f"{wanted.label} cannot be kept in the cache {cache_dir()}: {_say(error)}; make that a "
            "directory with room that can be written, or set KNICKPOINT_CACHE to one"
        ) from error


def copy_variable(release: Release) -> str:
    """Name the variable of the environment that may hold the path of a local copy of the release.

    It is KNICKPOINT_RELEASE_<SYSTEM>_<VERSION> in capitals, with `_` for all but letters and digits.
    """
    return "KNICKPOINT_RELEASE_" + re.sub(
        "[^A-Z0-9]", "_", f"{release.system}_{release.version}".upper()
    )


def _say(error: OSError) -> str:
    if isinstance(error, shutil.Error):  # a list of (source, target, reason), as copytree collects it
        return str(error.args[0][0][2])
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def _find_cached(wanted: _Wanted, origin: Origin) -> Artifact | None:
    directory = wanted.home / origin.source.value
    if origin.source is Source.PATH or not directory.is_dir():
        return None
    sums = directory / SUMS
    if sums.is_file() and sums.read_text() == _sum_files(directory):
        artifact = _artifact(origin, directory)
        if artifact.sha256 == (_pinned(origin) or artifact.sha256):
            return artifact
    wanted.report(f"{wanted.label}: the cached copy is damaged; fetching it again")
    shutil.rmtree(directory)
    return None


def _fetch_first(wanted: _Wanted, origins: Sequence[Origin]) -> Artifact:
    # What a process that was killed had fetched in part; nobody else fetches this now.
    for left in wanted.home.glob("part-*"):
        shutil.rmtree(left, ignore_errors=True)
    reasons = []
    for origin in origins:
        directory = wanted.home / origin.source.value
        with tempfile.TemporaryDirectory(dir=wanted.home, prefix="part-") as part:
            fresh = Path(part, "files")
            try:
                _bring(wanted, origin, fresh)
            except downloads.OriginUnreachable as error:
                reasons.append(f"{origin.source}: {error}")
                then = "" if origin is origins[-1] else "; trying the next"
                wanted.report(f"{wanted.label}: no answer from its {origin.source} origin{then}")
                continue
            (fresh / SUMS).write_text(_sum_files(fresh))
            artifact = _artifact(origin, fresh)
            _refuse_changed(wanted, origin, artifact)
            shutil.rmtree(directory, ignore_errors=True)
            fresh.rename(directory)
        return Artifact(source=origin.source, sha256=artifact.sha256, location=str(directory))
    listed = "".join(f"\n  {reason}" for reason in reasons)
    raise ReleaseError(
        f"{wanted.label} cannot be fetched from any of its origins:{listed}\n"
        f"Check the network, or {wanted.advice}."
    )


def _bring(wanted: _Wanted, origin: Origin, fresh: Path) -> None:
    if origin.bring:
        origin.bring(fresh, wanted.report)
    elif origin.source is Source.MAVEN:
        wanted.report(f"{wanted.label}: fetching its libraries with Maven (may take a minute)")
        if not _pinned(origin):
            wanted.report(f"{wanted.label}: not pinned: trusting Maven's own checksums")
        maven.copy_libraries(origin.location.split(), fresh / "lib", report=wanted.report)
    elif origin.source is Source.PATH:
        _bring_path(wanted, Path(origin.location), fresh)
    else:
        if origin.signer:
            find_gpg()  # before hundreds of megabytes come for nothing
        wanted.report(f"{wanted.label}: downloading {origin.location}")
        archive = fresh.parent / origin.location.rsplit("/", 1)[1]
        if origin.signer:
            downloads.download(origin.location, archive, report=wanted.report)
            verify_signature(
                archive, origin.checksum, origin.signer, report=wanted.report, work_dir=fresh.parent
            )
        else:
            digest = downloads.published_digest(
                origin.checksum, report=wanted.report, work_dir=fresh.parent
            )
            downloads.download(origin.location, archive, report=wanted.report)
            downloads.verify(archive, digest)
        downloads.unpack(archive, fresh)


def _bring_path(wanted: _Wanted, source: Path, fresh: Path) -> None:
    where = f"{wanted.label}: the local copy {source}"
    if not os.access(source, os.R_OK):
        raise ReleaseError(f"{where} does not exist, or this user may not read it; {wanted.advice}")
    if source.is_dir():
        shutil.copytree(source, fresh, ignore=shutil.ignore_patterns(SUMS))
        return
    try:
        downloads.unpack(source, fresh)
    except ReleaseError as error:
        raise ReleaseError(f"{where} is of no use: {error}. Get it again; {wanted.advice}") from error


def _artifact(origin: Origin, directory: Path) -> Artifact:
    found = hashlib.sha256((directory / SUMS).read_bytes()).hexdigest()
    return Artifact(source=origin.source, sha256=found, location=str(directory))


def _pinned(origin: Origin) -> str:
    # The checksum of an archive is that of the archive file, which is not kept.
    return origin.checksum if origin.source is Source.MAVEN else ""


def _refuse_changed(wanted: _Wanted, origin: Origin, artifact: Artifact) -> None:
    expected = _pinned(origin)
    if expected not in ("", artifact.sha256):
        raise ReleaseError(
            f"{wanted.label}: the checksum of its set of libraries ({origin.location}) does not match: "
            f"expected {expected}, found {artifact.sha256}; other libraries would be another database, "
            f"so it was deleted. Let the official archive be reached, or {wanted.advice}"
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
