//! The table of readings, and those that drivers look up when they connect.

use std::net::IpAddr;

use super::frames::{octets, put_bytes, put_count, put_string};

/// The [option] that names a type.
pub type Kind = &'static [u16];

const BLOB: Kind = &[0x03];
const BOOLEAN: Kind = &[0x04];
const DOUBLE: Kind = &[0x07];
pub const INT: Kind = &[0x09];
const TIMESTAMP: Kind = &[0x0b];
const UUID: Kind = &[0x0c];
pub const TEXT: Kind = &[0x0d];
const INET: Kind = &[0x10];
pub const TEXTS: Kind = &[0x20, 0x0d];
const MAP_OF_TEXT: Kind = &[0x21, 0x0d, 0x0d];
const SET_OF_TEXT: Kind = &[0x22, 0x0d];

/// A column, or a place for a value in a statement.
pub type Column = (&'static str, Kind);

pub const READINGS: &str = "knickpoint.sensor_readings";
/// The values of a reading, in the order of their columns.
pub const VALUES: [&str; 8] = [
    "temperature",
    "humidity",
    "pressure",
    "vibration",
    "battery",
    "latitude",
    "longitude",
    "signal",
];

/// Gives the columns of readings, in the order in which they are written and read.
pub fn reading_columns() -> Vec<Column> {
    let mut columns = vec![("device_id", TEXT), ("ts", TIMESTAMP)];
    columns.extend(VALUES.map(|value| (value, DOUBLE)));
    columns.push(("metadata", BLOB));
    columns
}

/// Appends the columns of one table, as metadata of rows and of places for values.
pub fn put_columns(out: &mut Vec<u8>, table: &str, columns: &[Column]) {
    let (keyspace, name) = table.split_once('.').unwrap_or(("", table));
    put_string(out, keyspace);
    put_string(out, name);
    for (name, kind) in columns {
        put_string(out, name);
        for id in *kind {
            out.extend(id.to_be_bytes());
        }
    }
}

const HOST_ID: [u8; 16] = *b"knickpoint--null";
const SCHEMA_VERSION: [u8; 16] = *b"null--knickpoint";
/// A release of which drivers ask for nothing but tables.
const RELEASE: &[u8] = b"3.11.19";

/// A table of the server itself, and its rows.
pub struct SystemTable {
    pub name: &'static str,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Vec<u8>>>,
}

/// Gives the tables that drivers look at to learn who is there; this server is alone.
pub fn system_tables(address: IpAddr) -> Vec<SystemTable> {
    let keyspace = vec![
        b"knickpoint".to_vec(),
        vec![1],
        texts(
            2,
            &[
                "class",
                "org.apache.cassandra.locator.SimpleStrategy",
                "replication_factor",
                "1",
            ],
        ),
    ];
    let local = vec![
        b"local".to_vec(),
        b"COMPLETED".to_vec(),
        b"null".to_vec(),
        b"3.4.4".to_vec(),
        b"datacenter1".to_vec(),
        HOST_ID.to_vec(),
        b"4".to_vec(),
        b"org.apache.cassandra.dht.Murmur3Partitioner".to_vec(),
        b"rack1".to_vec(),
        RELEASE.to_vec(),
        octets(address),
        SCHEMA_VERSION.to_vec(),
        texts(1, &["0"]),
    ];
    let name = ("keyspace_name", TEXT);
    let of_table = |more: &[Column]| [&[name, ("table_name", TEXT)], more].concat();
    vec![
        table("system.local", node("key", TEXT), vec![local]),
        table("system.peers", node("peer", INET), vec![]),
        table(
            "system_schema.keyspaces",
            vec![
                name,
                ("durable_writes", BOOLEAN),
                ("replication", MAP_OF_TEXT),
            ],
            vec![keyspace],
        ),
        table("system_schema.tables", of_table(&[]), vec![]),
        table(
            "system_schema.columns",
            of_table(&[
                ("column_name", TEXT),
                ("clustering_order", TEXT),
                ("kind", TEXT),
                ("position", INT),
                ("type", TEXT),
            ]),
            vec![],
        ),
        table(
            "system_schema.types",
            vec![
                name,
                ("type_name", TEXT),
                ("field_names", TEXTS),
                ("field_types", TEXTS),
            ],
            vec![],
        ),
        table(
            "system_schema.views",
            vec![name, ("view_name", TEXT), ("base_table_name", TEXT)],
            vec![],
        ),
        table("system_schema.indexes", vec![name], vec![]),
        table("system_schema.triggers", vec![name], vec![]),
        table("system_schema.functions", vec![name], vec![]),
        table("system_schema.aggregates", vec![name], vec![]),
    ]
}

fn node(first: &'static str, kind: Kind) -> Vec<Column> {
    vec![
        (first, kind),
        ("bootstrapped", TEXT),
        ("cluster_name", TEXT),
        ("cql_version", TEXT),
        ("data_center", TEXT),
        ("host_id", UUID),
        ("native_protocol_version", TEXT),
        ("partitioner", TEXT),
        ("rack", TEXT),
        ("release_version", TEXT),
        ("rpc_address", INET),
        ("schema_version", UUID),
        ("tokens", SET_OF_TEXT),
    ]
}

fn table(name: &'static str, columns: Vec<Column>, rows: Vec<Vec<Vec<u8>>>) -> SystemTable {
    SystemTable {
        name,
        columns,
        rows,
    }
}

/// Encodes a collection of texts of so many elements; an element of a map is two texts.
fn texts(elements: usize, values: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    put_count(&mut out, elements);
    for value in values {
        put_bytes(&mut out, value.as_bytes());
    }
    out
}
