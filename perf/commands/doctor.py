"""`knickpoint doctor`: what this machine has, what it lacks for a suite, and how to get it.

Each check is a pure function from values to one finding; the `examine` functions read the values.
Works with the base installation alone, since a missing extra is one of the things it has to tell:
so nothing is imported here that would load a driver, the other commands included.
"""

import contextlib
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path

import click

from perf.commands.options import configs_option, data_option
from perf.config.catalog import Catalog, default_root, load_catalog
from perf.history.place import read_place
from perf.history.store import open_history
from perf.hosts.facts import read_facts
from perf.hosts.ports import find_taken
from perf.hosts.remote import LocalHost
from perf.load.native_binary import find_native
from perf.local.paths import DataPaths, cache_dir
from perf.model.design import Suite, Testbed
from perf.model.errors import AccessError, ConfigError, HistoryError, UsageError
from perf.releases.java import Java, search
from perf.systems import registry
from perf.systems.credentials import prove_access

NOTHING_MISSING, SOMETHING_MISSING = 0, 3

_OLDEST_PYTHON = (3, 11)
_ENOUGH_CORES = 2
_CACHE_MB = 2000
"""A release is about 70 MB; Maven keeps a copy, and a runtime of Java and Maven itself come on top."""
_NOT_FOR_MEASURING = {
    "infra": "only preparing hosts takes it: requirements/infra.lock",
    "lake": "only a history of several labs takes it: requirements/lake.lock",
}
_ENOUGH_MAPS = 1_048_575
"""What Cassandra asks for when it starts."""


class Need(StrEnum):
    """Whether something is there, would do good, or must be had before measuring."""

    OK = "ok"
    ADVICE = "advice"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    """One thing that was looked at. `advice` says how to get it, and is empty where all is well."""

    name: str
    state: Need
    found: str
    advice: str = ""


def _ok(name: str, found: str) -> DoctorFinding:
    return DoctorFinding(name=name, state=Need.OK, found=found)


def _missing(name: str, found: str, advice: str) -> DoctorFinding:
    return DoctorFinding(name=name, state=Need.MISSING, found=found, advice=advice)


def _advise(name: str, found: str, advice: str) -> DoctorFinding:
    return DoctorFinding(name=name, state=Need.ADVICE, found=found, advice=advice)


def check_python(version: Sequence[int]) -> DoctorFinding:
    """Compare the running Python with the oldest that will do."""
    found = ".".join(str(part) for part in version[:3])
    if tuple(version[:2]) >= _OLDEST_PYTHON:
        return _ok("Python", found)
    advice = "install Python 3.11 or later and set Knickpoint up again with it"
    return _missing("Python", found, advice)


def check_extra(extra: str, absent: Sequence[str]) -> DoctorFinding:
    """Describe which packages of an extra are not installed."""
    if not absent:
        return _ok(f"extra {extra}", "installed")
    if otherwise := _NOT_FOR_MEASURING.get(extra):
        return _ok(f"extra {extra}", f"none here; {otherwise}")
    advice = f"run `make setup`, or: pip install 'knickpoint[{extra}]'"
    return _missing(f"extra {extra}", f"without {', '.join(absent)}", advice)


def check_memory(available_mb: int, needed_mb: int) -> DoctorFinding:
    """Compare available memory with what the testbed needs."""
    found = f"{available_mb} MB available, {needed_mb} MB needed"
    if available_mb >= needed_mb:
        return _ok("memory", found)
    return _missing("memory", found, "end other programs, or measure on a larger machine")


def check_cores(cores: int) -> DoctorFinding:
    """Advise against a machine with a single core."""
    if cores >= _ENOUGH_CORES:
        return _ok("cores", str(cores))
    advice = f"servers and client share one core; expect noise, and use {_ENOUGH_CORES} or more"
    return _advise("cores", str(cores), advice)


def _elsewhere(name: str) -> str:
    place = "--data DIR" if name.startswith("data ") else "KNICKPOINT_CACHE=DIR"
    return f"or choose another place with {place}"


def check_disk(name: str, path: Path, free_mb: int, needed_mb: int) -> DoctorFinding:
    """Compare the free disk space below a directory with what is needed there."""
    found = f"{free_mb} MB free for {path}, {needed_mb} MB needed"
    if free_mb >= needed_mb:
        return _ok(name, found)
    return _missing(name, found, f"make room, {_elsewhere(name)}")


def check_writable(name: str, path: Path, *, is_writable: bool) -> DoctorFinding:
    """Return whether Knickpoint may write below a directory."""
    if is_writable:
        return _ok(name, f"{path} can be written")
    return _missing(name, f"{path} is not writable", f"change its owner or mode, {_elsewhere(name)}")


def check_java(major: int, purpose: str, found: Java | None, machine: str) -> DoctorFinding:
    """Describe which Java serves a purpose: one of this host, or one that is fetched when needed."""
    name = f"Java {major}"
    if found is not None:
        return _ok(name, f"{found.version}, {found.path}")
    if machine == "x86_64":
        fetched = f"none here; a pinned runtime is fetched for {purpose} when needed (36 MB)"
        return _ok(name, fetched)
    advice = f"{purpose} needs it: install a JDK {major} and set JAVA_HOME to it"
    return _missing(name, f"none here, and none to fetch for {machine}", advice)


def check_program(name: str, path: str | None, otherwise: str, advice: str = "") -> DoctorFinding:
    """Describe where an optional program is, or what happens without it."""
    if path is not None:
        return _ok(name, path)
    found = f"none here; {otherwise}"
    return _advise(name, found, advice) if advice else _ok(name, found)


def check_ports(taken: Mapping[tuple[str, int], str]) -> DoctorFinding:
    """Describe which ports that servers need are in use, and by whom as far as that can be known."""
    if not taken:
        return _ok("ports", "all free that the suite needs")
    uses = [f"{address}:{port} in use{holder}" for (address, port), holder in taken.items()]
    return _missing("ports", ", ".join(uses), "stop that process, for example with: kill <pid>")


def check_host_settings(facts: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Compare kernel settings with what databases ask for; good to have, never required."""
    huge_pages, maps, swap_kb = (facts.get(name, "") for name in ("thp", "max_map_count", "swap_kb"))
    no_huge_pages = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
    has_maps = not maps.isdigit() or int(maps) >= _ENOUGH_MAPS
    has_no_swap = not swap_kb.isdigit() or int(swap_kb) == 0
    for name, found, is_good, command in (
        ("huge pages", huge_pages, huge_pages != "always", no_huge_pages),
        ("max_map_count", maps, has_maps, f"sudo sysctl vm.max_map_count={_ENOUGH_MAPS}"),
        ("swap", f"{swap_kb} kB", has_no_swap, "sudo swapoff -a"),
    ):
        yield _ok(name, found) if is_good else _advise(name, found, f"for steadier numbers: {command}")


def examine_machine(data: Path) -> Iterator[DoctorFinding]:
    """Look at what any measurement on this machine needs."""
    here, cache = LocalHost(), cache_dir()
    yield check_python(tuple(sys.version_info[:3]))
    for extra, absent in _absent_packages().items():
        yield check_extra(extra, absent)
    yield check_cores(len(os.sched_getaffinity(0)))
    yield check_writable("data directory", data, is_writable=_is_writable(data))
    yield check_writable("cache", cache, is_writable=_is_writable(cache))
    yield from _examine_shared_history(DataPaths(data).history)
    yield check_disk("cache disk", cache, _free_mb(cache), _CACHE_MB)
    for major, purpose in ((17, "Cassandra 5.0 and later"), (11, "Cassandra 4.x")):
        yield check_java(major, purpose, search(here, (major,)), platform.machine())
    yield check_program("Maven", shutil.which("mvn"), "a pinned one is fetched when needed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    yield check_program("chromium", chromium, "only the tests of the pages use it")
    yield from check_host_settings({fact.name: fact.value for fact in read_facts(here)})


def examine_for_suite(data: Path, suite: Suite, testbed: Testbed) -> Iterator[DoctorFinding]:
    """Look at what measuring one suite needs of this machine."""
    if testbed.transport == "ssh":
        advice = f"testbed {testbed.name} is reached over SSH: install openssh-client"
        yield check_program("ssh", shutil.which("ssh"), "no host can be reached", advice)
        return
    yield check_memory(_available_mb(), testbed.needs.memory_mb)
    yield check_disk("data disk", data, _free_mb(data), testbed.needs.disk_mb)
    addresses = [host.address for host in testbed.own_hosts if host.role == "server"]
    yield check_ports(find_taken(addresses, _ports(suite)))


def examine_engines(catalog: Catalog, suite: Suite) -> Iterator[DoctorFinding]:
    """Look for the native load engine, if an experiment of the suite asks for it."""
    if any(catalog.resolve(suite, one).engine == "native" for one in suite.experiments):
        try:
            yield _ok("native engine", str(find_native()))
        except UsageError as error:
            advice = "or say `engine: python` in the testbed and in the workloads of the suite"
            yield _missing("native engine", str(error), advice)


def examine_access(catalog: Catalog, suite: Suite) -> Iterator[DoctorFinding]:
    """Look for the secrets and certificates that configs of the suite name, each config once."""
    configs = (catalog.resolve(suite, one).config for one in suite.experiments)
    for config in {one.name: one for one in configs if one.access}.values():
        name = f"access of {config.name}"
        try:
            prove_access(config.access)
            yield _ok(name, "its secrets and certificates can be read")
        except AccessError as error:
            yield _missing(name, error.why, "")


def _examine_shared_history(path: Path) -> Iterator[DoctorFinding]:
    """Open the history of several labs, if history.yaml names one, to read only."""
    try:
        if place := read_place(path):
            with open_history(path, read_only=True):
                pass
            yield _ok("shared history", f"{place.history} can be read")
    except (ConfigError, HistoryError, UsageError) as error:
        found, _, advice = str(error).partition("\n")
        yield _missing("shared history", found, advice or "fix that: docs/shared-history.md")


def _absent_packages() -> dict[str, list[str]]:
    """Return the packages of each extra that are not installed, as our own metadata lists them."""
    absent: dict[str, list[str]] = {}
    for requirement in requires("knickpoint") or ():
        match = re.match(r"([\w.-]+).*\bextra\s*==\s*['\"]([\w-]+)['\"]", requirement)
        if match:
            package, extra = match.groups()
            missing = absent.setdefault(extra, [])
            try:
                distribution(package)
            except PackageNotFoundError:
                missing.append(package)
    return absent


def _available_mb() -> int:
    found = re.search(r"^MemAvailable:\s*(\d+)", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(found[1]) // 1024 if found else 0


def _existing(path: Path) -> Path:
    """Return the path, or its nearest parent that exists."""
    path = path.absolute()
    return next(place for place in (path, *path.parents) if place.exists())


def _free_mb(path: Path) -> int:
    return shutil.disk_usage(_existing(path)).free // 2**20


def _is_writable(path: Path) -> bool:
    """Return whether a file can be made in the nearest directory that exists; none is left."""
    # Only trying tells: root passes every check of permissions, even where nothing can be written.
    try:
        with tempfile.TemporaryFile(dir=_existing(path)):
            return True
    except OSError:
        return False


def _ports(suite: Suite) -> tuple[int, ...]:
    ports: set[int] = set()
    for name in {experiment.system for experiment in suite.experiments}:
        # Without its driver a system does not load; that is a finding of its own.
        with contextlib.suppress(UsageError):
            ports.update(registry.load(name).ports())
    return tuple(sorted(ports))


def render(findings: Iterable[DoctorFinding]) -> str:
    """Write findings as a table, with advice below the line that it belongs to."""
    lines = []
    for finding in findings:
        state = finding.state.upper() if finding.state is Need.MISSING else finding.state
        lines.append(f"{state:<8} {finding.name:<15} {finding.found}")
        if finding.advice:
            lines.append(f"{'':<8} {'':<15} → {finding.advice}")
    return "\n".join(lines)


def examine(data: Path, configs: Path, suite_name: str) -> Iterator[DoctorFinding]:
    """Look at the configuration and at this machine.

    Raises:
        UsageError: the configuration has no suite of that name.

    """
    try:
        catalog = load_catalog(configs)
    except ConfigError as error:
        advice = "fix these; what a suite needs cannot be known before"
        yield _missing("configuration", str(error), advice)
    else:
        suite = catalog.suite(suite_name)
        yield _ok("configuration", f"{configs} fits together")
        yield from examine_engines(catalog, suite)
        yield from examine_access(catalog, suite)
        yield from examine_for_suite(data, suite, catalog.testbeds[suite.testbed])
    yield from examine_machine(data)


@click.command()
@click.option("--suite", default="quickstart", show_default=True, help="Suite to prepare for.")
@data_option
@configs_option
@click.pass_context
def doctor(context: click.Context, suite: str, data: Path, configs: Path | None) -> None:
    """List what this machine lacks, and how to get it.

    \b
    knickpoint doctor                    for the suite of `make nightly`
    knickpoint doctor --data /srv/perf   with the data on another disk

    A line is `ok`, `advice` (numbers would be steadier with it) or `MISSING` (the suite cannot be
    measured without it); the arrow below says what to do. Nothing is installed or changed. Looks only
    at this machine, also for a testbed over SSH, and at the history that history.yaml names.

    Exit codes: 0 nothing required is missing, 3 something is.
    """  # noqa: D301  \b is click's mark for "do not re-wrap"
    findings = tuple(examine(data, configs or default_root(), suite))
    click.echo(render(findings))
    missing = [finding.name for finding in findings if finding.state is Need.MISSING]
    if missing:
        click.echo(f"\nMissing: {', '.join(missing)}. Mend that, then run `knickpoint doctor` again.")
        context.exit(SOMETHING_MISSING)
    click.echo(f"\nNothing required is missing. Next: knickpoint nightly --suite {suite}")
    context.exit(NOTHING_MISSING)
