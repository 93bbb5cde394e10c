"""Sources are asked for builds; what they said is kept, and one that is not heard stops nothing."""

import hashlib
import io
import json
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.history.store import append_all
from perf.jobs.measuring import Fetched, Job, ask_sources, order_point
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.errors import InputError, KnickpointError, ReleaseError
from perf.model.results import Artifact, Purpose, Release, Source, Trial
from perf.model.sources import (
    ArchiveSource,
    BuildSource,
    CommandSource,
    DirectorySource,
    GitSource,
    MavenSource,
)
from perf.releases.asking import Refreshed, read_found, refresh

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONFIGS = Path(__file__).parents[2] / "data" / "configs"
NOTHING_KNOWN: dict[str, tuple[Release, ...]] = {}


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Serve a directory."""
    root = tmp_path / "web"
    root.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield root, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def named(name: str) -> dict[str, str]:
    return {"name": name, "description": "For a test.", "system": "fake"}


def ask(
    tmp_path: Path, *sources: BuildSource, known: dict[str, tuple[Release, ...]] = NOTHING_KNOWN
) -> Refreshed:
    return refresh(tmp_path / "var/releases.json", sources, tmp_path, known, lambda _: None)


def places(refreshed: Refreshed) -> list[tuple[str, str, int]]:
    return [(one.release.version, one.release.line, one.release.ordinal) for one in refreshed.new]


def make_archive(path: Path, content: str = "x") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("top/program")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content.encode()))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def publish(web: Path, *versions: str) -> None:
    listed = "".join(f"<version>{one}</version>" for one in versions)
    folder = web / "org/example/river"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "maven-metadata.xml").write_text(
        "<metadata><groupId>org.example</groupId><artifactId>river</artifactId>"
        f"<versioning><versions>{listed}</versions></versioning></metadata>"
    )


def test_maven_metadata_names_releases_and_new_ones_are_new_once(
    tmp_path: Path, web: tuple[Path, str]
) -> None:
    root, url = web
    source = MavenSource(
        **named("maven"), kind="maven", library="org.example:river", lines=("2.0",), repository=url
    )
    packaged = Release(system="fake", version="2.0.0", line="2.0", ordinal=0)
    publish(root, "1.9.0", "2.0.0", "2.0.1", "2.0.2-SNAPSHOT", "2.0-rc1")
    first = ask(tmp_path, source, known={"fake": (packaged,)})
    assert places(first) == [("2.0-rc1", "2.0", -999), ("2.0.1", "2.0", 1)]
    publish(root, "2.0.0", "2.0.1", "2.0.2")
    second = ask(tmp_path, source, known={"fake": (packaged,)})
    assert places(second) == [("2.0.2", "2.0", 2)]
    assert not second.remarks
    # What is no longer offered was found all the same.
    assert len(read_found(tmp_path / "var/releases.json").builds) == 3


@pytest.mark.keeps("unfetched-costs-its-own")
def test_a_source_that_is_not_heard_is_a_remark_and_takes_nothing_away(
    tmp_path: Path, web: tuple[Path, str]
) -> None:
    root, url = web
    (root / "index.html").write_text("river-2.0.1.tar.gz")
    pattern = r"river-(?P<version>[0-9.]+)\.tar"
    heard = ArchiveSource(
        **named("heard"), kind="archive", index=f"{url}/", pattern=pattern, lines=("2.0",)
    )
    dead = ArchiveSource(
        **named("dead"), kind="archive", index="http://127.0.0.1:1/", pattern=pattern, lines=("2.0",)
    )
    gone = MavenSource(
        **named("gone"), kind="maven", library="org.example:sea", lines=("2.0",), repository=url
    )
    found = ask(tmp_path, dead, heard, gone)
    assert places(found) == [("2.0.1", "2.0", 1)]
    assert [remark.split()[1] for remark in found.remarks] == ["dead", "gone"]
    (root / "index.html").write_text("nothing here")
    assert [remark.split()[1] for remark in ask(tmp_path, dead, heard).remarks] == ["dead", "heard"]
    assert len(read_found(tmp_path / "var/releases.json").builds) == 1


def test_a_page_may_say_where_the_archive_of_a_packaged_release_lies(
    tmp_path: Path, web: tuple[Path, str]
) -> None:
    root, url = web
    (root / "index.html").write_text('<a href="river-2.0.1-0.20251201.ab.tar.gz">')
    source = ArchiveSource(
        **named("page"),
        kind="archive",
        index=f"{url}/",
        pattern=r"(?P<file>river-(?P<version>2\.0\.[0-9]+)-0\.[0-9]+\.[0-9a-f]+\.tar\.gz)",
        lines=("2.0",),
    )
    packaged = Release(system="fake", version="2.0.1", line="2.0", ordinal=1)
    found = ask(tmp_path, source, known={"fake": (packaged,)})
    assert not found.new
    (build,) = found.found.builds
    assert (build.release, build.location) == (packaged, f"{url}/river-2.0.1-0.20251201.ab.tar.gz")


def test_a_directory_has_archives_with_a_commit_or_a_version_beside_each(tmp_path: Path) -> None:
    builds = tmp_path / "builds"
    digest = make_archive(builds / "a.tar.gz")
    make_archive(builds / "b.tgz")
    make_archive(builds / "c.tar.gz")
    make_archive(builds / "d.tar.gz")
    at = {"commit": COMMIT, "time": "2026-03-01T10:00:00+01:00", "branch": "main", "sha256": digest}
    (builds / "a.json").write_text(json.dumps(at))
    (builds / "b.json").write_text(json.dumps({"version": "2.0.9"}))
    (builds / "c.json").write_text(json.dumps({"commit": COMMIT, "colour": "blue"}))
    found = ask(tmp_path, DirectorySource(**named("ci"), kind="directory", path="builds"))
    assert places(found) == [
        ("2.0.9", "2.0", 9),
        ("20260301.0900.0123456789", "dev", 1772355600),
    ]
    assert [remark.split()[3] for remark in found.remarks] == ["c.tar.gz,", "d.tar.gz,"]
    assert "colour" in found.remarks[0]


def test_a_program_prints_builds_as_json_lines(tmp_path: Path) -> None:
    good = json.dumps({"version": "2.1.0", "location": "http://127.0.0.1:1/x.tar.gz"})
    lines = "\n".join((good, "no json", json.dumps({"version": "newest"})))
    (tmp_path / "lines").write_text(lines)
    command = CommandSource(**named("tool"), kind="command", command=("cat", "lines"))
    broken = CommandSource(**named("broken"), kind="command", command=("cat", "nothing-there"))
    absent = CommandSource(**named("absent"), kind="command", command=("no-such-program",))
    found = ask(tmp_path, command, broken, absent)
    assert places(found) == [("2.1.0", "2.1", 0)]
    assert [remark.split()[1] for remark in found.remarks] == ["tool", "tool", "broken", "absent"]


def git(repository: Path, *arguments: str, at: int = 0) -> str:
    when = f"{1_772_355_600 + at} +0000"
    identity = ("-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", "-C", str(repository), *identity, *arguments],
        env={"PATH": "/usr/bin:/bin", "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    home = tmp_path / "checkout"
    home.mkdir()
    git(home, "init", "--quiet", "--initial-branch=main")
    for number, second in enumerate((0, 60, 60, 120)):
        (home / "level").write_text(str(number))
        git(home, "add", "level")
        git(home, "commit", "--quiet", "--message", f"level {number}", at=second)
    return home


def of_git(repository: Path, *build: str) -> GitSource:
    return GitSource(
        **named("own"),
        kind="git",
        repository=str(repository),
        branch="main",
        build=build,
        artifact="out",
        environment={"GREETING": "hello"},
    )


def test_commits_have_different_places_in_the_order_of_their_time(
    tmp_path: Path, repository: Path
) -> None:
    found = ask(tmp_path, of_git(repository, "true"))
    assert [one.release.ordinal - 1_772_355_600 for one in found.new] == [0, 60, 61, 120]
    assert [one.release.line for one in found.new] == ["dev"] * 4
    assert found.new[0].release.version.startswith("20260301.0900.")
    assert not ask(tmp_path, of_git(repository, "true")).new


def job_of(tmp_path: Path, *sources: BuildSource) -> Job:
    catalog = load_catalog(CONFIGS)
    object.__setattr__(catalog, "sources", {one.name: one for one in sources})
    job = Job(catalog, DataPaths(tmp_path / "var"), Progress(io.StringIO()))
    asked = ask_sources(job, {"fake"})
    object.__setattr__(asked.catalog, "sources", catalog.sources)
    return asked


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNICKPOINT_CACHE", str(tmp_path / "cache"))


def test_a_commit_is_built_once_in_a_copy_and_may_be_a_point(tmp_path: Path, repository: Path) -> None:
    script = 'mkdir out && cp level out/ && echo "$GREETING $KNICKPOINT_COMMIT" >out/said; echo >>"$0"'
    counter = tmp_path / "built"
    job = job_of(tmp_path, of_git(repository, "sh", "-c", script, str(counter)))
    third = job.catalog.found.builds[2]
    fetched = job.fetch("fake", third.release.version)
    home = Path(fetched.artifact.location)
    assert fetched.artifact.source is Source.BUILD
    assert (home / "level").read_text() == "2"
    assert (home / "said").read_text() == f"hello {third.location}\n"
    assert job.fetch("fake", third.release.version) == fetched
    assert counter.read_text() == "\n"
    assert git(repository, "status", "--porcelain") == ""
    suite = job.catalog.suite("fake-short")
    deployment = job.catalog.resolve(suite, suite.experiments[0])
    assert order_point("t", "n", deployment, fetched).purpose is Purpose.SCHEDULED


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("sh", "-c", "echo no such header >&2; exit 3"), "exited 3:\nno such header"),
        (("true",), "left no out"),
        (("sh", "-c", "ln -s /etc out"), "left no out"),
    ],
)
def test_a_commit_that_does_not_build_says_why(
    tmp_path: Path, repository: Path, command: tuple[str, ...], said: str
) -> None:
    job = job_of(tmp_path, of_git(repository, *command))
    with pytest.raises(ReleaseError, match=said):
        job.fetch("fake", job.catalog.found.builds[0].release.version)


@pytest.mark.keeps("unfetched-costs-its-own")
def test_an_archive_must_be_what_its_source_said_and_stay_what_it_was(tmp_path: Path) -> None:
    builds = tmp_path / "builds"
    make_archive(builds / "a.tar.gz")
    make_archive(builds / "b.tar.gz")
    (builds / "a.json").write_text(json.dumps({"version": "2.0.91"}))
    (builds / "b.json").write_text(json.dumps({"version": "2.0.92", "sha256": "0" * 64}))
    job = job_of(tmp_path, DirectorySource(**named("ci"), kind="directory", path=str(builds)))
    fetched = job.fetch("fake", "2.0.91")
    assert (Path(fetched.artifact.location) / "program").read_text() == "x"
    with pytest.raises(ReleaseError, match="checksum does not match"):
        job.fetch("fake", "2.0.92")
    # The cache is emptied, and the archive is another one.
    make_archive(builds / "a.tar.gz", "y")
    (tmp_path / "cache").rename(tmp_path / "away")
    with pytest.raises(ReleaseError, match="not what it was when it was first used"):
        job.fetch("fake", "2.0.91")


def test_what_the_history_says_was_measured_first_stays_it_without_the_file_of_first_uses(
    tmp_path: Path, make_trial: Callable[..., Trial]
) -> None:
    builds = tmp_path / "builds"
    make_archive(builds / "a.tar.gz")
    (builds / "a.json").write_text(json.dumps({"version": "2.0.91"}))
    job = job_of(tmp_path, DirectorySource(**named("ci"), kind="directory", path=str(builds)))
    fetched = job.fetch("fake", "2.0.91")
    trial = make_trial(release=fetched.release, artifact=replace(fetched.artifact, location=""))
    bundle.seal(bundle.stage(job.paths, trial.id), trial, ())
    append_all(job.paths, lambda _: None)
    found = job.paths.found_releases
    known = json.loads(found.read_text())
    found.write_text(json.dumps({**known, "pins": {}}))
    (tmp_path / "cache").rename(tmp_path / "away")
    make_archive(builds / "a.tar.gz", "y")
    with pytest.raises(ReleaseError, match="not what it was when it was first used"):
        job.fetch("fake", "2.0.91")


@pytest.mark.keeps("unfetched-costs-its-own")
def test_several_are_fetched_and_none_stops_another(tmp_path: Path) -> None:
    builds = tmp_path / "builds"
    for number in range(6):
        make_archive(builds / f"{number}.tar.gz")
        (builds / f"{number}.json").write_text(json.dumps({"version": f"2.0.9{number}"}))
    job = job_of(tmp_path, DirectorySource(**named("ci"), kind="directory", path=str(builds)))
    (builds / "3.tar.gz").write_text("no archive")
    wanted = [("fake", f"2.0.9{number}") for number in range(6)] + [("fake", "2.0.0"), ("fake", "9")]
    fetched = job.fetch_all(wanted)
    assert {key[1] for key, one in fetched.items() if isinstance(one, KnickpointError)} == {
        "2.0.93",
        "9",
    }
    assert sum(isinstance(one, Fetched) for one in fetched.values()) == 6


def test_what_was_found_but_cannot_be_read_is_told_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "releases.json"
    path.write_text('{"builds": [{"colour": "blue"}]}')
    with pytest.raises(InputError, match="knickpoint releases --refresh"):
        read_found(path)


def test_a_local_copy_is_no_point() -> None:
    catalog = load_catalog(CONFIGS)
    suite = catalog.suite("fake-short")
    release = catalog.find_release("fake", "1.0.0")
    copy = Fetched(release=release, artifact=Artifact(source=Source.PATH, sha256="0"))
    deployment = catalog.resolve(suite, suite.experiments[0])
    assert order_point("t", "n", deployment, copy).purpose is Purpose.CANDIDATE
