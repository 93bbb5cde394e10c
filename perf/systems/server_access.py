"""What servers are told of accounts and TLS, from a config's `access`: no config says it itself.

An operator puts each server's own certificate into the directory `access` beside the directories of
the systems, on each server host, where no trial wipes it; only the servers' user may read its files:

    cassandra   server.p12 (certificate, key and chain), clients.p12 (whom it trusts)
    scylladb    server.crt, server.key, clients.crt
    mongodb     server.pem (certificate and key), ca.crt (whom it trusts: members and clients)

What says whom a server trusts is needed where clients show a certificate, and always for MongoDB. The
two of Cassandra are PKCS #12 and have the passphrase that its documentation uses: their mode protects
them, not a word that would have to be in a configuration.
"""

from pydantic import JsonValue

from perf.model.access import Access, Tls
from perf.model.errors import AccessError
from perf.systems.contract import Node

FAST_ACCOUNT = "-Dcassandra.superuser_setup_delay_ms=0"
"""Has a fresh ring create its first account at once, instead of ten seconds after its start."""
_PASSPHRASE = "cassandra"  # noqa: S105  a word that all know, as above
# Prints the path of a file that nobody else may use.
_PRIVATE = ("-maxdepth", "0", "-type", "f", "-not", "-perm", "/077")


def cassandra_settings(node: Node, access: Access | None) -> dict[str, JsonValue]:
    """Give settings of cassandra.yaml; raise AccessError if a file is not there, or not private."""
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
            "keystore": _private_file(node, "server.p12"),
            "keystore_password": _PASSPHRASE,
        }
        if _asks_clients(access.tls):
            options |= {
                "require_client_auth": True,
                "truststore": _private_file(node, "clients.p12"),
                "truststore_password": _PASSPHRASE,
            }
        settings["client_encryption_options"] = options
    return settings


def scylladb_settings(node: Node, access: Access | None) -> dict[str, JsonValue]:
    """Give settings of scylla.yaml; raise AccessError if a file is not there, or not private."""
    settings: dict[str, JsonValue] = {}
    if access is None:
        return settings
    if access.username is not None:
        settings["authenticator"] = "PasswordAuthenticator"
    if access.tls is not None:
        options: dict[str, JsonValue] = {
            "enabled": True,
            "certificate": _private_file(node, "server.crt"),
            "keyfile": _private_file(node, "server.key"),
        }
        if _asks_clients(access.tls):
            options |= {"require_client_auth": True, "truststore": _private_file(node, "clients.crt")}
        settings["client_encryption_options"] = options
    return settings


def mongodb_tls(node: Node, access: Access | None) -> dict[str, JsonValue]:
    """Give the settings net.tls of a server, if any; raise AccessError as the others do."""
    if access is None or access.tls is None:
        return {}
    return {
        "tls": {
            "mode": "requireTLS",
            "certificateKeyFile": _private_file(node, "server.pem"),
            "CAFile": _private_file(node, "ca.crt"),
            "allowConnectionsWithoutCertificates": not _asks_clients(access.tls),
        }
    }


def _asks_clients(tls: Tls) -> bool:
    return tls.certificate_file is not None


def _private_file(node: Node, name: str) -> str:
    """Give the path of a file of the operator's on a node's host."""
    path = f"{node.base_dir}/access/{name}"
    found = node.remote.run(["find", "-L", path, *_PRIVATE], check=False).stdout
    if not found.strip():
        why = "is not there, or is open to others; put it there with mode 0600, see docs/security.md"
        raise AccessError(node.name, f"{path} {why}")
    return path
