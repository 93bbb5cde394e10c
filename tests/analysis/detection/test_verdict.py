from hypothesis import given
from hypothesis import strategies as st

from analysis.detection.verdict import WORST_FIRST, Outcome, merge

outcomes = st.sampled_from(Outcome)


def test_the_merge_order_names_every_outcome_once() -> None:
    assert sorted(WORST_FIRST) == sorted(Outcome)


@given(a=outcomes, b=outcomes, c=outcomes)
def test_merging_is_associative_commutative_and_idempotent(a: Outcome, b: Outcome, c: Outcome) -> None:
    assert merge([merge([a, b]), c]) is merge([a, merge([b, c])]) is merge([a, b, c])
    assert merge([a, b]) is merge([b, a])
    assert merge([a, a]) is a


@given(good=st.lists(st.sampled_from([Outcome.IMPROVED, Outcome.UNCHANGED])))
def test_cannot_tell_never_looks_like_fine(good: list[Outcome]) -> None:
    for cannot_tell in (Outcome.UNDECIDED, Outcome.INVALID):
        assert merge([*good, cannot_tell]) is cannot_tell


@given(others=st.lists(outcomes))
def test_a_regression_is_never_merged_away(others: list[Outcome]) -> None:
    assert merge([*others, Outcome.REGRESSED]) is Outcome.REGRESSED


def test_nothing_judged_is_undecided() -> None:
    assert merge([]) is Outcome.UNDECIDED
