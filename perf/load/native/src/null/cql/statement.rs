//! Statements of CQL, as far as our clients and their drivers say them: which table, which columns, and
//! what each place for a value is.

use super::tables::{Column, Kind};

/// A table: `name` is `keyspace.table`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    pub partition_key: Vec<String>,
}

/// A statement that reads or writes rows of a table.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Asking {
    pub table: String,
    /// What the rows of its answer look like; none for a write.
    pub result: Option<Vec<Column>>,
    pub places: Vec<Column>,
    /// For each column of the partition key the number of its place, if all have one.
    pub key_places: Vec<usize>,
    pub timestamp_place: Option<usize>,
    pub limit_place: Option<usize>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Statement {
    Asking(Asking),
    CreateTable(Table),
    Use(String),
    /// Nothing that matters where nothing is stored.
    Nothing,
}

const LIMIT: &str = "[limit]";
const OPERATORS: [&str; 5] = ["=", "<", ">", "(", "in"];

/// Reads a statement; `find` gives a table by its name.
///
/// # Errors
/// Why it is not understood.
pub fn parse<'a>(
    text: &str,
    find: impl Fn(&str) -> Option<&'a Table>,
) -> Result<Statement, String> {
    let tokens = split(text);
    let words: Vec<String> = tokens.iter().map(|one| one.to_ascii_lowercase()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let known = |name: &str| find(name).ok_or_else(|| format!("unconfigured table {name}"));
    match words.as_slice() {
        ["select", ..] => {
            let from = position(&words, "from").ok_or("a SELECT without FROM")?;
            let table = known(words.get(from + 1).ok_or("FROM what?")?)?;
            let result = select_columns(table, &words[1..from])?;
            conditions(table, &words[from + 2..], Some(result))
        }
        ["update", name, rest @ ..] => conditions(known(name)?, rest, None),
        ["insert", "into", name, rest @ ..] => insert(known(name)?, rest),
        ["create", "table", "if", "not", "exists", name, rest @ ..]
        | ["create", "table", name, rest @ ..] => create_table(name, rest),
        ["use", name, ..] => Ok(Statement::Use((*name).to_owned())),
        ["create" | "alter" | "drop" | "truncate", ..] => Ok(Statement::Nothing),
        _ => Err(format!(
            "a null server does not know the statement {text:?}"
        )),
    }
}

/// Splits a statement into words, texts in quotes, and single characters.
fn split(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let size = if first == '\'' {
            rest[1..].find('\'').map_or(rest.len(), |end| end + 2)
        } else if is_word(first) {
            rest.find(|one| !is_word(one)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(size);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

fn is_word(one: char) -> bool {
    one.is_ascii_alphanumeric() || "_.\"".contains(one)
}

fn position(words: &[&str], wanted: &str) -> Option<usize> {
    words.iter().position(|&word| word == wanted)
}

fn column<'a>(table: &'a Table, name: &str) -> Result<&'a Column, String> {
    let found = table.columns.iter().find(|column| column.name == name);
    found.ok_or_else(|| format!("Undefined column name {name} in table {}", table.name))
}

fn select_columns(table: &Table, words: &[&str]) -> Result<Vec<Column>, String> {
    if words == ["*"] {
        return Ok(table.columns.clone());
    }
    words
        .split(|&word| word == ",")
        .map(|one| match one {
            [name] => column(table, name).cloned(),
            _ => Err(format!("a null server selects no {:?}", one.join(" "))),
        })
        .collect()
}

fn insert(table: &Table, words: &[&str]) -> Result<Statement, String> {
    let end = position(words, ")").ok_or("an INSERT without columns")?;
    let names = words.get(1..end).ok_or("an INSERT without columns")?;
    let values = words.get(end + 3..).ok_or("an INSERT without values")?;
    let mut places = Vec::new();
    for (name, value) in names
        .split(|&word| word == ",")
        .zip(values.split(|&word| word == ","))
    {
        if let ([name], Some(&"?")) = (name, value.first()) {
            places.push(column(table, name)?.clone());
        }
    }
    let keys: Vec<String> = places.iter().map(|place| place.name.clone()).collect();
    Ok(asking(table, None, places, &keys))
}

fn conditions(
    table: &Table,
    words: &[&str],
    result: Option<Vec<Column>>,
) -> Result<Statement, String> {
    let mut places = Vec::new();
    let mut compared = Vec::new();
    for (at, _) in words.iter().enumerate().filter(|&(_, &word)| word == "?") {
        let before = &words[..at];
        let operand = before.iter().rposition(|word| !OPERATORS.contains(word));
        let name = operand.and_then(|place| words.get(place)).copied();
        let place = match name.ok_or("a value without a column")? {
            "limit" => Column::new(LIMIT, Kind::Int),
            ")" => Column::new("partition key token", Kind::Bigint),
            "token" => {
                let key = table.partition_key.first().ok_or("a table without a key")?;
                Column::new("partition key", column(table, key)?.kind)
            }
            name if before.ends_with(&["in"]) => {
                Column::new(&format!("in({name})"), Kind::ListOfText)
            }
            name => column(table, name)?.clone(),
        };
        let is_equal = before.ends_with(&["="]) && operand == at.checked_sub(2);
        compared.push(if is_equal {
            place.name.clone()
        } else {
            String::new()
        });
        places.push(place);
    }
    Ok(asking(table, result, places, &compared))
}

/// Puts an asking together; `keys` holds for each place which column it is equal to.
fn asking(
    table: &Table,
    result: Option<Vec<Column>>,
    places: Vec<Column>,
    keys: &[String],
) -> Statement {
    let key_places: Option<Vec<usize>> = table
        .partition_key
        .iter()
        .map(|column| keys.iter().position(|key| key == column))
        .collect();
    Statement::Asking(Asking {
        table: table.name.clone(),
        key_places: key_places.unwrap_or_default(),
        timestamp_place: places
            .iter()
            .position(|place| place.kind == Kind::Timestamp),
        limit_place: places.iter().position(|place| place.name == LIMIT),
        result,
        places,
    })
}

fn create_table(name: &str, words: &[&str]) -> Result<Statement, String> {
    let mut table = Table {
        name: name.to_owned(),
        columns: Vec::new(),
        partition_key: Vec::new(),
    };
    for part in definitions(words) {
        match part {
            ["primary", "key", "(", "(", names @ ..] => {
                let end = position(names, ")").unwrap_or(names.len());
                let names = names[..end].iter().filter(|&&word| word != ",");
                table.partition_key = names.map(|&name| name.to_owned()).collect();
            }
            ["primary", "key", "(", name, ..] => table.partition_key = vec![(*name).to_owned()],
            [name, kind, rest @ ..] => {
                let kind = Kind::named(kind).ok_or_else(|| format!("unknown type {kind}"))?;
                table.columns.push(Column::new(name, kind));
                if rest.starts_with(&["primary", "key"]) {
                    table.partition_key = vec![(*name).to_owned()];
                }
            }
            _ => return Err(format!("unknown definition {:?}", part.join(" "))),
        }
    }
    Ok(Statement::CreateTable(table))
}

/// Splits what stands between a table's parentheses at its commas, but not within inner ones.
fn definitions<'a, 'b>(words: &'b [&'a str]) -> Vec<&'b [&'a str]> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 1, 0);
    for (at, &word) in words.iter().enumerate() {
        match word {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && word == ",") {
            parts.extend(words.get(begin..at));
            begin = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::super::tables::CREATED;
    use super::*;

    fn tables() -> Vec<Table> {
        CREATED.iter().map(|text| created(text)).collect()
    }

    fn created(text: &str) -> Table {
        match parse(text, |_| None) {
            Ok(Statement::CreateTable(table)) => table,
            other => panic!("{other:?}"),
        }
    }

    fn asked(text: &str) -> Asking {
        let tables = tables();
        match parse(text, |name| tables.iter().find(|table| table.name == name)) {
            Ok(Statement::Asking(asking)) => asking,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn tables_are_created_with_their_keys() {
        let [readings, records] = &tables()[..] else {
            panic!("two tables")
        };
        assert_eq!(readings.columns.len(), 11);
        assert_eq!(readings.columns[10], Column::new("metadata", Kind::Blob));
        assert_eq!(readings.partition_key, ["device_id"]);
        assert_eq!(records.partition_key, ["key"]);
        let two = created(
            "CREATE TABLE IF NOT EXISTS a.b (x text, y int, PRIMARY KEY (x, y)) WITH c = 1",
        );
        assert_eq!(
            (two.columns.len(), &two.partition_key[..]),
            (2, &["x".to_owned()][..])
        );
    }

    #[test]
    fn an_insert_names_its_places() {
        let text =
            "INSERT INTO knickpoint.sensor_readings (device_id, ts, battery) VALUES (?, ?, ?)";
        let one = asked(text);
        assert_eq!((one.places.len(), &one.key_places[..]), (3, &[0][..]));
        assert_eq!((one.timestamp_place, one.result), (Some(1), None));
    }

    #[test]
    fn a_select_says_what_its_rows_are_and_where_its_limit_stands() {
        let one =
            asked("SELECT ts, signal FROM knickpoint.sensor_readings WHERE device_id = ? LIMIT ?");
        assert_eq!(one.result.map(|columns| columns.len()), Some(2));
        assert_eq!((&one.key_places[..], one.limit_place), (&[0][..], Some(1)));
        assert_eq!(
            asked("SELECT * FROM knickpoint.records")
                .result
                .map(|all| all.len()),
            Some(2)
        );
    }

    #[test]
    fn a_token_is_no_key() {
        let scan = asked("SELECT key FROM knickpoint.records WHERE token(key) >= token(?) LIMIT ?");
        assert_eq!(
            (scan.key_places.len(), scan.places[0].kind),
            (0, Kind::Text)
        );
        let slice =
            asked("SELECT key FROM knickpoint.records WHERE token(key) > ? AND token(key) <= ?");
        assert_eq!(
            (slice.places[0].kind, slice.places[1].kind),
            (Kind::Bigint, Kind::Bigint)
        );
    }

    #[test]
    fn an_update_finds_its_key_behind_its_fields() {
        let one = asked("UPDATE knickpoint.records SET field0 = ? WHERE key = ?");
        assert_eq!(
            (&one.key_places[..], one.places[0].name.as_str()),
            (&[1][..], "field0")
        );
    }

    #[test]
    fn what_is_not_known_is_said_so() {
        let message = parse("SELECT a FROM b.c", |_| None).err();
        assert_eq!(message.as_deref(), Some("unconfigured table b.c"));
        assert!(parse("GRANT a TO b", |_| None).is_err());
        assert!(matches!(
            parse("USE \"x\"", |_| None),
            Ok(Statement::Use(_))
        ));
    }
}
