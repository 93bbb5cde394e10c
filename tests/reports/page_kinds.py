"""Which pages of a site are looked at where all would take too long: one of each kind."""

from pathlib import Path

from playwright.sync_api import Page


def one_of_each(site: Path) -> list[Path]:
    """Give the pages at the root of a site, and of each folder the page with the most in it."""
    folders = sorted({page.parent for page in site.glob("*/*.html")})
    largest = [max(place.glob("*.html"), key=lambda page: page.stat().st_size) for place in folders]
    return [*sorted(site.glob("*.html")), *largest]


def inner_links(page: Page) -> list[tuple[Path, str]]:
    """Give what an open page links to inside of the site: the file, and what stands behind the #."""
    found = page.evaluate(
        "[...document.querySelectorAll('a[href]')].filter(one => one.protocol === 'file:')"
        ".map(one => [decodeURIComponent(one.pathname), one.hash.slice(1)])"
    )
    return [(Path(path), anchor) for path, anchor in found]
