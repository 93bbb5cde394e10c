//! The devops workload, after TSBS: hosts report nine measurements at equal intervals.
//!
//! The same rows and batches as `perf/workloads/devops/batches.py`, which says what they are.

use std::collections::VecDeque;
use std::rc::Rc;

use super::devops_tables::{DATA, Table};
use super::devops_walks::{Walking, memory_bytes, moments, pick};
use super::splitmix::{stream, word};
use crate::session::{Number, Row};
use crate::spec::Devops;

const TAG_STREAM: u64 = 14;
const BOOT_STREAM: u64 = 15;
/// Moments whose states are kept: one thread makes its batches in order, so that each begins where the
/// one before it ended, or later. At 4000 hosts a moment has 2.8 MB.
const KEPT_MOMENTS: usize = 2;

/// Counts the rows of the workload: one per table, host and interval.
#[must_use]
pub fn devops_rows(records: &Devops) -> u64 {
    DATA.tables.len() as u64 * records.hosts * moments(records)
}

/// Gives the tags of each host, in the order of the tags of `DATA`.
#[must_use]
pub fn host_tags(records: &Devops, seed: u64) -> Vec<Rc<[String]>> {
    let source = stream(seed, TAG_STREAM);
    let count = DATA.tags.len() as u64;
    let describe = |host: u64| {
        let drawn = |tag: u64| word(source, host * count + tag);
        let (region, centers) = *pick(&DATA.regions, drawn(1));
        let center = char::from(*pick(centers.as_bytes(), drawn(2)));
        Rc::from([
            format!("host_{host}"),
            region.to_owned(),
            format!("{region}{center}"),
            (drawn(3) % DATA.racks).to_string(),
            (*pick(&DATA.systems, drawn(4))).to_owned(),
            (*pick(&DATA.architectures, drawn(5))).to_owned(),
            (*pick(&DATA.teams, drawn(6))).to_owned(),
            (drawn(7) % DATA.services).to_string(),
            (drawn(8) % DATA.service_versions).to_string(),
            (*pick(&DATA.environments, drawn(9))).to_owned(),
        ])
    };
    (0..records.hosts).map(describe).collect()
}

/// The batches of a data set; made for being asked in order.
pub struct Batches {
    records: Devops,
    seed: u64,
    batch_rows: u64,
    tags: Vec<Rc<[String]>>,
    memory: Vec<i64>,
    boot_times: Vec<i64>,
    /// The first walk of each table, and after the last how many there are.
    columns: Vec<usize>,
    walking: Walking,
    /// The states by (host, walk) of the moments from `first` on.
    states: VecDeque<Vec<f64>>,
    first: u64,
}

impl Batches {
    /// Computes what stays the same over time: tags, memory, boot times.
    #[must_use]
    #[allow(clippy::cast_possible_wrap)] // boot times are below `longest_up_s`
    pub fn new(records: &Devops, seed: u64, batch_rows: u64) -> Self {
        let boot = stream(seed, BOOT_STREAM);
        let mut columns = vec![0];
        for table in &DATA.tables {
            columns.push(columns[columns.len() - 1] + table.walks());
        }
        let all = columns[DATA.tables.len()];
        Self {
            records: records.clone(),
            seed,
            batch_rows,
            tags: host_tags(records, seed),
            memory: memory_bytes(records, seed),
            boot_times: (0..records.hosts)
                .map(|host| (word(boot, host) % DATA.longest_up_s) as i64)
                .collect(),
            columns,
            walking: Walking::new(records, seed, all),
            states: VecDeque::with_capacity(KEPT_MOMENTS),
            first: 0,
        }
    }

    /// Computes batch number `number`, from 0; beyond the last there is an empty one.
    ///
    /// One that lies before those that were asked for is computed from the begin of the data on.
    pub fn batch(&mut self, number: u64) -> Vec<Row> {
        let hosts = self.records.hosts;
        let mut at = number.saturating_mul(self.batch_rows);
        let end = at
            .saturating_add(self.batch_rows)
            .min(devops_rows(&self.records));
        let mut rows = Vec::new();
        rows.reserve_exact(usize::try_from(end.saturating_sub(at)).unwrap_or_default());
        while at < end {
            let (rest, host) = (at / hosts, at % hosts);
            let tables = DATA.tables.len() as u64;
            let until = hosts.min(host + end - at);
            self.append_rows(&mut rows, rest / tables, rest % tables, host..until);
            at += until - host;
        }
        rows
    }

    #[allow(clippy::cast_possible_truncation)] // of places in what is in memory
    fn append_rows(
        &mut self,
        rows: &mut Vec<Row>,
        moment: u64,
        table: u64,
        hosts: std::ops::Range<u64>,
    ) {
        let place = table as usize;
        let table = &DATA.tables[place];
        self.go_to(moment);
        let states = &self.states[(moment - self.first) as usize];
        let width = self.columns[DATA.tables.len()];
        let (begin, end) = (self.columns[place], self.columns[place + 1]);
        let since_s = moment * self.records.interval_s;
        for host in hosts.start as usize..hosts.end as usize {
            let states = &states[host * width + begin..host * width + end];
            rows.push(Row {
                table: table.name,
                tags: Rc::clone(&self.tags[host]),
                ts_ms: to_ms(self.records.begin_s + since_s),
                values: self.values(table, host, since_s, states),
            });
        }
    }

    #[allow(clippy::cast_possible_wrap)] // a data set's span is far below 2^63 s
    fn values(&self, table: &Table, host: usize, since_s: u64, states: &[f64]) -> Vec<Number> {
        let mut values = Vec::with_capacity(table.fields.len());
        match table.name {
            "disk" => append_disk(&mut values, whole(states[0])),
            "mem" => append_mem(&mut values, self.memory[host], states),
            name => {
                match name {
                    "kernel" => values.push(Number::Whole(self.boot_times[host])),
                    "redis" => values.push(Number::Whole(since_s as i64)),
                    _ => {}
                }
                values.extend(states.iter().map(|&state| Number::Whole(whole(state))));
            }
        }
        values
    }

    fn go_to(&mut self, moment: u64) {
        if moment < self.first {
            let all = self.columns[DATA.tables.len()];
            self.walking = Walking::new(&self.records, self.seed, all);
            self.states.clear();
            self.first = 0;
        }
        while moment >= self.first + self.states.len() as u64 {
            let mut kept = if self.states.len() < KEPT_MOMENTS {
                Vec::new()
            } else {
                self.first += 1;
                self.states.pop_front().unwrap_or_default()
            };
            kept.clear();
            kept.extend_from_slice(self.walking.advance());
            self.states.push_back(kept);
        }
    }
}

/// Gives seconds since the epoch in milliseconds; the end of any data set is far below 2^63.
#[allow(clippy::cast_possible_wrap)]
pub(super) fn to_ms(seconds: u64) -> i64 {
    (seconds * 1000) as i64
}

/// Cuts towards zero, as TSBS's conversion does.
#[allow(clippy::cast_possible_truncation)]
fn whole(state: f64) -> i64 {
    state as i64
}

#[allow(clippy::cast_precision_loss)] // no host has 2^53 bytes
fn append_disk(values: &mut Vec<Number>, free: i64) {
    let used = DATA.disk_bytes - free;
    let percent = whole(100.0 * (used as f64 / DATA.disk_bytes as f64));
    let (inodes, inodes_free) = (DATA.disk_bytes / DATA.inode_bytes, free / DATA.inode_bytes);
    let inodes_used = inodes - inodes_free;
    let all = [
        DATA.disk_bytes,
        free,
        used,
        percent,
        inodes,
        inodes_free,
        inodes_used,
    ];
    values.extend(all.map(Number::Whole));
}

#[allow(clippy::cast_precision_loss)] // as above
fn append_mem(values: &mut Vec<Number>, memory: i64, states: &[f64]) {
    let (used, cached, buffered) = (whole(states[0]), whole(states[1]), whole(states[2]));
    let available = memory - used;
    let all = [memory, available, used, available, cached, buffered];
    values.extend(all.map(Number::Whole));
    let percent = |part: i64| Number::Real(100.0 * (part as f64 / memory as f64));
    values.extend([used, available, buffered].map(percent));
}
