"""Plain CSV: one value per row, the first row names the columns (`plain.COLUMNS`); comma, UTF-8."""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from io import StringIO

from perf.history.importers.plain import read_rows
from perf.history.importers.run import File, ForeignRun, ImportHints, Unreadable, end_if_many
from perf.model.shown import printable

_NEEDED = ("time", "metric", "value")
_MOST_NAMED = 10


def read(file: File, _hints: ImportHints) -> tuple[ForeignRun, ...]:
    """Read all runs of a table."""
    reader = csv.DictReader(StringIO(file.text.removeprefix("\ufeff"), newline=""), strict=True)
    try:
        names = [name.strip() for name in reader.fieldnames or ()]
        columns = Counter(names)
        if missing := [name for name in _NEEDED if name not in names]:
            raise Unreadable(f"{file.name}, line 1: there is no column {', '.join(missing)}")
        if doubled := sorted(name for name in columns if columns[name] > 1):
            listed = ", ".join(map(printable, doubled[:_MOST_NAMED]))
            raise Unreadable(f"{file.name}, line 1: there are two columns {listed}")
        reader.fieldnames = names
        rows = list(_rows(file, reader))
    except csv.Error as error:
        raise Unreadable(f"{file.name}, line {reader.line_num}: not CSV: {error}") from error
    return read_rows(file.name, rows)


def _rows(file: File, reader: "csv.DictReader[str]") -> Iterator[tuple[int, Mapping[str, str]]]:
    wrong: list[str] = []
    for row in reader:
        if None in row or None in row.values():  # DictReader's marks for too many and too few
            wrong.append(
                f"{file.name}, line {reader.line_num}: it has not as many cells as the first line"
            )
            end_if_many(wrong, file.name)
        else:
            yield reader.line_num, {name: cell.strip() for name, cell in row.items()}
    if wrong:
        raise Unreadable(*wrong)
