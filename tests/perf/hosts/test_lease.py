"""A testbed belongs to one job at a time: all hosts or none, whoever competes, crashes or is robbed."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from near_host import NearHost

from perf.hosts import lease
from perf.hosts.lease import Leased, LeasePlace, break_lease, find_lost, hold, hold_places, look, renew
from perf.hosts.lease_file import LEASE
from perf.hosts.remote import SshHost
from perf.local import this_process
from perf.local.this_process import is_known_gone, name_owner, name_process
from perf.model.design import Host, Testbed
from perf.model.errors import MeasureError, StepFailed

CONTENDER = Path(__file__).with_name("contender.py")
HOSTS = ("db-1", "db-2", "db-3")


@pytest.fixture
def testbed(
    tmp_path: Path, make_testbed: Callable[..., Testbed], monkeypatch: pytest.MonkeyPatch
) -> Testbed:
    """Three hosts "over SSH" that are directories of this machine."""
    hosts = tuple(
        Host(name=name, address=name, role="server", work_dir=str(tmp_path / name)) for name in HOSTS
    )
    monkeypatch.setattr(lease, "open_host", lambda _, host: NearHost(host.name))
    return make_testbed(name="rack", transport="ssh", hosts=hosts)


def places_of(testbed: Testbed) -> tuple[LeasePlace, ...]:
    return lease.list_places([testbed])


def owners(testbed: Testbed) -> list[str]:
    return [one.holder.owner if one.holder else "" for one in map(look, places_of(testbed))]


def take_as_another(places: tuple[LeasePlace, ...], process: str = "elsewhere:1/4711/1") -> None:
    by = {"token": "theirs", "owner": "anna@ci-1", "purpose": "nightly of suite x", "process": process}
    for place in places:
        asked = {"ask": "take", "by": by, "for_s": 7200.0, "gone": ""}
        assert lease._ask(place, **asked)["state"] == "held"  # noqa: SLF001  as another job asks


def give_back_as_another(places: tuple[LeasePlace, ...]) -> None:
    for place in places:
        lease._ask(place, ask="release", token="theirs")  # noqa: S106, SLF001  no secret


@contextmanager
def held_by_another(
    places: tuple[LeasePlace, ...], process: str = "elsewhere:1/4711/1"
) -> Iterator[None]:
    """Let a job of another machine hold places."""
    take_as_another(places, process)
    yield
    give_back_as_another(places)


def pass_hour(place: LeasePlace) -> None:
    """Let the time of whoever holds a place be up."""
    path = Path(place.work_dir) / LEASE
    content = json.loads(path.read_text())
    content["holder"] |= {"expires_since_boot_s": 0.0, "expires_s": 0.0}
    path.write_text(json.dumps(content))


def test_all_hosts_are_held_and_given_back(testbed: Testbed) -> None:
    with hold([testbed], "nightly of suite x", print):
        assert owners(testbed) == [name_owner()] * 3
        renew(testbed, 60.0)
        assert find_lost(testbed) == ()
        (first, *_) = map(look, places_of(testbed))
        assert first.holder is not None
        assert 55 < first.holder.left_s <= 60
        assert re.match(
            rf"{name_owner()} for nightly of suite x, from .* UTC until .* UTC \(about \d+ s left\)",
            first.holder.describe().replace("1 min 00", "60"),
        )
    assert owners(testbed) == [""] * 3


@pytest.mark.parametrize("trouble", [KeyboardInterrupt, MeasureError])
def test_it_is_given_back_however_the_job_ends(testbed: Testbed, trouble: type[BaseException]) -> None:
    with pytest.raises(trouble), hold([testbed], "a job", print):
        raise trouble
    assert owners(testbed) == [""] * 3


def test_what_a_process_holds_it_holds_once(testbed: Testbed) -> None:
    # A bisection inside of a night, and a testbed of another name on one of the same hosts.
    other = replace(testbed, name="one", hosts=testbed.hosts[1:2])
    with hold([testbed], "a night", print):
        with hold([testbed, other], "a bisection", print):
            purposes = {one.holder.purpose for one in map(look, places_of(testbed)) if one.holder}
            assert purposes == {"a night"}
        renew(testbed, 60.0)
        assert owners(testbed) == [name_owner()] * 3


def test_a_host_of_two_names_is_called_by_its_first(testbed: Testbed) -> None:
    first = testbed.hosts[0]
    twice = replace(testbed, hosts=(first, replace(first, name="load-1", role="client")))
    assert [place.remote.name for place in places_of(twice)] == ["db-1"]


def test_two_addresses_of_one_host_are_held_together(testbed: Testbed) -> None:
    first = testbed.hosts[0]
    again = replace(first, name="db-1-again", address="db-1.again", role="client")
    twice = replace(testbed, hosts=(first, again))
    with hold([twice], "a job", print):
        renew(twice, 60.0)
    assert owners(testbed) == [""] * 3


def test_an_inner_hold_does_not_give_back_what_an_outer_one_has_by_another_name(
    testbed: Testbed,
) -> None:
    again = replace(testbed.hosts[0], name="db-1-again", address="db-1.again")
    with hold([testbed], "a night", print):
        with hold([replace(testbed, hosts=(again,))], "a bisection", print):
            pass
        renew(testbed, 60.0)
        assert owners(testbed) == [name_owner()] * 3
    assert owners(testbed) == [""] * 3


def test_a_directory_of_somebody_else_is_refused(testbed: Testbed, tmp_path: Path) -> None:
    # Whoever may write there could put a link in the way, and have the lease written through it.
    first = testbed.hosts[0]
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)
    for name in ("link", "open"):
        one = replace(testbed, hosts=(replace(first, work_dir=str(tmp_path / name)),))
        with pytest.raises(StepFailed, match="must be a directory of user"), hold([one], "x", print):
            pass
    assert not list((tmp_path / "real").iterdir())


def test_a_process_that_proc_hides_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    here, pid, born = name_process().split("/")

    def hide(_pid: str) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(this_process, "name_process", hide)  # as /proc with hidepid=2
    assert not is_known_gone(f"{here}/{pid}/{born}")
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    assert is_known_gone(f"{here}/{ended.pid}/1")


def test_a_testbed_on_this_machine_has_no_lease(make_testbed: Callable[..., Testbed]) -> None:
    local = make_testbed()
    with hold([local], "a job", print):
        renew(local, 60.0)
        assert lease.list_places([local]) == ()


def test_who_waits_is_reported_by_whom_for_what_and_until_when(testbed: Testbed) -> None:
    reported: list[str] = []
    places = places_of(testbed)
    with (
        held_by_another(places[2:]),
        pytest.raises(Leased, match=r"db-3 is held by anna@ci-1 for nightly of suite x, from .* until"),
        hold_places(places, "mine", reported.append, wait_s=0.05, poll_s=0.01),
    ):
        pytest.fail("held what another job holds")
    assert owners(testbed) == [""] * 3, "some hosts stayed held"
    (text,) = reported
    assert "about 2 h 00 min left" in text
    assert text.endswith("waiting up to 0.05 s")
    with hold_places(places, "mine", reported.append, wait_s=0):
        assert owners(testbed) == [name_owner()] * 3


def test_who_waits_long_enough_is_next(testbed: Testbed, monkeypatch: pytest.MonkeyPatch) -> None:
    places = places_of(testbed)
    take_as_another(places[1:])
    monkeypatch.setattr(lease.time, "sleep", lambda _: give_back_as_another(places[1:]))
    with hold_places(places, "mine", print, wait_s=30, poll_s=0.01):
        assert owners(testbed) == [name_owner()] * 3


def test_a_host_out_of_reach_leaves_none_held(testbed: Testbed) -> None:
    last = testbed.hosts[2]
    Path(last.work_dir).write_text("no directory")
    with (
        pytest.raises(StepFailed, match=r"lease failed on db-3: python3 there ended .*Exists"),
        hold([testbed], "mine", print),
    ):
        pytest.fail("held a host that cannot keep a lease")
    assert [look(place).holder for place in places_of(testbed)[:2]] == [None, None]


def test_a_job_of_another_machine_keeps_it_until_its_time_is_up(testbed: Testbed) -> None:
    reported: list[str] = []
    places = places_of(testbed)
    with held_by_another(places[:1]):
        with pytest.raises(Leased), hold_places(places, "mine", reported.append, wait_s=0):
            pytest.fail("robbed a living job")
        pass_hour(places[0])
        with hold_places(places, "mine", reported.append, wait_s=0):
            (text,) = reported
            assert text.startswith("db-1: took over from anna@ci-1 (nightly of suite x): its time was")


def test_a_leftover_of_this_very_process_is_its_own(testbed: Testbed) -> None:
    # Its host was out of reach when it was to be given back.
    with (
        held_by_another(places_of(testbed)[:1], name_process()),
        hold([testbed], "mine", print),
    ):
        assert owners(testbed) == [name_owner()] * 3


def test_a_broken_lease_ends_the_job_before_its_next_trial(testbed: Testbed) -> None:
    with hold([testbed], "mine", print):
        seen = look(places_of(testbed)[1])
        assert break_lease(seen)
        assert not break_lease(seen), "broken twice"
        lost = rf"db-2: the lease of this job was broken by {name_owner()} at .* UTC"
        with pytest.raises(MeasureError, match=lost):
            renew(testbed, 60.0)
        (reason,) = find_lost(testbed)
        assert reason.kind == "lease-lost"
        assert re.match(lost, reason.text)


def test_a_lease_that_ran_out_and_was_taken_says_who_has_it(testbed: Testbed) -> None:
    places = places_of(testbed)
    with hold([testbed], "mine", print):
        pass_hour(places[0])
        renew(testbed, 60.0)  # nobody took it: nothing is lost
        pass_hour(places[0])
        with (
            held_by_another(places[:1]),
            pytest.raises(
                MeasureError, match=r"\(expired\) and was taken by anna@ci-1 at .*; the host is"
            ),
        ):
            renew(testbed, 60.0)


def test_a_damaged_lease_is_refused_with_the_way_out(testbed: Testbed) -> None:
    place = places_of(testbed)[1]
    Path(place.work_dir).mkdir()
    (Path(place.work_dir) / LEASE).write_text("{")
    with (
        pytest.raises(
            MeasureError, match=r"its holder is unknown.*db-2/lease.json: it is not JSON.*\n.*--break"
        ),
        hold([testbed], "mine", print),
    ):
        pytest.fail("held what nobody can tell of")
    assert owners(testbed) == [""] * 3
    seen = look(place)
    assert "it is not JSON" in seen.fault
    assert break_lease(seen)
    with hold([testbed], "mine", print):
        assert owners(testbed) == [name_owner()] * 3


def test_only_what_is_known_is_called_gone() -> None:
    here, pid, born = name_process().split("/")
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        name = name_process(sleeper.pid)
        assert not is_known_gone(name)
        assert is_known_gone(f"{here}/{sleeper.pid}/{int(born) - 1}"), "a pid that was used again"
        assert not is_known_gone(f"elsewhere:1/{sleeper.pid}/1"), "nothing is known of other machines"
        assert not is_known_gone(f"{here}0/{sleeper.pid}/1"), "nor of other containers"
        sleeper.kill()
        end = time.monotonic() + 10
        while not is_known_gone(name):  # a zombie, not reaped yet, is no process
            assert time.monotonic() < end
    assert is_known_gone(name)
    assert not is_known_gone(f"{here}/{pid}/{born}")
    assert not is_known_gone("what another version wrote")


def start(rounds: int, die_in: int, witness: Path, *directories: Path) -> subprocess.Popen[str]:
    words = map(str, (rounds, die_in, witness, *directories))
    return subprocess.Popen([sys.executable, str(CONTENDER), *words], stdout=subprocess.PIPE, text=True)


def test_of_many_that_compete_one_holds_and_the_dead_are_succeeded(tmp_path: Path) -> None:
    hosts = [tmp_path / "db-1", tmp_path / "db-2"]
    killed = [start(3, 1, tmp_path / "witness", *hosts), start(3, 2, tmp_path / "witness", *hosts)]
    # One asks for the hosts the other way round, as by other names for them: nobody waits for ever.
    others = [start(3, 0, tmp_path / "witness", *order) for order in (hosts, hosts[::-1])]
    said = {job: job.communicate(timeout=120)[0] for job in (*killed, *others)}
    assert "violation" not in "".join(said.values())
    assert [job.returncode for job in (*killed, *others)] == [-signal.SIGKILL] * 2 + [0, 0]
    assert all(said[job].endswith("done\n") for job in others)
    assert "its process is gone" in "".join(said.values())


@pytest.mark.slow
def test_a_killed_job_over_ssh_is_succeeded_at_once(
    sshd: SshHost, tmp_path: Path, make_testbed: Callable[..., Testbed], monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = tuple(
        Host(name=f"db-{one}", address=f"127.0.0.{one}", role="server", work_dir=f"{tmp_path}/{one}")
        for one in (1, 2)
    )
    testbed = make_testbed(transport="ssh", hosts=hosts)

    def connect(_: Testbed, host: Host) -> SshHost:
        return replace(sshd, name=host.name, address=host.address)

    monkeypatch.setattr(lease, "open_host", connect)
    places, reported = places_of(testbed), list[str]()
    with subprocess.Popen(["sleep", "60"]) as dead:
        take_as_another(places, name_process(dead.pid))
        with (
            pytest.raises(Leased, match="db-1 is held by anna@ci-1"),
            hold_places(places, "mine", print, wait_s=0),
        ):
            pytest.fail("robbed a living job")
        dead.kill()
    with hold([testbed], "mine", reported.append):
        assert owners(testbed) == [name_owner()] * 2
    assert [one.partition(":")[0] for one in reported] == ["db-1", "db-2"]
    assert look(places[1]).holder is None
