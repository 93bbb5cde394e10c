"""Series of any origin in one JSON file, and what was found in them. Pure: text in, text out.

A null is a missing trial. It is left out before anything is judged, never filled; all indexes in what
is written count the values of the file, nulls included. docs/foreign-series.md describes the formats.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from annotated_types import Interval, MinLen
from pydantic import AllowInfNan, ConfigDict, Strict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from analysis.detection.alerts import Alert
from analysis.detection.detection import ChangeState, Drift, SpreadChange
from analysis.detection.verdict import Outcome
from perf.model.errors import InputError
from perf.model.metrics import LARGEST, Better

MOST_BYTES = 128 * 1024**2
"""Of a file: a million series of ten values have 122 MB, and take ten times that."""
_MOST_PROBLEMS = 1000
"""Whoever has more has another file in hand than was meant."""
_MOST_SHOWN = 60
"""Characters of a value in a message."""
_MOST_NAMED = 10
_BEYOND_ASCII = re.compile(r"[^\n -~]")
_Value: TypeAlias = Annotated[
    float,
    Strict(),
    AllowInfNan(False),  # noqa: FBT003  pydantic's own
    Interval(ge=-LARGEST, le=LARGEST),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSeries:
    """Values in order, oldest first, None where a trial is missing.

    Other keys may be there and are left alone: each of these must be, so a slip still shows.
    """

    __pydantic_config__ = ConfigDict(extra="ignore")
    name: Annotated[str, Strict(), MinLen(1)]
    better: Better
    values: tuple[_Value | None, ...]

    @property
    def known(self) -> tuple[int, ...]:
        """Return the indexes of the values that are there, ascending."""
        return tuple(index for index, value in enumerate(self.values) if value is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SeriesFile:
    __pydantic_config__ = ConfigDict(extra="ignore")
    series: tuple[ForeignSeries, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundChange:
    """A change: `index` is that of the first value after it, `before` and `after` are mean levels."""

    index: int
    state: ChangeState
    before: float
    after: float
    relative_change: float
    p_value: float
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFindings:
    """What is to be seen in a series today; the noise is None where it is not known."""

    name: str
    changes: tuple[FoundChange, ...] = ()
    noise_floor: float | None = None
    minimum_detectable_effect: float | None = None
    drifts: tuple[Drift, ...] = ()
    spreads: tuple[SpreadChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedSeries:
    """The alerts of a series whose nights were replayed; night numbers are indexes of values."""

    name: str
    alerts: tuple[Alert, ...]


_FRAME, _SERIES, _NUMBER = TypeAdapter(_SeriesFile), TypeAdapter(ForeignSeries), TypeAdapter(_Value)
_FINDINGS = TypeAdapter(dict[str, tuple[FileFindings, ...]])


def parse_series(path: Path, content: bytes) -> tuple[ForeignSeries, ...]:
    """Read the series of a file.

    Raises:
        InputError: it is no such file; carries every problem with series, index and value.

    """
    problems: list[str] = []
    try:
        tree = json.loads(content, object_pairs_hook=lambda pairs: _unique(pairs, problems))
    except RecursionError as error:
        raise InputError(path, ["nested too deeply to be a file of series"]) from error
    except ValueError as error:
        what = f"not JSON: {error}" if content.strip() else "the file is empty"
        raise InputError(path, [f'{what}; write {{"series": [{{"name": …}}, …]}}']) from error
    found: list[ForeignSeries] = []
    problems += islice(chain(_repeated_names(tree), _read_frame(tree, found)), _MOST_PROBLEMS + 1)
    if not found and not problems:
        problems.append("series is empty; give at least one")
    if len(problems) > _MOST_PROBLEMS:
        problems[_MOST_PROBLEMS:] = ["the rest of the file was not read"]
    if problems:
        raise InputError(path, problems)
    return tuple(found)


def _read_frame(tree: Any, found: list[ForeignSeries]) -> Iterator[str]:  # noqa: ANN401  any JSON
    """Put the series of a tree into `found`, and say what is wrong, one value after the other.

    At once, pydantic would make an object of hundreds of bytes for each of millions of bad values.
    """
    listed = tree.get("series") if isinstance(tree, dict) else None
    yield from _try(_FRAME, {"series": []} if isinstance(listed, list) else tree, tree, ())[1]
    for number, item in enumerate(listed if isinstance(listed, list) else ()):
        values = item.get("values") if isinstance(item, dict) else None
        bare = {**item, "values": []} if isinstance(values, list) else item
        series, faults = _try(_SERIES, bare, tree, ("series", number))
        yield from faults
        is_sound = series is not None
        for index, value in enumerate(values if isinstance(values, list) else ()):
            is_plain = type(value) in {float, int} and -LARGEST <= value <= LARGEST
            if not is_plain and value is not None:
                is_sound = False
                yield from _try(_NUMBER, value, tree, ("series", number, "values", index))[1]
        if is_sound and series and isinstance(values, list):
            known = (value if value is None else float(value) for value in values)
            found.append(ForeignSeries(name=series.name, better=series.better, values=tuple(known)))


def _try(
    reader: TypeAdapter[Any],
    value: object,
    tree: Any,  # noqa: ANN401  any JSON
    place: tuple[str | int, ...],
) -> tuple[Any, tuple[str, ...]]:
    """Return what is read of a value at a place of the tree, and else what is wrong with it."""
    try:
        return reader.validate_python(value), ()
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False)
    return None, tuple(_sentence(tree, {**one, "loc": (*place, *one["loc"])}) for one in details)


def _unique(pairs: Sequence[tuple[str, Any]], problems: list[str]) -> dict[str, Any]:
    """Make an object of its pairs, and note the keys that are written twice in it."""
    item = dict(pairs)
    if len(item) < len(pairs) and len(problems) <= _MOST_PROBLEMS:
        where = f"series {_show(item['name'])}: " if "name" in item else ""
        twice = (key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        problems.extend(f"{where}the key {_show(key)} is written twice; keep one" for key in twice)
    return item


def _repeated_names(tree: object) -> Iterator[str]:
    items = tree.get("series") if isinstance(tree, dict) else None
    places: dict[str, list[str]] = {}
    for number, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, dict) and isinstance(item.get("name"), str):
            places.setdefault(item["name"], []).append(f"series[{number}]")
    for name, of_name in places.items():
        if len(of_name) > 1:
            more = f" and {len(of_name) - _MOST_NAMED} more" if len(of_name) > _MOST_NAMED else ""
            first = ", ".join(of_name[:_MOST_NAMED]) + more
            yield f"the name {_show(name)} is given to {first}; each series needs its own"


_FIXES = {  # by pydantic's kind of error
    "float_type": "it must be a finite number, or null for a missing trial",
    "finite_number": "it must be a finite number, or null for a missing trial",
    "greater_than_equal": f"it must be from {-LARGEST:g} to {LARGEST:g}; choose another unit",
    "less_than_equal": f"it must be from {-LARGEST:g} to {LARGEST:g}; choose another unit",
    "string_type": "it must be text in quotes",
    "tuple_type": "it must be a list",
    "dataclass_type": "it must be an object with the keys {keys}",
    "enum": 'write "higher" or "lower": which is good news?',
}


def _sentence(tree: Any, error: ErrorDetails) -> str:  # noqa: ANN401  any JSON
    """Describe what is wrong with one value: series, place, value, and what to write instead."""
    steps = error["loc"]
    keys = ", ".join(("series",) if not steps else ("name", "better", "values"))
    where, subject = "", "the file"
    if len(steps) > 1:
        item = tree["series"][steps[1]]
        name = item.get("name") if isinstance(item, dict) else None
        subject = f"series[{steps[1]}]"
        where = f"series {_show(name)}: " if isinstance(name, str) and steps[2:] else ""
        rest = f"{steps[2]}" if len(steps) > 2 else ""  # noqa: PLR2004  a key of the series
        rest += "".join(f"[{step}]" for step in steps[3:])
        subject = (rest if where else f"{subject}.{rest}") if rest else subject
    elif steps:
        subject, keys = str(steps[0]), "series" if steps[0] != "series" else keys
    if error["type"] == "missing":
        return f"{where}the key {subject} is missing; add it"
    if error["type"] == "string_too_short":
        return f"{where}{subject} is empty; each series needs its own"
    fix = _FIXES.get(error["type"], error["msg"]).format(keys=keys)
    return f"{where}{subject} is {_show(error['input'])}; {fix}"


def _show(value: object) -> str:
    """Write a value as JSON does, in plain ASCII that no terminal obeys, and not too long."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"


def write_findings(findings: Sequence[FileFindings]) -> bytes:
    """Return the file of changes; a number that is not finite, such as a change from zero, is null."""
    text = _FINDINGS.dump_json({"series": tuple(findings)}, indent=2).decode()
    # Only in names is anything else than ASCII, and there a terminal might obey it.
    return _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text).encode() + b"\n"


def write_alerts(replayed: Sequence[ReplayedSeries]) -> bytes:
    """Return the file of alerts."""
    series = [
        {
            "name": one.name,
            "alerts": [
                {
                    "index": alert.index,
                    "told_at": alert.reported_at,
                    "state": alert.state,
                    "withdrawn_at": alert.withdrawn_at,
                }
                for alert in one.alerts
            ],
        }
        for one in replayed
    ]
    return json.dumps({"series": series}, indent=2).encode() + b"\n"
