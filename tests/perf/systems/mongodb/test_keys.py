"""What a damaged document of MongoDB is: wrong data to whoever verifies it, and no error."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from perf.model.records import Answer, Ycsb
from perf.systems.contract import Target
from perf.systems.mongodb.keys import MongoKeyValueSession
from perf.workloads.ycsb import check_record, check_scan, key_name, make_record

RECORDS = Ycsb(kind="ycsb", record_count=1, request_distribution="uniform", field_count=3)
KEY = key_name(RECORDS, 0)
TARGET = Target(
    system="mongodb",
    addresses=("127.0.0.1",),
    port=1,
    replication_factor=1,
    consistency="one",
    timeout_s=1.0,
)

Document = dict[str, Any]


def open_session(document: Document) -> MongoKeyValueSession:
    """Return a session whose one document is this one."""
    records = SimpleNamespace(find_one=lambda *_: document, find=lambda *_, **__: [document])
    client: Any = SimpleNamespace(get_database=lambda *_, **__: {"records": records})
    return MongoKeyValueSession(client, TARGET)


def judge(document: Document) -> tuple[Answer, Answer]:
    session = open_session(document)
    return (
        check_record(RECORDS, 1, KEY, session.get(KEY)),
        check_scan(RECORDS, 1, KEY, 1, session.scan(KEY, 1)),
    )


@pytest.mark.parametrize(
    ("place", "damage"),
    [
        (place, damage)
        for place in range(RECORDS.field_count)
        for damage in (
            lambda document, name: document.pop(name),
            lambda document, name: document.update({name: None}),
            lambda document, name: document.update({name: document[name].decode()}),
            lambda document, name: document.update({name: 1 << 62}),
            lambda document, name: document.update({f"x{name}": document.pop(name)}),
        )
    ],
)
def test_a_field_that_is_lost_or_no_binary_data_is_wrong_data(
    place: int, damage: Callable[[Document, str], object]
) -> None:
    values = make_record(RECORDS, 1, KEY)
    document: Document = {"_id": KEY} | {f"field{n}": value for n, value in enumerate(values)}
    assert judge(document) == (Answer.COMPLETED, Answer.COMPLETED)
    damage(document, f"field{place}")
    assert judge(document) == (Answer.WRONG_DATA, Answer.WRONG_DATA)
