"""Adds entries to triage.yaml as a person would: comments, order and spelling of the rest stay."""

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from datetime import date
from io import StringIO
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from perf.config.catalog import read_triage
from perf.config.checks.rules import check_new
from perf.local import durable
from perf.model.errors import ConfigError
from perf.model.rules import TriageEntry

_QUOTED = ("line", "from_release", "to_release", "fixed_in")
"""Texts that look like numbers, or might one day."""
_WIDTH = 10_000
"""Lines are left as they are, however long."""


def add_entries(path: Path, entries: Sequence[TriageEntry]) -> str:
    """Append entries to a triage file, which need not exist yet; give the text that was added.

    The file is replaced in one step, and only by one that reads as the old entries and the new. An
    entry that is there already is not added again, so that a command that was killed may be repeated.

    Raises:
        ConfigError: the file is wrong, an entry contradicts itself, or the file has one of its name or
            about the same changes; nothing is written.
        OSError: the file cannot be written; it is as it was.

    """
    with _alone(path):
        return _add(path, entries)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep others from adding at the same time: one would replace what another has just added.

    The directory itself is locked: a file for it would lie among those that are committed.
    """
    directory = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system of a network may have no such locks
            fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def _add(path: Path, entries: Sequence[TriageEntry]) -> str:
    problems: list[str] = []
    known = read_triage(path, problems)
    entries = [entry for entry in entries if entry not in known]
    problems += [f"{path}: {fault}" for fault in check_new(known, entries)]
    if problems:
        raise ConfigError(problems)
    if not entries:
        return ""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = _WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    tree = yaml.load(path.read_text(encoding="utf-8")) if path.exists() else CommentedMap(entries=[])
    if not known:  # an empty list is written in brackets, and would stay in them
        tree["entries"] = []
    items = [_item(entry) for entry in entries]
    tree["entries"].extend(items)
    _replace(path, _text(yaml, tree), (*known, *entries))
    return _text(yaml, items)


def _item(entry: TriageEntry) -> CommentedMap:
    """Return an entry as YAML, in the order of its fields, without what is left at its default."""
    item = CommentedMap()
    for field in fields(entry):
        value = getattr(entry, field.name)
        if value == field.default:
            continue
        is_quoted = field.name in _QUOTED or isinstance(value, date)
        text = str(value)
        item[field.name] = DoubleQuotedScalarString(text) if is_quoted else text
    return item


def _text(yaml: YAML, tree: object) -> str:
    text = StringIO()
    yaml.dump(tree, text)
    return text.getvalue()


def _replace(path: Path, text: str, meant: tuple[TriageEntry, ...]) -> None:
    target = path.resolve()
    fresh = target.with_suffix(".new")
    try:
        with durable.naming(path), fresh.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, fresh)
        problems: list[str] = []
        if read_triage(fresh, problems) != meant or problems:
            what = f"{path}: the entries cannot be added without changing the rest; add them by hand"
            raise ConfigError([what, *problems])
        fresh.rename(target)
        durable.sync(target.parent)
    finally:
        fresh.unlink(missing_ok=True)
