"""What servers need for accounts and TLS of a config's `access`: no config says it itself.

An operator puts each server's own certificate into the directory `access` beside the directories of
the systems, on each server host, where no trial wipes it; only the servers' user may read its files.
Which files and settings they are, each system's `access.py` says. What says whom a server trusts is
needed where clients show a certificate.
"""

from perf.model.access import Tls
from perf.model.errors import AccessError
from perf.systems.contract import Node

# Prints the path of a file that nobody else may use.
_PRIVATE = ("-maxdepth", "0", "-type", "f", "-not", "-perm", "/077")


def asks_clients(tls: Tls) -> bool:
    """Return whether clients show a certificate."""
    return tls.certificate_file is not None


def private_file(node: Node, name: str) -> str:
    """Return the path of a file of the operator's on a node's host.

    Raises:
        AccessError: it is not there, or others may use it.

    """
    path = f"{node.base_dir}/access/{name}"
    found = node.remote.run(["find", "-L", path, *_PRIVATE], check=False).stdout
    if not found.strip():
        why = "is not there, or is open to others; put it there with mode 0600, see docs/security.md"
        raise AccessError(node.name, f"{path} {why}")
    return path
