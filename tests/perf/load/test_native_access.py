"""The native engine lets itself in, or says why not, by the very sentences of the Python engine."""

import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from certificates import Pair, issue, make_authority
from needs import need_native

from perf.load.spec import Counted, LoadSpec, dump_spec
from perf.model.access import Access, Tls
from perf.model.errors import AccessError
from perf.model.records import Operation, PutGet
from perf.systems.contract import Target
from perf.systems.credentials import explain_tls, prove_access

SECRET = "pl4nted secret"  # noqa: S105  of this test alone
VARIABLE = "KNICKPOINT_PASSWORD_TEST"
ADDRESS = f"127.29.0.{1 + int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0').removeprefix('gw'))}"
OTHER = ADDRESS.replace("127.29", "127.30")
FAILED = 1
LIMIT_S = 60

Say = Callable[..., str]


@pytest.fixture
def say(tmp_path: Path) -> Say:
    """Return `say(access, port)`: the last line of a native engine that cannot connect."""
    program = need_native()

    def ask(access: Access | None, port: int = 1, **environment: str) -> str:
        target = Target(
            system="cassandra",
            addresses=(ADDRESS,),
            port=port,
            replication_factor=1,
            consistency="one",
            timeout_s=5.0,
            access=access,
        )
        spec = LoadSpec(
            target=target,
            records=PutGet(kind="put-get", keys=1),
            mix={Operation.GET: 1.0},
            seed=7,
            engine_index=0,
            engine_count=1,
            counted=Counted(phase="counted", operations=1, in_flight=1),
            output_dir=str(tmp_path),
        )
        path = tmp_path / "spec.json"
        path.write_text(dump_spec(spec))
        around = os.environ | environment
        done = subprocess.run(
            [program, path], capture_output=True, text=True, check=False, env=around, timeout=LIMIT_S
        )
        assert done.returncode == FAILED, done
        assert SECRET not in done.stdout + done.stderr
        return done.stderr.splitlines()[-1]

    return ask


@pytest.fixture
def authority(tmp_path: Path) -> Pair:
    return make_authority(tmp_path / "ca", "authority")


def as_python(access: Access) -> str:
    """Describe what the Python engine says."""
    with pytest.raises(AccessError) as caught:
        prove_access(access)
    return str(caught.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_password_that_others_may_use_is_refused(say: Say, tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secret"
    path.write_text(SECRET)
    path.chmod(mode)
    access = Access(username="bench", password_file=str(path))
    assert say(access) == as_python(access)


@pytest.mark.parametrize("text", ["", "\n", f"{SECRET}\n{SECRET}\n"])
def test_a_file_without_one_password_is_refused(say: Say, tmp_path: Path, text: str) -> None:
    path = tmp_path / "secret"
    path.write_text(text)
    path.chmod(0o600)
    access = Access(username="bench", password_file=str(path))
    assert say(access) == as_python(access)


def test_all_of_a_long_file_is_read_and_what_is_far_too_long_is_refused(
    say: Say, tmp_path: Path, authority: Pair
) -> None:
    path, pem = tmp_path / "bundle", authority.certificate.read_text()
    path.write_text("# an authority that is told about at length\n" * 5_000 + pem)
    # It is taken: what is wrong is that nobody is there.
    assert f"{ADDRESS}:1: cannot connect" in say(Access(tls=Tls(ca_file=str(path))))
    path.write_text(pem + "#" * 1024 * 1024)
    path.chmod(0o600)
    for access in (
        Access(tls=Tls(ca_file=str(path))),
        Access(username="bench", password_file=str(path)),
    ):
        assert say(access) == as_python(access)


def test_what_is_not_there_is_named(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    for access in (
        Access(username="bench", password_env=VARIABLE),
        Access(username="bench", password_file=str(tmp_path / "nowhere")),
        Access(username="bench", password_file=str(tmp_path)),
        Access(tls=Tls(ca_file=str(tmp_path / "nowhere"))),
    ):
        assert say(access) == as_python(access)


def test_a_pair_that_does_not_fit_together_is_refused(
    say: Say, tmp_path: Path, authority: Pair
) -> None:
    one, other = issue(authority, "one"), issue(authority, "other")
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("no certificate\n")
    for ca_file, certificate, key in (
        (authority.certificate, one.certificate, other.key),
        (authority.certificate, nothing, one.key),
        (nothing, one.certificate, one.key),
    ):
        files = (str(ca_file), str(certificate), str(key))
        access = Access(tls=Tls(ca_file=files[0], certificate_file=files[1], key_file=files[2]))
        assert say(access) == as_python(access)


def test_a_key_that_others_may_read_is_refused(say: Say, authority: Pair) -> None:
    one = issue(authority, "one")
    one.key.chmod(0o644)
    tls = Tls(
        ca_file=str(authority.certificate),
        certificate_file=str(one.certificate),
        key_file=str(one.key),
    )
    assert say(Access(tls=tls)) == as_python(Access(tls=tls))


@contextmanager
def serving(shown: Pair | None) -> Iterator[int]:
    """Serve TLS with a certificate, or what is no TLS; nobody gets further than the handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if shown:
        context.load_cert_chain(shown.certificate, shown.key)

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                if shown:
                    context.wrap_socket(connection, server_side=True).close()
                else:
                    connection.sendall(b"this is no TLS\r\n")

    with socket.create_server((ADDRESS, 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            # A thread that waits for a connection is not woken by the end of its socket alone.
            server.shutdown(socket.SHUT_RDWR)
            thread.join(LIMIT_S)


@pytest.mark.parametrize("case", ["another address", "another authority", "no TLS"])
def test_a_server_that_must_not_be_trusted_is_named(
    say: Say, tmp_path: Path, authority: Pair, case: str
) -> None:
    stranger = make_authority(tmp_path / "stranger", "stranger")
    shown = {
        "another address": issue(authority, "server", OTHER),
        "another authority": issue(stranger, "server", ADDRESS),
        "no TLS": None,
    }[case]
    access = Access(tls=Tls(ca_file=str(authority.certificate)))
    with serving(shown) as port:
        reported = explain_tls(access, ADDRESS, port)
        assert reported is not None
        # Why in detail is said by the library that found it.
        said, cut = say(access, port), ": "
        assert said.split(cut)[:2] == str(reported).split(cut)[:2]


def test_nobody_there_is_reported_with_the_address(say: Say) -> None:
    said = say(None)
    assert said.startswith(f"{ADDRESS}:1: cannot connect: "), said
    assert "is the server running" in said
