"""A workload with a load generator of its own: what is refused before anything starts."""

import json
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from perf.config.checks.files import ConfigFile
from perf.config.checks.workloads import check_workload
from perf.local.document import read_document
from perf.model.design import Workload

WORKLOAD = TypeAdapter(Workload)
OWN_LATTE = Path(__file__).parents[4] / "configs/workloads/own-latte.yaml"


def problems(tmp_path: Path, old: str, new: str) -> list[str]:
    text = OWN_LATTE.read_text()
    assert old in text
    path = tmp_path / "tried.yaml"
    path.write_text(text.replace(old, new, 1))
    document = read_document(path)
    value = WORKLOAD.validate_json(json.dumps(document.tree))
    return list(check_workload(ConfigFile(document, value)))


def test_the_example_is_right(tmp_path: Path) -> None:
    assert problems(tmp_path, "name: own-latte", "name: own-latte") == []


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("engine: command", "engine: python", "program is run by `engine: command` alone"),
        ("consistency: quorum", "operation: add-customer\nconsistency: quorum", "operation is for the"),
        ('"{seconds}s"', '"3s"', "program.run does not give the program its {seconds}"),
        ('"{in_flight}"', '"16"', "program.run does not give the program its {in_flight}"),
        ('open: [--rate, "{rate}"]', "open: []", "program.open does not give the program its {rate}"),
        (
            '"{address}:{port}"',
            '"{adress}"',
            "has {adress}, which stands for nothing here; did you mean address",
        ),
        ('"{address}:{port}"', '"{rate}"', "has {rate}, which stands for nothing here"),
        ("run: [latte,", "run: [tools/latte,", "tools/latte is a path from nowhere"),
        ("warmup_cap_s: 2", "warmup_cap_s: 9", "warmup_cap_s is 9, but nobody sees"),
        ("{kind: open,", "{kind: open, arrivals: poisson,", 'load.arrivals is "poisson"'),
        (
            "{kind: closed, in_flight: 16}",
            "{kind: stepped, in_flight: 16, offered_loads_ops_per_s: [100, 200]}",
            'load.kind is "stepped", but a program is given one load',
        ),
    ],
)
def test_what_a_program_cannot_be_told_is_refused(tmp_path: Path, old: str, new: str, key: str) -> None:
    (problem,) = problems(tmp_path, old, new)
    assert key in problem


def test_the_engine_needs_its_program(tmp_path: Path) -> None:
    text = OWN_LATTE.read_text()
    begin, end = text.index("program:"), text.index("consistency:")
    (first, *_) = problems(tmp_path, text[begin:end], "")
    assert 'engine is "command", but there is no program' in first


def test_braces_that_are_text_are_no_placeholder(tmp_path: Path) -> None:
    assert problems(tmp_path, "customers.rn, ", 'customers.rn, "{{print}}", ') == []
