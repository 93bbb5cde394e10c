//! The session of the devops workload on CQL; tables, statements and requests are those of
//! `perf/systems/cql/devops.py`, which says why.
//!
//! A batch of the workload is many requests: its rows are grouped by table and host, a group is unlogged
//! batches of up to 16 rows, and 32 requests are in flight. A query over all hosts is a statement for each.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::future;

use futures_util::{StreamExt, TryStreamExt, stream};
use scylla::deserialize::DeserializationError;
use scylla::deserialize::row::ColumnIterator;
use scylla::response::query_result::QueryRowsResult;
use scylla::serialize::SerializationError;
use scylla::serialize::row::{RowSerializationContext, SerializeRow};
use scylla::serialize::writers::RowWriter;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlTimestamp;
use tokio::sync::OnceCell;

use crate::cql::cells::{NO_TIME, eight, next, put, to_text};
use crate::cql::connect::{Client, KEYSPACE};
use crate::cql::failure;
use crate::session::{Aggregate, DevopsSession, Failure, Group, Number, Query, Row};
use crate::spec::{Operation, Target};
use crate::values::devops_queries::{QUERIES, metrics};
use crate::values::devops_tables::{DATA, Table};

const IN_FLIGHT: usize = 32;
const BATCH_ROWS: usize = 16;
const MINUTE_MS: i64 = 60_000;

/// A client's session; its statements are prepared before the first operation.
pub struct CqlDevops {
    client: Client,
    /// One for each table, in their order.
    inserts: OnceCell<Vec<PreparedStatement>>,
    hosts: OnceCell<PreparedStatement>,
    queries: RefCell<BTreeMap<Operation, PreparedStatement>>,
    groups_by_time: bool,
}

/// Connects a client of the devops workload, and tries whether the server takes a grouping by time.
///
/// # Errors
/// As `Client::connect`.
pub async fn connect(target: &Target) -> Result<CqlDevops, String> {
    let mut session = CqlDevops {
        client: Client::connect(target).await?,
        inserts: OnceCell::new(),
        hosts: OnceCell::new(),
        queries: RefCell::default(),
        groups_by_time: false,
    };
    let say = |failure: Failure| {
        format!(
            "{}: cannot prepare statements: {}: {}",
            target.system, failure.kind, failure.message
        )
    };
    match session.inserts().await {
        // There are no tables yet: then the first operation prepares.
        Err(failure) if !failure::is_invalid_request(&failure) => return Err(say(failure)),
        _ => {}
    }
    let tried = say_query(&metrics()[..1], Aggregate::Max, MINUTE_MS, "hostname = ?");
    session.groups_by_time = match session.client.prepare(tried).await {
        Ok(_) => true,
        Err(failure) if failure::is_refused_statement(&failure) => false,
        Err(failure) => return Err(say(failure)),
    };
    Ok(session)
}

impl DevopsSession for CqlDevops {
    /// Stores rows in as few requests as their partitions allow; fails with the first that fails.
    async fn write(&self, rows: &[Row]) -> Result<(), Failure> {
        let inserts = self.inserts().await?;
        let requests = stream::iter(group(rows))
            .map(|(table, rows)| self.insert(&inserts[table], rows))
            .buffer_unordered(IN_FLIGHT);
        requests.try_for_each(|()| future::ready(Ok(()))).await
    }

    fn can_ask(&self, operation: Operation) -> bool {
        self.groups_by_time && QUERIES.contains(&operation)
    }

    async fn ask(&self, query: &Query) -> Result<Vec<Group>, Failure> {
        let statement = self.query(query).await?;
        let window = (CqlTimestamp(query.from_ms), CqlTimestamp(query.until_ms));
        if !query.hosts.is_empty() {
            let asked = (&query.hosts, window.0, window.1);
            let answer = self.client.select(&statement, asked).await?;
            return Ok(put_together(to_groups(&answer, query.aggregate)?));
        }
        let ask_host = async |host: String| {
            let asked = (host, window.0, window.1);
            let answer = self.client.select(&statement, asked).await?;
            to_groups(&answer, query.aggregate)
        };
        let answers = stream::iter(self.all_hosts().await?)
            .map(ask_host)
            .buffer_unordered(IN_FLIGHT);
        let mut groups: Vec<Group> = answers.try_concat().await?;
        groups.sort_by(|one, other| (one.ts_ms, &one.host).cmp(&(other.ts_ms, &other.host)));
        Ok(groups)
    }
}

impl CqlDevops {
    async fn inserts(&self) -> Result<&Vec<PreparedStatement>, Failure> {
        let prepare = || async {
            let mut inserts = Vec::with_capacity(DATA.tables.len());
            for table in &DATA.tables {
                inserts.push(self.client.prepare(say_insert(table)).await?);
            }
            Ok(inserts)
        };
        self.inserts.get_or_try_init(prepare).await
    }

    /// Sends rows of one partition of a table: a lone one as it is, several in batches.
    async fn insert(&self, insert: &PreparedStatement, rows: Vec<&Row>) -> Result<(), Failure> {
        let bound: Vec<Bound> = rows.into_iter().map(Bound).collect();
        if let [one] = &bound[..] {
            return self.client.execute(insert, one).await.map(drop);
        }
        let statements = vec![insert.clone().into(); bound.len()];
        let batch = Batch::new_with_statements(BatchType::Unlogged, statements);
        self.client.batch(&batch, bound).await
    }

    async fn query(&self, query: &Query) -> Result<PreparedStatement, Failure> {
        if let Some(known) = self.queries.borrow().get(&query.operation) {
            return Ok(known.clone());
        }
        let hosts = if query.hosts.is_empty() {
            "hostname = ?"
        } else {
            "hostname IN ?"
        };
        let said = say_query(&query.metrics, query.aggregate, query.bucket_ms, hosts);
        let statement = self.client.prepare(said).await?;
        let mut queries = self.queries.borrow_mut();
        Ok(queries.entry(query.operation).or_insert(statement).clone())
    }

    async fn all_hosts(&self) -> Result<Vec<String>, Failure> {
        let prepare = || {
            let said = format!("SELECT DISTINCT hostname FROM {KEYSPACE}.cpu");
            self.client.prepare(said)
        };
        let statement = self.hosts.get_or_try_init(prepare).await?;
        let answer = self.client.select(statement, ()).await?;
        let rows = answer
            .rows::<(String,)>()
            .map_err(|error| failure::of_answer(&error))?;
        rows.map(|row| row.map(|(host,)| host))
            .collect::<Result<_, _>>()
            .map_err(|error| failure::of_answer(&error))
    }
}

/// A row is the values of its table's INSERT.
struct Bound<'a>(&'a Row);

impl SerializeRow for Bound<'_> {
    fn serialize(
        &self,
        _: &RowSerializationContext,
        writer: &mut RowWriter,
    ) -> Result<(), SerializationError> {
        for tag in self.0.tags.iter() {
            put(writer, tag.as_bytes())?;
        }
        put(writer, &self.0.ts_ms.to_be_bytes())?;
        for value in &self.0.values {
            match value {
                Number::Whole(whole) => put(writer, &whole.to_be_bytes())?,
                Number::Real(real) => put(writer, &real.to_be_bytes())?,
            }
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        false
    }
}

/// Gives the requests that rows are: up to 16 of one host in one table, which is given by its place.
fn group(rows: &[Row]) -> Vec<(usize, Vec<&Row>)> {
    let mut open: HashMap<(&str, &str), usize> = HashMap::with_capacity(rows.len());
    let mut requests: Vec<(usize, Vec<&Row>)> = Vec::with_capacity(rows.len());
    let mut table = 0;
    for row in rows {
        if DATA.tables[table].name != row.table {
            // Rows come table by table; one of no table cannot be made.
            table = DATA
                .tables
                .iter()
                .position(|table| table.name == row.table)
                .unwrap_or_default();
        }
        let place = open.entry((row.table, &row.tags[0])).or_insert(usize::MAX);
        match requests.get_mut(*place) {
            Some((_, together)) if together.len() < BATCH_ROWS => together.push(row),
            _ => {
                *place = requests.len();
                requests.push((table, vec![row]));
            }
        }
    }
    requests
}

fn say_insert(table: &Table) -> String {
    let names: Vec<&str> = (DATA.tags.iter().chain(&["ts"]).chain(&table.fields))
        .copied()
        .collect();
    let marks = vec!["?"; names.len()].join(", ");
    let (name, names) = (table.name, names.join(", "));
    format!("INSERT INTO {KEYSPACE}.{name} ({names}) VALUES ({marks})")
}

fn say_query(metrics: &[&str], aggregate: Aggregate, bucket_ms: i64, hosts: &str) -> String {
    let wanted: Vec<String> = metrics
        .iter()
        .map(|metric| match aggregate {
            Aggregate::Max => format!("max({metric})"),
            // The mean of a bigint would be one: CQL's avg keeps the type.
            Aggregate::Mean => format!("avg(CAST({metric} AS double))"),
        })
        .collect();
    let bucket = format!("floor(ts, {}m)", bucket_ms / MINUTE_MS);
    let wanted = wanted.join(", ");
    format!(
        "SELECT hostname, {bucket}, {wanted} FROM {KEYSPACE}.cpu \
         WHERE {hosts} AND ts >= ? AND ts < ? GROUP BY hostname, {bucket}"
    )
}

fn to_groups(answer: &QueryRowsResult, aggregate: Aggregate) -> Result<Vec<Group>, Failure> {
    let rows = answer
        .rows::<ColumnIterator>()
        .map_err(|error| failure::of_answer(&error))?;
    rows.map(|row| to_group(row?, aggregate))
        .collect::<Result<_, _>>()
        .map_err(|error| failure::of_answer(&error))
}

/// Makes a group of a row; a value that is missing is no number.
#[allow(clippy::cast_precision_loss)] // a field of the workload is far below 2^53
fn to_group(mut row: ColumnIterator, aggregate: Aggregate) -> Result<Group, DeserializationError> {
    let host = to_text(next(&mut row)?);
    let ts_ms = (next(&mut row)?.and_then(eight)).map_or(NO_TIME, i64::from_be_bytes);
    let mut values = Vec::with_capacity(row.columns_remaining());
    while row.columns_remaining() > 0 {
        let cell = next(&mut row)?.and_then(eight);
        values.push(cell.map_or(f64::NAN, |cell| match aggregate {
            Aggregate::Max => i64::from_be_bytes(cell) as f64,
            Aggregate::Mean => f64::from_be_bytes(cell),
        }));
    }
    Ok(Group {
        ts_ms,
        host,
        values,
    })
}

/// Gives the maxima over all hosts, ordered by time; one that is no number stays so.
fn put_together(of_hosts: Vec<Group>) -> Vec<Group> {
    let mut best: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for group in of_hosts {
        let known = best
            .entry(group.ts_ms)
            .or_insert_with(|| group.values.clone());
        for (known, found) in known.iter_mut().zip(group.values) {
            if !(known.is_nan() || *known >= found) {
                *known = found;
            }
        }
    }
    best.into_iter()
        .map(|(ts_ms, values)| Group {
            ts_ms,
            host: String::new(),
            values,
        })
        .collect()
}
