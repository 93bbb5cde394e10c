"""A load generator of the user's own in a trial: what it is given, and what is made of it."""

import io
import json
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.access import Access
from perf.model.design import ClosedLoop, Load, Measurement, OpenLoop
from perf.model.errors import HostUnfit
from perf.model.program import Program
from perf.model.results import Artifact, Purpose, Source, Trial, TrialId, TrialStatus
from perf.systems.fake import system as fake
from perf.trial import harness
from perf.trial.harness import Order, run_trial

pytestmark = pytest.mark.usefixtures("fake_ports")

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
STRESS_LOG = CONFIGS.parent / "imports" / "cassandra-stress.hdr"
CLOSED = ClosedLoop(kind="closed", in_flight=3)
OPEN = OpenLoop(kind="open", offered_load_ops_per_s=100.0, in_flight=3)
# Notes what it is given, then prints what YCSB would: so many operations per run, more in each.
GENERATOR = """\
import json, sys, time
notes, seconds, failed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
with open(notes, "a+") as file:
    file.seek(0)
    number = len(file.readlines())
    print(json.dumps(sys.argv[4:]), file=file)
busy = time.process_time() + 0.15
while time.process_time() < busy:
    pass
time.sleep(seconds)
print("a complaint", file=sys.stderr)
print(f"[OVERALL], Throughput(ops/sec), {1000 + number}")
print(f"[READ], Operations, {100 - failed}")
print(f"[READ], 99thPercentileLatency(us), {2000 + number * 100}")
print(f"[READ-FAILED], Operations, {failed}")
"""
Run = Callable[..., Trial]


@pytest.fixture(autouse=True)
def no_canary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the work out that tells how fast a host is: nothing here is about hosts."""
    monkeypatch.setattr(harness, "run_canary", lambda *_: ())


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "notes"


@pytest.fixture
def program(notes: Path) -> Program:
    words = (str(notes), "{seconds}", "0", "{in_flight}", "{addresses}", "{seed}", "{{text}}")
    return Program(
        run=(sys.executable, "generator.py", *words),
        open=("{rate}",),
        files={"generator.py": GENERATOR},
        figures="ycsb",
    )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(
        program: Program,
        load: Load = CLOSED,
        access: Access | None = None,
        name: str = "trial",
        **limits: float,
    ) -> Trial:
        catalog = load_catalog(CONFIGS)
        suite = catalog.suites["fake-night"]
        deployment = catalog.resolve(suite, suite.experiments[0])
        times = {"warmup_s": 0.1, "warmup_cap_s": 0.1, "iteration_s": 0.3}
        phase = Measurement(name="sought", load=load, iterations=2, **times)
        workload = replace(
            deployment.workload,
            engine="command",
            program=program,
            operation=None,
            mix={},
            sequence=(),
            measurements=(phase,),
        )
        testbed = replace(
            deployment.testbed,
            limits=replace(deployment.testbed.limits, connect_s=5.0, stop_s=2.0),
            validity=replace(deployment.testbed.validity, **{"max_iteration_spread": 9.0, **limits}),
        )
        config = replace(deployment.config, access=access)
        deployment = replace(deployment, workload=workload, testbed=testbed, config=config)
        order = Order(
            trial=TrialId(name),
            night="night",
            purpose=Purpose.SCHEDULED,
            deployment=deployment,
            release=fake.SYSTEM.releases()[0],
            artifact=Artifact(source=Source.BUILTIN, sha256=""),
        )
        return run_trial(order, fake.Fake(), DataPaths(tmp_path), Progress(io.StringIO()))

    return run


def values(trial: Trial, metric: str, iteration: int | None = None) -> dict[tuple[str, str], float]:
    return {
        (one.operation, one.statistic): one.value
        for one in trial.samples
        if one.metric == metric and one.iteration == iteration and one.phase == "sought"
    }


def is_running(text: str) -> bool:
    """Say whether any process has these words on its command line."""
    return subprocess.run(["pgrep", "-f", text], check=False, capture_output=True).returncode == 0


def test_each_iteration_is_a_run_after_one_that_is_thrown_away(
    run: Run, program: Program, notes: Path
) -> None:
    trial = run(program)
    assert (trial.status, trial.engine) == (TrialStatus.COMPLETED, "command"), trial.reasons
    told = [json.loads(line) for line in notes.read_text().splitlines()]
    addresses = ",".join(f"127.0.0.{number}" for number in (1, 2, 3))
    assert told == [["3", addresses, "7", "{text}"]] * 4
    # The first and the third of 1000 to 1003 were warm-ups.
    assert values(trial, "throughput") == {("all", "mean"): 1002.0}
    assert [values(trial, "throughput", n) for n in (1, 2)] == [
        {("all", "mean"): 1001.0},
        {("all", "mean"): 1003.0},
    ]
    assert values(trial, "service_time")["read", "p99"] == pytest.approx(2.2)
    # It burns 0.15 s for 100 operations, of which ticks of 10 ms may miss some.
    assert 1000 < values(trial, "client_cpu")["read", "mean"] < 4000
    assert values(trial, "server_cpu")
    facts = {fact.name: fact.value for fact in trial.environment_before}
    assert len(facts[f"sha256:{sys.executable}"]) == 64
    assert not [one for one in trial.remarks if one.kind.endswith("-unknown")]


@pytest.mark.slow
def test_an_open_loop_that_was_not_offered_makes_the_trial_invalid(run: Run, program: Program) -> None:
    few = GENERATOR.replace("{100 - failed}", "20")
    trial = run(replace(program, files={"generator.py": few}), OPEN, min_achieved_share=0.9)
    assert trial.status is TrialStatus.INVALID
    (reason,) = trial.reasons
    assert reason.kind == "load-not-offered"
    assert "40 of 60" in reason.text
    (remark,) = [one for one in trial.remarks if one.kind == "lateness-unknown"]
    assert remark.text.startswith("sought: ")


@pytest.mark.slow
def test_operations_that_failed_are_those_that_it_told(run: Run, program: Program) -> None:
    words = tuple("5" if word == "0" else word for word in program.run)
    trial = run(replace(program, run=words), max_error_share=0.01)
    (reason,) = trial.reasons
    assert (trial.status, reason.kind) == (TrialStatus.INVALID, "errors-above-limit")
    assert "a complaint" in reason.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import sys; sys.exit('no such table')", "no such table"),
        ("print('hello')", "no line [OVERALL]"),
        ("print('[OVERALL], Throughput(ops/sec), 7')", "how many operations"),
        ("import os; os._exit(0)", "ended after"),
    ],
)
def test_a_program_without_figures_is_a_failed_trial(
    run: Run, program: Program, script: str, said: str
) -> None:
    late = f"import time; time.sleep(0.3); {script}" if "print" in script else script
    trial = run(replace(program, files={"generator.py": late}))
    (reason,) = trial.reasons
    assert (trial.status, reason.kind) == (TrialStatus.FAILED, "program-failed")
    assert said in reason.text + trial.log_tail


@pytest.mark.slow
def test_a_program_that_does_not_end_is_ended(run: Run, program: Program, notes: Path) -> None:
    # With a child that ignores the polite signal.
    endless = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', sys.argv[1]])\n"
        "time.sleep(600)\n"
    )
    trial = run(replace(program, files={"generator.py": endless}))
    (reason,) = trial.reasons
    assert (trial.status, reason.kind) == (TrialStatus.FAILED, "program-failed")
    assert "had not ended" in reason.text
    assert not is_running(str(notes))


@pytest.mark.slow
def test_a_histogram_log_is_kept_as_that(run: Run, program: Program, tmp_path: Path) -> None:
    script = f"import shutil, sys, time; time.sleep(0.3); shutil.copy({str(STRESS_LOG)!r}, sys.argv[5])"
    command = (*program.run, "{output}")
    hdr = replace(program, run=command, files={"generator.py": script}, figures="hdr")
    hdr = replace(
        hdr, run=(sys.executable, "generator.py", "1", "2", "3", "4", "{output}", "{seconds}")
    )
    trial = run(hdr)
    assert trial.status is TrialStatus.COMPLETED, trial.reasons
    _, intervals = bundle.read(DataPaths(tmp_path).trials / "trial")
    assert {(one.phase, one.operation, one.iteration) for one in intervals} == {
        ("sought", "write", 1),
        ("sought", "write", 2),
    }
    assert ("write", "p99") in values(trial, "response_time")
    assert [one.kind for one in trial.remarks if one.kind.endswith("-unknown")] == ["errors-unknown"]


@pytest.mark.slow
def test_what_it_started_is_ended_whatever_its_environment(
    run: Run, program: Program, notes: Path
) -> None:
    child = (
        "import subprocess\n"
        "command = [sys.executable, '-c', 'import time; time.sleep(600)', notes]\n"
        "subprocess.Popen(command, env={}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
    )
    trial = run(replace(program, files={"generator.py": GENERATOR + child}))
    assert trial.status is TrialStatus.COMPLETED, trial.reasons
    assert not is_running(str(notes))


@pytest.mark.slow
def test_what_was_prepared_is_there_in_each_run(run: Run, program: Program) -> None:
    made = replace(program, prepare=(("sh", "-c", "echo 1 >made"),))
    trial = run(replace(made, files={"generator.py": GENERATOR + 'open("made").read()\n'}))
    assert trial.status is TrialStatus.COMPLETED, trial.reasons


@pytest.mark.slow
def test_iterations_that_disagree_by_its_report_make_the_trial_invalid(
    run: Run, program: Program
) -> None:
    times = GENERATOR + 'print(f"[READ], AverageLatency(us), {1000 * (number + 1)}")\n'
    trial = run(replace(program, files={"generator.py": times}), OPEN, max_iteration_spread=0.5)
    (reason,) = trial.reasons
    assert (trial.status, reason.kind) == (TrialStatus.INVALID, "not-steady")
    assert "2, 4 ms" in reason.text


@pytest.mark.slow
def test_a_password_is_in_a_file_while_it_runs(run: Run, program: Program, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hidden\n")
    secret.chmod(0o600)
    told = tmp_path / "told"
    script = GENERATOR + (
        "import os\n"
        f"file = open({str(told)!r}, 'w')\n"
        "name, path = sys.argv[-2:]\n"
        "print(open(path).read(), oct(os.stat(path).st_mode), name, file=file)\n"
    )
    command = (*program.run, "{username}", "{password_file}")
    access = Access(username="somebody", password_file=str(secret))
    trial = run(replace(program, run=command, files={"generator.py": script}), access=access)
    assert trial.status is TrialStatus.COMPLETED, trial.reasons
    assert told.read_text().split() == ["hidden", oct(stat.S_IFREG | 0o600), "somebody"]
    assert not list(tmp_path.rglob("password"))
    # Who does not ask for it does not get it.
    looking = GENERATOR + "import os\nassert not os.path.exists('password')\n"
    silent = run(replace(program, files={"generator.py": looking}), access=access, name="silent")
    assert silent.status is TrialStatus.COMPLETED, silent.reasons
    assert "hidden" not in (DataPaths(tmp_path).trials / "trial" / "trial.json").read_text()


def test_a_host_without_the_program_is_refused_before_anything_starts(
    run: Run, program: Program
) -> None:
    absent = replace(program, prepare=(("no-such-tool",),), made_of=("/no/such.jar",))
    with pytest.raises(HostUnfit) as refused:
        run(absent)
    assert "there is no no-such-tool" in str(refused.value)
    assert "there is no /no/such.jar" in str(refused.value)
