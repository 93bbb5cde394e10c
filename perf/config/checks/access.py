"""What a config may say of how clients log in: which secrets, whole paths to them, and no secret.

Configs are data that anybody may propose. So one can only name variables that were made for this, and
no other secret that a job has in its environment.
"""

import re
from collections.abc import Iterator
from contextlib import suppress

from perf.config.checks.topologies_and_testbeds import ConfigFile
from perf.local.document import YamlDocument
from perf.local.problems import say
from perf.model.access import VARIABLES_BEGIN, Access
from perf.model.design import SystemConfig
from perf.model.errors import UsageError
from perf.systems import registry
from perf.systems.contract import ChecksAccess

_VARIABLE = re.compile(rf"{VARIABLES_BEGIN}[A-Z0-9_]*")


def check_access(system: str, entry: ConfigFile[SystemConfig]) -> Iterator[str]:
    """Find accounts without a password or with two, halves of a certificate, and what no server has.

    A system whose driver is not installed here cannot be asked: then nothing is measured here either.
    """
    if entry.value is None or entry.value.access is None:
        return
    document, access = entry.document, entry.value.access
    yield from _check_password(document, access)
    yield from _check_tls(document, access)
    with suppress(UsageError):
        loaded = registry.load(system)
        place = document.locate(("access",))
        if not isinstance(loaded, ChecksAccess):
            yield f"{place}: access is for systems with accounts or TLS; {system} has none, remove it"
            return
        for problem in loaded.check_access(access):
            key, _, what = problem.partition(": ")
            yield f"{document.locate(('access', key))}: access.{key} {what}"


def _check_password(document: YamlDocument, access: Access) -> Iterator[str]:
    place = document.locate(("access",))
    sources = [name for name in ("password_env", "password_file") if getattr(access, name) is not None]
    if access.username is not None and not sources:
        yield (
            f"{place}: access.username is {document.show(('access', 'username'), access.username)}, "
            "without a password; add password_env, the name of a variable, or password_file"
        )
    if access.username is None and sources:
        yield f"{place}: access.{sources[0]} is there without a username; add one, or remove it"
    if len(sources) > 1:
        yield f"{place}: access.password_env and access.password_file are both there; remove one"
    if access.password_env is not None and not _VARIABLE.fullmatch(access.password_env):
        # Not shown: it may be the password itself.
        yield (
            f"{document.locate(('access', 'password_env'))}: access.password_env is not the name of a "
            "variable for this; write KNICKPOINT_PASSWORD or KNICKPOINT_PASSWORD_… (capitals, digits), "
            "and put the password into the environment, never into a file of the configuration"
        )
    if access.username is None and not sources and access.tls is None:
        yield f"{place}: access is empty; add username and password_env, or tls, or remove it"


def _check_tls(document: YamlDocument, access: Access) -> Iterator[str]:
    tls = access.tls
    if tls is None:
        return
    halves = {"certificate_file": tls.certificate_file, "key_file": tls.key_file}
    for name, other in (("certificate_file", "key_file"), ("key_file", "certificate_file")):
        path = halves[name]
        if path is not None and halves[other] is None:
            yield say(
                document, ("access", "tls", name), path, f"without a {other}; add it, or remove this"
            )
