"""Page cache and device forget the trial before; what was done is said, what cannot be is refused."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from needs import need

from perf.hosts.fresh_disk import freshen
from perf.hosts.remote import LocalHost
from perf.hosts.tuning.privileged import render_freshen, render_script
from perf.model.design import DiskPolicy
from perf.model.errors import HostUnfit
from perf.model.results import Fact

BOTH = DiskPolicy(drops_caches=True, trims=True)
NEITHER = DiskPolicy(drops_caches=False, trims=False)
TRIM = DiskPolicy(drops_caches=False, trims=True)


@pytest.fixture
def memory_dir() -> Iterator[Path]:
    """Yield a directory in memory: no device lies behind it that could trim."""
    path = Path("/dev/shm", f"knickpoint-{os.getpid()}")  # noqa: S108  removed below
    path.mkdir()
    yield path
    path.rmdir()


def need_root() -> None:
    need(os.geteuid() == 0, "only root may do this")


def count_cached(path: Path) -> int:
    words = ["fincore", "--noheadings", "--output", "PAGES", str(path)]
    return int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
@pytest.mark.alone
def test_what_was_read_before_is_forgotten(tmp_path: Path) -> None:
    need_root()
    file = tmp_path / "data"
    file.write_bytes(bytes(1 << 20))
    assert count_cached(file) == 256
    facts, said = freshen(LocalHost("db-1"), str(tmp_path), DiskPolicy(drops_caches=True, trims=False))
    assert count_cached(file) == 0
    assert facts == (Fact(host="db-1", name="page_cache", value="dropped"),)
    assert said == ("page cache: dropped",)


def test_a_device_that_cannot_trim_says_so(memory_dir: Path) -> None:
    need_root()
    facts, said = freshen(LocalHost("db-1"), str(memory_dir), TRIM)
    assert facts == (Fact(host="db-1", name="trim", value="not supported"),)
    assert said == ("trim: not supported",)


def test_nothing_is_done_that_the_policy_does_not_say(tmp_path: Path) -> None:
    need_root()
    assert freshen(LocalHost(), str(tmp_path), NEITHER) == ((), ())


def run_script(tmp_path: Path, text: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script"
    script.write_text(text)
    return subprocess.run(
        ["sh", str(script), *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **env},
    )


@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize(
    ("directory", "flags", "why"),
    [
        ("here", ("--trim",), "not an absolute path"),
        ("/var/../etc", (), "without .."),
        ("/var/a b", (), "letters, digits"),
        ("/var/$(id)", (), "letters, digits"),
        ("{tmp}/missing", (), "no directory"),
        ("{tmp}/link", (), "no directory"),
        ("{tmp}", ("--format",), "no such option: --format"),
        ("{tmp}", ("--trim", "/etc"), "no such option: /etc"),
        ("", (), "not an absolute path"),
    ],
)
def test_what_the_caller_says_is_checked(
    tmp_path: Path, directory: str, flags: tuple[str, ...], why: str, *, is_whole: bool
) -> None:
    (tmp_path / "link").symlink_to("/")
    words = (directory.replace("{tmp}", str(tmp_path)), *flags)
    if is_whole:
        done = run_script(tmp_path, render_script(), "--fresh-disk", *words)
    else:
        done = run_script(tmp_path, render_freshen(), *words)
    assert done.returncode == 2
    assert why in done.stderr
    assert done.stdout == ""


def test_with_sudo_a_directory_must_be_the_callers(tmp_path: Path) -> None:
    words = ("--fresh-disk", str(tmp_path))
    done = run_script(tmp_path, render_script(), *words, SUDO_UID="4711")
    assert done.returncode == 2
    assert "not a directory of the user who asks" in done.stderr
    done = run_script(tmp_path, render_script(), *words, SUDO_UID=str(tmp_path.stat().st_uid))
    assert (done.returncode, done.stdout) == (0, "")


def plant(directory: Path, name: str, text: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(f"#!/bin/sh\n{text}\n")
    (directory / name).chmod(0o755)


def test_whoever_is_not_root_asks_sudo_for_exactly_that(
    tmp_path: Path, memory_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_root()
    bin_dir = tmp_path / "bin"
    script = tmp_path / "knickpoint-tune"
    script.write_text(render_script())
    plant(bin_dir, "id", "echo 1000")
    plant(bin_dir, "sudo", f'printf "%s\\n" "$*" >{tmp_path}/asked; shift 2; exec sh {script} "$@"')
    monkeypatch.setenv("PATH", str(bin_dir), prepend=":")
    facts, _ = freshen(LocalHost("db-1"), str(memory_dir), TRIM)
    assert facts == (Fact(host="db-1", name="trim", value="not supported"),)
    asked = (tmp_path / "asked").read_text()
    assert asked == f"-n /usr/local/sbin/knickpoint-tune --fresh-disk {memory_dir} --trim\n"


def test_without_rights_the_way_to_get_them_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_dir = tmp_path / "bin"
    plant(bin_dir, "id", "echo 1000")
    plant(bin_dir, "sudo", "echo 'sudo: a password is required' >&2; exit 1")
    monkeypatch.setenv("PATH", str(bin_dir), prepend=":")
    with pytest.raises(HostUnfit) as caught:
        freshen(LocalHost("db-1"), str(tmp_path), BOTH)
    text = str(caught.value)
    assert text.startswith("db-1: its disk cannot be made fresh: sudo: a password is required\n")
    assert "knickpoint host script" in text
