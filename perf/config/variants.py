"""The variants in a workload's file: the same with some keys changed, each under a name of its own.

    variants:
      2kb: {records: {payload_bytes: 2048}, description: …}

makes the workload `<name>-2kb`. `records` and `floors` are changed key by key, all else as a whole.
"""

from collections.abc import Iterator
from dataclasses import replace

from pydantic import JsonValue, TypeAdapter, ValidationError

from perf.local.document import Steps, YamlDocument
from perf.model.scalars import Name

KEY = "variants"
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
    for suffix, changes in variants.items():
        if why := _refuse(suffix, changes):
            problems.append(f"{document.locate((KEY, suffix))}: {KEY}.{suffix} {why}")
        elif isinstance(changes, dict):
            yield f"{stem}-{suffix}", _merge(document, base, suffix, changes)


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
    document: YamlDocument, base: dict[str, JsonValue], suffix: str, changes: dict[str, JsonValue]
) -> YamlDocument:
    tree = {**base, "name": f"{document.path.stem}-{suffix}"}
    for key, value in changes.items():
        known = base.get(key)
        both = key in _MERGED and isinstance(known, dict) and isinstance(value, dict)
        tree[key] = {**known, **value} if both else value  # type: ignore[dict-item]  # both are mappings
    where: Steps = (KEY, suffix)
    own = {steps[2:]: line for steps, line in document.lines.items() if steps[:2] == where}
    spelled = {steps[2:]: text for steps, text in document.spellings.items() if steps[:2] == where}
    # What is wrong in the base has been said of it; here only what the variant brings is.
    return replace(
        document,
        tree=tree,
        lines={**document.lines, **own},
        spellings={**document.spellings, **spelled},
        problems=(),
    )
