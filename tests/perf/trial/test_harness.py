"""Order and failure of a trial, with the fake system behind real processes and ports."""

import io
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.hosts.remote import Remote, send_signal
from perf.jobs.measuring import Job
from perf.jobs.night import measure_night
from perf.load.offer import Offer
from perf.load.results.outcome import LoadOutcome
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.design import Deployment, PriceSource, Testbed
from perf.model.errors import HostUnfit, StepFailed
from perf.model.facts import CLOCK_OFFSET
from perf.model.metrics import CANARY_PHASES, PRICE_PER_HOUR
from perf.model.results import Artifact, Fact, Purpose, Sample, Source, Trial, TrialId, TrialStatus
from perf.systems import registry
from perf.systems.contract import Cluster, Node
from perf.systems.fake import system as fake
from perf.trial import harness
from perf.trial.clocks import Clocks
from perf.trial.harness import Order, run_trial

pytestmark = pytest.mark.usefixtures("fake_ports")

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
Run = Callable[..., Trial]


def is_free(address: str, port: int = fake.PORT) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) != 0


def all_ended() -> bool:
    return all(is_free(f"127.0.0.{i}") for i in (1, 2, 3))


def price(testbed: Testbed) -> Testbed:
    """Let each server host cost half a dollar an hour."""
    hosts = (
        replace(host, price_per_hour_usd=0.5 if host.role == "server" else None)
        for host in testbed.hosts
    )
    source = PriceSource(date=date(2026, 1, 1), source="a list")
    return replace(testbed, hosts=tuple(hosts), prices_from=source)


def make_order(name: str, settings: Mapping[str, Any]) -> Order:
    catalog = load_catalog(CONFIGS)
    suite, experiment = next(
        (suite, experiment)
        for suite in catalog.suites.values()
        for experiment in suite.experiments
        if experiment.name == name
    )
    deployment: Deployment = catalog.resolve(suite, experiment)
    config = replace(deployment.config, settings={**deployment.config.settings, **settings})
    deployment = replace(deployment, config=config, testbed=price(deployment.testbed))
    return Order(
        trial=TrialId("n.01.fake.1.0.0"),
        night="n",
        purpose=Purpose.SCHEDULED,
        deployment=deployment,
        release=fake.SYSTEM.releases()[0],
        artifact=Artifact(source=Source.BUILTIN, sha256=""),
    )


@pytest.fixture
def paths(tmp_path: Path) -> DataPaths:
    return DataPaths(tmp_path)


@pytest.fixture
def run(paths: DataPaths) -> Run:
    def run(experiment: str = "fake-blink", **settings: object) -> Trial:
        order = make_order(experiment, settings)
        trial = run_trial(order, fake.Fake(), paths, Progress(io.StringIO()))
        assert all_ended(), "a server still answers after its trial"
        return trial

    return run


def read_independently(bundle: Path, tag: str, percentile: float) -> float:
    """Read a percentile, in milliseconds, as any user would: with HdrHistogram's own log reader."""
    merged = HdrHistogram(1, 3_600_000_000, 3)
    log = HistogramLogReader(str(bundle / "intervals.hlog"), merged)
    while (one := log.get_next_interval_histogram()) is not None:
        if one.get_tag().startswith(tag) and not one.get_tag().endswith(":0"):
            merged.add(one)
    log.close()
    return float(merged.get_value_at_percentile(percentile) / 1000)


class Recording(fake.Fake):
    """The fake system with a record of the verbs that were called."""

    def __init__(self) -> None:
        self.verbs: list[str] = []

    def _note(self, verb: str, node: Node | None = None) -> None:
        self.verbs.append(f"{verb} {node.name}" if node else verb)

    def wipe(self, node: Node) -> None:
        assert not self.is_running(node), "wiped under a running server"
        self._note("wipe", node)
        super().wipe(node)

    def install(self, node: Node, cluster: Cluster) -> None:
        self._note("install", node)
        super().install(node, cluster)

    def configure(self, node: Node, cluster: Cluster) -> None:
        self._note("configure", node)
        super().configure(node, cluster)

    def start(self, node: Node, cluster: Cluster) -> None:
        self._note("start", node)
        super().start(node, cluster)

    def check(self, cluster: Cluster) -> None:
        super().check(cluster)
        self._note("serves")

    def stop(self, node: Node, *, force: bool) -> None:
        self._note("kill" if force else "stop", node)
        super().stop(node, force=force)


def test_a_completed_trial_goes_in_order_and_is_a_sealed_bundle_with_true_counts(
    paths: DataPaths,
) -> None:
    system = Recording()
    trial = run_trial(make_order("fake-write", {}), system, paths, Progress(io.StringIO()))
    assert trial.status is TrialStatus.COMPLETED, trial.reasons
    assert all_ended(), "a server still answers after its trial"
    each = [f"node-{i}" for i in (1, 2, 3)]
    assert system.verbs == [
        *(f"{verb} {node}" for verb in ("wipe", "install", "configure", "start") for node in each),
        "serves",
        "serves",  # asked again after the load
        *(f"{verb} {node}" for verb in ("kill", "wipe") for node in each),
    ]
    kept, intervals = bundle.read(paths.trials / trial.id)
    assert kept == trial
    assert {interval.phase for interval in intervals} >= {"saturation", "steady"}
    overall = {(s.phase, s.metric, s.statistic): s.value for s in trial.samples if s.iteration is None}
    # 100 operations per second are offered, and the fake answers after 1 ms.
    assert 80 <= overall["steady", "throughput", "mean"] <= 110
    assert overall["steady", "service_time", "p50"] >= 1.0
    assert overall["saturation", "throughput", "mean"] > overall["steady", "throughput", "mean"]
    for percentile in (50.0, 99.0, 99.9):
        name = f"p{percentile:g}"
        expected = read_independently(
            paths.trials / trial.id, "steady:write:response_time:", percentile
        )
        assert overall["steady", "response_time", name] == expected
    assert not (paths.run / "fake" / "node-1").exists()
    logs = sorted(path.name for path in (paths.trials / trial.id / "logs").iterdir())
    assert logs == [f"node-{i}-server.log" for i in (1, 2, 3)]
    assert {fact.name for fact in trial.environment_before} >= {"kernel", "version:knickpoint"}
    assert trial.environment_after
    # Three servers at half a dollar an hour; their price is stated once, and is no drift of a host.
    per_dollar = overall["saturation", "operations_per_dollar", "mean"]
    assert per_dollar == pytest.approx(overall["saturation", "throughput", "mean"] * 3600 / 1.5)
    assert ("steady", "operations_per_dollar", "mean") not in overall
    prices = [fact for fact in trial.environment_before if fact.name == PRICE_PER_HOUR]
    assert prices == [Fact(host="", name=PRICE_PER_HOUR, value="1.5")]
    assert Fact(host="", name="prices_from", value="2026-01-01, a list") in trial.environment_before


@pytest.mark.slow
def test_reads_verify_what_they_get(run: Run) -> None:
    trial = run("fake-read")
    assert trial.status is TrialStatus.COMPLETED, trial.reasons


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        ({"corrupt_every": 10}, "misses-above-limit", "wrong_data"),
        ({"lose_every": 10}, "not-loaded", "of 120 rows and"),
    ],
)
def test_a_lying_database_makes_the_trial_invalid(
    run: Run, fault: Mapping[str, int], kind: str, text: str
) -> None:
    trial = run("fake-read", **fault)
    assert trial.status is TrialStatus.INVALID
    assert any(reason.kind == kind and text in reason.text for reason in trial.reasons), trial.reasons


@pytest.mark.slow
@pytest.mark.keeps("broken-server-is-reported")
def test_errors_above_the_limit_make_the_trial_invalid(run: Run) -> None:
    trial = run(refuse_every=7)
    assert trial.status is TrialStatus.INVALID
    assert [reason.kind for reason in trial.reasons] == ["errors-above-limit"]
    assert "RuntimeError" in trial.reasons[0].text
    assert "the first: error:RuntimeError: write of sensor-" in trial.reasons[0].text


@pytest.mark.slow
@pytest.mark.keeps("broken-server-is-reported")
def test_a_node_that_does_not_come_up_fails_the_trial_with_its_log(run: Run) -> None:
    trial = run(crash_on_start=True)
    assert trial.status is TrialStatus.FAILED
    assert trial.reasons[0].kind == "start-failed"
    assert "the server process ended" in trial.reasons[0].text
    assert "planted fault: crash_on_start" in trial.log_tail


class Complaining(fake.Fake):
    """The fake system with a server that says why it does not start, as a real one does."""

    def start(self, node: Node, cluster: Cluster) -> None:
        said = (
            "ERROR [main] 2026-11-23 Daemon.java:900 - concurrent_writes must be at least 2, but was 1"
        )
        self.run(node, ("sh", "-c", f"echo '{said}'; exit 1"))


@pytest.mark.slow
@pytest.mark.keeps("broken-server-is-reported")
def test_the_reason_of_a_trial_quotes_the_last_error_of_the_database(paths: DataPaths) -> None:
    trial = run_trial(make_order("fake-blink", {}), Complaining(), paths, Progress(io.StringIO()))
    (reason,) = trial.reasons
    assert reason.text.endswith(
        "the server process ended; the last error in the log: concurrent_writes must be at least 2, "
        "but was 1"
    )


class Uneven(fake.Fake):
    """The fake system with a release whose Java is not here, and one that does not start."""

    def install(self, node: Node, cluster: Cluster) -> None:
        if cluster.release.version == "1.0.1":
            raise HostUnfit("no Java 98 on this host")
        super().install(node, cluster)

    def start(self, node: Node, cluster: Cluster) -> None:
        settings = {"crash_on_start": cluster.release.version == "1.1.1", **cluster.config.settings}
        config = replace(cluster.config, settings=settings)
        super().configure(node, replace(cluster, config=config))
        super().start(node, cluster)


@pytest.mark.slow
@pytest.mark.keeps("unfetched-costs-its-own")
def test_a_release_that_cannot_be_started_costs_its_own_trials_and_nothing_else(
    paths: DataPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "load", lambda _: Uneven())
    catalog = load_catalog(CONFIGS)
    suite = catalog.suite("fake-short")
    (blink,) = suite.experiments
    suite = replace(suite, experiments=(replace(blink, releases=("1.0.1", "1.1.1", "1.0.0")),))
    trials = measure_night(Job(catalog, paths, Progress(io.StringIO())), suite)
    came_to = {one.release.version: (one.status, [why.kind for why in one.reasons]) for one in trials}
    assert came_to == {
        "1.0.1": (TrialStatus.FAILED, ["install-failed"]),
        "1.1.1": (TrialStatus.FAILED, ["start-failed"]),
        "1.0.0": (TrialStatus.COMPLETED, []),
    }
    assert all_ended()


@pytest.mark.slow
@pytest.mark.keeps("broken-server-is-reported")
def test_a_cluster_that_never_serves_fails_at_its_limit(paths: DataPaths) -> None:
    order = make_order("fake-blink", {"never_ready": True})
    limits = replace(order.deployment.testbed.limits, start_s=3.0)
    testbed = replace(order.deployment.testbed, limits=limits)
    order = replace(order, deployment=replace(order.deployment, testbed=testbed))
    trial = run_trial(order, fake.Fake(), paths, Progress(io.StringIO()))
    assert trial.status is TrialStatus.FAILED
    assert "not within 3 s: the server is still starting" in trial.reasons[0].text
    assert all_ended()


@pytest.mark.slow
@pytest.mark.keeps("killed-node-is-reported")
def test_a_node_that_dies_mid_trial_makes_it_invalid(run: Run) -> None:
    trial = run(die_after_writes=90)
    assert trial.status is TrialStatus.INVALID
    assert trial.reasons[0].kind == "node-died"
    assert "node-1" in trial.reasons[0].text
    assert "planted fault: die_after_writes" in trial.log_tail


class Defective(fake.Fake):
    """The fake system with a mistake in one of its verbs."""

    def __init__(self, verb: str) -> None:
        self.verb = verb

    def _fail(self, verb: str) -> None:
        if verb == self.verb:
            raise ValueError("invalid literal for int() with base 10: 'abc'")

    def install(self, node: Node, cluster: Cluster) -> None:
        self._fail("install")
        super().install(node, cluster)

    def configure(self, node: Node, cluster: Cluster) -> None:
        self._fail("configure")
        super().configure(node, cluster)

    def start(self, node: Node, cluster: Cluster) -> None:
        self._fail("start")
        super().start(node, cluster)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["install", "configure", "start"])
def test_a_mistake_in_a_system_costs_its_trial_and_no_more(paths: DataPaths, verb: str) -> None:
    trial = run_trial(make_order("fake-blink", {}), Defective(verb), paths, Progress(io.StringIO()))
    assert trial.status is TrialStatus.FAILED
    (reason,) = trial.reasons
    assert reason.kind == f"{verb}-failed"
    assert reason.text.startswith(f"{verb} failed on node-1: an error of Knickpoint: ValueError: ")


class Speechless(fake.Fake):
    """The fake system with servers that cannot be asked for their own figures."""

    def open_telemetry(self, cluster: Cluster) -> AbstractContextManager[Any]:
        self.cluster = cluster
        raise StepFailed("look", cluster.nodes[0].name, "it does not answer")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["node-died", "engine-failed"])
def test_a_load_that_fails_leaves_what_was_seen_of_it_and_remarks_in_their_order(
    paths: DataPaths, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A node dies as the load has just ended, or engines fail before anything was looked at."""
    offer = Offer.run

    def run(self: Offer, *given: Any) -> LoadOutcome:  # noqa: ANN401  passed on
        if kind == "engine-failed":
            raise StepFailed("engine", "client-1", "it cannot start")
        outcome = offer(self, *given)
        (node, *_) = system.cluster.nodes
        send_signal(node.remote, node.pid_file, signal.SIGKILL)
        while system.is_running(node):
            time.sleep(0.01)
        return outcome

    def no_canary(remote: Remote, _: str, phase: str) -> tuple[Sample, ...]:
        raise StepFailed("canary", remote.name, phase)

    system = Speechless()
    monkeypatch.setattr(Offer, "run", run)
    monkeypatch.setattr(harness, "run_canary", no_canary)
    trial = run_trial(make_order("fake-blink", {}), system, paths, Progress(io.StringIO()))
    assert trial.reasons[0].kind == kind
    remarks = [one for one in trial.remarks if one.kind in {"canary-missing", "telemetry-missing"}]
    assert [one.kind for one in remarks] == ["canary-missing", "telemetry-missing", "canary-missing"]
    assert [one.text.partition(":")[0] for one in remarks[::2]] == list(CANARY_PHASES)
    kept, intervals = bundle.read(paths.trials / trial.id)
    assert (intervals, kept.counters) == ((), ())  # of a load that a node did not outlive as well


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before the load", "after the load"])
def test_clocks_that_are_apart_make_it_invalid_and_before_the_load_none_is_offered(
    paths: DataPaths, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    order = make_order("fake-blink", {})
    testbed = order.deployment.testbed
    validity = replace(testbed.validity, max_clock_offset_ms=5.0)
    deployment = replace(order.deployment, testbed=replace(testbed, validity=validity))
    facts = tuple(
        Fact(host=host, name=CLOCK_OFFSET, value=f"{ms} ± 0.1")
        for host, ms in (("load-1", "0.0"), ("load-2", "200.0"))
    )
    monkeypatch.setattr(
        harness,
        "read_clocks",
        lambda _, asked: Clocks(facts if asked in {when, "after the load"} else ()),
    )
    order = replace(order, deployment=deployment)
    trial = run_trial(order, fake.Fake(), paths, Progress(io.StringIO()))
    (reason,) = trial.reasons
    assert (trial.status, reason.kind) == (TrialStatus.INVALID, "clock-offset")
    assert reason.text.startswith(when)
    assert bool(trial.counters) == (when == "after the load")
    assert all_ended()


@pytest.mark.slow
def test_a_server_that_ignores_the_stop_is_killed(run: Run) -> None:
    assert run(ignore_stop=True).status is TrialStatus.COMPLETED


class Unclean(fake.Fake):
    """The fake system with a node whose host is lost while the trial runs."""

    def __init__(self) -> None:
        self.wiped: list[str] = []

    def wipe(self, node: Node) -> None:
        if node.name == "node-2" and node.name in self.wiped:
            raise StepFailed("wipe", node.name, "the host is out of reach")
        self.wiped.append(node.name)
        super().wipe(node)


@pytest.mark.slow
def test_a_clean_up_that_fails_on_one_node_costs_nothing_else(paths: DataPaths) -> None:
    system = Unclean()
    trial = run_trial(make_order("fake-blink", {}), system, paths, Progress(io.StringIO()))
    assert trial.status is TrialStatus.FAILED
    assert [reason.kind for reason in trial.reasons] == ["clean-up-failed"]
    assert "wipe failed on node-2: the host is out of reach" in trial.reasons[0].text
    assert system.wiped == ["node-1", "node-2", "node-3", "node-1", "node-3"]
    kept, intervals = bundle.read(paths.trials / trial.id)
    assert kept == trial
    assert intervals


def test_a_port_in_use_is_refused_before_anything_starts(run: Run, paths: DataPaths) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.2", fake.PORT))
        taken.listen()
        with pytest.raises(
            HostUnfit, match=f"port {fake.PORT} on 127.0.0.2 is in use by pid {os.getpid()}"
        ):
            run()
    assert list(paths.trials.glob("*")) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "signal_number",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        signal.SIGKILL,
    ],
)
def test_an_interrupted_night_leaves_no_process_and_resumes(
    tmp_path: Path, signal_number: signal.Signals
) -> None:
    command = [sys.executable, "-m", "perf.commands.main", "measure", "--suite", "fake-short"]
    command += ["--configs", str(CONFIGS), "--data", str(tmp_path)]
    # As in the background of a script, where shells have SIGINT ignored.
    ignoring = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *command]
    with subprocess.Popen(ignoring, stderr=subprocess.PIPE, text=True) as first:
        end = time.monotonic() + 60
        while not list(tmp_path.glob("trials/[0-9]*.01.*")):
            assert time.monotonic() < end, "the first trial did not finish"
            assert first.poll() is None
            time.sleep(0.05)
        while all_ended():
            assert time.monotonic() < end, "the second trial did not start"
            time.sleep(0.01)
        first.send_signal(signal_number)
        first.communicate(timeout=30)
    assert first.returncode == (-9 if signal_number is signal.SIGKILL else 130)
    end = time.monotonic() + 10
    while not all_ended():
        assert time.monotonic() < end, "a server outlived the command"
        time.sleep(0.05)
    kept = {
        path.name: (path / "trial.json").stat().st_mtime_ns for path in tmp_path.glob("trials/[0-9]*")
    }
    second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert second.returncode == 0, second.stderr
    assert "resumed, 1 of 2 trials are done" in second.stderr
    after = {
        path.name: (path / "trial.json").stat().st_mtime_ns for path in tmp_path.glob("trials/[0-9]*")
    }
    assert len(after) == 2
    assert kept.items() <= after.items(), "a finished trial was measured again"
