"""What breaks in a trial of the fake: its status and reason, nothing left, the next trial well."""

import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from budget import cases
from disturbed import (
    Deed,
    Disturbed,
    Moment,
    SteppedClock,
    await_that,
    cut_link,
    deploy_fake,
    kill,
    pause,
    small_disk,
)

from perf.history import bundle
from perf.hosts.remote import code_here
from perf.load.histogram import merge
from perf.local.paths import DataPaths
from perf.model.errors import NotReady
from perf.model.metrics import RESPONSE_TIME
from perf.model.results import Trial, TrialStatus
from perf.systems import registry
from perf.systems.contract import Cluster, KnowsVersion, Node
from perf.systems.fake import system as fake
from perf.trial.spent import TRIAL

pytestmark = pytest.mark.timeout(180)

INVALID, FAILED, COMPLETED = TrialStatus.INVALID, TrialStatus.FAILED, TrialStatus.COMPLETED
# So short that what never ends is seen to be ended; a busy machine still starts a Python within it.
SHORT = {"start_s": 15.0, "stop_s": 2.0, "load_s": 15.0, "connect_s": 20.0, "settle_s": 5.0}


@dataclass(frozen=True)
class Fault:
    """What is done when, and what the trial must come to: a part of the text of its first reason."""

    name: str
    moment: Moment | None
    deed: Deed
    status: TrialStatus
    kind: str = ""
    text: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    load: Mapping[str, Any] = field(default_factory=dict)


def nothing(_: Disturbed) -> None:
    """Do nothing: the fault is in the settings."""


def starve(trial: Disturbed) -> None:
    """Let the engine have no more memory than it has."""
    pid = trial.find("engine")
    resource.prlimit(pid, resource.RLIMIT_AS, (1, 1))


DIED = "measure failed on node-2: its server process ended"
SILENT = "it said nothing: killed, or no memory or disk left?"
FULL = {"refuse_with": "No space left on device"}
REFUSED = {"refuse_with": "account perf is not allowed to do this"}
KILLED = (
    Fault("preload", Moment.PRELOAD, kill("node-2"), INVALID, "node-died", DIED),
    Fault("warm-up", Moment.WARM_UP, kill("node-2"), INVALID, "node-died", DIED),
    Fault("measurement", Moment.MEASUREMENT, kill("node-2"), INVALID, "node-died", DIED),
)
PAUSED = (
    Fault("start", Moment.START, pause("node-1"), FAILED, "start-failed", "not within 15 s: "),
    Fault(
        "preload",
        Moment.PRELOAD,
        pause("node-2"),
        FAILED,
        "engine-failed",
        "did not succeed in 6 attempts; the last: ",
        load={"timeout_s": 1.0},
    ),
    Fault("warm-up", Moment.WARM_UP, pause("node-2"), INVALID, "errors-above-limit", " × timeouts"),
    Fault(
        "measurement", Moment.MEASUREMENT, pause("node-2"), INVALID, "errors-above-limit", " × timeouts"
    ),
)
ENGINES = (
    Fault("killed in preload", Moment.PRELOAD, kill("engine"), FAILED, "engine-failed", SILENT),
    Fault("killed in warm-up", Moment.WARM_UP, kill("engine"), FAILED, "engine-failed", SILENT),
    Fault("killed in measurement", Moment.MEASUREMENT, kill("engine"), FAILED, "engine-failed", SILENT),
    Fault(
        "paused in preload",
        Moment.PRELOAD,
        pause("engine"),
        FAILED,
        "engine-failed",
        "had not ended after 15 s",
    ),
    Fault(
        "paused in measurement",
        Moment.MEASUREMENT,
        pause("engine"),
        FAILED,
        "engine-failed",
        "had not ended after",
    ),
)


def planted(name: str, status: TrialStatus, kind: str, text: str, **settings: Any) -> Fault:  # noqa: ANN401  of the fake
    return Fault(name, None, nothing, status, kind, text, settings)


SETTINGS = (
    planted("boots slowly", COMPLETED, "", "", ready_after_s=3),
    replace(
        planted("boots too slowly", FAILED, "start-failed", "not within 2 s: ", ready_after_s=60),
        limits={"start_s": 2.0},
    ),
    planted(
        "crashes on start", FAILED, "start-failed", "the server process ended", crash_on_start=True
    ),
    planted("is full in preload", FAILED, "engine-failed", "No space left", refuse_after=50, **FULL),
    planted("is full later", INVALID, "nothing-completed", "No space left", refuse_after=200, **FULL),
    planted("refuses", INVALID, "nothing-completed", "not allowed", refuse_after=200, **REFUSED),
)


def name_of(value: object) -> str | None:
    return value.name.replace(" ", "-") if isinstance(value, Fault) else None


Try = Callable[..., Trial]


@pytest.fixture
def attempt(tmp_path: Path, figures: dict[str, object]) -> Try:
    """Return `attempt(fault, system, mend)`: a trial with a fault, and once mended an unharmed one."""

    def attempt(
        fault: Fault,
        system: fake.Fake | None = None,
        mend: Callable[[], None] = lambda: None,
    ) -> Trial:
        limits = {**SHORT, **fault.limits}
        broken = deploy_fake(fault.settings, limits, **fault.load)
        trials = Disturbed(DataPaths(tmp_path), broken, system or fake.Fake())
        trial = trials.run(fault.moment, fault.deed)
        assert trial.status is fault.status, (trial.reasons, trials.said)
        if fault.kind:
            assert trial.reasons[0].kind == fault.kind, trial.reasons
            assert fault.text in trial.reasons[0].text, trial.reasons
        assert trials.leftovers() == []
        assert bundle.read(trials.paths.trials / trial.id)[0] == trial
        if fault.moment:
            figures["ended after"] = f"{trials.took_s:.1f} s"
        mend()
        trials.system = fake.Fake()
        trials.deployment = deploy_fake(limits=SHORT, seconds=0.6, rows_per_device=1)
        following = trials.run()
        assert following.status is COMPLETED, following.reasons
        assert trials.leftovers() == []
        return trial

    return attempt


@pytest.mark.slow
@pytest.mark.keeps("killed-node-is-reported")
@pytest.mark.parametrize("fault", cases(KILLED, KILLED[2:]), ids=name_of)
def test_a_killed_node_makes_a_trial_invalid(attempt: Try, fault: Fault) -> None:
    attempt(fault)


@pytest.mark.slow
@pytest.mark.keeps("paused-node-is-reported")
@pytest.mark.parametrize("fault", cases(PAUSED, PAUSED[1::2]), ids=name_of)
def test_a_node_that_stands_still_for_ever_is_reported(attempt: Try, fault: Fault) -> None:
    attempt(fault)


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.keeps("paused-node-is-reported")
@pytest.mark.parametrize("rate", [None, 100.0], ids=["closed", "open"])
def test_a_second_without_answers_is_in_the_response_times(
    attempt: Try, tmp_path: Path, rate: float | None
) -> None:
    fault = Fault("", Moment.MEASUREMENT, pause("node-2", 1.0), COMPLETED, load={"rate": rate})
    trial = attempt(fault)
    _, intervals = bundle.read(tmp_path / "trials" / trial.id)
    times = merge(one for one in intervals if (one.kind, one.iteration) == (RESPONSE_TIME.name, 1))
    assert 0.9 <= times.get_max_value() / 1e6 < 2.5


@pytest.mark.slow
@pytest.mark.keeps("cut-link-is-reported")
def test_a_link_that_drops_everything_makes_a_trial_invalid(attempt: Try) -> None:
    with ExitStack() as broken:

        def cut(_: Disturbed) -> None:
            broken.enter_context(cut_link("2"))

        fault = Fault("", Moment.MEASUREMENT, cut, INVALID, "errors-above-limit", " × timeouts")
        attempt(fault, mend=broken.close)


@pytest.mark.slow
@pytest.mark.keeps("lost-engine-is-reported")
@pytest.mark.parametrize("fault", cases(ENGINES, ENGINES[2:4]), ids=name_of)
def test_an_engine_that_is_lost_fails_the_trial(attempt: Try, fault: Fault) -> None:
    attempt(fault)


@pytest.mark.slow
@pytest.mark.keeps("lost-engine-is-reported")
@pytest.mark.parametrize("moment", [Moment.PRELOAD, Moment.WARM_UP], ids=["preload", "warm-up"])
def test_an_engine_without_memory_leaves_no_valid_trial(attempt: Try, moment: Moment) -> None:
    trial = attempt(Fault("", moment, starve, FAILED, "engine-failed"))
    assert "emory" in trial.reasons[0].text or "thread" in trial.reasons[0].text, trial.reasons


@pytest.mark.slow
@pytest.mark.keeps("full-disk-is-reported")
def test_an_engine_without_room_for_what_it_measures_fails_the_trial(
    attempt: Try, tmp_path: Path
) -> None:
    """There is none for its log either, so that it cannot say why it ends."""
    with ExitStack() as mounted:
        mounted.enter_context(small_disk(tmp_path / "run" / "engines", "16k"))
        trial = attempt(Fault("", None, nothing, FAILED, "engine-failed"), mend=mounted.close)
    assert [reason.kind for reason in trial.reasons] == ["engine-failed", "disk-full"]
    assert f"local: 0 MB are left on {tmp_path}/run/engines; make room" in trial.reasons[1].text


@pytest.mark.slow
@pytest.mark.keeps("broken-server-is-reported")
@pytest.mark.parametrize("fault", cases(SETTINGS, SETTINGS[1:5]), ids=name_of)
def test_a_server_that_does_not_come_up_or_refuses_is_reported(attempt: Try, fault: Fault) -> None:
    attempt(fault)


@pytest.mark.slow
@pytest.mark.keeps("wrong-release-is-refused")
@pytest.mark.parametrize(
    ("reported", "text"),
    [
        ("9.9.9", "version failed on node-1: runs 9.9.9, but 1.0.0 was to be measured"),
        ("", "does not report its release"),
    ],
)
def test_another_release_is_never_measured(attempt: Try, reported: str, text: str) -> None:
    fault = Fault("", None, nothing, FAILED, "version-failed", text, settings={"runs": reported})
    trial = attempt(fault)
    assert not trial.samples or {one.phase for one in trial.samples} <= {
        TRIAL,
        "canary-before",
        "canary-after",
    }
    assert trial.counters == ()


@pytest.mark.keeps("wrong-release-is-refused")
def test_each_system_that_stores_anything_is_asked_which_release_it_runs() -> None:
    silent = [one for one in registry.names() if not isinstance(registry.load(one), KnowsVersion)]
    assert silent == ["null"]


class Joined(fake.Fake):
    """The fake system, as one whose nodes are joined once: they never are while one is missing."""

    def bootstrap(self, cluster: Cluster) -> None:
        raise NotReady("start", cluster.nodes[0].name, "nobody answers")


@pytest.mark.slow
@pytest.mark.keeps("broken-server-is-reported")
def test_a_crash_before_nodes_are_joined_is_reported_at_once(attempt: Try) -> None:
    """And not at the end of a limit that is an hour here, as what nobody answers would be."""
    crash = planted("", FAILED, "start-failed", "the server process ended", crash_on_start=True)
    trial = attempt(replace(crash, limits={"start_s": 3600.0}), Joined())
    assert "planted fault: crash_on_start" in trial.log_tail


class Usurped(fake.Fake):
    """The fake system, on whose second address a stranger's server listens before its own does."""

    def __init__(self, home: Path, version: str) -> None:
        self._home, self._version = home, version
        self.stranger: subprocess.Popen[bytes] | None = None

    def start(self, node: Node, cluster: Cluster) -> None:
        if node.name == "node-2" and self.stranger is None:
            path = self._home / "stranger.json"
            path.write_text(f'{{"address": "{node.address}", "index": 1, "runs": "{self._version}"}}')
            self.stranger = subprocess.Popen(
                [sys.executable, "-m", "perf.systems.fake.server", str(path)],
                env={**os.environ, **code_here()},
                stderr=subprocess.DEVNULL,
            )

            def listens() -> bool:
                with socket.socket() as probe:
                    return probe.connect_ex((node.address, fake.PORT)) == 0

            await_that(listens)
        super().start(node, cluster)


@pytest.mark.slow
@pytest.mark.keeps("wrong-release-is-refused")
@pytest.mark.parametrize("version", ["9.9.9", "1.0.0"])
def test_a_stranger_on_the_address_is_never_measured(tmp_path: Path, version: str) -> None:
    """Of the same release or another: our own server cannot listen, and ends."""
    system = Usurped(tmp_path, version)
    trials = Disturbed(DataPaths(tmp_path / "data"), deploy_fake(limits=SHORT), system)
    try:
        trial = trials.run()
    finally:
        if system.stranger:
            system.stranger.kill()
            system.stranger.wait()
    assert trial.status in {FAILED, INVALID}
    assert trial.reasons[0].kind in {"start-failed", "version-failed", "node-died"}, trial.reasons
    assert "node-2" in trial.reasons[0].text
    assert trial.counters == ()
    trials.system = fake.Fake()
    assert trials.run().status is COMPLETED


@pytest.mark.slow
@pytest.mark.keeps("stepped-clock-is-reported")
@pytest.mark.parametrize("by_s", cases([-3600, 3600], [-3600]))
@pytest.mark.parametrize(
    ("moment", "status", "kind", "text"),
    [
        # The next load begins by the clock that was stepped, and its engine has another one.
        (Moment.PRELOAD, FAILED, "engine-failed", "load engine 0 "),
        (Moment.WARM_UP, COMPLETED, "", ""),
        (Moment.MEASUREMENT, INVALID, "clock-stepped", " ms against the time since boot while"),
    ],
    ids=["preload", "warm-up", "measurement"],
)
def test_a_clock_that_is_stepped_moves_no_edge_and_no_limit(
    attempt: Try,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: Moment,
    status: TrialStatus,
    kind: str,
    text: str,
    by_s: int,
) -> None:
    clock = SteppedClock(tmp_path, monkeypatch)
    fault = Fault("", moment, lambda _: clock.step(by_s), status, kind, text)
    trial = attempt(fault, mend=lambda: clock.step(0))
    # As long as it was, and never the hour more or less that the clock says.
    assert 0 < (trial.finished_at - trial.started_at).total_seconds() < 600


@pytest.mark.slow
@pytest.mark.keeps("cluster-is-as-deployed")
def test_a_cluster_that_came_apart_is_reported(attempt: Try) -> None:
    class ComesApart(fake.Fake):
        """It serves, until it was under load."""

        def check(self, cluster: Cluster) -> None:
            super().check(cluster)
            if self.is_apart:
                raise NotReady("start", "node-2", "is no longer the primary")

        is_apart = False

    system = ComesApart()

    def come_apart(_: Disturbed) -> None:
        system.is_apart = True

    fault = Fault(
        "",
        Moment.MEASUREMENT,
        come_apart,
        INVALID,
        "cluster-changed",
        "is no longer the primary",
        limits={"connect_s": 5.0},
    )
    trial = attempt(fault, system)
    assert [reason.kind for reason in trial.reasons] == ["cluster-changed"]
