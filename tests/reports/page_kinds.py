"""Which pages of a site are looked at where all would take too long; where the links of pages lead."""

import html
import re
from pathlib import Path
from urllib.parse import unquote, urldefrag

_LINK = re.compile(r'<a [^>]*?href="([^"]*)"')
_ID = re.compile(r' id="([^"]*)"')


def one_of_each(site: Path) -> list[Path]:
    """Return the pages at the root of a site, and of each folder the page with the most in it."""
    folders = sorted({page.parent for page in site.glob("*/*.html")})
    largest = [max(place.glob("*.html"), key=lambda page: page.stat().st_size) for place in folders]
    return [*sorted(site.glob("*.html")), *largest]


def find_broken_links(site: Path) -> list[str]:
    """Return the links of all pages of a site that lead to no file of it, or to no place on a page."""
    texts = {page.resolve(): page.read_text() for page in site.rglob("*.html")}
    places = {page: set(map(html.unescape, _ID.findall(text))) for page, text in texts.items()}
    broken = set()
    for page, text in texts.items():
        for link in map(html.unescape, _LINK.findall(text)):
            path, anchor = urldefrag(link)
            target = (page.parent / unquote(path)).resolve() if path else page
            # What has a "=" is a view, which is no place.
            is_there = not anchor or "=" in anchor or anchor in places.get(target, ())
            if ":" not in path and not (target.is_file() and is_there):
                broken.add(f"{page.relative_to(site.resolve())} → {link}")
    return sorted(broken)
