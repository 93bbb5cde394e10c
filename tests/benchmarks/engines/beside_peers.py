"""The load engines beside peers: YCSB core and latte, same server, same rows, taking turns.

`make bench-engines` runs it; docs/engine.md explains it and holds tables that it printed. Figures are
of the client: CPU time of its process (user and system, all threads) over the measured window, divided
by the operations that ended in it. The start of each process and its warm-up are outside.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from case import CASES, Case, Client, Figures, choose, spread, write_table
from cassandra_server import serve
from latte_peer import LattePeer, make_latte
from null_servers import NULL_CASES, measure_against_null
from own_engine import OwnEngine
from ycsb_peer import make_ycsb

from perf.load.engines import PYTHON_ENGINE
from perf.load.native_binary import find_native
from perf.model.errors import KnickpointError
from perf.systems.contract import Target

# More than a run can write, so that no run writes rows again.
ROWS_PER_RUN = 10_000_000


def main() -> int:
    """Run all rounds and print the tables; give the exit code."""
    asked = _read_arguments()
    rounds: int = asked.rounds
    with tempfile.TemporaryDirectory(prefix="knickpoint-bench-") as name:
        directory = Path(name)
        native = (str(find_native()),)
        engines = {"native engine": native, "Python engine": PYTHON_ENGINE}
        own = {name: OwnEngine(directory / name[:6], command) for name, command in engines.items()}
        clients, missing = _chosen_clients(directory, own, asked.clients)
        sys.stderr.writelines(missing)
        cases = () if asked.null_only else choose(CASES, asked.loads)
        if cases:
            with serve(directory / "server") as target:
                own["native engine"].preload(target)
                sys.stdout.write(table(take_turns(clients, target, rounds, cases)))
            sys.stdout.flush()
        chosen = {name: command for name, command in engines.items() if name in clients}
        null_cases = choose(NULL_CASES, asked.loads)
        latte = next((one for one in clients.values() if isinstance(one, LattePeer)), None)
        sys.stdout.write(measure_against_null(directory / "null", chosen, latte, rounds, null_cases))
    sys.stderr.writelines(missing)
    return KnickpointError.exit_code if missing else 0


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--rounds", type=int, default=5, help="rounds that count; one more is run first"
    )
    parser.add_argument("--loads", nargs="+", help="only loads that have one of these in their name")
    parser.add_argument("--clients", nargs="+", help="only clients that have one of these in theirs")
    parser.add_argument("--null-only", action="store_true", help="against null servers alone")
    return parser.parse_args()


def _chosen_clients(
    directory: Path, own: Mapping[str, Client], words: Sequence[str] | None
) -> tuple[dict[str, Client], list[str]]:
    """Make the clients whose names have one of the words; say which peers are missing."""
    make: dict[str, Callable[[], Client]] = {
        **{name: partial(own.__getitem__, name) for name in own},
        "YCSB": lambda: make_ycsb(directory / "classes"),
        "latte": lambda: make_latte(directory / "latte"),
    }
    clients: dict[str, Client] = {}
    missing = []
    for name, made in make.items():
        if words is None or any(word in name for word in words):
            try:
                clients[name] = made()
            except KnickpointError as error:
                missing.append(f"\nTHE PEER {name} IS MISSING: {error}\n\n")
    return clients, missing


def take_turns(
    clients: Mapping[str, Client], target: Target, rounds: int, cases: Sequence[Case]
) -> dict[tuple[Case, str], list[Figures]]:
    """Run every case with every client, `rounds` times and once before; whoever is first changes."""
    results: dict[tuple[Case, str], list[Figures]] = {}
    run = 0
    for case in cases:
        for number in range(rounds + 1):
            for name in sorted(clients, reverse=bool(number % 2)):
                run += 1
                found = clients[name](case, target, run * ROWS_PER_RUN)
                sys.stderr.write(f"{case.name}, round {number}, {name}: {found}\n")
                if number:
                    results.setdefault((case, name), []).append(found)
    return results


def table(results: dict[tuple[Case, str], list[Figures]]) -> str:
    """Return all results as a Markdown table: median, and least to most, over the rounds."""
    head = (
        *("load", "client", "n", "CPU µs/op", "achieved ops/s"),
        *("send lateness p50 ms", "p99 ms", "max ms", "service time p50 ms", "p99 ms", "failed"),
    )
    lines = []
    for (case, name), runs in results.items():
        late = [one.late_ms for one in runs if one.late_ms]
        service = [one.service_ms for one in runs if one.service_ms]
        lines.append(
            (
                case.name,
                name,
                str(len(runs)),
                spread([one.cpu_us for one in runs], ".1f"),
                spread([one.achieved for one in runs], ".0f"),
                *(spread([one[at] for one in late], ".2f") for at in range(3)),
                *(spread([one[at] for one in service], ".2f") for at in range(2)),
                str(sum(one.failed for one in runs)),
            )
        )
    return write_table(head, lines)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KnickpointError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
