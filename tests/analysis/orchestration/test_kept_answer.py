"""While nothing is new nothing is judged, and whatever may change the answer is new."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from catalogs import shipped

from analysis.detection.verdict import Outcome
from analysis.judging.judgement import Judgement
from analysis.orchestration import kept_answer
from analysis.orchestration.kept_answer import answer_for
from perf.local.paths import DataPaths

TODAY = date(2026, 3, 8)


class Asked:
    """Asks of a history that is not read: its judgement is empty; `judged` counts how often."""

    def __init__(self, paths: DataPaths) -> None:
        self.paths, self.judged = paths, 0
        self.catalog, self.today = shipped(), TODAY

    def judge(self, *_: object) -> Judgement:
        self.judged += 1
        return Judgement(series=())

    def is_judged(self) -> bool:
        """Return whether an answer needs a judgement."""
        before = self.judged
        answer = answer_for(self.paths, self.catalog, self.today)
        assert answer.lines
        assert answer.outcome is Judgement(series=()).outcome
        return self.judged > before


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    asked = Asked(DataPaths(tmp_path))
    (asked.paths.trials / "known").mkdir(parents=True)
    asked.paths.history.write_bytes(b"a history")
    monkeypatch.setattr(kept_answer, "judge_history", asked.judge)
    return asked


def grow_history(asked: Asked) -> None:
    with asked.paths.history.open("ab") as file:
        file.write(b", grown")


def keep_comparison(asked: Asked) -> None:
    (asked.paths.comparisons / "cmp-1").mkdir(parents=True)
    (asked.paths.comparisons / "cmp-1" / "result.json").write_text("{}")


def lose_bundle(asked: Asked) -> None:
    (asked.paths.trials / "known").rmdir()


def change_rules(asked: Asked) -> None:
    rules = replace(asked.catalog.detection, minimum_points=99)
    asked.catalog = replace(asked.catalog, detection=rules)


def let_a_day_pass(asked: Asked) -> None:
    asked.today += timedelta(days=1)


def break_answer(asked: Asked) -> None:
    asked.paths.answer.write_text('{"made_from": 1}')


def tear_answer(asked: Asked) -> None:
    asked.paths.answer.write_bytes(asked.paths.answer.read_bytes()[:-9])


@pytest.mark.parametrize(
    "change",
    [
        grow_history,
        keep_comparison,
        lose_bundle,
        change_rules,
        let_a_day_pass,
        break_answer,
        tear_answer,
    ],
)
def test_whatever_may_change_the_answer_is_new_once(
    asked: Asked, change: Callable[[Asked], None]
) -> None:
    assert asked.is_judged()
    assert not asked.is_judged()
    change(asked)
    assert asked.is_judged()
    assert not asked.is_judged()


def test_an_answer_is_given_again_as_it_was(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    def say(*_: object) -> list[str]:
        return ["one", "− two °"]

    monkeypatch.setattr(kept_answer, "describe", say)
    first = answer_for(asked.paths, asked.catalog, TODAY)
    assert answer_for(asked.paths, asked.catalog, TODAY) == first
    assert (first.lines, asked.judged) == (("one", "− two °"), 1)
    assert isinstance(first.outcome, Outcome)


def test_what_is_appended_while_it_is_judged_is_not_taken_for_judged(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge(*_: object) -> Judgement:
        grow_history(asked)
        return Judgement(series=())

    monkeypatch.setattr(kept_answer, "judge_history", judge)
    answer_for(asked.paths, asked.catalog, TODAY)
    assert not asked.paths.answer.exists()


def test_a_history_that_is_out_of_reach_is_asked_for_each_time(asked: Asked) -> None:
    asked.paths.history.with_suffix(".yaml").write_text(
        "history: ducklake:postgres:host=127.0.0.1 port=1 dbname=a\ndata_path: /srv/lake/\nlab: a\n"
    )
    assert asked.is_judged()
    assert asked.is_judged()
