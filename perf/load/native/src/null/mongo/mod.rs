//! MongoDB's wire protocol: as much of it as drivers need to connect, insert and find.
//!
//! Commands come as `OP_MSG`, the very first of a connection perhaps as `OP_QUERY`. No document is kept:
//! each command on a collection is an operation, all others are answered at once.

mod messages;

use flate2::Crc;
use knickload::session::Reading;
use mongodb::bson::raw::CString;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, DateTime, RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};

use self::messages::{Asked, Sender, length, put_reply};
use crate::behaviour::How;
use crate::newest::Newest;
use crate::wire::{Broken, Operation, Wire};

const READINGS: &str = "readings";
const NO_SUCH_COMMAND: i32 = 59;
/// What a server says of a command that it could not do; drivers do not try again.
const OPERATION_FAILED: i32 = 96;
const VALUES: [&str; 8] = [
    "temperature",
    "humidity",
    "pressure",
    "vibration",
    "battery",
    "latitude",
    "longitude",
    "signal",
];

/// A null server's side of MongoDB.
pub struct Mongo {
    newest: Option<Newest>,
    written: RawDocumentBuf,
    refused: RawDocumentBuf,
}

/// Whom to answer, and what.
pub struct Request {
    sender: Sender,
    reply: Reply,
}

enum Reply {
    Inserted(i32),
    Found {
        /// Database and collection.
        namespace: String,
        /// Whose newest readings, and how many.
        newest: Option<(String, u64)>,
    },
}

impl Mongo {
    pub fn new(newest: Option<Newest>) -> Self {
        Self {
            newest,
            written: rawdoc! { "n": 1, "ok": 1.0 },
            refused: rawdoc! {
                "ok": 0.0,
                "errmsg": "refused, as the null server was told to",
                "code": OPERATION_FAILED,
                "codeName": "OperationFailed",
            },
        }
    }

    fn found(&self, namespace: &str, newest: Option<&(String, u64)>, how: How) -> RawDocumentBuf {
        let mut batch = RawArrayBuf::new();
        if let (Some(all), Some((device_id, count))) = (&self.newest, newest) {
            for reading in all.of(device_id, *count, how) {
                batch.push(to_document(&reading));
            }
        }
        rawdoc! { "cursor": { "firstBatch": batch, "id": 0_i64, "ns": namespace }, "ok": 1.0 }
    }
}

impl Wire for Mongo {
    type Request = Request;

    fn length(&self, inbox: &[u8]) -> Result<Option<usize>, Broken> {
        length(inbox)
    }

    fn take(
        &mut self,
        message: &[u8],
        outbox: &mut Vec<u8>,
    ) -> Result<Option<Operation<Request>>, Broken> {
        let asked = Asked::read(message)?;
        let first = asked.body.iter().next().ok_or(Broken)?;
        let (command, value) = first.map_err(|_| Broken)?;
        let collection = value.as_str().unwrap_or_default();
        let operation = match command.as_str() {
            "insert" => insert(&asked),
            "find" => find(&asked, collection),
            other => {
                put_reply(outbox, asked.sender, &manage(other));
                return Ok(None);
            }
        };
        Ok(Some(operation))
    }

    fn answer(&self, request: &Request, how: How, outbox: &mut Vec<u8>) {
        let sender = request.sender;
        if !sender.wants_reply {
            return;
        }
        match &request.reply {
            _ if how == How::Refused => put_reply(outbox, sender, &self.refused),
            Reply::Inserted(1) => put_reply(outbox, sender, &self.written),
            Reply::Inserted(n) => put_reply(outbox, sender, &rawdoc! { "n": *n, "ok": 1.0 }),
            Reply::Found { namespace, newest } => {
                put_reply(outbox, sender, &self.found(namespace, newest.as_ref(), how));
            }
        }
    }
}

fn insert(asked: &Asked) -> Operation<Request> {
    let (first, count) = asked.documents("documents");
    let ts = first.and_then(|one| one.get_datetime("ts").ok());
    Operation {
        device: first.map_or(0, checksum),
        ts_ms: ts.map_or(0, DateTime::timestamp_millis),
        request: Request {
            sender: asked.sender,
            reply: Reply::Inserted(count),
        },
    }
}

fn find(asked: &Asked, collection: &str) -> Operation<Request> {
    let filter = asked.body.get_document("filter").ok();
    let database = asked.body.get_str("$db").unwrap_or_default();
    Operation {
        device: filter.map_or(0, checksum),
        ts_ms: 0,
        request: Request {
            sender: asked.sender,
            reply: Reply::Found {
                namespace: format!("{database}.{collection}"),
                newest: newest_asked(asked.body, filter, collection),
            },
        },
    }
}

/// Gives the CRC-32 of the id of the device that a document or a filter names.
fn checksum(document: &RawDocument) -> u32 {
    let id = document.get_str("device_id");
    let mut crc = Crc::new();
    crc.update(id.unwrap_or_default().as_bytes());
    crc.sum()
}

/// Says whose newest readings a command asks for, if it does.
fn newest_asked(
    body: &RawDocument,
    filter: Option<&RawDocument>,
    collection: &str,
) -> Option<(String, u64)> {
    if collection != READINGS {
        return None;
    }
    let device_id = filter?.get_str("device_id").ok()?;
    let limit = body.get("limit").ok()??;
    let count = limit.as_i64().or_else(|| limit.as_i32().map(i64::from))?;
    Some((device_id.to_owned(), u64::try_from(count).ok()?))
}

fn to_document(reading: &Reading) -> RawDocumentBuf {
    let mut document = rawdoc! {
        "ts": DateTime::from_millis(reading.ts_ms),
        "device_id": reading.device_id.as_str(),
    };
    for (name, value) in VALUES.iter().zip(reading.values) {
        if let Ok(name) = CString::try_from(*name) {
            document.append(name, value);
        }
    }
    document.append(
        mongodb::bson::raw::cstr!("metadata"),
        Binary {
            subtype: BinarySubtype::Generic,
            bytes: reading.metadata.to_vec(),
        },
    );
    document
}

/// Replies to what is no operation of a workload.
fn manage(command: &str) -> RawDocumentBuf {
    match command {
        "hello" | "isMaster" | "ismaster" => rawdoc! {
            "helloOk": true,
            "ismaster": true,
            "isWritablePrimary": true,
            "maxBsonObjectSize": 16_777_216,
            "maxMessageSizeBytes": 48_000_000,
            "maxWriteBatchSize": 100_000,
            "localTime": DateTime::now(),
            "logicalSessionTimeoutMinutes": 30,
            "minWireVersion": 0,
            "maxWireVersion": 25,
            "readOnly": false,
            "ok": 1.0,
        },
        "buildInfo" | "buildinfo" => rawdoc! {
            "version": "8.0.0",
            "versionArray": [8, 0, 0, 0],
            "ok": 1.0,
        },
        "ping" | "endSessions" => rawdoc! { "ok": 1.0 },
        other => rawdoc! {
            "ok": 0.0,
            "errmsg": format!("no such command: '{other}'"),
            "code": NO_SUCH_COMMAND,
            "codeName": "CommandNotFound",
        },
    }
}
