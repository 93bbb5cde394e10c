"""Real disks without room: a small file system of its own, and output that nobody can keep."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from disks import Done
from needs import need
from writing import DATA, JOBS, describe, fill_in, find_appended, find_reported, find_sealed

COMMAND = (sys.executable, "-m", "perf.commands.main")
# In a namespace of its own, so that nobody else sees the disk, and it is gone at the end. The command
# runs twice: as it is, and once there is room again.
SCRIPT = """
set -eu
place=$1 from=$2 to=$3 options=$4 again=$5
shift 5
mount -t tmpfs -o "$options" tmpfs "$place"
cp -a "$from/." "$place/"
run() {
  code=0
  "$@" >"$to/out" 2>"$to/err" || code=$?
  mkdir "$to/$name"
  mv "$to/out" "$to/err" "$to/$name"
  echo "$code" >"$to/$name/code"
  cp -a "$place/." "$to/$name/left"
}
name=full run "$@"
mount -o "remount,$again" "$place"
name=again run "$@"
"""
TOLD = "No space left on device"
PAGE_BYTES = 4096
STEP = "Make room on that disk"


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a command, and what was left on the disk."""

    done: Done
    left: Path


def read(place: Path) -> Ended:
    out, err = ((place / name).read_text(errors="replace") for name in ("out", "err"))
    return Ended(Done(int((place / "code").read_text()), out, err), place / "left")


def run_on(root: Path, made: Path, options: str, again: str, *argv: str) -> tuple[Ended, Ended]:
    """Run a command on a small disk that holds what was made, and again when it has room."""
    need(os.geteuid() == 0 and shutil.which("unshare"), "a small file system needs root and unshare")
    place, to = root / "small", root / "to"
    place.mkdir(parents=True)
    to.mkdir()
    script = ["unshare", "--mount", "sh", "-c", SCRIPT, "sh", place, made, to, options, again, *argv]
    ended = subprocess.run([str(one) for one in script], check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return read(to / "full"), read(to / "again")


@pytest.mark.slow
@pytest.mark.keeps("full-disks-are-reported")
@pytest.mark.parametrize("full", ["stdout", "stderr", "both"])
def test_output_that_has_no_room_changes_no_exit_code(tmp_path: Path, full: str) -> None:
    command = [*COMMAND, "history", "show", "--data", str(tmp_path)]  # there is none: exit code 3
    with Path("/dev/full").open("w") as sink:
        streams = {name: sink for name in ("stdout", "stderr") if full in {name, "both"}}
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
        assert subprocess.run(command, check=False, **streams).returncode == 3


@pytest.mark.keeps("full-disks-are-reported")
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["append", "append to a history", "rebuild", "prune", "import", "triage"]
)
def test_a_small_disk_is_reported_and_nothing_is_lost(
    tmp_path: Path, name: str, effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    made = tmp_path / "made"
    made.mkdir()
    JOBS[name].prepare(made)
    place = tmp_path / "0" / "small"
    argv = [*COMMAND, *fill_in(name, place, made)]
    _, whole = run_on(tmp_path / "0", made, "size=64m", "size=64m", *argv)
    sealed, appended = find_sealed(made), find_appended(made)
    pages = sum(-(-one.stat().st_size // PAGE_BYTES) for one in made.rglob("*") if one.is_file())
    taken_kb = pages * PAGE_BYTES // 1024
    refused = 0
    for number, room_kb in enumerate((0, 700, 20, 1500, 6000, 200)[: effort(1, 6)], start=1):
        root = tmp_path / f"{number}"
        argv = [*COMMAND, *fill_in(name, root / "small", made)]
        full, again = run_on(root, made, f"size={taken_kb + room_kb}k", "size=64m", *argv)
        what = f"{name} with {room_kb} kB: {full.done}\nthen {again.done}"
        assert "Traceback" not in full.done.err, what
        assert sealed <= find_sealed(full.left), what
        reported = set() if name == "rebuild" else find_reported(full.done)
        assert appended | reported <= find_appended(full.left), what
        if full.done.code:
            refused += 1
            assert full.done.code == 3, what
            assert TOLD in full.done.err, what
            assert STEP in full.done.err, what
            assert again.done.code == 0, what
            assert describe(name, again.left) == describe(name, whole.left), what
    assert refused
    figures[name] = f"{refused} of {effort(1, 6)} disks too small"


@pytest.mark.keeps("full-disks-are-reported")
@pytest.mark.slow
@pytest.mark.alone
def test_a_night_that_runs_out_of_room_goes_on_where_there_is_some(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    argv = ("measure", "--suite", "fake-short", "--configs", str(DATA / "configs"), "--data")
    too_small, enough, sealed = 35, 51, 0
    while enough - too_small > 1:
        # Room for bytes, and not for the names of all files.
        names = (too_small + enough) // 2
        root = tmp_path / str(names)
        limits = (f"size=64m,nr_inodes={names}", "nr_inodes=10000")
        full, again = run_on(root, made, *limits, *COMMAND, *argv, str(root / "small/var"))
        what = f"{names} files: {full.done}\nthen {again.done}"
        assert again.done.code == 0, what
        assert find_sealed(full.left) <= find_sealed(again.left), what
        if full.done.code == 0:
            enough = names
            continue
        too_small, sealed = names, len(find_sealed(again.left))
        assert full.done.code == 3, what
        assert TOLD in full.done.err + full.done.out, what
        assert "Traceback" not in full.done.err, what
    # The fullest of them had room for all but the end of the night: that night went on.
    assert sealed == 2, what
