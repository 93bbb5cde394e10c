//! What clients may say in CQL: write a reading, read the newest of a device, and look up who is there.
//!
//! The first two are our sessions' own statements and those of the peers of a comparison; the last is
//! what drivers ask when they connect.

use super::tables::{Column, INT, READINGS, SystemTable, TEXT, TEXTS, reading_columns};

/// A statement that was understood.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Asking {
    Insert,
    /// The newest readings of a device; how many may be said when it is asked.
    Newest {
        count: Option<u64>,
    },
    /// Columns of a table of the server itself, each by its place there; so many lists may be bound.
    System {
        table: usize,
        columns: Vec<usize>,
        lists: usize,
    },
}

impl Asking {
    /// Gives what each place for a value is.
    pub fn places(&self) -> Vec<Column> {
        match self {
            Self::Insert => reading_columns(),
            Self::Newest { count } => {
                let mut places = vec![("device_id", TEXT)];
                places.extend(count.is_none().then_some(("[limit]", INT)));
                places
            }
            Self::System { lists, .. } => vec![("in(keyspace_name)", TEXTS); *lists],
        }
    }
}

/// Reads a statement.
///
/// # Errors
/// Why it is not understood.
pub fn parse(text: &str, system: &[SystemTable]) -> Result<Asking, String> {
    let words: Vec<&str> = text
        .split(|one: char| one.is_whitespace() || "(),=".contains(one))
        .filter(|word| !word.is_empty())
        .collect();
    let names: Vec<&str> = reading_columns().iter().map(|&(name, _)| name).collect();
    let lower: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let unknown = || format!("a null server does not know the statement {text:?}");
    if let ["insert", "into", READINGS, rest @ ..] = lower.as_slice()
        && rest.len() == 2 * names.len() + 1
        && rest.starts_with(&names)
    {
        return Ok(Asking::Insert);
    }
    let from = lower.iter().position(|&word| word == "from");
    let (Some("select"), Some(from)) = (lower.first().copied(), from) else {
        return Err(unknown());
    };
    let (asked, name) = (&lower[1..from], lower.get(from + 1).ok_or_else(unknown)?);
    if *name == READINGS {
        let ["where", "device_id", "?", "limit", count] = lower[from + 2..] else {
            return Err(unknown());
        };
        let count = (count != "?").then(|| count.parse().map_err(|_| unknown()));
        let count = count.transpose()?;
        return (asked == names)
            .then_some(Asking::Newest { count })
            .ok_or_else(unknown);
    }
    let table = system.iter().position(|one| one.name == *name);
    let table = table.ok_or_else(|| format!("unconfigured table {name}"))?;
    let known = &system[table].columns;
    let place = |name: &str| {
        known
            .iter()
            .position(|one| one.0 == name)
            .ok_or_else(unknown)
    };
    let columns = if asked == ["*"] {
        (0..known.len()).collect()
    } else {
        asked
            .iter()
            .map(|name| place(name))
            .collect::<Result<_, _>>()?
    };
    let lists = lower.iter().filter(|&&word| word == "?").count();
    Ok(Asking::System {
        table,
        columns,
        lists,
    })
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::super::tables::system_tables;
    use super::*;

    const COLUMNS: &str = "device_id, ts, temperature, humidity, pressure, vibration, battery, \
                           latitude, longitude, signal, metadata";

    fn asked(text: &str) -> Result<Asking, String> {
        parse(text, &system_tables(IpAddr::V4(Ipv4Addr::LOCALHOST)))
    }

    #[test]
    fn statements_of_the_workload_are_known() {
        let marks = "?, ".repeat(10) + "?";
        let insert = format!("INSERT INTO {READINGS} ({COLUMNS}) VALUES ({marks})");
        assert_eq!(asked(&insert), Ok(Asking::Insert));
        let newest = format!("SELECT {COLUMNS} FROM {READINGS} WHERE device_id = ? LIMIT");
        let (bound, said) = (
            asked(&format!("{newest} ?")),
            asked(&format!("{newest} 10")),
        );
        assert_eq!(bound, Ok(Asking::Newest { count: None }));
        assert_eq!(
            bound.unwrap().places(),
            [("device_id", TEXT), ("[limit]", INT)]
        );
        assert_eq!(said, Ok(Asking::Newest { count: Some(10) }));
    }

    #[test]
    fn a_driver_learns_who_is_there() {
        let local = asked("SELECT host_id, tokens FROM system.local WHERE key='local'");
        assert!(matches!(local, Ok(Asking::System { columns, .. }) if columns == [5, 12]));
        let some =
            asked("select durable_writes from system_schema.keyspaces where keyspace_name in ?");
        assert_eq!(some.unwrap().places().len(), 1);
    }

    #[test]
    fn what_is_not_known_is_said_so() {
        let message = asked("SELECT a FROM b.c").err();
        assert_eq!(message.as_deref(), Some("unconfigured table b.c"));
        assert!(asked("GRANT a TO b").is_err());
        assert!(
            asked(&format!(
                "SELECT ts FROM {READINGS} WHERE device_id = ? LIMIT 1"
            ))
            .is_err()
        );
    }
}
