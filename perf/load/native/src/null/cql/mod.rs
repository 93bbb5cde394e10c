//! CQL's binary protocol, version 4: as much of it as drivers need to connect, prepare and execute.
//!
//! What clients prepare and create is known to all connections. No row is kept: each statement on a
//! table of a workload is an operation, all others are answered at once.

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
use self::frames::{Bound, Header, Reader, opcode, put_frame, read_values};
use self::statement::{Asking, Statement, Table, parse};
use self::tables::{CREATED, SystemTable, system_tables};
use crate::behaviour::How;
use crate::newest::Newest;
use crate::wire::{Broken, Operation, Wire};

const READINGS: &str = "knickpoint.sensor_readings";

/// A null server's side of CQL.
pub struct Cql {
    newest: Option<Newest>,
    tables: Vec<Table>,
    system: Vec<SystemTable>,
    /// What was asked, by its number, which is its id too.
    askings: Vec<Asking>,
    numbers: HashMap<String, usize>,
}

/// Where an answer goes, and what it holds.
pub struct Request {
    stream: [u8; 2],
    rows: Option<Rows>,
}

struct Rows {
    asking: usize,
    skips_metadata: bool,
    /// Whose newest readings, and how many.
    newest: Option<(String, u64)>,
}

impl Cql {
    /// Knows the tables of the workloads; drivers are told that the server is at `address`.
    pub fn new(address: IpAddr, newest: Option<Newest>) -> Self {
        let created = CREATED
            .iter()
            .filter_map(|text| match parse(text, |_| None) {
                Ok(Statement::CreateTable(table)) => Some(table),
                _ => None,
            });
        Self {
            newest,
            tables: created.collect(),
            system: system_tables(address),
            askings: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    fn parse(&self, text: &str) -> Result<Statement, String> {
        parse(text, |name| {
            let system = self.system.iter().map(|one| &one.table);
            self.tables
                .iter()
                .chain(system)
                .find(|table| table.name == name)
        })
    }

    /// Gives the number of an asking, which is new or as it was.
    fn number(&mut self, text: &str, asking: Asking) -> usize {
        let (next, askings) = (self.askings.len(), &mut self.askings);
        *self.numbers.entry(text.to_owned()).or_insert_with(|| {
            askings.push(asking);
            next
        })
    }

    fn query(
        &mut self,
        stream: [u8; 2],
        reader: &mut Reader,
        outbox: &mut Vec<u8>,
    ) -> Result<Option<Operation<Request>>, Broken> {
        let text = reader.long_string()?;
        let bound = Bound::read(reader)?;
        match self.parse(text) {
            Ok(Statement::Asking(asking)) => {
                let number = self.number(text, asking);
                return Ok(self.ask(stream, number, &bound, outbox));
            }
            Ok(Statement::CreateTable(table)) => {
                if !self.tables.iter().any(|known| known == &table) {
                    self.tables.retain(|known| known.name != table.name);
                    self.tables.push(table);
                }
                put_void(outbox, stream);
            }
            Ok(Statement::Use(keyspace)) => put_set_keyspace(outbox, stream, &keyspace),
            Ok(Statement::Nothing) => put_void(outbox, stream),
            Err(message) => put_error(outbox, stream, INVALID, &message),
        }
        Ok(None)
    }

    fn prepare(
        &mut self,
        stream: [u8; 2],
        reader: &mut Reader,
        outbox: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        let text = reader.long_string()?;
        match self.parse(text) {
            Ok(Statement::Asking(asking)) => {
                let number = self.number(text, asking.clone());
                put_prepared(outbox, stream, number, &asking);
            }
            Ok(_) => put_error(
                outbox,
                stream,
                INVALID,
                "a null server prepares no such statement",
            ),
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
            Some(number) => Ok(self.ask(stream, number, &bound, outbox)),
            None => Ok(put_unprepared(outbox, stream, id)),
        }
    }

    fn batch(
        &mut self,
        stream: [u8; 2],
        reader: &mut Reader,
        outbox: &mut Vec<u8>,
    ) -> Result<Option<Operation<Request>>, Broken> {
        reader.byte()?; // logged or not
        let count = reader.short()?;
        let mut first = None;
        for _ in 0..count {
            let number = if reader.byte()? == 0 {
                let text = reader.long_string()?;
                match self.parse(text) {
                    Ok(Statement::Asking(asking)) => self.number(text, asking),
                    _ => return Err(Broken),
                }
            } else {
                let id = reader.short_bytes()?;
                match self.find(id) {
                    Some(number) => number,
                    None => return Ok(put_unprepared(outbox, stream, id)),
                }
            };
            let values = read_values(reader, false)?;
            first.get_or_insert_with(|| self.place(number, &values));
        }
        let (device, ts_ms) = first.unwrap_or_default();
        Ok(Some(Operation {
            device,
            ts_ms,
            request: Request { stream, rows: None },
        }))
    }

    fn find(&self, id: &[u8]) -> Option<usize> {
        let number = usize::try_from(u128::from_be_bytes(id.try_into().ok()?)).ok()?;
        (number < self.askings.len()).then_some(number)
    }

    /// Gives the CRC-32 of a row's key, and its timestamp if it has one.
    fn place(&self, number: usize, values: &[Option<&[u8]>]) -> (u32, i64) {
        let Some(asking) = self.askings.get(number) else {
            return (0, 0);
        };
        let value = |place: Option<usize>| place.and_then(|place| *values.get(place)?);
        let mut crc = Crc::new();
        crc.update(value(asking.key_places.first().copied()).unwrap_or_default());
        let ts = value(asking.timestamp_place).and_then(<[u8]>::first_chunk::<8>);
        let device = if asking.key_places.is_empty() {
            0
        } else {
            crc.sum()
        };
        (device, ts.map_or(0, |bytes| i64::from_be_bytes(*bytes)))
    }

    fn ask(
        &self,
        stream: [u8; 2],
        number: usize,
        bound: &Bound,
        outbox: &mut Vec<u8>,
    ) -> Option<Operation<Request>> {
        let asking = self.askings.get(number)?;
        if let Some(system) = self
            .system
            .iter()
            .find(|one| one.table.name == asking.table)
        {
            put_system_rows(outbox, stream, asking, system, bound.skips_metadata);
            return None;
        }
        let (device, ts_ms) = self.place(number, &bound.values);
        let rows = asking.result.is_some().then(|| Rows {
            asking: number,
            skips_metadata: bound.skips_metadata,
            newest: newest_asked(asking, bound),
        });
        Some(Operation {
            device,
            ts_ms,
            request: Request { stream, rows },
        })
    }

    fn put_rows(&self, outbox: &mut Vec<u8>, stream: [u8; 2], rows: &Rows, how: How) {
        let Some(asking) = self.askings.get(rows.asking) else {
            return;
        };
        let readings = match (&self.newest, &rows.newest) {
            (Some(newest), Some((device_id, count))) => newest.of(device_id, *count, how),
            _ => Vec::new(),
        };
        put_readings(outbox, stream, asking, &readings, rows.skips_metadata);
    }
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
            opcode::BATCH => return self.batch(stream, &mut reader, outbox),
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

/// Says whose newest readings a statement asks for, if it does.
fn newest_asked(asking: &Asking, bound: &Bound) -> Option<(String, u64)> {
    let value = |place: Option<usize>| *bound.values.get(place?)?;
    if asking.table != READINGS {
        return None;
    }
    let device_id = value(asking.key_places.first().copied())?;
    let count = value(asking.limit_place)?.first_chunk::<4>()?;
    let device_id = String::from_utf8(device_id.to_vec()).ok()?;
    Some((device_id, u64::try_from(i32::from_be_bytes(*count)).ok()?))
}
