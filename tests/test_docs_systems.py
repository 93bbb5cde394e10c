"""The documentation of systems names each one that there is, and none that there is not."""

import re
from pathlib import Path

import pytest

from perf.systems import registry
from perf.systems.conformance.models import list_models
from perf.systems.contract import (
    BootstrapsOnce,
    ChecksAccess,
    ChecksLayout,
    KeepsData,
    KnowsVersion,
    ReportsFacts,
    ReportsTelemetry,
    RunsParts,
    Settles,
    WantsTuning,
)

ROOT = Path(__file__).parents[1]


PAGE = (ROOT / "docs/systems.md").read_text()
ABILITIES = {
    "layouts": ChecksLayout,
    "access": ChecksAccess,
    "shards": RunsParts,
    "joined once": BootstrapsOnce,
    "settles": Settles,
    "kept data": KeepsData,
    "version": KnowsVersion,
    "telemetry": ReportsTelemetry,
    "facts": ReportsFacts,
    "tuning": WantsTuning,
}


def _rows(heading: str = "| system | lines |") -> dict[str, list[str]]:
    table = PAGE.split(f"\n\n{heading}", 1)[1].split("\n\n", 1)[0]
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
def test_what_a_system_can_be_asked_is_said_as_it_is(name: str) -> None:
    system = registry.load(name)
    _, models, abilities = _rows("| system | data models | abilities |")[name]
    assert models == ", ".join(model.name for model in list_models(system))
    able = [word for word, protocol in ABILITIES.items() if isinstance(system, protocol)]
    assert abilities == (", ".join(able) or "–")


@pytest.mark.parametrize("word", ABILITIES)
def test_each_ability_is_explained(word: str) -> None:
    assert f"**{word.capitalize()}**" in PAGE


@pytest.mark.parametrize("name", registry.names())
def test_who_has_no_product_here_is_reported_how_to_prove_it(name: str) -> None:
    if "**no " in _rows()[name][3]:
        assert f"knickpoint conformance {name} " in PAGE.split("## Checking a product")[1]
        assert re.search(rf"^## {name}: what has been run", PAGE, re.MULTILINE | re.IGNORECASE)


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
