"""Run nights of a season in one process: the real commands, under a clock that is a season away.

    echo 17 | python tests/reliability/simulated_night.py --into DIRECTORY

Real are the commands `nightly` and `notify` from their first line to their exit code, the servers of
the fake system, the load engine, all files, the message over HTTP. Simulated are: the clock by which
nights are dated; what canaries find; and the figures of a completed trial, which are the planted ones
with scatter (`season`), since what a loaded machine measures has no known truth.

With `--real-every 3`, servers and engine run in every third of the calm nights and in all that have a
fault; all other trials, those in turns among them, are written as copies of one that ran, and say so.
"""

import argparse
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import psutil
import season

import reports.commands.nightly
import reports.commands.notify
import reports.site.context
from analysis.judging.judgement import Judgement
from perf.commands import main as cli
from perf.history import bundle
from perf.jobs import measuring
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.identity import named
from perf.model.results import Reason, Sample, Trial, TrialStatus
from perf.systems.contract import Cluster, Node, System
from perf.systems.fake import system as fake
from perf.trial import harness
from reports.notifications.events import NotificationPlan
from reports.site.context import JudgedHistory

CONFIG = "season"
OURS = ("perf", "analysis", "reports")
PLANTS = {
    "crash": {"crash_on_start": True},
    "die": {"die_after_writes": 25},
    "never-ready": {"never_ready": True},
    "ignore-stop": {"ignore_stop": True},
}
SUITE = """\
name: season
description: The newest release, and a sentinel.
testbed: season
{turns}
experiments:
  - {{name: newest, system: fake, config: season, topology: season, workload: season,
      releases: ["{version}"]}}
  - {{name: watch, system: fake, config: watch, topology: season, workload: season,
      releases: ["{sentinel}"], sentinel_every_nights: 4}}
"""
CONFIG_TEXT = (
    "system: fake\nname: {name}\ndescription: Made by a season of nights.\nsettings: {settings}\n"
)


SIGNALS = {"kill": signal.SIGKILL, "interrupt": signal.SIGINT, "fill": None}
BALLAST = "ballast"
LEFT_BYTES = 60_000


def fill(place: Path) -> None:
    """Leave almost nothing of the small file system that a place is on."""
    stand = os.statvfs(place)
    with (place / BALLAST).open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, stand.f_bavail * stand.f_frsize - LEFT_BYTES)


class CurrentNight:
    """The night that is simulated: its number, its fault, and the last that was judged."""

    def __init__(self, number: int, into: Path, *, is_again: bool, real_every: int) -> None:
        self.number, self.real_every = number, real_every
        self.into = into
        self.began_s = time.time()
        self.starts_at = season.starts_at(number) + timedelta(hours=2 * is_again)
        self.fault, _, rest = season.fault_of(number).partition(",")
        self.is_resumed = bool(rest)
        if is_again:
            self.fault = ""
        self.is_real = (
            number == 0 or is_again or bool(self.fault) or not real_every or number % real_every == 1
        )
        self.said = self.turns = 0
        self.judgement: Judgement | None = None
        self.events: list[dict[str, Any]] = []

    def now(self, zone: tzinfo | None = None) -> datetime:
        moved = self.starts_at + timedelta(seconds=time.time() - self.began_s)
        return moved if zone else moved.replace(tzinfo=None)

    def say(self, text: str) -> None:
        """Count a line of progress."""
        self.said += 1
        self.come_to("judging" if text.strip() == "keep, judge" else str(self.said))

    def take_turn(self) -> None:
        """Count a trial that takes turns with others."""
        self.turns += 1
        self.come_to(f"turn-{self.turns}")

    def come_to(self, moment: str) -> None:
        """End the process, or fill the disk, where that is the night's fault at this moment."""
        word, _, planned = self.fault.partition(" ")
        if word not in SIGNALS or moment != planned:
            return
        if found := SIGNALS[word]:
            os.kill(os.getpid(), found)
        else:
            fill(self.into / "var")


TONIGHT: CurrentNight
"""Set for each night; the patches look here."""


class _Kind(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, datetime)


class SimulatedClock(datetime, metaclass=_Kind):
    """`datetime` but for `now`; what it makes are plain datetimes."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return TONIGHT.now(tz)


def patch() -> None:
    """Put the clock, the canaries, the figures and the faults of tonight in the place of real ones."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in OURS and getattr(module, "datetime", None) is datetime:
            module.datetime = SimulatedClock  # type: ignore[attr-defined]
    fake._LINES = (*fake._LINES, (season.LINE, 40))  # noqa: SLF001  a season needs more releases
    harness.run_canary = _canary
    harness._trial = _with_figures(harness._trial)  # noqa: SLF001  where samples become a trial
    measuring.run_trial = _by_night(harness.run_trial)
    fake.Fake.configure = _with_fault(fake.Fake.configure)  # type: ignore[method-assign]
    Progress._write = _counted(Progress._write)  # type: ignore[method-assign]  # noqa: SLF001  each line of it
    for module in (reports.commands.nightly, reports.commands.notify):
        module.judge_state = _remembered(reports.site.context.judge_state)  # type: ignore[attr-defined]
    notify = reports.commands.notify
    notify.plan_events = _listened(notify.plan_events)


def _canary(_remote: object, _directory: str, phase: str) -> tuple[Sample, ...]:
    """Return samples of fixed work that is not done; their values are planted as the trial is made."""
    return tuple(
        Sample(
            phase=phase, operation="canary", metric=metric, statistic=statistic, value=1.0, host="local"
        )
        for metric in season.CANARIES
        for statistic in ("p50", "min", "max")
    )


def _with_figures(make: Callable[..., Trial]) -> Callable[..., Trial]:
    def make_planted(order: harness.Order, *rest: object) -> Trial:
        trial = make(order, *rest)
        return replace(trial, samples=_plant(order, trial.samples))

    return make_planted


def _plant(order: harness.Order, samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """Return samples with planted values where a season has any."""
    ordinal = order.release.ordinal if order.release.line == season.LINE else None
    config = int(order.deployment.config.settings.get("planted", 0))
    night, planted = TONIGHT.number, {("service_time", "p50"), ("service_time", "p99"), *season.SCATTER}

    def value(sample: Sample) -> float:
        if sample.metric in season.CANARIES:
            return season.canary(sample.metric, sample.statistic, order.trial, sample.phase, night)
        found = season.figure(sample.metric, sample.statistic, order.trial, night, ordinal, config)
        return found * (1 + 0.002 * (sample.iteration or 0))

    return tuple(
        replace(sample, value=value(sample))
        if sample.metric in season.CANARIES or (sample.metric, sample.statistic) in planted
        else sample
        for sample in samples
    )


def _by_night(run_trial: Callable[..., Trial]) -> Callable[..., Trial]:
    def run(order: harness.Order, system: System, paths: DataPaths, progress: Progress) -> Trial:
        if not order.night:
            TONIGHT.take_turn()
        if not TONIGHT.real_every or (TONIGHT.is_real and order.night):
            return run_trial(order, system, paths, progress)
        return _write_trial(order, paths)

    return run


def _write_trial(order: harness.Order, paths: DataPaths) -> Trial:
    """Seal a trial that was not run: the newest one that was, under another name, and said to be so."""
    for path in sorted(bundle.find(paths), key=lambda one: one.stat().st_mtime, reverse=True):
        like, intervals = bundle.read(path)
        if like.status is TrialStatus.COMPLETED:
            break
    else:
        raise AssertionError("the first night of a season is a real one")
    deployment, now = order.deployment, TONIGHT.now(UTC)
    trial = replace(
        like,
        id=order.trial,
        night=order.night,
        purpose=order.purpose,
        experiment=deployment.experiment.name,
        release=order.release,
        artifact=replace(order.artifact, location=""),
        config=named(deployment.config),
        started_at=now,
        finished_at=now + timedelta(seconds=20),
        remarks=(*order.remarks, Reason(kind="planted", text="no server was started for this trial")),
        samples=_plant(order, like.samples),
    )
    bundle.seal(bundle.stage(paths, trial.id), trial, intervals)
    return trial


def _with_fault(configure: Callable[..., None]) -> Callable[..., None]:
    def plant(self: fake.Fake, node: Node, cluster: Cluster) -> None:
        config = cluster.config
        faults = PLANTS.get(TONIGHT.fault, {}) if config.name == CONFIG else {}
        settings = {**config.settings, **faults}
        configure(self, node, replace(cluster, config=replace(config, settings=settings)))

    return plant


def _counted(write: Callable[[Progress, str], None]) -> Callable[[Progress, str], None]:
    def say(self: Progress, text: str) -> None:
        write(self, text)
        TONIGHT.say(text)

    return say


def _remembered(judge: Callable[..., JudgedHistory]) -> Callable[..., JudgedHistory]:
    def remember(*given: object) -> JudgedHistory:
        judged = judge(*given)
        TONIGHT.judgement = judged.judgement
        return judged

    return remember


def _listened(plan: Callable[..., NotificationPlan]) -> Callable[..., NotificationPlan]:
    def listen(*given: object) -> NotificationPlan:
        planned = plan(*given)
        TONIGHT.events += [
            {"kind": one.event.kind.value, "name": one.name, "handles": list(one.reported.handles)}
            for one in planned.updates
            if one.event
        ]
        return planned

    return listen


def write_if_new(path: Path, text: str) -> None:
    """Write a file as an operator would: only if something changes."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def lay_out(number: int, into: Path) -> Path:
    """Return the configuration of a night: new releases and settings are edits of its files."""
    configs = into / "configs"
    turns = (
        "remeasure_minutes: 60\nbisect: auto\nbisect_minutes: 120" if season.has_turns(number) else ""
    )
    version = f"{season.LINE}.{season.release_of(number)}"
    text = SUITE.format(turns=turns, version=version, sentinel=season.SENTINEL)
    write_if_new(configs / "suites" / "season.yaml", text)
    for name, settings in ((CONFIG, {"planted": season.config_of(number)}), ("watch", {})):
        text = CONFIG_TEXT.format(name=name, settings=json.dumps(settings))
        write_if_new(configs / "systems" / "fake" / f"{name}.yaml", text)
    return configs


def run(*words: str) -> int:
    """Run a command of Knickpoint in this process; give its exit code."""
    sys.argv = ["knickpoint", *words]
    try:
        cli.main()
    except SystemExit as end:
        return int(end.code or 0)
    raise AssertionError("main always exits")


def describe_changes(judgement: Judgement | None) -> list[dict[str, Any]]:
    """Return the changes of all incidents, as plain data."""
    return [
        {
            "incident": incident.name,
            "metric": change.series.key.metric,
            "statistic": change.series.key.statistic,
            "state": change.state.value,
            "after": str(change.last_before.trial),
            "until": str(change.first_after.trial),
            "change": change.relative_change,
            "cause": incident.cause.value,
            "is_news": incident.is_news,
        }
        for incident in (judgement.incidents if judgement else ())
        for change in (*incident.changes, *incident.fixed_by)
    ]


def hold(process: psutil.Process) -> dict[str, Any]:
    """Return what this process holds between two nights."""
    gc.collect()
    return {
        "rss_mb": round(process.memory_info().rss / 1e6, 1),
        "files": process.num_fds(),
        "threads": process.num_threads(),
        "children": len(process.children(recursive=True)),
    }


def run_night(number: int, into: Path, *, is_again: bool, real_every: int) -> dict[str, Any]:
    """Run the two commands of a night; give what it came to, and what this process holds after it."""
    global TONIGHT  # noqa: PLW0603  the patches look there
    TONIGHT = CurrentNight(number, into, is_again=is_again, real_every=real_every)
    if TONIGHT.fault == "disk-full":
        fill(into / "var")
    where = ("--data", str(into / "var"), "--configs", str(lay_out(number, into)))
    began_s = time.monotonic()
    code = run("nightly", "--suite", "season", *where)
    night_s = time.monotonic() - began_s
    judged = TONIGHT.judgement
    notified = run("notify", "--webhook", *where) if code in {0, 1, 3} and judged else None
    line = {
        "night": number,
        "pid": os.getpid(),
        "code": code,
        "notified": notified,
        "night_s": round(night_s, 2),
        "told_s": round(time.monotonic() - began_s - night_s, 2),
        "is_real": TONIGHT.is_real,
        "turns": TONIGHT.turns,
        "series": len(judged.series) if judged else 0,
        "verdict": judged.outcome.value if judged else "",
        "changes": describe_changes(judged),
        "news": [one.name for one in judged.incidents if one.is_news] if judged else [],
        "events": TONIGHT.events if notified == 0 else [],
    }
    TONIGHT.judgement = judged = None
    return {**line, **hold(psutil.Process())}


def main(arguments: Sequence[str]) -> None:
    """Run each night that standard input names, a number a line; answer with a line of JSON.

    `17 again` resumes night 17. What the commands print goes to standard error.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--real-every", type=int, default=0, help="Of calm nights; 0: all are real.")
    given = parser.parse_args(arguments)
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        patch()
        for asked in sys.stdin:
            number, *again = asked.split()
            answer = run_night(
                int(number), given.into, is_again=bool(again), real_every=given.real_every
            )
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
