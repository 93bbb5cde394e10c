//! Records, keys, choices and judgements are those of the Python engine, byte for byte.
//!
//! The vectors are written by `tests/perf/load/{sensor,put_get,ycsb,statement}_vectors.py`.

mod put_get;
mod said;
mod sensor;
mod statements;
mod ycsb;
