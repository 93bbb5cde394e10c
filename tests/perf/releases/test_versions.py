"""A version has one line and one place, by the lists of the four products and of Maven."""

from itertools import pairwise

import pytest

from perf.model.results import Release
from perf.model.sources import CommandSource, compare_commits
from perf.releases.versions import line_order, place_version
from perf.systems import registry

# As Maven Central lists Cassandra, around each line's beginning.
MAVEN = (
    *("4.0-alpha2", "4.0-alpha3", "4.0-alpha4", "4.0-beta1", "4.0-beta2", "4.0-beta3", "4.0-beta4"),
    *("4.0-rc1", "4.0-rc2", "4.0.0", "4.0.1", "4.0.2", "4.0.9", "4.0.10", "4.0.19"),
    *("4.1-alpha1", "4.1-beta1", "4.1.0", "4.1.10", "5.0-alpha1", "5.0-alpha2", "5.0-beta1"),
    *("5.0-rc1", "5.0.0", "5.0.9", "6.0-alpha2"),
)


@pytest.mark.parametrize(
    ("text", "line", "place"),
    [
        ("5.0.9", "5.0", 9),
        ("3.10", "3.10", 0),
        ("5.0-rc1", "5.0", -999),
        ("8.0.0-rc3", "8.0", -997),
        ("5.4.0~rc1", "5.4", -999),
        ("4.0-alpha3", "4.0", -2997),
        ("2025.4.2", "2025.4", 2),
        ("20241003", "0", 20241003),
        ("2.1.8.1", "2.1.8", 1),
    ],
)
def test_a_version_has_a_line_and_a_place(text: str, line: str, place: int) -> None:
    assert place_version(text) == (line, place)


@pytest.mark.parametrize("text", ["", "newest", "0.7.6-2", "5.0.9.dev1", "1!2.0.0", "5.0.1-rc1", "v"])
def test_what_has_no_place_has_none(text: str) -> None:
    assert place_version(text) is None


def test_versions_that_were_published_keep_their_order() -> None:
    placed = [place_version(one) for one in MAVEN]
    keys = [(line_order(one[0]), one[1]) for one in placed if one]
    assert len(keys) == len(MAVEN)
    assert keys == sorted(keys)


@pytest.mark.parametrize("name", registry.databases())
def test_packaged_releases_have_the_place_that_they_would_be_found_at(name: str) -> None:
    releases = registry.load(name).releases()
    assert len(releases) > 25
    for release in releases:
        assert place_version(release.version) == (release.line, release.ordinal)
    for one, other in pairwise(releases):
        assert (line_order(one.line), one.ordinal) < (line_order(other.line), other.ordinal)


def test_builds_of_commits_come_behind_all_lines() -> None:
    assert line_order("dev") > line_order("2026.3")
    assert line_order("5.0-dev") > line_order("2026.3")


def test_two_commits_have_a_page_where_their_source_names_one() -> None:
    source = CommandSource(
        name="own",
        description="Ours.",
        system="fake",
        kind="command",
        command=("true",),
        compare_url="https://git.example/x/compare/{before}...{after}",
    )
    commits = [
        Release(system="fake", version=f"20260301.0900.{end}", line="dev", ordinal=1)
        for end in ("0123456789", "abcdef0123")
    ]
    assert (
        compare_commits([source], *commits) == "https://git.example/x/compare/0123456789...abcdef0123"
    )
    plain = Release(system="fake", version="1.0.0", line="1.0", ordinal=0)
    assert compare_commits([source], plain, commits[1]) == ""
    assert compare_commits([], *commits) == ""
