"""The programs that offer load: what each can ask, its command on a host, and whether it is there.

`python` is the reference and the default. `native` is `knickload`, which `make native` builds here; on
an SSH host it is beside the host's Python, where the role loadgen installs it.
"""

import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import PurePosixPath

from perf.hosts.facts import read_client_facts
from perf.hosts.remote import LocalHost, Remote, run_repeatable
from perf.hosts.testbed import Client
from perf.load.engines import PYTHON_ENGINE
from perf.load.native_binary import ENGINE, find_native, sha256_of
from perf.model.design import EngineName
from perf.model.errors import HostUnfit, UsageError
from perf.model.records import Records
from perf.model.results import Fact
from perf.model.statements import Statements
from perf.systems import registry

_DIGEST_FACT = f"{ENGINE}_sha256"
# Prints the digest of a program, wherever PATH finds it; ends with 3 if it is nowhere.
_DIGEST = 'path=$(command -v "$1") || exit 3; sha256sum <"$path"'
_ABSENT = 3


def native_systems(records: Records) -> tuple[str, ...]:
    """Name the systems that the native engine can ask these records of, whose drivers are installed."""
    return tuple(name for name in registry.names() if can_offer("native", name, records))


def can_offer(engine: EngineName, system: str, records: Records) -> bool:
    """Return whether an engine can ask these records of a system that has them."""
    if engine != "native":
        return True
    with suppress(UsageError):
        sessions = registry.load(system).sessions
        # Of statements, it sends those in CQL.
        knows = not isinstance(records, Statements) or records.language == "cql"
        return sessions.native_engine and knows and sessions.find(records) is not None
    return False


def command_of(engine: EngineName, client: Client) -> tuple[str, ...]:
    """Return the command that starts an engine on a client host; its one argument is the spec file.

    Where a program of the user's own offers the load, what is preloaded is stored by the Python one.

    Raises:
        UsageError: it is the native one, on this machine, where it is not built.

    """
    if engine != "native":
        return _python(client), *PYTHON_ENGINE[1:]
    return (_native_path(client),)


def check_engines(engine: EngineName, clients: Iterable[Client]) -> None:
    """Insist that each client host has the native engine that was built here, if that is the one.

    Raises:
        HostUnfit: with every host that lacks it or has another one, and what to do about it.

    """
    if engine != "native":
        return
    try:
        built = find_native()
    except UsageError as error:
        raise HostUnfit(f"engine: native cannot offer the load: {error}") from error
    wanted, problems = sha256_of(built), []
    for client in clients:
        path = _native_path(client)
        found = _read_digest(client.remote, path)
        if found != wanted:
            state = f"{path} has the SHA-256 {found}" if found else f"there is no program {path}"
            problems.append(f"{client.remote.name}: {state}")
    if problems:
        raise HostUnfit(
            f"engine: native cannot offer the load, for its program is not what was built here, "
            f"{built} with the SHA-256 {wanted}:\n  " + "\n  ".join(problems) + "\n"
            "install it there: ansible-playbook site.yml --tags loadgen, see docs/hosts.md"
        )


def read_engine_facts(engine: EngineName, client: Client) -> tuple[Fact, ...]:
    """Read what offers the load on a client host: versions of packages, or the digest of a program.

    Raises:
        StepFailed: the host cannot be reached, or has no such program.

    """
    if engine != "native":
        return read_client_facts(client.remote, _python(client))
    digest = _read_digest(client.remote, _native_path(client))
    return (Fact(host=client.remote.name, name=_DIGEST_FACT, value=digest or "unavailable"),)


def _python(client: Client) -> str:
    return sys.executable if isinstance(client.remote, LocalHost) else client.host.python


def _native_path(client: Client) -> str:
    if isinstance(client.remote, LocalHost):
        return str(find_native())
    # A command without a directory is looked up in PATH, and so is its neighbour.
    return str(PurePosixPath(client.host.python).with_name(ENGINE))


def _read_digest(remote: Remote, program: str) -> str:
    """Return the SHA-256 of a program on a host; nothing if it is not there."""
    done = run_repeatable(remote, ["sh", "-c", _DIGEST, "digest", program], check=False)
    if done.returncode == _ABSENT:
        return ""
    return done.stdout.split()[0] if done.returncode == 0 else f"unreadable: {done.stderr.strip()}"
