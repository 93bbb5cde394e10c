"""Pages and the style sheet held to the standards, by the Nu Html Checker that the W3C runs."""

from pathlib import Path

import pytest
from page_checkers import find_faults
from page_kinds import one_of_each


@pytest.mark.slow
def test_each_kind_of_page_and_the_style_sheet_are_valid_whatever_the_names(
    demo_site: Path, hostile_site: Path, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.html"
    wrong.write_text("<!doctype html><html lang=en><title>t</title><p><div id=a></p><b id=a>")
    pages = [*one_of_each(demo_site), *one_of_each(hostile_site)]
    faults = find_faults([*pages, demo_site / "static/style.css", wrong])
    assert [fault for fault in faults if not fault.startswith("wrong.html")] == []
    assert len(faults) >= 3  # so it does find what is wrong


@pytest.mark.slow
def test_all_pages_are_valid(demo_site: Path) -> None:
    assert find_faults(sorted(demo_site.rglob("*.html"))) == []
