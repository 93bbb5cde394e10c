"""The command of each engine on each kind of host, and the refusal of a program that is another one."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from perf.hosts.remote import LocalHost, SshHost
from perf.hosts.testbed import Client
from perf.load.native_binary import SETTING, sha256_of
from perf.load.programs import check_engines, command_of, read_engine_facts
from perf.model.design import Host
from perf.model.errors import HostUnfit, UsageError

HERE = Host(name="client-1", address="127.0.0.1", role="client")


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a program that stands for the built one."""
    program = tmp_path / "built" / "knickload"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv(SETTING, str(program))
    return program


@pytest.fixture
def there(tmp_path: Path) -> Host:
    """Return a client host over SSH whose Python is in a directory of the test."""
    (tmp_path / "venv/bin").mkdir(parents=True)
    return replace(HERE, python=str(tmp_path / "venv/bin/python"))


def test_on_this_machine_engines_are_those_of_this_code(built: Path) -> None:
    python = (sys.executable, "-m", "perf.load.engine.process")
    assert command_of("python", Client(replace(HERE, python="other"), LocalHost(), "")) == python
    assert command_of("native", Client(HERE, LocalHost(), "")) == (str(built),)


def test_on_an_ssh_host_the_native_engine_is_beside_its_python(sshd: SshHost) -> None:
    host = replace(HERE, python="/opt/knickpoint/bin/python")
    assert command_of("python", Client(host, sshd, "")) == (
        host.python,
        "-m",
        "perf.load.engine.process",
    )
    assert command_of("native", Client(host, sshd, "")) == ("/opt/knickpoint/bin/knickload",)
    assert command_of("native", Client(HERE, sshd, "")) == ("knickload",)


def test_the_python_engine_needs_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "/nowhere/knickload")
    check_engines("python", [Client(HERE, LocalHost(), "")])


def test_the_program_that_was_built_here_is_taken(sshd: SshHost, built: Path, there: Host) -> None:
    shutil.copy(built, Path(there.python).parent)
    check_engines("native", [Client(HERE, LocalHost(), ""), Client(there, sshd, "")])
    (fact,) = read_engine_facts("native", Client(there, sshd, ""))
    assert (fact.host, fact.name, fact.value) == (sshd.name, "knickload_sha256", sha256_of(built))


def test_absent_and_different_programs_are_all_reported_with_what_next(
    sshd: SshHost, built: Path, there: Host, tmp_path: Path
) -> None:
    other = Path(there.python).with_name("knickload")
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    bare = replace(there, python=str(tmp_path / "bare/bin/python"))
    with pytest.raises(HostUnfit) as caught:
        check_engines("native", [Client(there, sshd, ""), Client(bare, sshd, "")])
    said = str(caught.value)
    assert f"{built} with the SHA-256 {sha256_of(built)}" in said
    assert f"{sshd.name}: {other} has the SHA-256 {sha256_of(other)}" in said
    assert f"{sshd.name}: there is no program {tmp_path}/bare/bin/knickload" in said
    assert "ansible-playbook site.yml --tags loadgen" in said


def test_one_that_is_not_built_is_no_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(SETTING, str(tmp_path / "absent"))
    with pytest.raises(UsageError, match="is no program"):
        command_of("native", Client(HERE, LocalHost(), ""))
    with pytest.raises(HostUnfit, match=r"engine: native cannot offer the load: .* is no program"):
        check_engines("native", [Client(HERE, LocalHost(), "")])
