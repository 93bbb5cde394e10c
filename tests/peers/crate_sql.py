# ruff: noqa: S608  statements are made of names that were checked
"""The statements that CrateDB's sessions send, recognised one by one and done by SQLite in memory.

Each is checked against the grammar of CrateDB's reference as far as it is needed: names, types, table
parameters, types of arguments. What is not recognised is refused with CrateDB's error codes, so that a
session cannot come to rely on what only this peer understands.

Queries see what was last refreshed, look-ups by the whole primary key see everything. CrateDB refreshes
once a second by itself; this never does, so that nothing passes by luck.
"""

import re
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_NAME = r"[a-z_][a-z0-9_]*"
_TYPES = {
    "TEXT": "VARCHAR",
    "TIMESTAMP WITH TIME ZONE": "BIGINT",  # milliseconds, as they go over HTTP
    "DOUBLE PRECISION": "DOUBLE",
    "BIGINT": "BIGINT",
}
_COLUMN = re.compile(
    rf'"?(?P<name>{_NAME})"? (?P<type>TEXT|TIMESTAMP WITH TIME ZONE|DOUBLE PRECISION|BIGINT'
    r"|OBJECT\((?:DYNAMIC|STRICT)\) AS \((?P<inner>[^()]+)\))"
    r"(?P<off> INDEX OFF STORAGE WITH \(columnstore = false\))?(?P<key> PRIMARY KEY)?"
)
_CREATE = re.compile(
    rf"CREATE TABLE(?P<unless> IF NOT EXISTS)? (?P<table>{_NAME}\.{_NAME}) \((?P<columns>.+?)\)"
    rf"(?: CLUSTERED(?: BY \((?P<by>{_NAME})\))?(?: INTO (?P<shards>[1-9]\d*) SHARDS)?)?"
    r"(?: WITH \((?P<options>[^()]+)\))?"
)
_ALTER = re.compile(rf"ALTER TABLE (?P<table>{_NAME}\.{_NAME}) SET \((?P<options>[^()]+)\)")
_MARK = rf"(?:\?|\{{{_NAME} = \?(?:, {_NAME} = \?)*\}})"
_INSERT = re.compile(
    rf"INSERT INTO (?P<table>{_NAME}\.{_NAME}) \((?P<columns>[^()]+)\)"
    rf" VALUES \((?P<marks>{_MARK}(?:, {_MARK})*)\)"
    rf"(?: ON CONFLICT \((?P<key>{_NAME})\) DO UPDATE SET (?P<sets>.+))?"
)
_UPDATE = re.compile(
    rf"UPDATE (?P<table>{_NAME}\.{_NAME}) SET (?P<sets>{_NAME} = \?(?:, {_NAME} = \?)*)"
    rf" WHERE (?P<key>{_NAME}) = \?"
)
_SELECT = re.compile(
    rf"SELECT (?P<items>.+?) FROM (?P<table>{_NAME}\.{_NAME})(?: WHERE (?P<where>.+?))?"
    r"(?: GROUP BY (?P<group>.+?))?(?: ORDER BY (?P<order>.+?))?(?: LIMIT (?P<limit>\?|\d+))?"
)
_COUNT = re.compile(r"SELECT count\(\*\) FROM \((?P<query>.+?) ?\) AS counted")
_REFRESH = re.compile(rf"REFRESH TABLE (?P<tables>{_NAME}\.{_NAME}(?:, {_NAME}\.{_NAME})*)")
# A table that is named without a schema, or whose name is quoted.
_UNQUALIFIED = re.compile(
    rf"\b(CREATE TABLE|IF NOT EXISTS|INSERT INTO|UPDATE|FROM|ALTER TABLE) (?!IF )({_NAME})(?![\w.])"
)
_QUOTED_TABLE = re.compile(rf'\b({_NAME})\."({_NAME})"')
_TOKEN = re.compile(
    rf"""\s*(?:(?P<tag>{_NAME}\['{_NAME}'\])|(?P<quoted>"{_NAME}")|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"""
    r"""|(?P<text>'[^']*')|(?P<other>\d+|\?|<=|>=|[()=<>,*]))"""
)
_WORDS = {"AND", "OR", "IN", "AS", "DESC", "ASC"}
_FUNCTIONS = {"date_trunc", "max", "avg", "count"}
_UNITS = {"minute": 60_000, "hour": 3_600_000}


class Refused(Exception):  # noqa: N818  as the server says it
    """What CrateDB answers with an error; codes are those of its reference, chapter HTTP endpoint."""

    def __init__(self, code: int, message: str) -> None:
        """Keep the code."""
        self.code = code
        self.message = message
        super().__init__(message)


@dataclass(slots=True)
class Table:
    """A table: the kind of each column, the primary key, and what its parameters say."""

    columns: dict[str, str]
    key: tuple[str, ...]
    shards: int | None
    options: dict[str, str]
    clustered_by: str | None


@dataclass(slots=True)
class Answer:
    """What a statement gives."""

    columns: list[str] = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=lambda: [[]])
    count: int = 1


@dataclass
class Store:
    """All tables. Statements are done one at a time."""

    tables: dict[str, Table] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Open the database."""
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._lock = threading.Lock()

    def close(self) -> None:
        """Forget everything."""
        self._database.close()

    def run(self, statement: str, arguments: Sequence[Any], schema: str = "doc") -> Answer:
        """Do a statement; raise Refused if CrateDB would refuse it, or if it is not known here."""
        text = _QUOTED_TABLE.sub(r"\1.\2", " ".join(statement.split()))
        text = _UNQUALIFIED.sub(rf"\1 {schema}.\2", text)
        if text.count("?") != len(arguments):
            raise Refused(4000, "SQLParseException[arguments do not fit the placeholders]")
        with self._lock:
            for pattern, do in self._kinds().items():
                if match := pattern.fullmatch(text):
                    return do(match, arguments)
        raise Refused(4000, f"SQLParseException[line 1:1: not recognised: {text[:200]}]")

    def run_each(self, statement: str, rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
        """Do a bulk request: a result for each row of arguments."""
        text = " ".join(statement.split())
        match = _INSERT.fullmatch(text)
        if match is None:
            raise Refused(4000, "UnsupportedFeatureException[bulk: only INSERT is recognised here]")
        with self._lock:
            names = self._check_insert(match)
            checked = [self._check_row(match, names, row) for row in rows]
            try:
                self._store(match, names, checked)
            except sqlite3.IntegrityError:
                return [self._store_one(match, names, row) for row in checked]
        return [{"rowcount": 1} for _ in rows]

    def _kinds(self) -> Mapping[re.Pattern[str], Any]:
        return {
            re.compile("SELECT 1"): lambda *_: Answer(["1"], [[1]]),
            _CREATE: self._create,
            _ALTER: self._alter,
            _INSERT: self._insert,
            _UPDATE: self._update,
            _REFRESH: self._refresh,
            _FIND_FIELDS: self._find_fields,
            _FIND_TABLES: self._find_tables,
            _COUNT: self._count,
            _SELECT: self._select,
        }

    def _find(self, name: str) -> Table:
        if name in self.tables:
            return self.tables[name]
        schema, _, table = name.partition(".")
        if not any(known.startswith(f"{schema}.") for known in self.tables):
            raise Refused(4045, f"SchemaUnknownException[Schema '{schema}' unknown]")
        raise Refused(4041, f"RelationUnknown[Relation '{schema}.{table}' unknown]")

    def _create(self, match: re.Match[str], _: Sequence[Any]) -> Answer:
        table = read_table(match)
        name = match["table"]
        if name in self.tables:
            if not match["unless"]:
                raise Refused(4093, f"RelationAlreadyExists[Relation '{name}' already exists.]")
            return Answer(count=0)
        self.tables[name] = table
        # Without a type: to SQLite, a real number that is whole would be an integer, and −0.0 be 0.
        columns = [f'"{column}"' for column in table.columns]
        key = [f"PRIMARY KEY ({', '.join(table.key)})"] if table.key else []
        self._database.execute(f"CREATE TABLE {live(name)} ({', '.join([*columns, *key])})")
        self._database.execute(f"CREATE TABLE {seen(name)} ({', '.join(columns)})")
        return Answer()

    def _alter(self, match: re.Match[str], _: Sequence[Any]) -> Answer:
        table = self._find(match["table"])
        table.options = _read_options(match["options"], table.options)
        return Answer()

    def _check_insert(self, match: re.Match[str]) -> list[str]:
        table = self._find(match["table"])
        names = [name.strip('"') for name in match["columns"].split(", ")]
        for name in names:
            _require_column(name, {*table.columns, *_objects(table)})
        if len(_split(match["marks"])) != len(names):
            raise Refused(4000, "SQLParseException[columns and values differ in number]")
        if match["key"] and (match["key"],) != table.key:
            raise Refused(4000, f"SQLParseException[({match['key']}) is not the primary key]")
        for name in re.findall(rf"({_NAME}) = excluded\.", match["sets"] or ""):
            _require_column(name, set(table.columns) - set(table.key))
        return names

    def _check_row(self, match: re.Match[str], names: list[str], row: Sequence[Any]) -> list[Any]:
        table = self._find(match["table"])
        if len(row) != len(names):
            raise Refused(4000, "SQLParseException[a row of arguments does not fit the placeholders]")
        values: list[Any] = []
        for name, value in zip(names, row, strict=True):
            if name in table.columns:
                _check_value(name, table.columns[name], value)
                is_real = table.columns[name] == "DOUBLE" and value is not None
                values.append(float(value) if is_real else value)
            else:
                inner = [column.partition(".")[2] for column in _inside(table, name)]
                if not isinstance(value, dict) or not value.keys() <= set(inner):
                    raise Refused(4003, f"ColumnValidationException[Validation failed for {name}]")
                for key, part in value.items():
                    _check_value(f"{name}['{key}']", "VARCHAR", part)
                values += [value.get(key) for key in inner]
        return values

    def _store(self, match: re.Match[str], names: list[str], rows: list[list[Any]]) -> None:
        table = self._find(match["table"])
        columns = [
            column
            for name in names
            for column in ([name] if name in table.columns else _inside(table, name))
        ]
        listed = ", ".join(f'"{column}"' for column in columns)
        marks = ", ".join("?" * len(columns))
        conflict = f"ON CONFLICT ({match['key']}) DO UPDATE SET {match['sets']}" if match["key"] else ""
        with self._database:  # all rows or none
            self._database.executemany(
                f"INSERT INTO {live(match['table'])} ({listed}) VALUES ({marks}) {conflict}", rows
            )

    def _store_one(self, match: re.Match[str], names: list[str], row: list[Any]) -> dict[str, Any]:
        try:
            self._store(match, names, [row])
        except sqlite3.IntegrityError:
            return {"rowcount": -2, "error_message": _DUPLICATE}
        return {"rowcount": 1}

    def _insert(self, match: re.Match[str], arguments: Sequence[Any]) -> Answer:
        names = self._check_insert(match)
        row = _fill_marks(match["marks"], arguments)
        try:
            self._store(match, names, [self._check_row(match, names, row)])
        except sqlite3.IntegrityError as error:
            raise Refused(4091, _DUPLICATE) from error
        return Answer()

    def _update(self, match: re.Match[str], arguments: Sequence[Any]) -> Answer:
        table = self._find(match["table"])
        if (match["key"],) != table.key:
            raise Refused(4000, "SQLParseException[only updates by primary key are recognised here]")
        names = [part.partition(" ")[0] for part in match["sets"].split(", ")]
        for name, value in zip([*names, match["key"]], arguments, strict=True):
            _require_column(name, set(table.columns))
            _check_value(name, table.columns[name], value)
        if set(names) & set(table.key):
            raise Refused(4000, "ColumnValidationException[Updating a primary key is not supported]")
        text = f"UPDATE {live(match['table'])} SET {match['sets']} WHERE {match['key']} = ?"
        return Answer(count=self._database.execute(text, list(arguments)).rowcount)

    def _refresh(self, match: re.Match[str], _: Sequence[Any]) -> Answer:
        names = match["tables"].split(", ")
        for name in names:
            self._find(name)
        for name in names:
            self._database.execute(f"DELETE FROM {seen(name)}")
            self._database.execute(f"INSERT INTO {seen(name)} SELECT * FROM {live(name)}")
        return Answer(count=len(names))

    def _find_fields(self, _: re.Match[str], arguments: Sequence[Any]) -> Answer:
        table = self.tables.get(".".join(arguments))
        names = list(table.columns) if table else []
        return Answer(["column_name"], [[name] for name in names], len(names))

    def _find_tables(self, _: re.Match[str], arguments: Sequence[Any]) -> Answer:
        begin = f"{arguments[0]}."
        names = sorted(name.removeprefix(begin) for name in self.tables if name.startswith(begin))
        return Answer(["table_name"], [[name] for name in names], len(names))

    def _count(self, match: re.Match[str], _: Sequence[Any]) -> Answer:
        query = _SELECT.fullmatch(match["query"])
        if query is None:
            raise Refused(4000, f"SQLParseException[not recognised: {match['query'][:200]}]")
        return Answer(["count(*)"], [[self._select(query, ()).count]])

    def _select(self, match: re.Match[str], arguments: Sequence[Any]) -> Answer:
        name = match["table"]
        table = self._find(name)
        is_look_up = table.key and match["where"] == " AND ".join(f"{one} = ?" for one in table.key)
        aliases = set(re.findall(rf" AS ({_NAME})", match["items"]))
        parts = [f"SELECT {_translate(match['items'], table, aliases)}"]
        parts.append(f"FROM {live(name) if is_look_up else seen(name)}")
        for word, part in (("WHERE", "where"), ("GROUP BY", "group"), ("ORDER BY", "order")):
            if match[part]:
                known = set() if part == "where" else aliases
                parts.append(f"{word} {_translate(match[part], table, known)}")
        if match["limit"]:
            parts.append(f"LIMIT {match['limit']}")
        found = self._database.execute(" ".join(parts), list(arguments))
        columns = [column[0] for column in found.description]
        rows = [list(row) for row in found.fetchall()]
        return Answer(columns, rows, len(rows))


_FIND_FIELDS = re.compile(
    r"SELECT column_name FROM information_schema\.columns "
    r"WHERE table_schema = \? AND table_name = \? ORDER BY ordinal_position"
)
_FIND_TABLES = re.compile(
    r"SELECT table_name FROM information_schema\.tables WHERE table_schema = \? "
    r"AND table_type = 'BASE TABLE' ORDER BY table_name"
)
_DUPLICATE = "DuplicateKeyException[A document with the same primary key exists already]"


def live(name: str) -> str:
    """Name the table of all rows."""
    return f'"live {name}"'


def seen(name: str) -> str:
    """Name the table of the rows that were there at the last refresh."""
    return f'"seen {name}"'


def read_table(match: re.Match[str]) -> Table:
    """Read a CREATE TABLE that was recognised; raise Refused for what the reference does not have."""
    columns: dict[str, str] = {}
    key: tuple[str, ...] = ()
    for part in _split(match["columns"]):
        if found := re.fullmatch(rf"PRIMARY KEY \(({_NAME}(?:, {_NAME})*)\)", part):
            key = tuple(found[1].split(", "))
        elif column := _COLUMN.fullmatch(part):
            columns |= _read_column(column)
            key = (column["name"],) if column["key"] else key
        else:
            raise Refused(4000, f"SQLParseException[no column definition: {part[:100]}]")
    for name in (*key, *filter(None, [match["by"]])):
        _require_column(name, set(columns))
    if key and match["by"] and match["by"] not in key:
        raise Refused(4000, "Clustered by column must be part of the primary key")
    shards = int(match["shards"]) if match["shards"] else None
    return Table(columns, key, shards, _read_options(match["options"], {}), match["by"])


def _read_column(column: re.Match[str]) -> dict[str, str]:
    if not column["inner"]:
        return {column["name"]: _TYPES[column["type"]]}
    inner = [re.fullmatch(rf"({_NAME}) TEXT", part) for part in column["inner"].split(", ")]
    if not all(inner):
        raise Refused(4000, f"SQLParseException[no inner columns: {column['inner'][:100]}]")
    return {f"{column['name']}.{one[1]}": "VARCHAR" for one in inner if one}


def _read_options(text: str | None, before: Mapping[str, str]) -> dict[str, str]:
    written = dict(part.replace('"', "").split(" = ") for part in text.split(", ")) if text else {}
    options = {**before, **written}
    for name, value in options.items():
        if name not in {"number_of_replicas", "write.wait_for_active_shards", "refresh_interval"}:
            raise Refused(4000, f'IllegalArgumentException[unknown setting "{name}"]')
        if not value.isdigit():
            raise Refused(4000, f'IllegalArgumentException[Invalid value for "{name}": {value}]')
    copies = int(options.get("number_of_replicas", 0)) + 1
    if not 1 <= int(options.get("write.wait_for_active_shards", 1)) <= copies:
        raise Refused(4000, "IllegalArgumentException[wait_for_active_shards exceeds the copies]")
    return options


def _split(text: str) -> list[str]:
    parts, depth, begin = [], 0, 0
    for place, sign in enumerate(text):
        depth += {"(": 1, ")": -1, "{": 1, "}": -1}.get(sign, 0)
        if sign == "," and not depth:
            parts.append(text[begin:place].strip())
            begin = place + 1
    return [*parts, text[begin:].strip()]


def _fill_marks(marks: str, arguments: Sequence[Any]) -> list[Any]:
    """Return the values that an INSERT stores: arguments, and objects of arguments."""
    left = iter(arguments)
    return [
        next(left) if mark == "?" else {key: next(left) for key in re.findall(rf"({_NAME}) =", mark)}
        for mark in _split(marks)
    ]


def _objects(table: Table) -> set[str]:
    return {name.partition(".")[0] for name in table.columns if "." in name}


def _inside(table: Table, name: str) -> list[str]:
    return [column for column in table.columns if column.startswith(f"{name}.")]


def _require_column(name: str, known: set[str]) -> None:
    if name not in known:
        raise Refused(4043, f"ColumnUnknownException[Column {name} unknown]")


def _check_value(name: str, kind: str, value: Any) -> None:  # noqa: ANN401  JSON
    fits: type | tuple[type, ...] = {"VARCHAR": str, "BIGINT": int, "DOUBLE": (int, float)}[kind]
    if value is not None and (isinstance(value, bool) or not isinstance(value, fits)):
        raise Refused(4003, f"ColumnValidationException[Validation failed for {name}: {value!r:.50}]")


def _translate(text: str, table: Table, aliases: set[str]) -> str:
    """Turn a part of a query into SQLite's words, and refuse what is no column, alias or function."""
    for unit, size_ms in _UNITS.items():
        text = text.replace(f"date_trunc('{unit}', ts)", f"(ts / {size_ms} * {size_ms})")
    words, place = [], 0
    known = {*table.columns, *aliases, *_WORDS, *_FUNCTIONS}
    while place < len(text):
        if text[place] in " /":
            words.append(text[place])
            place += 1
            continue
        token = _TOKEN.match(text, place)
        if token is None:
            raise Refused(4000, f"SQLParseException[mismatched input at: {text[place : place + 30]}]")
        place = token.end()
        if token["tag"]:
            name = token["tag"].replace("['", ".").removesuffix("']")
            _require_column(name, set(table.columns))
            words.append(f'"{name}"')
        else:
            if word := (token["word"] or (token["quoted"] or "").strip('"')):
                _require_column(word, known)
            words.append(token[0])
    return "".join(words)
