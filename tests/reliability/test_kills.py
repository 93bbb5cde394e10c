"""Commands that are killed with SIGKILL at random moments lose nothing, double nothing, and go on.

Each command begins with a copy of a prepared directory. There it is killed, by the clock or at a change
of a file, and all that it had told or sealed must be there. Then the very same command must succeed,
and leave what an undisturbed run leaves. What is killed is the real entry point; "made up" commands
order trials that are sealed at once, the others of the fake system's servers. What only reads and
writes a history is killed in test_life.py.
"""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from disks import Commands
from killed_commands import LONG, REAL, Beginnings, Scenario
from watched import Watched, choose_moment, observe

KEEPS = pytest.mark.keeps("a-kill-loses-no-trial", "a-kill-needs-no-hand")


def kill_often(name: str, scenario: Scenario, begin: Path, launcher: Commands, wanted: int) -> int:
    """Kill a command so often, checking after each kill and at the end of each try; count the kills."""
    generator, kills, number = random.Random(name), 0, 0  # noqa: S311  moments, no secret
    expected = observe(scenario, begin, begin.with_name("undisturbed"), launcher)
    while kills < wanted:
        number += 1
        here = begin.with_name(f"try-{number}")
        shutil.copytree(begin, here)
        watched = Watched(scenario, here, launcher)
        watched.check_kept()
        ended = watched.run(**choose_moment(generator, expected))
        while ended.is_killed:
            kills += 1
            watched.check_kept()
            is_again = generator.random() < scenario.again
            ended = watched.run(**(choose_moment(generator, expected) if is_again else {}))
        watched.check_whole(ended, expected)
        shutil.rmtree(here)
    assert launcher.find_left() == []
    return kills


@pytest.mark.slow
@KEEPS
@pytest.mark.parametrize("name", [*LONG, *REAL])
def test_a_killed_command_loses_nothing_and_goes_on(
    name: str,
    room: Path,
    launcher: Commands,
    beginnings: Beginnings,
    effort: Callable[[int, int], int],
    figures: dict[str, object],
) -> None:
    scenario = (LONG | REAL)[name]
    begin = room / "begin"
    begin.mkdir()
    getattr(beginnings, scenario.prepare)(begin)
    wanted = effort(scenario.quick, scenario.full)
    figures[f"kills of {name}"] = kill_often(name, scenario, begin, launcher, wanted)
