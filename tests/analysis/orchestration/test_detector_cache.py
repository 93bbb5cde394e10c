"""A night reads only what is new, and its judgement is that of a judgement that reads everything."""

import hashlib
import json
import os
import random
import sys
from array import array
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from budget import EFFORT
from catalogs import shipped
from large_history import Size, grow, now_after

from analysis.detection.detection import DetectorResult, Drift, Shift, SpreadChange
from analysis.detection.noise import Noise
from analysis.detection.step_detector import StepDetector
from analysis.judging.judgement import Judgement, judge
from analysis.orchestration import detector_cache
from analysis.orchestration.detector_cache import RememberingDetector
from analysis.orchestration.judging import judge_history
from perf.local.paths import DataPaths
from perf.model.columns import Columns, Observations, ObservedSeries, Occasion, Occasions
from perf.model.results import Observation, Purpose, TrialStatus

SHIFT = Shift(index=3, earliest=2, latest=5, p_value=1e-300, is_confirmed=True)
DRIFT = Drift(first=1, last=9, before=0.1, after=-0.3)
SPREAD = SpreadChange(index=4, before=1.0, after=2.5, p_value=0.0)
NOISE = Noise(deviation=0.1 + 0.2, persistence=0.0, level=-0.0, points=4, all_points=9)
WEEK = (0.1, 0.0, -0.1, 0.1 + 0.2, 0.0, 0.0, -0.3)
EVERYTHING = DetectorResult(shifts=(SHIFT,), drifts=(DRIFT,), spreads=(SPREAD,), noise=NOISE, week=WEEK)
VALUES = [float(number) for number in range(10)]
DIGEST = "0123456789abcdef" * 4
NOTHING: Any = ((), (), (), None, ())
DAYS = {"2026-03-01": {DIGEST: NOTHING}}


class Counting:
    """Sees the same in all values, and counts how often it looked."""

    name = "counting"

    def __init__(self, seen: DetectorResult) -> None:
        self.seen, self.looked = seen, 0

    def read(self, values: object, days: object = ()) -> DetectorResult:
        self.looked += 1
        return self.seen


def judge_as_of(paths: DataPaths, nights: int) -> Judgement:
    return judge_history(paths, shipped(), now_after(nights).date())


@pytest.mark.keeps("nights-read-what-is-new")
def test_judging_night_by_night_is_judging_all_at_once(
    tmp_path: Path, figures: dict[str, object], effort: Callable[[int, int], int]
) -> None:
    paths, first, nights = DataPaths(tmp_path), 24, effort(1, 14)
    grow(paths, Size(50, first))
    judge_as_of(paths, first)
    for night in range(first + 1, first + nights + 1):
        grow(paths, Size(50, night), first=night - 1)
        step_by_step = repr(judge_as_of(paths, night))
        kept = paths.readings.read_bytes()
        paths.readings.unlink()
        assert repr(judge_as_of(paths, night)) == step_by_step
        paths.readings.write_bytes(kept)
    figures["nights judged both ways"] = nights
    figures["series"] = 50


def test_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    counting, file, today = Counting(EVERYTHING), tmp_path / "readings.json", date(2026, 3, 1)
    first = RememberingDetector(counting, {})
    assert first.read(VALUES) == first.read(VALUES) == EVERYTHING
    detector_cache.write_file(file, "method", detector_cache.add_day({}, today, first.asked))
    (known,) = detector_cache.read_file(file, "method").values()
    again = RememberingDetector(counting, known)
    assert again.read(array("d", VALUES)) == EVERYTHING
    assert repr(again.read(VALUES)) == repr(EVERYTHING)
    assert counting.looked == 1
    again.read([*VALUES[:-1], 3.0])
    assert counting.looked == 2


@pytest.mark.parametrize(
    "odd",
    [
        replace(EVERYTHING, shifts=(replace(SHIFT, latest=10),)),
        replace(EVERYTHING, shifts=(replace(SHIFT, earliest=-1),)),
        replace(EVERYTHING, shifts=(replace(SHIFT, index=0, earliest=0),)),
        replace(EVERYTHING, shifts=(SHIFT, SHIFT)),
        replace(EVERYTHING, drifts=(replace(DRIFT, first=9),)),
        replace(EVERYTHING, drifts=(replace(DRIFT, last=10),)),
        replace(EVERYTHING, drifts=(DRIFT, replace(DRIFT, first=0))),
        replace(EVERYTHING, spreads=(replace(SPREAD, index=10),)),
        replace(EVERYTHING, noise=replace(NOISE, points=-1)),
        replace(EVERYTHING, noise=replace(NOISE, all_points=11)),
        replace(EVERYTHING, week=WEEK[:6]),
    ],
)
def test_what_cannot_be_of_the_values_is_read_anew(odd: DetectorResult) -> None:
    misled = RememberingDetector(Counting(odd), {})
    misled.read(VALUES)
    mended = RememberingDetector(Counting(EVERYTHING), misled.asked)
    assert mended.read(VALUES) == EVERYTHING
    again = RememberingDetector(Counting(odd), mended.asked)
    assert again.read(VALUES) == EVERYTHING


@pytest.mark.parametrize(
    "body",
    [
        "[]",
        "null",
        '{"2026-03-01": []}',
        '{"tomorrow": {}}',
        '{"2026-03-01": {"digest": [[], [], [], null]}}',
        *(
            f'{{"2026-03-01": {{"{DIGEST}": {reading}}}}}'
            for reading in (
                "null",
                "[[], [], []]",
                "[[[3, 2, 5, 0.5]], [], [], null, []]",
                "[[[3, 2, 5, 2.5, true]], [], [], null, []]",
                "[[[3, 2, 5, 0.5, 1]], [], [], null, []]",
                '[[[3, 2, "5", 0.5, true]], [], [], null, []]',
                "[[[3.0, 2, 5, 0.5, true]], [], [], null, []]",
                "[[], [[1, 2, 0.5, NaN]], [], null, []]",
                "[[], [[1, 2, 0.5, 1e308]], [], null, []]",
                "[[], [], [[4, -1.0, 1.0, 0.5]], null, []]",
                "[[], [], [], [1.0, 1.0, 1.0, 4, 4], []]",
                "[[], [], [], [Infinity, 0.0, 1.0, 4, 4], []]",
                "[[], [], [], null, null]",
                "[[], [], [], null, [NaN]]",
            )
        ),
    ],
)
def test_what_is_misshapen_is_as_none_whatever_its_digest(tmp_path: Path, body: str) -> None:
    def forge(content: str) -> dict[str, Any]:
        sha256 = hashlib.sha256(content.encode()).hexdigest()
        head = json.dumps({"method": "method", "sha256": sha256})
        (tmp_path / "readings.json").write_text(f"{head}\n{content}", encoding="utf-8")
        return detector_cache.read_file(tmp_path / "readings.json", "method")

    assert forge(json.dumps(DAYS)) == DAYS
    assert forge(body) == {}


def test_a_file_that_is_too_large_or_a_pipe_is_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, pipe = tmp_path / "readings.json", tmp_path / "pipe"
    detector_cache.write_file(file, "method", DAYS)
    assert detector_cache.read_file(file, "method") == DAYS
    monkeypatch.setattr(detector_cache, "MOST_BYTES", file.stat().st_size - 1)
    assert detector_cache.read_file(file, "method") == {}
    os.mkfifo(pipe)
    assert detector_cache.read_file(pipe, "method") == {}


def test_no_number_changes_on_its_way_through_the_file(tmp_path: Path) -> None:
    generator, file = random.Random(4), tmp_path / "readings.json"  # noqa: S311  test data, not a secret
    numbers = [generator.uniform(-1, 1) * 10 ** generator.randint(-320, 149) for _ in range(20_000)]
    drifts = tuple((0, 1, one, one) for one in (0.0, -0.0, 5e-324, *numbers))
    detector_cache.write_file(file, "method", {"2026-03-01": {DIGEST: ((), drifts, (), None, ())}})
    found = detector_cache.read_file(file, "method")["2026-03-01"][DIGEST]
    assert repr(found) == repr(((), drifts, (), None, ()))


def test_the_file_is_written_only_with_something_new(tmp_path: Path) -> None:
    paths, today = DataPaths(tmp_path), now_after(12).date()
    grow(paths, Size(50, 12))
    judge_history(paths, shipped(), today)
    written = paths.readings.stat().st_ino
    judge_history(paths, shipped(), today)
    assert paths.readings.stat().st_ino == written
    judge_history(paths, shipped(), today + timedelta(days=1))
    assert paths.readings.stat().st_ino != written


def test_the_method_is_that_of_one_version_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    detector = StepDetector(settings=shipped().detection)
    method = detector_cache.describe_method(detector)
    assert detector_cache.describe_method(detector) == method
    monkeypatch.setattr(sys, "version", "3.99.0")
    assert detector_cache.describe_method(detector) != method


@pytest.mark.parametrize("broken", [b"", b"{}", b"[" * 100_000, b"\xff\n{}", None])
def test_a_file_that_is_not_whole_is_as_none(tmp_path: Path, broken: bytes | None) -> None:
    file = tmp_path / "readings.json"
    detector_cache.write_file(file, "method", DAYS)
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"cdef0", b"cdefa") if broken is None else broken)
    assert detector_cache.read_file(file, "method") == {}
    file.write_bytes(whole)
    assert detector_cache.read_file(file, "another method") == {}
    assert detector_cache.read_file(file, "method") == DAYS


def test_what_nobody_asks_for_goes_after_two_weeks() -> None:
    days = detector_cache.add_day({}, date(2026, 3, 1), {"a": NOTHING, "b": NOTHING})
    days = detector_cache.add_day(days, date(2026, 3, 15), {"b": NOTHING, "c": NOTHING})
    assert {day: set(of_day) for day, of_day in days.items()} == {
        "2026-03-01": {"a"},
        "2026-03-15": {"b", "c"},
    }
    days = detector_cache.add_day(days, date(2026, 3, 16), {"c": NOTHING})
    assert {day: set(of_day) for day, of_day in days.items()} == {
        "2026-03-15": {"b"},
        "2026-03-16": {"c"},
    }
    # The clock was ahead: what is of a day to come goes.
    days = detector_cache.add_day(days, date(2026, 3, 15), {"b": NOTHING})
    assert {day: set(of_day) for day, of_day in days.items()} == {"2026-03-15": {"b"}}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.keeps("a-million-points")
def test_a_series_of_a_million_points_is_judged(
    make_observations: Callable[..., tuple[Observation, ...]], figures: dict[str, object]
) -> None:
    """With a step of 12 % up or down after each thousand points; the last points are calm.

    A million with full effort, which takes minutes; else a tenth of them.
    """
    count, every = 1_000_000 if EFFORT >= 1 else 100_000, 1_000
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
    columns = Columns.of(Occasions.of(occasions), range(count), values, ((),) * count)
    settings = shipped().detection
    observed = Observations((ObservedSeries(model.key, columns),))
    judgement = judge(observed, settings, RememberingDetector(StepDetector(settings=settings), {}))
    (judged,) = judgement.series
    found = {change.index for change in judged.change_points}
    missed = [at for at in range(every, count, every) if not found & set(range(at - 3, at + 4))]
    assert not missed
    # Two in a hundred; of so few steps, chance makes it up to five.
    assert len(found) - len(range(every, count, every)) <= max(5, 0.02 * count / every)
    figures["points"], figures["steps planted and found"] = count, count // every - 1
