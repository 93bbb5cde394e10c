"""The same bundles become the same verdicts and the same site, byte for byte, wherever it is done."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from perf.local.paths import cache_dir

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements/all.lock"
HERE = sys.version_info[:2]


def find_pythons() -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the interpreters of other versions that this machine has, and that we support."""
    for minor in range(11, 20):
        places = [*Path.home().glob(f".pyenv/versions/3.{minor}.*/bin"), *map(Path, os.get_exec_path())]
        for place in places:
            program = place / f"python3.{minor}"
            if (3, minor) != HERE and program.is_file() and "shims" not in place.parts:
                yield (3, minor), str(program)
                break


@pytest.fixture(scope="module")
def other_python() -> Path:
    """Return an environment of another Python with the same pinned packages, kept in the cache."""
    found = next(find_pythons(), None)
    if found is None:  # no registry has interpreters, so not even CI can ask for one
        pytest.skip("there is no second version of Python (3.11 or newer) on this machine")
    version, program = found
    content = hashlib.sha256(LOCK.read_bytes() + str(ROOT).encode()).hexdigest()[:12]
    place = cache_dir() / f"python-{version[0]}.{version[1]}-{content}"
    python = place / "bin/python"
    if not (place / "ready").exists():
        shutil.rmtree(place, ignore_errors=True)
        pip = (python, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "-q")
        for command in (
            (program, "-m", "venv", place),
            (*pip, "--retries", "5", "--require-hashes", "-r", LOCK, "-c", LOCK),
            (*pip, "--no-deps", "--no-build-isolation", "--editable", ROOT),
        ):
            subprocess.run(command, check=True, timeout=600)
        (place / "ready").touch()
    return python


def report(python: Path, out: Path, **environment: str) -> Mapping[str, str]:
    """Make a site of the shipped recording of real trials; give the digests of its files."""
    out.mkdir()
    command = (python, "-P", python.with_name("knickpoint"), "demo", "--out", "site")
    reported = subprocess.run(
        command, cwd=out, env=os.environ | environment, check=True, timeout=300, capture_output=True
    )
    digests = {
        path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in out.rglob("*")
        if path.is_file() and not path.name.endswith(".lock")
    }
    verdict = reported.stdout.decode().split("Open:", maxsplit=1)[0]
    return digests | {"what the command says": verdict}


@pytest.mark.slow
@pytest.mark.keeps("same-in-same-out")
@pytest.mark.timeout(900)
def test_versions_of_python_hash_seeds_time_zones_and_languages_change_no_byte(
    other_python: Path, tmp_path: Path, figures: dict[str, object]
) -> None:
    here = Path(sys.executable)
    first = report(here, tmp_path / "first", PYTHONHASHSEED="1", TZ="UTC", LC_ALL="C.UTF-8")
    assert len(first) > 400
    for name, python, seed, zone, language in (
        ("again", here, "2", "Pacific/Auckland", "C"),
        ("other", other_python, "3", "America/St_Johns", "de_DE.UTF-8"),
    ):
        reported = report(python, tmp_path / name, PYTHONHASHSEED=seed, TZ=zone, LC_ALL=language)
        differing = {
            path for path in first.keys() | reported.keys() if first.get(path) != reported.get(path)
        }
        assert not differing, (name, sorted(differing)[:20])
    figures["files"] = len(first) - 1
    figures["Pythons"] = f"{HERE[0]}.{HERE[1]} and {other_python.parents[1].name.split('-')[1]}"
