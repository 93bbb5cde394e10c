//! The session of put/get and YCSB on CQL; the table and its words are those of `perf/systems/cql/keys.py`.
//!
//! YCSB updates one field or all, and each has its statement. One of all fields updates any others, too:
//! a field that is not named is sent as unset, which leaves it as it is.

use std::iter;

use bytes::Bytes;
use scylla::deserialize::row::ColumnIterator;
use scylla::statement::prepared::PreparedStatement;
use tokio::sync::OnceCell;

use crate::cql::cells::{Record, to_record, to_values};
use crate::cql::connect::{Client, KEYSPACE};
use crate::cql::failure;
use crate::session::{Failure, KeyValueSession, Values};
use crate::spec::Target;

const TABLE: &str = "records";

struct Statements {
    insert: PreparedStatement,
    select: PreparedStatement,
    scan: PreparedStatement,
    update_all: PreparedStatement,
    /// One for each field alone.
    updates: Vec<PreparedStatement>,
}

/// A client's session; its statements are prepared before the first operation.
pub struct CqlKeys {
    client: Client,
    statements: OnceCell<Statements>,
}

/// Connects a client of the workloads put/get and YCSB.
///
/// # Errors
/// As `Client::connect`.
pub async fn connect(target: &Target) -> Result<CqlKeys, String> {
    let session = CqlKeys {
        client: Client::connect(target).await?,
        statements: OnceCell::new(),
    };
    match session.statements().await {
        // There is no table yet: then the first operation prepares.
        Err(failure) if !failure::is_invalid_request(&failure) => Err(format!(
            "{}: cannot prepare statements: {}: {}",
            target.system, failure.kind, failure.message
        )),
        _ => Ok(session),
    }
}

impl KeyValueSession for CqlKeys {
    /// Inserts a row; one under the same key is replaced.
    async fn insert(&self, key: &str, values: &[Bytes]) -> Result<(), Failure> {
        self.put(key, values).await
    }

    /// Inserts a row, or replaces all columns of the one that is there.
    async fn put(&self, key: &str, values: &[Bytes]) -> Result<(), Failure> {
        let insert = &self.statements().await?.insert;
        let values = values.iter().map(Some);
        self.client
            .execute(
                insert,
                Record {
                    key,
                    values,
                    key_first: true,
                },
            )
            .await
            .map(drop)
    }

    /// Changes some columns of a row; it is not asked whether the row is there.
    async fn update(&self, key: &str, changes: &[(usize, Bytes)]) -> Result<(), Failure> {
        let statements = self.statements().await?;
        if let [(field, value)] = changes
            && let Some(update) = statements.updates.get(*field)
        {
            let values = iter::once(Some(value));
            return self
                .client
                .execute(
                    update,
                    Record {
                        key,
                        values,
                        key_first: false,
                    },
                )
                .await
                .map(drop);
        }
        let values = (0..statements.updates.len()).map(|field| {
            changes
                .iter()
                .find(|(number, _)| *number == field)
                .map(|(_, value)| value)
        });
        let update = &statements.update_all;
        self.client
            .execute(
                update,
                Record {
                    key,
                    values,
                    key_first: false,
                },
            )
            .await
            .map(drop)
    }

    async fn get(&self, key: &str) -> Result<Option<Values>, Failure> {
        let select = &self.statements().await?.select;
        let answer = self.client.select(select, (key,)).await?;
        let row = answer
            .maybe_first_row::<ColumnIterator>()
            .map_err(|error| failure::of_answer(&error))?;
        row.map(to_values)
            .transpose()
            .map_err(|error| failure::of_answer(&error))
    }

    /// Selects rows in the order of their tokens.
    async fn scan(&self, first_key: &str, count: u64) -> Result<Vec<(String, Values)>, Failure> {
        let scan = &self.statements().await?.scan;
        let limit = i32::try_from(count).unwrap_or(i32::MAX);
        let answer = self.client.select(scan, (first_key, limit)).await?;
        let rows = answer
            .rows::<ColumnIterator>()
            .map_err(|error| failure::of_answer(&error))?;
        let records = rows
            .map(|row| row.and_then(to_record))
            .collect::<Result<_, _>>();
        records.map_err(|error| failure::of_answer(&error))
    }
}

impl CqlKeys {
    async fn statements(&self) -> Result<&Statements, Failure> {
        self.statements.get_or_try_init(|| self.prepare()).await
    }

    async fn prepare(&self) -> Result<Statements, Failure> {
        let table = format!("{KEYSPACE}.{TABLE}");
        // Asked: a client need not be the one that created the table. All but the key are fields.
        let all = self
            .client
            .prepare(format!("SELECT * FROM {table}"))
            .await?;
        let count = all
            .get_current_result_set_col_specs()
            .get()
            .len()
            .saturating_sub(1);
        let fields: Vec<String> = (0..count).map(|number| format!("field{number}")).collect();
        let columns = fields.join(", ");
        let marks = vec!["?"; count + 1].join(", ");
        let update = |fields: &[String]| {
            let changes: Vec<String> = fields.iter().map(|field| format!("{field} = ?")).collect();
            format!("UPDATE {table} SET {} WHERE key = ?", changes.join(", "))
        };
        let ask = |statement| self.client.prepare(statement);
        let mut updates = Vec::with_capacity(count);
        for field in &fields {
            updates.push(ask(update(std::slice::from_ref(field))).await?);
        }
        Ok(Statements {
            insert: ask(format!(
                "INSERT INTO {table} (key, {columns}) VALUES ({marks})"
            ))
            .await?,
            select: ask(format!("SELECT {columns} FROM {table} WHERE key = ?")).await?,
            scan: ask(format!(
                "SELECT key, {columns} FROM {table} WHERE token(key) >= token(?) LIMIT ?"
            ))
            .await?,
            update_all: ask(update(&fields)).await?,
            updates,
        })
    }
}
