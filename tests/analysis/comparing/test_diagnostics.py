"""What servers did differently: planted differences are found first, and equal sides show none."""

from collections.abc import Callable, Mapping
from random import Random

import pytest

from analysis.comparing.diagnostics import compare_diagnostics
from perf.model.metrics import GC_PAUSE, NETWORK_SENT, SERVER_CPU, STORAGE_WRITTEN
from perf.model.results import Sample, SideName, Taken, Trial, TrialId, TrialStatus

MakeTrial = Callable[..., Trial]
ORDER: tuple[tuple[str, SideName], ...] = (
    ("1", "baseline"),
    ("1", "candidate"),
    ("2", "candidate"),
    ("2", "baseline"),
)


def sample(metric: str, value: float, host: str = "") -> Sample:
    return Sample(
        phase="steady", operation="write", metric=metric, statistic="mean", value=value, host=host
    )


def take(
    make_trial: MakeTrial,
    draw: Callable[[SideName], Mapping[str, float]],
    blocks: int = 2,
    status: TrialStatus = TrialStatus.COMPLETED,
) -> tuple[Taken, ...]:
    """Take turns; `draw` gives the figures of the servers of one trial."""
    return tuple(
        Taken(
            block=block,
            pair=pair,
            side=side,
            trial=make_trial(
                id=TrialId(f"t{block}{pair}{side}"),
                status=status,
                samples=tuple(sample(name, value) for name, value in draw(side).items()),
            ),
        )
        for block in range(1, blocks + 1)
        for pair, side in ORDER
    )


def test_what_moved_most_comes_first_with_its_means_and_its_interval(make_trial: MakeTrial) -> None:
    random = Random(1)  # noqa: S311  no secret

    def draw(side: SideName) -> dict[str, float]:
        is_after = side == "candidate"
        return {
            SERVER_CPU.name: (103 if is_after else 62) + random.gauss(0, 1),
            STORAGE_WRITTEN.name: (2400 if is_after else 1200) + random.gauss(0, 20),
            GC_PAUSE.name: 2 + random.gauss(0, 0.5),
        }

    written, cpu, pauses = compare_diagnostics(take(make_trial, draw))
    assert (written.measure.metric, written.is_sure) == (STORAGE_WRITTEN.name, True)
    assert (cpu.measure.metric, cpu.is_sure) == (SERVER_CPU.name, True)
    assert (pauses.measure.metric, pauses.is_sure) == (GC_PAUSE.name, False)
    assert written.low < 1200 < written.high
    assert cpu.low < 41 < cpu.high
    assert cpu.before == pytest.approx(62, abs=2)
    assert cpu.after == pytest.approx(103, abs=2)


@pytest.mark.parametrize("kind", ["normal", "lognormal", "heavy"])
def test_equal_sides_show_a_difference_in_one_comparison_of_a_hundred_at_most(
    make_trial: MakeTrial, kind: str
) -> None:
    random = Random(kind)  # noqa: S311  no secret
    names = (SERVER_CPU, STORAGE_WRITTEN, GC_PAUSE, NETWORK_SENT)

    def draw(_: SideName) -> dict[str, float]:
        drawn = {
            "normal": lambda: 100 + random.gauss(0, 10),
            "lognormal": lambda: random.lognormvariate(0, 0.5),
            "heavy": lambda: 100 + random.gauss(0, 1) / max(random.random(), 0.01),
        }
        return {one.name: drawn[kind]() for one in names}

    tries = 200
    told = sum(
        any(one.is_sure for one in compare_diagnostics(take(make_trial, draw))) for _ in range(tries)
    )
    assert told <= 6  # of 200 at one in a hundred, more would be chance in one of 200


def test_figures_of_one_node_of_clients_and_of_trials_that_do_not_count_are_left_out(
    make_trial: MakeTrial,
) -> None:
    def draw(side: SideName) -> dict[str, float]:
        return {"client_cpu": 1.0 if side == "baseline" else 2.0}

    assert compare_diagnostics(take(make_trial, draw)) == ()
    invalid = take(make_trial, lambda _: {SERVER_CPU.name: 1.0}, status=TrialStatus.INVALID)
    assert compare_diagnostics(invalid) == ()
    of_a_node = tuple(
        Taken(
            block=one.block,
            pair=one.pair,
            side=one.side,
            trial=make_trial(id=one.trial.id, samples=(sample(SERVER_CPU.name, 1.0, "n1"),)),
        )
        for one in invalid
    )
    assert compare_diagnostics(of_a_node) == ()


def test_one_block_says_nothing(make_trial: MakeTrial) -> None:
    assert compare_diagnostics(take(make_trial, lambda _: {SERVER_CPU.name: 1.0}, blocks=1)) == ()


def test_what_is_the_same_to_the_last_digit_is_no_difference_and_from_zero_any_is(
    make_trial: MakeTrial,
) -> None:
    same = compare_diagnostics(take(make_trial, lambda _: {GC_PAUSE.name: 1.0, SERVER_CPU.name: 0.0}))
    assert [(one.measure.metric, one.is_sure) for one in same] == [(GC_PAUSE.name, False)]
    moved = compare_diagnostics(
        take(make_trial, lambda side: {GC_PAUSE.name: 0.0 if side == "baseline" else 3.0})
    )
    assert [(one.is_sure, one.low, one.high) for one in moved] == [(True, 3.0, 3.0)]
