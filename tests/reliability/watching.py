"""What nights leave behind: processes, files and their sizes."""

import os
from pathlib import Path

import psutil


def find_processes(data: Path, pid: int | None = None) -> list[psutil.Process]:
    """Return all processes that name a data directory, and the one with this id; never this one."""
    mine = os.getpid()
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != mine and (
                process.pid == pid or any(str(data) in word for word in process.cmdline())
            ):
                found.append(process)
        except psutil.Error:
            continue
    return found


def weigh(place: Path) -> tuple[int, int]:
    """Return the size of all files at and below a place, in KB, and their number."""
    paths = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
    return sum(path.lstat().st_size for path in paths) // 1000, len(paths)
