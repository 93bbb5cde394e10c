"""A changed row is never taken for an answer: each canonical workload that reads finds one.

The workloads are those of configs/workloads, made so small that a trial on the fake system takes
seconds. Its fault `corrupt_every` changes rows as they are stored.
"""

import io
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from budget import cases
from catalogs import shipped
from dict_sessions import Times, do

from perf.config.catalog import load_catalog
from perf.load.engine.tasks.making import make_preload_task, make_tasks
from perf.load.spec import LoadSpec
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.design import (
    ClosedLoop,
    Deployment,
    Experiment,
    Floors,
    SystemConfig,
    Topology,
    Workload,
)
from perf.model.records import ALL, WRITES, Answer, Devops, Operation, Records, Sensor, Ycsb
from perf.model.results import Artifact, Purpose, Source, Trial, TrialId, TrialStatus
from perf.model.scaling import scale_down
from perf.systems.contract import Target
from perf.systems.fake import system as fake
from perf.systems.fake.client import FakeSession
from perf.systems.fake.devops import FakeDevopsSession
from perf.systems.fake.keys import FakeKeyValueSession
from perf.systems.fake.server import FakeServer
from perf.systems.sessions import Session
from perf.trial.harness import Order, run_trial
from perf.workloads.loading import preload_rows, value_seed
from perf.workloads.stages import operations_of

pytestmark = pytest.mark.usefixtures("fake_ports")

ROOT = Path(__file__).parents[3]
CATALOG = shipped()
TESTBED = load_catalog(ROOT / "tests/data/configs").testbeds["loop"]
# An address of its own for each worker of pytest-xdist, beside those of other tests.
ADDRESS = f"127.28.0.{1 + int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0').removeprefix('gw'))}"

READS = frozenset(Operation) - {*WRITES, Operation.UPDATE}
# One write in so many is changed: few enough that some operations of a phase complete all the same.
# In the devops workload, a batch is all rows of a moment, and this one is in the last hour.
CORRUPT_EVERY = {"sensor": 37, "put-get": 3, "ycsb": 3, "devops": 76}
DEVOPS_BATCH_ROWS = 72
FLOORS = Floors(records=40, operations=40, in_flight=4, offered_load_ops_per_s=50, seconds=0.6)
BY = 1_000_000_000
OPERATIONS = 200
TARGET = Target(
    system="fake",
    addresses=(ADDRESS,),
    port=fake.PORT,
    replication_factor=1,
    consistency="one",
    timeout_s=10.0,
)
SPEC = LoadSpec(
    target=TARGET,
    records=Sensor(kind="sensor", devices=1, payload_bytes=256),
    mix={Operation.WRITE: 1.0},
    seed=0,
    engine_index=0,
    engine_count=1,
    output_dir="/nowhere",
)


def operations(workload: Workload) -> Iterator[tuple[str, Operation]]:
    """Yield all operations that a workload consists of, each with its phase."""
    yield from ((phase.name, phase.operation) for phase in workload.sequence)
    for part in workload.measurements:
        yield from ((part.name, operation) for operation in workload.mix_of(part))


def reads(workload: Workload) -> set[tuple[str, Operation]]:
    return {(phase, one) for phase, one in operations(workload) if one in READS}


def shrink(workload: Workload) -> Workload:
    """Make a workload small: each operation of its sequence once, and half a second of its mix."""
    small = scale_down(replace(workload, floors=FLOORS), BY)
    first = {phase.operation: phase for phase in reversed(small.sequence)}
    measurements = [
        replace(
            part,
            load=ClosedLoop(kind="closed", in_flight=4),
            warmup_s=0.2,
            warmup_cap_s=0.2,
            iterations=1,
        )
        for part in small.measurements[:1]
    ]
    return replace(
        small,
        name="small",
        records=shrink_records(small.records),
        sequence=tuple(phase for phase in small.sequence if first[phase.operation] is phase),
        measurements=tuple(measurements),
        preload_rows_per_device=min(small.preload_rows_per_device, 12),
        batch_rows=DEVOPS_BATCH_ROWS if isinstance(small.records, Devops) else small.batch_rows,
        operation_timeout_s=10,
    )


def shrink_records(records: Records) -> Records:
    match records:
        case Sensor():
            return replace(records, payload_bytes=256)
        case Ycsb():
            return replace(records, max_scan_length=5)
        case Devops():
            # 78 moments of 13 hours: windows of 12 hours differ in their first and last hour only.
            return replace(records, hosts=8, span_s=13 * 3600, interval_s=600, queries=60)
        case _:
            return records


def find_reading() -> dict[str, Workload]:
    """Return all that read, but of those that shrink to the same trial the first alone."""
    found: dict[str, tuple[str, Workload]] = {}
    for name, workload in sorted(CATALOG.workloads.items()):
        if reads(workload):
            small = shrink(workload)
            said = {"description": "", "purpose": "", "source": "", "not_comparable": ""}
            found.setdefault(repr(replace(small, **said)), (name, small))
    return dict(found.values())


READING = find_reading()


def deploy(workload: Workload, settings: Mapping[str, int]) -> Deployment:
    server, *_, client = (replace(host, address=ADDRESS) for host in TESTBED.hosts)
    topology = Topology(name="one", description="One server.", servers=1)
    return Deployment(
        experiment=Experiment(
            name="corrupted",
            system="fake",
            config="default",
            topology=topology.name,
            workload=workload.name,
            releases=("1.0.0",),
        ),
        topology=topology,
        testbed=replace(TESTBED, hosts=(server, client)),
        workload=workload,
        config=SystemConfig(system="fake", name="default", description="-", settings=settings),
    )


def run(workload: Workload, directory: Path, **settings: int) -> Trial:
    order = Order(
        trial=TrialId("corrupted"),
        night="n",
        purpose=Purpose.SCHEDULED,
        deployment=deploy(workload, settings),
        release=fake.SYSTEM.releases()[0],
        artifact=Artifact(source=Source.BUILTIN, sha256=""),
    )
    return run_trial(order, fake.SYSTEM, DataPaths(directory), Progress(io.StringIO()))


class OneProcess(FakeSession):
    """A session whose one server is an object in the same process."""

    def __init__(self, settings: Mapping[str, int]) -> None:
        super().__init__(TARGET)
        self._server = FakeServer({"index": 0, **settings})

    def ask(self, node: int, question: dict[str, Any]) -> Any:  # noqa: ANN401  JSON
        return json.loads(json.dumps(self._server.answer(json.loads(json.dumps(question)))))

    def speak(self, records: Records) -> Session:
        match records:
            case Sensor():
                return self
            case Devops():
                return FakeDevopsSession(self.ask, 1, self.classify)
            case _:
                return FakeKeyValueSession(self.ask, 1, self.classify)


def ask_all(workload: Workload, **settings: int) -> dict[tuple[str, Operation], Counter[Answer]]:
    """Do what engines do, one operation after the other; count the outcomes of each."""
    session = OneProcess(settings).speak(workload.records)
    rows = preload_rows(workload)
    spec = replace(
        SPEC,
        records=workload.records,
        seed=workload.seed,
        readable_rows=rows,
        first_row=rows,
        batch_rows=workload.batch_rows or 1,
    )
    if rows:
        preload = make_preload_task(spec, session)
        assert {do(preload, number) for number in range(rows)} == {Answer.COMPLETED}
    outcomes: dict[tuple[str, Operation], Counter[Answer]] = defaultdict(Counter)
    for place, phase in enumerate(workload.sequence):
        reported = replace(
            spec, mix={phase.operation: 1.0}, value_seed=value_seed(workload.sequence, place)
        )
        task = make_tasks(reported, session, Times())[phase.operation]
        outcomes[phase.name, phase.operation].update(
            do(task, number) for number in range(operations_of(workload, phase))
        )
    for part in workload.measurements:
        for operation, task in make_tasks(
            replace(spec, mix=workload.mix_of(part)), session, Times()
        ).items():
            outcomes[part.name, operation].update(do(task, number) for number in range(OPERATIONS))
    return outcomes


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name == "devops" else name
        for name in sorted(READING)
    ],
)
def test_every_operation_that_reads_finds_a_corrupted_row(name: str) -> None:
    workload = READING[name]
    for answers in ask_all(workload).values():
        assert set(answers) == {Answer.COMPLETED}
    corrupted = ask_all(workload, corrupt_every=CORRUPT_EVERY[workload.records.kind])
    for phase in reads(workload):
        assert corrupted[phase][Answer.WRONG_DATA] > 0, phase
        assert corrupted[phase][Answer.NOT_FOUND] == 0, phase


# Trials of the same operations on the same kind of records find the same, whatever is asked for most.
TRIALS = {
    (one.records.kind, frozenset(operation for _, operation in operations(one))): name
    for name, one in reversed(READING.items())
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TRIALS.values()))
def test_a_trial_with_a_corrupted_row_is_invalid(name: str, tmp_path: Path) -> None:
    workload = READING[name]
    # Each phase has engines of its own, which take seconds to start.
    phases = workload.sequence
    workload = replace(workload, sequence=tuple(cases(phases, phases[:1] + phases[1::3])))
    sound = run(workload, tmp_path / "sound")
    assert sound.status is TrialStatus.COMPLETED, sound.reasons
    every = CORRUPT_EVERY[workload.records.kind]
    corrupted = run(workload, tmp_path / "corrupted", corrupt_every=every)
    assert corrupted.status is TrialStatus.INVALID
    assert {reason.kind for reason in corrupted.reasons} == {"misses-above-limit"}, corrupted.reasons
    assert all("wrong_data" in reason.text for reason in corrupted.reasons)
    assert not any("not_found" in reason.text for reason in corrupted.reasons)
    found = {
        (one.phase, Operation(one.operation))
        for one in corrupted.counters
        if one.name == Answer.WRONG_DATA and one.value and one.operation != ALL
    }
    assert reads(workload) <= found


def test_every_operation_that_reads_is_part_of_a_canonical_workload() -> None:
    read = {one for workload in CATALOG.workloads.values() for _, one in reads(workload)}
    assert read == READS
    assert {one for workload in READING.values() for _, one in reads(workload)} == READS
