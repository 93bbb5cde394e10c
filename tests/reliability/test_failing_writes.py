"""Each command that writes, on a disk that fails at a chosen change: told, nothing lost, and mended.

The disk is `disk_shim.c`: full from the n-th write on, a write that keeps half, or one change refused.
"""

import errno
import random
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import pytest
from disks import ALL, FULL, Done, describe_fault, failing, read_record, serving
from writing import JOBS, Bench, describe, find_appended, find_reported, find_sealed, has_answered

MODES = {
    "full": (FULL, errno.ENOSPC, "on"),
    "quota": (FULL, errno.EDQUOT, "on"),
    "half a write": ("w", errno.ENOSPC, "short"),
    "one fails": (ALL, errno.EIO, "once"),
    "read-only": (ALL, errno.EROFS, "on"),
}
ABORTED = -signal.SIGABRT
"""DuckDB ends the process where the disk refuses even to shorten its log: see "What is not covered"."""
CANNOT = 3
"""The exit code of a command that could not do what it was asked."""
SLOW = {"nightly", "compare", "report", "one page"}
CASES = [
    (name, mode)
    for name in JOBS
    for mode in MODES
    if mode in {"full", "one fails"} or (name not in SLOW and mode != "quota") or name == "append"
]
# What the operating system says, and what a person can do about it.
REASON = {
    errno.ENOSPC: "No space left on device",
    errno.EDQUOT: "Disk quota exceeded",
    errno.EIO: "Input/output error|fsync failed",
    errno.EROFS: "Read-only file system",
}
STEP = {
    errno.ENOSPC: "[Mm]ake room|give room",
    errno.EDQUOT: "[Mm]ake room|give room",
    errno.EIO: "disk fails",
    errno.EROFS: "read-only: mount it",
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    root = tmp_path_factory.mktemp("disks")
    (root / "server").mkdir()
    with serving(root / "server") as commands:
        yield Bench(commands, root)


def choose(count: int, most: int, seed: str) -> Sequence[int]:
    """Choose places of changes, from 1: all, or some of each stretch."""
    if count <= most:
        return range(1, count + 1)
    generator = random.Random(seed)  # noqa: S311  test data, not a secret
    edges = [round(part * count / most) for part in range(most + 1)]
    return [generator.randint(low + 1, high) for low, high in pairwise(edges)]


@pytest.mark.keeps("failing-writes-lose-nothing")
@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode"), CASES)
def test_a_disk_that_fails_is_reported_and_loses_nothing(
    bench: Bench, name: str, mode: str, effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    kinds, number, how = MODES[mode]
    place, record = bench.copy(name), bench.root / "record"
    spare = bench.copy(name)  # to look into a history of an older schema is to upgrade it
    sealed, appended = find_sealed(spare), find_appended(spare)
    done = bench.run(name, place, record=record)
    assert done.code == JOBS[name].code, done
    wanted = describe(name, place)
    count = sum(one.kind in kinds for one in read_record(record) if one.kind)
    most = effort(1, 2 if name in SLOW else 10)
    ends: Counter[int] = Counter()
    for point in choose(count, most, f"{name} {mode}"):
        fail = failing(kinds, point, number, how)
        place = bench.copy(name)
        done = bench.run(name, place, fail=fail)
        ends[done.code] += 1
        what = f"{name}: {describe_fault(fail)}: {done}"
        check_told(done, JOBS[name].code, number, str(place), what)
        assert sealed <= find_sealed(place), what
        reported = (
            set() if name == "rebuild" else find_reported(done)
        )  # into what is to replace the history
        assert appended | reported <= find_appended(place), what
        if done.code == JOBS[name].code:
            assert describe(name, place) == wanted, what
            continue
        come_to = bench.twice(name) if has_answered(name, place) else wanted
        again = bench.run(name, place)
        assert again.code == JOBS[name].code, f"{what}\nthen {again}"
        assert describe(name, place) == come_to, what
    figures[f"{name}, {mode}"] = f"{sum(ends.values())} tries"


def check_told(done: Done, wanted: int, number: int, place: str, what: str) -> None:
    """Hold a message against what it has to say: what, where, what next, and no lines of ours."""
    code, said = done.code, done.err
    if code == ABORTED and number == errno.EROFS:
        return
    assert not re.search("Traceback|a defect of Knickpoint", said), what
    if code == wanted:
        return
    assert code == CANNOT, what
    assert re.search(REASON[number], said), what
    assert place in said, what
    assert re.search(STEP[number], said), what
