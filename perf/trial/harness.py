"""One trial, from an empty host to a sealed bundle. `run_trial` is the order of everything.

The steps are in `servers`, the load in `measurement`; systems own neither order nor time. Expected
trouble becomes the trial's status and reason; a defect of ours escapes and is seen.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

from perf.history import bundle
from perf.history.faults import drop_faulty
from perf.hosts.canary import run_canary
from perf.hosts.facts import read_facts
from perf.hosts.lease import find_lost
from perf.hosts.testbed import price_per_hour_usd
from perf.hosts.tuning.readiness import prove
from perf.load.own_program import read_program_facts
from perf.load.programs import read_engine_facts
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.design import Deployment
from perf.model.errors import ConfigError, StepFailed
from perf.model.facts import find_drift
from perf.model.identity import named
from perf.model.metrics import CANARY_PHASES, PRICE_PER_HOUR, PRICES_FROM
from perf.model.results import (
    Artifact,
    Fact,
    Purpose,
    Reason,
    Release,
    Sample,
    Trial,
    TrialId,
    TrialStatus,
)
from perf.systems.contract import Cluster, System, name_profile
from perf.trial import placement
from perf.trial.attached import make_servers
from perf.trial.clocks import judge_clocks, read_clocks
from perf.trial.data_size import find_fitting_data
from perf.trial.kept_data import KeptData
from perf.trial.measurement import (
    LoadFindings,
    diagnose,
    judge,
    measure,
    summarize_load,
)
from perf.trial.method import read_method
from perf.trial.preflight import (
    check_access,
    check_fitness,
    end_leftovers,
    find_full_disks,
    freshen_disks,
)
from perf.trial.profiling import PROFILED, Profiler
from perf.trial.seconds import sample_seconds
from perf.trial.servers import NodeDied, Servers, find_error
from perf.trial.spent import Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to measure: a resolved deployment at one release, under an id of its own.

    `remarks` are said of the trial from the start, for example that something was planted in it. With
    `PROFILED` among them a profiler is attached.
    """

    trial: TrialId
    night: str
    purpose: Purpose
    deployment: Deployment
    release: Release
    artifact: Artifact
    remarks: tuple[Reason, ...] = ()


@dataclass(slots=True)
class Draft:
    """What is known of a trial so far; it is worth a bundle at any moment."""

    findings: LoadFindings = field(default_factory=LoadFindings)
    status: TrialStatus = TrialStatus.COMPLETED
    reasons: list[Reason] = field(default_factory=list)
    remarks: list[Reason] = field(default_factory=list)
    """In the order of the trial, those of its findings among them."""
    before: tuple[Fact, ...] = ()
    after: tuple[Fact, ...] = ()
    canaries: tuple[Sample, ...] = ()
    spent: Spent = field(default_factory=Spent)
    log_tail: str = ""

    def record(self, status: TrialStatus, kind: str, text: str, log_tail: str = "") -> None:
        """Note why the trial did not complete; the first log tail says most."""
        self.status = status
        self.reasons.append(Reason(kind=kind, text=text))
        self.log_tail = self.log_tail or log_tail

    def doubt(self, reasons: Sequence[Reason]) -> None:
        """Make the trial invalid if there is any reason to."""
        self.reasons += reasons
        if reasons:
            self.status = TrialStatus.INVALID


def run_trial(order: Order, system: System, paths: DataPaths, progress: Progress) -> Trial:
    """Measure one trial and seal its bundle.

    Raises:
        HostUnfit: the hosts cannot carry any trial; nothing was started and no bundle is left.
        KeyboardInterrupt: passed on after every process was stopped; no bundle is left.

    """
    deployment = order.deployment
    cluster = placement.place(deployment, order.release, order.artifact, paths.run)
    servers = make_servers(system, cluster, paths, progress)
    started_at, spent = datetime.now(UTC), Spent()
    end_leftovers(cluster, progress)
    check_fitness(deployment, system, cluster.nodes, cluster.clients)
    proven = prove(deployment, name_profile(system, order.release), paths.run, progress.report)
    staged = bundle.stage(paths, order.trial)
    bundle.write_settings(staged, deployment)
    draft = Draft(remarks=list(proven.remarks), spent=spent)
    profiler = Profiler(cluster, deployment.workload if PROFILED in order.remarks else None)
    try:
        check_access(deployment, cluster.clients)
        draft.before = read_environment(cluster, deployment) + proven.facts
        draft.remarks += find_fitting_data(
            deployment.workload,
            deployment.topology,
            draft.before,
            (node.remote.name for node in cluster.nodes),
        )
        servers.wipe()
        fresh = KeptData(servers, deployment).provide(spent) + freshen_disks(cluster, progress)
        _do_canaries(cluster, CANARY_PHASES[0], draft)
        spent.enter("install")
        servers.install()
        servers.configure()
        draft.before += fresh + read_method(system.name) + servers.facts()
        spent.enter("start")
        servers.start()
        with servers.naming_the_dead():
            servers.verify_version()
            draft.before += servers.prove_pinning() + _read_clocks(cluster, draft, "before the load")
            if draft.status is TrialStatus.COMPLETED:  # clocks that are apart would spoil the load
                _measure(servers, deployment, profiler, staged, draft)
            if draft.status is TrialStatus.COMPLETED:
                draft.doubt(servers.find_change())
            draft.after += read_environment(cluster, deployment) + proven.read_again() + fresh
            draft.after += read_method(system.name) + servers.facts() + servers.prove_pinning()
        draft.doubt((*find_drift(draft.before, draft.after), *find_lost(deployment.testbed)))
    except ConfigError as mistake:
        draft.record(TrialStatus.FAILED, "configure-failed", str(mistake))
    except NodeDied as death:
        draft.record(TrialStatus.INVALID, "node-died", _report(death), death.log_tail)
    except StepFailed as failure:
        draft.record(TrialStatus.FAILED, f"{failure.step}-failed", _report(failure), failure.log_tail)
    finally:
        _clean_up(servers, KeptData(servers, deployment), staged, draft)
    trial = _trial(order, draft, started_at)
    trial = drop_faulty(replace(trial, samples=(*trial.samples, *profiler.costs(trial.samples))))
    bundle.seal(staged, trial, draft.findings.outcome.intervals)
    return trial


def _measure(
    servers: Servers, deployment: Deployment, profiler: Profiler, staged: Path, draft: Draft
) -> None:
    """Offer the load, note what it brings to light as it comes, judge it, and look at the clocks."""
    with sample_seconds(servers.cluster, staged) as unsampled:
        for found in measure(servers, deployment, profiler, draft.spent):
            draft.findings += found
            draft.remarks += found.remarks
    draft.spent.enter("finish")
    draft.remarks += (*unsampled, *profiler.keep(staged))
    draft.doubt(judge(draft.findings, deployment))
    draft.after += _read_clocks(servers.cluster, draft, "after the load")


def _read_clocks(cluster: Cluster, draft: Draft, when: str) -> tuple[Fact, ...]:
    """Read how far the clocks of several client hosts are apart; doubt a trial that they spoil."""
    clocks = read_clocks(cluster.clients, when)
    limit_ms = cluster.testbed.validity.max_clock_offset_ms
    reasons, unsure = judge_clocks(clocks.facts, when, limit_ms)
    draft.doubt(reasons)
    draft.remarks += (*clocks.remarks, *unsure)
    return clocks.facts


def seal_unfetched(order: Order, why: str, paths: DataPaths) -> Trial:
    """Seal the bundle of a trial whose release could not be had: it failed, and nothing was begun."""
    staged = bundle.stage(paths, order.trial)
    bundle.write_settings(staged, order.deployment)
    draft = Draft()
    draft.record(TrialStatus.FAILED, "fetch-failed", why)
    trial = _trial(order, draft, datetime.now(UTC))
    bundle.seal(staged, trial, draft.findings.outcome.intervals)
    return trial


def _report(failure: StepFailed) -> str:
    """Return what failed where, with the last error of the database's log if it has one."""
    error = find_error(failure.log_tail)
    return f"{failure.sentence}; the last error in the log: {error}" if error else failure.sentence


def read_environment(cluster: Cluster, deployment: Deployment) -> tuple[Fact, ...]:
    """Read the facts of every distinct host, which programs offer the load, and the price."""
    engine, program = deployment.engine, deployment.workload.program
    remotes = {placed.remote.name: placed.remote for placed in cluster.places}
    return (
        *(fact for remote in remotes.values() for fact in read_facts(remote)),
        *(fact for client in cluster.clients for fact in read_engine_facts(engine, client)),
        *(
            fact
            for client in cluster.clients
            if program
            for fact in read_program_facts(program, client)
        ),
        *_state_price(cluster),
    )


def _state_price(cluster: Cluster) -> tuple[Fact, ...]:
    price = price_per_hour_usd(cluster.testbed, cluster.topology.servers)
    if price is None:
        return ()
    source = cluster.testbed.prices_from
    return (
        Fact(host="", name=PRICE_PER_HOUR, value=f"{price:.10g}"),
        *((Fact(host="", name=PRICES_FROM, value=source.text),) if source else ()),
    )


def _do_canaries(cluster: Cluster, phase: str, draft: Draft) -> None:
    """Do the fixed work that watches the hosts of servers, once on each; note a host that cannot."""
    for node in {node.remote.name: node for node in cluster.nodes}.values():
        try:
            draft.canaries += run_canary(node.remote, str(Path(node.work_dir).parent), phase)
        except StepFailed as failure:
            text = f"{phase}: no fixed work was done: {failure.sentence}"
            draft.remarks.append(Reason(kind="canary-missing", text=text))


def _clean_up(servers: Servers, data: KeptData, staged: Path, draft: Draft) -> None:
    """Leave the hosts as they were; a clean-up that fails is one more reason, and costs no bundle."""
    draft.spent.enter("finish")
    if draft.status is not TrialStatus.COMPLETED:
        draft.reasons += find_full_disks(servers.cluster)
    with suppress(StepFailed):  # of a host out of reach: what is wrong is found by the next trial, too
        draft.remarks += data.doubt(draft.reasons)
    undone = servers.clean_up(staged)
    for text in undone:
        draft.record(TrialStatus.FAILED, "clean-up-failed", text)
    if not undone:
        _do_canaries(servers.cluster, CANARY_PHASES[1], draft)


def _trial(order: Order, draft: Draft, started_at: datetime) -> Trial:
    deployment = order.deployment
    findings = draft.findings
    diagnostics = diagnose(findings, deployment.workload)
    spent = tuple(draft.spent.samples())
    return Trial(
        id=order.trial,
        night=order.night,
        purpose=order.purpose,
        experiment=deployment.experiment.name,
        release=order.release,
        artifact=replace(order.artifact, location=""),
        topology=named(deployment.topology),
        testbed=named(deployment.testbed),
        testbed_class=deployment.testbed.testbed_class,
        workload=named(deployment.workload),
        config=named(deployment.config),
        engine=deployment.engine,
        seed=deployment.workload.seed,
        started_at=started_at,
        # A clock that is stepped meanwhile must not let a trial end before it began.
        finished_at=started_at + timedelta(seconds=sum(sample.value for sample in spent)),
        status=draft.status,
        reasons=tuple(draft.reasons),
        remarks=tuple(dict.fromkeys((*order.remarks, *draft.remarks, *diagnostics.remarks))),
        steps=findings.load_steps,
        environment_before=draft.before,
        environment_after=draft.after,
        samples=(
            *summarize_load(findings, deployment),
            *diagnostics.samples,
            *draft.canaries,
            *spent,
        ),
        counters=findings.outcome.counters,
        log_tail=draft.log_tail,
        harness_version=version("knickpoint"),
    )
