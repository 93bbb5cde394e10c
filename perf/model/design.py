"""Intent: what to measure, where and how hard, as values read from configs/ by `config`.

Everything that can move a number is here, and its content hash travels with each trial.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Gt, Le, MinLen
from pydantic import Field, JsonValue

from perf.model.access import Access
from perf.model.program import Program
from perf.model.records import OperationName, Records
from perf.model.scalars import (
    STRICT,
    AbsolutePath,
    Count,
    InFlight,
    Name,
    OfferedLoad,
    Positive,
    PositiveFloat,
    Price,
    Selector,
    SettingName,
    Share,
    Text,
    is_version,
)

OwnEngine: TypeAlias = Literal["python", "native"]
"""The engines of Knickpoint itself; see docs/engine.md."""
EngineName: TypeAlias = Literal["python", "native", "command"]
"""Which program offers the load; `command` is one of the user's own, that the workload names."""
DEFAULT_ENGINE: OwnEngine = "python"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The fixed shape of a cluster: how many nodes and copies. Addresses come from a testbed."""

    __pydantic_config__ = STRICT
    name: Name
    """As the file is called."""
    description: Text
    """One line, for lists."""
    servers: Positive
    """Servers of the cluster."""
    clients: Positive = 1
    """Hosts that offer load."""
    replication_factor: Positive = 1
    """Copies of each row."""
    shards: Positive | None = None
    """Each in so many copies, behind routers; absent: the system shares out rows in its own way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One machine of a testbed. `work_dir` is where nodes and engines keep files on an SSH host."""

    __pydantic_config__ = STRICT
    name: Name
    """Unique in the testbed."""
    address: Text
    """Host name or IP address."""
    role: Literal["server", "client"]
    """What runs on it."""
    cores: tuple[Annotated[int, Ge(0)], ...] = ()
    """Cores that processes on this host are pinned to; empty leaves them to the kernel."""
    numa_node: Annotated[int, Ge(0)] | None = None
    """The NUMA node whose memory, and whose cores if none are named, processes on this host use."""
    user: str | None = None
    """Login over SSH; absent: as the SSH configuration says."""
    port: Positive = 22
    """Port of SSH."""
    work_dir: AbsolutePath = "/var/tmp/knickpoint"  # noqa: S108  a directory of ours on the host
    """Where nodes and engines keep their files on a host over SSH."""
    python: Text = "python3"
    """Command of a Python with Knickpoint's `measure` extra; the native engine is beside it."""
    price_per_hour_usd: Price | None = None
    """What a server host costs in an hour, all included; of all server hosts or of none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLimits:
    """How long each step of a trial may take before it counts as failed, in seconds."""

    __pydantic_config__ = STRICT
    start_s: PositiveFloat = 180.0
    """Starting the servers, until the cluster serves."""
    stop_s: PositiveFloat = 60.0
    """Stopping the servers."""
    load_s: PositiveFloat = 900.0
    """Storing the rows of the preload."""
    connect_s: PositiveFloat = 60.0
    """Connecting the clients."""
    settle_s: PositiveFloat = 120.0
    """Background work of the database after the preload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """Limits past which a trial is invalid. Each belongs to the testbed it was chosen for.

    A limit on the client marks a step of a ladder or a search client-limited instead.
    """

    __pydantic_config__ = STRICT
    max_error_share: Share
    """Operations answered with an error, or not at all, among those attempted."""
    max_miss_share: Share
    """Operations whose answer lacked a row or held a wrong one, among those attempted."""
    min_achieved_share: Share
    """Open loop: operations sent inside a measured window, among those intended to start in it."""
    max_lateness_share: PositiveFloat
    """Open loop: p99 of send lateness as a share of p99 of response time."""
    max_client_cpu_share: PositiveFloat
    """CPU time of an engine process per second of its measured windows; it ends at 1, one core."""
    max_client_wait_share: PositiveFloat
    """Time that an engine's threads were ready to run and had no core, per second measured."""
    max_iteration_spread: PositiveFloat
    """(max − min) / median over iterations: throughput (closed loop), p50 response time (open)."""
    max_foreign_cpu_share: Share
    """CPU time of all else than servers and engines, as a share of a host's cores, while measured."""
    max_steal_share: Share
    """CPU time that a hypervisor gave to others, as a share of a host's cores, while measured."""
    max_throttled_share: Share
    """Time that a host's processes were held back by a CPU quota, per second measured."""
    max_clock_step_ms: PositiveFloat
    """How far a host's wall clock may move against its monotonic clock in a trial."""
    max_clock_offset_ms: PositiveFloat | None = None
    """How far the wall clocks of client hosts over SSH may be apart; needed where there are several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steadiness:
    """The rule that ends a warm-up: two adjacent windows of it are alike.

    Alike: their throughput and mean service time differ by at most `tolerance`, a share of the later.
    """

    __pydantic_config__ = STRICT
    window_s: Positive
    """Length of a window, in seconds."""
    tolerance: Annotated[float, Gt(0), Le(1)]
    """Largest difference between two windows, as a share of the later one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What must be free on the testbed before a trial starts, over all its nodes."""

    __pydantic_config__ = STRICT
    memory_mb: Positive
    """Free memory, over all nodes."""
    disk_mb: Positive
    """Free disk, over all nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """That the hosts of a testbed are tuned: read back before each trial, and refused if they drifted.

    `unavailable` says of each setting that these hosts lack why; it is recorded with each trial.
    """

    __pydantic_config__ = STRICT
    unavailable: Mapping[SettingName, Text] = field(default_factory=dict)
    """Settings that these hosts lack, each with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskPolicy:
    """What is done to page cache and disk of each server host after the wipe of each trial."""

    __pydantic_config__ = STRICT
    drops_caches: bool
    """Write dirty pages out, and forget what is cached of any file."""
    trims: bool
    """Trim the device of the node's directory (fstrim)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSource:
    """Where the prices of a testbed's hosts come from, and on which day they held."""

    __pydantic_config__ = STRICT
    date: date
    """Day on which the prices held."""
    source: Text
    """Where the prices come from."""

    @property
    def text(self) -> str:
        """Write it as a fact of a trial."""
        return f"{self.date.isoformat()}, {self.source}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """That the servers of a testbed are somebody else's: nothing is run or looked at on their hosts.

    Clients connect to the addresses of its server hosts.
    """

    __pydantic_config__ = STRICT
    port: Annotated[int, Gt(0), Le(65535)] | None = None
    """Port of clients; absent: the usual one of the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Testbed:
    """A named set of hosts. Trials compare only within one `testbed_class`."""

    __pydantic_config__ = STRICT
    __test__ = False
    name: Name
    """As the file is called."""
    description: Text
    """One line, for lists."""
    testbed_class: Name
    """Trials compare only within one class."""
    transport: Literal["local", "ssh"]
    """How hosts are reached: this machine, or SSH."""
    hosts: Annotated[tuple[Host, ...], MinLen(1)]
    """Servers and clients."""
    client_cores: Positive
    """Engine processes per client host, one per core."""
    engine: OwnEngine | None = None
    """Which program offers the load, unless the workload says; absent: python."""
    needs: Needs
    """What must be free before a trial starts."""
    limits: TimeLimits
    """How long each step of a trial may take."""
    validity: Validity
    """Limits past which a trial is invalid."""
    steadiness: Steadiness
    """The rule that ends a warm-up."""
    jvm_options: tuple[str, ...] = ()
    """Added to each JVM database on this testbed."""
    tuning: Tuning | None = None
    """Absent: the hosts are taken as they are, unchecked."""
    disk: DiskPolicy | None = None
    """Absent: page cache and disk are left as the trial before left them."""
    prices_from: PriceSource | None = None
    """Source of the hosts' prices."""
    node_dir: AbsolutePath | None = None
    """Local ones: where nodes keep their files, in place of the data directory, to measure a disk."""
    ssh_config: Text | None = None
    """OpenSSH client configuration, from the command's directory on; absent: the operator's own."""
    attached: Attached | None = None
    """That its servers run already, and are not Knickpoint's; absent: they are deployed."""
    caveat: str = ""
    """Shown on every page with numbers from this testbed."""

    @property
    def own_hosts(self) -> tuple[Host, ...]:
        """The hosts that Knickpoint runs anything on: all but those of an attached cluster."""
        return tuple(host for host in self.hosts if not (self.attached and host.role == "server"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemConfig:
    """A named settings variant of a system; `settings` is a section of its own config file."""

    __pydantic_config__ = STRICT
    system: Name
    """Database that it belongs to."""
    name: Name
    """As the file is called."""
    description: Text
    """One line, for lists."""
    settings: Mapping[str, JsonValue] = field(default_factory=dict)
    """A section of the database's own configuration file."""
    layout: Mapping[str, JsonValue] = field(default_factory=dict)
    """How it lays out a workload's tables, in words that each system has: compaction, indexes …"""
    access: Access | None = None
    """How clients log in and what they trust; absent: nobody is asked, nothing is encrypted."""
    heap_mb: Positive | None = None
    """Heap of a JVM database, in MB."""
    jvm_options: tuple[str, ...] = ()
    """Added to the options of a JVM database."""


def flatten_settings(
    settings: Mapping[str, JsonValue], way: str = ""
) -> Iterator[tuple[str, JsonValue]]:
    """Yield settings by their dotted ways: `a: {b: 1}` and `a.b: 1` are the same."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from flatten_settings(value, f"{way}{key}.")
        else:
            yield f"{way}{key}", value


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoop:
    """`in_flight` operations at any time per engine process; the next starts when one ends."""

    __pydantic_config__ = STRICT
    kind: Literal["closed"]
    """Closed loop."""
    in_flight: InFlight
    """Operations at any time, per engine process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLoop:
    """Operations start on a schedule, whether or not earlier ones have ended.

    `offered_load_ops_per_s` is the total over all engine processes. `in_flight` bounds the operations
    outstanding per process; waiting for a free slot counts in the response time. `arrivals` are evenly
    spaced unless they are said to be a Poisson process.
    """

    __pydantic_config__ = STRICT
    kind: Literal["open"]
    """Open loop."""
    offered_load_ops_per_s: OfferedLoad
    """Operations per second, over all engine processes."""
    in_flight: InFlight
    """Most operations outstanding, per engine process."""
    arrivals: Literal["poisson"] | None = None
    """A Poisson process; absent: evenly spaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteppedLoad:
    """A ladder of open loops: each offered load is a phase of its own, from the lowest up."""

    __pydantic_config__ = STRICT
    kind: Literal["stepped"]
    """A ladder of open loops."""
    offered_loads_ops_per_s: Annotated[tuple[OfferedLoad, ...], MinLen(2)]
    """Operations per second of each step, from the lowest up."""
    in_flight: InFlight
    """Most operations outstanding, per engine process."""
    arrivals: Literal["poisson"] | None = None
    """A Poisson process; absent: evenly spaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLoad:
    """The highest offered load whose p99 of response time meets an objective, found by bisection.

    The bracket is narrowed until its ends are less than `resolution` apart (a share of the lower);
    then the lower end must hold in `confirmations` further runs.
    """

    __pydantic_config__ = STRICT
    kind: Literal["search"]
    """A search for the highest load."""
    lowest_ops_per_s: OfferedLoad
    """Lower end of the search."""
    highest_ops_per_s: OfferedLoad
    """Upper end of the search."""
    response_time_p99_objective_ms: PositiveFloat
    """The p99 of response time that a load must keep to."""
    resolution: Annotated[float, Ge(0.001), Le(1)]
    """Where the search stops: the distance of its ends, as a share of the lower."""
    confirmations: Positive
    """Further runs in which the result must hold."""
    in_flight: InFlight
    """Most operations outstanding, per engine process."""
    arrivals: Literal["poisson"] | None = None
    """A Poisson process; absent: evenly spaced."""


SimpleLoad: TypeAlias = Annotated[ClosedLoop | OpenLoop, Field(discriminator="kind")]
Load: TypeAlias = Annotated[
    ClosedLoop | OpenLoop | SteppedLoad | SearchLoad, Field(discriminator="kind")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One measured phase: its load, and equal iterations, each after a warm-up that is thrown away.

    A warm-up lasts at least `warmup_s`, then ends once the load is steady by the testbed's rule, at the
    latest after `warmup_cap_s`. For a search, these are the times of each of its steps.
    """

    __pydantic_config__ = STRICT
    name: Name
    """Name of the phase."""
    load: Load
    """How operations are offered."""
    warmup_s: PositiveFloat
    """Shortest warm-up."""
    warmup_cap_s: PositiveFloat
    """Longest warm-up."""
    iteration_s: PositiveFloat
    """Length of an iteration."""
    iterations: Positive
    """How often it is measured."""
    mix: Mapping[OperationName, PositiveFloat] = field(default_factory=dict)
    """What this phase offers in place of the workload's own operation or mix; absent: those."""
    histogram_s: Positive | None = None
    """Seconds per histogram that is kept; absent: one. For soaks, whose logs would be too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedPhase:
    """One measured phase that ends when its operations are done: a closed loop, without a warm-up.

    Without `operations`, each record once. `value_seed` is what a phase that stores values draws them
    from, in the put/get workload; the phases that read after it expect these.
    """

    __pydantic_config__ = STRICT
    name: Name
    """Name of the phase."""
    operation: OperationName
    """The operation that it repeats."""
    in_flight: InFlight
    """Operations at any time, per engine process."""
    operations: Positive | None = None
    """How many; absent: each record once."""
    value_seed: Count | None = None
    """Seed of the stored values, in the put/get workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Floors:
    """Below what a workload is not scaled down, since less would measure nothing.

    `records` bounds devices, keys, records and hosts, `seconds` iterations and, at a quarter, warm-ups.
    """

    __pydantic_config__ = STRICT
    records: Positive
    """Fewest devices, keys, records or hosts."""
    operations: Positive
    """Fewest operations of a counted phase."""
    in_flight: Positive
    """Fewest operations in flight."""
    offered_load_ops_per_s: PositiveFloat
    """Lowest offered load."""
    seconds: PositiveFloat
    """Shortest iteration; a warm-up may be a quarter of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What clients do: records, operations, consistency, preload, measured phases, seed.

    The phases of `sequence` run first, one after the other, and then `measurements`. These offer
    `operation`, or a `mix` of operations, each with its share of them, unless a phase has its own.
    """

    __pydantic_config__ = STRICT
    name: Name
    """As the file is called."""
    description: Text
    """One line, for lists."""
    purpose: Text
    """The question that it answers."""
    owner: Text
    """Who answers for it."""
    source: Text
    """Where it comes from."""
    not_comparable: Text
    """What its figures must not be compared with, and why."""
    records: Records
    """What is stored."""
    operation: OperationName | None = None
    """The operation of all measurements; or use `mix`."""
    mix: Mapping[OperationName, PositiveFloat] = field(default_factory=dict)
    """Operations, each with its share."""
    consistency: Literal["one", "quorum", "all"]
    """Copies that must answer."""
    preload_rows_per_device: Count = 0
    """Readings of each device that are stored before the first phase, in the sensor workload."""
    preload: Literal["records"] | None = None
    """Whether all records are stored before the first phase, in the others; absent: none is."""
    exceeds_memory: Literal[True] | None = None
    """Whether what is stored is to be more than the servers' memory; a trial says if it is not."""
    preload_in_flight: InFlight
    """Operations in flight while the preload is stored."""
    dataset: Literal["kept"] | None = None
    """Whether trials start from files kept on the servers' disks; absent: each stores its own rows."""
    engine: EngineName | None = None
    """Which program offers this load, whatever the testbed says; absent: that of the testbed."""
    program: Program | None = None
    """The load generator of `engine: command`, and of no other."""
    batch_rows: Positive | None = None
    """Write this many rows in each operation, in the sensor workload those of one device."""
    operation_timeout_s: PositiveFloat
    """An operation without an answer for so long has failed."""
    sequence: tuple[CountedPhase, ...] = ()
    """Phases that run first, one after the other."""
    measurements: tuple[Measurement, ...] = ()
    """Measured phases."""
    floors: Floors | None = None
    """Absent: the workload is not scaled down."""
    scaled_down_by: Positive | None = None
    """Set by a suite that runs it smaller than it is written, never in its own file."""
    seed: Count
    """Seed of all random choices."""

    def mix_of(self, phase: Measurement) -> Mapping[OperationName, float]:
        """Return the operations that a measured phase offers, each with its weight."""
        return phase.mix or self.mix or ({self.operation: 1.0} if self.operation else {})

    @property
    def offered(self) -> tuple[OperationName, ...]:
        """The operations of all measured phases, each once, in their order."""
        return tuple(dict.fromkeys(one for phase in self.measurements for one in self.mix_of(phase)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """system × topology × workload × config, at a list of releases.

    With `sentinel_every_nights` it watches the testbed, not the database: old releases in a config that
    nobody touches, measured on every n-th night of the suite, beginning with the first.
    """

    __pydantic_config__ = STRICT
    name: Name
    """Unique in the suite."""
    system: Name
    """Database to deploy."""
    config: Name
    """Its settings: `configs/systems/<system>/<config>.yaml`."""
    topology: Name
    """Shape of the cluster."""
    workload: Name
    """What clients do."""
    releases: Annotated[tuple[Selector, ...], MinLen(1)]
    """Versions to measure, or rules that choose them, for example `5.0: newest 2`."""
    sentinel_every_nights: Positive | None = None
    """Makes it a sentinel, measured on every n-th night."""

    @property
    def versions(self) -> tuple[str, ...]:
        """Return the versions to measure, without the rules that chose nothing."""
        return tuple(one for one in self.releases if is_version(one))


ServerDiagnostic: TypeAlias = Literal[
    "server_cpu", "storage_read", "storage_written", "network_sent", "gc_pause"
]
"""What servers spend per operation, or lose to pauses, as `perf.model.metrics` names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The experiments of one night on one testbed, and what the night does about what it finds.

    `compare_minutes` bounds measuring the first and the last release of each experiment side by side,
    beside what nights measured of both; `remeasure_minutes` measuring its suspected changes again,
    side by side; `bisect_minutes` the bisections that `bisect: auto` starts for each confirmed change
    with unmeasured releases inside; `explain_minutes` trials with a profiler attached, of both sides of
    each change for the worse; `hint_minutes` one such trial of each release every night.
    """

    __pydantic_config__ = STRICT
    name: Name
    """As the file is called."""
    description: Text
    """One line, for lists."""
    testbed: Name
    """Where it runs."""
    scaled_down_by: Positive | None = None
    """How many times smaller than written its workloads are run; absent: as they are written."""
    experiments: Annotated[tuple[Experiment, ...], MinLen(1)]
    """What it measures."""
    compare_minutes: Positive | None = None
    """Most minutes to compare its releases, interleaved; absent: it does not."""
    remeasure_minutes: Positive | None = None
    """Most minutes to measure unconfirmed changes again; absent: it does not."""
    bisect: Literal["auto"] | None = None
    """Bisect confirmed changes; absent: it does not."""
    bisect_minutes: Positive | None = None
    """Most minutes of bisections."""
    explain_minutes: Positive | None = None
    """Most minutes to profile both sides of what became worse; absent: it does not."""
    hint_minutes: Positive | None = None
    """Most minutes to profile each release once a night, for hints; absent: it does not."""
    hint_diagnostics: tuple[ServerDiagnostic, ...] = ()
    """Costs of servers that are judged as hints, for example `server_cpu`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One experiment with every name resolved: all that decides what a trial measures."""

    experiment: Experiment
    topology: Topology
    testbed: Testbed
    workload: Workload
    config: SystemConfig

    @property
    def engine(self) -> EngineName:
        """Which program offers the load: as the workload says, else the testbed, else Python."""
        return self.workload.engine or self.testbed.engine or DEFAULT_ENGINE
