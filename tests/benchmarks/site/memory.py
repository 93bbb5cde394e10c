"""How much memory a process and all its children take together. Linux only, as all of Knickpoint."""

import time
from collections.abc import Sequence
from pathlib import Path
from subprocess import PIPE, Popen

_EVERY_S = 0.2
# To add up the pages of a GB takes 0.17 s and holds up who owns them: this rest leaves it a twentieth.
_REST = 20


def run(command: Sequence[str]) -> tuple[str, float]:
    """Run a command; give its output and the most memory that it took, in MB.

    The memory of a moment is the sum of PSS over all processes: what is shared counts once.

    Raises:
        RuntimeError: it failed.

    """
    most_mb = 0.0
    with Popen(command, stdout=PIPE, text=True) as process:
        while process.poll() is None:
            began_s = time.process_time()
            most_mb = max(most_mb, sum(map(_pss_mb, _family(process.pid))))
            time.sleep(max(_EVERY_S, _REST * (time.process_time() - began_s)))
        output = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise RuntimeError(f"{command[1]} ended with exit code {process.returncode}")
    return output, most_mb


def _family(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, (path.name for path in Path("/proc").iterdir())):
        try:
            parent = int(Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        children.setdefault(parent, []).append(int(name))
    family = [root]
    for one in family:
        family += children.get(one, [])
    return family


def _pss_mb(process: int) -> float:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)
