"""Java libraries that peers of the tests are made of, with all that they need; fetched once."""

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock

from perf.local.places import cache_dir
from perf.releases.maven import copy_libraries


def fetch_jars(name: str, coordinates: Sequence[str]) -> tuple[str, ...]:
    """Give the paths of the jars; other coordinates under the same name are another set."""
    asked = hashlib.sha256(" ".join(coordinates).encode()).hexdigest()[:12]
    home = cache_dir() / "libraries" / f"{name}-{asked}"
    home.mkdir(parents=True, exist_ok=True)
    with FileLock(home / "lock"):
        if not (home / "maven").is_dir():
            with tempfile.TemporaryDirectory(dir=home, prefix="part-") as part:
                copy_libraries(coordinates, Path(part, "fresh", "lib"), tell=print)
                Path(part, "fresh").rename(home / "maven")
    return tuple(sorted(map(str, (home / "maven" / "lib").glob("*.jar"))))
