"""What the native engine's schedules are compared with is what the Python engine plans."""

import json

import pytest
from schedule_vectors import PATH, make_vectors


def test_the_vectors_of_schedules_are_those_of_the_python_engine() -> None:
    kept, made = json.loads(PATH.read_text())["cases"], make_vectors()["cases"]
    for one, other in zip(kept, made, strict=True):
        # numpy takes its logarithms from the machine: the last digits may be others elsewhere.
        assert one.pop("starts") == pytest.approx(other.pop("starts"), abs=1e-9, rel=0)
        assert one == other
