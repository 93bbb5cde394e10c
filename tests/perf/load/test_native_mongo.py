"""The native engine's client of MongoDB beside the Python engine's; the server is a script.

What is sent is compared command by command; how an operation failed is named by the Python engine's own
session, which meets the same answer.
"""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import bson
import pytest
from certificates import issue, make_authority
from mongo_gate import serve_gate
from mongo_script import SILENCE, Document, Script, serve_scripts
from needs import need_native

from perf.load.engines import PYTHON_ENGINE
from perf.load.spec import GO, READY, RESULT, Counted, EngineResult, LoadSpec, dump_spec, read_result
from perf.model.access import Access, Tls
from perf.model.errors import AccessError
from perf.model.records import Devops, Operation, PutGet, Records, Sensor, Ycsb
from perf.systems.contract import Target
from perf.systems.mongodb import client as mongo
from perf.systems.mongodb.keys import MongoKeyValueSession

ADDRESS = f"127.29.0.{1 + int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0').removeprefix('gw'))}"
PORT = 27_918
WRITABLE = {"isWritablePrimary": True, "ismaster": True}
NOTHING: Document = {
    "ok": 1,
    "cursor": {"id": bson.Int64(0), "ns": "knickpoint.records", "firstBatch": []},
}
VARIABLE = "KNICKPOINT_PASSWORD_TEST"
SECRET = "Plänted-s3cret/%40:"  # noqa: S105  of this test alone
_LIMIT_S = 60.0

SENSOR = Sensor(kind="sensor", devices=3, payload_bytes=200, latest_count=4)
VALUES = PutGet(kind="put-get", keys=20)
YCSB = Ycsb(kind="ycsb", record_count=20, request_distribution="zipfian", field_count=3, field_length=9)
DEVOPS = Devops(kind="devops", hosts=9, span_s=7200, interval_s=60, queries=3)


def make_target(port: int = PORT, *, timeout_s: float = 20.0, **changed: str | Access) -> Target:
    """Describe the script's server to a client."""
    target = Target(
        system="mongodb",
        addresses=(ADDRESS,),
        port=port,
        replication_factor=3,
        consistency="quorum",
        timeout_s=timeout_s,
    )
    return replace(target, **changed)  # type: ignore[arg-type]


def make_spec(
    target: Target, records: Records, mix: Mapping[Operation, float], operations: int, place: Path
) -> LoadSpec:
    """Describe what an engine is to do, one operation after the other."""
    place.mkdir(exist_ok=True)
    return LoadSpec(
        target=target,
        records=records,
        mix=mix,
        seed=11,
        engine_index=0,
        engine_count=1,
        counted=Counted(phase="counted", operations=operations, in_flight=1),
        readable_rows=20,
        first_row=20,
        output_dir=str(place),
    )


def run_engine(spec: LoadSpec, command: tuple[str, ...]) -> tuple[int, str, EngineResult | None]:
    """Run an engine to its end: its exit code, what it said, its result."""
    place = Path(spec.output_dir)
    path = place / "spec.json"
    path.write_text(dump_spec(spec))
    with subprocess.Popen([*command, str(path)], stderr=subprocess.PIPE, text=True) as engine:
        end_s = time.monotonic() + _LIMIT_S
        while not (place / READY).exists() and engine.poll() is None and time.monotonic() < end_s:
            time.sleep(0.01)
        (place / GO).write_text(repr(time.time()))
        said = engine.communicate(timeout=_LIMIT_S)[1]
    result = place / RESULT
    return engine.returncode, said, read_result(result) if result.exists() else None


def run_native(spec: LoadSpec) -> tuple[int, str, EngineResult | None]:
    """Run the native engine."""
    return run_engine(spec, (str(need_native()),))


def _counted(result: EngineResult) -> dict[str, int]:
    sent = "sent_in_window"
    return {one.name: one.value for one in result.counters if one.value and one.name != sent}


def sent_by(command: tuple[str, ...], spec: LoadSpec, hello: Document = WRITABLE) -> list[Document]:
    """Return the commands that an engine sends for its operations, in order."""
    script = Script(hello=hello, answers=dict.fromkeys(("find", "aggregate"), NOTHING))
    with serve_scripts({(ADDRESS, PORT): script}):
        code, said, result = run_engine(spec, command)
    assert code == 0, said
    assert result is not None
    return [_comparable(asked) for asked in script.asked if _is_of_a_load(asked)]


def _is_of_a_load(asked: Document) -> bool:
    return next(iter(asked)) in {"insert", "update", "find", "aggregate"}


def _comparable(asked: Document) -> Document:
    assert 19_000 < asked.pop("maxTimeMS") <= 20_000
    assert asked.pop("lsid")["id"].__class__ is bson.Binary
    for document in asked.get("documents", []):
        if next(iter(document)) == "_id" and isinstance(document["_id"], bson.ObjectId):
            document["_id"] = "new"
    # What is stored and looked for, to the byte: the order of fields, and the type of each.
    parts = ("documents", "updates", "filter", "sort", "projection", "pipeline")
    exact = {part: bson.encode({part: asked[part]}) for part in parts if part in asked}
    return asked | exact


@pytest.mark.slow
@pytest.mark.parametrize(
    ("records", "mix"),
    [
        pytest.param(SENSOR, {Operation.WRITE: 0.5, Operation.READ_LATEST: 0.5}, id="sensor"),
        pytest.param(
            VALUES,
            {Operation.PUT: 0.4, Operation.GET: 0.4, Operation.PUT_GET: 0.2},
            id="put-get",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            YCSB,
            {
                Operation.READ: 0.2,
                Operation.UPDATE: 0.3,
                Operation.INSERT: 0.2,
                Operation.SCAN: 0.2,
                Operation.READ_MODIFY_WRITE: 0.1,
            },
            id="ycsb",
        ),
    ],
)
def test_both_engines_send_the_same_commands(
    records: Records, mix: dict[Operation, float], tmp_path: Path
) -> None:
    engine = str(need_native())
    by_python = sent_by(PYTHON_ENGINE, make_spec(make_target(), records, mix, 40, tmp_path / "python"))
    by_native = sent_by((engine,), make_spec(make_target(), records, mix, 40, tmp_path / "native"))
    assert len(by_python) >= 40
    for python, native in zip(by_python, by_native, strict=True):
        assert python == native


@pytest.mark.slow
def test_rows_of_one_command_are_sent_as_the_python_engine_sends_them(tmp_path: Path) -> None:
    engine = str(need_native())
    mix = {Operation.WRITE: 1.0}
    by_python = sent_by(
        PYTHON_ENGINE,
        replace(make_spec(make_target(), SENSOR, mix, 3, tmp_path / "python"), batch_rows=5),
    )
    by_native = sent_by(
        (engine,), replace(make_spec(make_target(), SENSOR, mix, 3, tmp_path / "native"), batch_rows=5)
    )
    assert by_python == by_native
    assert [command["ordered"] for command in by_native] == [False] * 3


@pytest.mark.parametrize("wire_version", [pytest.param(9, marks=pytest.mark.slow), 21])
def test_rows_and_queries_of_devops_are_sent_as_the_python_engine_sends_them(
    wire_version: int, tmp_path: Path
) -> None:
    """Before version 13 of the protocol, which is MongoDB 5.0, buckets of time are made otherwise."""
    hello = WRITABLE | {"maxWireVersion": wire_version}
    operations = Operation.LOAD, Operation.SINGLE_GROUPBY_5_8_1, Operation.DOUBLE_GROUPBY_5
    mix = dict.fromkeys(operations, 1.0)
    by_python, by_native = (
        sent_by(
            command,
            replace(make_spec(make_target(), DEVOPS, mix, 20, tmp_path / name), batch_rows=50),
            hello,
        )
        for name, command in (("python", PYTHON_ENGINE), ("native", (str(need_native()),)))
    )
    assert {next(iter(asked)) for asked in by_native} == {"insert", "aggregate"}
    assert len(by_python) == 20
    for python, native in zip(by_python, by_native, strict=True):
        assert python == native


@pytest.mark.parametrize(
    ("consistency", "wanted"),
    [("one", ({"w": 1}, {"level": "local"})), ("all", ({"w": 3}, {"level": "majority"}))],
)
def test_the_words_of_consistency_are_those_of_the_python_engine(
    consistency: str, wanted: tuple[Document, Document], tmp_path: Path
) -> None:
    target = make_target(consistency=consistency)
    spec = make_spec(target, VALUES, {Operation.PUT_GET: 1.0}, 1, tmp_path)
    put, get = sent_by((str(need_native()),), spec)
    assert (put["writeConcern"], get["readConcern"]) == wanted


def _write_errors(code: int) -> Document:
    return {"ok": 1, "n": 0, "writeErrors": [{"index": 0, "code": code, "errmsg": "so"}]}


def _concern(code: int) -> Document:
    return {"ok": 1, "n": 1, "writeConcernError": {"code": code, "errmsg": "so"}}


def _refusal(code: int) -> Document:
    return {"ok": 0, "code": code, "codeName": "So", "errmsg": "so"}


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("update", None),
        ("update", SILENCE),
        ("find", SILENCE),
        *(("update", _write_errors(code)) for code in (11_000, 50, 2)),
        *(("update", _concern(code)) for code in (64, 100)),
        *(("find", _refusal(code)) for code in (50, 262, 43, 96)),
        *(("update", _refusal(code)) for code in (11_000, 10_107)),
        ("update", _refusal(462) | {"errorLabels": ["SystemOverloadedError", "RetryableError"]}),
    ],
    ids=str,
)
def test_failures_have_the_names_of_the_python_engine(
    command: str, answer: Document | None, tmp_path: Path
) -> None:
    operation = Operation.PUT if command == "update" else Operation.GET
    script = Script(hello=WRITABLE, answers={command: answer})
    timeout_s = 0.5 if answer is SILENCE else 20.0
    target = make_target(timeout_s=timeout_s)
    with serve_scripts({(ADDRESS, PORT): script}):
        code, said, result = run_native(make_spec(target, VALUES, {operation: 1.0}, 1, tmp_path))
        assert len(script.named(command)) == 1, "tried again"
        with MongoKeyValueSession.connect(target) as session, pytest.raises(Exception) as failed:  # noqa: PT011
            session.put("1", [b"1"]) if operation is Operation.PUT else session.get("1")
        name = session.classify(failed.value)
    assert code == 0, said
    assert result is not None
    assert _counted(result) == {"attempted": 1, name: 1}
    assert any(name in example for example in result.examples)


def test_an_answer_that_comes_too_late_is_never_taken_for_another_ones(tmp_path: Path) -> None:
    """One connection is silent, and its operation is late; the next one goes over another."""
    need_native()

    class Once(Script):
        def answer(self, asked: Document) -> Document | None:
            answered = super().answer(asked)
            is_first = next(iter(asked)) == "find" and len(self.named("find")) == 1
            return SILENCE if is_first else answered

    script = Once(hello=WRITABLE, answers={"find": NOTHING})
    target = make_target(timeout_s=0.5)
    with serve_scripts({(ADDRESS, PORT): script}):
        code, said, result = run_native(make_spec(target, VALUES, {Operation.GET: 1.0}, 3, tmp_path))
    assert code == 0, said
    assert result is not None
    assert _counted(result) == {"attempted": 3, "timeouts": 1, "not_found": 2}


def _members(hellos: Sequence[Document]) -> dict[tuple[str, int], Script]:
    hosts = [ADDRESS.replace("127.29", f"127.{30 + place}") for place in range(len(hellos))]
    names = {"setName": "knickpoint", "hosts": [f"{host}:{PORT}" for host in hosts]}
    return {
        (host, PORT): Script(
            hello=hello if "msg" in hello else names | hello, answers={"find": NOTHING}
        )
        for host, hello in zip(hosts, hellos, strict=True)
    }


@pytest.mark.parametrize(
    ("hellos", "wanted"),
    [
        pytest.param(
            ({"secondary": True}, WRITABLE, {"secondary": True}), (0, 600, 0), id="replica-set"
        ),
        pytest.param(({"msg": "isdbgrid"}, {"msg": "isdbgrid"}), (1, 1), id="routers"),
    ],
)
def test_operations_go_to_the_primary_or_to_all_routers(
    hellos: Sequence[Document], wanted: tuple[int, ...], tmp_path: Path
) -> None:
    scripts = _members(hellos)
    addresses = tuple(address for address, _ in scripts)
    target = replace(make_target(), addresses=addresses, routers="msg" in hellos[0])
    with serve_scripts(scripts):
        spec = make_spec(target, VALUES, {Operation.PUT: 0.5, Operation.GET: 0.5}, 600, tmp_path)
        code, said, _ = run_native(spec)
    assert code == 0, said
    served = [len(script.named("update") + script.named("find")) for script in scripts.values()]
    # Each router has answered before the load begins, so each has a share of it.
    assert sum(served) == 600
    assert all(count >= least for count, least in zip(served, wanted, strict=True)), served


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    target = make_target(port=1, timeout_s=0.5)
    code, said, result = run_native(make_spec(target, VALUES, {Operation.GET: 1.0}, 1, tmp_path))
    assert (code, result) == (1, None)
    assert f"MongoDB at {ADDRESS}:1: " in said
    assert "Connection refused" in said


def _said_by_python(target: Target) -> str:
    with pytest.raises(AccessError) as refused, mongo.MongoSession.connect(target):
        pass
    return str(refused.value)


@pytest.mark.slow
def test_a_client_logs_in_over_tls_and_says_what_the_python_engine_says_where_it_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_native()
    authority = make_authority(tmp_path / "ca", "authority")
    stranger = make_authority(tmp_path / "other", "stranger")
    joined = issue(authority, "server", ADDRESS).joined(tmp_path / "server.pem")
    tls = Tls(ca_file=str(authority.certificate))
    access = Access(username="bench", password_env=VARIABLE, tls=tls)
    script = Script(hello=WRITABLE, answers={"find": NOTHING})
    backend = (ADDRESS, PORT)
    with (
        serve_scripts({backend: script}),
        serve_gate(ADDRESS, backend, joined, ("bench", SECRET)) as (port, gate),
    ):
        target = make_target(port=port, timeout_s=2.0, access=access)
        run = _runner(target, tmp_path)
        monkeypatch.setenv(VARIABLE, SECRET)
        code, said, _ = run(access)
        assert (code, said) == (0, "")
        assert gate.let_in >= 1
        wrong = replace(access, tls=Tls(ca_file=str(stranger.certificate)))
        code, said, _ = run(wrong)
        # Up to what either library calls the reason.
        assert (
            said.split(".crt: ")[0] == _said_by_python(replace(target, access=wrong)).split(".crt: ")[0]
        )
        assert code == 1
        monkeypatch.setenv(VARIABLE, "wr0ng-Secret")
        code, said, _ = run(access)
        assert (code, said.strip()) == (1, _said_by_python(target))
        assert "wr0ng" not in said
        monkeypatch.delenv(VARIABLE)
        code, said, _ = run(access)
        assert (code, said.strip()) == (1, _said_by_python(target))


@pytest.mark.slow
def test_clients_show_their_certificate_and_leave_no_copy_of_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_native()
    own_temporary = tmp_path / "temporary"
    own_temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(own_temporary))
    authority = make_authority(tmp_path / "ca", "authority")
    joined = issue(authority, "server", ADDRESS).joined(tmp_path / "server.pem")
    own = issue(authority, "client")
    tls = Tls(
        ca_file=str(authority.certificate),
        certificate_file=str(own.certificate),
        key_file=str(own.key),
    )
    script = Script(hello=WRITABLE, answers={"find": NOTHING})
    asks = serve_gate(ADDRESS, (ADDRESS, PORT), joined, clients=authority.certificate)
    with serve_scripts({(ADDRESS, PORT): script}), asks as (port, _):
        run = _runner(make_target(port=port, timeout_s=2.0), tmp_path)
        code, said, _ = run(Access(tls=tls))
        assert (code, said) == (0, "")
        code, _, _ = run(Access(tls=Tls(ca_file=str(authority.certificate))))
        assert code == 1
    assert list(own_temporary.iterdir()) == []


def _runner(target: Target, place: Path) -> Callable[[Access], tuple[int, str, EngineResult | None]]:
    numbers = iter(range(9))

    def run(access: Access) -> tuple[int, str, EngineResult | None]:
        its = replace(target, access=access)
        return run_native(
            make_spec(its, VALUES, {Operation.GET: 1.0}, 1, place / f"run-{next(numbers)}")
        )

    return run
