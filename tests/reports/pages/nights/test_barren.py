"""Nights that were measured without a single valid trial are counted, from the newest back."""

from dataclasses import replace

from made_up_nights import judge_nights

from perf.model.results import TrialStatus
from reports.pages.nights.view import count_barren, group_nights


def test_nights_without_a_valid_trial_are_counted_up_to_the_newest_with_one() -> None:
    heads = sorted(judge_nights(6).heads.values(), key=lambda one: one.started_at)
    lost = [replace(one, status=TrialStatus.INVALID) for one in heads[-2:]]
    assert count_barren(group_nights(heads, ())) == 0
    assert count_barren(group_nights([*heads[:-2], *lost], ())) == 2
    assert count_barren(group_nights([*heads[:-2], lost[0], heads[-1]], ())) == 0
    assert count_barren(()) == 0
