"""Java libraries that peers of the tests are made of, and those peers: fetched or compiled once."""

import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock

from perf.local.paths import cache_dir
from perf.releases.maven import copy_libraries


def fetch_jars(name: str, coordinates: Sequence[str]) -> tuple[str, ...]:
    """Return the paths of the jars; other coordinates under the same name are another set."""
    asked = hashlib.sha256(" ".join(coordinates).encode()).hexdigest()[:12]
    home = cache_dir() / "libraries" / f"{name}-{asked}"
    home.mkdir(parents=True, exist_ok=True)
    with FileLock(home / "lock"):
        if not (home / "maven").is_dir():
            with tempfile.TemporaryDirectory(dir=home, prefix="part-") as part:
                copy_libraries(coordinates, Path(part, "fresh", "lib"), report=print)
                Path(part, "fresh").rename(home / "maven")
    return tuple(sorted(map(str, (home / "maven" / "lib").glob("*.jar"))))


def compile_peer(java: str, program: Path, jars: Sequence[str]) -> str:
    """Return the class path of a program of one file; the compiler is one of its libraries.

    It is ecj, which also compiles where Java is a runtime without a compiler.
    """
    made_of = hashlib.sha256(program.read_bytes() + " ".join(jars).encode()).hexdigest()[:12]
    home = cache_dir() / "libraries" / f"{program.stem}-{made_of}"
    home.mkdir(parents=True, exist_ok=True)
    with FileLock(home / "lock"):
        if not (home / "classes").is_dir():
            with tempfile.TemporaryDirectory(dir=home, prefix="part-") as part:
                command = [java, "-cp", ":".join(jars), "org.eclipse.jdt.internal.compiler.batch.Main"]
                options = ["-11", "-nowarn", "-proc:none", "-cp", ":".join(jars), "-d", f"{part}/fresh"]
                subprocess.run([*command, *options, str(program)], check=True)
                Path(part, "fresh").rename(home / "classes")
    return ":".join([str(home / "classes"), *jars])
