//! The tables of the devops workload: names, order and kinds of fields, and their walks, as in TSBS.
//!
//! The same as `perf/workloads/devops/tables.py`, which names the sources.

/// What describes a host, in this order in each row; the values are text.
pub const TAGS: [&str; 10] = [
    "hostname",
    "region",
    "datacenter",
    "rack",
    "os",
    "arch",
    "team",
    "service",
    "service_version",
    "service_environment",
];

/// The regions, each with the last letters of its datacenters.
pub const REGIONS: [(&str, &str); 9] = [
    ("us-east-1", "abce"),
    ("us-west-1", "ab"),
    ("us-west-2", "abc"),
    ("eu-west-1", "abc"),
    ("eu-central-1", "ab"),
    ("ap-southeast-1", "ab"),
    ("ap-southeast-2", "ab"),
    ("ap-northeast-1", "ac"),
    ("sa-east-1", "abc"),
];
pub const RACKS: u64 = 100;
pub const SERVICES: u64 = 20;
pub const SERVICE_VERSIONS: u64 = 2;
pub const SYSTEMS: [&str; 3] = ["Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"];
pub const ARCHITECTURES: [&str; 2] = ["x64", "x86"];
pub const TEAMS: [&str; 4] = ["SF", "NYC", "LON", "CHI"];
pub const ENVIRONMENTS: [&str; 3] = ["production", "staging", "test"];

pub const DISK_BYTES: i64 = 1 << 40;
pub const INODE_BYTES: i64 = 4096;
/// What a host may have; each has one of them.
pub const MEMORY_BYTES: [i64; 3] = [8 << 30, 12 << 30, 16 << 30];
/// Boot times are below this, as TSBS has them; seconds.
pub const LONGEST_UP_S: u64 = 240;

/// A random walk: each step is normal, and the state stays between `low` and `high`.
///
/// A walk that only `grows` takes the absolute value of each step. `start` is the first state; none is
/// drawn uniformly from the range. Where `scales`, deviation and high are shares of the host's memory.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    pub mean: f64,
    pub deviation: f64,
    pub low: f64,
    pub high: f64,
    pub start: Option<f64>,
    pub grows: bool,
    pub scales: bool,
}

const FREE: Walk = Walk {
    mean: 1.0,
    deviation: 1.0,
    low: f64::NEG_INFINITY,
    high: f64::INFINITY,
    start: Some(0.0),
    grows: false,
    scales: false,
};
const MEMORY: Walk = Walk {
    mean: 0.0,
    deviation: 1.0 / 64.0,
    low: 0.0,
    high: 1.0,
    start: None,
    grows: false,
    scales: true,
};

const fn growing(mean: f64) -> Walk {
    Walk {
        mean,
        grows: true,
        ..FREE
    }
}

const fn clamped(mean: f64, high: f64, start: Option<f64>) -> Walk {
    Walk {
        mean,
        low: 0.0,
        high,
        start,
        ..FREE
    }
}

const SHARE: Walk = clamped(0.0, 100.0, None);
const LOW: Walk = growing(5.0);
const HIGH: Walk = growing(50.0);
const FEW: Walk = clamped(5.0, 1000.0, Some(0.0));
const FEWER: Walk = clamped(5.0, 100.0, Some(0.0));
const CLIENTS: Walk = clamped(50.0, 10_000.0, Some(0.0));
const REDIS_BYTES: Walk = clamped(50.0, 17_179_869_184.0, Some(8_589_934_592.0));
const TEMP_BYTES: Walk = clamped(1024.0, 1_073_741_824.0, Some(0.0));
const DISK: Walk = clamped(50.0, 1_099_511_627_776.0, Some(549_755_813_888.0));

/// A table: its fields in the order of TSBS, and the walks that they come from.
#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    pub fields: &'static [&'static str],
    /// How many of the last fields have a fraction; the others are whole numbers.
    pub fractions: usize,
    /// Each walk, and how many fields in a row have one of its kind.
    walks: &'static [(usize, Walk)],
}

impl Table {
    /// Counts the walks: disk has one (free bytes), mem three (used, cached, buffered bytes), kernel
    /// and redis one less than they have fields.
    #[must_use]
    pub fn walks(&self) -> usize {
        self.walks.iter().map(|(count, _)| count).sum()
    }

    /// Says whether a field, by its place, is a whole number.
    #[must_use]
    pub fn is_whole(&self, field: usize) -> bool {
        field + self.fractions < self.fields.len()
    }
}

/// The tables, in their order; "postgresl" is the spelling of TSBS.
pub static TABLES: [Table; 9] = [
    CPU_TABLE,
    DISKIO_TABLE,
    DISK_TABLE,
    KERNEL_TABLE,
    MEM_TABLE,
    NET_TABLE,
    NGINX_TABLE,
    POSTGRESQL_TABLE,
    REDIS_TABLE,
];

/// Gives the walks of all tables, one after the other: those of cpu come first.
#[must_use]
pub fn all_walks() -> Vec<Walk> {
    let runs = TABLES.iter().flat_map(|table| table.walks);
    runs.flat_map(|&(count, walk)| std::iter::repeat_n(walk, count))
        .collect()
}

const CPU_TABLE: Table = Table {
    name: "cpu",
    fields: &[
        "usage_user",
        "usage_system",
        "usage_idle",
        "usage_nice",
        "usage_iowait",
        "usage_irq",
        "usage_softirq",
        "usage_steal",
        "usage_guest",
        "usage_guest_nice",
    ],
    fractions: 0,
    walks: &[(10, SHARE)],
};
const DISKIO_TABLE: Table = Table {
    name: "diskio",
    fields: &[
        "reads",
        "writes",
        "read_bytes",
        "write_bytes",
        "read_time",
        "write_time",
        "io_time",
    ],
    fractions: 0,
    walks: &[(2, HIGH), (2, growing(100.0)), (3, LOW)],
};
const DISK_TABLE: Table = Table {
    name: "disk",
    fields: &[
        "total",
        "free",
        "used",
        "used_percent",
        "inodes_total",
        "inodes_free",
        "inodes_used",
    ],
    fractions: 0,
    walks: &[(1, DISK)],
};
const KERNEL_TABLE: Table = Table {
    name: "kernel",
    fields: &[
        "boot_time",
        "interrupts",
        "context_switches",
        "processes_forked",
        "disk_pages_in",
        "disk_pages_out",
    ],
    fractions: 0,
    walks: &[(5, LOW)],
};
const MEM_TABLE: Table = Table {
    name: "mem",
    fields: &[
        "total",
        "available",
        "used",
        "free",
        "cached",
        "buffered",
        "used_percent",
        "available_percent",
        "buffered_percent",
    ],
    fractions: 3,
    walks: &[(3, MEMORY)],
};
const NET_TABLE: Table = Table {
    name: "net",
    fields: &[
        "bytes_sent",
        "bytes_recv",
        "packets_sent",
        "packets_recv",
        "err_in",
        "err_out",
        "drop_in",
        "drop_out",
    ],
    fractions: 0,
    walks: &[(4, HIGH), (4, LOW)],
};
const NGINX_TABLE: Table = Table {
    name: "nginx",
    fields: &[
        "accepts", "active", "handled", "reading", "requests", "waiting", "writing",
    ],
    fractions: 0,
    walks: &[
        (1, LOW),
        (1, FEWER),
        (1, LOW),
        (1, FEWER),
        (1, LOW),
        (2, FEWER),
    ],
};
const POSTGRESQL_TABLE: Table = Table {
    name: "postgresl",
    fields: &[
        "numbackends",
        "xact_commit",
        "xact_rollback",
        "blks_read",
        "blks_hit",
        "tup_returned",
        "tup_fetched",
        "tup_inserted",
        "tup_updated",
        "tup_deleted",
        "conflicts",
        "temp_files",
        "temp_bytes",
        "deadlocks",
        "blk_read_time",
        "blk_write_time",
    ],
    fractions: 0,
    walks: &[(12, FEW), (1, TEMP_BYTES), (3, FEW)],
};
const REDIS_TABLE: Table = Table {
    name: "redis",
    fields: &[
        "uptime_in_seconds",
        "total_connections_received",
        "expired_keys",
        "evicted_keys",
        "keyspace_hits",
        "keyspace_misses",
        "instantaneous_ops_per_sec",
        "instantaneous_input_kbps",
        "instantaneous_output_kbps",
        "connected_clients",
        "used_memory",
        "used_memory_rss",
        "used_memory_peak",
        "used_memory_lua",
        "rdb_changes_since_last_save",
        "sync_full",
        "sync_partial_ok",
        "sync_partial_err",
        "pubsub_channels",
        "pubsub_patterns",
        "latest_fork_usec",
        "connected_slaves",
        "master_repl_offset",
        "repl_backlog_active",
        "repl_backlog_size",
        "repl_backlog_histlen",
        "mem_fragmentation_ratio",
        "used_cpu_sys",
        "used_cpu_user",
        "used_cpu_sys_children",
        "used_cpu_user_children",
    ],
    fractions: 0,
    walks: &[
        (1, LOW),
        (4, HIGH),
        (3, FREE),
        (1, CLIENTS),
        (4, REDIS_BYTES),
        (1, CLIENTS),
        (11, FEW),
        (1, FEWER),
        (4, FEW),
    ],
};

#[cfg(test)]
mod tests {
    use super::{TABLES, all_walks};

    #[test]
    fn a_host_reports_101_values_that_come_from_87_walks() {
        let fields: usize = TABLES.iter().map(|table| table.fields.len()).sum();
        assert_eq!((fields, all_walks().len()), (101, 87));
    }

    #[test]
    fn walks_stand_for_fields_except_where_fields_are_computed() {
        let computed: Vec<_> = TABLES
            .iter()
            .filter(|table| table.walks() != table.fields.len())
            .map(|table| (table.name, table.fields.len() - table.walks()))
            .collect();
        assert_eq!(
            computed,
            [("disk", 6), ("kernel", 1), ("mem", 6), ("redis", 1)]
        );
    }
}
