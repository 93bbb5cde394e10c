"""A bisection from first probe to answer: what it reuses, skips, survives. Trials are made up."""

import io
import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import rmtree

import pytest

from analysis.bisecting import run as bisection_run
from analysis.bisecting.bisection import Culprit, Ending, Inconclusive
from analysis.bisecting.description import describe_bisection, is_inconclusive, is_regression
from analysis.bisecting.probing import Standing
from analysis.bisecting.question import Question, releases_between
from analysis.bisecting.record import BISECTION, BisectionRecord
from analysis.bisecting.run import read_bisections, run_bisection
from analysis.comparing import run as comparison_run
from analysis.comparing.blocks import Measure
from analysis.comparing.paired import Estimate
from analysis.comparing.run import Budget, run_comparison
from analysis.comparing.turns import Inquiry, is_over
from perf import releases, side_by_side
from perf.config import Catalog, load_catalog, named
from perf.errors import InputError, MeasureError, ReleaseError, UsageError
from perf.harness import Order
from perf.history import bundle
from perf.history.store import append_all
from perf.model import (
    Artifact,
    Purpose,
    Reason,
    Release,
    Sample,
    Source,
    Taken,
    Trial,
    TrialId,
    TrialStatus,
)
from perf.past_turns import FIRST_BLOCK, PLANTED
from perf.places import Places
from perf.progress import Progress
from perf.side_by_side import Side, take_side
from perf.systems.contract import System
from perf.systems.fake import SYSTEM

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
THROUGHPUT = Measure(phase="saturation", operation="write", metric="throughput", statistic="mean")
SCATTER = (0.0, 0.004, -0.003, 0.002, -0.005, 0.001, 0.003)
GOOD, SLOW, BROKEN = 1000.0, 800.0, 0.0
MANY = Budget(trials=400, minutes=10_000)


@dataclass(slots=True)
class Lab:
    """Where made-up trials are measured: a level for each release, and who was measured, in order."""

    places: Places
    catalog: Catalog
    seal: Callable[..., Trial]
    levels: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(map(version, range(8)), GOOD)
    )
    measured: list[str] = field(default_factory=list)
    stop_after: int = 10_000
    break_after: dict[str, int] = field(default_factory=dict)
    """So many trials of a release complete, and then no more."""
    said: io.StringIO = field(default_factory=io.StringIO)

    def bisect(self, budget: Budget = MANY, first: int = 0, last: int = 7) -> BisectionRecord:
        question = Question(
            catalog=self.catalog,
            suite=self.catalog.suite("fake-short"),
            experiment="fake-blink",
            measure=THROUGHPUT,
            first=version(first),
            last=version(last),
        )
        progress = Progress(self.said)
        return run_bisection(question, self.catalog.detection, budget, self.places, progress)

    def slow_from(self, ordinal: int, level: float = SLOW) -> None:
        self.levels |= {version(each): level for each in range(ordinal, 8)}

    def hold_nights(self, *ordinals: int, **changes: object) -> None:
        for day in range(1, 9):
            self.hold_night(f"2026-02-0{day}-1", ordinals, **changes)

    def hold_night(self, night_id: str, ordinals: Sequence[int], /, **changes: object) -> None:
        for ordinal in ordinals:
            trial = TrialId(f"{night_id}.01.fake-blink.{version(ordinal)}")
            said = {"night": night_id, "purpose": Purpose.SCHEDULED, **changes}
            self.seal(self, version(ordinal), id=trial, **said)


def version(ordinal: int) -> str:
    return f"2.0.{ordinal}"


@pytest.fixture
def lab(tmp_path: Path, make_trial: Callable[..., Trial], monkeypatch: pytest.MonkeyPatch) -> Lab:
    catalog = load_catalog(CONFIGS)
    side = take_side(catalog, catalog.suite("fake-short"), "fake-blink", "2.0.0")
    deployment = side.deployment

    def seal(lab: Lab, name: str, **changes: object) -> Trial:
        level = lab.levels[name]
        value = level * (1 + SCATTER[len(bundle.find(lab.places)) % len(SCATTER)])
        status = TrialStatus.COMPLETED if level else TrialStatus.FAILED
        sample = Sample(
            phase="saturation", operation="write", metric="throughput", statistic="mean", value=value
        )
        started = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=len(bundle.find(lab.places)))
        fields = {
            "experiment": "fake-blink",
            "release": releases.find_release(SYSTEM, name),
            "artifact": Artifact(source=Source.BUILTIN, sha256=""),
            "topology": named(deployment.topology),
            "testbed": named(deployment.testbed),
            "workload": named(deployment.workload),
            "config": named(deployment.config),
            "status": status,
            "reasons": () if level else (Reason(kind="start-failed", text="it does not start"),),
            "samples": (sample,) if level else (),
            "started_at": started,
            "finished_at": started + timedelta(minutes=3),
        }
        trial = make_trial(**{**fields, **changes})
        bundle.seal(bundle.stage(lab.places, trial.id), trial, ())
        return trial

    lab = Lab(places=Places(tmp_path), catalog=catalog, seal=seal)

    def run(order: Order, _: System, __: Places, ___: Progress) -> Trial:
        if len(lab.measured) == lab.stop_after:
            raise KeyboardInterrupt
        lab.measured.append(order.release.version)
        if (
            lab.measured.count(order.release.version)
            == lab.break_after.get(order.release.version, -1) + 1
        ):
            lab.levels[order.release.version] = BROKEN
        said = {"id": order.trial, "purpose": order.purpose, "remarks": order.remarks, "night": ""}
        return seal(lab, order.release.version, **said, config=named(order.deployment.config))

    monkeypatch.setattr(side_by_side, "run_trial", run)
    return lab


def told(record: BisectionRecord) -> str:
    return "\n".join(describe_bisection(record))


def culprit_of(record: BisectionRecord) -> str:
    assert isinstance(record.found, Culprit), told(record)
    return record.found.step.release.version


def test_the_culprit_is_found_and_each_probe_is_told(lab: Lab) -> None:
    lab.slow_from(5)
    record = lab.bisect()
    assert culprit_of(record) == "2.0.5"
    assert is_regression(record)
    assert not is_inconclusive(record)
    assert record.probes[0].probed.release.version == "2.0.7"
    assert record.probes[0].standing is None
    standings = {one.probed.release.version: one.standing for one in record.probes[1:]}
    assert standings["2.0.4"] is Standing.GOOD
    assert standings["2.0.5"] is Standing.BAD
    assert len(record.measured) == len(lab.measured)
    assert record.reused == 0
    text = told(record)
    assert text.startswith("The regression came with 2.0.5")
    assert "2.0.5 is like 2.0.7, so the change came with it or before it" in text
    assert "2.0.4 is like 2.0.0, so the change came after it" in text
    assert read_bisections(lab.places) == (record,)


def test_an_improvement_is_no_regression(lab: Lab) -> None:
    lab.slow_from(3, level=1300.0)
    record = lab.bisect()
    assert culprit_of(record) == "2.0.3"
    assert not is_regression(record)
    assert "improvement" in told(record)


def test_equal_ends_are_an_answer(lab: Lab) -> None:
    record = lab.bisect()
    assert isinstance(record.found, Inconclusive)
    assert record.found.ending is Ending.NOTHING_CHANGED
    assert not is_inconclusive(record)
    assert set(lab.measured) == {"2.0.0", "2.0.7"}


def test_a_release_that_does_not_start_is_skipped_and_the_answer_says_so(lab: Lab) -> None:
    lab.slow_from(4)
    lab.levels["2.0.4"] = BROKEN
    record = lab.bisect()
    assert isinstance(record.found, Culprit)
    assert [one.version for one in record.found.step.skipped] == ["2.0.4"]
    assert "2.0.4" in record.found.sentence
    assert lab.measured.count("2.0.4") == 2
    assert "2.0.4 cannot be measured and is skipped" in told(record)
    assert "it does not start" in told(record)


def test_a_release_that_cannot_be_fetched_is_skipped(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    real = releases.fetch

    def fetch(system: System, release: Release, **options: object) -> Artifact:
        if release.version == "2.0.4":
            raise ReleaseError("no answer from the archive")
        return real(system, release, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(releases, "fetch", fetch)
    lab.slow_from(4)
    record = lab.bisect()
    assert "2.0.4" not in lab.measured
    assert isinstance(record.found, Culprit)
    assert [one.version for one in record.found.step.skipped] == ["2.0.4"]
    assert "no answer from the archive" in told(record)


def test_without_its_good_end_nothing_is_bisected(lab: Lab) -> None:
    lab.levels["2.0.0"] = BROKEN
    with pytest.raises(MeasureError, match=r"the known good end 2\.0\.0 cannot be measured.*start"):
        lab.bisect()
    lab.levels["2.0.0"] = GOOD
    assert isinstance(lab.bisect().found, Inconclusive)
    assert "resumed, 0 probes are done" in lab.said.getvalue()


def test_a_bad_end_that_does_not_start_is_said(lab: Lab) -> None:
    lab.levels["2.0.7"] = BROKEN
    record = lab.bisect()
    assert isinstance(record.found, Inconclusive)
    assert record.found.ending is Ending.END_NOT_MEASURED
    assert is_inconclusive(record)


def test_an_interrupted_bisection_goes_on_and_measures_nothing_twice(lab: Lab) -> None:
    lab.slow_from(3)
    lab.stop_after = 14
    with pytest.raises(KeyboardInterrupt):
        lab.bisect()
    (saved,) = read_bisections(lab.places)
    assert saved.found is None
    done = len(saved.probes)
    assert done >= 1
    lab.stop_after = 10_000
    record = lab.bisect()
    assert record.id == saved.id
    assert record.probes[:done] == saved.probes
    assert culprit_of(record) == "2.0.3"
    probes = f"{done} probe is" if done == 1 else f"{done} probes are"
    assert f"resumed, {probes} done" in lab.said.getvalue()
    # Each trial of the first run counts once, and none was run again.
    assert len(record.measured) == len(lab.measured) == len(bundle.find(lab.places))
    assert len({one.id for one in record.measured}) == len(record.measured)


def test_the_same_question_again_is_answered_from_what_is_there(lab: Lab) -> None:
    lab.slow_from(6)
    first = lab.bisect()
    count = len(lab.measured)
    again = lab.bisect()
    assert len(lab.measured) == count
    assert again.id != first.id
    assert culprit_of(again) == culprit_of(first) == "2.0.6"
    assert again.measured == ()
    assert 0 < again.reused <= count


def test_nights_that_measured_both_releases_count_as_blocks(lab: Lab) -> None:
    lab.slow_from(4)
    lab.hold_nights(0, 3, 7)
    record = lab.bisect()
    assert culprit_of(record) == "2.0.4"
    assert "2.0.3" not in lab.measured
    assert record.reused == 16
    assert {one.block for one in record.probes[1].trials} == set(range(1001, 1009))
    assert "16 of them measured before" in told(record)


def test_nights_that_made_the_bad_end_suspect_do_not_vote_on_it_again(lab: Lab) -> None:
    lab.slow_from(4)
    lab.hold_nights(0, 7)
    lab.slow_from(1, level=GOOD)
    record = lab.bisect()
    assert isinstance(record.found, Inconclusive)
    assert record.found.ending is Ending.NOTHING_CHANGED
    assert record.reused == 0
    assert "2.0.7" in lab.measured


def test_what_is_known_is_asked_first_and_only_where_the_change_can_still_be(lab: Lab) -> None:
    lab.slow_from(3)
    lab.hold_nights(0, 5, 6)
    record = lab.bisect()
    probed = [one.probed.release.version for one in record.probes]
    assert culprit_of(record) == "2.0.3"
    assert probed[:2] == ["2.0.7", "2.0.5"]
    assert "2.0.6" not in probed


def test_a_release_that_fails_when_it_is_asked_again_keeps_its_first_trials(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_over_of_fresh(taken: Sequence[Taken], inquiry: Inquiry) -> bool:
        return any(one.block < FIRST_BLOCK for one in taken) and is_over(taken, inquiry)

    # So that who is asked again is measured again.
    monkeypatch.setattr(comparison_run, "is_over", is_over_of_fresh)
    lab.slow_from(4)
    lab.levels |= {"2.0.3": 900.0}
    lab.break_after["2.0.3"] = 4
    record = lab.bisect()
    first, again = (one for one in record.probes if one.probed.release.version == "2.0.3")
    assert lab.measured.count("2.0.3") == 6
    assert again.probed.estimate == first.probed.estimate
    assert again.standing is Standing.BETWEEN


def test_what_only_the_history_still_holds_counts_as_well(lab: Lab) -> None:
    lab.slow_from(4)
    lab.hold_nights(0, 3)
    append_all(lab.places, Progress(lab.said).tell)
    rmtree(lab.places.trials)
    assert lab.bisect().reused == 16


def test_a_damaged_bundle_is_told_of_and_not_counted(lab: Lab) -> None:
    lab.slow_from(4)
    lab.hold_nights(0, 3)
    (lab.places.trials / "2026-02-01-1.01.fake-blink.2.0.3" / "trial.json").write_text("{")
    assert lab.bisect().reused == 14
    assert "not reused: " in lab.said.getvalue()


def test_two_nights_that_say_nothing_do_no_harm(lab: Lab) -> None:
    for night, level in (("2026-02-01-1", 1e6), ("2026-02-02-1", 1e-3)):
        lab.levels["2.0.3"] = level
        lab.hold_night(night, (0, 3))
    lab.levels["2.0.3"] = GOOD
    lab.slow_from(4)
    record = lab.bisect()
    assert record.reused == 4
    assert record.found is not None
    assert len(lab.measured) >= 8
    few = Estimate(
        log_ratio=0.0, standard_error=10.0, degrees_of_freedom=1, baseline_trials=2, candidate_trials=2
    )
    interval = few.interval(1e-4)
    # What is kept as JSON and taken the logarithm of must be a number above -1.
    assert -1 < interval.low < -0.99
    assert 1e12 < interval.high < math.inf


@pytest.mark.parametrize(
    "changes",
    [
        {"config": named(load_catalog(CONFIGS).workloads["blink"])},
        {"purpose": Purpose.CANDIDATE},
        {"night": ""},
        {"artifact": Artifact(source=Source.BUILTIN, sha256="ab" * 32)},
        {"remarks": (Reason(kind=PLANTED, text="a handicap was planted"),)},
        {"status": TrialStatus.INVALID},
    ],
    ids=["another config", "a candidate", "no night", "other bytes", "planted", "invalid"],
)
def test_a_trial_of_something_else_is_not_reused(lab: Lab, changes: dict[str, object]) -> None:
    lab.slow_from(4)
    lab.hold_nights(0, 3, **changes)
    record = lab.bisect()
    assert "2.0.3" in lab.measured
    assert record.reused == 0


def test_planted_trials_say_so_and_nights_without_the_plant_do_not_count(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = Reason(kind=PLANTED, text="a handicap was planted in this trial: slow")

    def take(catalog: Catalog, suite: object, experiment: str, name: str) -> Side:
        side = take_side(catalog, suite, experiment, name)  # type: ignore[arg-type]
        return replace(side, remarks=(mark,)) if name >= "2.0.5" else side

    monkeypatch.setattr(bisection_run, "take_side", take)
    lab.slow_from(5)
    lab.hold_nights(0, 6)
    record = lab.bisect()
    assert culprit_of(record) == "2.0.5"
    assert record.reused == 0
    assert record.remarks == ("2.0.5, 2.0.7: a handicap was planted in this trial: slow",)
    assert "Remark: 2.0.5, 2.0.7: a handicap was planted" in told(record)
    of_candidate = [path for path in bundle.find(lab.places) if path.name.endswith("candidate.2.0.5")]
    assert of_candidate
    assert all(bundle.read(path)[0].remarks == (mark,) for path in of_candidate)


def test_a_budget_of_trials_ends_it_with_what_is_known(lab: Lab) -> None:
    lab.slow_from(5)
    record = lab.bisect(Budget(trials=20, minutes=10_000))
    assert isinstance(record.found, Inconclusive)
    assert record.found.ending is Ending.BUDGET
    assert is_inconclusive(record)
    assert len(lab.measured) <= 20
    assert sum(one.probability for one in record.found.chances) <= 1.001
    assert record.found.cost_to_finish
    text = told(record)
    assert "to finish it, about" in text
    assert "Probability that the change came with" in text
    more = lab.bisect(MANY)
    assert culprit_of(more) == "2.0.5"
    # The budget is no part of the question: what the short one measured counts.
    assert more.reused + len(more.measured) == len(lab.measured)


def test_a_budget_of_minutes_ends_it_as_well(lab: Lab) -> None:
    lab.slow_from(5)
    record = lab.bisect(Budget(trials=400, minutes=45))
    assert isinstance(record.found, Inconclusive)
    assert record.found.ending is Ending.BUDGET
    assert record.minutes <= 45
    little = lab.bisect(Budget(trials=400, minutes=1), first=1)
    assert isinstance(little.found, Inconclusive)
    assert little.found.ending is Ending.BUDGET


def test_a_probe_too_short_to_teach_anything_skips_its_release_and_blames_no_budget(lab: Lab) -> None:
    comparing = replace(lab.catalog.detection.comparison, minutes=15.0)
    detection = replace(lab.catalog.detection, comparison=comparing)
    lab.catalog = replace(lab.catalog, detection=detection)
    record = lab.bisect()
    assert isinstance(record.found, Inconclusive)
    assert record.found.ending is Ending.END_NOT_MEASURED
    assert "the 15 minutes allow no further block" in record.found.sentence


def test_nobody_else_measures_between_two_probes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.slow_from(4)
    held = []

    def compare(*given: object, **named: object) -> object:
        held.append(is_held(lab.places))
        found = run_comparison(*given, **named)  # type: ignore[arg-type]
        held.append(is_held(lab.places))
        return found

    monkeypatch.setattr(bisection_run, "run_comparison", compare)
    lab.bisect()
    assert len(held) > 2
    assert all(held)
    assert not is_held(lab.places)


def is_held(places: Places) -> bool:
    """Ask from another process, as another command would."""
    ask = "import filelock, sys; filelock.FileLock(sys.argv[1]).acquire(timeout=0)"
    asked = subprocess.run([sys.executable, "-c", ask, places.lock], check=False, capture_output=True)
    return asked.returncode != 0


def test_two_releases_are_a_plain_comparison(lab: Lab) -> None:
    lab.slow_from(4)
    record = lab.bisect(first=3, last=4)
    assert culprit_of(record) == "2.0.4"
    assert {one.probed.release.version for one in record.probes} == {"2.0.4"}
    assert "2.0.4 does differ from 2.0.3" in told(record)
    assert "is like" not in told(record)


def test_a_damaged_bisection_is_refused_with_what_to_do(lab: Lab) -> None:
    lab.bisect()
    (path,) = lab.places.bisections.glob(f"*/{BISECTION}")
    path.write_text("{")
    with pytest.raises(InputError, match=r"move .* away, its trials are kept"):
        read_bisections(lab.places)


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        ("1.0.0", "1.1.1", r"1\.0\.0 is of line 1\.0 and 1\.1\.1 of line 1\.1"),
        ("2.0.5", "2.0.2", r"2\.0\.5 is not before 2\.0\.2"),
        ("2.0.5", "2.0.5", r"2\.0\.5 is not before 2\.0\.5"),
        ("2.0.1", "2.0.99", r"no release '2\.0\.99'; did you mean"),
    ],
)
def test_what_is_no_range_is_explained(first: str, last: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        releases_between("fake", first, last)
