"""A release comes from the first origin that has it, verified, and from the cache ever after."""

import hashlib
import io
import os
import resource
import shutil
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner

from perf.commands.releases import releases
from perf.model.errors import ReleaseError, UsageError
from perf.model.results import Release, Source
from perf.releases.artifacts import SUMS, copy_variable, fetch, find_release
from perf.releases.origin import Origin
from perf.systems import registry
from perf.systems.contract import System

RELEASE = Release(system="river", version="1.2.0", line="1.2", ordinal=0)
NOWHERE = Origin(
    source=Source.ARCHIVE, location="http://127.0.0.1:1/x.tar.gz", checksum="http://127.0.0.1:1/x"
)
LIBRARIES = Origin(source=Source.MAVEN, location="org.example:river:1.2.0")
LARGEST_FILE = 1 << 20
# Stands in for Maven: writes its arguments and two jars to where it is reported.
MVN = """#!/bin/sh
for word; do case $word in -DoutputDirectory=*) out=${word#*=};; esac; done
echo run >>"$MVN_RUNS"
[ "$MVN_FAILS" ] && echo "[ERROR] no such artifact" && exit 1
mkdir -p "$out" && echo a >"$out/a-1.jar" && echo "${MVN_B:-b}" >"$out/b-2.jar"
"""


class River:
    """A system with the origins that a test gives it."""

    name = "river"

    def __init__(self, *origins: Origin) -> None:
        self._origins = origins

    def releases(self) -> tuple[Release, ...]:
        return (RELEASE,)

    def origins(self, release: Release) -> tuple[Origin, ...]:
        return self._origins


def river(*origins: Origin) -> System:
    return cast("System", River(*origins))


@contextmanager
def small_files_only() -> Iterator[None]:
    """Let the kernel refuse large files, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Origin]:
    """Serve an archive and its published digest."""
    folder = tmp_path / "served"
    folder.mkdir()
    with tarfile.open(folder / "river-1.2.0.tar.gz", "w:gz") as opened:
        member = tarfile.TarInfo("river-1.2.0/lib/river.jar")
        member.size = 5
        opened.addfile(member, io.BytesIO(b"river"))
    digest = hashlib.sha512((folder / "river-1.2.0.tar.gz").read_bytes()).hexdigest()
    (folder / "river-1.2.0.tar.gz.sha512").write_text(f"{digest}  river-1.2.0.tar.gz\n")
    handler = partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        url = f"http://127.0.0.1:{http.server_port}/river-1.2.0.tar.gz"
        yield Origin(source=Source.ARCHIVE, location=url, checksum=f"{url}.sha512")
        http.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return every test a cache of its own, and a Maven and a Java that are scripts."""
    programs = tmp_path / "java" / "bin"
    programs.mkdir(parents=True)
    (programs / "mvn").write_text(MVN)
    (programs / "java").write_text("#!/bin/sh\necho 'openjdk version \"17.0.99\"' >&2\n")
    for program in programs.iterdir():
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("JAVA_HOME", str(programs.parent))
    monkeypatch.setenv("MVN_RUNS", str(tmp_path / "mvn-runs"))
    monkeypatch.setenv("KNICKPOINT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def maven_runs(cache: Path) -> int:
    runs = cache.parent / "mvn-runs"
    return len(runs.read_text().splitlines()) if runs.exists() else 0


def test_fetches_an_archive_once(archive: Origin, cache: Path) -> None:
    system = river(archive)
    artifact = fetch(system, RELEASE)
    location = Path(artifact.location)
    assert artifact.source is Source.ARCHIVE
    assert location == cache / "releases/river/1.2.0/archive"
    assert (location / "lib/river.jar").read_bytes() == b"river"
    assert artifact.sha256 == hashlib.sha256((location / SUMS).read_bytes()).hexdigest()
    (cache.parent / "served/river-1.2.0.tar.gz").unlink()
    assert fetch(system, RELEASE) == artifact


@contextmanager
def only_reading(cache: Path) -> Iterator[None]:
    """Take from this process the right to change a cache: by modes, for root by being another user."""
    own, folders = os.geteuid(), [cache, *(path for path in cache.rglob("*") if path.is_dir())]
    for path in (*folders, *cache.rglob("lock")):
        path.chmod(0o555)
    if own == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(own)
        for path in folders:
            path.chmod(0o755)


def test_a_cache_that_may_only_be_read_gives_what_it_has_and_nothing_else(
    archive: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Outside of tmp_path, which no other user may enter.
    with tempfile.TemporaryDirectory() as home:
        cache = Path(home)
        monkeypatch.setenv("KNICKPOINT_CACHE", home)
        artifact = fetch(river(archive), RELEASE)
        with only_reading(cache):
            assert fetch(river(archive), RELEASE) == artifact
        Path(artifact.location, "lib/river.jar").write_bytes(b"planted")
        with only_reading(cache), pytest.raises(ReleaseError, match="cannot be kept in the cache"):
            fetch(river(archive), RELEASE)


def test_what_a_killed_fetch_left_is_removed(archive: Origin, cache: Path) -> None:
    home = cache / "releases" / "river" / "1.2.0"
    (home / "part-killed").mkdir(parents=True)
    (home / "part-killed" / "river-1.2.0.tar.gz.part").write_bytes(b"half of it")
    fetch(river(archive), RELEASE)
    assert not list(home.glob("part-*"))


def test_sums_are_those_of_sha256sum(archive: Origin) -> None:
    location = Path(fetch(river(archive), RELEASE).location)
    expected = hashlib.sha256(b"river").hexdigest()
    assert (location / SUMS).read_text() == f"{expected}  lib/river.jar\n"


def test_refuses_and_deletes_what_does_not_match(archive: Origin, cache: Path) -> None:
    published = cache.parent / "served/river-1.2.0.tar.gz.sha512"
    found, wrong = published.read_text().split()[0], "0" * 128
    published.write_text(wrong)
    with pytest.raises(ReleaseError, match=f"expected {wrong}, found {found}"):
        fetch(river(archive, LIBRARIES), RELEASE)
    # A mismatch is no reason to look elsewhere: it is reported, and nothing is kept.
    assert maven_runs(cache) == 0
    assert [path.name for path in (cache / "releases/river/1.2.0").iterdir()] == ["lock"]


def test_an_unreachable_archive_falls_through_to_maven(cache: Path) -> None:
    reported: list[str] = []
    origin = Origin(source=Source.ARCHIVE, location="http://x.invalid/x.tar.gz", checksum="0" * 64)
    artifact = fetch(river(origin, LIBRARIES), RELEASE, report=reported.append)
    assert artifact.source is Source.MAVEN
    names = sorted(path.name for path in Path(artifact.location, "lib").iterdir())
    assert names == ["a-1.jar", "b-2.jar"]
    assert "river 1.2.0: no answer from its archive origin; trying the next" in reported
    assert maven_runs(cache) == 1


def test_a_cached_copy_is_used_before_any_origin_is_asked(cache: Path) -> None:
    first = fetch(river(LIBRARIES), RELEASE)
    reported: list[str] = []
    assert fetch(river(NOWHERE, LIBRARIES), RELEASE, report=reported.append) == first
    assert reported == []
    assert maven_runs(cache) == 1


@pytest.mark.parametrize("damage", ["change", "remove", "add", "forget"])
def test_a_damaged_copy_is_fetched_again(cache: Path, damage: str) -> None:
    first = fetch(river(LIBRARIES), RELEASE)
    location = Path(first.location)
    if damage == "change":
        (location / "lib/a-1.jar").write_text("z\n")
    elif damage == "remove":
        (location / "lib/a-1.jar").unlink()
    elif damage == "add":
        (location / "lib/c-3.jar").write_text("c")
    else:
        (location / SUMS).unlink()
    reported: list[str] = []
    assert fetch(river(LIBRARIES), RELEASE, report=reported.append) == first
    assert reported[0] == "river 1.2.0: the cached copy is damaged; fetching it again"
    assert maven_runs(cache) == 2


def test_a_changed_set_of_libraries_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = fetch(river(LIBRARIES), RELEASE)
    pinned = Origin(source=Source.MAVEN, location=LIBRARIES.location, checksum=first.sha256)
    assert fetch(river(pinned), RELEASE) == first
    monkeypatch.setenv("MVN_B", "changed")
    (Path(first.location) / SUMS).unlink()
    with pytest.raises(ReleaseError, match=rf"does not match: expected {first.sha256}, found \w{{64}}"):
        fetch(river(pinned), RELEASE)
    assert [path.name for path in (cache / "releases/river/1.2.0").iterdir()] == ["lock"]


def test_all_origins_and_their_reasons_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MVN_FAILS", "1")
    origin = Origin(source=Source.ARCHIVE, location="http://x.invalid/x.tar.gz", checksum="0" * 64)
    with pytest.raises(ReleaseError) as caught:
        fetch(river(origin, LIBRARIES), RELEASE)
    text = str(caught.value)
    assert "archive: http://x.invalid/x.tar.gz: " in text
    assert "maven: " in text
    assert "no such artifact" in text
    assert "Check the network, or set KNICKPOINT_RELEASE_RIVER_1_2_0 to the path of a local" in text
    assert "knickpoint releases --help" in text


def test_a_local_directory_or_archive_may_stand_in(
    archive: Origin, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = cache.parent / "own"
    (own / "lib").mkdir(parents=True)
    (own / "lib/river.jar").write_bytes(b"river")
    digests = set()
    for path in (own, cache.parent / "served/river-1.2.0.tar.gz"):
        monkeypatch.setenv("KNICKPOINT_RELEASE_RIVER_1_2_0", str(path))
        artifact = fetch(river(NOWHERE), RELEASE)
        assert artifact.source is Source.PATH
        digests.add(artifact.sha256)
    monkeypatch.delenv("KNICKPOINT_RELEASE_RIVER_1_2_0")
    assert digests == {fetch(river(archive), RELEASE).sha256}  # same files, same identity


def test_a_local_path_that_does_not_exist_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNICKPOINT_RELEASE_RIVER_1_2_0", "/nonexistent/river")
    reported: list[str] = []
    with pytest.raises(ReleaseError) as caught:
        fetch(river(NOWHERE), RELEASE, report=reported.append)
    assert str(caught.value) == (
        "river 1.2.0: the local copy /nonexistent/river does not exist, or this user may not read it; "
        "correct KNICKPOINT_RELEASE_RIVER_1_2_0, or unset it to take the release from its official "
        "origins"
    )
    assert reported == []


def test_a_damaged_local_archive_is_reported(
    archive: Origin, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = cache.parent / "served/river-1.2.0.tar.gz"
    own.write_bytes(own.read_bytes()[:-20])
    monkeypatch.setenv("KNICKPOINT_RELEASE_RIVER_1_2_0", str(own))
    with pytest.raises(ReleaseError) as caught:
        fetch(river(archive), RELEASE)
    text = str(caught.value)
    assert f"river 1.2.0: the local copy {own} is of no use" in text
    assert "damaged or incomplete" in text
    assert "Get it again; correct KNICKPOINT_RELEASE_RIVER_1_2_0, or unset it" in text
    assert "\n" not in text


def test_a_cache_that_is_a_file_is_reported(cache: Path) -> None:
    cache.write_text("")
    with pytest.raises(ReleaseError) as caught:
        fetch(river(LIBRARIES), RELEASE)
    text = str(caught.value)
    assert f"river 1.2.0 cannot be kept in the cache {cache}: {cache}/releases/river" in text
    assert "Not a directory" in text
    assert "set KNICKPOINT_CACHE" in text


def test_a_full_disk_is_reported_and_leaves_nothing_behind(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = cache.parent / "own"
    own.mkdir()
    (own / "river.jar").write_bytes(bytes(2 * LARGEST_FILE))
    monkeypatch.setenv("KNICKPOINT_RELEASE_RIVER_1_2_0", str(own))
    with (
        small_files_only(),
        pytest.raises(ReleaseError, match=f"kept in the cache {cache}: .*too large"),
    ):
        fetch(river(), RELEASE)
    assert [path.name for path in (cache / "releases/river/1.2.0").iterdir()] == ["lock"]


def test_libraries_without_a_pin_are_reported(cache: Path) -> None:
    reported: list[str] = []
    artifact = fetch(river(LIBRARIES), RELEASE, report=reported.append)
    assert "river 1.2.0: not pinned: trusting Maven's own checksums" in reported
    shutil.rmtree(cache)
    pinned = Origin(source=Source.MAVEN, location=LIBRARIES.location, checksum=artifact.sha256)
    reported.clear()
    fetch(river(pinned), RELEASE, report=reported.append)
    assert reported == ["river 1.2.0: fetching its libraries with Maven (may take a minute)"]


def test_the_help_of_releases_says_how_to_name_a_copy() -> None:
    text = CliRunner().invoke(releases, ["--help"]).output
    assert "KNICKPOINT_RELEASE_<SYSTEM>_<VERSION>=PATH" in text
    newest = find_release(registry.load("cassandra"), "5.0.9")
    assert f"{copy_variable(newest)}=/" in text


def test_what_is_built_in_is_not_fetched() -> None:
    fake = registry.load("fake")
    artifact = fetch(fake, fake.releases()[0])
    assert (artifact.source, artifact.sha256, artifact.location) == (Source.BUILTIN, "", "")


def test_only_one_of_two_fetches_at_once_downloads(cache: Path) -> None:
    artifacts = []
    system = river(LIBRARIES)
    threads = [
        threading.Thread(target=lambda: artifacts.append(fetch(system, RELEASE))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert artifacts[0] == artifacts[1]
    assert maven_runs(cache) == 1


def test_finds_a_release() -> None:
    assert find_release(river(), "1.2.0") is RELEASE


@pytest.mark.parametrize(
    ("version", "hint"), [("1.2", "did you mean 1.2.0?"), ("zz", "not like any known release")]
)
def test_an_unknown_release_names_the_nearest(version: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_release(river(), version)
    assert hint in str(caught.value)
    assert "knickpoint releases river" in str(caught.value)
