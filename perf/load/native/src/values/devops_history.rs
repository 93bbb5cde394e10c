//! All values of the table cpu, from which any answer of the devops workload follows.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::devops::to_ms;
use super::devops_queries::{HOUR_MS, metrics};
use super::devops_walks::{Walking, moments};
use crate::session::{Aggregate, Group, Query};
use crate::spec::Devops;

/// Hours of fewer moments are soon added up.
const LEAST_SUMMED: usize = 40;

/// The values of all metrics of all hosts at all moments.
///
/// They are whole numbers up to 100, so one takes a byte: the published size, 4000 hosts for 3 days at
/// 10 s, takes 1.04 GB. That is the most that verification ever needs. The sums of whole hours are a
/// ninetieth of it, and spare most of the time of an answer, in which nothing else can be sent.
pub struct CpuHistory {
    begin_ms: i64,
    step_ms: i64,
    hosts: usize,
    width: usize,
    /// By (moment, host, metric).
    values: Vec<u8>,
    /// The sums of each hour with many moments, by (host, metric).
    hours: HashMap<Range<usize>, Vec<u32>>,
    /// The hosts in the order of their names, and the names.
    by_name: Vec<(String, usize)>,
}

impl CpuHistory {
    /// Computes them.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "states are shares up to 100, and what is counted is in memory"
    )]
    pub fn new(records: &Devops, seed: u64) -> Self {
        let width = metrics().len();
        let hosts = records.hosts as usize;
        let mut values = Vec::with_capacity(moments(records) as usize * hosts * width);
        let mut walking = Walking::new(records, seed, width);
        for _ in 0..moments(records) {
            values.extend(walking.advance().iter().map(|&state| state as u8));
        }
        let mut by_name: Vec<_> = (0..hosts)
            .map(|host| (format!("host_{host}"), host))
            .collect();
        by_name.sort();
        let mut history = Self {
            begin_ms: to_ms(records.begin_s),
            step_ms: to_ms(records.interval_s),
            hosts,
            width,
            values,
            hours: HashMap::new(),
            by_name,
        };
        history.hours = history.sum_hours();
        history
    }

    fn sum_hours(&self) -> HashMap<Range<usize>, Vec<u32>> {
        let all = 0..self.values.len() / (self.hosts * self.width);
        let hours = self.buckets(all, HOUR_MS).into_iter();
        hours
            .filter(|(_, moments)| moments.len() >= LEAST_SUMMED)
            .map(|(_, moments)| (moments.clone(), self.sums(moments)))
            .collect()
    }

    /// Gives the answer to a query, as a system that has stored every row must give it.
    #[must_use]
    pub fn answer(&self, query: &Query) -> Vec<Group> {
        let hosts: Vec<usize> = query
            .hosts
            .iter()
            .filter_map(|host| host.strip_prefix("host_")?.parse().ok())
            .collect();
        let mut groups = Vec::new();
        for (ts_ms, moments) in self.buckets(self.window(query), query.bucket_ms) {
            match query.aggregate {
                Aggregate::Max => groups.push(Group {
                    ts_ms,
                    host: String::new(),
                    values: self.maxima(moments, &hosts, query.metrics.len()),
                }),
                Aggregate::Mean => {
                    self.append_means(&mut groups, ts_ms, moments, query.metrics.len());
                }
            }
        }
        groups
    }

    /// Gives the values of all hosts at a moment, by (host, metric).
    fn at(&self, moment: usize) -> &[u8] {
        let size = self.hosts * self.width;
        &self.values[moment * size..][..size]
    }

    fn maxima(&self, moments: Range<usize>, hosts: &[usize], metrics: usize) -> Vec<f64> {
        let mut best = vec![0; metrics];
        for moment in moments {
            let values = self.at(moment);
            for host in hosts {
                for (best, &value) in best.iter_mut().zip(&values[host * self.width..]) {
                    *best = value.max(*best);
                }
            }
        }
        best.into_iter().map(f64::from).collect()
    }

    /// Adds up the values of all hosts, by (host, metric).
    fn sums(&self, moments: Range<usize>) -> Vec<u32> {
        let mut sums = vec![0; self.hosts * self.width];
        for moment in moments {
            for (sum, &value) in sums.iter_mut().zip(self.at(moment)) {
                *sum += u32::from(value);
            }
        }
        sums
    }

    #[allow(clippy::cast_precision_loss)] // a bucket has far fewer than 2^53 moments
    fn append_means(
        &self,
        groups: &mut Vec<Group>,
        ts_ms: i64,
        moments: Range<usize>,
        metrics: usize,
    ) {
        let count = moments.len() as f64;
        let sums = match self.hours.get(&moments) {
            Some(known) => Cow::Borrowed(known),
            None => Cow::Owned(self.sums(moments)),
        };
        groups.extend(self.by_name.iter().map(|(name, host)| {
            Group {
                ts_ms,
                host: name.clone(),
                values: (sums[host * self.width..][..metrics].iter())
                    .map(|&sum| f64::from(sum) / count)
                    .collect(),
            }
        }));
    }

    /// Gives the moments of a query's window.
    fn window(&self, query: &Query) -> Range<usize> {
        let all = self.values.len() / (self.hosts * self.width);
        // The first moment at or after an edge of the window.
        let after = |edge_ms: i64| {
            let steps = (edge_ms - self.begin_ms + self.step_ms - 1).div_euclid(self.step_ms);
            usize::try_from(steps).unwrap_or_default().min(all)
        };
        after(query.from_ms)..after(query.until_ms)
    }

    /// Gives the buckets that have any of some moments: begin, and moments.
    fn buckets(&self, moments: Range<usize>, bucket_ms: i64) -> Vec<(i64, Range<usize>)> {
        let mut buckets: Vec<(i64, Range<usize>)> = Vec::new();
        let before = i64::try_from(moments.start).unwrap_or_default();
        let mut at_ms = self.begin_ms + self.step_ms * before;
        for moment in moments {
            let begin_ms = at_ms.div_euclid(bucket_ms) * bucket_ms;
            at_ms += self.step_ms;
            match buckets.last_mut() {
                Some((same_ms, moments)) if *same_ms == begin_ms => moments.end = moment + 1,
                _ => buckets.push((begin_ms, moment..moment + 1)),
            }
        }
        buckets
    }
}
