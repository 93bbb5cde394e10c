"""The content hash: two configurations with the same hash measure the same thing.

Left out is what cannot move a number: comments, key order, number spelling, and the prose of a
file (name, description, purpose, owner, source, what not to compare it with, caveat; how SSH finds
its keys; a name travels beside its hash). So is below what a workload is never scaled down: what it is
scaled to is hashed. Everything else is hashed, even where it moves a number only on a bad day (a time
limit, an address): a hash that changes too often costs a fresh series, one that changes too rarely a
wrong comparison.

A field that is absent (null or empty) is left out as well, so that giving a design type a
new optional field does not break every existing series. So is a testbed's `engine: python`, which is
what an absent one means. (A workload's is hashed: there an absent one means that of the testbed.)
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias

from pydantic import JsonValue

from perf.model.design import DEFAULT_ENGINE, Suite, SystemConfig, Testbed, Topology, Workload
from perf.model.results import Named

HASH_DIGITS = 12

File: TypeAlias = Topology | Testbed | Workload | SystemConfig | Suite
_FILES = (Topology, Testbed, Workload, SystemConfig, Suite)
_PROSE = frozenset(
    (
        *("name", "description", "purpose", "owner", "source", "not_comparable", "caveat"),
        *("ssh_config", "floors", "prices_from"),
    )
)


def content_hash(value: object) -> str:
    """Return the first 12 hex digits of the SHA-256 of a design value, or of a tuple of them."""
    text = json.dumps(canonical(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


def named(value: File) -> Named:
    """Return a configuration's name with its content hash, as trials carry it."""
    return Named(name=value.name, sha256=content_hash(value))


def canonical(value: Any) -> JsonValue:  # noqa: ANN401  any field of a design value
    """Return what the hash of a design value is made of, as plain values."""
    if is_dataclass(value):
        prose = _PROSE if isinstance(value, _FILES) else frozenset()
        inner = {
            field.name: getattr(value, field.name) for field in fields(value) if field.name not in prose
        }
        if isinstance(value, Testbed) and value.engine == DEFAULT_ENGINE:
            del inner["engine"]
        return {key: canonical(item) for key, item in inner.items() if not _is_absent(item)}
    if isinstance(value, tuple | list):
        return [canonical(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): canonical(item) for key, item in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"{type(value).__name__} has no canonical form")


def _is_absent(value: object) -> bool:
    return value is None or (isinstance(value, str | tuple | Mapping) and not value)
