//! Rows of the devops workload in one collection, as `perf/systems/mongodb/devops.py` stores and asks them.
//!
//! An insert of many rows is commands of at most 15 MB, one after the other: the driver's raw commands are
//! one document, which a server takes up to 16 MiB of. `pymongo` splits at 48 MB; 10 000 rows are 5.

use bytes::Bytes;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::raw::CStr;
use mongodb::bson::{DateTime, RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, cstr, rawdoc};

use super::connect::{Commands, unreadable};
use super::failure::fail;
use super::sensor::number;
use crate::session::{Aggregate, DevopsSession, Failure, Group, Number, Query, Row};
use crate::spec::{Operation, Target};
use crate::values::devops_queries::QUERIES;
use crate::values::devops_tables::DATA;

const COLLECTION: &str = "point_data";
const COMMAND_BYTES: usize = 15_000_000;
/// What a document in a list has beside its own bytes: a type, and its number as text.
const PLACE_BYTES: usize = 10;
const MINUTE_MS: i64 = 60_000;
const WIRE_VERSION_5_0: i32 = 13;

/// A client of the devops workload.
pub struct MongoDevops {
    commands: Commands,
    /// The names of the fields of each table.
    fields: Vec<Vec<&'static CStr>>,
    tags: Vec<&'static CStr>,
    /// Whether the server knows `$dateTrunc`, which came with `MongoDB` 5.0.
    truncates: bool,
}

/// Connects a client, and asks what the server is able to do.
///
/// # Errors
/// As `Commands::connect`.
pub async fn connect(target: &Target) -> Result<MongoDevops, String> {
    let commands = Commands::connect(target).await?;
    let version = (commands.wire_version().await)
        .map_err(|failure| format!("MongoDB: hello: {}: {}", failure.kind, failure.message))?;
    let fields = DATA.tables.iter().map(|table| to_names(&table.fields));
    Ok(MongoDevops {
        fields: fields.collect::<Result<_, _>>()?,
        tags: to_names(&DATA.tags)?,
        truncates: version >= WIRE_VERSION_5_0,
        commands,
    })
}

fn to_names(said: &[&'static str]) -> Result<Vec<&'static CStr>, String> {
    said.iter()
        .map(|&name| <&CStr>::try_from(name).map_err(|error| format!("{name}: {error}")))
        .collect()
}

impl DevopsSession for MongoDevops {
    async fn write(&self, rows: &[Row]) -> Result<(), Failure> {
        let documents: Vec<_> = rows.iter().map(|row| self.to_document(row)).collect();
        for part in split(&documents, COMMAND_BYTES) {
            self.commands.insert_many(COLLECTION, part).await?;
        }
        Ok(())
    }

    fn can_ask(&self, operation: Operation) -> bool {
        QUERIES.contains(&operation)
    }

    async fn ask(&self, query: &Query) -> Result<Vec<Group>, Failure> {
        let mut command = (self.commands).read_command(cstr!("aggregate"), COLLECTION);
        command.append(cstr!("pipeline"), pipeline(query, self.truncates)?);
        command.append(cstr!("cursor"), RawDocumentBuf::new());
        let found = self.commands.read(command).await?;
        found.map(|document, _: &Bytes| to_group(document, query))
    }
}

impl MongoDevops {
    /// Gives `{_id, measurement, time, <fields>, tags: {hostname, …}}`.
    fn to_document(&self, row: &Row) -> RawDocumentBuf {
        let mut document = RawDocumentBuf::new();
        document.append(cstr!("_id"), ObjectId::new());
        document.append(cstr!("measurement"), row.table);
        document.append(cstr!("time"), DateTime::from_millis(row.ts_ms));
        let place = DATA.tables.iter().position(|table| table.name == row.table);
        let names = place.map_or(&[][..], |place| &self.fields[place]);
        for (name, value) in names.iter().zip(&row.values) {
            match *value {
                Number::Whole(whole) => append_whole(&mut document, name, whole),
                Number::Real(real) => document.append(name, real),
            }
        }
        let mut tags = RawDocumentBuf::new();
        for (name, tag) in self.tags.iter().zip(row.tags.iter()) {
            tags.append(name, tag.as_str());
        }
        document.append(cstr!("tags"), tags);
        document
    }
}

fn pipeline(query: &Query, truncates: bool) -> Result<RawArrayBuf, Failure> {
    let mut matched = rawdoc! {
        "measurement": "cpu",
        "time": {
            "$gte": DateTime::from_millis(query.from_ms),
            "$lt": DateTime::from_millis(query.until_ms),
        },
    };
    let mut id = bucket(query.bucket_ms, truncates);
    let mut order = rawdoc! {"_id": 1};
    if query.hosts.is_empty() {
        id = rawdoc! {"time": id, "hostname": "$tags.hostname"};
        order = rawdoc! {"_id.time": 1, "_id.hostname": 1};
    } else {
        let hosts: RawArrayBuf = query.hosts.iter().map(String::as_str).collect();
        matched.append(cstr!("tags.hostname"), rawdoc! {"$in": hosts});
    }
    let mut group = rawdoc! {"_id": id};
    for &metric in &query.metrics {
        let field = format!("${metric}");
        let aggregate = match query.aggregate {
            Aggregate::Max => rawdoc! {"$max": field},
            Aggregate::Mean => rawdoc! {"$avg": field},
        };
        group.append(<&CStr>::try_from(metric).map_err(unreadable)?, aggregate);
    }
    let mut pipeline = RawArrayBuf::new();
    pipeline.push(rawdoc! {"$match": matched});
    pipeline.push(rawdoc! {"$group": group});
    pipeline.push(rawdoc! {"$sort": order});
    Ok(pipeline)
}

fn bucket(bucket_ms: i64, truncates: bool) -> RawDocumentBuf {
    if truncates {
        let unit = if bucket_ms == MINUTE_MS {
            "minute"
        } else {
            "hour"
        };
        return rawdoc! {"$dateTrunc": {"date": "$time", "unit": unit}};
    }
    let mut divided = RawArrayBuf::new();
    divided.push(rawdoc! {"$toLong": "$time"});
    match i32::try_from(bucket_ms) {
        Ok(short) => divided.push(short),
        Err(_) => divided.push(bucket_ms),
    }
    rawdoc! {"$subtract": ["$time", {"$mod": divided}]}
}

/// Gives documents in parts of at most so many bytes; one that is larger is a part by itself.
fn split(documents: &[RawDocumentBuf], bytes: usize) -> Vec<&[RawDocumentBuf]> {
    let mut parts = Vec::with_capacity(1);
    let (mut first, mut size) = (0, 0);
    for (place, document) in documents.iter().enumerate() {
        size += document.as_bytes().len() + PLACE_BYTES;
        if size > bytes && place > first {
            parts.push(&documents[first..place]);
            first = place;
            size = document.as_bytes().len() + PLACE_BYTES;
        }
    }
    parts.push(&documents[first..]);
    parts
}

/// As `pymongo` does: in 32 bits where they are enough.
fn append_whole(document: &mut RawDocumentBuf, name: &CStr, whole: i64) {
    match i32::try_from(whole) {
        Ok(short) => document.append(name, short),
        Err(_) => document.append(name, whole),
    }
}

fn to_group(document: &RawDocument, query: &Query) -> Result<Group, Failure> {
    let id = wanted(document, "_id")?;
    let (ts_ms, host) = match id {
        RawBsonRef::Document(id) if query.hosts.is_empty() => {
            let host = match wanted(id, "hostname")? {
                RawBsonRef::String(host) => host.to_owned(),
                // No host is called this: whoever verifies the answer finds it wrong.
                _ => String::new(),
            };
            (to_ms(wanted(id, "time")?)?, host)
        }
        id => (to_ms(id)?, String::new()),
    };
    let mut values = Vec::with_capacity(query.metrics.len());
    for metric in &query.metrics {
        values.push(number(wanted(document, metric)?));
    }
    Ok(Group {
        ts_ms,
        host,
        values,
    })
}

fn wanted<'a>(document: &'a RawDocument, name: &str) -> Result<RawBsonRef<'a>, Failure> {
    let found = document.get(name).map_err(unreadable)?;
    found.ok_or_else(|| fail("error:KeyError", format!("a group without {name}")))
}

fn to_ms(bucket: RawBsonRef<'_>) -> Result<i64, Failure> {
    match bucket {
        RawBsonRef::DateTime(time) => Ok(time.timestamp_millis()),
        other => Err(fail(
            "error:TypeError",
            format!("the begin of a bucket is {:?}", other.element_type()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(hosts: &[&str], metrics: &[&'static str]) -> Query {
        let is_single = !hosts.is_empty();
        Query {
            operation: Operation::SingleGroupby5x8x1,
            metrics: metrics.to_vec(),
            hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
            from_ms: 1_000,
            until_ms: 2_000,
            bucket_ms: if is_single { MINUTE_MS } else { 60 * MINUTE_MS },
            aggregate: if is_single {
                Aggregate::Max
            } else {
                Aggregate::Mean
            },
        }
    }

    fn stages(query: &Query, truncates: bool) -> Vec<RawDocumentBuf> {
        let pipeline = pipeline(query, truncates).expect("no name has a NUL");
        let stages = pipeline.into_iter().map(|stage| {
            let stage = stage.expect("it was just written");
            stage
                .as_document()
                .expect("stages are documents")
                .to_owned()
        });
        stages.collect()
    }

    fn window() -> RawDocumentBuf {
        rawdoc! {"$gte": DateTime::from_millis(1_000), "$lt": DateTime::from_millis(2_000)}
    }

    #[test]
    fn maxima_are_over_hosts_together() {
        let wanted = [
            rawdoc! {"$match": {
                "measurement": "cpu",
                "time": window(),
                "tags.hostname": {"$in": ["host_4", "host_2"]},
            }},
            rawdoc! {"$group": {
                "_id": {"$dateTrunc": {"date": "$time", "unit": "minute"}},
                "usage_user": {"$max": "$usage_user"},
            }},
            rawdoc! {"$sort": {"_id": 1}},
        ];
        let query = query(&["host_4", "host_2"], &["usage_user"]);
        assert_eq!(stages(&query, true), wanted);
    }

    #[test]
    fn means_are_by_hour_and_host() {
        let wanted = [
            rawdoc! {"$match": {"measurement": "cpu", "time": window()}},
            rawdoc! {"$group": {
                "_id": {
                    "time": {"$dateTrunc": {"date": "$time", "unit": "hour"}},
                    "hostname": "$tags.hostname",
                },
                "usage_user": {"$avg": "$usage_user"},
                "usage_idle": {"$avg": "$usage_idle"},
            }},
            rawdoc! {"$sort": {"_id.time": 1, "_id.hostname": 1}},
        ];
        let query = query(&[], &["usage_user", "usage_idle"]);
        assert_eq!(stages(&query, true), wanted);
    }

    #[test]
    fn no_part_of_an_insert_is_larger_than_a_server_takes() {
        let sizes = [40, 40, 40, 200, 40, 90];
        let documents = sizes.map(|size| rawdoc! {"": "x".repeat(size - PLACE_BYTES - 12)});
        let parts = split(&documents, 100);
        let lengths: Vec<_> = parts.iter().map(|part| part.len()).collect();
        assert_eq!(lengths, [2, 1, 1, 1, 1]);
        assert_eq!(parts.concat(), documents);
        assert_eq!(split(&documents, 450).len(), 1);
    }

    #[test]
    fn an_older_server_gets_the_same_buckets_by_arithmetic() {
        let wanted = rawdoc! {"$subtract": ["$time", {"$mod": [{"$toLong": "$time"}, 60_000]}]};
        assert_eq!(bucket(MINUTE_MS, false), wanted);
    }

    #[test]
    fn an_answer_without_a_wanted_value_is_an_error_and_one_with_null_is_no_number() {
        let query = query(&["host_4"], &["usage_user"]);
        let begin = DateTime::from_millis(60_000);
        let lacking = to_group(&rawdoc! {"_id": begin}, &query).expect_err("a failure");
        assert_eq!(lacking.kind, "error:KeyError");
        let null = rawdoc! {"_id": begin, "usage_user": null};
        let group = to_group(&null, &query).expect("a group");
        assert_eq!(group.ts_ms, 60_000);
        assert!(group.values[0].is_nan());
    }
}
