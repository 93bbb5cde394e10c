"""What servers are told of accounts and TLS; whether they understand it, a real Cassandra says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from perf.hosts.remote import LocalHost
from perf.model.access import Access, Tls
from perf.model.design import SystemConfig, Testbed, Topology
from perf.model.errors import AccessError
from perf.model.results import Artifact, Source
from perf.systems import registry
from perf.systems.cassandra.system import java_command, render_config
from perf.systems.contract import Cluster, Node

ACCOUNT = Access(username="cassandra", password_env="KNICKPOINT_PASSWORD")  # noqa: S106  its name
ENCRYPTED = Access(tls=Tls(ca_file="/ca.crt"))
MUTUAL = Access(tls=Tls(ca_file="/ca.crt", certificate_file="/own.crt", key_file="/own.key"))
Make = Callable[..., Cluster]


@pytest.fixture
def make_cluster(tmp_path: Path, make_testbed: Callable[..., Testbed]) -> Make:
    def make(system: str, access: Access | None) -> Cluster:
        (tmp_path / "access").mkdir(exist_ok=True)
        node = Node(
            name="s1",
            index=0,
            address="127.0.0.71",
            remote=LocalHost(),
            work_dir=str(tmp_path / system / "s1"),
        )
        return Cluster(
            release=registry.load(system).releases()[-1],
            artifact=Artifact(source=Source.ARCHIVE, sha256="ab" * 32),
            nodes=(node,),
            topology=Topology(name="one", description="one", servers=1, replication_factor=1),
            testbed=make_testbed(),
            config=SystemConfig(system=system, name="closed", description="test", access=access),
        )

    return make


def put(tmp_path: Path, *names: str, mode: int = 0o600) -> None:
    for name in names:
        path = tmp_path / "access" / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
        path.chmod(mode)


def configured(system: str, cluster: Cluster) -> dict[str, Any]:
    (node,) = cluster.nodes
    if system == "cassandra":
        text = render_config(node, cluster)
    else:
        name = {"scylladb": "scylla.yaml", "mongodb": "mongod.conf"}[system]
        shipped = Path(node.work_dir, "server/etc/scylla/scylla.yaml")
        shipped.parent.mkdir(parents=True, exist_ok=True)
        shipped.write_text("{}")
        registry.load(system).configure(node, cluster)
        text = Path(node.work_dir, name).read_text()
    found: dict[str, Any] = YAML(typ="safe").load(text)
    return found


@pytest.mark.parametrize("system", ["cassandra", "scylladb"])
def test_an_account_is_asked_for(make_cluster: Make, system: str) -> None:
    assert "authenticator" not in configured(system, make_cluster(system, None))
    found = configured(system, make_cluster(system, ACCOUNT))
    assert found["authenticator"] == "PasswordAuthenticator"
    assert "client_encryption_options" not in found


def test_the_first_account_of_a_ring_is_there_at_once(make_cluster: Make) -> None:
    option = "-Dcassandra.superuser_setup_delay_ms=0"
    for access, is_there in ((ACCOUNT, True), (ENCRYPTED, False), (None, False)):
        cluster = make_cluster("cassandra", access)
        assert (option in java_command(cluster.nodes[0], cluster)) == is_there


@pytest.mark.parametrize(
    ("system", "access", "files", "wanted"),
    [
        (
            "cassandra",
            ENCRYPTED,
            {"keystore": "server.p12"},
            {
                "enabled": True,
                "optional": False,
                "store_type": "PKCS12",
                "keystore_password": "cassandra",
            },
        ),
        (
            "cassandra",
            MUTUAL,
            {"keystore": "server.p12", "truststore": "clients.p12"},
            {
                "enabled": True,
                "optional": False,
                "store_type": "PKCS12",
                "keystore_password": "cassandra",
                "truststore_password": "cassandra",
                "require_client_auth": True,
            },
        ),
        (
            "scylladb",
            ENCRYPTED,
            {"certificate": "server.crt", "keyfile": "server.key"},
            {"enabled": True},
        ),
        (
            "scylladb",
            MUTUAL,
            {"certificate": "server.crt", "keyfile": "server.key", "truststore": "clients.crt"},
            {"enabled": True, "require_client_auth": True},
        ),
        (
            "mongodb",
            ENCRYPTED,
            {"certificateKeyFile": "server.pem", "CAFile": "ca.crt"},
            {"mode": "requireTLS", "allowConnectionsWithoutCertificates": True},
        ),
        (
            "mongodb",
            MUTUAL,
            {"certificateKeyFile": "server.pem", "CAFile": "ca.crt"},
            {"mode": "requireTLS", "allowConnectionsWithoutCertificates": False},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_servers_show_certificates_of_the_operator(
    make_cluster: Make,
    tmp_path: Path,
    system: str,
    access: Access,
    files: dict[str, str],
    wanted: dict[str, object],
) -> None:
    cluster = make_cluster(system, access)
    for name in files.values():
        with pytest.raises(AccessError) as caught:
            configured(system, cluster)
        assert str(caught.value) == (
            f"access failed on s1: {tmp_path}/access/{name} is not there, or is open to others; "
            "put it there with mode 0600, see docs/security.md"
        )
        put(tmp_path, name, mode=0o640)
        with pytest.raises(AccessError, match="is open to others"):
            configured(system, cluster)
        put(tmp_path, name)
    found = configured(system, cluster)
    reported = found["net"]["tls"] if system == "mongodb" else found["client_encryption_options"]
    assert reported == wanted | {key: f"{tmp_path}/access/{name}" for key, name in files.items()}
