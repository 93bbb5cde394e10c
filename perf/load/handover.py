"""A password on its way to an engine. It is in no spec, on no command line and in no log.

On this machine an engine has the variable in its environment. To another host the password goes over
standard input, into a file that only its user may read, in the engine's own directory; the engine
removes it once it is read, and so does the harness when the engine has ended.
"""

import os
from collections.abc import Mapping
from dataclasses import replace

from perf.hosts.remote import LocalHost, Remote, code_here, run_repeatable
from perf.load.spec import PASSWORD, LoadSpec
from perf.model.access import Access
from perf.systems.credentials import read_login

# The mode comes before the content.
_WRITE = 'umask 077 && cat >"$1"'


def engine_environment(remote: Remote, access: Access | None) -> Mapping[str, str] | None:
    """Give what an engine has in its environment beside the rest: code and password of this machine."""
    if not isinstance(remote, LocalHost):
        return None
    name = access and access.password_env
    return code_here() | ({name: os.environ[name]} if name and name in os.environ else {})


def hand_over(remote: Remote, spec: LoadSpec) -> LoadSpec:
    """Put the password of a variable where the engine can read it; give the spec that says where.

    Raises:
        AccessError: the variable is not set.
        StepFailed: the host cannot be reached, or the file not be written.

    """
    access = spec.target.access
    if not _travels(remote, access) or (login := read_login(access)) is None:
        return spec
    path = f"{spec.output_dir}/{PASSWORD}"
    write_secret(remote, path, login.password)
    named = replace(access, password_env=None, password_file=path) if access else None
    return replace(spec, target=replace(spec.target, access=named))


def write_secret(remote: Remote, path: str, text: str) -> None:
    """Write a file that only its user may read; the text goes over standard input.

    Raises:
        StepFailed: the host cannot be reached, or the file not be written.

    """
    run_repeatable(remote, ["sh", "-c", _WRITE, "write", path], stdin=text)


def take_back(remote: Remote, spec: LoadSpec) -> None:
    """Remove what `hand_over` put there, if the engine has not; raise StepFailed if that fails."""
    if _travels(remote, spec.target.access):
        run_repeatable(remote, ["rm", "-f", f"{spec.output_dir}/{PASSWORD}"])


def _travels(remote: Remote, access: Access | None) -> bool:
    is_here = isinstance(remote, LocalHost)
    return not is_here and access is not None and access.password_env is not None
