//! Records and keys: pure functions of a seed and a number, byte for byte those of `perf/workloads`.

pub mod splitmix;
