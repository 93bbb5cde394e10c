"""Plain JSON: one object per value, keys as in `plain.COLUMNS`; a list of them, or one per line."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from perf.history.importers.plain import read_rows
from perf.history.importers.run import File, Hints, Run, Unreadable

_BETWEEN = re.compile(r"[\s,\[\]]*")
"""Both forms are objects with something between them."""


def read(file: File, _hints: Hints) -> tuple[Run, ...]:
    """Read all runs of a list."""
    text = file.text.removeprefix("\ufeff")
    if text.lstrip()[:1] == "[":
        _refuse_broken(file, text)
    return read_rows(file.name, list(_objects(file, text)))


def _objects(file: File, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Give each object with the line that it begins in, which the whole list at once would not tell."""
    decoder = json.JSONDecoder()
    position, line, counted = 0, 1, 0
    while (position := _end_of_gap(text, position)) < len(text):
        line, counted = line + text.count("\n", counted, position), position
        try:
            value, position = decoder.raw_decode(text, position)
        except ValueError as error:
            raise Unreadable(f"{file.name}, line {line}: not JSON: {error}") from error
        if not isinstance(value, dict):
            raise Unreadable(f"{file.name}, line {line}: a row must be an object, not {value!r}")
        yield line, value


def _refuse_broken(file: File, text: str) -> None:
    try:
        json.loads(text)
    except ValueError as error:
        raise Unreadable(f"{file.name}: not JSON: {error}") from error


def _end_of_gap(text: str, position: int) -> int:
    match = _BETWEEN.match(text, position)
    return match.end() if match else position
