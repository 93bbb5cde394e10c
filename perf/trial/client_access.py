"""Look for the files of an `Access` on client hosts over SSH, before anything is started for them.

What is in them an engine says when it connects: here is seen that they are there, and who may use them.
"""

from collections.abc import Iterable, Iterator

from perf.hosts.remote import LocalHost, Remote, run_repeatable
from perf.model.access import Access
from perf.model.errors import AccessError
from perf.systems.credentials import why_not_private

# Prints the user's id; then of each path "OWNER MODE" if the user can read it, else nothing, on a line.
_LOOK = (
    "id -u; for path; do "
    'if [ -f "$path" ] && [ -r "$path" ]; then stat -Lc "%u %a" "$path"; else echo; fi; done'
)
_PRIVATE = ("password_file", "tls.key_file")


def prove_on_clients(access: Access | None, clients: Iterable[Remote]) -> None:
    """Return if the user of each client host over SSH can read the files that `access` names.

    Raises:
        AccessError: one cannot be read there, or others may use a secret.
        StepFailed: a host cannot be reached.

    """
    files = dict(_name_files(access)) if access else {}
    for remote in clients if files else ():
        if not isinstance(remote, LocalHost):
            _prove(remote, files)


def _name_files(access: Access) -> Iterator[tuple[str, str]]:
    if access.password_file is not None:
        yield "password_file", access.password_file
    if access.tls is not None:
        yield "tls.ca_file", access.tls.ca_file
        if access.tls.certificate_file is not None and access.tls.key_file is not None:
            yield "tls.certificate_file", access.tls.certificate_file
            yield "tls.key_file", access.tls.key_file


def _prove(remote: Remote, files: dict[str, str]) -> None:
    done = run_repeatable(remote, ["sh", "-c", _LOOK, "look", *files.values()])
    user, *found = done.stdout.splitlines()
    for (what, path), about in zip(files.items(), found, strict=True):
        if not about:
            why = "is no regular file there that the user of its engines can read"
            raise AccessError(remote.name, f"{what} {path} {why}")
        owner, mode = about.split()
        why = why_not_private(int(owner), int(mode, 8), int(user))
        if what in _PRIVATE and why:
            raise AccessError(remote.name, f"{what} {path} {why}")
