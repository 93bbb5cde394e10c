//! The session of workloads in statements on CQL, each prepared once; that of `perf/systems/cql/statements.py`.
//!
//! Statements name tables without a keyspace; theirs is the trial's. An answer is read in one page, and of
//! its columns those that are expected.

use scylla::deserialize::row::ColumnIterator;
use scylla::frame::response::result::{ColumnSpec, ColumnType, NativeType};
use scylla::response::query_result::QueryRowsResult;
use scylla::serialize::SerializationError;
use scylla::serialize::row::{RowSerializationContext, SerializeRow};
use scylla::serialize::writers::RowWriter;
use scylla::statement::prepared::PreparedStatement;

use crate::cql::connect::Client;
use crate::cql::failure;
use crate::cql::values::{comparable, read, say_type, sendable, write};
use crate::session::{Answered, Failure, StatementSession, StatementValue};
use crate::spec::Target;
use crate::spec::statements::{Expected, Statement, Statements};
use crate::values::statements::extremes;

/// A client's session; its statements are in the order of their names.
pub struct CqlStatements {
    client: Client,
    statements: Vec<Known>,
}

/// A statement as the server knows it.
struct Known {
    prepared: PreparedStatement,
    parameters: Vec<String>,
    types: Vec<NativeType>,
    /// Where in a row the expected columns are, in the order of their names.
    wanted: Vec<(usize, NativeType)>,
}

/// Connects a client of a workload in statements, and prepares all of them.
///
/// # Errors
/// As `Client::connect`; and which statement the server refuses, takes or answers with types that are not
/// known here, or cannot have the values of.
pub async fn connect(target: &Target, records: &Statements) -> Result<CqlStatements, String> {
    let client = Client::connect(target).await?;
    client
        .use_keyspace()
        .await
        .map_err(|why| format!("{}: {why}", target.system))?;
    let mut statements = Vec::with_capacity(records.statements.len());
    for (name, statement) in &records.statements {
        let known = prepare(&client, statement, records).await;
        statements
            .push(known.map_err(|why| format!("{}: statement {name}: {why}", target.system))?);
    }
    Ok(CqlStatements { client, statements })
}

impl StatementSession for CqlStatements {
    fn parameters(&self, statement: usize) -> &[String] {
        &self.statements[statement].parameters
    }

    async fn ask(&self, statement: usize, values: &[StatementValue]) -> Result<Answered, Failure> {
        let known = &self.statements[statement];
        let bound = Bound {
            types: &known.types,
            values,
        };
        let answer = self.client.execute(&known.prepared, bound).await?;
        if !answer.is_rows() {
            return Ok(Answered::default());
        }
        let rows = answer
            .into_rows_result()
            .map_err(|error| failure::of_answer(&error))?;
        to_answered(&rows, &known.wanted)
    }
}

async fn prepare(
    client: &Client,
    statement: &Statement,
    records: &Statements,
) -> Result<Known, String> {
    let prepared = client.prepare(&*statement.text).await.map_err(|failure| {
        let text = statement
            .text
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        format!("{}: {}; it was: {text}", failure.kind, failure.message)
    })?;
    let columns = prepared.get_current_result_set_col_specs();
    let wanted = find_wanted(statement.expect.as_ref(), columns.get().as_slice())?;
    let (mut parameters, mut types) = (Vec::new(), Vec::new());
    for column in prepared.get_variable_col_specs().iter() {
        types.push(find_type(column.name(), column.typ(), records)?);
        parameters.push(column.name().to_owned());
    }
    Ok(Known {
        prepared,
        parameters,
        types,
        wanted,
    })
}

/// Finds the type of a parameter, of which all its values must be.
fn find_type(name: &str, of: &ColumnType, records: &Statements) -> Result<NativeType, String> {
    let Some(value) = records.values.get(name) else {
        return Err(format!(
            "it has the parameter :{name}, but records.values has none; add it there"
        ));
    };
    let Some(kind) = sendable(of) else {
        let of = say_type(of);
        return Err(format!(
            "the parameter :{name} is of type {of}, which the native engine cannot send; \
             say `engine: python` in the workload"
        ));
    };
    let mut scratch = Vec::new();
    for one in extremes(value) {
        write(&mut RowWriter::new(&mut scratch), kind, &one).map_err(|why| {
            format!(
                "the parameter :{name} is of type {}, but {why}; change records.values.{name}, \
                 or the column",
                say_type(of)
            )
        })?;
    }
    Ok(kind.clone())
}

/// Finds the columns that are expected among those that the server announces.
fn find_wanted(
    expect: Option<&Expected>,
    columns: &[ColumnSpec],
) -> Result<Vec<(usize, NativeType)>, String> {
    let names = expect.iter().flat_map(|expected| expected.columns.keys());
    let find = |name: &String| {
        let Some(place) = columns.iter().position(|column| column.name() == name) else {
            let has: Vec<&str> = columns.iter().map(ColumnSpec::name).collect();
            let has = if has.is_empty() {
                "no columns that are known beforehand".to_owned()
            } else {
                has.join(", ")
            };
            return Err(format!(
                "it expects a column {name}, but its answer has {has}"
            ));
        };
        let of = columns[place].typ();
        match comparable(of) {
            Some(kind) => Ok((place, kind.clone())),
            None => Err(format!(
                "it expects a column {name}, whose type {} the native engine cannot compare; leave it \
                 out, or say `engine: python` in the workload",
                say_type(of)
            )),
        }
    };
    names.map(find).collect()
}

/// Values of the parameters, in their order.
struct Bound<'a> {
    types: &'a [NativeType],
    values: &'a [StatementValue],
}

impl SerializeRow for Bound<'_> {
    fn serialize(
        &self,
        _: &RowSerializationContext,
        row: &mut RowWriter,
    ) -> Result<(), SerializationError> {
        let mut pairs = self.types.iter().zip(self.values);
        pairs.try_for_each(|(kind, value)| write(row, kind, value).map_err(SerializationError::new))
    }

    fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

fn to_answered(
    answer: &QueryRowsResult,
    wanted: &[(usize, NativeType)],
) -> Result<Answered, Failure> {
    let first = answer.column_specs().get_by_index(0);
    let is_flag =
        first.is_some_and(|column| matches!(column.typ(), ColumnType::Native(NativeType::Boolean)));
    let rows = answer
        .rows::<ColumnIterator>()
        .map_err(|error| failure::of_answer(&error))?;
    let mut answered = Answered::default();
    for row in rows {
        let row = row.map_err(|error| failure::of_answer(&error))?;
        let cells: Vec<_> = row
            .map(|cell| cell.map(|cell| cell.slice))
            .collect::<Result<_, _>>()
            .map_err(|error| failure::of_answer(&error))?;
        if answered.rows.is_empty() && is_flag {
            let flag = cells[0].and_then(|cell| read(&NativeType::Boolean, cell));
            answered.applied = flag == Some(StatementValue::Bool(true));
        }
        let find = |(place, kind): &(usize, NativeType)| {
            cells
                .get(*place)
                .copied()
                .flatten()
                .and_then(|cell| read(kind, cell))
        };
        answered.rows.push(wanted.iter().map(find).collect());
    }
    Ok(answered)
}
