"""Parts of `.ci/run`: what measures is repeated, a summary ends it, one Rust judges."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run_thrice(directory: Path, script: str) -> subprocess.CompletedProcess[str]:
    counted = f"echo x >>calls; calls=$(wc -l <calls); {script}"
    command = [str(ROOT / ".ci/thrice"), "sh", "-c", counted]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("needed", [1, 2, 3])
def test_what_measures_is_repeated_until_it_ends_well(tmp_path: Path, needed: int) -> None:
    done = run_thrice(tmp_path, f'[ "$calls" -eq {needed} ] || exit 3')
    assert done.returncode == 0
    assert len((tmp_path / "calls").read_text().split()) == needed
    reported = done.stderr.splitlines()
    assert len(reported) == needed - 1
    for attempt, line in enumerate(reported, start=1):
        assert line.startswith(f"attempt {attempt} of 3 ended with exit code 3: sh -c ")


def test_three_failures_in_a_row_are_one(tmp_path: Path) -> None:
    done = run_thrice(tmp_path, "exit 3")
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 3


@pytest.mark.parametrize("code", [1, 2, 130])
def test_only_what_could_not_measure_is_repeated(tmp_path: Path, code: int) -> None:
    done = run_thrice(tmp_path, f"exit {code}")
    assert done.returncode == code
    assert len((tmp_path / "calls").read_text().split()) == 1


def test_the_summary_says_what_ran_and_what_was_slow(tmp_path: Path) -> None:
    steps, tests = tmp_path / "steps", tmp_path / "tests"
    steps.write_text("0 lint\n70 make test\n300 end\n")
    phases = [
        {"test": f"tests/test_{number}.py::test", "seconds": number, "outcome": outcome}
        for number, outcome in ((1, ""), (1, "passed"), (2, "failed"), (3, "skipped"), (40, "passed"))
    ]
    tests.write_text("".join(f"{json.dumps(phase)}\n" for phase in phases))
    command = [sys.executable, str(ROOT / ".ci/summary.py"), str(steps), str(tests)]
    reported = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split(maxsplit=2) for line in reported[2:5]] == [
        ["70", "s", "lint"],
        ["230", "s", "make test"],
        ["300", "s", "in all"],
    ]
    slowest = [line.split() for line in reported if "::" in line]
    assert slowest[0] == ["40", "s", "tests/test_40.py::test"]
    assert ["2", "s", "tests/test_1.py::test"] in slowest
    assert reported[-1] == "2 passed, 1 failed, 1 skipped"


@pytest.mark.slow
def test_no_slow_test_begins_after_its_time_and_each_is_listed() -> None:
    file = "tests/analysis/detection/test_detector_properties.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "slow", file],
        cwd=ROOT,
        env={**os.environ, "KNICKPOINT_TESTS_UNTIL": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    reported = done.stdout.partition("LEFT OUT, for KNICKPOINT_TESTS_UNTIL had passed: ")[
        2
    ].splitlines()
    count = int(reported[0].split()[0])
    assert count > 0
    assert f"{count} skipped" in done.stdout
    assert sum(line.startswith(f"{file}::") for line in reported) == count


@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "is_judged"), [("1.95.0", True), ("1.95.1", True), ("1.88.0", False), ("1.96.0", False)]
)
def test_the_style_of_rust_is_judged_by_one_release_alone(
    tmp_path: Path, release: str, *, is_judged: bool
) -> None:
    for name, text in (("rustc", f"echo 'rustc {release} (0123456789 2026-01-01)'"), ("cargo", ":")):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "$0 $@" >&2\n{text}\n')
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    skipped = [
        part for name in ("format-check", "types", "contracts", "workflows") for part in ("-o", name)
    ]
    done = subprocess.run(
        ["make", *skipped, "lint"],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done
    assert ("clippy --release" in done.stdout) is is_judged
    assert ("LEFT OUT, for want of Rust 1.95" in done.stdout) is not is_judged


def test_ci_installs_the_release_that_judges() -> None:
    (judge,) = re.findall(r"^RUST := ([\d.]+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    assert f"rustup toolchain install {judge}." in workflow
    assert f"rustup default {judge}." in workflow
