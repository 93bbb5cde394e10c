"""What a ScyllaDB server is told of accounts and TLS.

The operator's files: server.crt, server.key, clients.crt (whom it trusts).
"""

from pydantic import JsonValue

from perf.model.access import Access
from perf.systems.contract import Node
from perf.systems.server_access import asks_clients, private_file


def access_settings(node: Node, access: Access | None) -> dict[str, JsonValue]:
    """Return settings of scylla.yaml; raise AccessError if a file is not there, or not private."""
    settings: dict[str, JsonValue] = {}
    if access is None:
        return settings
    if access.username is not None:
        settings["authenticator"] = "PasswordAuthenticator"
    if access.tls is not None:
        options: dict[str, JsonValue] = {
            "enabled": True,
            "certificate": private_file(node, "server.crt"),
            "keyfile": private_file(node, "server.key"),
        }
        if asks_clients(access.tls):
            options |= {"require_client_auth": True, "truststore": private_file(node, "clients.crt")}
        settings["client_encryption_options"] = options
    return settings
