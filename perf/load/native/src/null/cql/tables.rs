//! Tables that clients can ask about: those of the workloads, and what drivers look up when they connect.

use std::net::IpAddr;

use super::frames::{octets, put_bytes, put_count, put_int, put_string};
use super::statement::Table;

/// The type of a column.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    Bigint,
    Blob,
    Boolean,
    Double,
    Inet,
    Int,
    Text,
    Timestamp,
    Uuid,
    ListOfText,
    MapOfText,
    SetOfText,
}

const TEXT: u16 = 0x0d;

impl Kind {
    /// Finds a type by its name in CQL.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "bigint" => Self::Bigint,
            "blob" => Self::Blob,
            "boolean" => Self::Boolean,
            "double" => Self::Double,
            "inet" => Self::Inet,
            "int" => Self::Int,
            "text" | "varchar" => Self::Text,
            "timestamp" => Self::Timestamp,
            "uuid" => Self::Uuid,
            _ => return None,
        })
    }

    /// Appends the [option] that names a type.
    pub fn put(self, out: &mut Vec<u8>) {
        let option: &[u16] = match self {
            Self::Bigint => &[0x02],
            Self::Blob => &[0x03],
            Self::Boolean => &[0x04],
            Self::Double => &[0x07],
            Self::Inet => &[0x10],
            Self::Int => &[0x09],
            Self::Text => &[TEXT],
            Self::Timestamp => &[0x0b],
            Self::Uuid => &[0x0c],
            Self::ListOfText => &[0x20, TEXT],
            Self::MapOfText => &[0x21, TEXT, TEXT],
            Self::SetOfText => &[0x22, TEXT],
        };
        for id in option {
            out.extend(id.to_be_bytes());
        }
    }
}

/// A column, or a place for a value in a statement.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
}

impl Column {
    pub fn new(name: &str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
        }
    }
}

/// Appends the columns of one table, as metadata of rows and of places for values.
pub fn put_columns(out: &mut Vec<u8>, table: &str, columns: &[Column]) {
    let (keyspace, name) = table.split_once('.').unwrap_or(("", table));
    put_string(out, keyspace);
    put_string(out, name);
    for column in columns {
        put_string(out, &column.name);
        column.kind.put(out);
    }
}

/// The tables that workloads write, until a client creates others.
pub const CREATED: [&str; 2] = [
    "CREATE TABLE knickpoint.sensor_readings (device_id text, ts timestamp, temperature double, \
     humidity double, pressure double, vibration double, battery double, latitude double, \
     longitude double, signal double, metadata blob, PRIMARY KEY ((device_id), ts))",
    "CREATE TABLE knickpoint.records (key text PRIMARY KEY, field0 text)",
];

const HOST_ID: [u8; 16] = *b"knickpoint--null";
const SCHEMA_VERSION: [u8; 16] = *b"null--knickpoint";
/// A release of which drivers ask for nothing but tables.
const RELEASE: &[u8] = b"3.11.19";

/// A table of the server itself, and its rows; a value that is None is null.
pub struct SystemTable {
    pub table: Table,
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
}

/// Gives the tables that drivers look at to learn who is there; this server is alone.
pub fn system_tables(address: IpAddr) -> Vec<SystemTable> {
    use Kind::{Boolean, Int, ListOfText, MapOfText, Text};
    let keyspace = vec![
        some(b"knickpoint"),
        Some(vec![1]),
        Some(texts(
            2,
            &[
                "class",
                "org.apache.cassandra.locator.SimpleStrategy",
                "replication_factor",
                "1",
            ],
        )),
    ];
    let name = ("keyspace_name", Text);
    vec![
        local(address),
        empty("system.peers", &local_columns("peer")),
        with_rows(
            "system_schema.keyspaces",
            &[
                name,
                ("durable_writes", Boolean),
                ("replication", MapOfText),
            ],
            vec![keyspace],
        ),
        empty("system_schema.tables", &[name, ("table_name", Text)]),
        empty(
            "system_schema.columns",
            &[
                name,
                ("table_name", Text),
                ("column_name", Text),
                ("clustering_order", Text),
                ("kind", Text),
                ("position", Int),
                ("type", Text),
            ],
        ),
        empty(
            "system_schema.types",
            &[
                name,
                ("type_name", Text),
                ("field_names", ListOfText),
                ("field_types", ListOfText),
            ],
        ),
        empty(
            "system_schema.views",
            &[name, ("view_name", Text), ("base_table_name", Text)],
        ),
        empty("system_schema.indexes", &[name]),
        empty("system_schema.triggers", &[name]),
        empty("system_schema.functions", &[name]),
        empty("system_schema.aggregates", &[name]),
    ]
}

fn local_columns(first: &'static str) -> Vec<(&'static str, Kind)> {
    let kind = if first == "peer" {
        Kind::Inet
    } else {
        Kind::Text
    };
    vec![
        (first, kind),
        ("bootstrapped", Kind::Text),
        ("cluster_name", Kind::Text),
        ("cql_version", Kind::Text),
        ("data_center", Kind::Text),
        ("host_id", Kind::Uuid),
        ("native_protocol_version", Kind::Text),
        ("partitioner", Kind::Text),
        ("rack", Kind::Text),
        ("release_version", Kind::Text),
        ("rpc_address", Kind::Inet),
        ("schema_version", Kind::Uuid),
        ("tokens", Kind::SetOfText),
    ]
}

fn local(address: IpAddr) -> SystemTable {
    let row = vec![
        some(b"local"),
        some(b"COMPLETED"),
        some(b"null"),
        some(b"3.4.4"),
        some(b"datacenter1"),
        Some(HOST_ID.to_vec()),
        some(b"4"),
        some(b"org.apache.cassandra.dht.Murmur3Partitioner"),
        some(b"rack1"),
        some(RELEASE),
        Some(octets(address)),
        Some(SCHEMA_VERSION.to_vec()),
        Some(texts(1, &["0"])),
    ];
    with_rows("system.local", &local_columns("key"), vec![row])
}

fn empty(table: &str, columns: &[(&str, Kind)]) -> SystemTable {
    with_rows(table, columns, Vec::new())
}

fn with_rows(
    table: &str,
    columns: &[(&str, Kind)],
    rows: Vec<Vec<Option<Vec<u8>>>>,
) -> SystemTable {
    let columns = columns.iter().map(|&(name, kind)| Column::new(name, kind));
    SystemTable {
        table: Table {
            name: table.to_owned(),
            columns: columns.collect(),
            partition_key: Vec::new(),
        },
        rows,
    }
}

#[allow(clippy::unnecessary_wraps)] // a value of a row may be null
fn some(value: &[u8]) -> Option<Vec<u8>> {
    Some(value.to_vec())
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

/// Appends a value of a row.
pub fn put_value(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        Some(bytes) => put_bytes(out, bytes),
        None => put_int(out, -1),
    }
}
