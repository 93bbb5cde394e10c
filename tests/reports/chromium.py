"""The site in a real browser, opened from a file: what it complains about and asks for is noted."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from needs import need
from playwright.sync_api import Browser, Page, Request, sync_playwright

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@dataclass
class Watched:
    """A page with everything it complained about or asked for from elsewhere."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    def open(self, path: Path, fragment: str = "") -> None:
        """Open a page of a site on disk, with `fragment` behind the # of its address."""
        self.page.goto(path.as_uri() + (f"#{fragment}" if fragment else ""))


@contextmanager
def start() -> Iterator[Browser]:
    """Start Chromium; skip where there is none, unless everything real is required."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    need(found, "no chromium or google-chrome on PATH: pages were not looked at in a browser")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        yield chromium
        chromium.close()


@contextmanager
def watch(
    browser: Browser,
    scheme: str = "light",
    *,
    width: int = 1200,
    height: int = 800,
    bypass_csp: bool = False,
    has_touch: bool = False,
    has_script: bool = True,
) -> Iterator[Watched]:
    """Yield a page in a context of its own: clipboard and storage begin empty."""
    context = browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": height},
        bypass_csp=bypass_csp,
        has_touch=has_touch,
        java_script_enabled=has_script,
    )
    watched = Watched(context.new_page())

    def note_request(sent: Request) -> None:
        if not sent.url.startswith(("file://", "data:")):
            watched.complaints.append(f"asked for {sent.url}")

    watched.page.on("request", note_request)
    watched.page.on("console", lambda message: watched.complaints.append(message.text))
    watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
    yield watched
    context.close()
