"""The detectors that are compared, each as (values) → [(index, is it confirmed?)]."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

from otava.analysis import compute_change_points
from pydantic import TypeAdapter
from ruamel.yaml import YAML

from analysis.detection.detection import Detector
from analysis.detection.step_detector import StepDetector
from perf.model.rules import Detection

SETTINGS = Path(__file__).parents[3] / "configs/detection.yaml"

Find = Callable[[list[float]], list[tuple[int, bool]]]


@cache
def shipped() -> Detector:
    """Return our detector with the settings that are shipped."""
    document = YAML(typ="safe").load(SETTINGS.read_text(encoding="utf-8"))
    return StepDetector(settings=TypeAdapter(Detection).validate_json(json.dumps(document)))


def ours(values: list[float]) -> list[tuple[int, bool]]:
    """Ask the shipped detector as a judgement does: a value is a night, and the week is taken out."""
    found = shipped().read(values, range(len(values)))
    return [(shift.index, shift.is_confirmed) for shift in found.shifts]


def otava(values: list[float]) -> list[tuple[int, bool]]:
    """Ask Otava as it comes, with a list; it knows no states, so all it says is said for good."""
    return [(int(found.index), True) for found in compute_change_points(values)[0]]


def otava5(values: list[float]) -> list[tuple[int, bool]]:
    """Ask Otava at p = 1e-5, as it comes otherwise."""
    return [(int(found.index), True) for found in compute_change_points(values, max_pvalue=1e-5)[0]]


DETECTORS: dict[str, Find] = {"ours": ours, "otava": otava, "otava5": otava5}
TITLES = {"ours": "Knickpoint", "otava": "Otava, default", "otava5": "Otava, p = 1e-5"}
