"""The checks of a season see what would be wrong with one: a soak that cannot fail shows nothing."""

from pathlib import Path
from typing import Any

import pytest
import season
from season_checks import check_ends_of_runs, check_false_alarms, check_leaks, check_planted, check_told
from season_run import Seen

FOUND = {
    "incident": "a",
    "metric": "throughput",
    "statistic": "mean",
    "after": "2026-01-24-1.01.newest.3.0.1",
    "until": "2026-01-25-1.01.newest.3.0.2",
    "change": -0.12,
    "cause": "database",
    "is_news": True,
}


def calm(night: int, **changes: Any) -> dict[str, Any]:  # noqa: ANN401  JSON
    parts = {"history.duckdb": (9000, 1), "run": (5, 8), "site": (night, night)}
    held = {"rss_mb": 230.0, "files": 9, "threads": 4, "children": 0, "left": [], "tmp": []}
    told = {"notified": 0, "series": 4, "changes": [], "events": [], "news": [], "untold": []}
    is_alone = night % 10 == 0
    run = {"night": night, "code": 0, "is_alone": is_alone, "parts": parts, **held, **told}
    return run | changes


def seen(*runs: dict[str, Any], nights: int = 35) -> Seen:
    last = {run["night"]: run for run in runs}
    skipped = [night for night in range(nights) if season.fault_of(night)]
    calm_runs = [calm(night) for night in range(nights) if night not in {*last, *skipped}]
    return Seen(Path(), nights, 0, has_room=True, runs=sorted([*calm_runs, *runs], key=by_night))


def by_night(run: dict[str, Any]) -> int:
    return int(run["night"])


def test_a_planted_change_is_found_with_its_delay() -> None:
    provisional, confirmed = (
        {**FOUND, "state": "provisional"},
        {**FOUND, "state": "confirmed"},
    )
    runs = (calm(25, changes=[provisional]), calm(27, changes=[confirmed]))
    wrong, told = check_planted(seen(*runs))
    assert wrong == []
    assert told["nights until told, until confirmed"] == "release at night 24: 1, 3"


@pytest.mark.parametrize(
    "change", [{"change": 0.12}, {"until": "2026-02-03-1.01.x"}, {"state": "withdrawn"}]
)
def test_another_change_is_not_the_planted_one(change: dict[str, object]) -> None:
    other = {**FOUND, "state": "confirmed", "after": "2026-01-24-1.01.x", **change}
    if "until" in change:
        other["after"] = "2026-02-02-1.01.x"
    wrong, _ = check_planted(seen(calm(27, changes=[other])))
    assert wrong == ["release at night 24 was never confirmed (provisional in nights [])"]


def test_false_alarms_are_counted_once_and_held_against_the_stated_rate() -> None:
    places = ["2026-01-07", "2026-01-12", "2026-01-17", "2026-02-02"]
    changes = [
        {
            **FOUND,
            "state": "confirmed",
            "change": 0.2,
            "after": f"{day}-1.01.x",
            "until": f"{day}-1.01.x",
        }
        for day in places
    ]
    alarmed = seen(*(calm(night, changes=changes) for night in (32, 34)))
    wrong, told = check_false_alarms(alarmed)
    assert len(wrong) == 4
    assert str(told["false alarms"]).startswith("4 in ")
    assert check_false_alarms(seen(calm(34, changes=changes[:2])))[0] == []


def test_what_is_told_twice_or_never_is_seen() -> None:
    events = [
        {"kind": "new", "name": "a", "handles": ["h1"]},
        {"kind": "new", "name": "b", "handles": ["h1"]},
    ]
    runs = [calm(25 + place, events=[event]) for place, event in enumerate(events)]
    assert check_told(seen(*runs))[0] == ["told twice: ['new', 'new'] of a"]
    mended = {**events[0], "kind": "mended"}
    again = [calm(25, events=[events[0]]), calm(26, events=[mended]), calm(27, events=[events[1]])]
    assert check_told(seen(*again))[0] == []
    assert check_told(seen(calm(34, news=["c"])))[0] == ["never told: c"]


def test_a_wrong_exit_code_is_seen() -> None:
    assert check_ends_of_runs(seen())[0] == []
    assert check_ends_of_runs(seen(calm(34, code=3)))[0] == ["night 34 (calm) ended with 3"]


@pytest.mark.parametrize(
    ("held", "word"),
    [
        ({"files": 40}, "open files"),
        ({"threads": 30}, "open threads"),
        ({"rss_mb": 400.0}, "170 MB more"),
        ({"left": ["java"]}, "left processes"),
        ({"tmp": ["tmpab12"]}, "left files"),
        ({"parts": {"run": (500, 90)}}, "run grew"),
        ({"parts": {"site.old": (500, 90)}}, "in the data directory: site.old"),
    ],
)
def test_what_grows_is_seen(held: dict[str, object], word: str) -> None:
    assert check_leaks(seen())[0] == []
    (wrong,) = check_leaks(seen(calm(34, **held)))[0]
    assert word in wrong
