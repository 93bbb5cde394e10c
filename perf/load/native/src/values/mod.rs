//! Records and keys: pure functions of a seed and a number, byte for byte those of `perf/workloads`.

pub mod devops;
pub mod devops_history;
pub mod devops_queries;
pub mod devops_tables;
pub mod devops_walks;
pub mod keys;
pub mod permutation;
pub mod pool;
pub mod put_get;
pub mod sensor;
pub mod splitmix;
pub mod statements;
pub mod ycsb;
