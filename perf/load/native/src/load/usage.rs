//! What an engine process itself uses: looks at its CPU time and waiting, and the usage between them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::load::clock::own_cpu_s;
use crate::load::timeline::Cell;
use crate::spec::Usage;

/// One look. Both totals only ever grow; `at_s` is in the engine's time, as cells are.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    pub at_s: f64,
    pub cpu_s: f64,
    pub waited_s: f64,
}

/// Looks at this process, and remembers what threads that have ended had waited.
pub struct OwnUsage {
    tasks: PathBuf,
    waits_ns: HashMap<String, u64>,
    ended_ns: u64,
}

impl OwnUsage {
    /// Reads run-queue waits from `tasks`, a directory like /proc/self/task.
    #[must_use]
    pub fn new(tasks: &Path) -> Self {
        Self {
            tasks: tasks.to_owned(),
            waits_ns: HashMap::new(),
            ended_ns: 0,
        }
    }

    /// Looks now; a kernel that keeps no run-queue waits counts as none.
    #[allow(clippy::cast_precision_loss)] // nanoseconds, to be given in seconds
    pub fn look(&mut self, at_s: f64) -> Used {
        let now_ns = self.read();
        for (thread, waited_ns) in &self.waits_ns {
            // A number is given again after its thread has ended; then its wait starts anew.
            if now_ns.get(thread).is_none_or(|now| now < waited_ns) {
                self.ended_ns += waited_ns;
            }
        }
        self.waits_ns = now_ns;
        let waited_ns = self.ended_ns + self.waits_ns.values().sum::<u64>();
        Used {
            at_s,
            cpu_s: own_cpu_s(),
            waited_s: waited_ns as f64 / 1e9,
        }
    }

    fn read(&self) -> HashMap<String, u64> {
        let Ok(tasks) = std::fs::read_dir(&self.tasks) else {
            return HashMap::new();
        };
        tasks
            .flatten()
            .filter_map(|task| {
                // The thread may have just ended, or the kernel have no schedstat.
                let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
                let waited_ns = text.split_whitespace().nth(1)?.parse().ok()?;
                Some((task.file_name().to_string_lossy().into_owned(), waited_ns))
            })
            .collect()
    }
}

/// Gives the usage per phase and iteration, straight between the looks around each edge.
///
/// A cell counts from the first look to the last; the warm-ups of a phase count as one.
#[must_use]
pub fn use_between(cells: &[Cell], looks: &[Used]) -> Vec<Usage> {
    let (Some(first), Some(last)) = (looks.first(), looks.last()) else {
        return Vec::new();
    };
    let mut totals: Vec<Usage> = Vec::new();
    for cell in cells {
        let edges = [cell.start_s, cell.end_s].map(|edge_s| edge_s.clamp(first.at_s, last.at_s));
        let [begin, end] = edges.map(|edge_s| at(looks, edge_s));
        let known = totals
            .iter()
            .position(|one| one.phase == cell.phase && one.iteration == cell.iteration);
        let place = known.unwrap_or_else(|| {
            totals.push(Usage {
                phase: cell.phase.clone(),
                iteration: cell.iteration,
                wall_s: 0.0,
                cpu_s: 0.0,
                waited_s: 0.0,
            });
            totals.len() - 1
        });
        let total = &mut totals[place];
        total.wall_s += end.at_s - begin.at_s;
        total.cpu_s += end.cpu_s - begin.cpu_s;
        total.waited_s += end.waited_s - begin.waited_s;
    }
    totals
}

/// Gives what had been used at a time between the first look and the last.
fn at(looks: &[Used], time_s: f64) -> Used {
    let after = looks.partition_point(|look| look.at_s <= time_s);
    let before = looks[after.max(1) - 1];
    let Some(next) = looks.get(after) else {
        return Used {
            at_s: time_s,
            ..before
        };
    };
    let share = (time_s - before.at_s) / (next.at_s - before.at_s);
    Used {
        at_s: time_s,
        cpu_s: before.cpu_s + share * (next.cpu_s - before.cpu_s),
        waited_s: before.waited_s + share * (next.waited_s - before.waited_s),
    }
}

#[cfg(test)]
mod tests {
    use super::{OwnUsage, Used, use_between};
    use crate::load::timeline::Cell;

    fn cell(iteration: u32, start_s: f64, end_s: f64) -> Cell {
        Cell {
            phase: "steady".into(),
            iteration,
            start_s,
            end_s,
        }
    }

    #[test]
    fn usage_is_straight_between_looks_and_warm_ups_are_added_up() {
        let looks = [(0.0, 0.0), (2.0, 1.0), (4.0, 5.0)].map(|(at_s, cpu_s)| Used {
            at_s,
            cpu_s,
            waited_s: cpu_s / 10.0,
        });
        let cells = [
            cell(0, 0.0, 1.0),
            cell(1, 1.0, 3.0),
            cell(0, 3.0, f64::INFINITY),
        ];
        let found: Vec<_> = use_between(&cells, &looks)
            .iter()
            .map(|one| (one.iteration, one.wall_s, one.cpu_s))
            .collect();
        assert_eq!(found, [(0, 2.0, 2.5), (1, 2.0, 2.5)]);
    }

    #[test]
    fn what_an_ended_thread_waited_stays_counted() {
        let tasks = std::env::temp_dir().join(format!("knickload-usage-{}", std::process::id()));
        let wait = |thread: &str, waited_ns: u64| {
            std::fs::create_dir_all(tasks.join(thread)).unwrap();
            let text = format!("5 {waited_ns} 7\n");
            std::fs::write(tasks.join(thread).join("schedstat"), text).unwrap();
        };
        let mut own = OwnUsage::new(&tasks);
        wait("1", 1_000_000_000);
        wait("2", 500_000_000);
        assert!((own.look(0.0).waited_s - 1.5).abs() < 1e-12);
        std::fs::remove_dir_all(tasks.join("2")).unwrap();
        wait("1", 2_000_000_000);
        assert!((own.look(1.0).waited_s - 2.5).abs() < 1e-12);
        std::fs::remove_dir_all(&tasks).unwrap();
    }
}
