"""Where pages lie: names that no file system takes for one another, or for something else."""

from collections.abc import Callable

import pytest

from perf.model.results import TrialId
from reports.pages.feeds.badges import badge_path
from reports.pages.feeds.export import points_path
from reports.wording.links import (
    bisection_page,
    comparison_page,
    file_stem,
    incident_page,
    night_page,
    trial_page,
)

NAMES = ("5.0-RC1", "5.0-rc1", "CON", "con", "nul.txt", "../up", "a/b", "A", "a", "", "x" * 300)


@pytest.mark.parametrize(
    "give_path",
    [
        badge_path,
        bisection_page,
        comparison_page,
        incident_page,
        night_page,
        lambda name: trial_page(TrialId(name)),
        lambda name: points_path(name, "json"),
    ],
)
def test_no_two_names_share_a_file_whatever_it_takes_for_equal(give_path: Callable[[str], str]) -> None:
    paths = [give_path(name) for name in NAMES]
    assert len({path.lower() for path in paths}) == len(NAMES)
    assert paths == [path.lower() for path in paths]
    assert len({path.rpartition("/")[0] for path in paths}) == 1
    stems = {path.rpartition("/")[2].partition(".")[0] for path in paths}
    assert not stems & {"con", "nul", ""}


def test_a_plain_name_is_kept() -> None:
    assert file_stem("cassandra-sensor-write") == "cassandra-sensor-write"
    assert night_page("2026-03-08-1") == "night/2026-03-08-1.html"
    assert file_stem("console") == "console"
