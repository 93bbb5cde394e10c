"""The site on disk: whole or not at all, never over somebody else's files."""

import errno
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from perf.errors import SiteError, UsageError
from reports.site import Batch, SiteFile, batch_of, write_site


def snapshot(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def test_writes_every_file_and_names_the_front_page(tmp_path: Path) -> None:
    index = write_site(
        tmp_path / "a" / "site", [batch_of(SiteFile("index.html", b"1"), SiteFile("x/y", b"2"))]
    )
    assert index == tmp_path / "a" / "site" / "index.html"
    assert index.read_bytes() == b"1"
    assert (index.parent / "x" / "y").read_bytes() == b"2"


def test_replaces_the_old_site_as_a_whole_and_leaves_nothing_aside(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write_site(site, [batch_of(SiteFile("index.html", b"old"), SiteFile("gone.html", b"old"))])
    write_site(site, [batch_of(SiteFile("index.html", b"new"))])
    assert "gone.html" not in snapshot(site)
    assert snapshot(site)["index.html"] == b"new"
    assert list(tmp_path.iterdir()) == [site]


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


def test_a_full_disk_is_told_in_a_sentence_and_the_old_site_stays(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write_site(site, [batch_of(SiteFile("index.html", b"old"))])

    def fill_the_disk() -> Iterator[Batch]:
        yield batch_of(SiteFile("index.html", b"new"))
        raise OSError(errno.ENOSPC, "No space left on device", "index.html")

    with pytest.raises(SiteError, match=r"No space left on device \(index.html\); give room") as told:
        write_site(site, fill_the_disk())
    assert str(site) in str(told.value)
    assert snapshot(site)["index.html"] == b"old"
    assert list(tmp_path.iterdir()) == [site]


def test_a_place_that_cannot_be_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SiteError, match="choose another place with --output"):
        write_site(tmp_path / "file" / "site", [batch_of(SiteFile("index.html", b""))])
    assert SiteError.exit_code == 3


def test_never_replaces_a_directory_that_is_not_a_site(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(UsageError, match="did not write"):
        write_site(tmp_path, [batch_of(SiteFile("index.html", b""))])
    assert (tmp_path / "thesis.txt").read_text() == "precious"


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


def test_every_link_of_the_site_leads_somewhere(demo_site: Path) -> None:
    pages = sorted(demo_site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        for link in _parse(page).found:
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.is_file(), f"{page}: {link}"
            if anchor:
                assert anchor in _parse(target).anchors, f"{page}: {link}"
