"""The site on disk: whole or not at all, never over somebody else's files."""

import errno
import os
import shutil
from collections.abc import Collection, Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from perf.model.errors import SiteError, UsageError
from reports.site.writing import Batch, SiteFile, batch_of, check_target, write_site


def refuse_exchange(*_: object) -> None:
    """Be a system, or a file system, that has no such step."""
    raise OSError(errno.ENOSYS, "Function not implemented")


@pytest.fixture(params=["in one step", "file by file"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put sites in place in one of both ways (`placing`)."""
    if request.param == "file by file":
        monkeypatch.setattr("reports.site.publishing.exchange", refuse_exchange)


both_ways = pytest.mark.usefixtures("way")


def snapshot(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@both_ways
def test_writes_every_file_and_names_the_front_page(tmp_path: Path) -> None:
    index = write_site(
        tmp_path / "a" / "site", [batch_of(SiteFile("index.html", b"1"), SiteFile("x/y", b"2"))]
    )
    assert index == tmp_path / "a" / "site" / "index.html"
    assert index.read_bytes() == b"1"
    assert (index.parent / "x" / "y").read_bytes() == b"2"


@both_ways
def test_replaces_the_old_site_as_a_whole_and_leaves_nothing_aside(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write_site(site, [batch_of(SiteFile("index.html", b"old"), SiteFile("gone.html", b"old"))])
    write_site(site, [batch_of(SiteFile("index.html", b"new"))])
    assert "gone.html" not in snapshot(site)
    assert snapshot(site)["index.html"] == b"new"
    assert list(tmp_path.iterdir()) == [site]


@both_ways
def test_what_somebody_else_put_into_a_site_is_named_when_it_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = [batch_of(SiteFile("index.html", b"1"))]
    write_site(tmp_path / "site", [*pages, batch_of(SiteFile("old.html", b"1"))])
    assert "gone" not in capsys.readouterr().err
    (tmp_path / "site" / "notes.txt").write_text("mine")
    write_site(tmp_path / "site", pages)
    assert "had not written there is gone: notes.txt" in capsys.readouterr().err
    assert not (tmp_path / "site" / "notes.txt").exists()


def test_keeps_the_old_site_until_the_new_one_is_whole(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write_site(site, [batch_of(SiteFile("index.html", b"old"))])
    before = snapshot(site)

    def break_half_way() -> Iterator[Batch]:
        yield batch_of(SiteFile("index.html", b"new"))
        assert snapshot(site) == before
        raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        write_site(site, break_half_way())
    assert snapshot(site) == before
    assert list(tmp_path.iterdir()) == [site]


@both_ways
def test_a_full_disk_is_reported_in_a_sentence_and_the_old_site_stays(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write_site(site, [batch_of(SiteFile("index.html", b"old"))])

    def fill_the_disk() -> Iterator[Batch]:
        yield batch_of(SiteFile("index.html", b"new"))
        raise OSError(errno.ENOSPC, "No space left on device", "index.html")

    with pytest.raises(
        SiteError, match=r"No space left on device \(index.html\)\nMake room"
    ) as reported:
        write_site(site, fill_the_disk())
    assert str(site) in str(reported.value)
    assert snapshot(site)["index.html"] == b"old"
    assert list(tmp_path.iterdir()) == [site]


def test_a_place_that_cannot_be_is_reported_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SiteError, match="choose another place with --output"):
        write_site(tmp_path / "file" / "site", [batch_of(SiteFile("index.html", b""))])
    assert SiteError.exit_code == 3


def test_a_report_that_begins_meanwhile_is_no_stranger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Path.is_file

    def look_before_another_begins(path: Path) -> bool:
        found = look(path)
        (tmp_path / ".knickpoint-site").write_text("{}")
        return found

    monkeypatch.setattr(Path, "is_file", look_before_another_begins)
    check_target(tmp_path)


def test_never_replaces_a_directory_that_is_not_a_site(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(UsageError, match="did not write"):
        write_site(tmp_path, [batch_of(SiteFile("index.html", b""))])
    assert (tmp_path / "thesis.txt").read_text() == "precious"


def page_of(version: str, made: list[str], name: str = "a.html") -> Batch:
    """Return a batch of one page, whose making is noted."""

    def make(paths: Collection[str]) -> Iterator[SiteFile]:
        made.extend(paths)
        yield SiteFile(name, f"{name} {version}".encode())

    return Batch({name: version}, make)


FRONT_PAGE = batch_of(SiteFile("index.html", b"front"))


@both_ways
def test_what_has_its_old_version_is_not_made_again(tmp_path: Path) -> None:
    made: list[str] = []
    for version in ("1", "1", "2", "2"):
        write_site(tmp_path / "site", [page_of(version, made), FRONT_PAGE])
    assert made == ["a.html", "a.html"]
    assert snapshot(tmp_path / "site")["a.html"] == b"a.html 2"


@both_ways
def test_only_what_changed_of_a_batch_is_asked_for(tmp_path: Path) -> None:
    asked: list[Collection[str]] = []

    def make(paths: Collection[str]) -> Iterator[SiteFile]:
        asked.append(paths)
        yield from (SiteFile(path, path.encode()) for path in paths)

    for versions in ({"a": "1", "b": "1"}, {"a": "1", "b": "2", "c": "1"}):
        write_site(tmp_path / "site", [Batch(versions, make), FRONT_PAGE])
    assert asked == [{"a", "b"}, {"b", "c"}]


@both_ways
def test_a_file_that_is_made_equal_is_not_written_again(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write_site(site, [FRONT_PAGE])
    before = (site / "index.html").stat()
    write_site(site, [FRONT_PAGE])
    after = (site / "index.html").stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


@both_ways
def test_data_stay_and_go_with_their_page(tmp_path: Path) -> None:
    site, data = tmp_path / "site", SiteFile("data/of-a.js", b"data", of="a.html")
    page = Batch({"a.html": "1"}, lambda _: (SiteFile("a.html", b"page"), data))
    write_site(site, [page, FRONT_PAGE])
    for _ in range(2):  # the second build knows of it only what the first one kept
        write_site(site, [Batch(page.versions, lambda _: pytest.fail("made again")), FRONT_PAGE])
        assert snapshot(site)["data/of-a.js"] == b"data"
    (site / "data" / "of-a.js").unlink()
    write_site(site, [page, FRONT_PAGE])
    assert snapshot(site)["data/of-a.js"] == b"data"
    write_site(site, [FRONT_PAGE])
    assert not (site / "data").exists()


@pytest.mark.parametrize("harm", ["deleted", "longer", "equally long"])
@both_ways
def test_what_somebody_changed_comes_back(tmp_path: Path, harm: str) -> None:
    site, made = tmp_path / "site", list[str]()
    write_site(site, [page_of("1", made), FRONT_PAGE])
    before = snapshot(site)
    if harm == "deleted":
        (site / "a.html").unlink()
    else:
        (site / "a.html").write_text("x" * len(before["a.html"]) * (2 if harm == "longer" else 1))
        later_ns = (site / ".knickpoint-site").stat().st_mtime_ns + 1
        os.utime(site / "a.html", ns=(later_ns, later_ns))
    (site / "added.html").touch()
    write_site(site, [page_of("1", made), FRONT_PAGE])
    assert snapshot(site) == before
    assert len(made) == 2


@both_ways
def test_another_version_of_the_code_makes_all_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    write_site(tmp_path / "site", [page_of("1", made), FRONT_PAGE])
    monkeypatch.setattr("reports.site.writing.digest_of_code", lambda: "another")
    write_site(tmp_path / "site", [page_of("1", made), FRONT_PAGE])
    assert len(made) == 2


@pytest.mark.slow
def test_many_files_are_made_on_all_cores_and_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    makers = tmp_path / "makers"
    makers.mkdir()

    def batch(number: int) -> Batch:
        def make(paths: Collection[str]) -> Iterator[SiteFile]:
            (makers / str(os.getpid())).touch()
            yield from (SiteFile(path, f"content of {path}".encode()) for path in sorted(paths))
            yield SiteFile(f"data/{number}.js", b"data", of=f"pages/{number}-0.html")

        return Batch({f"pages/{number}-{i}.html": f"{i}" for i in range(60)}, make)

    site = tmp_path / "site"
    write_site(site, [FRONT_PAGE, *map(batch, range(4))])
    found = snapshot(site)
    assert str(os.getpid()) not in {path.name for path in makers.iterdir()}
    assert found["pages/3-59.html"] == b"content of pages/3-59.html"
    assert len(found) == 4 * 61 + 3  # with what the site remembers, and its lock
    shutil.rmtree(makers)
    makers.mkdir()
    (site / "pages" / "2-7.html").unlink()
    write_site(site, [FRONT_PAGE, *map(batch, range(4))])
    assert snapshot(site) == found
    assert {path.name for path in makers.iterdir()} == {str(os.getpid())}  # one page only: in here


@both_ways
def test_a_link_inside_of_a_site_is_replaced_and_nothing_behind_it(tmp_path: Path) -> None:
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    page = batch_of(SiteFile("x/y/a.html", b"page"))
    write_site(site, [page, FRONT_PAGE])
    before = snapshot(site)
    elsewhere.mkdir()
    (elsewhere / "a.html").write_text("precious")
    shutil.rmtree(site / "x" / "y")
    (site / "x" / "y").symlink_to(elsewhere)
    (site / "more").symlink_to(elsewhere)
    write_site(site, [page, FRONT_PAGE])
    assert snapshot(site) == before
    assert not (site / "more").is_symlink()
    assert (elsewhere / "a.html").read_text() == "precious"


@both_ways
def test_what_stands_in_the_way_of_a_file_or_a_folder_goes(tmp_path: Path) -> None:
    site, page = tmp_path / "site", batch_of(SiteFile("x/a.html", b"page"))
    write_site(site, [page, FRONT_PAGE])
    before = snapshot(site)
    shutil.rmtree(site / "x")
    (site / "x").write_text("a file")
    (site / "index.html").unlink()
    (site / "index.html" / "inner").mkdir(parents=True)
    write_site(site, [page, FRONT_PAGE])
    assert snapshot(site) == before


@pytest.mark.parametrize(
    "content",
    [
        "[" * 200_000,
        '{"code": "", "files": {"index.html": ["", "", 5, ["x"]]}}',
        '{"code": "", "files": {"index.html": {"version": 1}}}',
    ],
)
@both_ways
def test_a_marker_that_says_nothing_makes_all_again(tmp_path: Path, content: str) -> None:
    site, made = tmp_path / "site", list[str]()
    write_site(site, [page_of("1", made), FRONT_PAGE])
    before = snapshot(site)
    (site / ".knickpoint-site").write_text(content)
    write_site(site, [page_of("1", made), FRONT_PAGE])
    assert snapshot(site) == before
    assert len(made) == 2


def test_a_loop_of_links_is_no_place_for_a_site(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(UsageError, match="give --output an empty or a new directory"):
        write_site(tmp_path / "loop", [FRONT_PAGE])


def test_a_process_that_was_killed_is_not_put_down_to_rights(tmp_path: Path) -> None:
    def die(_: Collection[str]) -> Iterator[SiteFile]:
        raise ChildProcessError("a process was ended (exit code -9)")

    with pytest.raises(SiteError, match=r"-9\); the old one stays as it was; run it again"):
        write_site(tmp_path / "site", [Batch({"a.html": ""}, die)])


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in {"href", "src"}:
                self.found.append(value or "")
            if name == "id":
                assert value not in self.anchors, f"id {value} twice on one page"
                self.anchors.add(value or "")


def _parse(path: Path) -> _Links:
    links = _Links()
    links.feed(path.read_text())
    return links


@pytest.mark.slow
def test_every_link_of_the_site_leads_somewhere(demo_site: Path) -> None:
    pages = sorted(demo_site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        for link in _parse(page).found:
            if link.startswith("https://"):  # where a published figure comes from
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.is_file(), f"{page}: {link}"
            if anchor and "=" not in anchor:  # with it, a page keeps its view in its address
                assert anchor in _parse(target).anchors, f"{page}: {link}"
