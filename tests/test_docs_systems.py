"""The documentation of systems names each one that there is, and none that there is not."""

import re
from pathlib import Path

import pytest

from perf.systems import registry

ROOT = Path(__file__).parents[1]


def _rows() -> dict[str, list[str]]:
    text = (ROOT / "docs/systems.md").read_text()
    table = text.split("\n\n| system |", 1)[1].split("\n\n", 1)[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {row[0].strip("`"): row for row in cells}


def test_every_system_has_a_row_and_every_row_a_system() -> None:
    assert tuple(sorted(_rows())) == registry.names()


@pytest.mark.parametrize("name", registry.names())
def test_row_says_what_was_run_and_names_every_line(name: str) -> None:
    row = _rows()[name]
    assert len(row) == 5
    assert all(row)
    lines = {release.line for release in registry.load(name).releases()}
    assert set(re.findall(r"\d+\.\d+", row[1])) == lines


@pytest.mark.parametrize("name", registry.names())
def test_every_system_has_a_default_config(name: str) -> None:
    assert (ROOT / "configs/systems" / name / "default.yaml").is_file()


def test_links_between_the_pages_lead_somewhere() -> None:
    for page in ("systems.md", "adding-a-database.md"):
        text = (ROOT / "docs" / page).read_text()
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert (ROOT / "docs" / target).is_file(), f"{page}: {target}"
        for path in re.findall(r"`((?:perf|tests|configs)/[\w./-]+)`", text):
            assert (ROOT / path).exists(), f"{page}: {path}"
