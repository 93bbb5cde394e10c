"""Configurations of two revisions, out of real git repositories."""

import os
import re
import tempfile
import time
from pathlib import Path

import pytest
from git_repository import GitRepository

from perf.config import revisions
from perf.config.catalog import Catalog
from perf.config.revisions import find_repository, find_span, load_revisions
from perf.model.errors import ConfigError, MeasureError, UsageError

FAKE = "systems/fake/default.yaml"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepository:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return GitRepository(tmp_path / "work")


def load(
    repository: GitRepository, base: str = "main", head: str = "topic", folder: str = "configs"
) -> tuple[Catalog, Catalog]:
    found = find_repository(repository.root)
    try:
        return load_revisions(found, find_span(found, base, head), folder)
    finally:
        assert list(Path(tempfile.gettempdir()).iterdir()) == []


def service_times(*catalogs: Catalog) -> list[object]:
    return [each.systems["fake"]["default"].settings["service_time_ms"] for each in catalogs]


def test_both_are_read_where_they_parted_and_the_work_tree_stays_as_it_is(
    repository: GitRepository,
) -> None:
    repository.branch("topic")
    repository.edit(FAKE, "_ms: 1", "_ms: 2")
    head = repository.commit("slower")
    repository.git("checkout", "--quiet", "main")
    repository.edit(FAKE, "_ms: 1", "_ms: 7")
    base = repository.commit("meanwhile")
    repository.edit(FAKE, "_ms: 7", "_ms: 8")
    repository.git("add", "--all")
    repository.edit(FAKE, "_ms: 8", "_ms: 9")
    before = repository.git("status", "--porcelain", "--branch")
    index = (repository.root / ".git/index").read_bytes()
    assert service_times(*load(repository)) == [1, 2]
    assert (repository.root / ".git/index").read_bytes() == index
    assert repository.git("status", "--porcelain", "--branch") == before
    assert "_ms: 9" in (repository.root / "configs" / FAKE).read_text()
    span = find_span(find_repository(repository.root / "configs"), "main", "topic")
    assert (span.base_tip, span.head_tip) == (base, head)
    assert span.merge_base == repository.git("merge-base", "main", "topic")


def test_no_hook_runs_and_a_hook_may_ask(
    repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.branch("topic")
    hook = repository.root / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    # What git tells a hook must not lead us to another repository or to the user's index.
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    found = find_repository(repository.root)
    load_revisions(found, find_span(found, "main", "topic"), "configs")
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "index").exists()


def test_no_filter_runs_that_a_revision_names(repository: GitRepository, tmp_path: Path) -> None:
    repository.branch("topic")
    (repository.root / "configs/.gitattributes").write_text("*.yaml filter=spy ident eol=crlf\n")
    repository.edit(FAKE, "_ms: 1", "_ms: 2")
    repository.commit("a filter")
    for way in ("smudge", "process"):
        repository.git("config", f"filter.spy.{way}", f"touch {tmp_path}/ran; false")
    repository.git("config", "filter.spy.required", "true")
    assert service_times(*load(repository)) == [1, 2]
    assert not (tmp_path / "ran").exists()


def test_no_file_is_written_outside_of_its_directory(repository: GitRepository, tmp_path: Path) -> None:
    repository.branch("topic")
    entry = repository.git("ls-tree", "HEAD:configs/suites").splitlines()[0].split("\t")[0]
    part = f"{entry}\tout.yaml"
    for name in ("suites", "..", "configs"):  # from within: configs/../suites/out.yaml
        part = f"040000 tree {make_tree(repository, part)}\t{name}"
    commit = repository.git("commit-tree", make_tree(repository, part), "-p", "main", "-m", "by hand")
    with pytest.raises(ConfigError, match=r"configs/\.\./suites/out\.yaml: no path of a file"):
        load(repository, head=commit)
    assert not list(tmp_path.rglob("out.yaml"))


def test_no_name_of_a_file_speaks_to_a_terminal_or_a_log(repository: GitRepository) -> None:
    repository.branch("topic")
    (repository.root / "configs/suites/a\n::error::b\x1b[2J.yaml").write_text("x")
    repository.commit("a name")
    with pytest.raises(ConfigError) as caught:
        load(repository)
    assert caught.value.problems[0].endswith(r"a\n::error::b\x1b[2J.yaml: no path of a file")


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        # Ten levels of ten: a few kilobytes of objects that name 10,000,000,000 files, or folders.
        ("100644 blob", r"has more than 1,000 files"),
        pytest.param("040000 tree", r"cannot be listed in 2 s", marks=pytest.mark.slow),
        ("100644 large", r"holds more than 2 MiB"),
    ],
)
def test_a_tree_that_fans_out_is_refused(repository: GitRepository, entries: str, said: str) -> None:
    mode, kind = entries.split()
    content = repository.root.parent / "content"
    content.write_bytes(b"x" * (1_000_000 if kind == "large" else 0))
    leaf = repository.git("hash-object", "-w", "-t", "tree" if kind == "tree" else "blob", str(content))
    part = [f"{mode} {kind} {leaf}\t{number}.yaml" for number in range(10)]
    for _ in range(0 if kind == "large" else 9):
        inner = make_tree(repository, *part)
        part = [f"040000 tree {inner}\t{number}" for number in range(10)]
    root = make_tree(repository, f"040000 tree {make_tree(repository, *part)}\tconfigs")
    commit = repository.git("commit-tree", root, "-p", "main", "-m", "by hand")
    with pytest.raises(ConfigError, match=said):
        load(repository, head=commit)


@pytest.mark.slow
def test_a_file_in_a_thousand_directories_is_refused(repository: GitRepository) -> None:
    content = repository.root.parent / "content"
    content.write_bytes(b"")
    entry = f"100644 blob {repository.git('hash-object', '-w', str(content))}\tdeep.yaml"
    for _ in range(1_200):
        entry = f"040000 tree {make_tree(repository, entry)}\td"
    root = make_tree(repository, f"040000 tree {make_tree(repository, entry)}\tconfigs")
    commit = repository.git("commit-tree", root, "-p", "main", "-m", "by hand")
    with pytest.raises(ConfigError, match=r"lies 1201 directories deep.* at most 20"):
        load(repository, head=commit)


LINE = (
    "{name: n-%d, system: fake, config: default, topology: three, workload: tiny-write, releases: [1]}"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (
            "suites/many.yaml",
            "experiments:\n" + "".join(f"  - {LINE % number}\n" for number in range(2_000)),
            r"suites/ has more than 500 experiments.*split the change.*`knickpoint compare`",
        ),
        (
            "workloads/many.yaml",
            "variants:\n" + "".join(f"  v{number}: {{description: d}}\n" for number in range(9_000)),
            r"many.yaml:1: variants has 9,000 variants, and at most 100 are read",
        ),
        (
            "systems/fake/many.yaml",
            "name: many\nsystem: fake\ndescription: d\nsettings:\n"
            + "".join(f"  s{number}: 1\n" for number in range(1_001)),
            r"many.yaml:4: settings is a mapping, which has 1,001 values, and at most 1,000 are taken",
        ),
        ("suites/dense.yaml", f"a: [{'1,' * 110_000}1]", r"has more than 100,000 commas, colons"),
    ],
    ids=["experiments", "variants", "settings", "values"],
)
def test_a_head_of_thousands_is_refused_in_a_sentence(
    repository: GitRepository, file: str, text: str, said: str
) -> None:
    repository.branch("topic")
    (repository.root / "configs" / file).write_text(text)
    repository.commit("many")
    with pytest.raises(ConfigError, match=said) as caught:
        load(repository)
    assert len(str(caught.value)) < 3_000


def make_tree(repository: GitRepository, *entries: str) -> str:
    """Write a tree, also one that git would refuse to make, as an object; give its hash."""
    content = b""
    for entry in entries:
        about, _, name = entry.partition("\t")
        mode, _, found = about.split()
        content += f"{mode.lstrip('0')} {name}\0".encode() + bytes.fromhex(found)
    file = repository.root.parent / "tree"
    file.write_bytes(content)
    return repository.git("hash-object", "-t", "tree", "-w", "--literally", str(file))


def test_a_configuration_that_is_wrong_names_the_revision_and_each_problem(
    repository: GitRepository,
) -> None:
    repository.branch("topic")
    repository.edit("workloads/blink.yaml", "operation: write", "operation: wrote")
    repository.edit("suites/fake-short.yaml", "config: default", "config: defualt")
    head = repository.commit("wrong")
    with pytest.raises(ConfigError) as caught:
        load(repository)
    assert caught.value.exit_code == 2
    first, second = sorted(caught.value.problems)
    start = f"at head {head[:8]}: configs/"
    assert re.match(rf"{start}suites/fake-short\.yaml:5: .*defualt.*did you mean default", first)
    assert re.match(rf"{start}workloads/blink\.yaml:8: operation is .wrote.*did you mean write", second)
    repository.git("checkout", "--quiet", "-b", "mended")
    repository.edit("workloads/blink.yaml", "operation: wrote", "operation: write")
    repository.edit("suites/fake-short.yaml", "config: defualt", "config: default")
    repository.commit("mended")
    with pytest.raises(ConfigError, match=f"at base {head[:8]}: configs/"):
        load(repository, "topic", "mended")


def test_no_link_is_followed_out_of_the_repository(repository: GitRepository, tmp_path: Path) -> None:
    repository.branch("topic")
    (tmp_path / "secret.yaml").write_text("token: hush\n")
    (repository.root / "configs/suites/link.yaml").symlink_to(tmp_path / "secret.yaml")
    repository.commit("a link")
    with pytest.raises(ConfigError, match=r"at head .*suites/link\.yaml: a symbolic link") as caught:
        load(repository)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("base", "head", "folder", "message"),
    [
        ("main", "nowhere", "configs", "there is no revision 'nowhere'"),
        ("--upload-pack=x", "topic", "configs", "is no revision"),
        ("", "topic", "configs", "is no revision"),
        ("main..topic", "topic", "configs", "there is no revision"),
        ("main", "topic", "conf", "there is no directory conf/ at head"),
        ("main", "topic", "../configs", "from the root of the repository"),
        ("main", "topic", "/etc", "from the root of the repository"),
        ("main", "lonely", "configs", "no common past here; a shallow clone"),
    ],
)
def test_what_is_not_there_is_refused(
    repository: GitRepository, base: str, head: str, folder: str, message: str
) -> None:
    repository.branch("topic")
    repository.git("checkout", "--quiet", "--orphan", "lonely")
    repository.commit("another beginning")
    with pytest.raises(UsageError, match=re.escape(message)):
        load(repository, base, head, folder)


def test_a_place_without_a_repository_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(UsageError, match="is in no work tree of a git repository"):
        find_repository(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MeasureError, match="git is not installed here"):
        find_repository(tmp_path)


def test_an_interrupt_leaves_no_files(
    repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.branch("topic")

    def interrupt(*_: object) -> Catalog:
        raise KeyboardInterrupt

    monkeypatch.setattr(revisions, "load_catalog", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load(repository)


def test_what_a_killed_run_left_is_removed_and_nothing_else(repository: GitRepository) -> None:
    repository.branch("topic")
    temporary = Path(tempfile.gettempdir())
    for name, age_s in (("revision-old", 3600), ("revision-new", 0), ("report", 3600)):
        home = temporary / f"knickpoint-{name}"
        (home / "configs").mkdir(parents=True)
        os.utime(home, (time.time() - age_s,) * 2)
    found = find_repository(repository.root)
    load_revisions(found, find_span(found, "main", "topic"), "configs")
    left = {one.name for one in temporary.iterdir()}
    assert left == {"knickpoint-revision-new", "knickpoint-report"}
