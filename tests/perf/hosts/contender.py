"""A job that competes for leased hosts: `contender.py ROUNDS DIE_IN_ROUND WITNESS DIRECTORY...`.

Each directory stands for a host. Whoever holds them all signs the witness; a signature of somebody who
lives, or a foreign one at the end, is a violation. It kills itself in one round while it holds them.
"""

import os
import signal
import sys
import time
from pathlib import Path

from near_host import NearHost

from perf.hosts.lease import LeasePlace, hold_places
from perf.local.this_process import is_known_gone, name_process


def list_hosts(directories: list[str]) -> list[LeasePlace]:
    """Return a place for each directory."""
    return [
        LeasePlace(remote=NearHost(Path(one).name), address=one, port=22, work_dir=one)
        for one in directories
    ]


def say(text: str) -> None:
    """Print at once: a kill may come."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def work(witness: Path) -> None:
    """Be alone for a moment, or say that somebody else was here."""
    if witness.exists() and not is_known_gone(witness.read_text()):
        say(f"violation: {witness.read_text()} lives and holds")
    witness.write_text(name_process())
    time.sleep(0.03)
    if witness.read_text() != name_process():
        say(f"violation: {witness.read_text()} came in between")


def compete(rounds: int, die_in: int, witness: Path, places: list[LeasePlace]) -> None:
    """Take the hosts again and again."""
    for number in range(1, rounds + 1):
        with hold_places(places, f"round {number}", say, wait_s=60, poll_s=0.05):
            work(witness)
            if number == die_in:
                os.kill(os.getpid(), signal.SIGKILL)
            witness.unlink()
    say("done")


if __name__ == "__main__":
    compete(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), list_hosts(sys.argv[4:]))
