"""Chart specifications and scales, without a browser."""

# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported
from typing import Any

from reports.pages.trial.steps import draw_steps, view_steps
from reports.site.svg import fit


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


def test_a_scale_shows_noise_small_and_steps_large() -> None:
    def heights(*values: float) -> list[float]:
        return [*map(fit(values, 21, 3), values)]

    assert heights(100.0, 101.0) == [12.9, 11.1]
    assert heights(100.0, 200.0) == [21.0, 3.0]
    assert heights(5.0) == heights(0.0) == [12.0]
    assert heights(0.0, 0.0) == [12.0, 12.0]
