"""The page for addresses that are gone, in a real browser: it leads to old trials."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from reports.pages.old_trials.not_found import NOT_FOUND_PAGE, render_not_found

TRIAL = "2026-03-01-1.01.cassandra-write.5.0.1-rc1+a"


class _StaticHost(SimpleHTTPRequestHandler):
    """Serve files as static hosts do: for what is not there, their 404.html."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        content = (Path(self.directory) / "site" / NOT_FOUND_PAGE).read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", f"{len(content)}")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder whose `site` is a site, as a project's page below the name of its host."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_StaticHost, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a site of one night with one old trial."""
    (tmp_path / "site/night").mkdir(parents=True)
    (tmp_path / "site" / NOT_FOUND_PAGE).write_bytes(render_not_found().content)
    night = f'<!doctype html><title>Night</title><p style="height: 3000px"><p id="{TRIAL}">here'
    (tmp_path / "site/night/2026-03-01-1.html").write_text(night)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("root", ["site", "/site"])  # a path that begins with // names no host
def test_the_address_of_an_old_trial_leads_to_its_place(
    folder: Path, browser: Browser, root: str
) -> None:
    context = browser.new_context()
    page = context.new_page()
    with serve(folder) as host:
        page.goto(f"{host}/{root}/trials/{TRIAL}.html")
        page.wait_for_url("**/night/**")
        assert page.url.startswith(f"{host}/")
        assert page.title() == "Night"
        assert page.evaluate("document.querySelector(':target').textContent") == "here"
        # One of a trial with a capital letter in its name is a slug, without a dot.
        page.goto(f"{host}/{root}/trials/2026-03-01-1-01-write-5-0-1-rc1-0123abcd.html")
        page.wait_for_url("**/night/2026-03-01-1.html#2026-03-01-1-01-write-5-0-1-rc1-0123abcd")
        # Any other address says where to look, and leads nowhere.
        for path in (
            "site/nowhere.html",
            "site/trials/no-name.html",
            "site/trials/2026-03-09-1.01.w.1.html",
        ):
            page.goto(f"{host}/{path}")
            page.wait_for_load_state()
            assert page.locator("h1").inner_text() == "No page is at this address"
    context.close()


@pytest.mark.slow
def test_without_javascript_words_say_where_to_look(folder: Path, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    with serve(folder) as host:
        page.goto(f"{host}/site/trials/{TRIAL}.html")
        assert "night/2026-11-01-1.html" in page.locator("main").inner_text()
        assert not page.locator("#led").is_visible()
    context.close()
