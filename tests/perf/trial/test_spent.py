"""Where a trial's time goes: parts that follow each other, and their shares of the whole."""

import time
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from perf.model.metrics import TIME_SPENT
from perf.model.results import Sample, Trial
from perf.trial.spent import Spent, describe_spent


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have a second pass whenever somebody looks."""
    seconds = count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(seconds)))
    yield
    monkeypatch.undo()


@pytest.mark.usefixtures("clock")
def test_each_second_is_of_one_part() -> None:
    spent = Spent(_since_s=time.monotonic())
    for part in ("start", "warm-up", "measured", "warm-up", "measured"):
        spent.enter(part)
    found = {sample.operation: sample.value for sample in spent.samples()}
    assert found == {"prepare": 1, "start": 1, "warm-up": 2, "measured": 2}


def test_the_measured_share_of_several_trials_comes_first(make_trial: Callable[..., Trial]) -> None:
    def trial(**seconds: float) -> Trial:
        return make_trial(
            samples=tuple(
                Sample(
                    phase="trial",
                    operation=part,
                    metric=TIME_SPENT.name,
                    statistic="total",
                    value=value,
                )
                for part, value in seconds.items()
            )
        )

    trials = [trial(start=20.0, measured=10.0, load=10.0), trial(start=30.0, measured=30.0)]
    assert describe_spent(trials) == "1 min 40 s, 40 % of it measured; start 50 %, load 10 %"
    besides = "1 min 40 s, 40 % of it measured; start 50 %, load 10 %"
    assert describe_spent(trials, 99.0) == besides  # of trials that were done before
    assert describe_spent(trials, 125.0) == (
        "2 min 05 s, 32 % of it measured; start 40 %, between trials 20 %, load 8 %"
    )
    assert describe_spent([make_trial(samples=())], 9.0) == ""
