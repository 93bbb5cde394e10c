//! What a null server says in CQL: results, rows and errors.

use knickload::session::Reading;

use super::frames::{opcode, put_bytes, put_count, put_frame, put_int, put_short, put_string};
use super::statement::Asking;
use super::tables::{Column, READINGS, SystemTable, put_columns, reading_columns};

pub const PROTOCOL_ERROR: i32 = 0x000a;
pub const INVALID: i32 = 0x2200;
const UNAVAILABLE: i32 = 0x1000;
const UNPREPARED: i32 = 0x2500;

const VOID: i32 = 1;
const ROWS: i32 = 2;
const SET_KEYSPACE: i32 = 3;
const PREPARED: i32 = 4;

const ONE_TABLE: i32 = 0x01;
const NO_METADATA: i32 = 0x04;

const ID_BYTES: usize = 16;
const REFUSAL: &str = "refused, as the null server was told to";

/// Appends an answer with readings, none of them where nothing is stored.
pub fn put_readings(
    outbox: &mut Vec<u8>,
    stream: [u8; 2],
    readings: &[Reading],
    skips_metadata: bool,
) {
    put_frame(outbox, stream, opcode::RESULT, |out| {
        put_int(out, ROWS);
        put_metadata(out, READINGS, &reading_columns(), skips_metadata);
        put_count(out, readings.len());
        for reading in readings {
            put_bytes(out, reading.device_id.as_bytes());
            put_bytes(out, &reading.ts_ms.to_be_bytes());
            for value in reading.values {
                put_bytes(out, &value.to_be_bytes());
            }
            put_bytes(out, &reading.metadata);
        }
    });
}

/// Appends what answers USE.
pub fn put_set_keyspace(outbox: &mut Vec<u8>, stream: [u8; 2], keyspace: &str) {
    put_frame(outbox, stream, opcode::RESULT, |out| {
        put_int(out, SET_KEYSPACE);
        put_string(out, keyspace.trim_matches('"'));
    });
}

pub fn put_options(out: &mut Vec<u8>) {
    put_short(out, 2);
    put_string(out, "CQL_VERSION");
    put_short(out, 1);
    put_string(out, "3.4.4");
    put_string(out, "COMPRESSION");
    put_short(out, 0);
}

pub fn put_void(outbox: &mut Vec<u8>, stream: [u8; 2]) {
    put_frame(outbox, stream, opcode::RESULT, |out| put_int(out, VOID));
}

pub fn put_error(outbox: &mut Vec<u8>, stream: [u8; 2], code: i32, message: &str) {
    put_frame(outbox, stream, opcode::ERROR, |out| {
        put_int(out, code);
        put_string(out, message);
    });
}

/// Refuses as a coordinator does that lacks replicas: an error that drivers have a name of their own for.
pub fn put_refusal(outbox: &mut Vec<u8>, stream: [u8; 2]) {
    put_frame(outbox, stream, opcode::ERROR, |out| {
        put_int(out, UNAVAILABLE);
        put_string(out, REFUSAL);
        put_short(out, 1); // consistency ONE
        put_int(out, 1); // needed
        put_int(out, 0); // alive
    });
}

pub fn put_unprepared<T>(outbox: &mut Vec<u8>, stream: [u8; 2], id: &[u8]) -> Option<T> {
    put_frame(outbox, stream, opcode::ERROR, |out| {
        put_int(out, UNPREPARED);
        put_string(out, "this statement was not prepared here");
        put_short(out, id.len());
        out.extend(id);
    });
    None
}

/// Tells what a statement is whose number is its id; the columns of its rows go by `system`.
pub fn put_prepared(
    outbox: &mut Vec<u8>,
    stream: [u8; 2],
    number: usize,
    asking: &Asking,
    system: &[SystemTable],
) {
    let places = asking.places();
    let (name, result) = match asking {
        Asking::Insert => (READINGS, None),
        Asking::Newest { .. } => (READINGS, Some(reading_columns())),
        Asking::System { table, columns, .. } => {
            let table = &system[*table];
            (table.name, Some(chosen(table, columns)))
        }
    };
    let has_key = name == READINGS;
    put_frame(outbox, stream, opcode::RESULT, |out| {
        put_int(out, PREPARED);
        put_short(out, ID_BYTES);
        out.extend((number as u128).to_be_bytes());
        put_int(out, ONE_TABLE);
        put_count(out, places.len());
        put_count(out, usize::from(has_key));
        if has_key {
            put_short(out, 0);
        }
        put_columns(out, name, &places);
        if let Some(columns) = result {
            put_metadata(out, name, &columns, false);
        } else {
            put_int(out, NO_METADATA);
            put_count(out, 0);
        }
    });
}

fn chosen(table: &SystemTable, columns: &[usize]) -> Vec<Column> {
    columns.iter().map(|&place| table.columns[place]).collect()
}

fn put_metadata(out: &mut Vec<u8>, table: &str, columns: &[Column], skips: bool) {
    put_int(out, if skips { NO_METADATA } else { ONE_TABLE });
    put_count(out, columns.len());
    if !skips {
        put_columns(out, table, columns);
    }
}

pub fn put_system_rows(
    outbox: &mut Vec<u8>,
    stream: [u8; 2],
    table: &SystemTable,
    columns: &[usize],
    skips_metadata: bool,
) {
    put_frame(outbox, stream, opcode::RESULT, |out| {
        put_int(out, ROWS);
        put_metadata(out, table.name, &chosen(table, columns), skips_metadata);
        put_count(out, table.rows.len());
        for row in &table.rows {
            for &place in columns {
                put_bytes(out, &row[place]);
            }
        }
    });
}
