//! What the operations of each data model are, on a session of any system.

pub mod devops;
