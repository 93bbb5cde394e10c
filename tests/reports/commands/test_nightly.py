"""Whole nights that find something, and make sure before they tell. Only the trials are made up."""

import html
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner, Result

from analysis.detection.verdict import Outcome
from analysis.judging.description import say_basis
from analysis.orchestration import judging
from analysis.orchestration.bisecting import read_bisections
from analysis.orchestration.comparing import read_results
from analysis.orchestration.explaining import read_profile_comparisons
from analysis.orchestration.judging import judge_history
from perf.config import catalog
from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.history.store import History, open_history
from perf.jobs import interleaving, measuring
from perf.jobs import night as night_job
from perf.jobs.interleaving import RESULT
from perf.jobs.night import read_nights
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.errors import DamagedHistory, HostUnfit, InputError, ReleaseError, UsageError
from perf.model.facts import METHOD
from perf.model.identity import named
from perf.model.metrics import METHOD_CPU, PACKAGE_CPU, SERVER_CPU, TIME_SPENT
from perf.model.results import Fact, Purpose, Sample, Trial, TrialId, TrialStatus
from perf.releases import artifacts as releases
from perf.systems.contract import System
from perf.systems.fake.system import Fake
from perf.trial.harness import Order
from reports.commands import nightly as nightly_command
from reports.commands.nightly import nightly

DATA = Path(__file__).parents[2] / "data"
CONFIGS = DATA / "configs"
SUITE = """\
name: night
description: Two releases with one between them.
testbed: loop
{extra}
experiments:
  - {{name: blink, system: fake, config: default, topology: three, workload: blink,
      releases: ["1.0.0", "1.0.2"]}}
"""
SCATTER = (0.0, 0.004, -0.003, 0.002, -0.005, 0.001, 0.003)
RELEASES = {release.version: release for release in Fake().releases()}


def spend(part: str) -> Sample:
    """Return that half of a trial's minute went into a part."""
    return Sample(phase="trial", operation=part, metric=TIME_SPENT.name, statistic="total", value=30.0)


@dataclass
class Lab:
    """A data directory with twelve nights of 1.0.0, and hosts on which each trial takes a minute."""

    configs: Path
    paths: DataPaths
    make_trial: Callable[..., Trial]
    by_night: dict[str, float] = field(default_factory=lambda: {"1.0.0": 1000.0, "1.0.2": 800.0})
    in_turns: dict[str, float] = field(default_factory=dict)
    method: str = "earlier"
    broken: str = ""
    fails_at: int | None = None
    error: type[BaseException] = KeyboardInterrupt
    turns: list[str] = field(default_factory=list)
    done: int = 0
    costs: dict[str, float] = field(default_factory=dict)
    """What each method costs in trials with a profiler."""
    server_cpu: Callable[[datetime], float] | None = None
    """What servers spend on an operation at a time."""

    def configure(self, extra: str) -> None:
        (self.configs / "suites" / "night.yaml").write_text(SUITE.format(extra=extra))

    def run(self, *more: str) -> Result:
        options = ["--suite", "night", "--data", str(self.paths.data), "--configs", str(self.configs)]
        return CliRunner().invoke(nightly, [*options, *more])

    def seal(self, order: Order, started_at: datetime) -> Trial:
        levels = self.by_night if order.night else self.in_turns or self.by_night
        value = levels[order.release.version] * (1 + SCATTER[self.done % len(SCATTER)])
        self.done += 1
        deployment = order.deployment
        trial = self.make_trial(
            id=order.trial,
            night=order.night,
            purpose=order.purpose,
            experiment=deployment.experiment.name,
            release=order.release,
            artifact=order.artifact,
            topology=named(deployment.topology),
            testbed=named(deployment.testbed),
            testbed_class=deployment.testbed.testbed_class,
            workload=named(deployment.workload),
            config=named(deployment.config),
            started_at=started_at,
            finished_at=started_at + timedelta(minutes=1),
            status=TrialStatus.FAILED if self._is_broken(order) else TrialStatus.COMPLETED,
            environment_before=(Fact(host="", name=f"{METHOD}load", value=self.method),),
            samples=(
                Sample(
                    phase="saturation",
                    operation="write",
                    metric="throughput",
                    statistic="mean",
                    value=value,
                ),
                *(self.profile() if order.purpose is Purpose.PROFILE else ()),
                *self.diagnose(started_at),
                *map(spend, ("start", "measured")),
            ),
        )
        bundle.seal(bundle.stage(self.paths, trial.id), trial, ())
        return trial

    def diagnose(self, at: datetime) -> Iterator[Sample]:
        if self.server_cpu:
            yield Sample(
                phase="saturation",
                operation="write",
                metric=SERVER_CPU.name,
                statistic="mean",
                value=self.server_cpu(at) * (1 + SCATTER[self.done % len(SCATTER)]),
            )

    def profile(self) -> Iterator[Sample]:
        about = {"phase": "saturation", "operation": "all"}
        for number, (method, cost) in enumerate(self.costs.items()):
            value = cost * (1 + SCATTER[(self.done + number) % len(SCATTER)])
            yield Sample(metric=METHOD_CPU.name, statistic=method, value=value, **about)
        if self.costs:
            value = sum(self.costs.values())
            yield Sample(metric=PACKAGE_CPU.name, statistic="org.db", value=value, **about)

    def _is_broken(self, order: Order) -> bool:
        return not order.night and order.release.version == self.broken

    def run_trial(self, order: Order, _: System, __: DataPaths, ___: Progress) -> Trial:
        if not order.night:
            if len(self.turns) + 1 == self.fails_at:
                self.fails_at = None
                raise self.error("not now")
            self.turns.append(order.trial)
        return self.seal(order, datetime.now(UTC))

    def remember(self, costs: Callable[[int], dict[str, float]] | None = None) -> None:
        """Seal what twelve earlier nights measured; with a profiler, what code cost then.

        `costs` are asked by how many days ago that was.
        """
        catalog = load_catalog(self.configs)
        suite = catalog.suite("night")
        for days in range(12, 0, -1):
            started_at = datetime.now(UTC) - timedelta(days=days)
            name = f"{started_at:%Y-%m-%d}-1.01.blink.1.0.0"
            self.costs = costs(days) if costs else {}
            order = Order(
                trial=TrialId(f"{name}.profile" if costs else name),
                night=f"{started_at:%Y-%m-%d}-1",
                purpose=Purpose.PROFILE if costs else Purpose.SCHEDULED,
                deployment=catalog.resolve(suite, suite.experiments[0]),
                release=RELEASES["1.0.0"],
                artifact=releases.fetch(Fake(), RELEASES["1.0.0"]),
            )
            self.seal(order, started_at)

    def incident_page(self) -> str:
        (page,) = (self.paths.site / "incidents").iterdir()
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.read_text())).split())


@pytest.fixture
def lab(
    tmp_path: Path, make_trial: Callable[..., Trial], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Lab]:
    configs = tmp_path / "configs"
    # Each file takes time to read, and a night reads them several times.
    shutil.copytree(CONFIGS, configs, ignore=shutil.ignore_patterns("fake-*.yaml", "tiny-*.yaml"))
    lab = Lab(configs=configs, paths=DataPaths(tmp_path / "var"), make_trial=make_trial)
    lab.configure("remeasure_minutes: 60")
    lab.remember()
    monkeypatch.setattr(measuring, "run_trial", lab.run_trial)
    monkeypatch.setattr(night_job, "check_ahead", lambda *_: None)
    yield lab
    assert len(lab.turns) == len(set(lab.turns))


def test_a_suspicion_is_confirmed_in_turns_before_anyone_is_reported(lab: Lab) -> None:
    reported = lab.run()
    assert reported.exit_code == 1, reported.output
    (result,) = read_results(lab.paths)
    assert (result.purpose, result.outcome) == (Purpose.CONFIRMATION, Outcome.REGRESSED)
    assert Counter(trial.side for trial in result.trials) == {"baseline": 4, "candidate": 4}
    assert "Verdict: Regressed" in reported.stdout
    assert "Side by side: blink, 1.0.0 to 1.0.2: regressed" in reported.stdout
    assert "(confirmed · database · still there)" in reported.stdout
    page = lab.incident_page()
    assert "Agrees −19." in page
    assert "4 and 4" in page
    assert not list(lab.paths.nights.glob("*.untold"))


@pytest.mark.slow
def test_what_became_worse_is_profiled_once(lab: Lab) -> None:
    lab.configure("remeasure_minutes: 60\nexplain_minutes: 60")
    assert lab.run().exit_code == 1
    (found,) = read_profile_comparisons(lab.paths)
    assert (found.baseline.version, found.candidate.version) == ("1.0.0", "1.0.2")
    assert len(found.trials) == 8
    for trial in found.trials:
        kept, _ = bundle.read(lab.paths.trials / trial)
        assert kept.purpose is Purpose.COMPARISON
    # No series and no verdict has them, and the next night asks nothing that is answered.
    (result,) = read_results(lab.paths)
    assert not {one.id for one in result.trials} & set(found.trials)
    lab.run()
    assert read_profile_comparisons(lab.paths) == (found,)


@pytest.mark.slow
def test_a_night_profiles_each_release_once_more_and_reports_code_that_grew(lab: Lab) -> None:
    lab.configure("hint_minutes: 60")
    lab.by_night["1.0.2"] = 1000.0
    costs = {f"org.db.Table.get{number}()": 10.0 for number in range(20)}
    lab.remember(lambda days: {**costs, "org.db.Log.add()": 1.0 if days > 6 else 4.0})
    lab.costs = {**costs, "org.db.Log.add()": 4.0}
    reported = lab.run()
    assert reported.exit_code == 0, reported.output
    (hint,) = re.findall(
        r"Hint: fake 1.0, \S+, saturation: Log.add (\S+) → (\S+) µs/op", reported.stdout
    )
    assert [float(size) for size in hint] == pytest.approx([1.0, 4.0], rel=0.1)
    page = (lab.paths.site / "index.html").read_text()
    assert '<code title="org.db.Log.add()">Log.add</code>' in page
    night = read_nights(lab.paths)[-1]
    for planned in night.trials:
        trial, _ = bundle.read(lab.paths.trials / f"{planned.id}.profile")
        assert (trial.purpose, trial.night) == (Purpose.PROFILE, night.id)


@pytest.mark.slow
@pytest.mark.parametrize("asked", [True, False])
def test_costs_of_servers_are_hints_where_a_suite_says_so(lab: Lab, *, asked: bool) -> None:
    lab.configure("hint_diagnostics: [server_cpu]" if asked else "")
    lab.by_night["1.0.2"] = 1000.0
    grown = datetime.now(UTC) - timedelta(days=6, hours=12)
    lab.server_cpu = lambda at: 260.0 if at > grown else 200.0
    for known in lab.paths.trials.iterdir():
        shutil.rmtree(known)
    lab.remember()
    reported = lab.run()
    assert reported.exit_code == 0, reported.output
    found = re.findall(
        r"Hint: fake 1.0, blink, saturation: server_cpu (\S+) → (\S+) µs/op", reported.stdout
    )
    assert [[round(float(one), -1) for one in sides] for sides in found] == (
        [[200, 260]] if asked else []
    )


@pytest.mark.slow
def test_servers_that_cannot_be_profiled_are_tried_once_a_night(lab: Lab) -> None:
    lab.configure("hint_minutes: 60")
    lab.by_night["1.0.2"] = 1000.0
    reported = lab.run()
    assert reported.exit_code == 0, reported.output
    assert len([*lab.paths.trials.glob("*.profile")]) == 1
    assert reported.stdout.count("Hints, skipped: ") == 1


@pytest.mark.slow
def test_profiles_for_hints_keep_to_their_minutes(lab: Lab) -> None:
    lab.configure("hint_minutes: 1")
    lab.by_night["1.0.2"] = 1000.0
    lab.costs = {"org.db.Log.add()": 4.0}
    assert "give the suite more hint_minutes" in lab.run().stdout
    assert len([*lab.paths.trials.glob("*.profile")]) == 1


@pytest.mark.slow
def test_a_night_that_measures_otherwise_compares_both_methods_once(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lab.configure("")
    lab.by_night["1.0.2"] = 1000.0
    lab.method = "later"
    program = tmp_path / "knickpoint-before"
    program.write_text("")

    def measure_by(_: object, order: Order, *__: object) -> Trial:
        lab.method = "earlier"
        try:
            return lab.run_trial(order, Fake(), lab.paths, Progress())
        finally:
            lab.method = "later"

    monkeypatch.setattr(interleaving, "measure_by", measure_by)
    for module in (interleaving, nightly_command):
        monkeypatch.setattr(module, "ask_version", lambda _: "0.0.9")
    reported = lab.run("--before", str(program))
    assert reported.exit_code == 0, reported.output
    (result,) = read_results(lab.paths)
    assert (result.baseline.version, result.candidate.version) == ("1.0.0", "1.0.0")
    assert [(one.path, one.before, one.after) for one in result.method] == [
        (f"{METHOD}load", "earlier", "later")
    ]
    assert f"({len(result.trials)} interleaved trials" in reported.stdout
    assert lab.run("--before", str(program)).exit_code == 0
    assert read_results(lab.paths) == (result,)


@pytest.mark.slow
def test_a_night_that_measures_otherwise_names_the_command_that_compares_both(lab: Lab) -> None:
    lab.configure("")
    lab.by_night["1.0.2"] = 1000.0
    lab.method = "later"
    asked = "--suite night --experiment blink --baseline 1.0.0 --candidate 1.0.0 --baseline-by PROGRAM"
    assert f"knickpoint compare {asked}" in lab.run().stdout
    assert "knickpoint compare" not in lab.run().stdout


@pytest.mark.slow
def test_a_suspicion_that_turns_rule_out_is_said_and_alerts_nobody(lab: Lab) -> None:
    lab.in_turns = {"1.0.0": 1000.0, "1.0.2": 1000.0}
    reported = lab.run()
    assert reported.exit_code == 0, reported.output
    assert "Verdict: Cannot tell yet" in reported.stdout
    assert "Side by side: blink, 1.0.0 to 1.0.2: unchanged" in reported.stdout
    assert "Incident" not in reported.stdout
    assert "Rules it out" in lab.incident_page()
    judgement = judge_history(lab.paths, load_catalog(lab.configs), datetime.now(UTC).date())
    assert "rules out a difference of its size" in say_basis(judgement.series[0])
    # Whoever touches the config asks another question; the old answer is none to it.
    config = lab.configs / "systems" / "fake" / "default.yaml"
    config.write_text(f"{config.read_text()}\nheap_mb: 100\n")
    lab.in_turns = {}
    assert lab.run().exit_code == 1
    assert [one.outcome for one in read_results(lab.paths)] == [
        Outcome.UNCHANGED,
        Outcome.REGRESSED,
    ]


@pytest.mark.parametrize(
    ("extra", "states"),
    [
        pytest.param("", 1, marks=pytest.mark.slow),
        pytest.param("bisect: auto\nbisect_minutes: 120", 1, marks=pytest.mark.slow),
        pytest.param("remeasure_minutes: 60", 2, marks=pytest.mark.slow),
        ("remeasure_minutes: 60\nbisect: auto\nbisect_minutes: 120", 3),
    ],
)
def test_a_night_loads_its_configuration_once_and_judges_each_state_of_the_history_once(
    lab: Lab, extra: str, states: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.configure(extra)
    lab.by_night["1.0.1"] = 800.0
    calls: Counter[str] = Counter()

    def count(where: object, name: str) -> None:
        before = getattr(where, name)

        def counted(*args: object, **more: object) -> object:
            calls[name] += 1
            return before(*args, **more)

        monkeypatch.setattr(where, name, counted)

    count(catalog, "_stray_files")  # asked once by each load, whoever asks for it
    count(judging, "judge")
    count(History, "heads")
    count(History, "environments")
    reported = lab.run()
    assert reported.exit_code in {0, 1}, reported.output
    assert calls == {
        "_stray_files": 1,
        "judge": states,
        "heads": states,
        "environments": states,
    }


@pytest.mark.parametrize("is_found_late", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_night_makes_a_damaged_history_new_and_goes_on(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, *, is_found_late: bool
) -> None:
    lab.by_night["1.0.2"] = 1000.0
    assert lab.run().exit_code == 0
    ruined = lab.paths.history.read_bytes()[:-5000]
    if is_found_late:  # in a part of the file that nobody reads at first
        judge = nightly_command.judge_state
        troubles = [DamagedHistory("a block is damaged")]

        def judge_then(*given: object) -> object:
            if troubles:
                raise troubles.pop()
            return judge(*given)

        monkeypatch.setattr(nightly_command, "judge_state", judge_then)
        ruined = b""
    else:
        lab.paths.history.write_bytes(ruined)
    again = lab.run()
    assert again.exit_code == 0, again.output
    (kept,) = lab.paths.data.glob("history.damaged.duckdb")
    assert kept.read_bytes().startswith(ruined)
    with open_history(lab.paths.history, read_only=True) as history:
        assert set(history.bundle_digests()) == {path.name for path in lab.paths.trials.iterdir()}


@pytest.mark.slow
def test_a_night_that_is_cut_while_it_makes_sure_is_resumed_there(lab: Lab) -> None:
    lab.fails_at = 6
    cut = lab.run()
    assert "Verdict" not in cut.stdout
    assert not lab.paths.site.exists()
    assert len(lab.turns) == 5
    reported = lab.run()
    assert reported.exit_code == 1, reported.output
    assert "resumed, 2 of 2 trials are done" in reported.stderr
    assert "Verdict: Regressed" in reported.stdout
    assert len(lab.turns) == 8
    assert (len(read_results(lab.paths)), len(read_nights(lab.paths))) == (1, 1)


def test_each_night_compares_its_releases_and_adds_to_what_is_known(lab: Lab) -> None:
    lab.configure("compare_minutes: 4")
    lab.by_night["1.0.2"] = 1010.0
    lab.fails_at = 3
    lab.run()
    assert read_results(lab.paths) == ()
    reported = lab.run()
    assert reported.exit_code == 0
    # The workflow takes its headline from that one line.
    (verdict,) = (line for line in reported.stdout.splitlines() if line.startswith("Verdict: "))
    assert verdict.startswith("Verdict: blink, 1.0.2 against 1.0.0: ")
    (first,) = read_results(lab.paths)
    assert first.purpose is Purpose.COMPARISON
    assert [one.block for one in first.trials] == [1001, 1001, 1, 1, 1, 1]
    assert lab.run().exit_code == 0
    _, second = read_results(lab.paths)
    # The pair of this night decides: nothing is measured beside it.
    assert len(second.trials) == 8
    assert {one.id for one in first.trials} < {one.id for one in second.trials}
    assert (second.seed, second.question_sha256) != (first.seed, "")
    assert second.question_sha256 == first.question_sha256


@pytest.mark.slow
def test_with_time_for_it_the_trials_of_a_night_are_half_of_its_first_block(lab: Lab) -> None:
    lab.configure("compare_minutes: 6")
    # One more trial of each changes what is known, and decides nothing.
    lab.by_night["1.0.2"] = 960.0
    reported = lab.run()
    assert reported.exit_code == 0
    # Of all eight trials of the night, and of none before it.
    assert "Time:    8 min 00 s, 50 % of it measured; start 50 %\n" in reported.stdout
    (first,) = read_results(lab.paths)
    assert [one.block for one in first.trials] == [1, 1, 1, 1, 2, 2, 2, 2]
    assert "".join(one.side[0] for one in first.trials[:4]) == "bccb"
    assert [len(first.own_trials), len(lab.turns)] == [6, 6]
    lab.run()
    _, second = read_results(lab.paths)
    assert {one.id for one in first.trials} < {one.id for one in second.trials}


@pytest.mark.slow
def test_what_no_time_is_left_for_is_said_with_its_command(lab: Lab) -> None:
    lab.configure("remeasure_minutes: 7")
    reported = lab.run()
    assert reported.exit_code == 0, reported.output
    assert read_results(lab.paths) == ()
    command = (
        "knickpoint compare --suite night --experiment blink --baseline 1.0.0 --candidate 1.0.2"
        " --measure saturation/write/throughput/mean"
    )
    assert f"7 min 00 s left are too short for 2 blocks of 4 trials; run: {command}" in reported.stdout
    assert command in lab.incident_page()


@pytest.mark.slow
def test_hosts_that_fail_meanwhile_are_reported_and_what_is_known_as_well(lab: Lab) -> None:
    lab.fails_at, lab.error = 2, HostUnfit
    reported = lab.run()
    assert reported.exit_code == 3, reported.output
    assert "Verdict: Cannot tell yet" in reported.stdout
    assert "Side by side, could not be measured: blink, 1.0.0 to 1.0.2: not now" in reported.stderr
    assert not list(lab.paths.nights.glob("*.untold"))


@pytest.mark.slow
def test_a_side_that_does_not_run_any_more_is_no_answer_and_is_reported(lab: Lab) -> None:
    lab.broken = "1.0.2"
    reported = lab.run()
    assert reported.exit_code == 3, reported.output
    assert "Side by side, could not be measured: blink, 1.0.0 to 1.0.2: invalid" in reported.stderr


def test_a_damaged_result_is_reported_before_an_hour_of_measuring(lab: Lab) -> None:
    damaged = lab.paths.comparisons / "cmp-x" / RESULT
    damaged.parent.mkdir(parents=True)
    damaged.write_text("{}")
    reported = lab.run()
    assert isinstance(reported.exception, InputError)
    assert lab.done == 12


def test_a_site_that_must_not_be_replaced_is_reported_before_an_hour_of_measuring(lab: Lab) -> None:
    (lab.paths.site / "index.html").parent.mkdir(parents=True)
    (lab.paths.site / "index.html").write_text("a site whose marker is lost")
    reported = lab.run()
    assert isinstance(reported.exception, UsageError)
    assert lab.done == 12


@pytest.mark.slow
def test_a_suite_that_asks_for_nothing_measures_nothing_again(lab: Lab) -> None:
    lab.configure("")
    assert lab.run().exit_code == 0
    assert lab.turns == []
    assert "would settle it" in lab.incident_page()


@pytest.mark.slow
def test_a_confirmed_change_is_traced_to_its_release_once(lab: Lab) -> None:
    lab.configure("remeasure_minutes: 60\nbisect: auto\nbisect_minutes: 120\nexplain_minutes: 60")
    lab.by_night["1.0.1"] = 800.0
    reported = lab.run()
    assert reported.exit_code == 1, reported.output
    (record,) = read_bisections(lab.paths)
    (profiled,) = read_profile_comparisons(lab.paths)
    assert (profiled.baseline.version, profiled.candidate.version) == ("1.0.0", "1.0.1")
    assert record.found is not None
    assert f"Bisection: blink, 1.0.0 to 1.0.2: {record.found.sentence}" in reported.stdout
    assert "1.0.1" in record.found.sentence
    page = lab.incident_page()
    assert f"Found Bisection of 1.0.0 → 1.0.2: {record.found.sentence}" in page
    # On the next night it is known; nothing is asked twice.
    measured = len(lab.turns)
    assert lab.run().exit_code == 1
    assert len(lab.turns) == measured
    assert (len(read_bisections(lab.paths)), len(read_nights(lab.paths))) == (1, 2)


@pytest.mark.slow
def test_a_bisection_that_is_cut_is_resumed_with_its_night(lab: Lab) -> None:
    lab.configure("remeasure_minutes: 60\nbisect: auto\nbisect_minutes: 120")
    lab.by_night["1.0.1"] = 1000.0
    lab.fails_at = 11  # eight confirm, so this is a probe of 1.0.1
    assert "Verdict" not in lab.run().stdout
    reported = lab.run()
    assert reported.exit_code == 1, reported.output
    (record,) = read_bisections(lab.paths)
    assert record.found is not None
    assert "1.0.2" in record.found.sentence
    assert len(read_nights(lab.paths)) == 1


@pytest.mark.slow
def test_a_bisection_without_time_is_said_with_its_command(lab: Lab) -> None:
    lab.configure("remeasure_minutes: 60\nbisect: auto\nbisect_minutes: 5")
    reported = lab.run()
    assert "Bisection, skipped: blink, 1.0.0 to 1.0.2: 5 min 00 s left" in reported.stdout
    assert (
        "run: knickpoint bisect fake 1.0.0..1.0.2 --suite night --experiment blink" in reported.stdout
    )
    assert read_bisections(lab.paths) == ()


def choose_by_rule(lab: Lab, kind: str, line: str = "1.0") -> None:
    """Let the suite choose by rule in a line of what a source of this kind offers."""
    suite = lab.configs / "suites" / "night.yaml"
    suite.write_text(suite.read_text().replace('["1.0.0", "1.0.2"]', f'["{line}: newest 2"]'))
    sources = lab.configs / "sources"
    sources.mkdir(exist_ok=True)
    (sources / "tool.yaml").write_text(f"name: tool\ndescription: For a test.\nsystem: fake\n{kind}\n")


def offer(lab: Lab, *builds: dict[str, str]) -> None:
    """Let a command offer these builds."""
    choose_by_rule(lab, "kind: command\ncommand: [cat, offered]")
    (lab.configs.parent / "offered").write_text("\n".join(map(json.dumps, builds)))


class Mirror:
    """A Maven repository on this host that says of Cassandra what Maven Central did on 2026-11-26."""

    def __init__(self, root: Path, address: str) -> None:
        library = "org.apache.cassandra:cassandra-all"
        self._metadata = root / "org/apache/cassandra/cassandra-all/maven-metadata.xml"
        self._metadata.parent.mkdir(parents=True)
        self.source = f"kind: maven\nlibrary: {library}\nlines: ['5.0']\nrepository: {address}"

    def publish(self, hidden: str = "") -> None:
        text = (DATA / "maven/cassandra-all.xml").read_text()
        assert f"<version>{hidden}</version>" in text or not hidden
        self._metadata.write_text(text.replace(f"<version>{hidden}</version>", ""))


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[Mirror]:
    root = tmp_path / "repository"
    handler = partial(SimpleHTTPRequestHandler, directory=str(root))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        Thread(target=http.serve_forever, daemon=True).start()
        yield Mirror(root, f"http://127.0.0.1:{http.server_port}")
        http.shutdown()


@pytest.mark.parametrize(
    ("kind", "releases"),
    [
        pytest.param("command", ("1.0.1", "1.0.2", "1.0.3"), marks=pytest.mark.slow),
        ("maven", ("5.0.7", "5.0.8", "5.0.9")),
    ],
)
def test_a_release_that_appears_is_measured_first_and_compared_with_the_one_before_it(
    lab: Lab, mirror: Mirror, kind: str, releases: tuple[str, str, str]
) -> None:
    older, old, new = releases
    lab.configure("compare_minutes: 20")
    lab.by_night |= {older: 1000.0, old: 1000.0, new: 800.0}
    if kind == "maven":
        choose_by_rule(lab, mirror.source, "5.0")
        mirror.publish(hidden=new)
    else:
        offer(lab)
    first = lab.run()
    assert first.exit_code == 0, first.output
    # Nothing is edited between the two nights but what the vendor publishes.
    if kind == "maven":
        mirror.publish()
    else:
        offer(lab, {"version": new})
    second = lab.run()
    assert f"found: fake {new} " in second.stderr
    night = read_nights(lab.paths)[-1]
    assert [one.version for one in night.trials] == [new, old]
    assert night.chosen[0].rules == (f"{new[:3]}: newest 2",)
    compared = [(one.baseline.label, one.candidate.label) for one in read_results(lab.paths)]
    assert compared == [(older, old), (old, f"{new} (new)")]
    assert read_results(lab.paths)[-1].outcome is Outcome.REGRESSED
    (verdict,) = (line for line in second.stdout.splitlines() if line.startswith("Verdict:"))
    assert f"{new} (new)" in verdict
    page = html.unescape((lab.paths.site / "index.html").read_text())
    assert f"{new} (new)" in page
    # It is no news on the next night, which compares the ends, as ever.
    third = lab.run()
    assert "(new)" not in third.stdout
    assert [one.version for one in read_nights(lab.paths)[-1].trials] == [old, new]


@pytest.mark.slow
@pytest.mark.keeps("unfetched-costs-its-own")
def test_a_release_that_cannot_be_fetched_costs_its_own_trials_and_nothing_else(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KNICKPOINT_CACHE", str(tmp_path / "cache"))
    lab.configure("")
    lab.by_night["1.0.2"] = 1000.0
    offer(lab, {"version": "1.0.4", "location": "http://127.0.0.1:1/fake.tar.gz"})
    reported = lab.run()
    assert reported.exit_code == 3, reported.output
    trials = {one.version: one for one in read_nights(lab.paths)[-1].trials}
    assert set(trials) == {"1.0.2", "1.0.4"}
    failed, _ = bundle.read(lab.paths.trials / trials["1.0.4"].id)
    assert failed.status is TrialStatus.FAILED
    assert [reason.kind for reason in failed.reasons] == ["fetch-failed"]
    assert "127.0.0.1:1" in failed.reasons[0].text
    measured, _ = bundle.read(lab.paths.trials / trials["1.0.2"].id)
    assert measured.status is TrialStatus.COMPLETED
    assert "1 of 2 trials could not be measured" in reported.stderr
    # A night of which nothing can be fetched measures nothing.
    suite = lab.configs / "suites" / "night.yaml"
    suite.write_text(suite.read_text().replace("newest 2", "newest"))
    assert isinstance(lab.run().exception, ReleaseError)
