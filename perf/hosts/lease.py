"""The lease of a testbed: its hosts belong to one job at a time, whoever starts it and from where.

It lies on the hosts themselves (`lease_file`), so that jobs of different machines, data directories and
testbeds that name the same host keep apart. A job takes all hosts or none, in the order of their
addresses. It renews between trials; while one is measured, nothing of this touches a host.

A holder whose process is gone is known to be so on its own machine, and is succeeded at once;
elsewhere once its time is up. Whoever lives and is in time is never robbed. A testbed with transport
local has no lease: the lock of the data directory and the ports of the servers keep jobs apart there.
"""

import contextlib
import json
import random
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypeAlias

from perf.hosts.remote import Remote, run_repeatable
from perf.hosts.testbed import open_host
from perf.local.this_process import is_known_gone, name_owner, name_process
from perf.model.design import Testbed
from perf.model.errors import MeasureError, StepFailed
from perf.model.results import Reason
from perf.model.shown import format_duration

LOST = "lease-lost"
# From taking a testbed to its first trial, with all that is to be fetched before.
_FIRST_S = 3600.0
_WAIT_S = 60.0
# Each look at a leased host is a connection to one that may be measuring.
_POLL_S = 10.0

Key: TypeAlias = tuple[str, int, str]
Report: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasePlace:
    """Where the lease of one host lies."""

    remote: Remote
    address: str
    port: int
    work_dir: str

    @property
    def key(self) -> Key:
        """What tells places apart, and puts them in the order in which every job asks for them."""
        return self.address, self.port, self.work_dir


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds a host, as it says itself. `left_s` is what the host's own clock leaves it."""

    token: str
    owner: str
    purpose: str
    process: str
    acquired: str
    expires: str
    left_s: float

    def describe(self) -> str:
        """Describe by whom, for what and until when a host is held."""
        left = f"about {format_duration(self.left_s)} left" if self.left_s > 0 else "its time is up"
        return f"{self.owner} for {self.purpose}, from {self.acquired} until {self.expires} ({left})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseStatus:
    """How it stands with the lease of a host: held, or free, or a file that is none, and why."""

    place: LeasePlace
    holder: Holder | None = None
    fault: str = ""
    seen: str = ""
    """By what this very state can be broken, and no later one."""


class Leased(MeasureError):  # noqa: N818  a claim about the testbed
    """Somebody else holds a host."""


_held: dict[Key, tuple[LeasePlace, str]] = {}
"""What this process holds, with the token it holds it by."""
_left: list[LeasePlace] = []
"""What inner holds are done with, while an outer one goes on."""


def list_places(testbeds: Iterable[Testbed]) -> tuple[LeasePlace, ...]:
    """Give where the leases of all hosts of some testbeds lie, each once, in the order to take them."""
    places = [
        LeasePlace(
            remote=open_host(testbed, host),
            address=host.address,
            port=host.port,
            work_dir=host.work_dir,
        )
        for testbed in testbeds
        if testbed.transport == "ssh"
        for host in testbed.own_hosts
    ]
    # Of several names for one host, the first.
    by_key = {place.key: place for place in reversed(places)}
    return tuple(by_key[key] for key in sorted(by_key))


@contextmanager
def hold(testbeds: Iterable[Testbed], purpose: str, report: Report) -> Iterator[None]:
    """Hold all hosts of some testbeds; what this process holds already, it holds on.

    Raises:
        Leased: somebody else keeps holding a host; says who, for what and until when.
        MeasureError: the file of a lease is none.
        StepFailed: a host cannot be reached, or cannot keep a lease.

    """
    with hold_places(list_places(testbeds), purpose, report):
        yield


@contextmanager
def hold_places(
    places: Sequence[LeasePlace],
    purpose: str,
    report: Report,
    *,
    wait_s: float = _WAIT_S,
    poll_s: float = _POLL_S,
) -> Iterator[None]:
    """Hold places in their order; wait up to `wait_s` for those that somebody else holds."""
    new = tuple(place for place in places if place.key not in _held)
    # One token for all that a process holds: two addresses may turn out to be one host.
    token = next((token for _, token in _held.values()), secrets.token_hex(8))
    by = {"token": token, "owner": name_owner(), "purpose": purpose, "process": name_process()}
    _await(new, by, report, wait_s, poll_s)
    _held.update({place.key: (place, token) for place in new})
    try:
        yield
    finally:
        for place in new:
            del _held[place.key]
        _leave(new, token, report)


def renew(testbed: Testbed, for_s: float) -> None:
    """Make sure that what this process holds of a testbed is still held, and is for so long from now.

    Raises:
        MeasureError: a lease was lost; says how and to whom.
        StepFailed: a host cannot be reached.

    """
    lost = [
        _describe_loss(place, answer)
        for place, token in _holdings(testbed)
        if (answer := _ask(place, ask="renew", token=token, for_s=for_s))["state"] != "held"
    ]
    if lost:
        kept = "nothing is measured any more; finished trials are kept, the same command resumes there"
        raise MeasureError("\n".join((*lost, kept)))


@contextmanager
def lend(testbed: Testbed, report: Report) -> Iterator[None]:
    """Leave what this process holds of a testbed to a program that it starts, and take it again.

    Raises:
        Leased: somebody else took a host in between.
        StepFailed: a host cannot be reached.

    """
    mine = _holdings(testbed)
    for place, token in mine:
        _ask(place, ask="release", token=token)
    try:
        yield
    finally:
        if mine:
            purpose = "a comparison with another installation"
            by = {"token": mine[0][1], "owner": name_owner(), "purpose": purpose}
            places = [place for place, _ in mine]
            _await(places, by | {"process": name_process()}, report, _WAIT_S, _POLL_S)


def find_lost(testbed: Testbed) -> tuple[Reason, ...]:
    """Return a reason to doubt what was just measured for each host whose lease was lost meanwhile.

    Raises:
        StepFailed: a host cannot be reached.

    """
    return tuple(
        Reason(kind=LOST, text=f"{_describe_loss(place, answer)}, so another job may have run there")
        for place, token in _holdings(testbed)
        if (answer := _ask(place, ask="check", token=token))["state"] != "held"
    )


def look(place: LeasePlace) -> LeaseStatus:
    """Look at the lease of a host, and change nothing.

    Raises:
        StepFailed: the host cannot be reached.

    """
    answer = _ask_for_any(place, {"ask": "show"})
    if answer["state"] == "corrupt":
        return LeaseStatus(place=place, fault=answer["why"], seen=answer["seen"])
    holder = _read_holder(answer)
    return LeaseStatus(place=place, holder=holder, seen=holder.token if holder else "")


def break_lease(status: LeaseStatus) -> bool:
    """Remove the lease of a host in exactly this state; return whether it was still there.

    Raises:
        StepFailed: the host cannot be reached.

    """
    request = {"ask": "break", "by": name_owner(), "token": status.seen}
    return bool(_ask_for_any(status.place, request)["state"] == "free")


def _await(
    places: Sequence[LeasePlace], by: Mapping[str, str], report: Report, wait_s: float, poll_s: float
) -> None:
    give_up_s, is_reported = time.monotonic() + wait_s, False
    while True:
        try:
            _take_all(places, by, report)
        except Leased as refused:
            if time.monotonic() >= give_up_s:
                raise
            if not is_reported:
                report(f"{refused}\nwaiting up to {wait_s:g} s")
            is_reported = True
            # Two jobs that know the same hosts by other names may ask in other orders: not in step.
            time.sleep(poll_s * random.uniform(0.5, 1.5))  # noqa: S311  no secret
        else:
            return


def _take_all(places: Sequence[LeasePlace], by: Mapping[str, str], report: Report) -> None:
    """Take all places or none."""
    asked: list[LeasePlace] = []
    try:
        for place in places:
            # Noted first: where an answer was lost on its way, the lease may be there.
            asked.append(place)
            _take(place, by, report)
    except Leased:
        _leave(asked[:-1], by["token"], report)
        raise
    except BaseException:
        _leave(asked, by["token"], report)
        raise


def _leave(places: Sequence[LeasePlace], token: str, report: Report) -> None:
    """Give places back, at the end of the outermost hold.

    Not before: one of them may be a host that an outer hold has under another name.
    """
    _left.extend(places)
    if _held:
        return
    done = tuple(_left)
    _left.clear()
    for place in done:
        # What cannot be given back ends by itself; the job's own trouble must not be hidden by it.
        try:
            _ask(place, ask="release", token=token)
        except MeasureError as problem:
            first, *_ = str(problem).splitlines()
            report(f"{place.remote.name}: its lease is not given back, and ends by its time: {first}")


def _take(place: LeasePlace, by: Mapping[str, str], report: Report) -> None:
    gone = ""
    while True:
        answer = _ask(place, ask="take", by=dict(by), for_s=_FIRST_S, gone=gone)
        if answer["state"] == "held":
            break
        holder = _read_holder(answer)
        if holder is None or not _is_gone(holder):
            by_whom = holder.describe() if holder else "somebody"
            raise Leased(
                f"{place.remote.name} is held by {by_whom}; "
                "wait for that job, or end it (see: knickpoint host lease --help)"
            )
        gone = holder.token
    if over := answer["over"]:
        why = (
            "its process is gone" if over["token"] == gone else f"its time was up at {over['expires']}"
        )
        report(f"{place.remote.name}: took over from {over['owner']} ({over['purpose']}): {why}")


def _is_gone(holder: Holder) -> bool:
    # What this process holds it does not ask for: its own name on a lease is a leftover of its own.
    return holder.process == name_process() or is_known_gone(holder.process)


def _holdings(testbed: Testbed) -> tuple[tuple[LeasePlace, str], ...]:
    return tuple(_held[place.key] for place in list_places([testbed]) if place.key in _held)


def _describe_loss(place: LeasePlace, answer: Mapping[str, Any]) -> str:
    ended, holder = answer["ended"], _read_holder(answer)
    how = f"was {ended['how']} by {ended['by']} at {ended['at']}" if ended else "is gone"
    if ended and ended["how"] != "broken":
        how = f"ended ({ended['how']}) and was taken by {ended['by']} at {ended['at']}"
    now = f"; the host is held by {holder.describe()}" if holder else ""
    return f"{place.remote.name}: the lease of this job {how}{now}"


def _read_holder(answer: Mapping[str, Any]) -> Holder | None:
    found = answer["holder"]
    if found is None:
        return None
    names = ("token", "owner", "purpose", "process", "acquired", "expires")
    return Holder(**{name: found[name] for name in names}, left_s=answer["left_s"])


def _ask(place: LeasePlace, **request: Any) -> Mapping[str, Any]:  # noqa: ANN401  JSON
    answer = _ask_for_any(place, request)
    if answer["state"] == "corrupt":
        raise MeasureError(
            f"{place.remote.name}: its holder is unknown: {answer['why']}\n"
            "see that no job runs there, then: knickpoint host lease TESTBED --break"
        )
    return answer


def _ask_for_any(place: LeasePlace, request: Mapping[str, Any]) -> Mapping[str, Any]:
    program = files("perf.hosts").joinpath("lease_file.py").read_text(encoding="utf-8")
    words = ("python3", "-I", "-S", "-", place.work_dir, json.dumps(request))
    done = run_repeatable(place.remote, words, stdin=program, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        why = f"python3 there ended with exit {done.returncode}: {last}"
        raise StepFailed("lease", place.remote.name, why)
    with contextlib.suppress(ValueError):
        answer: Mapping[str, Any] = json.loads(done.stdout)
        return answer
    raise StepFailed("lease", place.remote.name, f"no answer but {done.stdout[:200]!r}")
