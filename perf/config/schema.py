"""JSON Schemas of the configuration files, so that editors check and complete them as one types."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from perf.config.variants import KEY
from perf.model.design import Suite, SystemConfig, Testbed, Topology, Workload
from perf.model.references import Report
from perf.model.rules import Detection, Triage

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES: tuple[tuple[str, type], ...] = (
    ("detection", Detection),
    ("reference", Report),
    ("suite", Suite),
    ("system-config", SystemConfig),
    ("testbed", Testbed),
    ("topology", Topology),
    ("triage", Triage),
    ("workload", Workload),
)


_VARIANTS = {
    "type": "object",
    "description": "Workloads like this one, under <name>-<key>, each with the keys that differ.",
    "additionalProperties": {"type": "object", "required": ["description"]},
}


def schema_texts() -> Mapping[str, str]:
    """Give each schema's text by file name; the same on every call and machine."""
    texts = {}
    for name, kind in _TYPES:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        schema = {"$schema": _DIALECT, **adapter.json_schema()}
        if kind is Workload:
            schema["properties"][KEY] = _VARIANTS
        texts[f"{name}.schema.json"] = json.dumps(schema, indent=2, sort_keys=True) + "\n"
    return texts


def write_schemas(target: Path) -> tuple[Path, ...]:
    """Write all schemas into a directory; give the files' paths."""
    target.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in schema_texts().items():
        path = target / name
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return tuple(paths)
