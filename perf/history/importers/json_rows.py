"""Plain JSON: one object per value, keys as in `plain.COLUMNS`; a list of them, or one per line."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from perf.history.importers.plain import read_rows
from perf.history.importers.run import File, ForeignRun, ImportHints, Unreadable, end_if_many, show

_BETWEEN = re.compile(r"[\s,\[\]]*")
"""Both forms are objects with something between them."""
_LONGEST_WHOLE = 400
"""Digits; a number of more is none that a computer counts with."""


def read(file: File, _hints: ImportHints) -> tuple[ForeignRun, ...]:
    """Read all runs of a list."""
    text = file.text.removeprefix("\ufeff")
    if text.lstrip()[:1] == "[":
        _refuse_broken(file, text)
    return read_rows(file.name, list(_objects(file, text)))


def _objects(file: File, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Give each object with the line that it begins in, which the whole list at once would not tell."""
    problems: list[str] = []
    doubled: list[str] = []
    decoder = _decoder(doubled)
    position, line, counted = 0, 1, 0
    while (position := _end_of_gap(text, position)) < len(text):
        line, counted = line + text.count("\n", counted, position), position
        try:
            value, position = decoder.raw_decode(text, position)
        except RecursionError as error:
            raise Unreadable(f"{file.name}, line {line}: nested too deeply to be a row") from error
        except ValueError as error:
            raise Unreadable(f"{file.name}, line {line}: not JSON: {error}") from error
        if not isinstance(value, dict):
            problems.append(f"{file.name}, line {line}: a row must be an object, not {show(value)}")
            end_if_many(problems, file.name)
            continue
        problems += (
            f"{file.name}, line {line}: the key {show(key)} is written twice" for key in doubled
        )
        end_if_many(problems, file.name)
        doubled.clear()
        yield line, value
    if problems:
        raise Unreadable(*problems)


def _refuse_broken(file: File, text: str) -> None:
    try:
        _decoder([]).decode(text)
    except RecursionError as error:
        raise Unreadable(f"{file.name}: nested too deeply to be a list of rows") from error
    except ValueError as error:
        raise Unreadable(f"{file.name}: not JSON: {error}") from error


def _decoder(doubled: list[str]) -> json.JSONDecoder:
    """Give a reader of JSON that notes the keys that an object has twice."""

    def unite(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        item = dict(pairs)
        if len(item) < len(pairs):
            doubled.extend(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        return item

    return json.JSONDecoder(
        object_pairs_hook=unite,
        # Python refuses to read a number of thousands of digits, with advice for programmers.
        parse_int=lambda text: int(text) if len(text) <= _LONGEST_WHOLE else float(text),
    )


def _end_of_gap(text: str, position: int) -> int:
    match = _BETWEEN.match(text, position)
    return match.end() if match else position
