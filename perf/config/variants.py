"""The variants in a workload's file: the same with some keys changed, each under a name of its own.

    variants:
      2kb: {records: {payload_bytes: 2048}, description: …}

makes the workload `<name>-2kb`. `records` and `floors` are changed key by key, all else as a whole.
"""

from collections import ChainMap, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeVar, cast

from pydantic import JsonValue, TypeAdapter, ValidationError

from perf.local.document import Steps, YamlDocument
from perf.model.scalars import Name

KEY = "variants"
MOST_VARIANTS = 100
"""Of one file, each a whole workload; the most that is shipped has 10."""
T = TypeVar("T")
_MERGED = ("records", "floors")
_NAME: TypeAdapter[str] = TypeAdapter(Name)


def split_variants(document: YamlDocument, problems: list[str]) -> Iterator[tuple[str, YamlDocument]]:
    """Yield the workload of a file and then its variants, each by name with a document of its own."""
    stem, tree = document.path.stem, document.tree
    if not isinstance(tree, dict) or KEY not in tree:
        yield stem, document
        return
    base = {key: value for key, value in tree.items() if key != KEY}
    yield stem, replace(document, tree=base)
    variants = tree[KEY]
    if not isinstance(variants, dict):
        what = "is no mapping of names to changed keys; write one, or remove it"
        problems.append(f"{document.locate((KEY,))}: {KEY} {what}")
        return
    if len(variants) > MOST_VARIANTS:
        what = f"has {len(variants):,} variants, and at most {MOST_VARIANTS} are read; leave some out"
        problems.append(f"{document.locate((KEY,))}: {KEY} {what}")
        return
    lines, spellings = _split(document.lines), _split(document.spellings)
    for suffix, changes in variants.items():
        if why := _refuse(suffix, changes):
            problems.append(f"{document.locate((KEY, suffix))}: {KEY}.{suffix} {why}")
        elif isinstance(changes, dict):
            name = f"{stem}-{suffix}"
            # What is wrong in the base has been said of it; here only what the variant brings is.
            yield (
                name,
                replace(
                    document,
                    tree=_merge(base, name, changes),
                    lines=_beside(lines[suffix], document.lines),
                    spellings=_beside(spellings[suffix], document.spellings),
                    problems=(),
                ),
            )


def _refuse(suffix: str, changes: JsonValue) -> str:
    try:
        _NAME.validate_python(suffix)
    except ValidationError:
        return "is no name: use small letters, digits and inner hyphens"
    if not isinstance(changes, dict) or not changes:
        return "changes nothing; list the keys that differ, or remove it"
    for key in ("name", KEY):
        if key in changes:
            return f"must not hold the key {key}; remove it"
    if "description" not in changes:
        return "has no description of its own; add one, so that lists distinguish it"
    return ""


def _merge(
    base: dict[str, JsonValue], name: str, changes: dict[str, JsonValue]
) -> dict[str, JsonValue]:
    tree = {**base, "name": name}
    for key, value in changes.items():
        known = base.get(key)
        both = key in _MERGED and isinstance(known, dict) and isinstance(value, dict)
        tree[key] = {**known, **value} if both else value  # type: ignore[dict-item]  # both are mappings
    return tree


def _split(places: Mapping[Steps, T]) -> Mapping[str | int, Mapping[Steps, T]]:
    """Return what is known of the places in each variant, looking through all of them once."""
    own: defaultdict[str | int, dict[Steps, T]] = defaultdict(dict)
    for steps, what in places.items():
        if steps[:1] == (KEY,) and len(steps) > 1:
            own[steps[1]][steps[2:]] = what
    return own


def _beside(own: Mapping[Steps, T], whole: Mapping[Steps, T]) -> Mapping[Steps, T]:
    """Return both, its own first; no copy, of which each variant would hold one."""
    return ChainMap(cast("dict[Steps, T]", own), cast("dict[Steps, T]", whole))
