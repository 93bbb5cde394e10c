"""What a bisection takes for known, and what not. Trials are made up."""

import math
from collections.abc import Sequence
from dataclasses import replace
from shutil import rmtree

import pytest
from bisection_lab import CONFIGS, GOOD, Lab, culprit_of, reported

from analysis.bisecting.bisection import Ending, Inconclusive
from analysis.bisecting.probing import ReleaseStatus
from analysis.comparing.paired import Estimate
from analysis.comparing.turns import Inquiry, is_over
from analysis.orchestration import bisecting as bisection_run
from analysis.orchestration import comparing as comparison_run
from perf.config.catalog import Catalog, load_catalog
from perf.history import bundle
from perf.history.store import append_all
from perf.jobs.interleaving import FIRST_BLOCK, PLANTED, Side, take_side
from perf.local.progress import Progress
from perf.model.facts import DATASET
from perf.model.identity import named
from perf.model.results import Artifact, Fact, Purpose, Reason, Source, Taken, TrialStatus


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
    assert "16 of them measured before" in reported(record)


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
    assert again.standing is ReleaseStatus.BETWEEN


@pytest.mark.slow
def test_what_only_the_history_still_holds_counts_as_well(lab: Lab) -> None:
    lab.slow_from(4)
    lab.hold_nights(0, 3)
    append_all(lab.paths, Progress(lab.said).report)
    rmtree(lab.paths.trials)
    assert lab.bisect().reused == 16


def test_a_damaged_bundle_is_reported_of_and_not_counted(lab: Lab) -> None:
    lab.slow_from(4)
    lab.hold_nights(0, 3)
    (lab.paths.trials / "2026-02-01-1.01.fake-blink.2.0.3" / "trial.json").write_text("{")
    assert lab.bisect().reused == 14
    assert "not reused: " in lab.said.getvalue()


@pytest.mark.slow
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


def test_nights_whose_sides_started_from_different_kept_files_do_not_count(lab: Lab) -> None:
    lab.slow_from(4)
    files = {name: (Fact(host="", name=DATASET, value=name),) for name in ("made-anew", "kept")}
    lab.hold_night("2026-02-01-1", (0, 3), environment_before=files["kept"])
    lab.hold_night("2026-02-02-1", (0,), environment_before=files["made-anew"])
    lab.hold_night("2026-02-02-1", (3,), environment_before=files["kept"])
    lab.hold_night("2026-02-03-1", (0, 3))
    assert lab.bisect().reused == 4


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
    assert "Remark: 2.0.5, 2.0.7: a handicap was planted" in reported(record)
    of_candidate = [path for path in bundle.find(lab.paths) if path.name.endswith("candidate.2.0.5")]
    assert of_candidate
    assert all(bundle.read(path)[0].remarks == (mark,) for path in of_candidate)
