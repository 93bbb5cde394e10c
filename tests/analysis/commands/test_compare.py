"""The command `compare`: how sides are named, what is said, how it exits. The run itself is made up."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from made_up_comparison import REGRESSED_RESULT

from analysis.commands import compare as compare_command
from analysis.comparing.results import ComparisonResult, read_comparisons
from analysis.detection.verdict import Outcome
from analysis.orchestration.comparing import Budget
from perf.commands.main import knickpoint
from perf.history.store import Appended
from perf.jobs.interleaving import Pairing
from perf.model.errors import HistoryError, UsageError

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
Invoke = Callable[..., Result]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Note what is asked; the answer is that of `outcome`."""
    noted: dict[str, Any] = {"outcome": Outcome.REGRESSED, "kept": Appended(new=8, known=0, bad=())}

    def run(_: object, pairing: Pairing, budget: Budget, **named: object) -> ComparisonResult:
        noted.update(named, pairing=pairing, budget=budget)
        return replace(REGRESSED_RESULT, outcome=noted["outcome"])

    monkeypatch.setattr(compare_command, "run_comparison", run)
    monkeypatch.setattr(compare_command, "append_all", lambda *_: noted["kept"])
    return noted


@pytest.fixture
def invoke(tmp_path: Path) -> Invoke:
    def call(baseline: str, candidate: str, *more: str) -> Result:
        arguments = ["compare", "--suite", "fake-short", "--experiment", "fake-blink"]
        sides = ["--baseline", baseline, "--candidate", candidate]
        places = ["--data", str(tmp_path / "var"), "--configs", str(CONFIGS)]
        return CliRunner().invoke(knickpoint, [*arguments, *sides, *places, *more])

    return call


def test_sides_are_releases_configs_or_both(asked: dict[str, Any], invoke: Invoke) -> None:
    for text, version, label in (
        ("1.0.0", "1.0.0", "1.0.0"),
        ("default", "1.0.1", "1.0.1 with default"),
        ("1.0.0/default", "1.0.0", "1.0.0 with default"),
    ):
        invoke("1.0.0", text)
        candidate = asked["pairing"].candidate
        assert (candidate.version, candidate.label) == (version, label)


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (Outcome.REGRESSED, 1),
        (Outcome.INVALID, 3),
        (Outcome.UNDECIDED, 0),
        (Outcome.UNCHANGED, 0),
        (Outcome.IMPROVED, 0),
    ],
)
def test_the_verdict_comes_first_and_sets_the_exit_code(
    asked: dict[str, Any], invoke: Invoke, outcome: Outcome, code: int
) -> None:
    asked["outcome"] = outcome
    result = invoke("1.0.0", "1.0.1")
    assert result.exit_code == code
    assert result.stdout.startswith(f"{outcome}: base 3f1c9a27 → head b7e2d1c0")
    assert "8.4 → 11 ms, +31.5 % (+22.5 % to +40.5 %), 6 against 6 trials" in result.stdout


def test_the_budget_is_that_of_the_configuration_unless_reported(
    asked: dict[str, Any], invoke: Invoke
) -> None:
    invoke("1.0.0", "1.0.1")
    assert asked["budget"] == Budget(trials=40, minutes=240)
    invoke("1.0.0", "1.0.1", "--trials", "8", "--minutes", "1.5")
    assert asked["budget"] == Budget(trials=8, minutes=1.5)


def test_a_measure_can_be_named_and_is_part_of_the_command(
    asked: dict[str, Any], invoke: Invoke
) -> None:
    measure = "saturation/write/response_time/p99"
    invoke("1.0.0", "1.0.1", "--measure", measure, "--seed", "5")
    assert [str(one) for one in asked["trusted"]] == [measure]
    assert asked["pairing"].seed == 5
    assert asked["reproduce"] == (
        "knickpoint compare --suite fake-short --experiment fake-blink --baseline 1.0.0 --candidate"
        f" 1.0.1 --measure {measure} --seed 5 --configs {CONFIGS}"
    )


def test_equal_sides_are_said_to_be(asked: dict[str, Any], invoke: Invoke) -> None:
    assert "Both sides are the same" in invoke("1.0.1", "default").stderr
    assert "Both sides are the same" not in invoke("1.0.0", "default").stderr
    assert asked


def test_the_result_can_be_handed_on_as_a_file(
    asked: dict[str, Any], invoke: Invoke, tmp_path: Path
) -> None:
    target = tmp_path / "out" / "comparison.json"
    invoke("1.0.0", "1.0.1", "--output", str(target))
    (found,) = read_comparisons(target.read_bytes(), target).comparisons
    assert found.outcome is asked["outcome"]


@pytest.mark.parametrize(
    ("baseline", "more", "said"),
    [
        ("9.9.9", (), "'9.9.9' is neither a release nor a config of fake"),
        ("1.0.0/slow", (), "there is no fake config 'slow'"),
        ("1.0.0", ("--measure", "p99"), "--measure p99: "),
    ],
)
def test_mistakes_are_reported_before_anything_is_measured(
    invoke: Invoke, baseline: str, more: tuple[str, ...], said: str
) -> None:
    result = invoke(baseline, "1.0.1", *more)
    assert isinstance(result.exception, UsageError)
    assert said in str(result.exception)


def test_a_history_that_takes_nothing_costs_no_verdict(
    asked: dict[str, Any], invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise HistoryError("busy")

    monkeypatch.setattr(compare_command, "append_all", refuse)
    target = tmp_path / "comparison.json"
    result = invoke("1.0.0", "1.0.1", "--output", str(target))
    assert result.stdout.startswith("regressed: ")
    assert target.exists()
    assert isinstance(result.exception, HistoryError)
    assert asked


def test_a_refused_bundle_sets_the_exit_code(asked: dict[str, Any], invoke: Invoke) -> None:
    asked.update(outcome=Outcome.UNCHANGED, kept=Appended(new=0, known=0, bad=("x",)))
    assert invoke("1.0.0", "1.0.1").exit_code == 3


def test_a_budget_below_one_block_is_refused(invoke: Invoke) -> None:
    result = invoke("1.0.0", "1.0.1", "--trials", "3")
    assert result.exit_code == 2
    assert "3 is not in the range" in result.output
