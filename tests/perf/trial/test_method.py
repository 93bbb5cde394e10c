"""The method of a trial by digest: what moves it, what does not, and which part of it moves."""

from collections.abc import Callable
from pathlib import Path

import pytest

from perf.systems import registry
from perf.trial.method import read_method

FILES = {
    "load/engine/loops.py": '"""Loops."""\n\nPAUSE_S = 1.0\n"""Between two."""\n',
    "load/selftest/stand.py": "PLANTED = 1\n",
    "load/native/src/main.rs": "fn main() {}\n",
    "workloads/keys.py": "def key(n):\n    # one of them\n    return n\n",
    "model/histograms.py": "DIGITS = 3\n",
    "hosts/canary.py": "ROUNDS = 5\n",
    "trial/harness.py": "ORDER = (1, 2)\n",
    "systems/rows.py": "from perf.systems.words import WORD\n",
    "systems/words.py": "WORD = 1\n",
    "systems/other.py": "OTHER = 1\n",
    "systems/one/system.py": "from perf.systems import rows\n",
    "systems/one/jvm.options": "# the collector\n-XX:+UseG1GC\n",
    "systems/one/releases.yaml": "- 1.0\n",
    "systems/two/system.py": "X = 2\n",
}


@pytest.fixture
def change(tmp_path: Path) -> Callable[..., set[str]]:
    """Return what says which facts of a system's method move with a file's text."""
    numbers = iter(range(1000))

    def make() -> Path:
        package = tmp_path / str(next(numbers)) / "perf"
        for name, text in FILES.items():
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            (package / name).write_text(text)
        return package

    def changed(name: str, text: str, system: str = "one") -> set[str]:
        before, package = read_method(system, make()), make()
        (package / name).write_text(text)
        return {one.name for one in {*before} ^ {*read_method(system, package)}}

    return changed


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("load/engine/loops.py", "PAUSE_S = 2.0\n", "load"),
        ("load/engine/new.py", "X = 1\n", "load"),
        ("workloads/keys.py", "def key(n):\n    return -n\n", "load"),
        ("model/histograms.py", "DIGITS = 2\n", "load"),
        ("hosts/canary.py", "ROUNDS = 6\n", "deployment"),
        ("trial/harness.py", "ORDER = (2, 1)\n", "deployment"),
        ("systems/one/jvm.options", "-XX:+UseZGC\n", "one"),
        ("systems/words.py", "WORD = 2\n", "one"),
    ],
)
def test_what_can_move_a_number_moves_the_fact_of_its_part(
    change: Callable[..., set[str]], name: str, text: str, part: str
) -> None:
    assert change(name, text) == {f"method:{part}"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("load/engine/loops.py", '"""Other words."""\nPAUSE_S = 1.0  # s\n"""More."""\n'),
        ("load/selftest/stand.py", "PLANTED = 2\n"),
        ("load/native/src/main.rs", "fn main() { loop {} }\n"),
        ("workloads/keys.py", "def key(n):\n    return n\n"),
        ("systems/one/jvm.options", "-XX:+UseG1GC\n\n# why\n"),
        ("systems/one/releases.yaml", "- 1.0\n- 1.1\n"),
        ("systems/other.py", "OTHER = 2\n"),
        ("systems/two/system.py", "X = 3\n"),
    ],
)
def test_what_moves_no_number_moves_nothing(
    change: Callable[..., set[str]], name: str, text: str
) -> None:
    assert change(name, text) == set()


def test_a_shared_module_moves_only_the_systems_that_import_it(change: Callable[..., set[str]]) -> None:
    assert change("systems/words.py", "WORD = 2\n", "two") == set()


@pytest.mark.parametrize("system", registry.names())
def test_each_system_has_its_own_method(system: str) -> None:
    found = {one.name: one.value for one in read_method(system)}
    assert list(found) == ["method:load", "method:deployment", f"method:{system}"]
    assert len({*found.values()}) == 3
