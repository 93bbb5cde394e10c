"""What a Cassandra server is told of accounts and TLS.

The operator's files: server.p12 (certificate, key and chain), clients.p12 (whom it trusts). They are
PKCS #12 and have the passphrase that Cassandra's documentation uses: their mode protects them, not a
word that would have to be in a configuration.
"""

from pydantic import JsonValue

from perf.model.access import Access
from perf.systems.contract import Node
from perf.systems.server_access import asks_clients, private_file

FAST_ACCOUNT = "-Dcassandra.superuser_setup_delay_ms=0"
"""Has a fresh ring create its first account at once, instead of ten seconds after its start."""
_PASSPHRASE = "cassandra"  # noqa: S105  a word that all know, as above


def access_settings(node: Node, access: Access | None) -> dict[str, JsonValue]:
    """Return settings of cassandra.yaml; raise AccessError if a file is not there, or not private."""
    settings: dict[str, JsonValue] = {}
    if access is None:
        return settings
    if access.username is not None:
        settings["authenticator"] = "PasswordAuthenticator"
    if access.tls is not None:
        options: dict[str, JsonValue] = {
            "enabled": True,
            "optional": False,
            "store_type": "PKCS12",
            "keystore": private_file(node, "server.p12"),
            "keystore_password": _PASSPHRASE,
        }
        if asks_clients(access.tls):
            options |= {
                "require_client_auth": True,
                "truststore": private_file(node, "clients.p12"),
                "truststore_password": _PASSPHRASE,
            }
        settings["client_encryption_options"] = options
    return settings
