//! A client of a stand-alone server, a replica set or routers, with the settings of `perf/systems/mongodb/client.py`.
//!
//! An operation is one attempt, and takes as long as the time limit at most, whatever it waits for: a
//! server, a connection, an answer. One that is given up is dropped, and the driver closes its connection,
//! since the answer may still arrive; nothing else is ever sent on it. The server is told the same limit as
//! `maxTimeMS`, less the time of a round trip, and gives up by itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use mongodb::bson::raw::{CStr, RawBinaryRef};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{
    Document, RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, cstr, doc, rawdoc,
};
use mongodb::error::{Error, ErrorKind};
use mongodb::options::{
    AuthMechanism, ClientOptions, Credential, SelectionCriteria, ServerAddress,
    ServerMonitoringMode,
};
use mongodb::{Client, Database};

use super::failure::{LATE, check_write, fail, name_error};
use super::trust::{Trust, find_wrong};
use crate::access::{read_login, refuse_account};
use crate::session::Failure;
use crate::spec::{Access, Consistency, Target};

const REPLICA_SET: &str = "knickpoint";
const DATABASE: &str = "knickpoint";
// The server's error code Unauthorized: a command before a log-in.
const NOT_LET_IN: i32 = 13;

/// The database of all collections, and what every command to it says.
pub struct Commands {
    database: Database,
    timeout: Duration,
    max_time_ms: i32,
    write_concern: RawDocumentBuf,
    read_concern: RawDocumentBuf,
}

impl Commands {
    /// Connects; done when the server, or the primary, or each router has answered.
    ///
    /// # Errors
    /// Says which server did not answer, or why it refused the client.
    pub async fn connect(target: &Target) -> Result<Self, String> {
        let timeout = Duration::try_from_secs_f64(target.timeout_s)
            .map_err(|error| format!("timeout_s: {}: {error}", target.timeout_s))?;
        let (options, _needed_until_made) = options(target, timeout)?;
        let client = Client::with_options(options).map_err(|error| explain(target, &error))?;
        let database = client.database(DATABASE);
        let admin = client.database("admin");
        let ping = async || admin.run_command(doc! {"ping": 1}).await;
        ping().await.map_err(|error| explain(target, &error))?;
        if target.routers {
            // Else one that is found late would have a smaller share of the load.
            for address in addresses(target) {
                let this =
                    SelectionCriteria::Predicate(Arc::new(move |one| one.address() == &address));
                let ping = admin.run_command(doc! {"ping": 1});
                let answered = ping.selection_criteria(this).await;
                answered.map_err(|error| explain(target, &error))?;
            }
        }
        let begin = Instant::now();
        ping().await.map_err(|error| explain(target, &error))?;
        let (write_concern, read_concern) = concerns(target);
        let left = timeout.saturating_sub(begin.elapsed());
        Ok(Self {
            database,
            timeout,
            max_time_ms: i32::try_from(left.as_millis()).unwrap_or(i32::MAX).max(1),
            write_concern,
            read_concern,
        })
    }

    /// Asks for the version of the wire protocol; 0 is less than any server has that knows the question.
    ///
    /// # Errors
    /// There was no answer.
    pub async fn wire_version(&self) -> Result<i32, Failure> {
        let asked = async {
            match self.database.run_command(doc! {"hello": 1}).await {
                Ok(said) => Ok(said.get_i32("maxWireVersion").unwrap_or_default()),
                Err(error) if matches!(error.kind.as_ref(), ErrorKind::Command(_)) => Ok(0),
                Err(error) => Err(error),
            }
        };
        self.limit(asked).await
    }

    /// Inserts documents, each with its _id first: one, or several whose order is free.
    ///
    /// # Errors
    /// What the driver or the server says.
    pub async fn insert(
        &self,
        collection: &str,
        documents: &[RawDocumentBuf],
    ) -> Result<(), Failure> {
        if documents.len() > 1 {
            return self.insert_many(collection, documents).await;
        }
        let mut command = self.write_command(cstr!("insert"), collection, true);
        command.append(cstr!("documents"), list(documents));
        self.write(command, 1).await
    }

    /// Inserts documents whose order is free, in one command of at most 16 MiB; what goes wrong is named as
    /// that of many, even if there is one.
    ///
    /// # Errors
    /// As `insert`.
    pub async fn insert_many(
        &self,
        collection: &str,
        documents: &[RawDocumentBuf],
    ) -> Result<(), Failure> {
        let mut command = self.write_command(cstr!("insert"), collection, false);
        command.append(cstr!("documents"), list(documents));
        self.write(command, documents.len().max(2)).await
    }

    /// Changes the document that `query` names: `change` takes its place, or says what to set in it.
    ///
    /// # Errors
    /// As `insert`.
    pub async fn update(
        &self,
        collection: &str,
        query: &RawDocumentBuf,
        change: &RawDocumentBuf,
        upsert: bool,
    ) -> Result<(), Failure> {
        let mut one = RawDocumentBuf::new();
        one.append(cstr!("q"), query);
        one.append(cstr!("u"), change);
        one.append(cstr!("multi"), false);
        one.append(cstr!("upsert"), upsert);
        let mut command = self.write_command(cstr!("update"), collection, true);
        command.append(cstr!("updates"), list(&[one]));
        self.write(command, 1).await
    }

    /// Begins a command that reads a collection, with its read concern and time limit.
    #[must_use]
    pub fn read_command(&self, name: &CStr, collection: &str) -> RawDocumentBuf {
        let mut command = RawDocumentBuf::new();
        command.append(name, collection);
        command.append(cstr!("readConcern"), &self.read_concern);
        command.append(cstr!("maxTimeMS"), self.max_time_ms);
        command
    }

    /// Sends a command that reads, and gives what the server answers, in one or more batches.
    ///
    /// # Errors
    /// As `insert`.
    pub async fn read(&self, command: RawDocumentBuf) -> Result<Found, Failure> {
        self.limit(async {
            let mut cursor = self
                .database
                .run_raw_cursor_command(command)
                .batch()
                .await?;
            let mut batches = Vec::with_capacity(1);
            while let Some(batch) = cursor.next().await {
                batches.push(Bytes::copy_from_slice(batch?.as_raw_document().as_bytes()));
            }
            Ok(Found { batches })
        })
        .await
    }

    fn write_command(&self, name: &CStr, collection: &str, ordered: bool) -> RawDocumentBuf {
        let mut command = RawDocumentBuf::new();
        command.append(name, collection);
        command.append(cstr!("ordered"), ordered);
        command.append(cstr!("writeConcern"), &self.write_concern);
        command.append(cstr!("maxTimeMS"), self.max_time_ms);
        command
    }

    async fn write(&self, command: RawDocumentBuf, rows: usize) -> Result<(), Failure> {
        let sent = async { self.database.run_raw_command(command).await };
        let reply: Document = self.limit(sent).await?;
        check_write(&reply, rows)
    }

    async fn limit<T>(
        &self,
        operation: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failure> {
        match tokio::time::timeout(self.timeout, operation).await {
            Ok(outcome) => outcome.map_err(|error| name_error(&error)),
            Err(_) => Err(fail(
                LATE,
                format!("no answer within {} s", self.timeout.as_secs_f64()),
            )),
        }
    }
}

/// The documents of an answer, as they came over the wire.
pub struct Found {
    batches: Vec<Bytes>,
}

impl Found {
    /// Takes each document apart; `take` is given the answer that it is a part of, whose bytes it may share.
    ///
    /// # Errors
    /// The first document that cannot be read.
    pub fn map<T>(
        &self,
        take: impl Fn(&RawDocument, &Bytes) -> Result<T, Failure>,
    ) -> Result<Vec<T>, Failure> {
        let mut taken = Vec::new();
        for batch in &self.batches {
            let reply = RawDocument::from_bytes(batch).map_err(unreadable)?;
            let cursor = reply.get_document("cursor").map_err(unreadable)?;
            let documents = match cursor.get("firstBatch").map_err(unreadable)? {
                Some(RawBsonRef::Array(documents)) => documents,
                _ => cursor.get_array("nextBatch").map_err(unreadable)?,
            };
            for document in documents {
                match document.map_err(unreadable)? {
                    RawBsonRef::Document(document) => taken.push(take(document, batch)?),
                    _ => return Err(unreadable("a batch of something else than documents")),
                }
            }
        }
        Ok(taken)
    }
}

/// Asks for so many rows at most, in one batch, after which the server keeps no cursor.
pub fn limit_rows(command: &mut RawDocumentBuf, count: u64) {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    command.append(cstr!("limit"), count);
    // A batch that were just full would leave the cursor open.
    command.append(cstr!("batchSize"), count.saturating_add(1));
}

/// Names an answer that cannot be read.
pub fn unreadable(why: impl std::fmt::Display) -> Failure {
    fail("error:ProtocolError", why)
}

/// Gives binary data of the general subtype, as `pymongo` stores bytes.
#[must_use]
pub fn binary(bytes: &[u8]) -> RawBinaryRef<'_> {
    RawBinaryRef {
        subtype: BinarySubtype::Generic,
        bytes,
    }
}

fn list(documents: &[RawDocumentBuf]) -> RawArrayBuf {
    documents.iter().collect()
}

fn addresses(target: &Target) -> impl Iterator<Item = ServerAddress> {
    target.addresses.iter().map(|host| ServerAddress::Tcp {
        host: host.clone(),
        port: Some(target.port),
    })
}

fn options(target: &Target, timeout: Duration) -> Result<(ClientOptions, Option<Trust>), String> {
    let mut options = ClientOptions::default();
    options.hosts = addresses(target).collect();
    // One address is spoken to as it is, whatever its role; several are the members of the set, or
    // routers, which take turns. The pool has no limit of its own: how much is in flight is the engine's
    // decision.
    let alone = target.addresses.len() == 1;
    options.direct_connection = Some(alone);
    options.repl_set_name = (!alone && !target.routers).then(|| REPLICA_SET.to_owned());
    options.max_pool_size = Some(u32::MAX);
    options.retry_reads = Some(false);
    options.retry_writes = Some(false);
    options.connect_timeout = Some(timeout);
    // A hundredth less than the operation's own limit, so that no server to send to keeps its own name.
    options.server_selection_timeout = Some(timeout.mul_f64(0.99));
    options.app_name = Some("knickpoint".to_owned());
    // Of a single server there is no change to be told about: it answers, or the operations say so.
    options.server_monitoring_mode = Some(if alone {
        ServerMonitoringMode::Poll
    } else {
        ServerMonitoringMode::Stream
    });
    let Some(access) = &target.access else {
        return Ok((options, None));
    };
    options.credential = credential(access)?;
    let trust = access.tls.as_ref().map(Trust::new).transpose()?;
    options.tls = trust.as_ref().map(Trust::options);
    Ok((options, trust))
}

fn credential(access: &Access) -> Result<Option<Credential>, String> {
    let Some(login) = read_login(access)? else {
        return Ok(None);
    };
    let mut credential = Credential::default();
    credential.username = Some(login.username);
    credential.password = Some(login.password.reveal().to_owned());
    credential.mechanism = Some(AuthMechanism::ScramSha256);
    credential.source = Some("admin".to_owned());
    Ok(Some(credential))
}

fn concerns(target: &Target) -> (RawDocumentBuf, RawDocumentBuf) {
    let copies = i32::try_from(target.replication_factor).unwrap_or(i32::MAX);
    let majority = rawdoc! {"level": "majority"};
    match target.consistency {
        Consistency::One => (rawdoc! {"w": 1}, rawdoc! {"level": "local"}),
        Consistency::Quorum => (rawdoc! {"w": "majority"}, majority),
        Consistency::All => (rawdoc! {"w": copies}, majority),
    }
}

/// Says why a client cannot begin, as `await_answer` of `perf/systems/mongodb/client.py`.
fn explain(target: &Target, error: &Error) -> String {
    let place = |address: &String| format!("{address}:{}", target.port);
    match error.kind.as_ref() {
        ErrorKind::Authentication { .. } => refused(target),
        ErrorKind::Command(said) if said.code == NOT_LET_IN => refused(target),
        kind => {
            let tls = target
                .access
                .as_ref()
                .and_then(|access| access.tls.as_ref());
            let wrong = tls.and_then(|tls| {
                let mut ports = target
                    .addresses
                    .iter()
                    .map(|address| (address, place(address)));
                ports.find_map(|(address, place)| find_wrong(tls, address, target.port, &place))
            });
            let places: Vec<_> = target.addresses.iter().map(place).collect();
            wrong.unwrap_or_else(|| {
                let said = kind.to_string();
                let why = find_cause(&said).unwrap_or(&said);
                let places = places.join(", ");
                format!("MongoDB at {places}: {why}; is the server running, and is this its port?")
            })
        }
    }
}

/// Gives the innermost reason of what the driver says of all servers: why the last one could not be reached.
fn find_cause(said: &str) -> Option<&str> {
    let (_, cause) = said.rsplit_once("Error: ")?;
    let cause = cause.split(", labels: ").next()?;
    let cause = cause.strip_prefix("Kind: ").unwrap_or(cause);
    let cause = cause.strip_prefix("I/O error: ").unwrap_or(cause);
    cause.split(" (os error").next()
}

fn refused(target: &Target) -> String {
    let first = target.addresses.first().map_or("", String::as_str);
    refuse_account(target.access.as_ref(), &format!("{first}:{}", target.port))
}
