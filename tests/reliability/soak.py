"""Many nights in a row, unattended: `make soak NIGHTS=300` and `make soak-real NIGHTS=30`.

    python tests/reliability/soak.py simulated --nights 300 --into DIRECTORY
    python tests/reliability/soak.py real --nights 30 --into DIRECTORY

Prints what was found, as figures, and what is wrong; exit code 1 if anything is.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
# As pyproject.toml has it for pytest.
sys.path[:0] = [str(HERE), str(HERE.parent / "reports"), str(HERE.parents[1])]

import real_nights  # noqa: E402
import season_checks  # noqa: E402
import season_run  # noqa: E402


def simulate(nights: int, into: Path, real_every: int) -> tuple[list[str], dict[str, object]]:
    """Run a season of simulated nights and look at all that it came to; the site is kept."""
    with season_run.run_season(nights, into, into / "log", real_every=real_every) as seen:
        found = season_checks.check_all(seen)
        shutil.copytree(seen.paths.site, into / "site")
        return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=("simulated", "real"))
    parser.add_argument("--nights", type=int, default=30)
    parser.add_argument("--into", type=Path, required=True, help="A new directory for all of it.")
    parser.add_argument("--real-every", type=int, default=0, help="See simulated_night.py; 0: all are.")
    parser.add_argument("--lock", type=Path, help="Real nights: a file that is locked during each.")
    given = parser.parse_args(arguments)
    into, began_s = given.into.resolve(), time.monotonic()
    if into.exists():
        parser.error(f"{into} is there already; move it away, or give --into another directory")
    into.mkdir(parents=True)
    if given.mode == "real":
        wrong, figures = real_nights.check(real_nights.run_nights(given.nights, into, given.lock))
    else:
        wrong, figures = simulate(given.nights, into, given.real_every)
    figures["minutes"] = round((time.monotonic() - began_s) / 60)
    lines = [f"{name}: {value}" for name, value in figures.items()]
    sys.stdout.write("\n".join([*lines, *(f"WRONG: {one}" for one in wrong), ""]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
