"""The command `matrix`: what it says, skips, resumes and leaves; the last test runs the fake system."""

import io
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from perf.commands.matrix import matrix, read_grid
from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.history.store import open_history
from perf.jobs import matrix as matrix_job
from perf.jobs import measuring
from perf.jobs.matrix import open_backfill
from perf.jobs.measuring import Job
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.errors import KnickpointError, ReleaseError, UsageError
from perf.model.identity import named
from perf.model.results import Artifact, Purpose, Reason, Release, Source, Trial, TrialStatus
from perf.releases import artifacts as releases
from perf.systems.contract import System
from perf.trial.harness import Order

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
ORDER_OF_1_0 = ["1.0.2", "1.0.0", "1.0.1"]


def run(data: Path, *arguments: str, suite: str = "fake-night") -> Result:
    given = ["--suite", suite, "--data", str(data), "--configs", str(CONFIGS), *arguments]
    return CliRunner().invoke(matrix, given, prog_name="knickpoint matrix")


def refused(data: Path, *arguments: str) -> str:
    result = run(data, *arguments)
    assert isinstance(result.exception, KnickpointError)
    assert result.exception.exit_code == 2
    return str(result.exception)


@dataclass
class Stage:
    """What is played instead of trials: each is sealed at once, and some end otherwise."""

    make_trial: Callable[..., Trial]
    ordered: list[tuple[str, str]] = field(default_factory=list)
    ends: dict[str, list[TrialStatus]] = field(default_factory=dict)
    """By version: how the next trials of it end; after these they complete."""
    killed_at: int = 0
    """Interrupts the trial of this number."""

    def run(self, order: Order, _: System, paths: DataPaths, __: Progress) -> Trial:
        experiment, version = order.deployment.experiment.name, order.release.version
        self.ordered.append((experiment, version))
        if len(self.ordered) == self.killed_at:
            raise KeyboardInterrupt
        status = next(iter(self.ends.get(version, [])), TrialStatus.COMPLETED)
        self.ends[version] = self.ends.get(version, [])[1:]
        trial = self.make_trial(
            id=order.trial,
            night=order.night,
            purpose=order.purpose,
            experiment=experiment,
            release=order.release,
            topology=named(order.deployment.topology),
            testbed=named(order.deployment.testbed),
            workload=named(order.deployment.workload),
            config=named(order.deployment.config),
            status=status,
            reasons=() if status is TrialStatus.COMPLETED else (Reason(kind="x", text="it died"),),
        )
        bundle.seal(bundle.stage(paths, trial.id), trial, ())
        return trial

    def versions(self) -> list[str]:
        return [version for _, version in self.ordered]


@pytest.fixture
def stage(make_trial: Callable[..., Trial], monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = Stage(make_trial)
    monkeypatch.setattr(measuring, "run_trial", stage.run)
    return stage


def test_each_cell_is_measured_once_in_order_and_appended(stage: Stage, tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.exit_code == 0, result.output
    assert stage.ordered == [
        (experiment, version) for version in ORDER_OF_1_0 for experiment in ("fake-write", "fake-read")
    ]
    assert "6 cells, 0 known; 6 trials to measure, about " in result.stdout
    assert "cell 3 of 6: fake-write at 1.0.0" in result.stderr
    assert "fake-read at 1.0.1: completed" in result.stdout
    with open_history(DataPaths(tmp_path).history, read_only=True) as history:
        trials = history.trials()
    assert {(trial.purpose, trial.night) for trial in trials} == {(Purpose.SCHEDULED, "")}
    assert len(trials) == 6
    again = run(tmp_path)
    assert "6 cells, all known: nothing is left to measure" in again.stdout
    assert (again.exit_code, len(stage.ordered)) == (0, 6)


def test_what_was_killed_goes_on_with_the_trial_that_was_running(stage: Stage, tmp_path: Path) -> None:
    stage.killed_at = 3
    assert run(tmp_path, "--experiment", "fake-write").exit_code != 0
    second = run(tmp_path, "--experiment", "fake-write")
    assert "3 cells, 2 known; 1 trial to measure" in second.stdout
    assert stage.versions() == [*ORDER_OF_1_0, ORDER_OF_1_0[-1]]
    assert len(bundle.find(DataPaths(tmp_path))) == 3


def test_a_dry_run_shows_marks_and_measures_nothing(stage: Stage, tmp_path: Path) -> None:
    run(tmp_path, "--experiment", "fake-write", "--release", "1.0.0", "--release", "1.1")
    stage.ends["1.0.1"] = [TrialStatus.FAILED] * 2
    run(tmp_path, "--experiment", "fake-read", "--release", "1.0.1")
    done = len(stage.ordered)
    result = run(tmp_path, "--dry-run", "--repeat", "2", "--release", "1.0.0..1.0.1")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[2:5] == [
        "release     fake-write   fake-read",
        "fake 1.0.0  known 1, #4  #2, #5",
        "fake 1.0.1  #1, #3       failed before, #6, #7",
    ]
    assert "4 cells, 0 known" in result.stdout  # one trial of two is not enough
    assert "known n: n completed trials count" in result.stdout
    assert len(stage.ordered) == done


def test_what_fails_has_one_more_attempt_at_the_end_and_is_reported(
    stage: Stage, tmp_path: Path
) -> None:
    stage.ends = {"1.0.2": [TrialStatus.FAILED], "1.0.0": [TrialStatus.INVALID, TrialStatus.FAILED]}
    result = run(tmp_path, "--experiment", "fake-write")
    assert stage.versions() == ["1.0.2", "1.0.1", "1.0.0", "1.0.0", "1.0.2"]
    assert result.exit_code == 3
    assert "fake-write at 1.0.0 is not measured: it died" in result.stderr
    assert "1.0.2 is not measured" not in result.stderr


@pytest.mark.parametrize("why", ["a local copy is no point", "no origin has it"])
def test_a_release_that_is_out_of_reach_or_a_copy_is_skipped(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    def fetch(_: System, release: Release, **__: object) -> Artifact:
        if release.version != "1.0.2":
            return Artifact(source=Source.BUILTIN, sha256="")
        if why == "no origin has it":
            raise ReleaseError(why)
        return Artifact(source=Source.PATH, sha256="ab")

    monkeypatch.setattr(releases, "fetch", fetch)
    result = run(tmp_path)
    assert set(stage.versions()) == {"1.0.0", "1.0.1"}
    assert len(stage.ordered) == 4
    assert result.exit_code == 3
    for experiment in ("fake-write", "fake-read"):
        assert f"{experiment} at 1.0.2 is not measured: {why}" in result.stderr
    assert result.stderr.count("skipped: ") == 1


def test_time_ends_it_with_what_is_left_and_how_to_go_on(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(measuring, "Progress", lambda: Progress(io.StringIO(), clock=lambda: now[0]))
    monkeypatch.setattr(matrix_job, "planned_s", lambda _: 100.0)
    played = stage.run

    def slow(*given: object) -> Trial:
        now[0] += 180.0  # as long as the trials of the fixture say that they took
        return played(*given)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(measuring, "run_trial", slow)
    result = run(tmp_path, "--minutes", "8.0004567", "--release", "1.0")
    assert len(stage.ordered) == 2  # 360 of 480 s are over, and the next was expected to take 180
    assert result.exit_code == 0
    assert "4 trials left, about 12 min 00 s; go on with:" in result.stdout
    assert (
        f"knickpoint matrix --suite fake-night --release 1.0 --minutes 8.0004567 --data {tmp_path} "
        f"--configs {CONFIGS}"
    ) in result.stdout


def test_too_little_time_for_any_trial_is_a_mistake(stage: Stage, tmp_path: Path) -> None:
    assert "no trial fits into 0.1 minutes: fake-write takes about" in refused(
        tmp_path, "--minutes", "0.1"
    )
    assert stage.ordered == []


@pytest.mark.usefixtures("stage")
def test_a_changed_config_is_measured_anew(tmp_path: Path) -> None:
    run(tmp_path, "--experiment", "fake-write")
    catalog = load_catalog(CONFIGS)
    changed = replace(catalog.systems["fake"]["default"], settings={"service_time_ms": 3})
    catalog = replace(catalog, systems={"fake": {"default": changed}})
    job = Job(catalog, DataPaths(tmp_path), Progress(io.StringIO()))
    grid = read_grid(catalog, catalog.suite("fake-night"), ["fake-write"], [], 1)
    assert "3 cells, 0 known" in open_backfill(job, grid).announce()


@pytest.mark.usefixtures("stage")
def test_a_damaged_bundle_is_reported_and_not_counted(tmp_path: Path) -> None:
    run(tmp_path, "--experiment", "fake-write")
    damaged = bundle.find(DataPaths(tmp_path))[0]
    (damaged / "trial.json").write_text("{")
    result = run(tmp_path, "--experiment", "fake-write", "--dry-run")
    assert f"not counted: {damaged}" in result.stderr
    assert "3 cells, 2 known" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--experiment", "fake-wrte"], "is none of its experiments; did you mean fake-write"),
        (["--release", "1.0.99"], "no release or line '1.0.99'; did you mean 1.0."),
        (["--release", "77"], "no release or line '77'; known: see knickpoint releases fake"),
        (["--suite", "fake-nite"], "did you mean fake-night"),
    ],
)
def test_what_does_not_exist_is_reported_with_a_suggestion(
    stage: Stage, tmp_path: Path, arguments: list[str], said: str
) -> None:
    assert said in refused(tmp_path, *arguments)
    assert stage.ordered == []


def test_sentinels_are_no_part_of_a_matrix() -> None:
    catalog = load_catalog(CONFIGS)
    suite = catalog.suite("fake-night")
    write, read = suite.experiments
    watch = replace(read, releases=("1.0.0",), sentinel_every_nights=4)
    suite = replace(suite, experiments=(write, watch))
    assert [row.experiment for row in read_grid(catalog, suite, [], [], 1).rows] == ["fake-write"]
    with pytest.raises(UsageError, match="'fake-read' is a sentinel: it watches the testbed"):
        read_grid(catalog, suite, ["fake-read"], [], 1)


@pytest.mark.slow
@pytest.mark.usefixtures("fake_ports")
def test_a_real_trial_of_the_fake_system_fills_a_cell(tmp_path: Path) -> None:
    result = run(tmp_path, "--release", "1.0.1", suite="fake-short")
    assert result.exit_code == 0, result.output
    (place,) = bundle.find(DataPaths(tmp_path))
    assert bundle.read(place)[0].release.version == "1.0.1"
    again = run(tmp_path, "--release", "1.0", "--dry-run", suite="fake-short")
    assert "3 cells, 1 known; 2 trials to measure" in again.stdout
