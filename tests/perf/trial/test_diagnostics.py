"""From windows to diagnostics: totals over all windows of a phase; no number from half a cluster."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from perf.hosts.usage import HostUsage
from perf.model.metrics import DIAGNOSTICS
from perf.model.results import Counter
from perf.systems.contract import (
    COMPACTION_PENDING_TASKS,
    COMPACTION_REMAINING_BYTES,
    GC_PAUSE_S,
    UNWRITTEN_BYTES,
    NodeFigure,
)
from perf.trial.diagnostics import Diagnostics, summarize_windows
from perf.trial.telemetry import Process, Snapshot, Window

Figures = dict[tuple[str, str, str], float]


def look(
    at_s: float, *nodes: tuple[str, float, int, int], levels: Sequence[NodeFigure] = ()
) -> Snapshot:
    """Return a look at nodes (name, CPU seconds, bytes read, bytes written), each on its own host."""
    hosts = [name.replace("node", "host") for name, *_ in nodes]
    return Snapshot(
        hosts=tuple(
            HostUsage(
                host=host,
                at_s=at_s,
                cores=2,
                busy_s=0.0,
                steal_s=0.0,
                throttled_s=0.0,
                clock_offset_s=0.0,
                sent_bytes=int(at_s) * 1000,
            )
            for host in (*hosts, "client-1")
        ),
        processes=tuple(
            Process(node=name, host=host, cpu_s=cpu_s, read_bytes=read, written_bytes=written)
            for (name, cpu_s, read, written), host in zip(nodes, hosts, strict=True)
        ),
        levels=tuple(levels),
    )


def levels(name: str, **values: float) -> list[NodeFigure]:
    return [
        NodeFigure(node=node.replace("_", "-"), name=name, value=value)
        for node, value in values.items()
    ]


def counters(completed_in_window: int, iteration: int = 1, **changes: int) -> list[Counter]:
    counts = {"completed_in_window": completed_in_window, "completed": completed_in_window}
    counts |= {"rows": completed_in_window} | changes
    counter = Counter(phase="steady", operation="write", iteration=iteration, name="", value=0)
    return [replace(counter, name=name, value=value) for name, value in counts.items()]


def window(before: Snapshot, after: Snapshot, *iterations: int, phase: str = "steady") -> Window:
    return Window(phase=phase, iterations=iterations or (1,), before=before, after=after)


def values(found: Diagnostics) -> Figures:
    for sample in found.samples:
        assert (sample.phase, sample.operation, sample.iteration) == ("steady", "write", None)
        assert sample.metric in DIAGNOSTICS
    return {(one.metric, one.statistic, one.host): one.value for one in found.samples}


TWO = window(
    look(100.0, ("node-1", 10.0, 500, 1000), ("node-2", 20.0, 0, 5000)),
    look(110.0, ("node-1", 13.0, 1500, 9000), ("node-2", 21.0, 0, 7000)),
)


def test_costs_are_per_operation_that_completed_in_the_window() -> None:
    found = summarize_windows([TWO], counters(1000), {"steady": 4})
    assert found.remarks == ()
    assert values(found) == {
        ("server_cpu", "mean", ""): pytest.approx(4000),
        ("server_cpu", "mean", "node-1"): pytest.approx(3000),
        ("server_cpu", "mean", "node-2"): pytest.approx(1000),
        ("storage_read", "mean", ""): 1.0,
        ("storage_read", "mean", "node-1"): 1.0,
        ("storage_read", "mean", "node-2"): 0.0,
        ("storage_written", "mean", ""): 10.0,
        ("storage_written", "mean", "node-1"): 8.0,
        ("storage_written", "mean", "node-2"): 2.0,
        # 10 bytes were written per operation, which is one row of 4 bytes.
        ("write_amplification", "mean", ""): 2.5,
        # What the client's host sent is not the servers'.
        ("network_sent", "mean", ""): pytest.approx(20),
        ("network_sent", "mean", "host-1"): pytest.approx(10),
        ("network_sent", "mean", "host-2"): pytest.approx(10),
    }


def test_windows_of_one_phase_are_added_up_and_other_iterations_do_not_count() -> None:
    later = window(look(300.0, ("node-1", 50.0, 0, 0)), look(310.0, ("node-1", 52.0, 0, 6000)), 2)
    first = window(look(100.0, ("node-1", 10.0, 0, 0)), look(110.0, ("node-1", 11.0, 0, 3000)), 1)
    counted = [*counters(100, 1), *counters(200, 2), *counters(5000, 0), *counters(7000, 3)]
    found = values(summarize_windows([first, later], counted, {"steady": 10}))
    assert found["server_cpu", "mean", ""] == pytest.approx(3e6 / 300)
    assert found["storage_written", "mean", ""] == pytest.approx(30)
    assert found["write_amplification", "mean", ""] == 3.0


def test_payload_counts_the_rows_of_batches_that_completed_in_the_window() -> None:
    counted = counters(100, completed=80, rows=800)
    found = values(summarize_windows([TWO], counted, {"steady": 2}))
    assert found["write_amplification", "mean", ""] == pytest.approx(10_000 / (100 * 10 * 2))


def test_reads_have_no_write_amplification() -> None:
    found = values(summarize_windows([TWO], counters(1000), {}))
    assert ("write_amplification", "mean", "") not in found
    assert found["storage_written", "mean", ""] == 10.0


def test_phases_are_kept_apart() -> None:
    other = replace(TWO, phase="saturation")
    nothing = [replace(one, phase="saturation") for one in counters(0)]
    found = summarize_windows([TWO, other], [*counters(1000), *nothing], {"steady": 4})
    assert {sample.phase for sample in found.samples} == {"steady"}
    (remark,) = found.remarks
    assert remark.kind == "telemetry-missing"
    assert remark.text == (
        "phase saturation: no operation completed between two looks at the servers, so costs per "
        "operation are not known"
    )


def test_nothing_is_said_of_the_costs_of_a_load_that_ended_before_it_was_counted() -> None:
    assert summarize_windows([TWO], (), {"steady": 4}) == Diagnostics(samples=(), remarks=())


def test_pauses_are_per_second_and_their_mean_is_over_nodes() -> None:
    before, after = TWO.before, TWO.after
    seen = replace(
        TWO,
        before=replace(before, levels=tuple(levels(GC_PAUSE_S, node_1=1.0, node_2=0.5))),
        after=replace(after, levels=tuple(levels(GC_PAUSE_S, node_1=1.25, node_2=0.55))),
    )
    found = values(summarize_windows([seen], counters(1000), {"steady": 4}))
    assert found["gc_pause", "mean", "node-1"] == pytest.approx(25)
    assert found["gc_pause", "mean", "node-2"] == pytest.approx(5)
    assert found["gc_pause", "mean", ""] == pytest.approx(15)


@pytest.mark.parametrize(
    ("level", "metric", "unit"),
    [
        (COMPACTION_REMAINING_BYTES, "compaction_debt", 1e-6),
        (COMPACTION_PENDING_TASKS, "pending_compactions", 1.0),
        (UNWRITTEN_BYTES, "unwritten", 1e-6),
    ],
)
def test_debts_are_what_was_left_at_the_end_of_the_last_window(
    level: str, metric: str, unit: float
) -> None:
    middle = replace(TWO, after=replace(TWO.after, levels=tuple(levels(level, node_1=9e9))))
    last = replace(TWO, after=replace(TWO.after, levels=tuple(levels(level, node_1=3e6, node_2=1e6))))
    found = values(summarize_windows([middle, last], counters(1000), {"steady": 4}))
    assert found[metric, "last", "node-1"] == pytest.approx(3e6 * unit)
    assert found[metric, "last", ""] == pytest.approx(4e6 * unit)


def test_a_counter_that_fell_gives_no_number_and_a_remark() -> None:
    restarted = window(
        look(100.0, ("node-1", 10.0, 0, 0), ("node-2", 20.0, 0, 0)),
        look(110.0, ("node-1", 13.0, 0, 10), ("node-2", 0.5, 0, 10)),
    )
    found = summarize_windows([restarted], counters(1000), {"steady": 4})
    assert not [sample for sample in found.samples if sample.metric == "server_cpu"]
    assert ("storage_written", "mean", "") in values(found)
    (remark,) = found.remarks
    assert remark.text == (
        "phase steady: server_cpu is left out, since the figure of node-2 fell from 20 to 0.5 within "
        "a window: its process was restarted"
    )


def test_a_figure_that_one_look_missed_gives_no_number_and_a_remark() -> None:
    seen = replace(
        TWO,
        before=replace(TWO.before, levels=tuple(levels(GC_PAUSE_S, node_1=1.0, node_2=0.5))),
        after=replace(TWO.after, levels=tuple(levels(GC_PAUSE_S, node_1=1.25))),
    )
    found = summarize_windows([seen], counters(1000), {"steady": 4})
    assert not [sample for sample in found.samples if sample.metric == "gc_pause"]
    (remark,) = found.remarks
    assert remark.text == (
        "phase steady: gc_pause is left out, since node-2 was not seen at both ends of a window"
    )


def test_a_trial_without_windows_has_no_diagnostics() -> None:
    assert summarize_windows([], counters(1), {"steady": 4}) == Diagnostics(samples=(), remarks=())
