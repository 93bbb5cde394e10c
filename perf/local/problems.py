"""What validation found wrong with one file, as sentences: file, line, place, value and the fix."""

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic_core import ErrorDetails

from perf.local.document import Steps, YamlDocument, dotted, is_secret

Schema: TypeAlias = Mapping[str, Any]

_UNITS = (  # by the end of a key; the longest first
    ("_ops_per_s", "operations per second"),
    ("_bytes", "bytes"),
    ("_mb", "megabytes"),
    ("_ms", "milliseconds"),
    ("_s", "seconds"),
)
_MOST_LISTED = 100
"""Words that a message lists; of a hostile configuration there may be tens of thousands."""
_MOST_COMPARED, _LONGEST_COMPARED = 500, 100
"""Words, and letters of each, among which one alike is looked for."""
_LIMITS = {  # pydantic's kind of error: (its name of the limit, our words)
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_KINDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "mapping_type": "a mapping",
    "dict_type": "a mapping",
    "dataclass_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_PATTERNS = (  # (what only this one has in it, our words)
    ("[0-9A-Za-z]", 'write a release such as "5.0.9", in quotes'),
    ("^https", "write an address of the web, for example https://example.org/report"),
    ("^/", "write a whole path, which begins with /"),
    ("", "use lower-case letters, digits and single hyphens, for example local-three"),
)


@dataclass(frozen=True, slots=True)
class _PlacedError:
    """One error at a place. For a missing or unknown key, `steps` ends with that key."""

    kind: str
    steps: Steps
    value: Any
    context: Mapping[str, Any]
    message: str
    siblings: tuple[str, ...]
    """Keys that are known where the last step stands."""


def nearest(word: str, known: Collection[str]) -> str | None:
    """Return the known word that resembles most what was written, if any does."""
    found = _match(word, sorted(known), n=1, cutoff=0.6)
    return found[0] if found else None


def _match(word: str, known: Sequence[str], n: int, cutoff: float) -> list[str]:
    """Find words alike among some short ones: a pair takes time by the product of its lengths."""
    short = [one for one in known[:_MOST_COMPARED] if len(one) <= _LONGEST_COMPARED]
    return difflib.get_close_matches(word[:_LONGEST_COMPARED], short, n=n, cutoff=cutoff)


def suggest(word: str, known: Collection[str]) -> str:
    """Write what to choose instead: the nearest word first, then all of them."""
    close = nearest(word, known)
    listed = ", ".join(sorted(known)[:_MOST_LISTED]) or "none"
    if len(known) > _MOST_LISTED:
        listed += f" and {len(known) - _MOST_LISTED:,} more"
    return f"did you mean {close}? (known: {listed})" if close else f"known: {listed}"


def suggest_few(word: str, known: Collection[str], where: str) -> str:
    """Write what to choose of too many to list: up to three near words, and where all of them are."""
    near = _match(word, sorted(known), n=3, cutoff=0.4)
    return f"did you mean {' or '.join(near)}? (known: {where})" if near else f"known: {where}"


def describe(document: YamlDocument, schema: Schema, errors: Sequence[ErrorDetails]) -> tuple[str, ...]:
    """Turn pydantic's errors about one file into sentences, without saying one thing twice."""
    found = [_place(schema, error) for error in errors]
    missing = {item.steps for item in found if item.kind == "missing"}
    meant: dict[Steps, str] = {}
    for item in found:
        if item.kind == "unexpected_keyword_argument":
            word = str(item.steps[-1])
            absent = [key for key in item.siblings if (*item.steps[:-1], key) in missing]
            close = nearest(word, absent) or nearest(word, item.siblings)
            if close:
                meant[item.steps] = close
    explained = {(*steps[:-1], close) for steps, close in meant.items()}
    sentences = []
    for item in found:
        # pydantic counts only valid items
        is_artifact = item.kind == "too_short" and len(item.value) >= item.context["min_length"]
        is_known = any(item.steps[:n] in document.unusable for n in range(len(item.steps) + 1))
        is_said = item.kind == "missing" and item.steps in explained
        if not (is_artifact or is_known or is_said):
            text = _sentence(document, item, meant.get(item.steps))
            sentences.append(f"{document.locate(item.steps)}: {text}")
    return tuple(sentences)


def _place(schema: Schema, error: ErrorDetails) -> _PlacedError:
    """Follow an error's location through the schema, leaving out the names of union members."""
    here: Any = _resolve(schema, schema)
    steps: list[str | int] = []
    siblings: tuple[str, ...] = ()
    for step in error["loc"]:
        tags = here.get("discriminator", {}).get("mapping", {})
        if step in tags:
            here = _resolve(schema, {"$ref": tags[step]})
            continue
        steps.append(step)
        siblings = tuple(here.get("properties", ()))
        if isinstance(step, int):
            inner = here.get("items")
        else:
            inner = here.get("properties", {}).get(step) or here.get("additionalProperties")
        here = _resolve(schema, inner if isinstance(inner, dict) else {})
    return _PlacedError(
        kind=error["type"],
        steps=tuple(steps),
        value=error["input"],
        context=error.get("ctx", {}),
        message=error["msg"],
        siblings=siblings,
    )


def _resolve(schema: Schema, node: Schema) -> Schema:
    # What may be left out is null in a schema, or what it is.
    present = [each for each in node.get("anyOf", ()) if each.get("type") != "null"]
    if len(present) == 1:
        return _resolve(schema, present[0])
    reference = node.get("$ref")
    if reference is None:
        return node
    resolved: Schema = schema["$defs"][reference.rsplit("/", 1)[-1]]
    return resolved


def _sentence(document: YamlDocument, item: _PlacedError, meant: str | None) -> str:
    subject = dotted(item.steps) or "the file"
    match item.kind:
        case "missing":
            return f"the key {subject} is missing; add it{_unit_hint(item.steps)}"
        case "unexpected_keyword_argument":
            return f"the key {subject} is not known; {_rename(item, meant)}"
        case "union_tag_not_found":
            return f"the key {dotted((*item.steps, 'kind'))} is missing; add it"
        case "union_tag_invalid":
            steps, tag = (*item.steps, "kind"), item.context["tag"]
            allowed = str(item.context["expected_tags"]).replace("'", "")
            value = document.show(steps, tag)
            return f"{dotted(steps)} is {value}; {suggest(tag, allowed.split(', '))}"
        case "too_short" | "string_too_short":
            least = item.context["min_length"]
            few = "is empty; it needs at least one entry"
            return (
                f"{subject} {few if least == 1 else f'has too few entries; it needs at least {least}'}"
            )
        case _:
            value = document.show(item.steps, item.value)
            return f"{subject} is {value}{_fix(document, item)}"


def _rename(item: _PlacedError, meant: str | None) -> str:
    if meant is None:
        return f"remove it (known here: {', '.join(item.siblings) or 'none'})"
    return f"write {meant} instead{_unit_hint((meant,))}"


def _fix(document: YamlDocument, item: _PlacedError) -> str:
    if item.kind in _LIMITS:
        limit, words = _LIMITS[item.kind]
        return f"; it must be {words} {item.context[limit]:.12g}{_unit_hint(item.steps)}"
    if item.kind in {"literal_error", "enum"}:
        allowed = re.findall(r"'([^']*)'", str(item.context["expected"]))
        return f"; {suggest(str(item.value), allowed)}"
    if item.kind == "string_pattern_mismatch":
        pattern = item.context["pattern"]
        return f"; {next(words for part, words in _PATTERNS if part in pattern)}"
    if item.kind.startswith("date_"):
        return '; write a date, year first and in quotes, for example "2026-12-31"'
    wanted = _KINDS.get(item.kind)
    return f": {item.message}" if wanted is None else _convert(document, item, wanted)


def _convert(document: YamlDocument, item: _PlacedError, wanted: str) -> str:
    """Describe how to write a value of the wrong type."""
    spelling = "…" if is_secret(item.steps) else document.spellings.get(item.steps)
    if wanted == "text" and isinstance(item.value, bool | int | float):
        kind = "a truth value" if isinstance(item.value, bool) else "a number"
        return f', {kind}; write it in quotes: "{spelling}"'
    if wanted.endswith("number") and isinstance(item.value, str):
        return f", a text; write {wanted}{_unit_hint(item.steps)}, without quotes or unit"
    return f"; it must be {wanted}{_unit_hint(item.steps)}"


def _unit_hint(steps: Steps) -> str:
    key = next((step for step in reversed(steps) if isinstance(step, str)), "")
    for ending, unit in _UNITS:
        if key.endswith(ending):
            return f", in {unit}"
    return ""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a YAML file that something is said of; it need not be there. `/` goes down a step."""

    document: YamlDocument
    steps: Steps = ()

    def __truediv__(self, step: str | int) -> "Place":
        """Return the place one step below."""
        return Place(self.document, (*self.steps, step))

    def __str__(self) -> str:
        """Write the way to it as people do."""
        return dotted(self.steps)

    def problem(self, sentence: str) -> str:
        """Say something there."""
        return f"{self.document.locate(self.steps)}: {sentence}"

    def fault(self, what: str) -> str:
        """Say something of what is there, by the way to it."""
        return self.problem(f"{self} {what}")

    def say(self, why: str, *value: object) -> str:
        """Describe what is written there, or another value if one is given, and why it cannot be."""
        shown = self.document.show(self.steps, *(value or (self._written(),)))
        return self.fault(f"is {shown}, {why}")

    def _written(self) -> object:
        """Return what is written there: what is not is null, as a key without a value."""
        if self.steps not in self.document.lines:
            return None
        here: Any = self.document.tree
        for step in self.steps:
            here = here[step]
        return here
