"""MongoDB's client with an account and TLS, against a gate that checks both; the server is a script."""

import os
import socketserver
import threading
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from certificates import Pair, issue, make_authority
from mongo_gate import Gate, serve_gate
from mongo_script import Script, serve_scripts

from perf.model.access import Access, Tls
from perf.model.errors import AccessError, AccountRefused
from perf.systems.contract import Target
from perf.systems.mongodb.client import MongoSession

SECRET = "Plänted-s3cret/%40:"  # noqa: S105  of this test alone
VARIABLE = "KNICKPOINT_PASSWORD_TEST"
ADDRESS = f"127.27.0.{1 + int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0').removeprefix('gw'))}"
OTHER = ADDRESS.replace("127.27", "127.28")
BACKEND = (ADDRESS, 27_917)


@dataclass(frozen=True, slots=True)
class Gated:
    """A gate, and how a client gets through it."""

    gate: Gate
    target: Target
    access: Access
    authority: Pair
    directory: Path

    def connect(self, **changed: object) -> None:
        """Connect with an access that differs in something."""
        access = replace(self.access, **changed)  # type: ignore[arg-type]
        with MongoSession.connect(replace(self.target, access=access)):
            pass


@pytest.fixture
def gated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gated]:
    monkeypatch.setenv(VARIABLE, SECRET)
    authority = make_authority(tmp_path / "ca", "authority")
    joined = issue(authority, "server", ADDRESS).joined(tmp_path / "server.pem")
    script = Script(hello={"isWritablePrimary": True, "ismaster": True})
    access = Access(
        username="bench", password_env=VARIABLE, tls=Tls(ca_file=str(authority.certificate))
    )
    with (
        serve_scripts({BACKEND: script}),
        serve_gate(ADDRESS, BACKEND, joined, ("bench", SECRET)) as (port, gate),
    ):
        target = Target(
            system="mongodb",
            addresses=(ADDRESS,),
            port=port,
            replication_factor=1,
            consistency="one",
            timeout_s=1.0,
        )
        yield Gated(gate, target, access, authority, tmp_path)


def test_a_client_logs_in_over_tls(gated: Gated) -> None:
    gated.connect()
    assert gated.gate.let_in >= 1
    assert gated.gate.refused == 0


def test_a_wrong_password_is_one_sentence_without_it(
    gated: Gated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "wr0ng-Secret")
    with pytest.raises(AccountRefused) as caught:
        gated.connect()
    where = f"{ADDRESS}:{gated.target.port}"
    assert str(caught.value) == (
        f"access failed on {where}: the server refuses the account bench; check its name and password"
    )
    # Also what a log would show, with all that led to it.
    assert "wr0ng-Secret" not in "".join(traceback.format_exception(caught.value))
    assert gated.gate.let_in == 0


def test_an_authority_that_vouches_for_others_is_named(gated: Gated) -> None:
    stranger = make_authority(gated.directory / "other", "stranger")
    with pytest.raises(AccessError, match="is not signed by") as caught:
        gated.connect(tls=Tls(ca_file=str(stranger.certificate)))
    assert f"tls.ca_file {stranger.certificate}: " in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.slow
def test_a_certificate_of_another_host_is_refused(gated: Gated) -> None:
    joined = issue(gated.authority, "other", OTHER).joined(gated.directory / "other.pem")
    with serve_gate(ADDRESS, BACKEND, joined) as (port, _):
        moved = replace(gated, target=replace(gated.target, port=port))
        wanted = f"not valid for {ADDRESS}, at which it was reached; it must name that address"
        with pytest.raises(AccessError, match=wanted):
            moved.connect()


class _Plain(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.recv(1)
        self.request.sendall(b"this is no TLS\n")


@pytest.mark.slow
def test_a_server_without_tls_is_named(gated: Gated) -> None:
    with socketserver.ThreadingTCPServer((ADDRESS, 0), _Plain) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            plain = replace(gated, target=replace(gated.target, port=server.server_address[1]))
            with pytest.raises(AccessError, match="it does not speak TLS here: "):
                plain.connect()
        finally:
            server.shutdown()
            thread.join()


def test_clients_show_their_certificate_where_one_is_asked(gated: Gated) -> None:
    joined = gated.directory / "server.pem"
    own = issue(gated.authority, "client")
    tls = Tls(
        ca_file=str(gated.authority.certificate),
        certificate_file=str(own.certificate),
        key_file=str(own.key),
    )
    asks = serve_gate(ADDRESS, BACKEND, joined, ("bench", SECRET), gated.authority.certificate)
    with asks as (port, gate):
        strict = replace(gated, target=replace(gated.target, port=port))
        strict.connect(tls=tls)
        assert gate.let_in >= 1
        with pytest.raises(AccessError, match="it refuses this client's certificate, or that there"):
            strict.connect()
    assert gate.refused == 0
