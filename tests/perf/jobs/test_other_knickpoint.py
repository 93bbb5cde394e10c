"""A baseline that another installation measures: in turns, taken over whole, or refused."""

import io
import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from analysis.orchestration.comparing import read_results
from perf.commands.main import knickpoint
from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.jobs.interleaving import (
    OTHER_KNICKPOINT,
    ComparisonRun,
    Pairing,
    fetch_sides,
    open_plan,
    pair_methods,
    take_side,
)
from perf.jobs.measuring import Job
from perf.jobs.other_knickpoint import ask_version
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.errors import MeasureError, UsageError
from perf.model.facts import METHOD
from perf.model.results import Purpose, TrialStatus

pytestmark = pytest.mark.usefixtures("fake_ports")

ROOT = Path(__file__).parents[3]
CONFIGS = ROOT / "tests" / "data" / "configs"
LOAD = f"{METHOD}load"
PROGRAM = f"""\
#!{sys.executable}
import sys
sys.path.insert(0, {{tree!r}})
from perf.commands.main import main
sys.argv[1:] = [{{release!r}} if one == "1.0.0" else one for one in sys.argv[1:]]
main()
"""
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return `write(text)`: a program of that text, which is run; without one a Knickpoint."""

    def write(text: str = "", *, tree: Path = ROOT, release: str = "1.0.0") -> Path:
        program = tmp_path / "knickpoint-before"
        program.write_text(text or PROGRAM.format(tree=str(tree), release=release))
        program.chmod(0o755)
        return program

    return write


def begin(tmp_path: Path, program: Path) -> ComparisonRun:
    """Begin a comparison of one release, measured by both."""
    catalog = load_catalog(CONFIGS)
    suite = catalog.suite("fake-short")
    side = take_side(catalog, suite, "fake-blink", "1.0.0")
    alike = Pairing(purpose=Purpose.COMPARISON, suite=suite.name, baseline=side, candidate=side)
    pairing = pair_methods(alike, program)
    job = Job(catalog, DataPaths(tmp_path / "var"), Progress(io.StringIO()))
    artifacts = fetch_sides(job, pairing)
    plan, _ = open_plan(pairing, artifacts, job.paths, datetime.now(UTC))
    return ComparisonRun(plan=plan, pairing=pairing, artifacts=artifacts, job=job)


@pytest.mark.slow
def test_an_old_and_a_new_method_take_turns_on_one_release(tmp_path: Path, write: Write) -> None:
    tree = tmp_path / "before"
    shutil.copytree(
        ROOT / "perf", tree / "perf", ignore=shutil.ignore_patterns("__pycache__", "target")
    )
    changed = tree / "perf" / "load" / "engines.py"
    changed.write_text(f"{changed.read_text()}\n_BEFORE = 1\n")
    sides = ("--baseline", "1.0.0", "--candidate", "1.0.0", "--baseline-by", str(write(tree=tree)))
    asked = ("compare", "--suite", "fake-short", "--experiment", "fake-blink", "--trials", "4", *sides)
    paths = DataPaths(tmp_path / "var")
    done = CliRunner().invoke(
        knickpoint, [*asked, "--data", str(paths.data), "--configs", str(CONFIGS)]
    )
    (result,) = read_results(paths)
    assert [one.status for one in result.trials] == [TrialStatus.COMPLETED] * 4, done.output
    assert [one.side[0] for one in result.trials] in (list("bccb"), list("cbbc"))
    # Only what was changed differs; what was not, the system's code, does not.
    assert [one.path for one in result.method] == [LOAD]
    for one in result.trials:
        trial, _ = bundle.read(paths.trials / one.id)
        (digest,) = {fact.value for fact in trial.environment_before if fact.name == LOAD}
        expected = result.method[0].before if one.side == "baseline" else result.method[0].after
        is_other = OTHER_KNICKPOINT in {remark.kind for remark in trial.remarks}
        assert (digest, is_other) == (expected, one.side == "baseline")
        assert trial.purpose is Purpose.COMPARISON
    assert bundle.find(DataPaths(paths.comparisons / result.id / "other")) == ()


@pytest.mark.slow
def test_a_trial_that_a_kill_kept_from_being_taken_over_is_not_measured_again(
    tmp_path: Path, write: Write
) -> None:
    program = write()
    course = begin(tmp_path, program)
    home = course.job.paths.comparisons / course.plan.id / "other"
    asked = ("measure", "--suite", "fake-short", "--experiment", "fake-blink", "--release", "1.0.0")
    places = ("--data", str(home), "--configs", str(CONFIGS))
    assert CliRunner().invoke(knickpoint, [*asked, *places]).exit_code == 0
    (left,) = bundle.find(DataPaths(home))
    known, _ = bundle.read(left)
    write("#!/bin/sh\nexit 2\n")
    taken = next(one for one in course.measure_block(1) if one.side == "baseline")
    assert taken.trial.started_at == known.started_at


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("#!/bin/sh\necho something else\n", "something else"),
        ("#!/bin/sh\necho broken >&2\nexit 1\n", "broken"),
        ("#!/nowhere/python\n", "FileNotFoundError"),
    ],
)
def test_what_is_no_knickpoint_is_refused_before_anything_is_measured(
    tmp_path: Path, write: Write, text: str, why: str
) -> None:
    with pytest.raises(UsageError, match=f"no knickpoint that runs: {why}"):
        begin(tmp_path, write(text))


def test_it_gets_the_passwords_of_databases_and_no_other_secret(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = ("PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "KNICKPOINT_WEBHOOK_URL")
    for name in (*secrets, "KNICKPOINT_PASSWORD_X", "PYTHONPATH"):
        monkeypatch.setenv(name, "planted")
    given = tmp_path / "given"
    ask_version(write(f"#!/bin/sh\nenv > {given}\necho knickpoint, version 1.0\n"))
    names = {line.split("=")[0] for line in given.read_text().splitlines()}
    assert names & {*secrets, "KNICKPOINT_PASSWORD_X", "PYTHONPATH"} == {"KNICKPOINT_PASSWORD_X"}


@pytest.mark.slow
def test_a_program_that_measures_nothing_or_something_else_ends_it_and_loses_nothing(
    tmp_path: Path, write: Write
) -> None:
    course = begin(tmp_path, write())
    write("#!/bin/sh\nexit 2\n")
    with pytest.raises(MeasureError, match=r"measured no trial .* \(exit code 2\)"):
        list(course.measure_block(1))
    write(release="1.0.1")
    with pytest.raises(MeasureError, match=r"1\.0\.1 in place of 1\.0\.0"):
        list(course.measure_block(1))
    assert len(bundle.find(DataPaths(course.job.paths.comparisons / course.plan.id / "other"))) == 1
