"""A password on its way to an engine: where it is, where it is not, and that it is taken back."""

import stat
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from planted import find_in_files, watch_processes

from perf.hosts.leftovers import end_leftovers
from perf.hosts.remote import Completed, LocalHost, Remote, SshHost
from perf.load.handover import engine_environment, hand_over, take_back
from perf.load.spec import PASSWORD, LoadSpec, Preload, dump_spec
from perf.local.progress import Progress
from perf.model.access import Access
from perf.model.errors import AccessError
from perf.model.records import Operation, Sensor
from perf.systems.contract import Target

VARIABLE, PLANTED = "KNICKPOINT_PASSWORD_BENCH", "pl4nted '\"$(secret)\n x"
ACCESS = Access(username="bench", password_env=VARIABLE)
BY_FILE = Access(username="bench", password_file="/etc/knickpoint/bench")  # noqa: S106  its path


@dataclass(frozen=True, slots=True)
class Far(SshHost):
    """Another host, which is this one; all commands are noted."""

    name: str = "load1"
    address: str = "load1"
    asked: list[Sequence[str]] = field(default_factory=list)

    def run(self, argv: Sequence[str], **options: Any) -> Completed:  # noqa: ANN401  those of run
        """Run a command here."""
        self.asked.append(argv)
        return LocalHost(self.name).run(argv, **options)


@pytest.fixture
def make_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., LoadSpec]:
    monkeypatch.setenv(VARIABLE, PLANTED)

    def make(access: Access | None = ACCESS) -> LoadSpec:
        target = Target(
            system="cassandra",
            addresses=("127.0.0.1",),
            port=9042,
            replication_factor=1,
            consistency="one",
            timeout_s=1.0,
            access=access,
        )
        directory = tmp_path / "engines" / "load1-0"
        directory.mkdir(parents=True, exist_ok=True)
        return LoadSpec(
            target=target,
            records=Sensor(kind="sensor", devices=1, payload_bytes=100),
            mix={Operation.WRITE: 1.0},
            seed=1,
            engine_index=0,
            engine_count=1,
            preload=Preload(rows=1, in_flight=1),
            output_dir=str(directory),
        )

    return make


def test_who_looks_for_a_secret_finds_a_planted_one(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "log").write_bytes(b"\x00... pl4nted ...")
    assert find_in_files("pl4nted", tmp_path) == [tmp_path / "deep" / "log"]
    with watch_processes("pl4nted") as shown:
        careless = subprocess.Popen(["sh", "-c", "read -r line", "pl4nted"], stdin=subprocess.PIPE)
        end = time.monotonic() + 20
        while not shown and time.monotonic() < end:
            time.sleep(0.01)
        careless.communicate(b"\n")
    assert len(shown) == 1


def test_another_host_gets_a_file_of_its_own_over_standard_input(
    make_spec: Callable[..., LoadSpec],
) -> None:
    far, spec = Far(), make_spec()
    path = Path(spec.output_dir, PASSWORD)
    handed = hand_over(far, spec)
    assert path.read_text() == PLANTED
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert handed.target.access == Access(username="bench", password_file=str(path))
    assert replace(handed, target=spec.target) == spec
    assert "secret" not in dump_spec(handed) + repr(far.asked)
    take_back(far, spec)
    assert not path.exists()
    take_back(far, spec)  # also if the engine was first


@pytest.mark.parametrize("access", [None, BY_FILE], ids=["none", "file"])
def test_nothing_travels_where_no_variable_is_named(
    make_spec: Callable[..., LoadSpec], access: Access | None
) -> None:
    far, spec = Far(), make_spec(access)
    assert hand_over(far, spec) is spec
    take_back(far, spec)
    assert far.asked == []


def test_a_variable_that_is_not_set_is_reported_before_an_engine_is_started(
    make_spec: Callable[..., LoadSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    far = Far()
    with pytest.raises(AccessError, match=f"variable {VARIABLE} is not set"):
        hand_over(far, make_spec())
    assert far.asked == []


def test_engines_here_have_the_variable_and_other_processes_do_not(
    make_spec: Callable[..., LoadSpec], tmp_path: Path
) -> None:
    here, spec = LocalHost(), make_spec()
    assert hand_over(here, spec) is spec
    assert engine_environment(Far(), ACCESS) is None
    for name, environment in (("engine", engine_environment(here, ACCESS)), ("server", None)):
        out = tmp_path / name
        here.start(
            ["sh", "-c", f"env >{out}"],
            pid_file=str(tmp_path / f"{name}.pid"),
            log=str(tmp_path / f"{name}.log"),
            cwd=str(tmp_path),
            env=environment,
        )
        child = here.child(str(tmp_path / f"{name}.pid"))
        assert child is not None
        child.wait(20)
    assert PLANTED in (tmp_path / "engine").read_text()
    assert VARIABLE not in (tmp_path / "server").read_text()


def test_what_a_lost_host_kept_is_removed_before_the_next_trial(
    make_spec: Callable[..., LoadSpec], tmp_path: Path
) -> None:
    far: Remote = Far()
    spec = make_spec()
    hand_over(far, spec)
    end_leftovers(far, str(tmp_path), 1.0, Progress(None))  # type: ignore[arg-type]
    assert not Path(spec.output_dir, PASSWORD).exists()
