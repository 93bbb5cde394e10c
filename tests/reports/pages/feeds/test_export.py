"""The export: read back by DuckDB, held against its own schema, equal to what was judged."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from made_up_nights import KEY, Course, Nights, hostile_course, judge_nights
from pydantic import TypeAdapter, ValidationError

from analysis.detection.series import Point
from analysis.judging.judgement import Judgement
from perf.model.errors import SiteError
from reports.pages.feeds.export import (
    POINTS_SCHEMA_PATH,
    SCHEMA_PATH,
    ExportedJudgement,
    PointsDocument,
    build_document,
    build_points,
    group_series,
    newest_points,
    points_of_year,
    points_path,
    write_document,
    write_schemas,
)
from reports.pages.feeds.parquet import open_writer
from reports.pages.feeds.tables import FORMAT, TABLES, list_columns

DOCS = Path(__file__).parents[4] / "docs/notifications.md"
READ = replace(KEY, operation="read", metric="response_time", statistic="p99")


@pytest.fixture(scope="module")
def nights() -> Nights:
    course = Course(key=READ, at=19, drop=1.3, experiment="cassandra-sensor-read")
    return judge_nights(27, (Course(at=18, back=23), course, hostile_course()))


@pytest.fixture(scope="module")
def files(nights: Nights, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return all tables as Parquet files in a directory."""
    place = tmp_path_factory.mktemp("export")
    document = write_document(build_document(nights.judgement, nights.heads))
    with open_writer() as writer:
        for table in TABLES:
            if table != "points":
                (place / f"{table}.parquet").write_bytes(writer.write_table(table, document))
        for number, (name, judged) in enumerate(
            group_series(nights.judgement.series, nights.heads).items()
        ):
            points = writer.write_points(build_points(name, judged, points_of_year(2026)))
            (place / f"points-{number}.parquet").write_bytes(points)
    return place


def test_any_place_will_do_for_temporary_files(
    nights: Nights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = write_document(build_document(nights.judgement, nights.heads))
    for name in ("it's", "[1]", "a*?"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / name))
        with open_writer() as writer:
            assert writer.write_table("series", document)


def test_what_duckdb_refuses_is_reported_in_a_sentence() -> None:
    with (
        pytest.raises(SiteError, match=r"the export cannot be written: .*; give room"),
        open_writer() as to,
    ):
        to.write_table("series", b"no document")


def ask(files: Path, query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as db:
        return db.execute(query.replace("@", f"{files}/")).fetchall()


def test_every_point_of_every_series_is_there_bit_by_bit(files: Path, nights: Nights) -> None:
    rows = ask(
        files,
        "SELECT series, position, trial, value, started_at, release_ordinal"
        " FROM '@points-*.parquet' JOIN '@series.parquet' USING (series) ORDER BY series, position",
    )
    stems = {one.series: place for place, one in enumerate(build(nights).series)}
    assert len(rows) == 3 * 27
    for series, position, trial, value, started_at, ordinal in rows:
        point = nights.judgement.series[stems[series]].series.points[position]
        assert (trial, value, ordinal) == (point.trial, point.value, point.release.ordinal)
        assert started_at == point.started_at.replace(tzinfo=None)


def test_json_holds_the_newest_points_of_each_series_and_says_from_where(nights: Nights) -> None:
    whole, newest = (
        build_points("a", nights.judgement.series, newest_points(most)) for most in (1_000, 5)
    )
    assert [one.first for one in whole.points] == [0, 0, 0]
    assert [one.first for one in newest.points] == [22, 22, 22]
    for one, of_all in zip(newest.points, whole.points, strict=True):
        assert one.values == of_all.values[22:]
        trials = [newest.trials[place].trial for place in one.trials]
        assert trials == [whole.trials[place].trial for place in of_all.trials[22:]]
    assert len(newest.trials) == 3 * 5


def test_each_point_is_in_the_file_of_the_year_that_measured_it(nights: Nights, tmp_path: Path) -> None:
    """Also where a release of last year is measured again: its points lie among those of that year."""
    judged = [
        replace(one, series=replace(one.series, points=tuple(map(_in_two_years, one.series.points))))
        for one in nights.judgement.series
    ]
    with open_writer() as writer:
        for year in (2025, 2026, 2027):
            points = build_points("a", judged, points_of_year(year))
            (tmp_path / f"{year}.parquet").write_bytes(writer.write_points(points))
    rows = ask(
        tmp_path,
        "SELECT series, position, value, year(started_at), parse_filename(filename, true)"
        " FROM read_parquet('@*.parquet', filename = true) ORDER BY series, position",
    )
    whole = sorted(build_points("a", judged, newest_points(1_000)).points, key=lambda one: one.series)
    assert [row[:3] for row in rows] == [
        (row.series, position, value) for row in whole for position, value in enumerate(row.values)
    ]
    assert {(year, name) for *_, year, name in rows} == {(2025, "2025"), (2026, "2026")}


def _in_two_years(point: Point) -> Point:
    is_old = point.started_at.day % 3 == 0
    return replace(point, started_at=point.started_at.replace(year=2025)) if is_old else point


def build(nights: Nights) -> Any:  # noqa: ANN401  the document
    return build_document(nights.judgement, nights.heads)


@pytest.mark.parametrize("table", [name for name in TABLES if name != "points"])
def test_each_table_is_the_same_in_parquet_and_in_json(table: str, files: Path, nights: Nights) -> None:
    rows = getattr(build(nights), table)
    names = [one.name for one in list_columns(TABLES[table])]
    assert rows
    assert ask(files, f"SELECT * FROM '@{table}.parquet'") == [  # noqa: S608  our own name
        tuple(getattr(row, name) for name in names) for row in rows
    ]


def test_the_story_of_an_incident_can_be_followed_through_the_tables(files: Path) -> None:
    ((outcome, change, state, mendings),) = ask(
        files,
        "SELECT i.outcome, c.relative_change, c.state,"
        " (SELECT count(*) FROM '@change_points.parquet' m WHERE m.incident = i.incident"
        "  AND m.is_mending)"
        " FROM '@incidents.parquet' i JOIN '@change_points.parquet' c USING (incident)"
        " WHERE i.standing = 'mended' AND c.is_lead",
    )
    assert (outcome, state, mendings) == ("regressed", "confirmed", 1)
    assert change == pytest.approx(-0.14, abs=0.02)


def test_each_file_says_its_format_and_what_its_columns_mean(files: Path) -> None:
    for path in files.iterdir():
        table = path.stem.partition("-")[0]
        reported = dict(
            ask(files, f"SELECT decode(key), decode(value) FROM parquet_kv_metadata('@{path.name}')")  # noqa: S608
        )
        assert reported.pop("knickpoint_format") == str(FORMAT)
        assert list(reported) == [one.name for one in list_columns(TABLES[table])]
        assert all(reported.values())


def test_equal_judgements_make_equal_files(nights: Nights) -> None:
    document = write_document(build(nights))
    points = build_points("a", nights.judgement.series, newest_points(1_000))
    with open_writer() as one, open_writer() as other:
        assert one.write_table("series", document) == other.write_table("series", document)
        assert one.write_points(points) == other.write_points(points) == one.write_points(points)


def test_json_is_read_back_as_it_was_and_nothing_else_is_taken(nights: Nights) -> None:
    document = build(nights)
    content = write_document(document)
    assert TypeAdapter(ExportedJudgement).validate_json(content) == document
    points = build_points("a", nights.judgement.series, newest_points(1_000))
    assert TypeAdapter(PointsDocument).validate_json(write_document(points)) == points
    for wrong in ({"format": 2}, {"surplus": 1}, {"outcome": "fine"}, {"series": [{}]}):
        with pytest.raises(ValidationError):
            TypeAdapter(ExportedJudgement).validate_json(
                json.dumps({**json.loads(content), **wrong}).encode()
            )


def test_the_documents_follow_their_json_schemas(nights: Nights) -> None:
    schemas = {path: json.loads(text) for path, text in write_schemas().items()}
    for path, document in (
        (SCHEMA_PATH, build(nights)),
        (POINTS_SCHEMA_PATH, build_points("a", nights.judgement.series, newest_points(1_000))),
    ):
        schema = schemas[path]
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        value = json.loads(write_document(document))
        assert list(find_faults(value, schema, schema)) == []
        assert list(find_faults({**value, "format": 3}, schema, schema))
        assert list(find_faults({**value, "surplus": 3}, schema, schema))


KNOWN = {
    "$schema", "$defs", "$ref", "title", "description", "unit", "type", "properties", "required",
    "additionalProperties", "items", "anyOf", "const", "enum", "format",
}  # fmt: skip
TYPES = {"string": str, "integer": int, "boolean": bool, "null": type(None), "array": list}


def find_faults(value: Any, schema: Any, root: Any) -> list[str]:  # noqa: ANN401  JSON
    """Hold a value against the part of JSON Schema 2020-12 that our schemas use."""
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    faults: list[str] = []
    if "$ref" in schema:
        return find_faults(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root)
    if "anyOf" in schema:
        tried = [find_faults(value, one, root) for one in schema["anyOf"]]
        return [] if [] in tried else tried[0]
    if ("const" in schema and value != schema["const"]) or value not in schema.get("enum", [value]):
        faults.append(f"{value!r} is not allowed")
    kind = schema.get("type")
    if kind == "object":
        missing = set(schema["required"]) - set(value)
        surplus = set(value) - set(schema["properties"])
        assert schema["additionalProperties"] is False
        faults += [f"{one} is wrong" for one in missing | surplus]
        for name in set(value) & set(schema["properties"]):
            faults += find_faults(value[name], schema["properties"][name], root)
    elif kind == "array":
        faults += [fault for one in value for fault in find_faults(one, schema["items"], root)]
    elif kind == "number":
        faults += [] if isinstance(value, int | float) else [f"{value!r} is no number"]
    elif kind and not isinstance(value, TYPES[kind]):
        faults.append(f"{value!r} is no {kind}")
    return faults


def test_nothing_measured_is_an_export_too() -> None:
    empty = Judgement(series=())
    document = build_document(empty, {})
    assert TypeAdapter(ExportedJudgement).validate_json(write_document(document)) == document
    with open_writer() as writer:
        for table in TABLES:
            if table != "points":
                assert writer.write_table(table, write_document(document))[:4] == b"PAR1"


def test_paths_are_safe_for_any_name() -> None:
    for name in ("cassandra-sensor-write", "../../etc/passwd", "a/b", "", "😀"):
        assert re.fullmatch(r"data/export/points/[A-Za-z0-9._+-]+\.json", points_path(name, "json"))


def test_the_documentation_explains_each_column_with_its_unit() -> None:
    text = DOCS.read_text()
    for name, table in TABLES.items():
        section = text.split(f"\n#### `{name}`")[1].split("\n#")[0]
        rows = [
            f"| `{one.name}` | {one.sql_type} | {one.about} | {one.unit} |".replace("|  |", "| |")
            for one in list_columns(table)
        ]
        assert [line for line in section.splitlines() if line.startswith("| `")] == rows
