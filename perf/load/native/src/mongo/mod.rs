//! `MongoDB`'s sessions, on the official driver: `perf/systems/mongodb/client.py` and its neighbours, command by command.
//!
//! Every operation is one raw command, with the fields that `pymongo` sends, so that a server does the same
//! work for either engine. Raw, since the driver's typed actions neither take `maxTimeMS` with a write, nor
//! let an answer be read where it lies.

pub mod connect;
pub mod devops;
mod failure;
pub mod keys;
pub mod sensor;
mod trust;
