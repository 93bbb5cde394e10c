from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from perf.model.records import Devops
from perf.workloads.devops.batches import TABLES, TAGS, Batches, host_tags
from perf.workloads.devops.rows import DevopsRow
from perf.workloads.devops.tables import REGIONS, VALUES_PER_HOST, devops_rows
from perf.workloads.devops.walks import ALL_WALKS, _draw, memory_bytes, walk_states
from perf.workloads.loading import devops_stored
from perf.workloads.splitmix import stream, word

RECORDS = Devops(kind="devops", hosts=7, span_s=600)
SEED = 123
PUBLISHED = Devops(kind="devops", hosts=4000, span_s=259_200)
# An engine on another machine, or of the next release, must make the same rows.
GOLDEN = {
    "cpu": (45, 79, 60, 34, 44, 4, 50, 69, 34, 95),
    "disk": (1099511627776, 549755816834, 549755810942, 49, 268435456, 134217728, 134217728),
    "nginx": (289, 100, 287, 100, 299, 100, 100),
}


def rows_of(records: Devops, batch_rows: int = 1000) -> list[DevopsRow]:
    batches = Batches(records, SEED, batch_rows)
    count = -(-devops_rows(records) // batch_rows)
    return [row for number in range(count) for row in batches.batch(number)]


def test_the_published_size_is_that_of_the_report() -> None:
    # 103 million rows in each of nine tables.
    assert devops_rows(PUBLISHED) == 9 * 103_680_000


def test_every_table_has_the_fields_of_tsbs() -> None:
    assert {table: len(fields) for table, fields in TABLES.items()} == {
        "cpu": 10,
        "diskio": 7,
        "disk": 7,
        "kernel": 6,
        "mem": 9,
        "net": 8,
        "nginx": 7,
        "postgresl": 16,
        "redis": 31,
    }
    assert VALUES_PER_HOST == 101
    names = [field.name for fields in TABLES.values() for field in fields]
    assert names[0] == "usage_user"
    assert names[-1] == "used_cpu_user_children"
    odd = {field.name for field in TABLES["mem"] if not field.is_whole}
    assert odd == {"used_percent", "available_percent", "buffered_percent"}


def test_rows_come_moment_by_moment_and_table_by_table() -> None:
    rows = rows_of(RECORDS)
    places = [
        (RECORDS.begin_s * 1000 + moment * 10_000, table, f"host_{host}")
        for moment in range(60)
        for table in TABLES
        for host in range(RECORDS.hosts)
    ]
    assert [(row.ts_ms, row.table, row.tags[0]) for row in rows] == places


def test_what_is_stored_is_known_beforehand() -> None:
    rows = rows_of(RECORDS)
    stored = devops_stored(RECORDS)
    assert stored.rows == len(rows)
    assert stored.payload_bytes == 8 * sum(len(row.values) for row in rows)


@pytest.mark.parametrize("batch_rows", [1, 10, 63, 1000, 10_000])
def test_batches_of_any_size_hold_the_same_rows(batch_rows: int) -> None:
    assert rows_of(RECORDS, batch_rows) == rows_of(RECORDS)


def test_a_batch_does_not_depend_on_those_before() -> None:
    long = replace(RECORDS, span_s=40_000)  # longer than what is kept of the walks
    alone = Batches(long, SEED, 50)
    wanted = [alone.batch(number) for number in (0, 1, 4000)]
    assert [alone.batch(number) for number in (4000, 1, 0)] == wanted[::-1]


@pytest.mark.slow
def test_threads_that_ask_in_turn_get_the_same_batches() -> None:
    long = replace(RECORDS, span_s=20_000)
    wanted = [Batches(long, SEED, 500).batch(number) for number in range(0, 250, 25)]
    shared = Batches(long, SEED, 500)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(shared.batch, range(250)))
    assert found[::25] == wanted


def test_beyond_the_end_a_batch_is_empty() -> None:
    batches = Batches(RECORDS, SEED, 1000)
    assert batches.batch(3) + batches.batch(4) == batches.batch(3)
    assert len(batches.batch(3)) == devops_rows(RECORDS) - 3000


def test_rows_never_change_from_one_version_to_the_next() -> None:
    last = {row.table: row.values for row in rows_of(RECORDS) if row.tags[0] == "host_3"}
    assert {table: last[table] for table in GOLDEN} == GOLDEN


def test_whole_numbers_are_whole() -> None:
    for row in rows_of(RECORDS)[-7 * 9 :]:
        kinds = [type(value) for value in row.values]
        assert kinds == [int if field.is_whole else float for field in TABLES[row.table]]


def test_values_hang_together_as_in_tsbs() -> None:
    for row in rows_of(RECORDS):
        named = dict(zip((field.name for field in TABLES[row.table]), row.values, strict=True))
        if row.table == "cpu":
            assert all(0 <= value <= 100 for value in row.values)
        elif row.table == "disk":
            assert named["free"] + named["used"] == named["total"] == 1 << 40
            assert named["inodes_free"] + named["inodes_used"] == named["inodes_total"]
        elif row.table == "mem":
            assert named["used"] + named["available"] == named["total"]
            assert named["used_percent"] == pytest.approx(100 * named["used"] / named["total"])
        elif row.table == "redis":
            assert named["uptime_in_seconds"] == row.ts_ms // 1000 - RECORDS.begin_s


def test_counters_only_grow() -> None:
    reads = [
        row.values[0] for row in rows_of(RECORDS) if (row.table, row.tags[0]) == ("diskio", "host_1")
    ]
    assert reads == sorted(reads)
    # 59 steps of 50 on average.
    assert 2800 < reads[-1] < 3100


def test_hosts_have_tags_of_tsbs() -> None:
    for number, tags in enumerate(host_tags(RECORDS, SEED)):
        named = dict(zip(TAGS, tags, strict=True))
        assert named["hostname"] == f"host_{number}"
        region, letter = named["datacenter"][:-1], named["datacenter"][-1]
        assert letter in REGIONS[region]
        assert region == named["region"]


def test_steps_are_nearly_normal() -> None:
    steps = _draw(replace(RECORDS, hosts=50), SEED, range(100), range(10))
    assert steps.shape == (100, 50, 10)
    assert abs(steps.mean()) < 0.02
    assert abs(steps.std() - 1) < 0.01
    assert (np.abs(steps) < 1).mean() == pytest.approx(0.68, abs=0.02)
    assert (np.abs(steps) < 2).mean() == pytest.approx(0.954, abs=0.01)


def test_steps_are_words_of_the_stream() -> None:
    # Walk 5 of host 3 at moment 2, of 7 hosts with 87 walks each.
    one = word(stream(SEED, 12), (2 * 7 + 3) * len(ALL_WALKS) + 5)
    lanes = sum((one >> shift) & 0xFFFF for shift in (0, 16, 32, 48))
    expected = (lanes - 2 * 65_535) / (4 * (2**32 - 1) / 12) ** 0.5
    assert _draw(RECORDS, SEED, range(2, 3), [5])[0, 3, 0] == pytest.approx(expected, rel=1e-12)


def test_a_walk_does_not_depend_on_what_else_is_walked() -> None:
    _, alone = next(walk_states(RECORDS, SEED, [5, 40]))
    _, among = next(walk_states(RECORDS, SEED, range(len(ALL_WALKS))))
    both = min(len(alone), len(among))
    assert (alone[:both] == among[:both][:, :, [5, 40]]).all()


def test_walks_stay_between_their_bounds() -> None:
    memory = memory_bytes(RECORDS, SEED)[:, np.newaxis]
    _, states = next(walk_states(RECORDS, SEED, range(len(ALL_WALKS))))
    scale = np.where([walk.scales for walk in ALL_WALKS], memory, 1)
    assert (states >= scale * [walk.low for walk in ALL_WALKS]).all()
    assert (states <= scale * [walk.high for walk in ALL_WALKS]).all()
