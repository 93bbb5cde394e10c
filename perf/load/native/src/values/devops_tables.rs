//! The tables of the devops workload, from the file that the Python engine reads, too.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// All that `perf/workloads/devops/tables.json` says; `tables.py` beside it explains each part.
#[derive(Debug, Deserialize)]
pub struct Data {
    #[serde(borrow)]
    pub tags: Vec<&'static str>,
    pub regions: Vec<(&'static str, &'static str)>,
    pub racks: u64,
    pub services: u64,
    pub service_versions: u64,
    pub systems: Vec<&'static str>,
    pub architectures: Vec<&'static str>,
    pub teams: Vec<&'static str>,
    pub environments: Vec<&'static str>,
    pub disk_bytes: i64,
    pub inode_bytes: i64,
    pub memory_bytes: Vec<i64>,
    pub longest_up_s: u64,
    walks: HashMap<&'static str, Walk>,
    pub tables: Vec<Table>,
}

/// A random walk: each step is normal, and the state stays between `low` and `high`.
///
/// A walk that only `grows` takes the absolute value of each step. `start` is the first state; none is
/// drawn uniformly from the range. Where `scales`, deviation and high are shares of the host's memory.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Walk {
    pub mean: f64,
    #[serde(default = "one")]
    pub deviation: f64,
    #[serde(default = "lowest")]
    pub low: f64,
    #[serde(default = "highest")]
    pub high: f64,
    pub start: Option<f64>,
    #[serde(default)]
    pub grows: bool,
    #[serde(default)]
    pub scales: bool,
}

const fn one() -> f64 {
    1.0
}

const fn lowest() -> f64 {
    f64::NEG_INFINITY
}

const fn highest() -> f64 {
    f64::INFINITY
}

/// A table: its fields in the order of TSBS, and the walks that they come from.
#[derive(Debug, Deserialize)]
pub struct Table {
    pub name: &'static str,
    pub fields: Vec<&'static str>,
    /// How many of the last fields have a fraction; the others are whole numbers.
    pub fractions: usize,
    /// Each walk, and how many fields in a row have one of its kind.
    walks: Vec<(usize, &'static str)>,
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

/// What the file says; it is part of the program, so a test holds that it can be read.
pub static DATA: LazyLock<Data> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../workloads/devops/tables.json"))
        .expect("tables.json was tested")
});

/// Gives the walks of all tables, one after the other: those of cpu come first.
#[must_use]
pub fn all_walks() -> Vec<Walk> {
    let runs = DATA.tables.iter().flat_map(|table| &table.walks);
    runs.flat_map(|(count, name)| std::iter::repeat_n(DATA.walks[name], *count))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{DATA, all_walks};

    #[test]
    fn a_host_reports_101_values_that_come_from_87_walks() {
        let fields: usize = DATA.tables.iter().map(|table| table.fields.len()).sum();
        assert_eq!((fields, all_walks().len()), (101, 87));
    }

    #[test]
    fn walks_stand_for_fields_except_where_fields_are_computed() {
        let computed: Vec<_> = (DATA.tables.iter())
            .filter(|table| table.walks() != table.fields.len())
            .map(|table| (table.name, table.fields.len() - table.walks()))
            .collect();
        assert_eq!(
            computed,
            [("disk", 6), ("kernel", 1), ("mem", 6), ("redis", 1)]
        );
    }
}
