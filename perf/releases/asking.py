"""Ask the sources of builds what there is, and keep what they said in the data directory.

    <data>/releases.json     the builds that sources offered, and the checksums of those that were used

What was found stays found: a source that cannot be reached, or that no longer offers a build, takes
nothing away, so that the plan of a night can be measured again.
"""

import json
import re
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from urllib.parse import urljoin

from filelock import FileLock
from pydantic import TypeAdapter, ValidationError

from perf.local import durable
from perf.local.children import environment
from perf.local.plain_files import read_json
from perf.model.errors import InputError, ReleaseError
from perf.model.results import Release
from perf.model.scalars import STRICT
from perf.model.shown import list_faults, list_some
from perf.model.sources import (
    DEV,
    ArchiveSource,
    Build,
    BuildSource,
    CommandSource,
    DirectorySource,
    GitSource,
    MavenSource,
    OfferedBuild,
)
from perf.releases.versions import place_version

MOST_BYTES = 64 * 1024**2
"""Of what was found."""
_MOST_ANSWER = 16 * 1024**2
"""Of what one source says."""
_TIMEOUT_S = 30.0
_COMMAND_TIMEOUT_S = 60.0
_AT_ONCE = 8
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_OFFERED = TypeAdapter(OfferedBuild)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What all sources have offered so far, and the SHA-256 of each artifact that was fetched of it."""

    __pydantic_config__ = STRICT
    builds: tuple[Build, ...] = ()
    pins: Mapping[str, str] = field(default_factory=dict)

    def of(self, system: str, version: str) -> Build | None:
        """Return the build of a version of a system, if a source offered one."""
        asked = system, version
        return next(
            (one for one in self.builds if (one.release.system, one.release.version) == asked), None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What asking all sources came to: what is new, and a remark for each that did not answer well."""

    found: Found
    new: tuple[Build, ...]
    remarks: tuple[str, ...]


_FOUND = TypeAdapter(Found)


def read_found(path: Path) -> Found:
    """Return what sources have offered so far; nothing where none was asked.

    Raises:
        InputError: the file is not one.

    """
    try:
        return _FOUND.validate_json(read_json(path, MOST_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return Found()
    except ValidationError as error:
        raise InputError(path, (*list_some(list_faults(error)), _REMEDY)) from error
    except OSError as error:
        raise InputError(path, (f"{error.strerror}", _REMEDY)) from error


_REMEDY = "move it away, and ask the sources again: knickpoint releases --refresh"


def refresh(
    path: Path,
    sources: Iterable[BuildSource],
    root: Path,
    known: Mapping[str, Sequence[Release]],
    report: Callable[[str], None],
) -> Refreshed:
    """Ask all sources at once, and keep what is new beside what was found before.

    Of a release that the package knows it is only kept where its archive lies, if the source says so.

    `root` is what relative paths begin at; `known` has the releases that the package knows, by system:
    they are not new. A source that does not answer within its time is a remark.

    Raises:
        InputError: what was found before cannot be read.
        OSError: what was found cannot be written.

    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remarks: list[str] = []
    with FileLock(path.with_suffix(".lock")):
        before = read_found(path)

        def attempt(source: BuildSource) -> tuple[list[Build], list[str]]:
            odd: list[str] = []
            try:
                return list(_ask(source, root, odd)), odd
            except (ReleaseError, OSError, subprocess.SubprocessError) as error:
                return [], [f"was not heard: {error}"]

        asked = tuple(sources)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = tuple(pool.map(attempt, asked))
        packaged = {(one.system, one.version): one for one in chain.from_iterable(known.values())}
        taken = {(one.release.system, one.release.version) for one in before.builds}
        new = []
        for source, (builds, odd) in zip(asked, answers, strict=True):
            remarks += (f"source {source.name} {one}" for one in list_some(odd, 5))
            for build in sorted(builds, key=lambda one: (one.release.line, one.release.ordinal)):
                key = build.release.system, build.release.version
                if key in taken or (key in packaged and not build.location):
                    continue
                taken.add(key)
                new.append(replace(build, release=packaged.get(key, build.release)))
        found = replace(before, builds=(*before.builds, *_apart(new, before.builds)))
        if new:
            durable.atomic_write(path, _FOUND.dump_json(found, indent=1))
    for remark in remarks:
        report(remark)
    return Refreshed(
        found=found,
        new=tuple(
            one
            for one in found.builds[len(before.builds) :]
            if (one.release.system, one.release.version) not in packaged
        ),
        remarks=tuple(remarks),
    )


def pin(path: Path, key: str, sha256: str) -> str:
    """Keep the checksum of an artifact's first use; return the one that it must have.

    Raises:
        InputError: what was found cannot be read.

    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        found = read_found(path)
        if key not in found.pins:
            found = replace(found, pins={**found.pins, key: sha256})
            durable.atomic_write(path, _FOUND.dump_json(found, indent=1))
        return found.pins[key]


def _apart(new: Sequence[Build], before: Sequence[Build]) -> Iterator[Build]:
    """Yield the new builds; those of one second get different ordinals, as they were offered."""
    taken = {(one.release.system, one.release.line, one.release.ordinal) for one in before}
    for build in new:
        release = build.release
        while release.line.endswith(DEV) and (release.system, release.line, release.ordinal) in taken:
            release = replace(release, ordinal=release.ordinal + 1)
        taken.add((release.system, release.line, release.ordinal))
        yield replace(build, release=release)


def _ask(source: BuildSource, root: Path, odd: list[str]) -> Iterator[Build]:
    """Yield the builds of one source; what of its answer is of no use is added to `odd`."""
    if isinstance(source, MavenSource):
        return _of_versions(source, ((version, "") for version in _ask_maven(source)), odd)
    if isinstance(source, ArchiveSource):
        return _of_versions(source, _read_index(source), odd)
    if isinstance(source, DirectorySource):
        return _of_offers(source, _list_directory(root / source.path, odd), odd)
    if isinstance(source, GitSource):
        return _of_offers(source, _list_commits(source, root / source.repository), odd)
    return _of_offers(source, _run_command(source, root, odd), odd)


def _of_versions(
    source: MavenSource | ArchiveSource, named: Iterable[tuple[str, str]], odd: list[str]
) -> Iterator[Build]:
    seen = False
    for version, location in named:
        seen = True
        place = place_version(version)
        if place and place[0] in source.lines:
            yield _build(source, version.replace("~", "-"), place, location=location)
    if not seen:
        odd.append("names no version")


def _build(source: BuildSource, version: str, place: tuple[str, int], **more: str) -> Build:
    release = Release(system=source.system, version=version, line=place[0], ordinal=place[1])
    return Build(release=release, source=source.name, found_on=datetime.now(UTC).date(), **more)


def _ask_maven(source: MavenSource) -> list[str]:
    try:
        from jgo.maven import MavenContext  # noqa: PLC0415  judging needs none of it
    except ImportError as error:
        raise ReleaseError(f"{error}; pip install 'knickpoint[measure]'") from error
    remote = {"asked": source.repository.rstrip("/")} if source.repository else None
    # A cache of its own: what an earlier answer was must not pass for this one.
    with tempfile.TemporaryDirectory(prefix="knickpoint-maven-") as cache:
        context = MavenContext(repo_cache=Path(cache), remote_repos=remote, timeout=int(_TIMEOUT_S))
        project = context.project(*source.library.split(":"))
        project.update()
        versions = list(project.metadata.versions)
    if not versions:
        raise ReleaseError(f"no answer for {source.library}")
    return [version for version in versions if not version.endswith("-SNAPSHOT")]


def _read_index(source: ArchiveSource) -> Iterator[tuple[str, str]]:
    pattern = re.compile(source.pattern)
    has_file = "file" in pattern.groupindex
    for found in pattern.finditer(_read_url(source.index).decode(errors="replace")):
        yield found["version"], urljoin(source.index, found["file"]) if has_file else ""


def _read_url(url: str) -> bytes:
    request = urllib.request.Request(url, headers={"User-Agent": "knickpoint"})  # noqa: S310  http only
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310  by its type
            text: bytes = answer.read(_MOST_ANSWER + 1)
    except urllib.error.URLError as error:
        raise ReleaseError(f"{url}: {getattr(error, 'reason', error)}") from error
    if len(text) > _MOST_ANSWER:
        raise ReleaseError(f"{url}: more than {_MOST_ANSWER} bytes")
    return text


def _of_offers(
    source: DirectorySource | GitSource | CommandSource, offers: Iterable[OfferedBuild], odd: list[str]
) -> Iterator[Build]:
    for offer in offers:
        more = {
            "location": offer.location,
            "checksum": offer.sha256 or "",
            "commit": offer.commit or "",
        }
        if offer.commit and offer.time:
            moment = offer.time.astimezone(UTC)
            version = f"{moment:%Y%m%d.%H%M}.{offer.commit[:10]}"
            yield _build(source, version, (source.line, int(moment.timestamp())), **more)
        elif offer.version and (place := place_version(offer.version)):
            yield _build(source, offer.version, place, **more)
        else:
            odd.append(
                f"offers {offer.location or offer.version or offer.commit!r} with neither a commit and"
                " its time nor a version that has a place"
            )


def _list_directory(folder: Path, odd: list[str]) -> Iterator[OfferedBuild]:
    for path in sorted(folder.iterdir()):
        if not path.name.endswith(_ARCHIVES):
            continue
        stem = path.name[: -len(next(one for one in _ARCHIVES[::-1] if path.name.endswith(one)))]
        beside = path.with_name(f"{stem}.json")
        try:
            offer = _OFFERED.validate_json(read_json(beside, _MOST_ANSWER))
        except (OSError, ValidationError) as error:
            why = error.strerror if isinstance(error, OSError) else "; ".join(list_faults(error)[:3])
            odd.append(f"has {path.name}, and beside it {beside.name}: {why}")
        else:
            yield replace(offer, location=str(path.resolve()))


def _list_commits(source: GitSource, repository: Path) -> Iterator[OfferedBuild]:
    text = run_git(
        repository,
        *("log", "--first-parent", f"--max-count={source.commits}", "--reverse", "--format=%H %cI"),
        *(f"refs/heads/{source.branch}", "--"),
    )
    for line in text.splitlines():
        commit, _, when = line.partition(" ")
        yield OfferedBuild(commit=commit, time=datetime.fromisoformat(when), location=commit)


def run_git(repository: Path, *arguments: str) -> str:
    """Run git on a repository; return what it printed.

    Raises:
        ReleaseError: it failed; says what git said.

    """
    command = ["git", "-C", str(repository), *arguments]
    try:
        done = subprocess.run(  # noqa: S603  no shell
            command,
            env={**environment(), "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_COMMAND_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise ReleaseError("there is no git on this machine; install it") from error
    except subprocess.TimeoutExpired as error:
        limit = f"{_COMMAND_TIMEOUT_S:g} s"
        raise ReleaseError(f"git {arguments[0]} did not end within {limit} in {repository}") from error
    if done.returncode:
        raise ReleaseError(f"git {arguments[0]} in {repository}: {done.stderr.strip()[:500]}")
    return done.stdout


def _run_command(source: CommandSource, root: Path, odd: list[str]) -> Iterator[OfferedBuild]:
    done = subprocess.run(  # noqa: S603  no shell; a reviewed file names it
        source.command,
        cwd=root,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_COMMAND_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()[-500:]
        raise ReleaseError(f"{source.command[0]} exited {done.returncode}: {said}")
    if len(done.stdout) > _MOST_ANSWER:
        raise ReleaseError(f"{source.command[0]} printed more than {_MOST_ANSWER} bytes")
    for number, line in enumerate(done.stdout.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            yield _OFFERED.validate_json(line)
        except (ValidationError, json.JSONDecodeError) as error:
            why = (
                "; ".join(list_faults(error)[:3]) if isinstance(error, ValidationError) else str(error)
            )
            odd.append(f"prints in line {number}: {why}")
