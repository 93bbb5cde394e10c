"""Sources: where builds of a system come from, and what they offered.

A release that the package knows needs no source. Sources find the others: new releases, nightly builds,
commits of one's own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Literal, TypeAlias

from annotated_types import MinLen
from pydantic import AwareDatetime, Field, StringConstraints

from perf.model.results import Release
from perf.model.scalars import STRICT, Name, Positive, Text

DEV = "dev"
"""What the line of builds that are ordered by the time of their commit is called, or ends with."""
Line: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)*$")]
DevLine: TypeAlias = Annotated[str, StringConstraints(pattern=r"^([0-9]+(\.[0-9]+)*-)?dev$")]
"""`5.0-dev` is built and started by the rules of line 5.0, `dev` by those of the newest."""
Url: TypeAlias = Annotated[str, StringConstraints(pattern=r"^https?://[^\s]+$")]
Coordinate: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+:[A-Za-z0-9_.-]+$")]
CompareUrl: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^https://[^\s\"<>]*\{before\}[^\s\"<>]*\{after\}[^\s\"<>]*$")
]
Variable: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    __pydantic_config__ = STRICT
    name: Name
    """As the file is called."""
    description: Text
    """One line, for lists."""
    system: Name
    """Database that it has builds of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MavenSource(_Named):
    """The metadata of a Maven repository: all versions of a library that were published."""

    kind: Literal["maven"]
    """Metadata of a Maven repository."""
    library: Coordinate
    """group:artifact."""
    lines: Annotated[tuple[Line, ...], MinLen(1)]
    """Lines that are followed; versions of others are not looked at."""
    repository: Url | None = None
    """Where the metadata is asked for; absent: Maven Central."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSource(_Named):
    """A page or a JSON feed of a vendor that names its versions.

    The system knows where each lies, unless the pattern finds the `file`, too: its address, as a link
    on the page is read.
    """

    kind: Literal["archive"]
    """A page or feed that names versions."""
    index: Url
    """The page or feed."""
    pattern: Text
    """Regular expression with a group named `version`, and one named `file` if that is the archive."""
    lines: Annotated[tuple[Line, ...], MinLen(1)]
    """Lines that are followed; versions of others are not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectorySource(_Named):
    """A directory where a CI drops tar archives, `<build>.json` beside each."""

    kind: Literal["directory"]
    """A directory of archives."""
    path: Text
    """The directory; one that does not begin with / lies beside configs/."""
    line: DevLine = DEV
    """Line of builds that name a commit and no version."""
    compare_url: CompareUrl | None = None
    """Page of two commits, with {before} and {after} in it; absent: incidents link none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSource(_Named):
    """A checkout whose newest commits are built, each when it is measured for the first time.

    The command runs as this user on this machine: name no repository that strangers can push to.
    """

    kind: Literal["git"]
    """A checkout that is built here."""
    repository: Text
    """Path of the checkout; one that does not begin with / lies beside configs/."""
    branch: Text
    """Whose first parents are followed."""
    build: Annotated[tuple[Text, ...], MinLen(1)]
    """Command and arguments, run in a copy of the commit."""
    artifact: Text
    """What the command leaves in that copy: a directory or a tar archive."""
    environment: Mapping[Variable, str] = field(default_factory=dict)
    """Variables of the command, beside PATH, HOME and the like."""
    timeout_minutes: Positive = 60
    """The most that a build may take."""
    commits: Positive = 50
    """How many of the newest commits are offered."""
    line: DevLine = DEV
    """Their line."""
    compare_url: CompareUrl | None = None
    """Page of two commits, with {before} and {after} in it; absent: incidents link none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSource(_Named):
    """A program that prints builds, one JSON object in a line."""

    kind: Literal["command"]
    """A program that prints builds."""
    command: Annotated[tuple[Text, ...], MinLen(1)]
    """Program and arguments, run beside configs/."""
    line: DevLine = DEV
    """Line of builds that name a commit and no version."""
    compare_url: CompareUrl | None = None
    """Page of two commits, with {before} and {after} in it; absent: incidents link none."""


BuildSource: TypeAlias = Annotated[
    MavenSource | ArchiveSource | DirectorySource | GitSource | CommandSource,
    Field(discriminator="kind"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """A build that a source offered: its release, and where its files are.

    `location` is the path or the address of an archive, or a commit that `git` builds; without one, the
    system knows where its releases lie. `checksum` is the SHA-256 of the archive, and `commit` what it
    is a build of, where they are known.
    """

    __pydantic_config__ = STRICT
    release: Release
    source: Name
    found_on: date
    location: str = ""
    checksum: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedBuild:
    """What a directory or a program says of one build."""

    __pydantic_config__ = STRICT
    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{7,64}$")] | None = None
    """The commit; absent: it has a version."""
    version: str | None = None
    """The version; absent: it has a commit."""
    time: AwareDatetime | None = None
    """When it was committed; builds of commits are ordered by it."""
    branch: str = ""
    """For people."""
    location: str = ""
    """Path or address of its archive; absent beside an archive."""
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    """Checksum of the archive; absent: that of its first use must stay."""


def compare_commits(sources: Iterable[BuildSource], before: Release, after: Release) -> str:
    """Return the page of what changed between two builds of commits; empty where no source has one."""
    if before.line != after.line or not after.line.endswith(DEV):
        return ""
    for source in sources:
        if isinstance(source, MavenSource | ArchiveSource) or source.compare_url is None:
            continue
        if (source.system, source.line) == (after.system, after.line):
            first, last = (one.version.rpartition(".")[2] for one in (before, after))
            return source.compare_url.replace("{before}", first).replace("{after}", last)
    return ""
