"""Configurations of two revisions of a git repository, read without touching its work tree.

An edge: it runs git. Each revision's files are put into a temporary directory, for the second that it
takes to read them. A revision is data that nobody vouches for: nothing of it is run, and no link in it
is followed. Files are written as they are stored, not checked out: what a revision calls a filter, or a
hook of the repository, could run a program otherwise.
"""

import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

from perf.config.catalog import Catalog, load_catalog
from perf.local.children import environment
from perf.local.document import count_items
from perf.model.errors import ConfigError, MeasureError, UsageError
from perf.model.shown import printable
from perf.releases.asking import Found

SHORT = 8
"""Digits of a commit hash as people see it."""
TO_DO = "split the change, or measure the experiment that matters by hand with `knickpoint compare`"
"""What helps whoever changes too much at once."""
_PREFIX = "knickpoint-revision-"
_STALE_S = 600.0
"""A directory of ours of this age was left behind by a process that was killed."""
_GIT_LIMIT_S = 300.0
MOST_FILES, MOST_BYTES, MOST_PARTS, MOST_EXPERIMENTS = 1_000, 2 << 20, 100_000, 500
"""Of a configuration. Ours: 105 files, 0.4 MB, 16,000 parts, 154 experiments in all of its suites."""
MOST_DEPTH = 20
"""Of directories, one in the other, from the root of the repository on; ours: 3."""
_PARTS = (b",", b":", b"\n", b"[", b"{", b"- ", b"? ")
"""Each value of a YAML file takes one: what is counted in no time takes 50 µs each to be read."""
_MOST_LISTED = 1 << 20
"""Of git's list of them."""
_LISTING_CPU_S = 2
"""A tree of a few kilobytes can name more entries than can be listed; ours takes 5 ms."""
# A command that runs inside of a git hook is told of that hook's repository, index and work tree.
_HOOK_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
_SAFELY = (
    *("--literal-pathspecs", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "advice.detachedHead=false"),
)
_NO_NAMES = {"", ".", "..", ".git"}
_LINK_MODES = {"120000": "a symbolic link", "160000": "a submodule"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Blob:
    """A file of a revision: its path from the root of the repository, hash and size of its content."""

    mode: str
    hash: str
    path: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionRange:
    """Two revisions by their full hashes, and where their histories parted: what is compared with head.

    `base` and `head` are the references as they were asked for.
    """

    base: str
    head: str
    base_tip: str
    merge_base: str
    head_tip: str


def find_repository(folder: Path) -> Path:
    """Find the repository around a folder; give the root of its work tree.

    Raises:
        UsageError: there is none.
        MeasureError: git is not installed.

    """
    done = _run(folder, "rev-parse", "--show-toplevel")
    if done.returncode:
        raise UsageError(
            f"{folder.resolve()} is in no work tree of a git repository ({_complaint(done)}); go to the"
            " one that holds the configuration"
        )
    return Path(done.stdout.rstrip("\n"))


def find_span(repository: Path, base: str, head: str) -> RevisionRange:
    """Resolve two references, and the merge base of the two.

    Raises:
        UsageError: a reference is not one, or the two have no common past.

    """
    base_tip, head_tip = _resolve(repository, base), _resolve(repository, head)
    done = _run(repository, "merge-base", base_tip, head_tip)
    if done.returncode:
        raise UsageError(
            f"{base} and {head} have no common past here{_explain(done)}; a shallow clone lacks it: "
            "git fetch --unshallow"
        )
    merge_base = done.stdout.split()[0]
    return RevisionRange(
        base=base, head=head, base_tip=base_tip, merge_base=merge_base, head_tip=head_tip
    )


def load_revisions(
    repository: Path, span: RevisionRange, folder: str, found: Found | None = None
) -> tuple[Catalog, Catalog]:
    """Read the configuration of both, at the merge base and at head, from a folder of the repository.

    `found` is what sources of builds have offered so far.

    Raises:
        UsageError: a revision has no such folder.
        ConfigError: a configuration is wrong; carries all problems of both, with the revision.
        MeasureError: git fails.

    """
    _remove_stale()
    problems: list[str] = []
    catalogs = []
    # Head first: its mistakes are those of whoever proposes it.
    for name, commit in (("head", span.head_tip), ("base", span.merge_base)):
        try:
            catalogs.append(_load(repository, name, commit, _check_folder(folder), found))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    head, base = catalogs
    return base, head


def load_base_tip(
    repository: Path, span: RevisionRange, folder: str, found: Found | None = None
) -> Catalog:
    """Read the configuration as base has it now: its testbeds and rules hold for what is proposed.

    The author of a head chooses its merge base, which may be an old commit with looser limits.

    Raises:
        UsageError: the revision has no such folder.
        ConfigError: the configuration is wrong there.
        MeasureError: git fails.

    """
    return _load(repository, "the tip of base", span.base_tip, _check_folder(folder), found)


def _load(repository: Path, name: str, commit: str, folder: str, found: Found | None) -> Catalog:
    where = f"{name} {commit[:SHORT]}"
    blobs = _list_blobs(repository, commit, folder, where)
    if not blobs:
        raise UsageError(
            f"there is no directory {folder}/ at {where}; --configs names the one of the repository"
        )
    if problems := _find_problems(blobs):
        raise ConfigError([f"at {where}: {problem}" for problem in problems])
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as home:
        tree = Path(home).resolve()
        _write(repository, blobs, tree)
        _check_content(tree / folder, where)
        try:
            return load_catalog(tree / folder, found)
        except ConfigError as error:
            shown = [problem.replace(f"{tree}{os.sep}", "") for problem in error.problems]
            raise ConfigError([f"at {where}: {problem}" for problem in shown]) from error


def _check_content(root: Path, where: str) -> None:
    """Count what files hold before anything is made of it: that takes seconds for each thousand.

    Raises:
        ConfigError: it is too much.

    """
    contents = (path.read_bytes() for path in root.rglob("*.yaml"))
    # Counted in no time; what is left can be counted as what it is.
    if sum(content.count(part) for content in contents for part in _PARTS) > MOST_PARTS:
        what = f"has more than {MOST_PARTS:,} commas, colons, brackets and lines"
        raise _too_large(where, root.name, what)
    experiments = 0
    for path in sorted(root.glob("suites/*.yaml")):
        experiments += count_items(path, MOST_EXPERIMENTS - experiments)
        if experiments > MOST_EXPERIMENTS:
            what = f"has more than {MOST_EXPERIMENTS} experiments, the most that a change may touch"
            raise ConfigError([f"at {where}: {root.name}/suites/ {what}; {TO_DO}"])


def _check_folder(folder: str) -> str:
    path = PurePosixPath(folder)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise UsageError(
            f"--configs {folder}: name the directory from the root of the repository on, as in configs"
        )
    return str(path)


def _list_blobs(repository: Path, commit: str, folder: str, where: str) -> list[_Blob]:
    """List the files of a folder, in bounded time and memory.

    Raises:
        ConfigError: there are too many files, or they hold too much.
        MeasureError: git fails.

    """
    listing, error = _list(repository, "ls-tree", "-r", "-l", "-z", "--full-tree", commit, "--", folder)
    entries = [entry.partition("\t") for entry in listing.split("\0") if entry]
    if len(listing) > _MOST_LISTED or len(entries) > MOST_FILES:
        raise _too_large(where, folder, f"has more than {MOST_FILES:,} files")
    if error is None:
        raise _too_large(where, folder, f"cannot be listed in {_LISTING_CPU_S} s")
    if error:
        raise MeasureError(f"git ls-tree failed in {repository}: {error}")
    parts = ((about.split(), path) for about, _, path in entries)
    blobs = [
        # A submodule has no size.
        _Blob(mode=mode, hash=hash_, path=path, size=int(size) if size.isdigit() else 0)
        for (mode, _, hash_, size), path in parts
    ]
    if sum(one.size for one in blobs) > MOST_BYTES:
        raise _too_large(where, folder, f"holds more than {MOST_BYTES >> 20} MiB")
    return blobs


def _too_large(where: str, folder: str, what: str) -> ConfigError:
    why = "a configuration is a few hundred small files; leave out what is none"
    return ConfigError([f"at {where}: {folder}/ {what}; {why}"])


def _list(repository: Path, *arguments: str) -> tuple[str, str | None]:
    """Run git for a list, and read no more of it than a list may have; end git where it goes on.

    Returns the list, cut, and what git complained of: "" if of nothing, None if its time was used up.
    """
    with subprocess.Popen(  # noqa: S603  arguments are ours, and hashes
        ["git", *_SAFELY, *arguments],  # noqa: S607  the user's git
        cwd=repository,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        resource.prlimit(child.pid, resource.RLIMIT_CPU, (_LISTING_CPU_S, _LISTING_CPU_S))
        stdout, stderr = cast("IO[bytes]", child.stdout), cast("IO[bytes]", child.stderr)
        listing = stdout.read(_MOST_LISTED + 1)
        if len(listing) > _MOST_LISTED:
            child.kill()
        errors = stderr.read().decode(errors="replace").strip().splitlines()
    is_timed_out = child.returncode in {-signal.SIGXCPU, -signal.SIGKILL}
    said = errors[-1] if errors else f"exit code {child.returncode}"
    return listing.decode(errors="replace"), None if is_timed_out else said if child.returncode else ""


def _find_problems(blobs: Sequence[_Blob]) -> list[str]:
    """Describe of each what leads out of the folder."""
    links = [
        f"{printable(one.path)}: {kind}, which may lead out of the repository; put the file there"
        for one in blobs
        for kind in [_LINK_MODES.get(one.mode)]
        if kind
    ]
    # No git makes such a tree, but one that is made by hand can be fetched. And anybody can commit a
    # name that a terminal, or the log of a workflow, might obey.
    names = [
        f"{printable(one.path)}: no path of a file"
        for one in blobs
        if not one.path.isprintable() or any(part.lower() in _NO_NAMES for part in one.path.split("/"))
    ]
    deep = [
        f"{printable(one.path[:80])}: lies {one.path.count('/')} directories deep; at most {MOST_DEPTH}"
        for one in blobs
        if one.path.count("/") > MOST_DEPTH
    ]
    return links + names + deep[:1]


def _write(repository: Path, blobs: Sequence[_Blob], tree: Path) -> None:
    """Write files as they are stored; no attribute of theirs counts, as it would in a checkout."""
    asked = "".join(f"{one.hash}\n" for one in blobs)
    done = _run_raw(repository, "cat-file", "--batch", sent=asked.encode())
    rest = done.stdout
    for one in blobs:
        # "<hash> blob <size>", the content, and a line end; "<hash> missing" in a partial clone
        head, _, rest = rest.partition(b"\n")
        fields = head.split()
        if fields[:2] != [one.hash.encode(), b"blob"]:
            raise MeasureError(f"git cat-file failed in {repository}: {one.path} is not there")
        size = int(fields[2])
        target = tree / one.path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write(rest[:size])
        except OSError as error:
            raise ConfigError([f"{one.path}: it cannot be written: {error.strerror}"]) from error
        rest = rest[size + 1 :]


def _remove_stale() -> None:
    """Remove what a killed process of ours left in the directory for temporary files."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # it has just gone by itself
            if time.time() - left.stat().st_mtime > _STALE_S:
                shutil.rmtree(left, ignore_errors=True)


def _resolve(repository: Path, ref: str) -> str:
    if not ref or ref.startswith("-"):
        raise UsageError(f"{ref!r} is no revision; name a branch, a tag or a commit")
    # The marker ends the options, so that nothing a reference may hold is read as one.
    done = _run(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if done.returncode:
        raise UsageError(
            f"there is no revision {ref!r} in {repository}; name a branch, a tag or a commit, and"
            f" fetch it first if it is elsewhere: git fetch origin {ref}"
        )
    return done.stdout.strip()


def _run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    done = _run_raw(folder, *arguments)
    output, errors = (each.decode(errors="replace") for each in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, output, errors)


def _run_raw(folder: Path, *arguments: str, sent: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    try:
        return subprocess.run(  # noqa: S603  arguments are ours, and hashes
            ["git", *_SAFELY, *arguments],  # noqa: S607  the user's git
            cwd=folder,
            env=_environment(),
            input=sent,
            capture_output=True,
            timeout=_GIT_LIMIT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise MeasureError("git is not installed here, or not in the PATH; install it") from error
    except subprocess.TimeoutExpired as error:
        limit = f"{_GIT_LIMIT_S:g} s"
        raise MeasureError(f"git {arguments[0]} did not end within {limit} in {folder}") from error


def _environment() -> dict[str, str]:
    inherited = {key: value for key, value in environment().items() if key not in _HOOK_VARIABLES}
    return {**inherited, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}


def _complaint(done: "subprocess.CompletedProcess[str]") -> str:
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"


def _explain(done: "subprocess.CompletedProcess[str]") -> str:
    return f" ({_complaint(done)})" if done.stderr.strip() else ""
