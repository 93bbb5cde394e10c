"""Build the native load engine: `make native`; what is built from these sources already is kept.

Where Knickpoint was installed from a wheel, this module is the command.

Cargo works in the cache beside the downloads of releases, so that a checkout stays clean and a second
one builds only what differs.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from perf.load.native_binary import (
    ENGINE,
    NULL_SERVER,
    SOURCES,
    build_command,
    built_dir,
    native_cache,
    sha256_of,
)
from perf.local import durable
from perf.local.children import environment
from perf.local.progress import note
from perf.model.errors import HostUnfit, KnickpointError

_PROGRAMS = (ENGINE, NULL_SERVER)
_PAUSES_S = (5.0, 20.0, 60.0)
_VERSION = re.compile(r"cargo (\d+)\.(\d+)")
_INSTALL = "install it with rustup (https://rustup.rs), and have ~/.cargo/bin in PATH"


def build(report: Callable[[str], None], sleep: Callable[[float], None] = time.sleep) -> Path:
    """Return the directory of the built programs, which are built if they are not there yet.

    Raises:
        HostUnfit: what builds is missing, too old, or failed; the text says which, and what next.

    """
    target = native_cache() / "target"
    target.mkdir(parents=True, exist_ok=True)
    with FileLock(native_cache() / "build.lock"):
        directory = built_dir()
        if not all((directory / program).is_file() for program in _PROGRAMS):
            _check_tools()
            report(f"building {ENGINE} in {target}; the first time takes some minutes")
            began_s = time.monotonic()
            _fetch(report, sleep)
            _compile(target)
            if built_dir() != directory:
                raise HostUnfit(
                    f"the sources changed while they were built; say again: {build_command()}"
                )
            _keep(target / "release", directory)
            report(f"built in {time.monotonic() - began_s:.0f} s")
    return directory


def _check_tools() -> None:
    manifest = tomllib.loads((SOURCES / "Cargo.toml").read_text())
    wanted: str = manifest["package"]["rust-version"]
    need = f"the native load engine needs Rust {wanted} or newer"
    try:
        said = subprocess.run(
            ["cargo", "--version"],  # noqa: S607  whichever the user's PATH names, as make would
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except FileNotFoundError as error:
        raise HostUnfit(f"{need}, and there is no cargo in PATH; {_INSTALL}") from error
    except subprocess.CalledProcessError as error:
        raise HostUnfit(
            f"{need}, and cargo --version fails: {error.stderr.strip()}; {_INSTALL}"
        ) from error
    found = _VERSION.match(said)
    if not found or (int(found[1]), int(found[2])) < tuple(map(int, wanted.split("."))):
        raise HostUnfit(f"{need}, and this is {said.strip()}; {_INSTALL}")
    if not shutil.which("cc"):
        raise HostUnfit(
            f"{need} and a C compiler, and there is no cc in PATH; on Debian: apt install gcc"
        )


def _fetch(report: Callable[[str], None], sleep: Callable[[float], None]) -> None:
    # Apart from the build, so that only what may pass is tried again; for this platform alone.
    host = _platform()
    for pause_s in (*_PAUSES_S, None):
        done = _cargo("fetch", "--quiet", "--locked", "--target", host)
        if not done:
            return
        if pause_s is None:
            raise HostUnfit("the crates of Cargo.lock cannot be fetched; cargo says above why")
        report(f"the crates cannot be fetched; again in {pause_s:g} s")
        sleep(pause_s)


def _platform() -> str:
    ask = ["rustc", "--print", "host-tuple"]
    try:
        done = subprocess.run(  # noqa: S603  no shell; the command is ours
            ask, env=environment(), capture_output=True, text=True, check=True
        )
    except FileNotFoundError as error:
        raise HostUnfit(f"there is no rustc in PATH beside cargo; {_INSTALL}") from error
    except subprocess.CalledProcessError as error:
        raise HostUnfit(f"{' '.join(ask)} fails: {error.stderr.strip()}; {_INSTALL}") from error
    return done.stdout.strip()


def _compile(target: Path) -> None:
    into = ("--target-dir", str(target))
    # Cargo goes by the times of files, and an older file of other content would not be seen.
    _cargo("clean", "--quiet", "--release", "--package", ENGINE, *into)
    if code := _cargo("build", "--release", "--locked", "--offline", "--bins", *into):
        raise HostUnfit(f"cargo build ended with exit code {code}; it says above why")


def _cargo(verb: str, *options: str) -> int:
    command = ("cargo", verb, "--manifest-path", str(SOURCES / "Cargo.toml"), *options)
    done = subprocess.run(command, env=environment(), check=False)  # noqa: S603  no shell; the command is ours
    return done.returncode


def _keep(release: Path, directory: Path) -> None:
    """Copy the programs to where their sources' digest says, whole or not at all."""
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix="part-") as part:
        fresh = Path(part, "built")
        fresh.mkdir()
        for program in _PROGRAMS:
            shutil.copy2(release / program, fresh)
        if directory.exists():
            shutil.rmtree(directory)
        durable.move(fresh, directory)


def main() -> int:
    """Build, and say what there is now; exit code 3 if it cannot be built."""
    try:
        directory = build(_write)
    except KnickpointError as error:
        note(str(error))
        return error.exit_code
    for program in _PROGRAMS:
        path = directory / program
        _write(f"{path}: sha256 {sha256_of(path)}")
    return 0


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
