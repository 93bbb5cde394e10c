"""The command of pull requests on a real git repository; trials are made up but for one run."""

import hashlib
import io
import re
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from git_repository import GitRepository
from made_up_profiles import PROFILED
from pydantic import TypeAdapter

from analysis.comparing.profiles import ProfileComparison, write_profile_comparison
from analysis.comparing.results import ComparisonFile, ExperimentChange, Revision, read_comparisons
from analysis.detection.verdict import Outcome
from analysis.orchestration import candidate as candidate_run
from analysis.orchestration.comparing import read_results
from analysis.orchestration.explaining import PROFILES_FILE
from perf.history import bundle
from perf.history.store import open_history
from perf.jobs import measuring
from perf.jobs.interleaving import Pairing
from perf.jobs.measuring import Job
from perf.local import durable
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.design import Testbed
from perf.model.errors import ConfigError, HostUnfit, MeasureError, UsageError
from perf.model.results import SIDES, Purpose, Release, Sample, Source, Trial
from perf.model.sources import Build
from perf.releases.asking import Found
from perf.systems.contract import System
from perf.trial.harness import Order
from reports.commands.candidate import COMMENT, COMPARISON, candidate

FAKE = "systems/fake/default.yaml"
SCATTER = (0.0, 0.004, -0.003, 0.002, -0.005, 0.001)
Ask = Callable[..., Result]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepository:
    repository = GitRepository(tmp_path / "work")
    repository.branch("topic")
    monkeypatch.chdir(repository.root)
    return repository


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    def ask(*options: str) -> Result:
        arguments = ("--base", "main", "--head", "topic", "--testbed", "loop", *options)
        return CliRunner().invoke(candidate, [*arguments, "--data", str(tmp_path / "var")])

    return ask


@pytest.fixture
def read(tmp_path: Path) -> Callable[[], ComparisonFile]:
    def read() -> ComparisonFile:
        path = tmp_path / "var/candidate" / COMPARISON
        return read_comparisons(path.read_bytes(), path)

    return read


class Measurer:
    """Makes trials up: throughput follows the planted service time, and `cache: off` halves it."""

    def __init__(self, make_trial: Callable[..., Trial]) -> None:
        self.make_trial = make_trial
        self.orders: list[Order] = []
        self.interrupt_at = 0
        self.unfit = ""
        self.slow = ""

    def __call__(self, order: Order, _: System, paths: DataPaths, __: Progress) -> Trial:
        self.orders.append(order)
        if len(self.orders) == self.interrupt_at:
            raise KeyboardInterrupt
        if order.deployment.experiment.name == self.unfit:
            raise HostUnfit("port 7000 is taken")
        settings = order.deployment.config.settings
        level = 1000 / float(str(settings["service_time_ms"]))
        level /= 2 if settings.get("cache") == "off" else 1
        level /= 2 if order.release.version == self.slow else 1
        level *= 1 + SCATTER[len(self.orders) % len(SCATTER)]
        operation = order.deployment.workload.operation.value
        samples = tuple(
            Sample(phase=phase, operation=operation, metric=metric, statistic=statistic, value=value)
            for phase, metric, statistic, value in (
                ("saturation", "throughput", "mean", level),
                ("steady", "response_time", "p99", 1 / level),
            )
        )
        trial = self.make_trial(
            id=order.trial,
            purpose=order.purpose,
            experiment=order.deployment.experiment.name,
            release=order.release,
            samples=samples,
        )
        now = datetime.now(UTC)
        trial = replace(trial, started_at=now - timedelta(minutes=3), finished_at=now)
        bundle.seal(bundle.stage(paths, trial.id), trial, ())
        return trial


@pytest.fixture(name="measurer")
def make_measurer(make_trial: Callable[..., Trial], monkeypatch: pytest.MonkeyPatch) -> Measurer:
    measurer = Measurer(make_trial)
    monkeypatch.setattr(measuring, "run_trial", measurer)
    return measurer


def test_nothing_differs_and_the_files_say_so(
    repository: GitRepository, ask: Ask, read: Callable[[], ComparisonFile], tmp_path: Path
) -> None:
    repository.edit(FAKE, "settings:", "# why\nsettings:")
    repository.commit("a comment")
    done = ask()
    assert done.exit_code == 0, done.output
    assert "Nothing to measure: 3 experiments looked at" in done.output
    assert (read().outcome, read().changes, read().comparisons) == (Outcome.UNCHANGED, (), ())
    assert "nothing was measured" in (tmp_path / "var/candidate" / COMMENT).read_text()


def test_a_dry_run_says_what_and_how_long_and_writes_nothing(
    repository: GitRepository, ask: Ask, tmp_path: Path
) -> None:
    repository.edit(FAKE, "_ms: 1", "_ms: 2")
    repository.edit("workloads/blink.yaml", "devices: 20", "devices: 21")
    repository.commit("slower")
    done = ask("--dry-run", "--trials", "20")
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert "3 of 3 experiments differ." in lines
    # 20 trials, each 45 s to deploy, 0.3 s to load 120 rows, and 2 × 2 × 0.9 s.
    assert any("at most 20 trials, about 16 min" in line for line in lines)
    assert "  fake-read (suite fake-night) at 1.0.1, about 49 s a trial" in lines
    assert lines.count("      systems/fake/default: settings.service_time_ms  1 → 2") == 2
    assert any("not measured: fake-blink (suite fake-short): it measures" in line for line in lines)
    assert not (tmp_path / "var").exists()


def test_a_regression_is_reported_with_its_knob_and_exit_code_1(
    repository: GitRepository,
    ask: Ask,
    measurer: Measurer,
    read: Callable[[], ComparisonFile],
    tmp_path: Path,
) -> None:
    repository.edit(FAKE, "_ms: 1", "_ms: 2")
    head = repository.commit("slower")
    done = ask("--suite", "fake-short")
    assert done.exit_code == 1, done.output
    content = read()
    (result,) = content.comparisons
    assert (result.outcome, result.purpose) == (Outcome.REGRESSED, Purpose.CANDIDATE)
    assert (result.suite, result.experiment) == ("fake-short", "fake-blink")
    assert (result.baseline.version, result.candidate.version) == ("1.0.1", "1.0.1")
    assert result.candidate.label == f"head {head[:8]}"
    assert result.measures[0].effect is not None
    assert result.measures[0].effect.low < -0.49 < result.measures[0].effect.high + 0.02
    base = repository.git("rev-parse", "main")
    assert content.base is not None
    assert (content.base.ref, content.base.sha) == ("main", base)
    assert result.command == (
        f"knickpoint candidate --base {base} --head {head} --suite fake-short --testbed loop"
    )
    assert any(line.startswith("regressed   fake-blink") for line in done.output.splitlines())
    assert "Verdict: Regressed, action needed: " in done.output
    comment = (tmp_path / "var/candidate" / COMMENT).read_text()
    assert "service" in comment.splitlines()[2]
    assert {order.purpose for order in measurer.orders} == {Purpose.CANDIDATE}
    with open_history(tmp_path / "var/history.duckdb", read_only=True) as history:
        assert len(history.trials()) == len(measurer.orders) == len(result.trials)


def explains_within(minutes: int, repository: GitRepository) -> None:
    """Let the suite explain at base, as a pull request finds it."""
    repository.git("checkout", "--quiet", "main")
    repository.edit(
        "suites/fake-short.yaml", "testbed: loop", f"testbed: loop\nexplain_minutes: {minutes}"
    )
    repository.commit("explain")
    repository.git("checkout", "--quiet", "topic")
    repository.git("merge", "--quiet", "main")
    repository.edit(FAKE, "_ms: 1", "_ms: 2")
    repository.commit("slower")


@pytest.mark.usefixtures("measurer")
def test_the_code_that_became_slower_is_named_in_the_comment_and_found_once(
    repository: GitRepository,
    ask: Ask,
    read: Callable[[], ComparisonFile],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explains_within(60, repository)
    asked: list[Pairing] = []

    def explain(job: Job, pairing: Pairing) -> ProfileComparison:
        (result,) = read_results(job.paths)
        asked.append(pairing)
        found = replace(
            PROFILED, experiment=result.experiment, baseline=result.baseline, candidate=result.candidate
        )
        kept = job.paths.comparisons / found.id / PROFILES_FILE
        durable.atomic_write(kept, write_profile_comparison(found))
        return found

    monkeypatch.setattr(candidate_run, "explain", explain)
    for _ in range(2):
        assert ask("--suite", "fake-short").exit_code == 1
        (result,) = read().comparisons
        (found,) = result.code
        assert (found.method, found.phase, found.kind) == ("CommitLog.sync", "steady", "cpu")
        assert found.after - found.before == pytest.approx(40)
        comment = (tmp_path / "var/candidate" / COMMENT).read_text()
        assert "per operation in CommitLog.sync" in comment
    (pairing,) = asked
    assert [pairing.side(side).deployment.config.settings["service_time_ms"] for side in SIDES] == [
        1,
        2,
    ]


@pytest.mark.usefixtures("measurer")
def test_what_the_budget_does_not_allow_is_said_not_profiled(
    repository: GitRepository, ask: Ask, read: Callable[[], ComparisonFile]
) -> None:
    explains_within(60, repository)
    assert ask("--suite", "fake-short", "--trials", "8").exit_code == 1
    ((result,), (note,)) = read().comparisons, read().notes
    assert result.code == ()
    assert note.startswith("not profiled: fake-blink")


def test_a_testbed_that_another_job_holds_is_a_problem_of_the_result(
    repository: GitRepository,
    ask: Ask,
    read: Callable[[], ComparisonFile],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: object, __: object, testbeds: Iterable[Testbed], purpose: str) -> None:
        assert {testbed.name for testbed in testbeds} == {"loop"}
        raise MeasureError(f"db-1 is held by anna@ci-1; {purpose}")

    repository.edit(FAKE, "_ms: 1", "_ms: 2")
    head = repository.commit("slower")
    monkeypatch.setattr(candidate_run, "hold", refuse)
    assert ask("--suite", "fake-short").exit_code == 3
    (problem,) = read().problems
    assert problem == f"nothing could be measured: db-1 is held by anna@ci-1; candidate {head[:8]}"


def test_the_same_content_in_several_suites_is_measured_once(
    repository: GitRepository, ask: Ask, measurer: Measurer, read: Callable[[], ComparisonFile]
) -> None:
    night = repository.root / "configs/suites/fake-night.yaml"
    again = night.read_text().replace("name: fake-night", "name: again").replace("e-write,", "e-twice,")
    night.with_name("again.yaml").write_text(again)
    repository.git("checkout", "--quiet", "main")
    repository.commit("another suite")
    repository.git("branch", "--force", "topic")
    repository.git("checkout", "--quiet", "topic")
    repository.edit(FAKE, "_ms: 1", "_ms: 1.01")
    repository.commit("slower")
    done = ask("--trials", "12", "--suite", "again", "--suite", "fake-night")
    assert done.exit_code == 0, done.output
    assert "measured once for all that are the same: fake-write of suite fake-night" in done.output
    assert [one.experiment for one in read().comparisons] == ["fake-twice", "fake-read"]
    assert len(read().changes) == 4
    assert len(measurer.orders) == 12


@pytest.mark.slow
def test_each_of_several_knobs_is_left_out(
    repository: GitRepository, ask: Ask, measurer: Measurer, read: Callable[[], ComparisonFile]
) -> None:
    repository.edit(FAKE, "_ms: 1", "_ms: 1.001, cache: off, colour: red")
    repository.commit("three at once")
    assert ask("--suite", "fake-short", "--attribute", "--trials", "40").exit_code == 1
    found = {one.knob.path.rpartition(".")[2]: one for one in read().attributions}
    assert found["cache"].comparison.outcome is Outcome.REGRESSED
    assert found["cache"].knob.after == '"off"'
    assert found["cache"].comparison.baseline.label.endswith(
        "without systems/fake/default: settings.cache"
    )
    assert found["colour"].comparison.outcome is not Outcome.REGRESSED
    assert set(found) == {"cache", "colour", "service_time_ms"}
    compared = {
        (order.deployment.config.settings.get("cache"), order.deployment.config.settings.get("colour"))
        for order in measurer.orders
    }
    assert compared == {(None, None), ("off", "red"), (None, "red"), ("off", None)}


@pytest.mark.usefixtures("measurer")
def test_what_the_budget_does_not_allow_is_said_not_attributed(
    repository: GitRepository, ask: Ask, read: Callable[[], ComparisonFile]
) -> None:
    repository.edit(FAKE, "_ms: 1", "_ms: 2, cache: off")
    repository.commit("two at once")
    assert ask("--suite", "fake-short", "--attribute", "--trials", "8").exit_code == 1
    assert read().attributions == ()
    assert [note.partition(" of ")[0] for note in read().notes] == [
        "not attributed: systems/fake/default: settings.cache",
        "not attributed: systems/fake/default: settings.service_time_ms",
    ]


@pytest.mark.slow
def test_an_error_of_ours_is_loud_and_stops_nothing_else(
    repository: GitRepository, ask: Ask, measurer: Measurer, read: Callable[[], ComparisonFile]
) -> None:
    repository.edit(FAKE, "_ms: 1", "_ms: 1.01")
    repository.commit("slower")
    measurer.unfit = "fake-write"
    done = ask("--suite", "fake-night", "--trials", "8")
    assert done.exit_code == 3
    assert [one.experiment for one in read().comparisons] == ["fake-read"]
    (problem,) = read().problems
    assert problem.startswith("fake-write of suite fake-night at 1.0.1 could not be measured: port")
    # Mended, the same command measures what is missing and repeats nothing.
    measurer.unfit, before = "", len(measurer.orders)
    assert ask("--suite", "fake-night", "--trials", "8").exit_code == 0
    assert {order.deployment.experiment.name for order in measurer.orders[before:]} == {"fake-write"}
    assert len(read().comparisons) == 2
    assert read().problems == ()
    # What was reported is measured anew when somebody asks again.
    before = len(measurer.orders)
    assert ask("--suite", "fake-night", "--trials", "8").exit_code == 0
    assert len(measurer.orders) == before + 8


def test_testbed_and_rules_are_those_of_base_today_not_of_the_commit_that_the_author_chose(
    repository: GitRepository, ask: Ask, measurer: Measurer, read: Callable[[], ComparisonFile]
) -> None:
    repository.edit(FAKE, "_ms: 1", "_ms: 2")
    repository.commit("slower")
    repository.git("checkout", "--quiet", "main")
    repository.edit("testbeds/loop.yaml", "limits: {start_s: 10", "limits: {start_s: 9")
    tip = repository.commit("stricter")
    repository.git("checkout", "--quiet", "topic")
    done = ask("--suite", "fake-short")
    assert done.exit_code == 1, done.output
    assert {one.deployment.testbed.limits.start_s for one in measurer.orders} == {9}
    (result,) = read().comparisons
    assert f"--base {tip} " in result.command
    assert any("testbeds and rules: they are those of today" in one for one in read().notes)


@pytest.mark.slow
def test_another_budget_or_other_rules_take_no_answer_over(
    repository: GitRepository, ask: Ask, measurer: Measurer, read: Callable[[], ComparisonFile]
) -> None:
    repository.edit(FAKE, "_ms: 1", "_ms: 1.01")
    repository.commit("slower")
    measurer.unfit = "fake-write"
    assert ask("--suite", "fake-night", "--trials", "8").exit_code == 3
    (first,) = read().comparisons
    measurer.unfit = ""
    assert ask("--suite", "fake-night", "--trials", "16").exit_code == 0
    again = {one.experiment: one for one in read().comparisons}
    assert len(again) == 2
    assert again["fake-read"].id != first.id


@pytest.mark.usefixtures("measurer")
def test_what_the_minutes_have_no_room_for_is_undecided_and_no_error_of_ours(
    repository: GitRepository, ask: Ask, read: Callable[[], ComparisonFile], tmp_path: Path
) -> None:
    repository.edit(FAKE, "_ms: 1", "_ms: 1.01")
    repository.commit("slower")
    # A block takes four times three minutes: the first experiment overdraws all that there is.
    done = ask("--suite", "fake-night", "--minutes", "1")
    assert done.exit_code == 0, done.output
    assert read().problems == ()
    assert [one.experiment for one in read().comparisons] == ["fake-write"]
    assert [(one.experiment, one.text) for one in read().changes if one.text] == [
        ("fake-read", "not measured: no minutes were left of the budget")
    ]
    assert read().outcome is Outcome.UNDECIDED
    assert "Changed, but not compared" in (tmp_path / "var/candidate" / COMMENT).read_text()


def test_a_head_that_base_holds_already_is_a_mistake_and_no_success(
    repository: GitRepository, ask: Ask
) -> None:
    repository.git("checkout", "--quiet", "main")
    repository.edit(FAKE, "_ms: 1", "_ms: 2")
    repository.commit("main went on")
    refused = ask().exception
    assert isinstance(refused, UsageError)
    assert "topic is contained in main: there is nothing new to measure" in str(refused)


@pytest.mark.usefixtures("measurer")
def test_the_comment_links_the_page_of_each_comparison(
    repository: GitRepository, ask: Ask, read: Callable[[], ComparisonFile], tmp_path: Path
) -> None:
    repository.edit(FAKE, "_ms: 1", "_ms: 1.01")
    repository.commit("slower")
    site = "https://perf.example/site"
    assert ask("--suite", "fake-short", "--trials", "4", "--site-url", site).exit_code == 0
    (result,) = read().comparisons
    text = (tmp_path / "var/candidate" / COMMENT).read_text()
    assert f"({site}/comparison/{result.id}.html)" in text
    assert "--site-url" not in result.command
    assert ask("--site-url", "javascript:x").exit_code == 2


@pytest.mark.slow
@pytest.mark.usefixtures("measurer")
def test_a_knob_that_cannot_be_measured_alone_takes_nothing_back(
    repository: GitRepository,
    ask: Ask,
    read: Callable[[], ComparisonFile],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repository.edit(FAKE, "_ms: 1", "_ms: 2, cache: off")
    repository.commit("two at once")

    def fail(*_: object) -> None:
        raise HostUnfit("port 7000 is taken")

    monkeypatch.setattr(candidate_run, "_leave_out", fail)
    assert ask("--suite", "fake-short", "--attribute", "--trials", "40").exit_code == 1
    assert (read().outcome, read().problems) == (Outcome.REGRESSED, ())
    assert len(read().notes) == 2
    assert all(one.startswith("not attributed: ") and "port 7000" in one for one in read().notes)


def test_an_interrupted_candidate_goes_on_from_there(
    repository: GitRepository, ask: Ask, measurer: Measurer, read: Callable[[], ComparisonFile]
) -> None:
    repository.edit(FAKE, "_ms: 1", "_ms: 1.01")
    repository.commit("slower")
    measurer.interrupt_at = 7
    stopped = ask("--suite", "fake-night", "--trials", "8")
    assert stopped.exception is not None
    assert read().outcome is Outcome.INVALID
    assert read().problems[0].startswith("1 of 2 experiments are not measured yet")
    assert [one.experiment for one in read().comparisons] == ["fake-write"]
    assert ask("--suite", "fake-night", "--trials", "8").exit_code == 0
    assert len({order.trial for order in measurer.orders}) == 8
    assert read().problems == ()


def test_a_wrong_configuration_or_wish_is_refused_before_anything_is_measured(
    repository: GitRepository, ask: Ask, measurer: Measurer
) -> None:
    repository.edit(FAKE, "_ms: 1", "_ms: 2")
    repository.commit("slower")
    for options, message in (
        (("--trials", "8"), "3 experiments need 4 each, which makes 12"),
        (("--release", "9.9.9"), "fake has no release '9.9.9'"),
        (("--suite", "nightly"), "there is no suite 'nightly'"),
        (("--head", "nowhere"), "there is no revision 'nowhere'"),
    ):
        refused = ask(*options).exception
        assert isinstance(refused, UsageError)
        assert message in str(refused)
    repository.edit("suites/fake-short.yaml", "workload: blink", "workload: blnk")
    repository.commit("wrong")
    assert isinstance(ask().exception, ConfigError)
    assert measurer.orders == []


@pytest.mark.slow
@pytest.mark.usefixtures("measurer")
def test_long_lists_and_values_still_make_a_file_that_can_be_read(
    repository: GitRepository, ask: Ask, read: Callable[[], ComparisonFile]
) -> None:
    many = ", ".join(f"k{number}: {'x' * (3000 if number == 0 else 1)}" for number in range(600))
    repository.edit(FAKE, "_ms: 1", f"_ms: 1, {many}")
    repository.commit("many")
    assert ask("--suite", "fake-short", "--trials", "4").exit_code == 0
    (change,) = read().changes
    assert isinstance(change, ExperimentChange)
    assert (len(change.knobs), change.unlisted) == (500, 100)
    assert "(3002 characters, SHA-256 " in change.knobs[0].after


@pytest.mark.slow
@pytest.mark.usefixtures("fake_ports")
def test_the_fake_system_is_measured_end_to_end(
    repository: GitRepository, ask: Ask, read: Callable[[], ComparisonFile]
) -> None:
    repository.edit(FAKE, "_ms: 1", "_ms: 30")
    repository.commit("much slower")
    done = ask("--suite", "fake-short", "--trials", "4")
    assert read().problems == ()
    (result,) = read().comparisons
    assert [trial.status for trial in result.trials] == ["completed"] * 4, done.output
    assert result.measures[0].before is not None
    assert result.measures[0].after is not None
    assert result.measures[0].after < result.measures[0].before / 3
    assert done.exit_code in {0, 1}  # of one block, nothing need be decided


def make_build(path: Path, content: str) -> str:
    """Write a tar archive; return its SHA-256."""
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("fake/program")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content.encode()))
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def ask_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    monkeypatch.setenv("KNICKPOINT_CACHE", str(tmp_path / "cache"))

    def ask(*options: str) -> Result:
        arguments = ("--suite", "fake-night", "--testbed", "loop", "--data", str(tmp_path / "var"))
        return CliRunner().invoke(candidate, [*arguments, *options])

    return ask


@pytest.mark.usefixtures("repository")
def test_two_builds_are_compared_under_one_configuration(
    ask_builds: Ask, measurer: Measurer, read: Callable[[], ComparisonFile], tmp_path: Path
) -> None:
    digest = make_build(tmp_path / "head.tar.gz", "slow")
    commit = "0123456789abcdef0123456789abcdef01234567"
    name = "0.build.0123456789"
    measurer.slow = name
    build = ("--build", str(tmp_path / "head.tar.gz"), "--against", "1.0.1", "--commit", commit)
    done = ask_builds(*build, "--trials", "40")
    assert done.exit_code == 1, done.output
    content = read()
    assert (content.base, content.head) == (
        None,
        Revision(ref=name, sha=commit),
    )
    assert {one.experiment for one in content.comparisons} == {"fake-write", "fake-read"}
    assert all(one.outcome is Outcome.REGRESSED for one in content.comparisons)
    sides = {(order.release.version, order.purpose) for order in measurer.orders}
    assert sides == {("1.0.1", Purpose.CANDIDATE), (name, Purpose.CANDIDATE)}
    assert {order.release.line for order in measurer.orders} == {"1.0", "1.0-dev"}
    artifacts = {order.artifact.source for order in measurer.orders}
    assert artifacts == {Source.BUILTIN, Source.BUILD}
    comment = (tmp_path / "var/candidate" / COMMENT).read_text()
    assert re.search(r"<sub>head .0123456", comment)
    assert "Regressed" in comment
    # Another archive under the same name is another question.
    assert make_build(tmp_path / "head.tar.gz", "fast") != digest
    again = ask_builds(*build[:4], "--trials", "40")
    assert again.exit_code == 0, again.output


@pytest.mark.usefixtures("repository", "measurer")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "two revisions of this repository, or --build and --against"),
        (("--build", "head.tar.gz"), "two revisions of this repository, or --build and --against"),
        (("--build", "a", "--against", "1.0.1", "--base", "main"), "two revisions of this repository"),
        (("--build", "nowhere.tar.gz", "--against", "1.0.1"), "fake has no release 'nowhere.tar.gz'"),
        (("--build", "1.0.0", "--against", "1.0.99"), "fake has no release '1.0.99'"),
    ],
)
def test_what_is_no_pair_of_builds_is_explained(
    ask_builds: Ask, options: tuple[str, ...], said: str
) -> None:
    done = ask_builds(*options)
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)


@pytest.mark.usefixtures("repository")
def test_two_releases_may_be_compared_as_builds(
    ask_builds: Ask, measurer: Measurer, read: Callable[[], ComparisonFile]
) -> None:
    measurer.slow = "1.0.1"
    assert ask_builds("--build", "1.0.1", "--against", "1.0.0").exit_code == 1
    # Neither is a commit, so the result is about no pull request.
    assert read().head is None
    assert {one.candidate.label for one in read().comparisons} == {"1.0.1"}


def test_a_source_that_a_head_names_is_not_obeyed(
    repository: GitRepository, ask: Ask, measurer: Measurer, tmp_path: Path
) -> None:
    mark = tmp_path / "was-here"
    sources = repository.root / "configs/sources"
    sources.mkdir()
    about = "description: For a test.\nsystem: fake\n"
    for name, rest in (
        ("tool", f"kind: command\ncommand: [touch, {mark}]\n"),
        ("own", f"kind: git\nrepository: .\nbranch: main\nbuild: [touch, {mark}]\nartifact: x\n"),
    ):
        (sources / f"{name}.yaml").write_text(f"name: {name}\n{about}{rest}")
    repository.edit(FAKE, "_ms: 1", "_ms: 2")
    # A build of the source of that name, which base does not have.
    found = Build(
        release=Release(system="fake", version="20260301.0900.ab", line="dev", ordinal=1),
        source="own",
        found_on=date(2026, 3, 1),
        location="ab",
        commit="ab",
    )
    offered = tmp_path / "var/releases.json"
    offered.parent.mkdir()
    offered.write_bytes(TypeAdapter(Found).dump_json(Found(builds=(found,))))
    repository.edit("suites/fake-short.yaml", '"1.0.1"]', '"1.0.1", "commits: newest"]')
    repository.commit("sources of my own")
    done = ask()
    assert done.exit_code == 1, done.output
    assert "no git source of this configuration" in done.output
    assert {order.deployment.experiment.name for order in measurer.orders} == {
        "fake-write",
        "fake-read",
    }
    assert not mark.exists()
