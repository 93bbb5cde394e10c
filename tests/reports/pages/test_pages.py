"""Rendered pages: hostile text stays text, and equal input gives equal bytes."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

import re
from html.parser import HTMLParser
from typing import Any

from reports.pages.old_trials.not_found import NOT_FOUND_PAGE
from reports.site.writing import SiteFile

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'"


def test_hostile_text_never_becomes_markup(demo: Any) -> None:
    pages = [file for file in demo.files() if file.path.endswith(".html")]
    assert any(b"&lt;script&gt;alert(" in page.content for page in pages)
    assert not any(b"<script>" in page.content for page in pages if page.path != NOT_FOUND_PAGE)


def test_nothing_is_inline_and_nothing_is_remote(demo: Any) -> None:
    for file in demo.files():
        if file.path.endswith(".html") and file.path != NOT_FOUND_PAGE:
            text = file.content.decode()
            assert POLICY in text
            text = re.sub(r'<a href="https?://[^"]*" rel="noreferrer">', "", text)  # only if clicked
            assert not re.search(r"<style|\sstyle=|\son[a-z]+=|https?:", text), file.path


def test_equal_input_gives_equal_bytes(demo: Any) -> None:
    assert demo.files() == demo.files()
    paths = [file.path for file in demo.files()]
    assert len(paths) == len(set(paths))


class _Checker(HTMLParser):
    """Checks nesting, and that each table has a caption and each header a scope."""

    VOID = frozenset({"meta", "link", "img", "br", "input", "polyline", "circle"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tables = self.captions = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        self.tables += tag == "table"
        self.captions += tag == "caption"
        assert tag != "th" or dict(attrs).get("scope") in {"row", "col", "rowgroup"}

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def check_page(file: SiteFile) -> None:
    checker = _Checker()
    text = file.content.decode()
    checker.feed(text)
    assert not checker.open
    assert checker.tables == checker.captions
    assert text.startswith('<!doctype html>\n<html lang="en" ')
    assert text.count("<h1") == 1


def test_every_page_is_well_formed_and_its_tables_are_labelled(demo: Any) -> None:
    pages = [file for file in demo.files() if file.path.endswith(".html")]
    for page in pages:
        check_page(page)
