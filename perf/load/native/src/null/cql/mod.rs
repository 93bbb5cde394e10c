//! CQL's binary protocol, version 4: as much of it as drivers need to connect, prepare and execute.
//!
//! What clients prepare is known to all connections. No row is kept: each statement on the table of
//! readings is an operation, all others are answered at once.

mod answers;
mod frames;
mod statement;
mod tables;

use std::collections::HashMap;
use std::net::IpAddr;

use flate2::Crc;

use self::answers::{
    INVALID, PROTOCOL_ERROR, put_error, put_options, put_prepared, put_readings, put_refusal,
    put_set_keyspace, put_system_rows, put_unprepared, put_void,
};
use self::frames::{Bound, Header, Reader, opcode, put_frame};
use self::statement::{Asking, parse};
use self::tables::{SystemTable, system_tables};
use crate::behaviour::How;
use crate::newest::Newest;
use crate::wire::{Broken, Operation, Wire};

/// A null server's side of CQL.
pub struct Cql {
    newest: Option<Newest>,
    system: Vec<SystemTable>,
    /// What was prepared, by its number, which is its id too.
    askings: Vec<Asking>,
    numbers: HashMap<String, usize>,
}

/// Where an answer goes, and what it holds.
pub struct Request {
    stream: [u8; 2],
    rows: Option<Rows>,
}

struct Rows {
    skips_metadata: bool,
    /// Whose newest readings, and how many.
    device_id: String,
    count: u64,
}

impl Cql {
    /// Tells drivers that the server is at `address`.
    pub fn new(address: IpAddr, newest: Option<Newest>) -> Self {
        Self {
            newest,
            system: system_tables(address),
            askings: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    fn query(
        &self,
        stream: [u8; 2],
        reader: &mut Reader,
        outbox: &mut Vec<u8>,
    ) -> Result<Option<Operation<Request>>, Broken> {
        let text = reader.long_string()?;
        let bound = Bound::read(reader)?;
        if let Some(keyspace) = text.strip_prefix("USE ") {
            put_set_keyspace(outbox, stream, keyspace);
            return Ok(None);
        }
        match parse(text, &self.system) {
            Ok(asking) => self.ask(stream, &asking, &bound, outbox),
            Err(message) => {
                put_error(outbox, stream, INVALID, &message);
                Ok(None)
            }
        }
    }

    fn prepare(
        &mut self,
        stream: [u8; 2],
        reader: &mut Reader,
        outbox: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        let text = reader.long_string()?;
        match parse(text, &self.system) {
            Ok(asking) => {
                let askings = &mut self.askings;
                let number = *self.numbers.entry(text.to_owned()).or_insert_with(|| {
                    askings.push(asking.clone());
                    askings.len() - 1
                });
                put_prepared(outbox, stream, number, &asking, &self.system);
            }
            Err(message) => put_error(outbox, stream, INVALID, &message),
        }
        Ok(())
    }

    fn execute(
        &self,
        stream: [u8; 2],
        reader: &mut Reader,
        outbox: &mut Vec<u8>,
    ) -> Result<Option<Operation<Request>>, Broken> {
        let id = reader.short_bytes()?;
        let bound = Bound::read(reader)?;
        match self.find(id) {
            Some(asking) => self.ask(stream, asking, &bound, outbox),
            None => Ok(put_unprepared(outbox, stream, id)),
        }
    }

    fn find(&self, id: &[u8]) -> Option<&Asking> {
        let number = usize::try_from(u128::from_be_bytes(id.try_into().ok()?)).ok()?;
        self.askings.get(number)
    }

    fn ask(
        &self,
        stream: [u8; 2],
        asking: &Asking,
        bound: &Bound,
        outbox: &mut Vec<u8>,
    ) -> Result<Option<Operation<Request>>, Broken> {
        let skips_metadata = bound.skips_metadata;
        let value = |place: usize| bound.values.get(place).copied().flatten().ok_or(Broken);
        let rows = match asking {
            Asking::System { table, columns, .. } => {
                let table = &self.system[*table];
                put_system_rows(outbox, stream, table, columns, skips_metadata);
                return Ok(None);
            }
            Asking::Insert => None,
            Asking::Newest { count } => Some(Rows {
                skips_metadata,
                device_id: String::from_utf8(value(0)?.to_vec()).map_err(|_| Broken)?,
                count: match count {
                    Some(count) => *count,
                    None => u64::from(u32::from_be_bytes(number(value(1)?)?)),
                },
            }),
        };
        let mut crc = Crc::new();
        crc.update(value(0)?);
        Ok(Some(Operation {
            device: crc.sum(),
            ts_ms: if rows.is_none() {
                i64::from_be_bytes(number(value(1)?)?)
            } else {
                0
            },
            request: Request { stream, rows },
        }))
    }

    fn put_rows(&self, outbox: &mut Vec<u8>, stream: [u8; 2], rows: &Rows, how: How) {
        let readings = match &self.newest {
            Some(newest) => newest.of(&rows.device_id, rows.count, how),
            None => Vec::new(),
        };
        put_readings(outbox, stream, &readings, rows.skips_metadata);
    }
}

fn number<const SIZE: usize>(bytes: &[u8]) -> Result<[u8; SIZE], Broken> {
    bytes.try_into().map_err(|_| Broken)
}

impl Wire for Cql {
    type Request = Request;

    fn length(&self, inbox: &[u8]) -> Result<Option<usize>, Broken> {
        Ok(Header::length(inbox))
    }

    fn take(
        &mut self,
        message: &[u8],
        outbox: &mut Vec<u8>,
    ) -> Result<Option<Operation<Request>>, Broken> {
        let header = Header::read(message)?;
        let stream = header.stream;
        if !header.is_v4 {
            let why = "Invalid or unsupported protocol version; supported is (4/v4)";
            put_error(outbox, stream, PROTOCOL_ERROR, why);
            return Ok(None);
        }
        let mut reader = Reader(message.get(frames::HEADER..).ok_or(Broken)?);
        match header.opcode {
            opcode::OPTIONS => put_frame(outbox, stream, opcode::SUPPORTED, put_options),
            opcode::STARTUP | opcode::REGISTER => put_frame(outbox, stream, opcode::READY, |_| {}),
            opcode::QUERY => return self.query(stream, &mut reader, outbox),
            opcode::PREPARE => self.prepare(stream, &mut reader, outbox)?,
            opcode::EXECUTE => return self.execute(stream, &mut reader, outbox),
            other => {
                let why = format!("a null server knows no request {other:#04x}");
                put_error(outbox, stream, PROTOCOL_ERROR, &why);
            }
        }
        Ok(None)
    }

    fn answer(&self, request: &Request, how: How, outbox: &mut Vec<u8>) {
        match (how, &request.rows) {
            (How::Refused, _) => put_refusal(outbox, request.stream),
            (_, None) => put_void(outbox, request.stream),
            (_, Some(rows)) => self.put_rows(outbox, request.stream, rows, how),
        }
    }
}
