"""CrateDB's sessions: the tables they make, the statements they send, what they make of the answers.

What every session must keep to is in tests/contract.
"""

import json
from dataclasses import replace

import pytest
from crate_peer import CratePeer, Fault
from crate_sql import Refused

from perf.model.records import Answer, Devops, Operation, PutGet, Sensor, Stored, Ycsb
from perf.systems.contract import ChecksLayout, Target
from perf.systems.cratedb.client import FAILURES, RefusedRowsError
from perf.systems.cratedb.devops import render_query
from perf.systems.cratedb.system import CrateDB
from perf.systems.sessions import Scans, ShowsLater
from perf.workloads.devops.rows import DevopsRow, Query
from perf.workloads.devops.tables import TABLES, TAGS
from perf.workloads.sensor import SensorReading, payload_bytes
from perf.workloads.ycsb import check_record, check_scan, key_name, make_record

SYSTEM = CrateDB()
_A_KEY = "CREATE TABLE IF NOT EXISTS k.t (a TEXT PRIMARY KEY, b TEXT)"
READING = SensorReading("d1", 1_700_000_000_123, (0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5), b"\x00\xff")
SENSOR = Sensor(kind="sensor", devices=1, payload_bytes=1000)
YCSB = Ycsb(kind="ycsb", record_count=1, request_distribution="uniform", field_count=3)
KEY = key_name(YCSB, 0)
DEVOPS = Devops(kind="devops", hosts=2, span_s=10)
SINGLE = Query(
    operation=Operation.SINGLE_GROUPBY_5_8_1,
    metrics=("usage_user", "usage_system"),
    hosts=("host_1", "host_7"),
    from_ms=1_451_606_400_123,
    until_ms=1_451_610_000_123,
    bucket_ms=60_000,
    aggregate="max",
)


def test_the_system_says_what_it_can() -> None:
    assert SYSTEM.sessions.key_value
    assert SYSTEM.sessions.devops
    assert isinstance(SYSTEM, ChecksLayout)


def test_readings_of_a_device_share_a_shard(peer: CratePeer, target: Target) -> None:
    with SYSTEM.sessions.sensor(target) as session:
        session.create_schema(SENSOR)
    table = peer.store.tables["knickpoint.sensor_readings"]
    assert (table.key, table.clustered_by, table.shards) == (("device_id", "ts"), "device_id", None)
    assert table.options == {"number_of_replicas": "2", "write.wait_for_active_shards": "2"}


def test_a_read_sends_no_refresh_and_the_count_sends_one(peer: CratePeer, target: Target) -> None:
    with SYSTEM.sessions.sensor(target) as session:
        session.create_schema(SENSOR)
        session.write((READING,))
        assert isinstance(session, ShowsLater)
        assert session.read_latest("d1", 5) == ()
        assert not peer.statements("REFRESH")
        assert session.stored() == Stored(rows=1, payload_bytes=payload_bytes(READING))
        assert len(peer.statements("REFRESH")) == 1
        assert session.read_latest("d1", 5) == (READING,)


def test_one_reading_is_one_row_and_several_are_one_bulk_request(
    peer: CratePeer, target: Target
) -> None:
    batch = [replace(READING, ts_ms=READING.ts_ms + place) for place in range(4)]
    with SYSTEM.sessions.sensor(target) as session:
        session.create_schema(SENSOR)
        session.write((READING,))
        session.write(batch[1:3])
        with pytest.raises(RefusedRowsError, match="1 of 2 rows were refused") as failure:
            session.write(batch[2:])
        assert session.classify(failure.value).startswith("error:")
    one, several, _ = peer.statements("INSERT")
    assert one.arguments == ["d1", READING.ts_ms, *READING.values, "AP8="]
    assert [row[1] for row in several.arguments] == [READING.ts_ms + 1, READING.ts_ms + 2]


def test_everything_is_read_back_page_by_page(
    peer: CratePeer, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perf.systems.cratedb.sensor._PAGE_ROWS", 2)
    with SYSTEM.sessions.sensor(target) as session:
        session.create_schema(SENSOR)
        for device in ("d1", "d2"):
            for place in range(3):
                reading = replace(READING, device_id=device, ts_ms=READING.ts_ms + place)
                session.write((reading,))
        assert session.stored() == Stored(rows=6, payload_bytes=6 * payload_bytes(READING))
    assert len(peer.statements("SELECT device_id")) == 4


def test_a_record_has_a_column_per_field_that_nothing_indexes(peer: CratePeer, target: Target) -> None:
    laid_out = replace(target, layout={"shards": 7})
    with SYSTEM.sessions.key_value(laid_out) as session:
        session.create_schema(YCSB)
        session.create_schema(YCSB)
    (created, _) = peer.statements("CREATE")
    assert created.statement.count("TEXT INDEX OFF STORAGE WITH (columnstore = false)") == 3
    table = peer.store.tables["knickpoint.records"]
    assert list(table.columns) == ["id", "field0", "field1", "field2"]
    assert (table.key, table.shards) == (("id",), 7)


@pytest.mark.parametrize("lost", [None, "\u00e9", 7, "a"])
def test_a_field_that_is_lost_or_no_ascii_is_wrong_data(
    peer: CratePeer, target: Target, lost: object
) -> None:
    genuine: list[object] = [value.decode() for value in make_record(YCSB, 1, KEY)]
    with SYSTEM.sessions.key_value(target) as session:
        session.create_schema(YCSB)
        session.put(KEY, make_record(YCSB, 1, KEY))
        assert check_record(YCSB, 1, KEY, session.get(KEY)) is Answer.COMPLETED
        assert isinstance(session, Scans)
        for fields in ([lost, *genuine[1:]], genuine[1:]):
            answer = json.dumps({"rows": [[KEY, *fields]]}).encode()
            peer.faults += (Fault(200, answer), Fault(200, answer))
            assert check_record(YCSB, 1, KEY, session.get(KEY)) is Answer.WRONG_DATA
            assert check_scan(YCSB, 1, KEY, 1, session.scan(KEY, 1)) is Answer.WRONG_DATA


@pytest.mark.parametrize("lost", [None, "\u00e9", "a"])
def test_metadata_that_are_lost_are_none(peer: CratePeer, target: Target, lost: str | None) -> None:
    row = [READING.device_id, READING.ts_ms, *READING.values, lost]
    with SYSTEM.sessions.sensor(target) as session:
        peer.faults.append(Fault(200, json.dumps({"rows": [row]}).encode()))
        assert session.read_latest("d1", 1) == (replace(READING, metadata=b""),)


def test_a_client_that_did_not_create_the_table_knows_its_columns(target: Target) -> None:
    with SYSTEM.sessions.key_value(target) as session:
        session.create_schema(PutGet(kind="put-get", keys=1))
        session.put("k", (b"first",))
        session.put("k", (b"second",))
    with SYSTEM.sessions.key_value(target) as other:
        assert other.get("k") == (b"second",)
        assert other.get("nobody") is None
        assert other.stored() == Stored(rows=1, payload_bytes=len(b"second"))


def test_asking_before_there_is_a_table_is_an_error_each_time(target: Target) -> None:
    with SYSTEM.sessions.key_value(target) as session:
        with pytest.raises(FAILURES) as failure:
            session.get("k")
        assert session.classify(failure.value) == "error:cratedb-SchemaUnknownException"
        session.create_schema(YCSB)
        assert session.get("k") is None


def test_insert_refuses_a_key_that_is_there_and_update_makes_none(target: Target) -> None:
    with SYSTEM.sessions.key_value(target) as session:
        session.create_schema(YCSB)
        session.insert("k", (b"a", b"b", b"c"))
        with pytest.raises(FAILURES) as failure:
            session.insert("k", (b"a", b"b", b"c"))
        assert session.classify(failure.value) == "error:cratedb-DuplicateKeyException"
        session.update("k", {2: b"z"})
        session.update("nobody", {2: b"z"})
        assert session.get("k") == (b"a", b"b", b"z")
        assert session.get("nobody") is None


def test_a_scan_sees_the_last_refresh_in_the_order_of_keys(target: Target) -> None:
    with SYSTEM.sessions.key_value(target) as session:
        session.create_schema(YCSB)
        for key in ("b", "a", "d", "c"):
            session.insert(key, (key.encode(),) * 3)
        assert isinstance(session, Scans)
        assert isinstance(session, ShowsLater)
        assert session.scan("b", 2) == ()
        session.finish_load()
        assert [key for key, _ in session.scan("b", 2)] == ["b", "c"]
        assert session.scan("d", 9) == (("d", (b"d",) * 3),)


def test_tables_of_measurements_are_those_of_tsbs(peer: CratePeer, target: Target) -> None:
    with SYSTEM.sessions.devops(target) as session:
        session.create_schema(DEVOPS)
    assert set(peer.store.tables) == {f"knickpoint.{name}" for name in TABLES}
    cpu = peer.store.tables["knickpoint.cpu"]
    assert (cpu.key, cpu.shards, cpu.clustered_by) == ((), 5, None)
    assert list(cpu.columns)[: len(TAGS) + 2] == [*(f"tags.{tag}" for tag in TAGS), "ts", "usage_user"]
    assert peer.statements("CREATE")[0].statement.startswith(
        "CREATE TABLE IF NOT EXISTS knickpoint.cpu (tags OBJECT(DYNAMIC) AS (hostname TEXT, region TEXT"
    )


def test_rows_of_several_tables_are_a_bulk_request_each(peer: CratePeer, target: Target) -> None:
    tags = ("host_1", *("t" for _ in TAGS[1:]))
    rows = [
        DevopsRow(
            table, tags, 1_451_606_400_000 + moment, tuple(float(n) for n in range(len(TABLES[table])))
        )
        for moment in (0, 10_000)
        for table in ("cpu", "mem")
    ]
    with SYSTEM.sessions.devops(target) as session:
        session.create_schema(DEVOPS)
        session.write(rows)
        values = 2 * (len(TABLES["cpu"]) + len(TABLES["mem"]))
        assert session.stored() == Stored(rows=4, payload_bytes=8 * values)
    cpu, mem = peer.statements("INSERT")
    assert [row[1] for row in cpu.arguments] == [1_451_606_400_000, 1_451_606_410_000]
    assert cpu.arguments[0][0] == dict(zip(TAGS, tags, strict=True))
    assert mem.statement.startswith('INSERT INTO knickpoint.mem (tags, ts, "total"')


def test_queries_are_those_of_tsbs() -> None:
    statement, arguments = render_query(SINGLE)
    assert statement == (
        "SELECT date_trunc('minute', ts) AS bucket, max(\"usage_user\") AS max_usage_user, "
        'max("usage_system") AS max_usage_system FROM knickpoint.cpu '
        "WHERE tags['hostname'] IN (?, ?) AND ts >= ? AND ts < ? GROUP BY bucket ORDER BY bucket"
    )
    assert arguments == ["host_1", "host_7", SINGLE.from_ms, SINGLE.until_ms]


def test_a_double_groupby_gives_the_host_too() -> None:
    double = replace(SINGLE, hosts=(), bucket_ms=3_600_000, aggregate="mean", metrics=("usage_user",))
    statement, arguments = render_query(double)
    assert statement == (
        "SELECT date_trunc('hour', ts) AS bucket, tags['hostname'] AS host, "
        'avg("usage_user") AS mean_usage_user FROM knickpoint.cpu '
        "WHERE ts >= ? AND ts < ? GROUP BY bucket, host ORDER BY bucket, host"
    )
    assert arguments == [double.from_ms, double.until_ms]


def test_a_query_that_fails_is_named(peer: CratePeer, target: Target) -> None:
    with SYSTEM.sessions.devops(target) as session:
        session.create_schema(DEVOPS)
        peer.faults.append(Fault.refusal(500, 5030, "JobKilledException[Job killed]"))
        with pytest.raises(FAILURES) as failure:
            session.ask(SINGLE)
        assert session.classify(failure.value) == "error:cratedb-JobKilledException"
        assert session.can_ask(Operation.DOUBLE_GROUPBY_ALL)
        assert not session.can_ask(Operation.LOAD)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"no json", 4000),
        (b"[]", 4000),
        (b'{"stmt": "SELECT 1", "extra": 1}', 4000),
        (b'{"stmt": "SELECT 1", "args": [], "bulk_args": []}', 4000),
        (b'{"stmt": 1}', 4000),
        (b'{"stmt": "SELECT 1", "args": {}}', 4000),
        (b'{"stmt": "SELECT 1", "args": [1]}', 4000),
        (b'{"stmt": "DROP TABLE knickpoint.t"}', 4000),
        (b'{"stmt": "SELECT id FROM nowhere.t"}', 4045),
        (b'{"stmt": "SELECT id FROM knickpoint.other"}', 4041),
        (b'{"stmt": "SELECT y FROM knickpoint.t"}', 4043),
        (b'{"stmt": "SELECT median(x) FROM knickpoint.t"}', 4043),
        (b'{"stmt": "INSERT INTO knickpoint.t (id, x) VALUES (?, ?)", "args": ["a", "1"]}', 4003),
        (b'{"stmt": "INSERT INTO knickpoint.t (id, x) VALUES (?, ?)", "args": [1, 1.0]}', 4003),
        (b'{"stmt": "INSERT INTO knickpoint.t (id, y) VALUES (?, ?)", "args": ["a", 1]}', 4043),
        (b'{"stmt": "INSERT INTO knickpoint.t (id, x) VALUES (?, ?)", "bulk_args": [["a"]]}', 4000),
        (b'{"stmt": "INSERT INTO knickpoint.t (id, x) VALUES (?, ?)", "bulk_args": []}', 4000),
        (b'{"stmt": "REFRESH TABLE knickpoint.t, knickpoint.other"}', 4041),
        (b'{"stmt": "SELECT id FROM t"}', 4045),
        (b'{"stmt": "CREATE TABLE knickpoint.t (id TEXT)"}', 4093),
        (b'{"stmt": "ALTER TABLE knickpoint.t SET (number_of_copies = 2)"}', 4000),
        (b'{"stmt": "ALTER TABLE knickpoint.t SET (\\"write.wait_for_active_shards\\" = 2)"}', 4000),
    ],
)
def test_the_peer_refuses_what_the_reference_does_not_have(body: bytes, code: int) -> None:
    peer = CratePeer()
    create = "CREATE TABLE IF NOT EXISTS knickpoint.t (id TEXT PRIMARY KEY, x DOUBLE PRECISION)"
    peer.store.run(f"{create} WITH (number_of_replicas = 0)", ())
    with pytest.raises(Refused) as refused:
        peer.answer(body)
    assert refused.value.code == code
    peer.store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE IF NOT EXISTS k.t (id BLOB) WITH (number_of_replicas = 0)",
        "CREATE TABLE IF NOT EXISTS k.t (id TEXT) WITH (replicas = 0)",
        'CREATE TABLE IF NOT EXISTS k.t (id TEXT) WITH ("write.wait_for_active_shards" = 2)',
        "CREATE TABLE IF NOT EXISTS k.t (i TEXT) CLUSTERED INTO 0 SHARDS WITH (number_of_replicas = 0)",
        f"{_A_KEY} CLUSTERED BY (b) WITH (refresh_interval = 0)",
    ],
)
def test_the_peer_refuses_tables_that_cratedb_does_not_make(statement: str) -> None:
    peer = CratePeer()
    with pytest.raises(Refused):
        peer.store.run(statement, ())
    peer.store.close()
