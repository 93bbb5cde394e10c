"""Are the hosts of a testbed tuned as a release needs them? Look, switch profiles, refuse, look again.

Hosts are asked at the same time, each with one command. Those that cannot be reached are reported with
those that drifted, all at once.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias, TypeVar

from perf.hosts.remote import Remote
from perf.hosts.testbed import base_dir, open_host
from perf.hosts.tuning.privileged import PROGRAM, apply_profile
from perf.hosts.tuning.profiles import CLIENT, SERVER, TuningProfile, label, list_profiles, load_profile
from perf.hosts.tuning.proof import (
    HostAnswer,
    SettingFinding,
    SettingState,
    compare,
    describe_found,
    explain,
    read,
)
from perf.model.design import Deployment, Host, Testbed
from perf.model.errors import HostUnfit, StepFailed
from perf.model.facts import TUNING, TUNING_UNAVAILABLE
from perf.model.results import Fact, Reason

UNAVAILABLE_REMARK = "tuning-unavailable"
_EVERY = 1_000_000

Report: TypeAlias = Callable[[str], None]
T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A host as it is tuned; `roles` are those of the testbed's hosts that lie on it."""

    remote: Remote
    roles: tuple[str, ...]
    work_dir: str

    @property
    def is_server(self) -> bool:
        """Return whether a database runs on it; a host of both is tuned for that."""
        return "server" in self.roles


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCheck:
    """A machine, the profile it is held to, and what it said; `problem` if it said nothing."""

    machine: Machine
    profile: TuningProfile
    answer: HostAnswer | None
    problem: str = ""
    findings: tuple[SettingFinding, ...] = ()

    @property
    def host(self) -> str:
        """Return the machine's name in messages."""
        return self.machine.remote.name

    @property
    def marker(self) -> str:
        """Return what the host was last tuned to; empty if it was not since it booted."""
        return self.answer.marker if self.answer else ""

    @property
    def is_marked(self) -> bool:
        """Return whether the host was last tuned to this very profile."""
        return self.marker == label(self.profile)

    @property
    def troubles(self) -> tuple[SettingFinding, ...]:
        """Return the settings that refuse the host."""
        return tuple(finding for finding in self.findings if finding.is_trouble)


def list_machines(
    testbed: Testbed, run_dir: Path, *, servers: int = _EVERY, clients: int = _EVERY
) -> tuple[Machine, ...]:
    """Return the machines of the first so many servers and clients, each once.

    On a local testbed all hosts are one machine; over SSH, hosts of one address and port are.
    """
    chosen = [host for host in testbed.own_hosts if host.role == "server"][:servers]
    chosen += [host for host in testbed.own_hosts if host.role == "client"][:clients]
    places: dict[tuple[str, int], list[Host]] = {}
    for host in chosen:
        place = ("", 0) if testbed.transport == "local" else (host.address, host.port)
        places.setdefault(place, []).append(host)
    return tuple(
        Machine(
            remote=open_host(testbed, hosts[0]),
            roles=tuple(dict.fromkeys(host.role for host in hosts)),
            work_dir=base_dir(testbed, hosts[0], run_dir),
        )
        for hosts in places.values()
    )


def look_at(
    machines: tuple[Machine, ...], testbed: Testbed, profile_name: str | None
) -> tuple[MachineCheck, ...]:
    """Read all settings of each machine, and compare them.

    Servers are held to the profile of that name; without one, to that which they were last tuned to,
    or to that of servers in general. Clients have a profile of their own.
    """
    return _together(machines, lambda one: _look_at_one(one, testbed, profile_name))


def _together(items: tuple[T, ...], act: Callable[[T], U]) -> tuple[U, ...]:
    """Do the same with all hosts at once; they wait for the network, not for this machine."""
    with ThreadPoolExecutor(max_workers=max(1, len(items))) as pool:
        return tuple(pool.map(act, items))


def _look_again(look: MachineCheck, testbed: Testbed) -> MachineCheck:
    return _look_at_one(look.machine, testbed, look.profile.name)


def _name_unavailable(testbed: Testbed) -> Mapping[str, str]:
    return testbed.tuning.unavailable if testbed.tuning else {}


def _look_at_one(machine: Machine, testbed: Testbed, profile_name: str | None) -> MachineCheck:
    asked = load_profile((profile_name or SERVER) if machine.is_server else CLIENT)
    try:
        answer = read(machine.remote, asked.settings, machine.work_dir)
    except StepFailed as failure:
        return MachineCheck(machine=machine, profile=asked, answer=None, problem=failure.why)
    marked = answer.marker.partition("@")[0]
    # All profiles of servers have the same settings, read in the same way: they differ in values.
    held_to = (
        load_profile(marked)
        if machine.is_server and profile_name is None and marked in list_profiles()
        else asked
    )
    findings = compare(held_to, answer.values, _name_unavailable(testbed))
    return MachineCheck(machine=machine, profile=held_to, answer=answer, findings=findings)


def tune(looks: tuple[MachineCheck, ...], testbed: Testbed, report: Report) -> tuple[MachineCheck, ...]:
    """Tune each machine to the profile it was held to, and look again.

    Raises:
        HostUnfit: machines that cannot be reached, or that this user may not tune, all of them.

    """

    def tune_one(look: MachineCheck) -> tuple[MachineCheck, str]:
        machine, answer = look.machine, look.answer
        if answer is None:
            return look, ""
        try:
            complaints = apply_profile(
                machine.remote,
                look.profile,
                machine.work_dir,
                _name_unavailable(testbed),
                is_root=answer.is_root,
            )
        except (HostUnfit, StepFailed) as failure:
            why = failure.why if isinstance(failure, StepFailed) else str(failure)
            return replace(look, answer=None, problem=why), ""
        return _look_again(look, testbed), complaints

    done = _together(looks, tune_one)
    if problems := [f"{look.host}: {look.problem}" for look, _ in done if look.problem]:
        raise HostUnfit("these hosts could not be tuned:\n  " + "\n  ".join(problems))
    for before, (after, complaints) in zip(looks, done, strict=True):
        for line in describe_tuning(before, after):
            report(line)
        for line in complaints.splitlines():
            report(f"{after.host}: {line}")
    return tuple(look for look, _ in done)


def describe_tuning(before: MachineCheck, after: MachineCheck) -> Iterator[str]:
    """Describe what tuning changed on a host: each setting, before → after."""
    host, was, now = after.host, before.marker, after.marker
    changed = [
        f"{host}: {new.setting.name}: {describe_found(old)} → {describe_found(new)}"
        for old, new in zip(before.findings, after.findings, strict=True)
        if old.found != new.found
    ]
    if changed or was != now:
        came = "not tuned since it booted"
        if was:
            came = f"was {was}" if was != now else "had drifted"
        count = "1 setting" if len(changed) == 1 else f"{len(changed)} settings"
        yield f"{host}: tuned to {now or after.profile.name} ({came}), {count} changed"
    else:
        yield f"{host}: is tuned to {was} already, nothing changed"
    yield from changed


def refuse_drifted(looks: tuple[MachineCheck, ...], testbed: Testbed) -> None:
    """Refuse hosts that are not as wanted; raise HostUnfit with every difference and every host."""
    lines = [line for look in looks for line in _complain(look, testbed)]
    if lines:
        raise HostUnfit(
            f"hosts of testbed {testbed.name} are not tuned as they are to be:\n  " + "\n  ".join(lines)
        )


def _complain(look: MachineCheck, testbed: Testbed) -> Iterator[str]:
    if look.answer is None:
        yield f"{look.host}: {look.problem}"
        return
    if not look.marker and testbed.tuning is not None:
        yield f"{look.host}: never tuned since it booted; run: knickpoint host tune {testbed.name}"
    for finding in look.troubles:
        yield from explain(look.host, finding, testbed.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """Hosts that were proven before a trial; empty where a testbed vouches for no tuning."""

    looks: tuple[MachineCheck, ...]
    testbed: Testbed

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Return what each host was tuned to, and what of that it does not have."""
        return tuple(fact for look in self.looks for fact in _state_facts(look))

    @property
    def remarks(self) -> tuple[Reason, ...]:
        """Describe of the trial what its hosts do not have."""
        return _remark(self.looks)

    def read_again(self) -> tuple[Fact, ...]:
        """Read all settings again, for the facts after the trial: what drifted stands in them.

        Raises:
            StepFailed: a host cannot be reached any more.

        """
        again = _together(self.looks, lambda one: _look_again(one, self.testbed))
        for look in again:
            if look.answer is None:
                raise StepFailed("reading the tuning", look.host, look.problem)
        return tuple(fact for look in again for fact in _state_facts(look))


def prove(deployment: Deployment, profile: str, run_dir: Path, report: Report) -> Proven:
    """See that the hosts of a trial are tuned; switch to another profile where that is all.

    Raises:
        HostUnfit: hosts that were never tuned, that drifted or that cannot be reached, all at once;
            nothing is switched then.

    """
    testbed = deployment.testbed
    if testbed.tuning is None:
        return Proven(looks=(), testbed=testbed)
    looks = check_readiness(deployment, profile, run_dir)
    if late := tuple(look for look in looks if not look.is_marked):
        tuned = {look.host: look for look in tune(late, testbed, report)}
        looks = tuple(tuned.get(look.host, look) for look in looks)
        refuse_drifted(looks, testbed)
        lines = [
            f"{look.host}: wanted {label(look.profile)}, it applied {look.marker or 'nothing'}"
            for look in looks
            if not look.is_marked
        ]
        if lines:
            raise HostUnfit(
                f"{PROGRAM} belongs to another version of Knickpoint; install it again, with Ansible "
                "(infra/) or from `knickpoint host script`:\n  " + "\n  ".join(lines)
            )
    return Proven(looks=looks, testbed=testbed)


def check_readiness(deployment: Deployment, profile: str, run_dir: Path) -> tuple[MachineCheck, ...]:
    """Refuse the hosts of a trial that no switch of profiles would change; change nothing.

    Raises:
        HostUnfit: as `prove`.

    """
    testbed, topology = deployment.testbed, deployment.topology
    if testbed.tuning is None:
        return ()
    machines = list_machines(testbed, run_dir, servers=topology.servers, clients=topology.clients)
    looks = look_at(machines, testbed, profile)
    refuse_drifted(tuple(_without_switched(look) for look in looks), testbed)
    return looks


def _without_switched(look: MachineCheck) -> MachineCheck:
    """Leave of a host that is to be switched only the troubles that switching cannot change."""
    if look.is_marked:
        return look
    kept = (
        one
        for one in look.findings
        if one.state is not SettingState.DIFFERS or one.setting.apply is None
    )
    return replace(look, findings=tuple(kept))


def _state_facts(look: MachineCheck) -> Iterator[Fact]:
    drift = ", ".join(
        f"{finding.setting.name} {describe_found(finding)} instead of {finding.setting.value}"
        for finding in look.troubles
    )
    marker = look.marker or "none"
    yield Fact(host=look.host, name=TUNING, value=f"{marker}, but {drift}" if drift else marker)
    names = [one.setting.name for one in look.findings if one.state is SettingState.EXCUSED]
    yield Fact(host=look.host, name=TUNING_UNAVAILABLE, value=", ".join(names) or "none")


def _remark(looks: tuple[MachineCheck, ...]) -> tuple[Reason, ...]:
    """Describe which settings were declared unavailable, and why, each with the hosts that it is of."""
    hosts: dict[tuple[str, str], list[str]] = {}
    for look in looks:
        for one in look.findings:
            if one.state is SettingState.EXCUSED and one.declared is not None:
                hosts.setdefault((one.setting.name, one.declared), []).append(look.host)
    names: dict[tuple[str, str], list[str]] = {}
    for (name, why), places in hosts.items():
        names.setdefault((why, ", ".join(places)), []).append(name)
    if not names:
        return ()
    text = "; ".join(f"{', '.join(some)} on {places} ({why})" for (why, places), some in names.items())
    return (Reason(kind=UNAVAILABLE_REMARK, text=f"measured without the tuning of {text}"),)
