"""The command `bisect`: how a question is said, what is refused, how it exits. The run is made up."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from made_up_bisection import INCONCLUSIVE, RECORD, UNCHANGED, effect

from analysis.bisecting.bisection import Culprit, Ending
from analysis.bisecting.record import BisectionRecord, read_bisection
from analysis.commands import bisect as bisect_command
from analysis.commands.bisect import choose_measure, find_change
from analysis.detection.verdict import Outcome
from analysis.judging.incidents import name_incident
from analysis.judging.judgement import Judgement
from analysis.orchestration.bisecting import BisectionQuestion
from analysis.orchestration.comparing import Budget
from perf.commands.main import knickpoint
from perf.config.catalog import load_catalog
from perf.model.errors import UsageError
from perf.model.identity import named
from perf.model.results import Observation

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
EXPERIMENT = ("--suite", "fake-short", "--experiment", "fake-blink", "--metric", "throughput")
Invoke = Callable[..., Result]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Note what is asked; the answer is `record`."""
    noted: dict[str, Any] = {"record": RECORD}

    def run(_: object, question: BisectionQuestion, budget: Budget) -> BisectionRecord:
        noted.update(question=question, budget=budget)
        if isinstance(noted["record"], BaseException):
            raise noted["record"]
        return noted["record"]  # type: ignore[no-any-return]

    monkeypatch.setattr(bisect_command, "run_bisection", run)
    return noted


@pytest.fixture
def invoke(tmp_path: Path) -> Invoke:
    def call(*arguments: str) -> Result:
        places = ("--data", str(tmp_path / "var"), "--configs", str(CONFIGS))
        return CliRunner().invoke(knickpoint, ["bisect", *arguments, *places])

    return call


def test_a_range_is_asked_and_answered(asked: dict[str, Any], invoke: Invoke, tmp_path: Path) -> None:
    output = tmp_path / "bisection.json"
    result = invoke("fake", "2.0.0..2.0.7", *EXPERIMENT, "--trials", "30", "--output", str(output))
    question = asked["question"]
    assert (question.first, question.last) == ("2.0.0", "2.0.7")
    assert str(question.measure) == "saturation/write/throughput/mean"
    assert "--trials 30" in question.command
    assert asked["budget"] == Budget(trials=30, minutes=4 * 240)
    assert "6 releases lie between 2.0.0 and 2.0.7" in result.stderr
    assert result.stdout.startswith(RECORD.found.sentence)  # type: ignore[union-attr]
    assert read_bisection(output.read_bytes(), output) == RECORD
    assert result.exit_code == 1


def test_what_it_came_to_is_the_exit_code(asked: dict[str, Any], invoke: Invoke) -> None:
    assert isinstance(RECORD.found, Culprit)
    gained = replace(RECORD, found=replace(RECORD.found, is_improvement=True))
    slow = replace(INCONCLUSIVE, found=replace(INCONCLUSIVE.found, ending=Ending.GRADUAL))  # type: ignore[type-var]
    (end, *rest) = slow.probes
    faster = replace(end, probed=replace(end.probed, effect=effect(0.2)))
    better = replace(slow, probes=(faster, *rest))
    reported = (RECORD, 1), (gained, 0), (UNCHANGED, 0), (INCONCLUSIVE, 3), (slow, 1), (better, 3)
    for record, code in reported:
        asked["record"] = record
        assert invoke("fake", "2.0.0..2.0.7", *EXPERIMENT).exit_code == code


def test_that_nothing_was_shown_is_not_that_nothing_changed(
    asked: dict[str, Any], invoke: Invoke
) -> None:
    (end,) = UNCHANGED.probes
    vague = replace(end.probed.effect, low=-0.3, high=0.2)  # type: ignore[type-var]
    unclear = replace(end, outcome=Outcome.UNDECIDED, probed=replace(end.probed, effect=vague))
    found = replace(UNCHANGED.found, ending=Ending.UNDECIDED)  # type: ignore[type-var]
    asked["record"] = replace(UNCHANGED, probes=(unclear,), found=found)
    result = invoke("fake", "2.0.0..2.0.7", *EXPERIMENT)
    assert result.exit_code == 3
    assert "one of up to 30 % may hide" in result.stdout


def test_an_interrupted_one_says_how_to_go_on(asked: dict[str, Any], invoke: Invoke) -> None:
    asked["record"] = KeyboardInterrupt()
    result = invoke("fake", "2.0.0..2.0.7", *EXPERIMENT)
    assert "each finished probe is saved; go on with:" in result.stderr
    assert "knickpoint bisect fake 2.0.0..2.0.7 --suite fake-short" in result.stderr
    assert "--data" in result.stderr


def test_neighbours_are_said_to_be_a_plain_comparison(asked: dict[str, Any], invoke: Invoke) -> None:
    result = invoke("fake", "2.0.3..2.0.4", *EXPERIMENT)
    assert "no release lies between 2.0.3 and 2.0.4: this is a plain comparison" in result.stderr
    assert asked["budget"].trials == 40


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fake",), "something is missing; write knickpoint bisect SYSTEM FIRST..LAST"),
        (("fake", "2.0.0..2.0.7"), "something is missing"),
        (("fake", "2.0.0", *EXPERIMENT), "'2.0.0' is no range of releases; write FIRST..LAST"),
        (("fake", "2.0.0..1.0.2", *EXPERIMENT), "only releases of one line have an order"),
        (("fake", "2.0.5..2.0.1", *EXPERIMENT), "2.0.5 is not before 2.0.1"),
        (("cassandra", "5.0.1..5.0.3", *EXPERIMENT), "measures fake, not cassandra"),
        (("fake", "2.0.0..2.0.7", "--change", "ab"), "--change says it all"),
    ],
)
def test_mistakes_are_explained(
    asked: dict[str, Any], invoke: Invoke, arguments: tuple[str, ...], said: str
) -> None:
    result = invoke(*arguments)
    assert isinstance(result.exception, UsageError)
    assert said in str(result.exception)
    assert "question" not in asked


def test_a_metric_is_named_as_shortly_as_it_is_clear() -> None:
    catalog = load_catalog(CONFIGS)
    workload, settings = catalog.workloads["tiny-write"], catalog.detection
    for text, meant in (
        ("throughput", "saturation/write/throughput/mean"),
        ("throughput/mean", "saturation/write/throughput/mean"),
        ("response_time", "steady/write/response_time/p99"),
        ("steady/write/throughput/mean", "steady/write/throughput/mean"),
    ):
        assert str(choose_measure(text, workload, settings)) == meant
    with pytest.raises(UsageError, match=r"may be any of these[\s\S]*steady/write/response_time/p50"):
        choose_measure("response_time/p50", workload, settings)
    with pytest.raises(UsageError, match=r"has no such measure; it has:[\s\S]*throughput/mean"):
        choose_measure("speed", workload, settings)


@pytest.fixture
def judgement(
    planted: Callable[..., tuple[Observation, ...]], judge_planted: Callable[..., Judgement]
) -> Judgement:
    workload = named(load_catalog(CONFIGS).workloads["blink"])
    key = {
        "system": "fake",
        "line": "2.0",
        "topology": "three",
        "testbed_class": "loop",
        "workload": f"{workload.name}@{workload.sha256}",
    }
    values = [100.0] * 10 + [80.0] * 10
    return judge_planted(planted(values, releases=[1] * 10 + [6] * 10, **key))


def test_a_change_is_found_by_its_incident_and_by_its_own_name(judgement: Judgement) -> None:
    (incident,) = judgement.incidents
    assert find_change(judgement, incident.name) == incident.lead
    assert find_change(judgement, name_incident(incident.lead)) == incident.lead
    with pytest.raises(UsageError, match=f"there is no incident 'nothing'.*{incident.name}"):
        find_change(judgement, "nothing")


def test_within_one_release_there_is_nothing_to_bisect(
    planted: Callable[..., tuple[Observation, ...]], judge_planted: Callable[..., Judgement]
) -> None:
    judgement = judge_planted(planted([100.0] * 10 + [80.0] * 10))
    (incident,) = judgement.incidents
    with pytest.raises(UsageError, match="nothing to bisect; look at the hosts"):
        find_change(judgement, incident.name)


def test_a_change_says_what_to_bisect(
    asked: dict[str, Any], invoke: Invoke, judgement: Judgement, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bisect_command, "judge_history", lambda *_: judgement)
    (incident,) = judgement.incidents
    assert invoke("--change", incident.name).exit_code == 1
    question = asked["question"]
    assert (question.suite.name, question.experiment.name) == ("fake-short", "fake-blink")
    assert (question.first, question.last) == ("2.0.1", "2.0.6")
    assert str(question.measure) == "saturation/write/throughput/mean"
    refused = invoke("--change", incident.name, "--suite", "fake-night")
    assert isinstance(refused.exception, UsageError)
    assert "no experiment of suite fake-night measures the series" in str(refused.exception)
