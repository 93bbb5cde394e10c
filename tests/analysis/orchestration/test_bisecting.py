"""A bisection from first probe to answer: what it reuses, skips, survives. Trials are made up."""

import subprocess
import sys
from dataclasses import replace

import pytest
from bisection_lab import BROKEN, GOOD, MANY, Lab, culprit_of, reported

from analysis.bisecting.bisection import Culprit, Ending, Inconclusive
from analysis.bisecting.description import is_inconclusive, is_regression
from analysis.bisecting.probing import ReleaseStatus
from analysis.bisecting.record import BISECTION
from analysis.orchestration import bisecting as bisection_run
from analysis.orchestration.bisecting import read_bisections, releases_between
from analysis.orchestration.comparing import Budget, run_comparison
from perf.history import bundle
from perf.local.paths import DataPaths
from perf.model.errors import InputError, MeasureError, ReleaseError, UsageError
from perf.model.results import Artifact, Release
from perf.releases import artifacts as releases
from perf.systems import registry
from perf.systems.contract import System


def test_the_culprit_is_found_and_each_probe_is_reported(lab: Lab) -> None:
    lab.slow_from(5)
    record = lab.bisect()
    assert culprit_of(record) == "2.0.5"
    assert is_regression(record)
    assert not is_inconclusive(record)
    assert record.probes[0].probed.release.version == "2.0.7"
    assert record.probes[0].standing is None
    standings = {one.probed.release.version: one.standing for one in record.probes[1:]}
    assert standings["2.0.4"] is ReleaseStatus.GOOD
    assert standings["2.0.5"] is ReleaseStatus.BAD
    assert len(record.measured) == len(lab.measured)
    assert record.reused == 0
    text = reported(record)
    assert text.startswith("The regression came with 2.0.5")
    assert "2.0.5 is like 2.0.7, so the change came with it or before it" in text
    assert "2.0.4 is like 2.0.0, so the change came after it" in text
    assert read_bisections(lab.paths) == (record,)


@pytest.mark.slow
def test_an_improvement_is_no_regression(lab: Lab) -> None:
    lab.slow_from(3, level=1300.0)
    record = lab.bisect()
    assert culprit_of(record) == "2.0.3"
    assert not is_regression(record)
    assert "improvement" in reported(record)


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
    assert "2.0.4 cannot be measured and is skipped" in reported(record)
    assert "it does not start" in reported(record)


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
    assert "no answer from the archive" in reported(record)


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
    (saved,) = read_bisections(lab.paths)
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
    assert len(record.measured) == len(lab.measured) == len(bundle.find(lab.paths))
    assert len({one.id for one in record.measured}) == len(record.measured)


@pytest.mark.slow
def test_a_budget_of_trials_ends_it_with_what_is_known(lab: Lab) -> None:
    lab.slow_from(5)
    record = lab.bisect(Budget(trials=20, minutes=10_000))
    assert isinstance(record.found, Inconclusive)
    assert record.found.ending is Ending.BUDGET
    assert is_inconclusive(record)
    assert len(lab.measured) <= 20
    assert sum(one.probability for one in record.found.chances) <= 1.001
    assert record.found.cost_to_finish
    text = reported(record)
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


@pytest.mark.slow
def test_nobody_else_measures_between_two_probes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.slow_from(4)
    held = []

    def compare(*given: object, **named: object) -> object:
        held.append(is_held(lab.paths))
        found = run_comparison(*given, **named)  # type: ignore[arg-type]
        held.append(is_held(lab.paths))
        return found

    monkeypatch.setattr(bisection_run, "run_comparison", compare)
    lab.bisect()
    assert len(held) > 2
    assert all(held)
    assert not is_held(lab.paths)


def is_held(paths: DataPaths) -> bool:
    """Ask from another process, as another command would."""
    ask = "import filelock, sys; filelock.FileLock(sys.argv[1]).acquire(timeout=0)"
    asked = subprocess.run([sys.executable, "-c", ask, paths.lock], check=False, capture_output=True)
    return asked.returncode != 0


def test_two_releases_are_a_plain_comparison(lab: Lab) -> None:
    lab.slow_from(4)
    record = lab.bisect(first=3, last=4)
    assert culprit_of(record) == "2.0.4"
    assert {one.probed.release.version for one in record.probes} == {"2.0.4"}
    assert "2.0.4 does differ from 2.0.3" in reported(record)
    assert "is like" not in reported(record)


def test_a_damaged_bisection_is_refused_with_what_to_do(lab: Lab) -> None:
    lab.bisect()
    (path,) = lab.paths.bisections.glob(f"*/{BISECTION}")
    path.write_text("{")
    with pytest.raises(InputError, match=r"move .* away, its trials are kept"):
        read_bisections(lab.paths)


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
        releases_between(registry.load("fake").releases(), "fake", first, last)
