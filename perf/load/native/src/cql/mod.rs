//! Clients of Cassandra and ScyllaDB on the `scylla` crate: what `perf/systems/cql/client.py` and its neighbours do.
//!
//! The crate's settings are those of the Python driver: protocol 4, no compression, timestamps of the
//! client, no request tried again, nothing asked twice in case the first answer is late.
//!
//! ScyllaDB: a node has a connection for each of its shards, which the crate opens by itself, on the
//! shard-aware port (19042, or 19142 with TLS) where the node names one, else on the plain port; where
//! neither can reach a shard, its requests go to another. Cassandra has no shards: one connection per node.

mod cells;
pub mod connect;
mod decimal;
pub mod devops;
mod failure;
pub mod keys;
pub mod sensor;
pub mod statements;
mod turns;
mod values;
