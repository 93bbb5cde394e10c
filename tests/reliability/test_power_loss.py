"""The power fails while a command writes: what it said it kept is there, and the command goes on.

Each command is recorded once by `disk_shim.c`. `power_loss` gives the states that a disk may be left
in, and the same command runs on each of them.
"""

import shutil
from collections.abc import Callable, Iterator

import pytest
from disks import Done, read_record, serving
from power_loss import Disk, crash, lay_out
from writing import JOBS, Bench, describe, find_appended, find_reported, find_sealed, has_answered

from perf.model.errors import HistoryError

SLOW = {"nightly", "compare", "report"}
# A page is made again from the history; nobody is reported that it is kept.
WRITERS = [name for name in JOBS if name not in {"report", "one page"}]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    root = tmp_path_factory.mktemp("power")
    (root / "server").mkdir()
    with serving(root / "server") as commands:
        yield Bench(commands, root)


@pytest.mark.keeps("power-loss-loses-nothing")
@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_what_was_said_to_be_kept_is_there_when_the_power_is_back(
    bench: Bench, name: str, effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    place, record = bench.copy(name), bench.root / "record"
    spare = bench.copy(name)  # to look into a history of an older schema is to upgrade it
    sealed, appended = find_sealed(spare), find_appended(spare)
    disk = Disk(place)
    done = bench.run(name, place, record=record)
    assert done.code == JOBS[name].code, done
    wanted = describe(name, place)
    changes = read_record(record)
    states = broken = forgotten = 0
    steps = {True}
    for where, tree, said in crash(disk, changes, effort(2, 6 if name in SLOW else 40), name):
        states += 1
        left = bench.root / f"left-{states}"
        lay_out(tree, left)
        what = f"{name}: {where}, after it said:\n{said}"
        assert sealed <= find_sealed(left), what
        try:
            reported = set() if name == "rebuild" else find_reported(Done(0, "", said))
            lost = (appended | reported) - find_appended(left)
        except HistoryError as error:  # its last log has a gap
            broken += 1
            steps.add("knickpoint append" in str(error))
            lost = appended - find_sealed(left)
        assert lost <= find_sealed(left), what
        forgotten += bool(lost)
        come_to = bench.twice(name) if has_answered(name, left) else wanted
        again = bench.run(name, left)
        assert again.code == JOBS[name].code, f"{what}\nthen {again}"
        assert describe(name, left) == come_to, what
        shutil.rmtree(left)
    assert steps == {True}
    figures[name] = (
        f"{states} states of {len(changes)} changes; the history lacked its last trials in {forgotten}"
        f" and could not be read in {broken}, until they were appended again from their bundles"
    )
