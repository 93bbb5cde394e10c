"""Tables in the browser: copied as CSV, JSON and Markdown, filtered and sorted, whatever they say."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path

import cmarkgfm
import pytest
from chromium import Watched, watch
from playwright.sync_api import Browser, Page, expect

from reports.site.rendering import static_files
from reports.site.writing import batch_of, write_site

HOSTILE = '=HYPERLINK("http://x","y") | `a` <b>&amp;</b> *x* [l](u) @all #12 :tada: gh-7 0123456789 $x$'
PAGE = """<!doctype html><html lang="en" data-root=""><title>t</title>
<meta http-equiv="Content-Security-Policy"
content="default-src 'none'; script-src 'self'; style-src 'self'">
<link rel="stylesheet" href="static/style.css"><script src="static/knickpoint.js" defer></script>
<main><div class="scroll" data-copy data-filter data-sort><table><caption>Some rows</caption>
<thead><tr><th scope="col">Name</th><th scope="col">Value</th>
<th scope="col" colspan="2">Two</th></tr></thead>
<tbody>
<tr><th scope="row"><a href="#a">alpha, "quoted"</a> <span class="note">first</span></th>
<td data-value="10.5">10.5&nbsp;ms</td><td>+3.1&nbsp;%</td><td>−1</td></tr>
<tr><th scope="row"><span aria-hidden="true">✕</span>beta</th><td data-value="9">9&nbsp;ms</td>
<td>{hostile}</td><td>@SUM(1)</td></tr>
<tr data-find="delta"><th scope="row">gamma</th>
<td data-value="-2">−2&nbsp;ms</td><td></td><td>a<br>b</td></tr>
</tbody></table></div></main></html>"""


@pytest.fixture(scope="module")
def shared(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Watched, Path]]:
    site = tmp_path_factory.mktemp("tables") / "site"
    write_site(site, [batch_of(*static_files())])
    escaped = HOSTILE.replace("&", "&amp;").replace("<", "&lt;")
    (site / "page.html").write_text(PAGE.format(hostile=escaped))
    with watch(browser) as watched:
        watched.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield watched, site / "page.html"


@pytest.fixture
def page(shared: tuple[Watched, Path]) -> Iterator[Page]:
    watched, path = shared
    watched.page.goto("about:blank")
    watched.open(path)
    yield watched.page
    assert watched.complaints == []


@pytest.fixture
def copied(page: Page) -> Callable[[str], str]:
    def copied(form: str) -> str:
        page.get_by_role("button", name=f"Copy Some rows as {form}").click()
        expect(page.get_by_role("status").filter(has_text=f"as {form}")).to_have_count(1)
        return str(page.evaluate("navigator.clipboard.readText()"))

    return copied


def test_csv_is_quoted_and_gives_no_formula(copied: Callable[[str], str]) -> None:
    rows = list(csv.reader(io.StringIO(copied("CSV"), newline="")))
    assert rows == [
        ["name", "value", "two", "column_4"],
        ['alpha, "quoted"', "10.5", "+3.1 %", "-1"],
        ["beta", "9", "'" + HOSTILE, "'@SUM(1)"],
        ["gamma", "-2", "", "a b"],
    ]


def test_json_has_numbers_where_cells_have_values(copied: Callable[[str], str]) -> None:
    first, second, third = json.loads(copied("JSON"))
    assert first == {
        "name": 'alpha, "quoted"',
        "value": 10.5,
        "two": "+3.1 %",
        "column_4": "-1",
    }
    assert (second["two"], third["value"]) == (HOSTILE, -2)


def test_a_column_of_percentages_or_of_one_unit_holds_numbers_and_a_picture_is_none(
    page: Page, copied: Callable[[str], str]
) -> None:
    page.evaluate(
        """() => {
          const texts = [["−3.1 %", "1,200 ops/s"], ["≥ 4.5 %", "8.5 ms"], ["–", "–"]];
          [...document.querySelectorAll("tbody tr")].forEach((row, at) => {
            [row.cells[2].textContent, row.cells[3].textContent] = texts[at];
            row.cells[1].innerHTML = '<svg role="img" aria-label="a picture"></svg>';
          });
        }"""
    )
    rows = list(csv.reader(io.StringIO(copied("CSV"), newline="")))
    assert rows[0] == ["name", "two_pct", "column_3", "column_3_unit"]
    assert [row[1:] for row in rows[1:]] == [
        ["-3.1", "1200", "ops/s"],
        ["4.5", "8.5", "ms"],
        ["", "", ""],
    ]
    assert "a picture" not in copied("Markdown")


class _Cells(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.tags: set[str] = set()
        self.is_code = False
        self.linkable = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.is_code = tag == "code"
        if tag in {"td", "th"}:
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data.strip("\n")
            # GitHub makes no links in code.
            self.linkable += "" if self.is_code else data

    def handle_endtag(self, tag: str) -> None:
        self.is_code = False


def test_markdown_shows_the_cells_as_they_are(copied: Callable[[str], str]) -> None:
    parser = _Cells()
    parser.feed(cmarkgfm.github_flavored_markdown_to_html(copied("Markdown")))
    assert parser.tags == {"table", "thead", "tbody", "tr", "th", "td", "code"}
    seen = [cell.replace("\u200b", "") for cell in parser.cells]
    assert seen[4:8] == ['alpha, "quoted" first', "10.5", "+3.1 %", "−1"]
    assert "0123456789" in "".join(parser.cells)
    assert seen[8:12] == ["beta", "9", HOSTILE, "@SUM(1)"]
    # GitHub looks for these in what is shown; whatever parts them keeps them text.
    for reference in (r"@\w", r"#\d", r":\w+:", r"gh-\d", r"[0-9a-f]{7}", r"\$x\$", "http://"):
        assert not re.search(reference, parser.linkable)


def test_copying_works_where_the_browser_has_no_clipboard_for_pages(page: Page) -> None:
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.get_by_role("button", name="Copy Some rows as JSON").click()
    expect(page.get_by_text("Copied 3 rows as JSON.")).to_be_visible()
    page.evaluate("document.body.append(document.createElement('textarea'))")
    page.locator("textarea").focus()
    page.keyboard.press("Control+V")
    assert json.loads(page.locator("textarea").input_value())[1]["name"] == "beta"


def test_a_filter_hides_rows_is_kept_in_the_url_and_counts(
    page: Page, copied: Callable[[str], str]
) -> None:
    field = page.get_by_label("Filter Some rows")
    field.fill("ALPHA ms")
    expect(page.get_by_text("1 of 3 rows.")).to_be_visible()
    assert page.locator("tbody tr:visible").count() == 1
    assert page.url.endswith("#find=ALPHA+ms")
    assert len(json.loads(copied("JSON"))) == 1
    page.reload()
    assert page.get_by_label("Filter Some rows").input_value() == "ALPHA ms"
    assert page.locator("tbody tr:visible").count() == 1
    page.evaluate("location.hash = 'find=gamma'")
    expect(page.locator("tbody tr:visible")).to_contain_text("gamma")
    page.evaluate("location.hash = 'find=delta%20ms'")  # a row may carry words that no cell shows
    expect(page.locator("tbody tr:visible")).to_contain_text("gamma")
    page.get_by_label("Filter Some rows").fill("nothing like it")
    expect(page.get_by_text("No row holds all of this.")).to_be_visible()


def test_headers_sort_by_value_and_say_how(page: Page) -> None:
    def names() -> list[str]:
        return [text.split()[0].lstrip("✕") for text in page.locator("tbody th").all_inner_texts()]

    header = page.get_by_role("columnheader", name="Value")
    header.get_by_role("button").click()
    assert header.get_attribute("aria-sort") == "ascending"
    assert names() == ["gamma", "beta", "alpha,"]
    header.get_by_role("button").click()
    assert header.get_attribute("aria-sort") == "descending"
    assert names() == ["alpha,", "beta", "gamma"]
    page.get_by_role("columnheader", name="Name").get_by_role("button").click()
    assert header.get_attribute("aria-sort") is None
    assert names() == ["alpha,", "beta", "gamma"]


def test_how_a_table_is_sorted_is_kept_in_the_url(page: Page) -> None:
    header = page.get_by_role("columnheader", name="Value")
    header.get_by_role("button").click()
    assert page.url.endswith("#sort=value")
    header.get_by_role("button").click()
    assert page.url.endswith("#sort=-value")
    page.reload()
    expect(header).to_have_attribute("aria-sort", "descending")
    page.evaluate("location.hash = 'sort=value'")
    expect(page.locator("tbody tr").first).to_contain_text("gamma")
    page.evaluate("location.hash = 'sort='")
    expect(page.locator("tbody tr").first).to_contain_text("alpha")
    expect(header).not_to_have_attribute("aria-sort", re.compile(""))


def test_quantities_sort_by_number_versions_by_part_and_nothing_comes_last(page: Page) -> None:
    def sort(*texts: str) -> list[str]:
        page.evaluate(
            """texts => {
              const cells = document.querySelectorAll('tbody tr > :nth-child(2)');
              cells.forEach((cell, at) => { delete cell.dataset.value; cell.textContent = texts[at]; });
            }""",
            list(texts),
        )
        button = page.get_by_role("columnheader", name="Value").get_by_role("button")
        button.click()
        return page.locator("tbody tr > :nth-child(2)").all_inner_texts()

    assert sort("1,200 ops/s", "18.3 ops/s", "–") == ["18.3 ops/s", "1,200 ops/s", "–"]
    assert sort("–", "≥ 4.1 %", "−12 %") == ["≥ 4.1 %", "−12 %", "–"]  # the other way round
    assert sort("5.0.10", "5.0.9", "4.1.11") == ["4.1.11", "5.0.9", "5.0.10"]
