"""Chart specifications and sparklines, without a browser."""

# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported
import json
from dataclasses import replace
from typing import Any

import pytest
from made_up_judgement import SETTINGS

from analysis.verdict import Outcome
from perf.model import Trial, TrialId
from reports.charts import draw_series, to_script
from reports.sparklines import draw_sparkline
from reports.step_chart import draw_steps
from reports.view.series import SeriesView, view_series
from reports.view.steps import view_steps


@pytest.fixture(scope="module")
def by_id(demo: Any) -> dict[TrialId, Trial]:
    """Give the trials of the made-up history by id."""
    return {trial.id: trial for trial in demo.trials}


@pytest.fixture(scope="module")
def view(demo: Any, by_id: dict[TrialId, Trial]) -> SeriesView:
    """Give a series with a change."""
    changed = next(judged for judged in demo.judgement.series if judged.change_points)
    return view_series(changed, by_id, settings=SETTINGS, caveats={})


def draw(view: SeriesView) -> Any:
    return json.loads(json.dumps(draw_series(view, "../")))


def test_each_point_is_drawn_once_and_leads_to_its_trial(view: SeriesView) -> None:
    rows = draw(view)["layer"][-1]["data"]["values"]
    assert [row["value"] for row in rows] == [point.value for point in view.points]
    assert rows[0]["page"] == f"../{view.points[0].page}"


def test_every_axis_names_every_release_in_the_middle_of_its_nights(view: SeriesView) -> None:
    axis = draw(view)["layer"][-1]["encoding"]["x"]["axis"]
    assert axis["values"] == [4.5, 12.5, 20.5]
    assert axis["labelExpr"] == '{"4.5": "5.0.1", "12.5": "5.0.2", "20.5": "5.0.3"}[datum.value]'


def test_a_change_stands_between_its_points_with_a_word_and_a_symbol(view: SeriesView) -> None:
    place, rule, label = (one for one in draw(view)["layer"] if "-bad" in one["mark"]["style"])
    assert place["data"]["values"] == [{"from": 15.5, "to": 17.5}]
    assert rule["data"]["values"][0]["at"] == 16.5
    assert rule["mark"]["tooltip"].startswith("Regressed ")
    assert label["data"]["values"][0]["label"].startswith("✕ ")


def test_no_level_is_drawn_through_points_that_nobody_could_judge(
    demo: Any, by_id: dict[TrialId, Trial]
) -> None:
    calm = next(
        judged
        for judged in demo.judgement.series
        if not (judged.change_points or judged.drifts) and judged.verdict.outcome is Outcome.UNCHANGED
    )
    assert view_series(calm, by_id, settings=SETTINGS, caveats={}).segments
    undecided = replace(calm, verdict=replace(calm.verdict, outcome=Outcome.UNDECIDED))
    assert view_series(undecided, by_id, settings=SETTINGS, caveats={}).segments == ()


def test_release_names_stay_data_in_expressions_and_scripts(view: SeriesView) -> None:
    hostile = '"]; alert(1); </script>\N{LINE SEPARATOR}'
    bands = (replace(view.bands[0], name=hostile), *view.bands[1:])
    spec = draw_series(replace(view, bands=bands), "../")
    expression = draw(replace(view, bands=bands))["layer"][-1]["encoding"]["x"]["axis"]["labelExpr"]
    assert json.loads(expression.removesuffix("[datum.value]"))["4.5"] == hostile
    assert to_script(spec).isascii()


def test_each_load_step_is_drawn_by_the_symbol_of_its_outcome(demo: Any) -> None:
    trial = next(trial for trial in demo.trials if trial.steps)
    spec: Any = draw_steps(view_steps(trial.steps, trial.samples))
    drawn = [(row["offered"], row["p99"], row["outcome"]) for row in spec["data"]["values"]]
    assert drawn[3:5] == [(4000.0, 874.0, "Client-limited"), (2000.0, 9.9, "Held")]
    assert len(drawn) == len(trial.steps) - 1  # at one of them nothing completed
    assert [layer["mark"]["text"] for layer in spec["layer"]] == ["✓", "✕", "?"]
    assert spec["encoding"]["y"]["scale"]["type"] == "log"
    calm: Any = draw_steps(view_steps(trial.steps[:3], trial.samples))
    assert calm["encoding"]["y"]["scale"] == {"padding": 14, "zero": False}


def heights(values: list[float]) -> list[float]:
    return [float(part.partition(",")[2]) for part in draw_sparkline(values, "").path.split()]


def test_a_sparkline_shows_noise_small_and_steps_large() -> None:
    assert heights([100.0, 101.0]) == [12.9, 11.1]
    assert heights([100.0, 200.0]) == [21.0, 3.0]
    assert heights([5.0]) == heights([0.0]) == [12.0]
    assert heights([0.0, 0.0]) == [12.0, 12.0]
