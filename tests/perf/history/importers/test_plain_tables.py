"""Plain tables, as CSV and as JSON: rows to runs, units, iterations, and what is refused where."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from perf.history.importers.formats import FORMATS
from perf.history.importers.run import File, ForeignRun, Unreadable

IMPORTS = Path(__file__).parents[3] / "data" / "imports"
HEAD = "time,release,system,workload,metric,value,iteration,statistic,unit,disk\n"


def read(kind: str, text: str) -> tuple[ForeignRun, ...]:
    """Read all runs of a text."""
    return FORMATS[kind].read(File(name="file", text=text))


def refuse(kind: str, text: str) -> tuple[str, ...]:
    """Return what is said of a bad text."""
    with pytest.raises(Unreadable) as caught:
        read(kind, text)
    return caught.value.problems


def test_rows_of_one_time_are_one_run() -> None:
    runs = read("csv", (IMPORTS / "results.csv").read_text())
    assert [
        (run.stated.release, run.stated.line, run.stated.ordinal, len(run.samples)) for run in runs
    ] == [
        ("5.0.4", "5.0", 4, 2),
        ("5.0.4", "5.0", 4, 2),
        ("5.0.5", "5.0", 5, 1),
    ]
    assert [run.samples[-1].value for run in runs] == [8.21, 8.05, 10190.0]
    assert [fact.value for run in runs for fact in run.settings] == ["6.1.0-17", "6.1.0-18", "6.1.0-18"]
    assert runs[0].stated.started_at == datetime(2026, 2, 13, 1, tzinfo=UTC)
    assert len({run.identity for run in runs}) == 3


def test_the_same_rows_are_the_same_run_in_both_formats_and_in_any_order() -> None:
    text = (IMPORTS / "results.csv").read_text()
    head, *rows = text.splitlines()
    backwards = "\n".join([head, *reversed(rows)])
    objects = [dict(zip(head.split(","), row.split(","), strict=True)) for row in rows]
    by_line = "\n".join(map(json.dumps, objects))
    found = [{run.identity for run in read("csv", one)} for one in (text, backwards)]
    found += [{run.identity for run in read("json", one)} for one in (json.dumps(objects), by_line)]
    assert all(one == found[0] for one in found)


def test_a_mean_over_iterations_is_made_and_nothing_else() -> None:
    first, second = read("json", (IMPORTS / "results.json").read_text())
    assert [(sample.iteration, sample.value) for sample in first.samples] == [
        (None, 72),
        (1, 71),
        (2, 73),
    ]
    assert [(fact.name, fact.value) for fact in second.settings] == [("pages", "8 kB")]
    row = (
        '{"time": 1771034400, "metric": "duration", "value": %d, "statistic": "p99", "iteration": %d}\n'
    )
    (problem,) = refuse("json", row % (1, 1) + row % (2, 2))
    assert problem.startswith("file, line 1: duration p99 of all has iterations, but no value over all")


def test_all_bad_rows_are_reported_at_once_with_their_lines() -> None:
    rows = (
        "2026-02-13T01:00:00Z,1,db,w,throughput,100,,,,ssd",
        "yesterday,1,db,w,throughput,100,,,,ssd",
        "2026-02-13T02:00:00Z,1,db,w,throughput,fast,,,,ssd",
        "2026-02-13T02:00:00Z,1,db,w,throughput,nan,,,,ssd",
        "2026-02-13T03:00:00Z,1,db,w,latency,1,,,,ssd",
        "2026-02-13T04:00:00Z,1,db,w,duration,1,,,rows,ssd",
        "2026-02-13T05:00:00Z,1,db,w,duration,1,0,,ms,ssd",
        "2026-02-13T01:00:00Z,1,db,w,throughput,101,,,,ssd",
        "2026-02-13T01:00:00Z,1,db,w,duration,101,,,,hdd",
    )
    text = HEAD + "\n".join(rows)
    problems = refuse("csv", text)
    lines = [int(problem.split("line ")[1].split(":")[0]) for problem in problems]
    assert lines == [3, 4, 5, 6, 7, 8, 9, 10]
    assert "'latency' is not one of throughput, response_time" in problems[3]
    assert "must be ns, us" in problems[4]
    assert "was there already: file, line 2" in problems[6]
    assert "disk is 'hdd', but 'ssd' earlier" in problems[7]


def test_a_table_without_its_columns_or_with_ragged_rows_is_refused() -> None:
    assert refuse("csv", "time,value\n") == ("file, line 1: there is no column metric",)
    assert refuse("csv", "time,metric,value,value\n") == ("file, line 1: there are two columns value",)
    problems = refuse("csv", "time,metric,value\n1,score\n1,score,2,3\n")
    assert [problem[:13] for problem in problems] == ["file, line 2:", "file, line 3:"]


def test_json_that_is_none_is_refused_with_its_line() -> None:
    assert refuse("json", '{"time": 1}\n{"time": \n')[0].startswith("file, line 2: not JSON")
    assert "line 3" in refuse("json", '[{"time": 1},\n\n{"time": ]')[0]
    assert refuse("json", "[1]") == ("file, line 1: a row must be an object, not 1",)
    assert refuse("json", "[]") == ("file: there are no rows",)


@pytest.mark.parametrize(
    ("unit", "value"),
    [("ns", 2e-6), ("us", 0.002), ("µs", 0.002), ("ms", 2.0), ("s", 2000.0), ("", 2.0)],
)
def test_times_of_any_unit_become_milliseconds(unit: str, value: float) -> None:
    (run,) = read("csv", HEAD + f"1771034400,1,db,w,service_time,2,,p99,{unit},\n")
    assert [sample.value for sample in run.samples] == [pytest.approx(value)]
