"""What tests of killed commands share."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from killed_commands import Beginnings
from killing import Launcher, launching
from needs import need

from perf.model.results import Interval, Trial

_MEMORY = Path("/dev/shm")  # noqa: S108  a file system without a disk: more kills in less time


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    """Give what runs commands and kills them."""
    need(shutil.which("cc"), "no C compiler here: install gcc")
    place = tmp_path_factory.mktemp("launcher")
    with launching(place, str(place)) as launcher:
        yield launcher


@pytest.fixture(scope="module")
def beginnings(
    make_trial: Callable[..., Trial], make_intervals: Callable[..., tuple[Interval, ...]]
) -> Beginnings:
    """Give what makes the directories that commands begin with."""
    return Beginnings(make_trial(), make_intervals(seconds=4))


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Path]:
    """Give a place for many copies."""
    above = _MEMORY if _MEMORY.is_dir() else tmp_path
    with tempfile.TemporaryDirectory(prefix="knickpoint-kills-", dir=above) as place:
        yield Path(place)
