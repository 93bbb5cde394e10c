"""Nothing that a change says of hosts is used to measure it: no program, no address, no way there."""

import shutil
from pathlib import Path

import pytest

from analysis.orchestration.candidate import CandidatePlan, plan_candidate
from perf.config.catalog import load_catalog
from perf.config.difference import compare_catalogs
from perf.config.revisions import RevisionRange

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
SPAN = RevisionRange(base="main", head="h", base_tip="a" * 40, merge_base="a" * 40, head_tip="b" * 40)
TESTBED = "testbeds/loop.yaml"
OURS = "ssh_config: ours\n"


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    """Give base and head: they differ in a knob, on a testbed with an SSH configuration of its own."""
    base, head = tmp_path / "base", tmp_path / "head"
    shutil.copytree(CONFIGS, base)
    with (base / TESTBED).open("a") as file:
        file.write(OURS)
    shutil.copytree(base, head)
    path = head / "systems/fake/default.yaml"
    path.write_text(path.read_text().replace("service_time_ms: 1", "service_time_ms: 3"))
    return base, head


def plan(roots: tuple[Path, Path]) -> CandidatePlan:
    base, head = map(load_catalog, roots)
    return plan_candidate(compare_catalogs(base, head, testbed="loop"), SPAN, base, "loop")


def change(root: Path, old: str, new: str) -> None:
    path = root / TESTBED
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_way_to_the_hosts_is_that_of_base(roots: tuple[Path, Path]) -> None:
    change(roots[1], OURS, "ssh_config: configs/evil-proxy-command\n")
    found = plan(roots)
    assert found.planned
    ours = load_catalog(roots[0]).testbeds["loop"]
    for one in found.planned:
        sides = (one.pairing.baseline, one.pairing.candidate)
        assert [side.deployment.testbed for side in sides] == [ours, ours]


def test_a_testbed_with_more_to_say_is_not_measured_on(roots: tuple[Path, Path]) -> None:
    change(roots[1], OURS, f"{OURS}jvm_options: ['-XX:OnError=id']\n")
    found = plan(roots)
    assert found.planned == ()
    assert all("testbed loop (jvm_options)" in one.text for one in found.changes)


@pytest.mark.parametrize("new", ["python: /tmp/evil", "user: root, work_dir: /etc"])
def test_a_host_that_is_another_is_not_measured_on(roots: tuple[Path, Path], new: str) -> None:
    change(roots[1], "role: server}", f"role: server, {new}}}")
    assert plan(roots).planned == ()


def test_a_testbed_renamed_on_the_way_is_still_that_of_base(roots: tuple[Path, Path]) -> None:
    head = roots[1]
    change(head, OURS, "ssh_config: configs/evil-proxy-command\n")
    for path in head.glob("suites/*.yaml"):
        path.write_text(path.read_text().replace("testbed: loop", "testbed: other"))
    moved = head / "testbeds/other.yaml"
    (head / TESTBED).rename(moved)
    moved.write_text(moved.read_text().replace("name: loop", "name: other"))
    base, changed = map(load_catalog, roots)
    differing = compare_catalogs(base, changed, testbed="other")
    found = plan_candidate(differing, SPAN, base, "loop")
    assert {one.pairing.candidate.deployment.testbed for one in found.planned} <= {
        base.testbeds["loop"]
    }
