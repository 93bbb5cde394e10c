"""What a MongoDB server is told of TLS.

The operator's files: server.pem (certificate and key), and always ca.crt (whom it trusts: members and
clients).
"""

from pydantic import JsonValue

from perf.model.access import Access
from perf.systems.contract import Node
from perf.systems.server_access import asks_clients, private_file


def tls_settings(node: Node, access: Access | None) -> dict[str, JsonValue]:
    """Give the settings net.tls of a server, if any; raise AccessError if a file is missing or open."""
    if access is None or access.tls is None:
        return {}
    return {
        "tls": {
            "mode": "requireTLS",
            "certificateKeyFile": private_file(node, "server.pem"),
            "CAFile": private_file(node, "ca.crt"),
            "allowConnectionsWithoutCertificates": not asks_clients(access.tls),
        }
    }
