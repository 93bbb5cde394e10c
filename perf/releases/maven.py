"""Copy Java libraries with all that they need, by coordinates, with this host's Maven or a pinned one.

Maven knows its repositories, and an operator's own settings may name mirrors; none is named here.
"""

import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from perf.hosts.remote import LocalHost
from perf.local import durable
from perf.local.children import environment
from perf.local.paths import cache_dir, hold_in_cache
from perf.model.errors import HostUnfit, ReleaseError
from perf.releases.downloads import OriginUnreachable, verify
from perf.releases.java import digest_files, find_java

_MAVEN_VERSION = "3.9.9"
_MAVEN_SHA512 = (
    "8beac8d11ef208f1e2a8df0682b9448a9a363d2ad13ca74af43705549e72e74c"
    "9378823bf689287801cbbfc2f6ea9596201d19ccacfdfb682ee8a2ff4c4418ba"
)
_MAVEN_FILES = "081d6cfd1f5ceb9a83e073ae22fad5cfa5f1f705d2ea203e5e242cbf7588d851"
"""The digest of its unpacked files (`digest_files`), which are checked each time they are to be run."""
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
# One Java for every resolution: profiles that depend on the Java version must not change the result.
_JAVA_MAJORS = (17, 11)
_TIMEOUT_S = 1800.0


def copy_libraries(coordinates: Sequence[str], target: Path, *, report: Callable[[str], None]) -> None:
    """Copy libraries (group:artifact:version) and their runtime dependencies into `target`.

    Raises:
        Unreachable: Maven, or one of the libraries, cannot be had.

    """
    try:
        java = find_java(_JAVA_MAJORS, report)
    except HostUnfit as error:
        raise OriginUnreachable(f"Maven needs Java: {error}") from error
    command = shutil.which("mvn") or str(fetch_maven(report))
    with tempfile.TemporaryDirectory(prefix="knickpoint-maven-") as project:
        pom = Path(project, "pom.xml")
        pom.write_text(_pom(coordinates), encoding="utf-8")
        # Strict: by itself, Maven 3 only warns of a file that does not match its published checksum.
        strict = ("--batch-mode", "--quiet", "--strict-checksums")
        done = subprocess.run(  # noqa: S603  no shell; the command is ours
            [
                *(command, *strict, "--file", str(pom), _COPY),
                *("-DincludeScope=runtime", f"-DoutputDirectory={target}"),
            ],
            env={**environment(), "JAVA_HOME": str(Path(java.path).resolve().parent.parent)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    if done.returncode:
        lines = (done.stdout + done.stderr).splitlines()
        errors = [line for line in lines if "ERROR" in line] or lines
        raise OriginUnreachable(f"{command} exited {done.returncode}: {' '.join(errors[:3])[:1000]}")


def _pom(coordinates: Sequence[str]) -> str:
    dependencies = []
    for coordinate in coordinates:
        group, artifact, version = (escape(part) for part in coordinate.split(":"))
        dependencies.append(
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version></dependency>"
        )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>knickpoint</groupId><artifactId>libraries</artifactId><version>1</version>"
        f"<packaging>pom</packaging><dependencies>{''.join(dependencies)}</dependencies></project>\n"
    )


def fetch_maven(report: Callable[[str], None]) -> Path:
    """Return the `mvn` of the pinned Maven, from the cache or from its repository.

    Raises:
        OriginUnreachable: it cannot be fetched.
        ReleaseError: it is not the pinned one, or what fetches it is not installed.

    """
    home = cache_dir() / "tools" / f"apache-maven-{_MAVEN_VERSION}"
    home.parent.mkdir(parents=True, exist_ok=True)
    with hold_in_cache(home.with_name(f"{home.name}.lock")):
        if home.is_dir() and digest_files(LocalHost(), str(home)) != _MAVEN_FILES:
            report(f"Maven {_MAVEN_VERSION}: {home} is not what was unpacked there; fetching it again")
            shutil.rmtree(home)
        if not home.is_dir():
            report(f"Maven {_MAVEN_VERSION}: this host has none; fetching it (9 MB)")
            _unpack_maven(home)
            if digest_files(LocalHost(), str(home)) != _MAVEN_FILES:
                raise ReleaseError(f"Maven {_MAVEN_VERSION} holds other files than the pinned ones")
    return home / "bin" / "mvn"


def _unpack_maven(home: Path) -> None:
    try:
        import jgo.maven  # noqa: PLC0415  needed only on a host without Maven

        found = (
            jgo.maven.MavenContext()
            .project("org.apache.maven", "apache-maven")
            .at_version(_MAVEN_VERSION)
            .artifact(classifier="bin", packaging="zip")
            .resolve()
        )
    except ImportError as error:
        raise ReleaseError(
            "this host has no Maven; install it, or pip install 'knickpoint[measure]'"
        ) from error
    except (OSError, RuntimeError, ValueError) as error:
        raise OriginUnreachable(f"Maven {_MAVEN_VERSION} cannot be fetched: {error}") from error
    with tempfile.TemporaryDirectory(dir=home.parent, prefix="part-") as part:
        archive = Path(shutil.copy(found, part))  # verify() deletes what does not match
        verify(archive, _MAVEN_SHA512)
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(part)
        unpacked = Path(part, home.name)
        (unpacked / "bin" / "mvn").chmod(0o755)  # zipfile drops the mode
        durable.move(unpacked, home)
