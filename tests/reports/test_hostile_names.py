"""A history whose every name is hostile: the site is built, fits, leads on and can be taken along."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from chromium import Watched, watch
from page_checkers import find_faults
from page_kinds import inner_links, one_of_each
from playwright.sync_api import Browser

from reports.pages import all_batches
from reports.site import batch_of, write_site

SCRIPT = "<script>alert('pwned')</script>"
NAMES = {
    "5.0.1": SCRIPT,
    "5.0.2": "9" * 10_000,
    "5.0.3": "\u202e3.0.5\u2066 💥👩🏽‍🚀 \x00\x07\x9b31m",
    "5.0": "../../../../etc/passwd%00#?&",
    "cassandra": "קסנדרה\" onmouseover='alert(1)' x=`1`",
    "cassandra-sensor-write": "</title></script><img src=x onerror=alert(1)>" + "w" * 300,
    "cassandra-sensor-read": "C:\\..\\con\u2028\u2029\r\n|pipe|`tick`[l](javascript:alert(1))",
    "sensor-write": "{{ 7 * 7 }}{% raw %}${alert(1)}=cmd|'/c calc'!A1",
    "sensor-read": "&lt;b&gt;&amp;amp; zalgo: Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!͖̬̰̙̗̿̋ͥͥ̂ͣ̐́́͜͞",
    "local-three": "\ufeff\u200b\u200f",
    "default": "constructor __proto__ toString",
    "local": "<!-- --><![CDATA[ ]]>",
    "localhost": "\x1b]8;;http://example.org\x07host\x1b]8;;\x07",
    "node-1": "n" * 2000,
    "kernel": "-->'\"><svg/onload=alert(1)>",
}


def rename(value: Any, names: Mapping[str, str]) -> Any:
    """Give a value in which every string that is a known name is another one, at any depth."""
    if type(value) is str:
        name, at, digest = value.partition("@")
        return names.get(value) or (f"{names.get(name, name)}@{digest}" if at else value)
    if isinstance(value, tuple | list):
        return tuple(rename(one, names) for one in value)
    if isinstance(value, Mapping):
        return {rename(key, names): rename(one, names) for key, one in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {
            field.name: rename(getattr(value, field.name), names)
            for field in dataclasses.fields(value)
            if field.init
        }
        return dataclasses.replace(value, **changed)
    return value


@pytest.fixture(scope="module")
def site(demo: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    nights = sorted({trial.night for trial in demo.trials})
    ids = {
        trial.id: f"../{place}/{SCRIPT}\u202e\x00{'x' * 300}" for place, trial in enumerate(demo.trials)
    }
    names = {**NAMES, **{night: f"{SCRIPT}{night}\u202e../#{night}" for night in nights}, **ids}
    scene = demo.scene()
    parts = ("heads", "digests", "archive", "judgement", "nights", "comparisons", "bisections")
    renamed = {part: rename(getattr(scene, part), names) for part in parts}
    hostile = dataclasses.replace(scene, **renamed)
    files = [file for batch in all_batches(hostile) for file in batch.make(batch.versions)]
    place = tmp_path_factory.mktemp("hostile") / "site"
    write_site(place, [batch_of(*files)])
    return place


@pytest.fixture(scope="module")
def narrow(browser: Browser) -> Iterator[Watched]:
    with watch(browser, width=360) as watched:
        watched.page.on("dialog", lambda dialog: watched.complaints.append(f"said {dialog.message}"))
        watched.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield watched
    assert watched.complaints == []


def test_every_kind_of_page_fits_and_leads_on(narrow: Watched, site: Path, demo_site: Path) -> None:
    pages = one_of_each(site)
    assert [page.parent.name for page in pages] == [page.parent.name for page in one_of_each(demo_site)]
    found = []
    for path in pages:
        narrow.open(path)
        wide = narrow.page.evaluate("document.documentElement.scrollWidth")
        if wide > 360:
            found.append(f"{path.parent.name}/{path.name[:60]} is {wide} px wide")
        targets = {target for target, _ in inner_links(narrow.page)}
        found += [f"{path.name} → {target.name}" for target in targets if not target.is_file()]
    assert found == []
    assert narrow.complaints == []


def test_every_kind_of_page_is_valid_and_shows_names_as_text(site: Path) -> None:
    pages = one_of_each(site)
    assert find_faults(pages) == []
    texts = [page.read_text() for page in pages]
    assert not any(SCRIPT in text or "<img src=x" in text or "\u202e" in text for text in texts)
    assert any("&lt;script&gt;alert(&#39;pwned&#39;)" in text for text in texts)


def test_files_stay_inside_of_the_site_with_names_that_any_system_takes(site: Path) -> None:
    assert sorted(path.name for path in site.parent.iterdir()) == ["site"]
    names = [path.name for path in site.rglob("*")]
    assert max(map(len, names)) <= 210
    assert all(name.isascii() and name.isprintable() for name in names)


def test_such_names_are_found_and_copied(narrow: Watched, site: Path) -> None:
    page = narrow.page
    narrow.open(site / "index.html")
    page.locator("#search").fill("alert pwned")
    page.get_by_role("option").first.wait_for()
    assert "<script>" in page.get_by_role("option").first.inner_text()
    table = next(path for path in one_of_each(site) if "data-copy" in path.read_text())
    narrow.open(table)
    page.get_by_role("button", name="as JSON").first.click()
    page.get_by_text("as JSON.").wait_for()
    assert json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert narrow.complaints == []
