//! The records of a workload of one's own: `perf/model/statements.py`, field by field.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::positive;

/// A schema, the values of rows, and the statements about them, in one language.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statements {
    pub language: Language,
    pub schema: Vec<String>,
    #[serde(deserialize_with = "positive")]
    pub rows: u64,
    pub store: String,
    pub count: String,
    pub values: BTreeMap<String, Value>,
    pub statements: BTreeMap<String, Statement>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    Cql,
    Mongodb,
}

/// One operation: a text with parameters, and the row that it is about.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    pub text: String,
    pub row: Row,
    pub expect: Option<Expected>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Row {
    Uniform,
    Zipfian,
    Latest,
    New,
}

/// What a right answer is: so many rows, and in each of them the values of the row.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    pub rows: Option<Count>,
    /// Columns of the answer, and the names of their values.
    pub columns: BTreeMap<String, String>,
    pub applied: Option<bool>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(untagged)]
pub enum Count {
    Exactly(usize),
    Roughly(Rows),
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Rows {
    Any,
    None,
}

/// What stands for a parameter.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Value {
    RowNumber {
        of: Of,
    },
    Integer {
        least: i64,
        most: i64,
        distribution: Spread,
        of: Of,
    },
    Real {
        least: f64,
        most: f64,
        of: Of,
    },
    Text {
        #[serde(deserialize_with = "positive")]
        bytes: usize,
        prefix: String,
        of: Of,
    },
    Choice {
        among: Vec<Choice>,
        distribution: Spread,
        of: Of,
    },
    Timestamp {
        begin_ms: u64,
        #[serde(deserialize_with = "positive")]
        step_ms: u64,
        of: Of,
    },
    Uuid {
        of: Of,
    },
}

impl Value {
    /// Whether it belongs to the row, or is new in each operation.
    #[must_use]
    pub fn of(&self) -> Of {
        match self {
            Self::RowNumber { of }
            | Self::Integer { of, .. }
            | Self::Real { of, .. }
            | Self::Text { of, .. }
            | Self::Choice { of, .. }
            | Self::Timestamp { of, .. }
            | Self::Uuid { of } => *of,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Of {
    Row,
    Operation,
}

/// Whether each is alike, or the earlier the likelier.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Spread {
    Uniform,
    Zipfian,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Choice {
    Bool(bool),
    Whole(i64),
    Real(f64),
    Text(String),
}
