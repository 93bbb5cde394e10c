"""Which trials are old: the oldest nights and comparisons, none without a telling name."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from perf.model.results import Purpose, Trial, TrialHead, TrialId
from reports.site.old_trials import find_old_trials

FIRST = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)


def start(make_trial: Callable[..., Trial], *names: str) -> list[TrialHead]:
    """Return trials of these names, which began one after the other."""
    return [
        make_trial(
            id=TrialId(name),
            night=name.partition(".")[0] if name.startswith("2026") else "",
            started_at=FIRST + timedelta(hours=number),
        )
        for number, name in enumerate(names)
    ]


def test_the_newest_trials_keep_their_pages_and_no_night_is_split(
    make_trial: Callable[..., Trial],
) -> None:
    names = [f"2026-03-0{night}-1.0{place}.write.5.0.1" for night in (1, 2, 3) for place in (1, 2, 3)]
    heads = start(make_trial, *names)
    for most in (1, 2, 3):
        assert list(find_old_trials(heads, most)) == names[3:6] + names[:3]
    assert list(find_old_trials(heads, 4)) == names[:3]
    assert find_old_trials(heads, 7) == find_old_trials([], 0) == {}
    assert find_old_trials(heads, 4)[TrialId(names[1])] == f"night/2026-03-01-1.html#{names[1]}"


def test_a_night_that_was_resumed_is_as_new_as_its_last_trial(
    make_trial: Callable[..., Trial],
) -> None:
    names = ("2026-03-01-1.01.w.1", "2026-03-02-1.01.w.1", "2026-03-01-1.02.w.1")
    assert list(find_old_trials(start(make_trial, *names), 1)) == [names[1]]


def test_comparisons_are_rolled_up_too_but_not_what_has_no_place(
    make_trial: Callable[..., Trial],
) -> None:
    names = (
        "cmp-2026-03-01-1.01a.baseline.5.0.1",
        "imported-otava-0123",
        "2026-03-05-1.01.write.5.0.1",
    )
    heads = start(make_trial, *names)
    alone = replace(heads[0], id=TrialId("2026-03-01T101500.write.5.0.1"))
    heads[0] = replace(heads[0], purpose=Purpose.COMPARISON)
    imported = replace(heads[2], id=TrialId("2026-03-02-1.01.w.1"), purpose=Purpose.IMPORTED)
    strange = replace(heads[2], id=TrialId("a.b"), night="2026-03-02-1")
    old_trials = find_old_trials([*heads[:2], alone, imported, strange, heads[2]], 1)
    assert old_trials == {names[0]: f"night/cmp-2026-03-01-1.html#{names[0]}"}


def test_a_place_is_named_as_a_page_would_be(make_trial: Callable[..., Trial]) -> None:
    (name, _) = names = ("2026-03-01-1.01.Write it.5.0.1", "2026-03-02-1.01.w.1")
    place = find_old_trials(start(make_trial, *names), 1)[TrialId(name)]
    assert place.startswith("night/2026-03-01-1.html#2026-03-01-1-01-write-it-5-0-1-")
