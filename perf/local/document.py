"""One YAML file as plain values, with the line and the spelling of each, for messages that help.

Only the plain part of YAML 1.2 is accepted: mappings with text keys, lists, text, numbers, truth values
and null. Dates, tags, anchors and directives are refused: they make a file mean something
else than a reader sees, and anchors can make a small file expand without bound.
"""

import json
import re
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from pydantic import JsonValue
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    MappingEndEvent,
    MappingStartEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from perf.local.plain_files import read_plain
from perf.model.errors import ConfigError
from perf.model.shown import printable

try:
    from _ruamel_yaml import CParser
except ImportError:  # ruamel.yaml brings it to CPython alone, up to 3.13
    CParser = None

Steps: TypeAlias = tuple[str | int, ...]
"""The way to a value inside a file: keys and list indexes."""

MAX_BYTES = 250_000
"""The parser takes seconds for one that is meant to hurt; the longest that is shipped has 30 000."""
MAX_DEPTH = 50
_MAX_SHOWN = 60
_MOST_KEPT = 50_000
"""Characters of a file that is kept as it was parsed: a larger one may hold 50 MB, and is rare."""
_TOP_LIST = 2
"""How deep an item of a list is that stands at the top of a file."""
_SLIPS = (YAMLError, ValueError, TypeError, AttributeError, AssertionError, LookupError)
"""What the parser raises on broken input; all but the first are its own slips."""
_OTHER_SPACE = r"\t\r\x85\u2028\u2029\ufeff"
_COMMENT = re.compile(rf"^ *#[^\n\"'{_OTHER_SPACE}]*$", re.MULTILINE)
"""A line of comment, or of a text that goes on in the next line: what else it holds says nothing."""
_OTHERWISE = re.compile(
    rf"[{_OTHER_SPACE}]|^(?:%|\.\.\.)|[|>][-+0-9]* *\n(?:[ \n]*#|\n* +\n)|^[^\n|>]*[|>].*#"
    r"|(?:\A|(?<=[\s\[{,:-]))(?:!|[&*](?=\S)|\?(?=\s|\Z))"
    r"|[\]}]\s*:|[\[\]][^\[\]]*[\"']\s*:",
    re.MULTILINE,
)
"""What the parser in C may take to mean something else, or take where it means nothing: tabs, breaks
of lines of YAML 1.1, directives and ends of documents, a comment that hangs on the head of a block or
seems to follow it, blocks that begin with spaces alone; tags, anchors, aliases, keys behind a question
mark, and in lists those in quotes or brackets. Found by comparing both parsers on texts of many kinds,
as a test does."""
_PLAIN_KEY = re.compile(r"[\w-]+")
_SECRET = re.compile(r"pass(?:word|phrase|wd)|secret|credential", re.IGNORECASE)
_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlDocument:
    """A YAML file that could be parsed. `problems` are complete sentences about its values.

    Where a value is unusable, `tree` holds null and `unusable` the way to it, so that nothing else is
    said about the same place.
    """

    path: Path
    tree: JsonValue
    lines: Mapping[Steps, int]
    spellings: Mapping[Steps, str]
    problems: tuple[str, ...]
    unusable: frozenset[Steps]

    def locate(self, steps: Steps) -> str:
        """Return file and line of a value, or of the nearest value around it."""
        return _locate(self.path, self.lines, steps)

    def show(self, steps: Steps, value: object) -> str:
        """Return a value for a message: numbers as they are spelled in the file, text in quotes.

        What may be a secret is not shown: messages reach logs, pages and comments.
        """
        if is_secret(steps):
            return "not shown here"
        if isinstance(value, str):
            return printable(json.dumps(value, ensure_ascii=False))
        if isinstance(value, dict):
            return "a mapping"
        if isinstance(value, list):
            return "a list" if value else "empty"
        return printable(self.spellings.get(steps) or json.dumps(value))


def is_secret(steps: Steps) -> bool:
    """Return whether a value may be a secret, by the keys on the way to it; names of files are none."""
    keys = [step for step in steps if isinstance(step, str)]
    is_named = any(_SECRET.search(key) and not key.endswith("_file") for key in keys)
    # Who writes no mapping there may have written an account with its password.
    return is_named or keys[-1:] == ["access"] or keys[-2:] == ["access", "tls"]


def dotted(steps: Steps) -> str:
    """Write the way to a value as people do: experiments[0].releases[1]."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        elif len(step) <= _MAX_SHOWN and _PLAIN_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{printable(json.dumps(step, ensure_ascii=False))}]"
    return text


def read_document(path: Path) -> YamlDocument:
    """Read one YAML file.

    Raises:
        ConfigError: the file cannot be read, is no UTF-8, too large, empty, or is not YAML.

    """
    text = _read_text(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they warn of is refused below
            root = _compose(text)
    except MarkedYAMLError as error:
        raise ConfigError([_syntax_problem(path, error)]) from error
    except YAMLError as error:
        what = str(error).splitlines()[0]
        raise ConfigError([f"{path}: {what}; remove it"]) from error
    except RecursionError as error:
        raise ConfigError([f"{path}: nested deeper than {MAX_DEPTH} levels; flatten it"]) from error
    except _SLIPS as error:  # for example an escape beyond Unicode
        raise ConfigError([f"{path}: not readable as YAML ({error}); check its quotes"]) from error
    if root is None:
        raise ConfigError([f"{path}: the file is empty; its schema says which keys it needs"])
    return _Walk(path=path, yaml=YAML(typ="safe", pure=True)).run(root)


def count_items(path: Path, most: int) -> int:
    """Return how many mappings the lists at the top of a YAML file hold; beyond `most` none is read.

    Takes a fraction of what reading the file does. What is no YAML counts as far as it can be read.
    """
    depth = count = 0
    with suppress(ConfigError, *_SLIPS):
        for event in YAML(typ="safe", pure=True).parse(_read_text(path)):
            if isinstance(event, MappingStartEvent | SequenceStartEvent):
                count += depth == _TOP_LIST and isinstance(event, MappingStartEvent)
                depth += 1
            elif isinstance(event, MappingEndEvent | SequenceEndEvent):
                depth -= 1
            if count > most:
                break
    return count


def _compose(text: str) -> Node | None:
    return _compose_small(text) if len(text) <= _MOST_KEPT else _compose_any(text)


def _compose_any(text: str) -> Node | None:
    """Compose a text by the parser in C where both read it alike, in a third of the time.

    What it refuses goes to the other one, whose message is reported.
    """
    root: Node | None
    if is_read_alike(text):
        with suppress(*_SLIPS):
            root = fast_reader(text).compose(text)
            return root
    root = YAML(typ="safe", pure=True).compose(text)
    return root


def is_read_alike(text: str) -> bool:
    """Return whether the parser in C is at hand, and takes a text to mean the same if it takes it."""
    return CParser is not None and not _OTHERWISE.search(_COMMENT.sub("#", text))


def fast_reader(text: str) -> YAML:
    """Return what reads this very text by the parser in C, and all else of it as YAML 1.2."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Parser = lambda loader: CParser(text)  # noqa: ARG005  the argument is given by its name
    return yaml


# Comparisons and tests read the same files again and again, and composing is nearly all that it costs.
_compose_small = lru_cache(maxsize=256)(_compose_any)


def _read_text(path: Path) -> str:
    try:
        data = read_plain(path, MAX_BYTES)
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read ({error.strerror}); check the file"]) from error
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError([f"{path}:{line}: not UTF-8 text; save the file as UTF-8"]) from error
    for number, line_text in enumerate(text.splitlines(), start=1):
        if line_text.startswith("%"):
            shown = printable(line_text.strip())
            raise ConfigError([f"{path}:{number}: the directive {shown} is refused; remove it"])
    return text


def _syntax_problem(path: Path, error: MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
    parts = [part for part in (error.context, error.problem) if part]
    return f"{where}: not YAML: {', '.join(parts)}; fix the syntax at this place"


def _locate(path: Path, lines: Mapping[Steps, int], steps: Steps) -> str:
    for length in range(len(steps), -1, -1):
        if steps[:length] in lines:
            return f"{path}:{lines[steps[:length]]}"
    return str(path)


def _is_text(key: Node) -> bool:
    if not isinstance(key, ScalarNode) or key.tag != f"{_TAG}str":
        return False
    try:
        key.value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, written as an escape
        return False
    return True


@dataclass(slots=True, kw_only=True)
class _Walk:
    """Turns a node graph into plain values and collects everything that is not plain."""

    path: Path
    yaml: YAML
    lines: dict[Steps, int] = field(default_factory=dict)
    spellings: dict[Steps, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    unusable: set[Steps] = field(default_factory=set)

    def run(self, root: Node) -> YamlDocument:
        tree = self._value(root, ())
        return YamlDocument(
            path=self.path,
            tree=tree,
            lines=self.lines,
            spellings=self.spellings,
            problems=tuple(self.problems),
            unusable=frozenset(self.unusable),
        )

    def _refuse(self, steps: Steps, what: str) -> None:
        subject = dotted(steps) or "the file"
        self.problems.append(f"{_locate(self.path, self.lines, steps)}: {subject} {what}")
        self.unusable.add(steps)

    def _value(self, node: Node, steps: Steps) -> JsonValue:
        self.lines.setdefault(steps, node.start_mark.line + 1)
        if node.anchor is not None:
            # Its aliases are the same node again: not going in also bounds the work.
            self._refuse(steps, f"uses the anchor or alias {node.anchor}; write the value out")
            return None
        if len(steps) > MAX_DEPTH:
            self._refuse(steps, f"is nested deeper than {MAX_DEPTH} levels; flatten it")
            return None
        if isinstance(node, MappingNode):
            return self._mapping(node, steps)
        if isinstance(node, SequenceNode):
            return [self._value(item, (*steps, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, steps)

    def _mapping(self, node: MappingNode, steps: Steps) -> JsonValue:
        tree: dict[str, JsonValue] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not _is_text(key):
                shown = printable(key.value) if isinstance(key, ScalarNode) else "[…]"
                inside = f" in {dotted(steps)}" if steps else ""
                self.problems.append(
                    f"{self.path}:{line}: the key {shown}{inside} is not text; "
                    "put it in quotes or remove it"
                )
            elif key.anchor is not None:
                # An alias is the node of its anchor, which may lie lines before.
                self.lines[(*steps, key.value)] = max(line, node.start_mark.line + 1)
                self._refuse(
                    (*steps, key.value), f"uses the anchor or alias {key.anchor}; write it out"
                )
                tree[key.value] = None
            elif key.value in tree:
                first = self.lines[(*steps, key.value)]
                self.problems.append(
                    f"{self.path}:{line}: {dotted((*steps, key.value))} is written twice, first in "
                    f"line {first}; keep one"
                )
            else:
                self.lines[(*steps, key.value)] = line
                tree[key.value] = self._value(value, (*steps, key.value))
        return tree

    def _scalar(self, node: Node, steps: Steps) -> JsonValue:
        self.spellings[steps] = node.value
        tag = node.tag or ""
        kind = tag.removeprefix(_TAG)
        if kind == "timestamp":
            shown = printable(node.value)
            self._refuse(steps, f'is {shown}, a date; write it in quotes: "{shown}"')
            return None
        if kind == tag or kind not in {"str", "int", "float", "bool", "null"}:
            self._refuse(steps, f"has the type {printable(tag)}; write a plain value")
            return None
        try:
            return self._construct(kind, node)
        except (ValueError, LookupError, OverflowError):
            what = "not a finite number" if kind in {"int", "float"} else f"no {kind}"
            self._refuse(steps, f"is {printable(node.value)}, {what}; write a plain value")
            return None

    def _construct(self, kind: str, node: Node) -> JsonValue:
        """Return the plain value of a scalar; raise what the parser raises where it has none."""
        value: JsonValue = node.value
        if kind == "str":
            node.value.encode()  # fails for half of a surrogate pair, written as an escape
            return value
        value = self.yaml.constructor.construct_object(node)
        json.dumps(value, allow_nan=False)
        if isinstance(value, int):
            float(value)
        return value
