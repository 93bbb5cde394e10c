"""A night reads only what is new, and its judgement is that of a judgement that reads everything."""

import random
from array import array
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from large_history import Size, grow, now_after

from analysis import readings
from analysis.commands import judge_history
from analysis.detection import Drift, Reading, Shift, SpreadChange
from analysis.judgement import Judgement, judge
from analysis.noise import Noise
from analysis.readings import RememberingDetector
from analysis.step_detector import StepDetector
from perf import config
from perf.columns import Columns, Observations, ObservedSeries, Occasion
from perf.model import Observation, Purpose, TrialStatus
from perf.places import Places

CONFIGS = Path(__file__).parents[2] / "configs"
EVERYTHING = Reading(
    shifts=(Shift(index=3, earliest=2, latest=5, p_value=1e-300, is_confirmed=True),),
    drifts=(Drift(first=1, last=9, before=0.1, after=-0.3),),
    spreads=(SpreadChange(index=4, before=1.0, after=2.5, p_value=0.0),),
    noise=Noise(deviation=0.1 + 0.2, persistence=0.0, level=-0.0, points=4, all_points=9),
)


class Counting:
    """Sees the same in all values, and counts how often it looked."""

    name = "counting"

    def __init__(self, seen: Reading) -> None:
        self.seen, self.looked = seen, 0

    def read(self, values: object) -> Reading:
        self.looked += 1
        return self.seen


def judge_as_of(places: Places, nights: int) -> Judgement:
    return judge_history(places, CONFIGS, now_after(nights).date())


@pytest.mark.keeps("nights-read-what-is-new")
def test_judging_night_by_night_is_judging_all_at_once(
    tmp_path: Path, figures: dict[str, object], effort: Callable[[int, int], int]
) -> None:
    places, first, nights = Places(tmp_path), 24, effort(3, 14)
    grow(places, Size(50, first))
    judge_as_of(places, first)
    for night in range(first + 1, first + nights + 1):
        grow(places, Size(50, night), first=night - 1)
        step_by_step = repr(judge_as_of(places, night))
        kept = places.readings.read_bytes()
        places.readings.unlink()
        assert repr(judge_as_of(places, night)) == step_by_step
        places.readings.write_bytes(kept)
    figures["nights judged both ways"] = nights
    figures["series"] = 50


def test_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    counting, file, today = Counting(EVERYTHING), tmp_path / "readings.json", date(2026, 3, 1)
    first = RememberingDetector(counting, {})
    assert first.read([1.0, 2.0]) == first.read([1.0, 2.0]) == EVERYTHING
    readings.write_file(file, "method", readings.add_day({}, today, first.asked))
    (known,) = readings.read_file(file, "method").values()
    again = RememberingDetector(counting, known)
    assert again.read(array("d", [1.0, 2.0])) == EVERYTHING
    assert repr(again.read([1.0, 2.0])) == repr(EVERYTHING)
    assert counting.looked == 1
    again.read([1.0, 3.0])
    assert counting.looked == 2


@pytest.mark.parametrize("broken", [b"", b"{}", b"[" * 100_000, b"\xff\n{}", None])
def test_a_file_that_is_not_whole_is_as_none(tmp_path: Path, broken: bytes | None) -> None:
    file = tmp_path / "readings.json"
    readings.write_file(file, "method", {"2026-03-01": {"digest": [[], [], [], None]}})
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"digest", b"other ") if broken is None else broken)
    assert readings.read_file(file, "method") == {}
    file.write_bytes(whole)
    assert readings.read_file(file, "another method") == {}
    assert readings.read_file(file, "method") != {}


def test_what_nobody_asks_for_goes_after_two_weeks() -> None:
    reading = [[], [], [], None]
    days = readings.add_day({}, date(2026, 3, 1), {"a": reading, "b": reading})
    days = readings.add_day(days, date(2026, 3, 15), {"b": reading, "c": reading})
    assert {day: set(of_day) for day, of_day in days.items()} == {
        "2026-03-01": {"a"},
        "2026-03-15": {"b", "c"},
    }
    days = readings.add_day(days, date(2026, 3, 16), {"c": reading})
    assert {day: set(of_day) for day, of_day in days.items()} == {
        "2026-03-15": {"b"},
        "2026-03-16": {"c"},
    }


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.keeps("a-million-points")
def test_a_series_of_a_million_points_is_judged(
    make_observations: Callable[..., tuple[Observation, ...]], figures: dict[str, object]
) -> None:
    """With a step of 12 % up or down after each thousand points; the last points are calm."""
    count, every = 1_000_000, 1_000
    (model,) = make_observations([1.0])
    occasions = [
        Occasion(
            trial=f"trial-{number:07d}",  # type: ignore[arg-type]
            release=model.release,
            started_at=datetime(2000, 1, 1, tzinfo=UTC) + timedelta(minutes=number),
            status=TrialStatus.COMPLETED,
            night=f"2000-01-01-{number}",
            purpose=Purpose.SCHEDULED,
        )
        for number in range(count)
    ]
    generator = random.Random(10)  # noqa: S311  test data, not a secret
    levels = [1000.0 if number // every % 2 else 1120.0 for number in range(count)]
    values = [level * (1 + 0.02 * generator.gauss(0, 1)) for level in levels[:-20]] + levels[-20:]
    columns = Columns.of(occasions, range(count), values, ((),) * count)
    settings = config.load_catalog(CONFIGS).detection
    observed = Observations((ObservedSeries(model.key, columns),))
    judgement = judge(observed, settings, RememberingDetector(StepDetector(settings=settings), {}))
    (judged,) = judgement.series
    found = {change.index for change in judged.change_points}
    missed = [at for at in range(every, count, every) if not found & set(range(at - 3, at + 4))]
    assert not missed
    assert len(found) < 1.02 * count / every
    figures["points"], figures["steps planted and found"] = count, count // every - 1
