"""Both engines where a server asks for an account and speaks TLS, and where something of that is wrong.

MongoDB is a gate in front of the emulator of its protocol. What is planted is looked for afterwards.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from certificates import Pair, issue, make_authority
from mongo_gate import Gate, serve_gate
from needs import need_native
from planted import find_in_files, watch_processes
from served import ADDRESS, Served

from perf.hosts.remote import LocalHost
from perf.load.engines import PYTHON_ENGINE, Engine, run_engines
from perf.load.results.outcome import LoadOutcome
from perf.load.spec import PASSWORD, LoadSpec, Preload
from perf.model.access import Access, Tls
from perf.model.design import Steadiness
from perf.model.errors import StepFailed
from perf.model.records import Operation, Sensor
from perf.systems.contract import Target

pytestmark = pytest.mark.real

VARIABLE = "KNICKPOINT_PASSWORD_BENCH"
PLANTED = "pl4nted-Secret:/@%25"
WRONG = "wr0ng-Secret"
ROWS = 200
RECORDS = Sensor(kind="sensor", devices=20, payload_bytes=500, latest_count=5)


@dataclass(slots=True)
class Asking:
    """A server that asks for an account over TLS, and one engine to be, for it."""

    served: Served
    gate: Gate
    authority: Pair
    directory: Path
    command: tuple[str, ...]

    def access(self, **changed: object) -> Access:
        """Return what is right, but for what is changed."""
        tls = Tls(ca_file=str(self.authority.certificate))
        right = Access(username="bench", password_env=VARIABLE, tls=tls)
        return replace(right, **changed)  # type: ignore[arg-type]

    def load(self, access: Access, port: int | None = None) -> LoadOutcome:
        """Load rows with an access."""
        target = replace(self.served.target, access=access, port=port or self.served.target.port)
        spec = LoadSpec(
            target=target,
            records=RECORDS,
            mix={Operation.WRITE: 1.0},
            seed=7,
            engine_index=0,
            engine_count=1,
            preload=Preload(rows=ROWS, in_flight=4),
            output_dir=str(self.directory / "engine"),
        )
        return run_engines(
            [Engine(spec=spec, remote=LocalHost(), command=self.command)],
            connect_s=60,
            limit_s=60,
            steadiness=Steadiness(window_s=1, tolerance=1.0),
            watch=lambda: None,
            observe=lambda _: None,
        )

    def refusal(self, access: Access, port: int | None = None) -> str:
        """Return the last line that the engine says; no line has a password."""
        with pytest.raises(StepFailed) as caught:
            self.load(access, port)
        assert not {word for word in (PLANTED, WRONG) if word in str(caught.value)}
        return str(caught.value).splitlines()[-1]


@pytest.fixture(params=["python", "native"])
def asking(
    request: pytest.FixtureRequest,
    mongodb_server: Served,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Asking]:
    command = PYTHON_ENGINE if request.param == "python" else (str(need_native()),)
    monkeypatch.setenv(VARIABLE, PLANTED)
    authority = make_authority(tmp_path / "ca", "authority")
    joined = issue(authority, "server", ADDRESS).joined(tmp_path / "server.pem")
    target: Target = replace(mongodb_server.target, timeout_s=2.0)
    with serve_gate(ADDRESS, (ADDRESS, target.port), joined, ("bench", PLANTED)) as (port, gate):
        served = Served(mongodb_server.system, replace(target, port=port))
        yield Asking(served, gate, authority, tmp_path, command)


@pytest.mark.slow
@pytest.mark.keeps("no-secret-leaks")
def test_an_engine_logs_in_over_tls_and_leaves_no_secret(asking: Asking) -> None:
    right = asking.access()
    target = replace(asking.served.target, access=right)
    with asking.served.system.sessions.sensor(target) as session:
        session.create_schema(RECORDS)
        before = session.stored().rows
        let_in = asking.gate.let_in
        with watch_processes(PLANTED) as shown:
            asking.load(right)
        assert session.stored().rows - before == ROWS
    assert asking.gate.let_in > let_in
    assert asking.gate.refused == 0
    assert shown == set()
    assert find_in_files(PLANTED, asking.directory) == []


@pytest.mark.slow
def test_a_password_that_was_handed_over_is_removed_once_it_is_read(asking: Asking) -> None:
    # What the harness does on another host: it writes the file once the engine's directory is there.
    path = asking.directory / "engine" / PASSWORD
    handed = asking.access(password_env=None, password_file=str(path))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("perf.load.engines.hand_over", _writer(path))
        asking.load(handed)
    assert not path.exists()
    kept = asking.directory / "kept"
    _writer(kept)(LocalHost(), None)
    asking.load(asking.access(password_env=None, password_file=str(kept)))
    assert kept.read_text() == f"{PLANTED}\n"


def _writer(path: Path) -> Callable[[object, LoadSpec | None], LoadSpec | None]:
    def write(_: object, spec: LoadSpec | None) -> LoadSpec | None:
        path.touch(mode=0o600)
        path.write_text(f"{PLANTED}\n")
        return spec

    return write


@pytest.mark.slow
def test_clients_show_a_certificate_where_one_is_asked(asking: Asking) -> None:
    own = issue(asking.authority, "client")
    right = Tls(
        ca_file=str(asking.authority.certificate),
        certificate_file=str(own.certificate),
        key_file=str(own.key),
    )
    joined, clients = asking.directory / "server.pem", asking.authority.certificate
    strict = serve_gate(ADDRESS, asking.gate.backend, joined, ("bench", PLANTED), clients)
    with strict as (port, gate):
        asking.load(asking.access(tls=right), port)
        assert gate.let_in > 0
        wanted = "it refuses this client's certificate, or that there is none: "
        refused = asking.refusal(asking.access(), port)
        assert refused.startswith(f"access failed on {ADDRESS}:{port}: {wanted}")
    # What was joined for a driver is on no disk.
    key = own.key.read_text().splitlines()[1]
    assert find_in_files(key, asking.directory) == [own.key]
    other = issue(asking.authority, "other")
    pair = replace(right, key_file=str(other.key))
    assert asking.refusal(asking.access(tls=pair)) == (
        f"access failed on this host: tls.certificate_file {own.certificate} and "
        f"tls.key_file {other.key} do not fit together"
    )


@pytest.mark.slow
def test_what_cannot_be_read_is_one_sentence(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = asking.directory / "secret"
    by_file = asking.access(password_env=None, password_file=str(secret))
    here = f"access failed on this host: password_file {secret}"
    assert asking.refusal(by_file) == (
        f"{here} cannot be read: No such file or directory; it must hold the password of bench"
    )
    secret.write_text(PLANTED)
    secret.chmod(0o640)
    wanted = f"{here} may be used by others (mode 0640); chmod 600 it"
    assert asking.refusal(by_file) == wanted
    monkeypatch.delenv(VARIABLE)
    assert asking.refusal(asking.access()) == (
        f"access failed on this host: the environment variable {VARIABLE} is not set; "
        "set it to the password of bench"
    )


@pytest.mark.slow
def test_a_server_that_lets_nobody_in_is_one_sentence(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, WRONG)
    where = f"access failed on {ADDRESS}:{asking.served.target.port}: "
    assert asking.refusal(asking.access()) == (
        f"{where}the server refuses the account bench; check its name and password"
    )
    monkeypatch.setenv(VARIABLE, PLANTED)
    stranger = make_authority(asking.directory / "other", "stranger").certificate
    said = asking.refusal(asking.access(tls=Tls(ca_file=str(stranger))))
    assert said.startswith(f"{where}its certificate is not signed by tls.ca_file {stranger}: ")
    other = issue(asking.authority, "elsewhere", "127.0.0.9").joined(asking.directory / "other.pem")
    backend = asking.gate.backend
    with serve_gate(ADDRESS, backend, other) as (port, _):
        assert asking.refusal(asking.access(), port) == (
            f"access failed on {ADDRESS}:{port}: its certificate is not valid for {ADDRESS}, at which "
            "it was reached; it must name that address"
        )
