"""What tests of killed commands share."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from disks import Commands, serving
from killed_commands import Beginnings

from perf.model.results import Interval, Trial

_MEMORY = Path("/dev/shm")  # noqa: S108  a file system without a disk: more kills in less time


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """Yield what runs commands and kills them."""
    with serving(tmp_path_factory.mktemp("launcher")) as launcher:
        yield launcher


@pytest.fixture(scope="module")
def beginnings(
    make_trial: Callable[..., Trial], make_intervals: Callable[..., tuple[Interval, ...]]
) -> Beginnings:
    """Return what makes the directories that commands begin with."""
    return Beginnings(make_trial(), make_intervals(seconds=4))


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Path]:
    """Yield a place for many copies."""
    above = _MEMORY if _MEMORY.is_dir() else tmp_path
    with tempfile.TemporaryDirectory(prefix="knickpoint-kills-", dir=above) as place:
        yield Path(place)
