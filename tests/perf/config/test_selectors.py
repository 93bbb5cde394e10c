"""A rule chooses releases; what it chooses is in the plan."""

import shutil
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from perf.config.catalog import load_catalog
from perf.config.selectors import select
from perf.jobs.night import open_night
from perf.local.paths import DataPaths
from perf.model.errors import ConfigError
from perf.model.results import Release
from perf.model.sources import Build
from perf.releases.asking import Found
from perf.releases.versions import place_version

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
VERSIONS = (
    *("4.0.0", "4.0.18", "4.0.19", "4.1-rc1", "4.1.0", "4.1.10"),
    *("5.0-rc1", "5.0.0", "5.0.3", "5.0.4", "5.0.10", "6.0-alpha2"),
)


def known(*more: Release) -> list[Release]:
    placed = ((one, place_version(one) or ("", 0)) for one in VERSIONS)
    return [
        *(Release(system="c", version=one, line=line, ordinal=place) for one, (line, place) in placed),
        *more,
    ]


def commit(day: int, hour: int) -> Release:
    moment = datetime(2026, 3, day, hour, tzinfo=UTC)
    version = f"{moment:%Y%m%d.%H%M}.abcdef0123"
    return Release(system="c", version=version, line="dev", ordinal=int(moment.timestamp()))


@pytest.mark.parametrize(
    ("rule", "chosen"),
    [
        ("5.0.3", ["5.0.3"]),
        ("5.0-rc1", ["5.0-rc1"]),
        ("newest", ["5.0.10"]),
        ("newest 3", ["5.0.3", "5.0.4", "5.0.10"]),
        ("4.1: newest", ["4.1.10"]),
        ("4.0: newest 2", ["4.0.18", "4.0.19"]),
        ("4.1: each minor", ["4.1.0", "4.1.10"]),
        ("previous line: newest", ["4.1.10"]),
        ("previous line: newest 5", ["4.1.0", "4.1.10"]),
        (">=5.0.4 <6", ["5.0.4", "5.0.10"]),
        (">4.0.19 <=5.0.0", ["4.1.0", "4.1.10", "5.0.0"]),
        ("pinned [5.0.0, 4.0.19]", ["4.0.19", "5.0.0"]),
        ("7.0: newest", []),
        ("commits: newest", []),
        ("9.9.9", []),
    ],
)
def test_a_rule_chooses_by_line_and_place(rule: str, chosen: list[str]) -> None:
    assert [one.version for one in select(rule, reversed(known()))] == chosen


def test_commits_are_chosen_by_their_day_and_by_no_other_rule() -> None:
    builds = [commit(1, 9), commit(2, 8), commit(2, 12), commit(2, 20)]
    releases = known(*builds)
    assert select("commits: newest 2 per day", releases) == tuple(builds[2:])
    assert select("commits: newest 4 per day", releases) == tuple(builds[1:])
    assert select("commits: newest 4", releases) == tuple(builds)
    assert [one.version for one in select("newest", releases)] == ["5.0.10"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CONFIGS, tmp_path / "configs"))


def change(root: Path, releases: str) -> None:
    path = root / "suites/fake-short.yaml"
    path.write_text(path.read_text().replace('["1.0.0", "1.0.1"]', releases))


def test_a_suite_lists_what_its_rules_choose_and_the_plan_names_both(
    root: Path, tmp_path: Path
) -> None:
    change(root, '["1.0: newest 2", "1.0.1", "previous line: newest"]')
    found = Found(
        builds=(
            Build(
                release=Release(system="fake", version="1.0.3", line="1.0", ordinal=3),
                source="page",
                found_on=date(2026, 3, 1),
            ),
        )
    )
    catalog = load_catalog(root, found)
    suite = catalog.suite("fake-short")
    assert suite.experiments[0].versions == ("1.0.2", "1.0.3", "1.0.1", "1.1.1")
    night, _ = open_night(DataPaths(tmp_path), catalog, suite, datetime(2026, 3, 1, tzinfo=UTC))
    assert night.chosen[0].rules == ("1.0: newest 2", "1.0.1", "previous line: newest")
    assert night.chosen[0].versions == tuple(one.version for one in night.trials)


def test_a_rule_that_chooses_nothing_waits_and_a_version_that_is_not_there_is_a_mistake(
    root: Path,
) -> None:
    change(root, '["commits: newest", "1.0.1"]')
    assert load_catalog(root).suite("fake-short").experiments[0].versions == ("1.0.1",)
    change(root, "unchanged")
    path = root / "suites/fake-short.yaml"
    path.write_text(path.read_text().replace('["commits: newest", "1.0.1"]', '["1.0.77", "1.0.0"]'))
    sources = root / "sources"
    sources.mkdir()
    (sources / "tool.yaml").write_text(
        "name: tool\ndescription: For a test.\nsystem: fake\nkind: command\ncommand: [cat]\n"
    )
    # Who only reads need not know what the source has offered; who measures does.
    assert load_catalog(root).suite("fake-short").experiments[0].versions == ("1.0.77", "1.0.0")
    with pytest.raises(ConfigError, match=r"releases\[0\] is .1\.0\.77., and fake has no such release"):
        load_catalog(root, Found())


@pytest.mark.parametrize("rule", ["newest 0", "newest x", "5.0:newest", "> 5", "each minor", "$(id)"])
def test_what_is_no_rule_is_refused(root: Path, rule: str) -> None:
    change(root, f'["{rule}"]')
    with pytest.raises(ConfigError, match=r"releases\[0\]"):
        load_catalog(root)
