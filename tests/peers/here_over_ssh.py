"""A host that is reached over SSH, and is this machine."""

import shlex
from collections.abc import Sequence

from perf.hosts.remote import RUN_TIMEOUT_S, Completed, LocalHost, SshHost


class HereOverSsh(SshHost):
    """Does what a host is asked over SSH on this machine: what it starts goes on without its parent."""

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = RUN_TIMEOUT_S,
        stdin: str | None = None,
        check: bool = True,
    ) -> Completed:
        return LocalHost.run(
            LocalHost(), ["sh", "-c", shlex.join(argv)], timeout_s=timeout_s, stdin=stdin, check=check
        )
