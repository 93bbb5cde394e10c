"""What the page of a reproduced report says beside its tables: scaling, dollars, scale, trials."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from made_up_reproduction import MAIN, REPORT, make_measured, release

from perf.model.design import (
    ClosedLoop,
    CountedPhase,
    Floors,
    Measurement,
    OpenLoop,
    Topology,
    Workload,
)
from perf.model.records import Operation, PutGet
from perf.model.references import PublishedColumn, PublishedRow, PublishedTable, Spot
from perf.model.results import Counter, Fact, Named, Reason, Trial, TrialId, TrialStatus
from reports.pages.reproduction.page import list_changes, list_places, render_reproduction
from reports.pages.reproduction.published import match, view_table
from reports.pages.reproduction.ratios import MeasuredSetting, Reproduction, gather
from reports.pages.reproduction.scaling import (
    Scaled,
    find_divided,
    find_scaling,
    list_dollars,
    operations_per_dollar,
)
from reports.wording.links import trial_page

Make = Callable[..., Trial]
TOPOLOGIES = {
    name: Topology(name=name, description="Made up.", servers=servers)
    for name, servers in (("three", 3), ("six", 6))
}


def host_facts(cores: int, *, shared: bool = False) -> tuple[Fact, ...]:
    """Return what two server hosts and a client host recorded; shared, there is one for all."""
    client = "db-1" if shared else "load-1"
    servers = ("db-1",) if shared else ("db-1", "db-2")
    return (
        *(Fact(host=name, name="cpu_cores", value=f"{cores}") for name in servers),
        *(() if shared else (Fact(host=client, name="cpu_cores", value="99"),)),
        Fact(host=client, name="version:python", value="3.11.2"),
    )


def scale(make_trial: Make, small: tuple[Fact, ...], large: tuple[Fact, ...]) -> Scaled:
    """Tell the scaling of the report's own 77 000 on three hosts of 8 cores, 306 000 on six of 16."""
    slow = make_measured(
        make_trial,
        "slow",
        slower=4000 / 77_000,
        config=Named(name="sentinel", sha256="cd0123456789"),
        topology=Named(name="three", sha256="3" * 12),
        testbed_class="hosts-2xl",
        environment_before=small,
    )
    fast = make_measured(
        make_trial,
        "fast",
        slower=4000 / 306_000,
        topology=Named(name="six", sha256="6" * 12),
        testbed_class="hosts-4xl",
        environment_before=large,
    )
    return find_scaling(REPORT.scalings[0], REPORT, gather([slow, fast]), TOPOLOGIES)


def test_the_capacity_of_a_size_is_servers_times_cores_across_testbed_classes(make_trial: Make) -> None:
    row = scale(make_trial, host_facts(8), host_facts(16))
    assert row.by_size is not None
    assert row.by_size.share == pytest.approx(0.9935, abs=0.0001)
    assert (row.by_size.capacity_ratio, row.has_cores) == (4, True)
    assert row.throughput_ratio == pytest.approx(3.974, abs=0.001)
    assert row.why == ("Of the testbed classes hosts-2xl and hosts-4xl; 3 × 8 cores and 6 × 16 cores.")


@pytest.mark.parametrize(
    "large",
    [
        (),
        host_facts(16, shared=True),
        (*host_facts(16), Fact(host="db-3", name="cpu_cores", value="4")),
    ],
    ids=["none", "shared with the client", "unlike"],
)
def test_without_the_cores_of_both_sizes_their_testbed_classes_do_not_compare(
    make_trial: Make, large: tuple[Fact, ...]
) -> None:
    row = scale(make_trial, host_facts(8), large)
    assert not row.is_reported
    assert row.why == "Measured on hosts-2xl and hosts-4xl, which do not compare."


def test_operations_per_dollar_are_computed_from_the_prices_of_the_report(make_trial: Make) -> None:
    # 77 000/s for 730 hours, for $4,620.
    assert operations_per_dollar(77_000, 4620) == 43_800_000
    subjects = tuple(replace(one, price_per_month_usd=4620) for one in REPORT.subjects)
    full, calm = MAIN.rows
    table = replace(MAIN, rows=(replace(full, values=(77_000, *full.values[1:])), calm))
    report = replace(REPORT, subjects=subjects, tables=(table,))
    (row,) = list_dollars(report, gather([make_measured(make_trial)]))
    assert row.here is not None
    assert (row.subject.title, row.there, row.here.value) == ("Fast", 43_800_000, 8_000_000)
    assert not [*list_dollars(REPORT, ())]


WORKLOAD = Workload(
    name="sensor-write",
    description="Made up.",
    purpose="?",
    owner="Nobody",
    source="none",
    not_comparable="all",
    records=PutGet(kind="put-get", keys=10_000),
    consistency="one",
    preload_in_flight=1,
    operation=Operation.GET,
    operation_timeout_s=1,
    sequence=(CountedPhase(name="put", operation=Operation.PUT, in_flight=20, value_seed=1),),
    measurements=(
        Measurement(
            name="saturation",
            load=ClosedLoop(kind="closed", in_flight=50),
            warmup_s=10,
            warmup_cap_s=10,
            iteration_s=100,
            iterations=1,
        ),
        Measurement(
            name="steady",
            load=OpenLoop(kind="open", offered_load_ops_per_s=1000, in_flight=50),
            warmup_s=10,
            warmup_cap_s=10,
            iteration_s=100,
            iterations=1,
        ),
    ),
    floors=Floors(records=1000, operations=1, in_flight=50, offered_load_ops_per_s=1, seconds=50),
    seed=1,
)


def page_of(found: Reproduction, *workloads: Workload, measured: Sequence[MeasuredSetting] = ()) -> str:
    """Return the page of a reproduction under a configuration of these workloads."""
    named = {one.name: one for one in workloads}
    page = render_reproduction(found, measured, topologies={}, workloads=named, caveats={})
    return page.content.decode()


def test_the_scale_says_what_was_really_divided(make_trial: Make) -> None:
    found = Reproduction(report=REPORT, scale=100, trials=(make_measured(make_trial),))
    divided = {one.what: [one.least, one.most] for one in find_divided([WORKLOAD], 100)}
    assert divided["keys"] == [10, 10]
    assert divided["operations in flight"] == [1, 1]
    assert divided["offered loads"] == [100, 100]
    reported = page_of(found, WORKLOAD)
    assert "operations in flight as published" in reported
    assert "keys 10.0 times fewer" in reported
    assert "seconds of an iteration 2.00 times fewer" in reported
    assert "Run as published: not scaled down." in page_of(replace(found, scale=1))


def test_trials_without_a_result_are_reported_first_with_the_newest_ones_reason(
    make_trial: Make,
) -> None:
    busy = Reason(kind="host-busy", text="Others had db-1 <now>.")
    trials = [
        make_measured(
            make_trial, name, minutes=place, status=TrialStatus.INVALID, reasons=(busy,), samples=()
        )
        for place, name in enumerate(("first", "last"))
    ]
    found = Reproduction(report=REPORT, scale=10, trials=tuple(trials))
    page = page_of(found)
    assert (
        "2 trials of its workloads at this scale: 2 invalid; so nothing could be put beside the "
        "published figures. First reasons: host-busy 2 ×."
    ) in page
    assert f'The newest of them, <a href="../{trial_page(TrialId("last"))}">' in page
    assert "Others had db-1 &lt;now&gt;." in page
    assert 'class="without"' not in page_of(replace(found, trials=(make_measured(make_trial),)))


def test_a_changed_workload_is_reported_with_the_trials_of_what_it_was(make_trial: Make) -> None:
    changed = Named(name="sensor-write-by-10", sha256="ffffffffffff")
    trials = [make_measured(make_trial, name, minutes=place) for place, name in enumerate("abc")]
    assert not [*list_changes(trials)]
    trials[2] = replace(trials[2], workload=changed)
    assert [*list_changes(trials)] == [("sensor-write", "0123456789ab", trials[2], 2)]
    page = page_of(Reproduction(report=REPORT, scale=10, trials=tuple(trials)))
    assert "Workload sensor-write was changed (hash 0123456789ab → ffffffffffff, first " in page
    assert "2 completed trials are of what it was before" in page


def test_misses_are_counted_beside_errors_and_the_release_stands_in_its_row(make_trial: Make) -> None:
    missed = tuple(
        Counter(phase="saturation", operation="write", iteration=1, name=name, value=value)
        for name, value in (("not_found", 11), ("wrong_data", 2), ("timeouts", 5))
    )
    trial = make_measured(make_trial, release=release("5.0.9"), counters=missed)
    column = PublishedColumn(name="misses", title="Fail", at=Spot(metric="misses", statistic="mean"))
    row = PublishedRow(name="full", title="Full", at=Spot(phase="saturation"), values=(0,))
    table = PublishedTable(name="fail", title="Fail", at=MAIN.at, columns=(column,), rows=(row,))
    report = replace(REPORT, tables=(table,))
    viewed = view_table(table, match(report, gather([trial]), (trial,)))
    (line,) = viewed.grid.lines
    assert ([(one.here, one.is_count) for one in line.cells], line.release) == ([(13, True)], "5.0.9")
    assert viewed.shapes == ()
    (setting,) = gather([trial])
    at = ("sensor-write", "saturation", "write")
    assert at in list_places(setting)
    assert [one and one.value for one in (setting.find(*at, it) for it in ("errors", "misses"))] == [
        5,
        13,
    ]
    page = page_of(Reproduction(report=report, scale=10, trials=(trial,)), measured=gather([trial]))
    assert '<td class="num here">13</td>' in page
