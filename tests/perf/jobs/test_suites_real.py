"""Each reproduced report in small, end to end: a night on a real Cassandra, and its page.

A suite whose name has -small in it is found by itself; those that differ behind it (storage-small-disk,
storage-small-memory) are one report on several testbeds, and one page.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from budget import cases
from markupsafe import escape
from ruamel.yaml import YAML

from perf.config.catalog import Catalog, load_catalog
from perf.model.references import Report

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(3000)]

ROOT = Path(__file__).parents[3]
CONFIGS = ROOT / "configs"
SMALL = sorted(path.stem for path in (CONFIGS / "suites").glob("*-small*.yaml"))
GROUPS = sorted({re.sub(r"-small.*", "-small", name) for name in SMALL})
# How busy the machine is beside the tests is not what they are about; what is read, is.
BUSY = re.compile(r"(max_(?:lateness|client_cpu|client_wait)_share|max_iteration_spread): .*")
FOREIGN = re.compile(r"(max_(?:foreign_cpu|steal|throttled)_share): .*")
NIGHT_S = 1500


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    copy = tmp_path / "configs"
    shutil.copytree(CONFIGS, copy)
    for path in (copy / "testbeds").glob("local*.yaml"):
        text = BUSY.sub(r"\1: 1000000.0", path.read_text())
        path.write_text(FOREIGN.sub(r"\1: 1.0", text))
    yaml = YAML()
    for path in (copy / "suites").glob("*-small*.yaml"):
        suite = yaml.load(path)
        suite["experiments"] = cases(suite["experiments"], suite["experiments"][:1])
        yaml.dump(suite, path)
    return copy


def measure(suite: str, configs: Path, data: Path) -> None:
    command = [sys.executable, "-m", "perf.commands.main", "nightly", "--suite", suite]
    command += ["--configs", str(configs), "--data", str(data)]
    night = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=NIGHT_S
    )
    assert night.returncode == 0, night.stdout + night.stderr


def read_trials(data: Path) -> list[dict[str, object]]:
    bundles = sorted(data.glob("trials/*/trial.json"))
    return [json.loads(path.read_text())["trial"] for path in bundles]


def reports_of(catalog: Catalog, suites: list[str]) -> list[Report]:
    return [one for one in catalog.reports if set(suites) & {one.suite, *one.suites}]


def rows_with_both(page: str) -> list[str]:
    """Return the rows of the report's tables that hold a published number and a measured one."""
    rows = page.split('<td class="side">published</td>')[1:]
    return [row for row in rows if read_cells(row, "published") and read_cells(row, "here")]


def read_cells(page: str, kind: str) -> list[str]:
    """Return the cells of the report's tables that hold a number: "published", or "here"."""
    found = re.findall(rf'<td class="num {kind}">([^<]*)', page)
    return [text.strip() for text in found if re.search(r"\d", text)]


@pytest.mark.parametrize("group", GROUPS)
def test_a_small_suite_ends_in_a_page_beside_the_published_figures(
    group: str, configs: Path, tmp_path: Path
) -> None:
    catalog, data = load_catalog(configs), tmp_path / "var"
    suites = [name for name in SMALL if name.startswith(group)]
    for suite in suites:
        measure(suite, configs, data)
    trials = read_trials(data)
    wanted = [
        one.name for suite in suites for one in catalog.suite(suite).experiments for _ in one.releases
    ]
    assert sorted(str(trial["experiment"]) for trial in trials) == sorted(wanted)
    assert {trial["status"] for trial in trials} == {"completed"}, [t["reasons"] for t in trials]
    (report,) = reports_of(catalog, suites)
    (scale,) = {catalog.suite(suite).scaled_down_by for suite in suites}
    pages = list((data / "site" / "reproductions").glob("*.html"))
    page = next(path for path in pages if str(scale) in path.name).read_text()
    assert str(escape(report.title)) in page
    assert f"Scaled down by {scale:,}" in page
    assert len(read_cells(page, "published")) > 3
    assert rows_with_both(page)
