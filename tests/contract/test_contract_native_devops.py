"""The native engine's clients of the devops workload beside the Python engine's, on real servers.

On a Cassandra, and on the emulator of MongoDB's protocol.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from engine_runs import share
from needs import need_native
from served import Served

from perf.load.engines import PYTHON_ENGINE
from perf.load.spec import Counted, LoadSpec
from perf.model.records import Devops, Operation
from perf.workloads.devops.batches import Batches
from perf.workloads.devops.queries import QUERIES
from perf.workloads.devops.tables import devops_rows
from perf.workloads.loading import devops_stored

pytestmark = pytest.mark.real

# Years after the rows that other tests store on the same servers, so that no query meets those.
RECORDS = Devops(
    kind="devops", hosts=9, span_s=2 * 3600, interval_s=60, begin_s=1_577_837_137, queries=3
)
SEED, BATCH_ROWS = 7, 400
BATCHES = -(-devops_rows(RECORDS) // BATCH_ROWS)
ASKED = 40
IN_FLIGHT = 4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cassandra", "mongodb"])
def test_the_native_engine_stores_what_is_asked_and_finds_what_is_changed(
    request: pytest.FixtureRequest, name: str, tmp_path: Path
) -> None:
    native = (str(need_native()),)
    served: Served = request.getfixturevalue(f"{name}_server")
    assert served.system.sessions.devops

    def spec_of(place: str, mix: Sequence[Operation], operations: int) -> LoadSpec:
        return LoadSpec(
            target=served.target,
            records=RECORDS,
            mix=dict.fromkeys(mix, 1.0),
            seed=SEED,
            batch_rows=BATCH_ROWS,
            counted=Counted(phase="counted", operations=operations, in_flight=IN_FLIGHT),
            engine_index=0,
            engine_count=1,
            output_dir=str(tmp_path / place),
        )

    with served.system.sessions.devops(served.target) as session:
        session.create_schema(RECORDS)
        before = session.stored()
        # Each engine loads every second batch: together they make the data set, or none of them does.
        load = spec_of("load", [Operation.LOAD], BATCHES)
        loaded, _ = share(load, native, PYTHON_ENGINE)
        assert loaded["load", "completed"] == loaded["load", "attempted"] == BATCHES, loaded
        after, expected = session.stored(), devops_stored(RECORDS)
        assert after.rows - before.rows == expected.rows
        assert after.payload_bytes - before.payload_bytes == expected.payload_bytes

        asked, _ = share(spec_of("ask", QUERIES, ASKED), native)
        for operation in QUERIES:
            of = operation.value
            assert asked[of, "completed"] == asked[of, "attempted"] > 0, asked

        rows = Batches(RECORDS, SEED, devops_rows(RECORDS)).batch(0)
        one = next(row for row in rows[len(rows) // 2 :] if row.table == "cpu")
        session.write([replace(one, values=(one.values[0] + 500, *one.values[1:]))])
        found, _ = share(spec_of("again", QUERIES, ASKED), native)
    for operation in QUERIES:
        of = operation.value
        assert found[of, "completed"] + found[of, "wrong_data"] == found[of, "attempted"], found
        if operation.value.startswith("double"):  # over all hosts and moments, but for a second
            assert found[of, "completed"] == 0, found
