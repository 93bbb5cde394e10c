"""Hints on known answers: what is planted in a method is named, what only moved or wobbled is not."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from catalogs import shipped

from analysis.detection.step_detector import StepDetector
from analysis.judging.hints import Hint, find_hints
from perf.model.columns import Observations, gather
from perf.model.metrics import METHOD_CPU, PACKAGE_CPU, SERVER_CPU
from perf.model.results import Observation, Purpose, Release, SeriesKey, TrialId, TrialStatus
from perf.model.stacks import own_costs, package_of, short_name

METHODS = {
    f"org.db.{package}.Class{number}.method()": 0.4 * 1.5**number
    for package in ("log", "table", "net", "memory")
    for number in range(12)
}
"""µs per operation of each; 260 µs per operation in all."""
LOG = "org.db.log.Class6.method()"
GRAIN_US = 0.03
"""What one look of the profiler stands for."""
BEFORE, AFTER = 20, 8
SETTINGS = shipped().detection
NOTHING = Observations(())


def observe(metric: str, statistic: str, night: int, value: float) -> Observation:
    return Observation(
        key=SeriesKey(
            system="cassandra",
            line="5.0",
            topology="local-one",
            testbed_class="laptop",
            config="default",
            workload="write@1",
            engine="python",
            phase="saturation",
            operation="all",
            metric=metric,
            statistic=statistic,
        ),
        trial=TrialId(f"n{night}"),
        release=Release(system="cassandra", version="5.0.9", line="5.0", ordinal=9),
        started_at=datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=night),
        status=TrialStatus.COMPLETED,
        value=value,
        night=f"night-{night}",
        purpose=Purpose.PROFILE,
    )


def draw(
    seed: int,
    change: Callable[[int, dict[str, float]], None] = lambda *_: None,
    *,
    nights: int = BEFORE + AFTER,
    host: float = 0.1,
) -> Observations:
    """Draw nights of profiles: Poisson looks, methods that scatter by 8 %, hosts that do by `host`."""
    generator = np.random.default_rng(seed)
    found = []
    for night in range(nights):
        costs = dict(METHODS)
        change(night, costs)
        speed = generator.lognormal(0, host)
        packages: dict[str, float] = {}
        for method, mean in costs.items():
            looks = generator.poisson(mean * speed * generator.lognormal(0, 0.08) / GRAIN_US)
            cost = looks * GRAIN_US
            package = package_of(method)
            packages[package] = packages.get(package, 0.0) + cost
            if cost > 0.3:
                found.append(observe(METHOD_CPU.name, method, night, cost))
        found += (observe(PACKAGE_CPU.name, name, night, cost) for name, cost in packages.items())
    return gather(found)


def hints(observed: Observations, diagnostics: Observations = NOTHING) -> tuple[Hint, ...]:
    detector = StepDetector(settings=SETTINGS)
    return find_hints(observed, diagnostics, SETTINGS.minimum_points, detector)


def planting(costs: Mapping[str, float]) -> Callable[[int, dict[str, float]], None]:
    def plant(night: int, found: dict[str, float]) -> None:
        for method, cost in costs.items() if night >= BEFORE else ():
            found[method] = found.get(method, 0.0) + cost

    return plant


@pytest.mark.parametrize("seed", range(5))
def test_one_percent_of_all_cpu_time_in_one_method_is_named_with_its_size(seed: int) -> None:
    (found,) = hints(draw(seed, planting({LOG: 2.6})))
    assert found.key.statistic == LOG
    assert found.is_method
    assert found.change.earliest <= BEFORE <= found.change.latest
    assert found.before == pytest.approx(METHODS[LOG], rel=0.25)
    assert found.after - found.before == pytest.approx(2.6, abs=0.8)


@pytest.mark.slow
def test_where_nothing_changed_there_is_next_to_no_hint() -> None:
    assert sum(len(hints(draw(seed))) for seed in range(20)) <= 1


def test_hosts_that_become_slower_are_no_hint() -> None:
    def slower(night: int, costs: dict[str, float]) -> None:
        for method in costs if night >= BEFORE else ():
            costs[method] *= 1.4

    assert hints(draw(1, slower, host=0.02)) == ()


@pytest.mark.parametrize(
    "moved",
    [
        {LOG: -METHODS[LOG], "org.db.log.Renamed.method()": METHODS[LOG]},
        {LOG: -METHODS[LOG] * 0.9, "org.db.other.Class.method()": METHODS[LOG] * 0.9},
        {"org.db.log.Class9.method()": -6.0, LOG: 3.0, "org.db.log.Split.method()": 3.0},
    ],
    ids=["renamed", "moved to another package", "split"],
)
def test_cost_that_moved_from_one_method_to_another_is_no_hint(moved: dict[str, float]) -> None:
    assert hints(draw(2, planting(moved), host=0.03)) == ()


def test_a_method_that_became_cheaper_makes_no_other_one_dearer() -> None:
    largest = max(METHODS, key=METHODS.__getitem__)
    assert hints(draw(3, planting({largest: -0.9 * METHODS[largest]}))) == ()


def thinly(night: int, costs: dict[str, float]) -> None:
    """Let forty small methods of one package grow together."""
    small = 0.35 if night < BEFORE else 0.55
    costs.update({f"org.db.small.Class{number}.method()": small for number in range(40)})


def test_growth_that_is_spread_thinly_is_that_of_its_package() -> None:
    (found,) = hints(draw(4, thinly, host=0.02))
    assert (found.key.statistic, found.is_code, found.is_method) == ("org.db.small", True, False)
    assert found.after - found.before == pytest.approx(40 * 0.2, rel=0.2)


def test_a_method_of_one_experiment_hides_no_package_of_another() -> None:
    others = [replace(one, key=replace(one.key, config="other")) for one in draw(4, thinly, host=0.02)]
    grown = draw(9, planting({"org.db.small.Class.method()": 6.0}))
    found = hints(gather([*grown, *others]))
    assert {(one.key.config, one.key.statistic) for one in found} == {
        ("default", "org.db.small.Class.method()"),
        ("other", "org.db.small"),
    }


def test_what_goes_away_again_is_no_hint() -> None:
    def passing(night: int, costs: dict[str, float]) -> None:
        costs[LOG] += 8.0 if BEFORE <= night < BEFORE + AFTER else 0.0

    assert hints(draw(5, passing, nights=BEFORE + 3 * AFTER)) == ()


def test_costs_of_servers_are_judged_where_they_are_given() -> None:
    generator = np.random.default_rng(6)
    costs = [200 + 5 * generator.standard_normal() + 30 * (night >= BEFORE) for night in range(28)]
    series = gather(
        observe(SERVER_CPU.name, "mean", night, float(cost)) for night, cost in enumerate(costs)
    )
    (found,) = hints(NOTHING, series)
    assert (found.key.metric, found.is_code, found.change.index) == (SERVER_CPU.name, False, BEFORE)
    assert found.after - found.before == pytest.approx(30, abs=8)


def test_a_trial_that_spent_nothing_stops_nobody() -> None:
    idle = [observe(PACKAGE_CPU.name, "org.db.log", BEFORE + AFTER, 0.0)]
    (found,) = hints(gather([*draw(9, planting({LOG: 6.0})), *idle]))
    assert found.key.statistic == LOG


def test_a_young_series_is_not_asked() -> None:
    assert hints(draw(7, planting({LOG: 50.0}), nights=SETTINGS.minimum_points - 1)) == ()


def test_own_costs_add_up_to_what_was_seen() -> None:
    stacks = {
        ("java.lang.Thread.run()", "org.db.Log.add()", "java.nio.Buffer.put()", "memcpy"): 5.0,
        ("java.lang.Thread.run()", "org.db.Log.add()", "org.db.Crc.of()"): 3.0,
        ("start_thread", "G1ParTask::work"): 2.0,
    }
    found = own_costs(stacks)
    assert found == {"org.db.Log.add()": 5, "org.db.Crc.of()": 3, "the JVM: garbage collector": 2}
    assert short_name("org.db.Log.add()") == "Log.add"
    assert package_of("org.db.Log.add()") == "org.db"
    assert short_name("the JVM: garbage collector") == package_of("the JVM: garbage collector")
