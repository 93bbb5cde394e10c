"""Bring what a source of builds offered: unpack its archive, or build its commit."""

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from perf.local.children import measured_environment, tie
from perf.model.errors import ReleaseError, UsageError
from perf.model.results import Release, Source
from perf.model.sources import DEV, Build, BuildSource, GitSource
from perf.releases import downloads
from perf.releases.artifacts import choose_release
from perf.releases.asking import Found, run_git
from perf.releases.origin import Origin

_TAIL_CHARACTERS = 2000
_FEWEST = 7
"""Characters of a commit that name it."""
_GIVEN = "command-line"
"""The source of what a command was given."""


def origin_of(build: Build, source: BuildSource | None, root: Path) -> Origin | None:
    """Return where the files of a build come from; None where its system knows that by itself.

    `root` is what relative paths begin at.

    Raises:
        ReleaseError: the build is a commit of a source that there is no more.

    """
    if not build.location:
        return None
    if isinstance(source, GitSource):
        bring = partial(_build_commit, source, root / source.repository, build.location)
        return Origin(source=Source.BUILD, location=build.location, bring=bring)
    if "://" not in build.location and not Path(build.location).is_absolute():
        raise ReleaseError(
            f"{build.release.version} is a commit of source {build.source}, which is no git source of"
            " this configuration any more; bring sources/ back, or measure another build"
        )
    return Origin(
        source=Source.BUILD,
        location=build.location,
        checksum=build.checksum,
        bring=partial(_unpack, build),
    )


def take_build(
    found: Found,
    releases: Iterable[Release],
    system: str,
    text: str,
    *,
    like: Release | None = None,
    commit: str = "",
) -> Build:
    """Return what somebody names: a version, a commit that a source offered, or the path of an archive.

    An archive is started by the rules of the line of `like`; it may be a build of a `commit`.

    Raises:
        UsageError: it is none of these.

    """
    today = datetime.now(UTC).date()
    if offered := found.of(system, text):
        return offered
    of_commit = [one for one in found.builds if len(text) >= _FEWEST and one.commit.startswith(text)]
    if len(of_commit) == 1:
        return of_commit[0]
    path = Path(text)
    if not path.is_file():
        release = choose_release(system, text, releases)
        return Build(release=release, source=_GIVEN, found_on=today)
    with path.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    if commit and not re.fullmatch("[0-9a-f]{7,64}", commit):
        raise UsageError(f"--commit {commit!r} is no commit: give its hexadecimal name")
    base = like.line.removesuffix(f"-{DEV}") if like and like.line != DEV else ""
    name = f"0.build.{(commit or digest)[:10]}"
    release = Release(system=system, version=name, line=f"{base}-{DEV}" if base else DEV, ordinal=0)
    return Build(
        release=release,
        source=_GIVEN,
        found_on=today,
        location=str(path.resolve()),
        checksum=digest,
        commit=commit,
    )


def _unpack(build: Build, fresh: Path, report: Callable[[str], None]) -> None:
    if "://" in build.location:
        archive = fresh.parent / "archive"
        downloads.download(build.location, archive, report=report)
    else:
        archive = fresh.parent / Path(build.location).name
        try:
            shutil.copyfile(build.location, archive)
        except OSError as error:
            raise downloads.OriginUnreachable(f"{build.location}: {error.strerror}") from error
    if build.checksum:
        downloads.verify(archive, build.checksum)
    downloads.unpack(archive, fresh)


def _build_commit(
    source: GitSource, repository: Path, commit: str, fresh: Path, report: Callable[[str], None]
) -> None:
    """Run the source's command in a copy of the commit, and take what it leaves."""
    report(f"{source.name}: building commit {commit[:10]}: {' '.join(source.build)}")
    with tempfile.TemporaryDirectory(prefix="knickpoint-build-") as home:
        copy, archive = Path(home, "commit"), Path(home, "commit.tar")
        copy.mkdir()
        run_git(repository, "archive", f"--output={archive}", commit)
        shutil.unpack_archive(archive, copy, filter="data")
        try:
            done = subprocess.run(  # noqa: S603  no shell; a reviewed file names it
                tie(source.build),
                cwd=copy,
                env={**measured_environment(), "KNICKPOINT_COMMIT": commit, **source.environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=source.timeout_minutes * 60,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ReleaseError(
                f"{source.name}: commit {commit[:10]} was not built within"
                f" {source.timeout_minutes} minutes"
            ) from error
        if done.returncode:
            said = done.stdout.decode(errors="replace")[-_TAIL_CHARACTERS:]
            raise ReleaseError(
                f"{source.name}: commit {commit[:10]} does not build: {source.build[0]} exited"
                f" {done.returncode}:\n{said}"
            )
        left = (copy / source.artifact).resolve()
        if not left.is_relative_to(copy.resolve()) or not left.exists():
            raise ReleaseError(
                f"{source.name}: the build of commit {commit[:10]} left no {source.artifact}"
            )
        if left.is_dir():
            shutil.copytree(left, fresh, symlinks=True)
        else:
            downloads.unpack(left, fresh)
