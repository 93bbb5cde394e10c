"""What a browser lets a page of ours do: its own scripts and styles, and nothing else."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from chromium import watch
from page_kinds import one_of_each
from playwright.sync_api import Browser

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'"
)
REFUSED = {"style", "iframe", "object", "embed", "base", "frame"}
HEAD = re.compile(
    r'<meta charset="utf-8">\s*<meta http-equiv="Content-Security-Policy" content="([^"]*)">'
)


class Refused(HTMLParser):
    """Finds what the policy would refuse, and what would ask for something elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        words = {name: value or "" for name, value in attrs}
        wrong = [name for name in words if name.startswith("on") or name == "style"]
        wrong += [tag] if tag in REFUSED or (tag == "script" and "src" not in words) else []
        leads = [words.get(name, "") for name in ("src", "data", "action", "formaction")]
        leads += [words.get("href", "")] if tag == "link" else []
        wrong += [lead for lead in leads if re.match(r"(?!data:)[a-z]+:|//", lead, re.IGNORECASE)]
        wrong += [words["href"]] if words.get("href", "").lower().startswith("javascript:") else []
        self.found += [f"<{tag}>: {one[:60]}" for one in wrong]


@pytest.mark.slow
@pytest.mark.keeps("page-policy")
def test_every_page_says_the_policy_first_and_needs_nothing_that_it_refuses(
    demo_site: Path, hostile_site: Path, figures: dict[str, object]
) -> None:
    pages = [page for site in (demo_site, hostile_site) for page in site.rglob("*.html")]
    for site in (demo_site, hostile_site):
        pages.remove(site / "404.html")  # served at any address, it can load nothing
    for page in pages:
        text = page.read_text()
        policy = HEAD.search(text)
        assert policy is not None, page
        assert policy[1] == POLICY, page
        assert text.index("http-equiv") < text.index("<script"), page
        parser = Refused()
        parser.feed(text)
        assert parser.found == [], page
    figures["pages"] = len(pages)


@pytest.mark.keeps("page-policy")
def test_a_browser_refuses_what_was_smuggled_into_a_page(
    browser: Browser, demo_site: Path, tmp_path: Path
) -> None:
    page = one_of_each(demo_site)[0]
    smuggled = page.read_text().replace(
        "</body>",
        "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\"></body>",
    )
    assert "onerror" in smuggled
    changed = tmp_path / "index.html"
    changed.write_text(smuggled)
    with watch(browser) as watched:
        watched.open(changed)
        assert watched.page.title() != "run"
        assert any("Content Security Policy" in said for said in watched.complaints), watched.complaints
