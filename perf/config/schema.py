"""JSON Schemas of the configuration files, so that editors check and complete them as one types."""

import ast
import inspect
import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from perf.config.variants import KEY
from perf.model import access, design, records, references, rules, sources, statements
from perf.model.design import Suite, SystemConfig, Testbed, Topology, Workload
from perf.model.references import Report
from perf.model.rules import Detection, Triage
from perf.model.sources import BuildSource

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES: tuple[tuple[str, Any], ...] = (
    ("detection", Detection),
    ("reference", Report),
    ("source", BuildSource),
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


_SOURCE = "Where builds of a system come from; `kind` says how it is asked."


def schema_texts() -> Mapping[str, str]:
    """Return each schema's text by file name; the same on every call and machine."""
    texts, meanings = {}, dict(_read_meanings())
    for name, kind in _TYPES:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        schema = {"$schema": _DIALECT, **adapter.json_schema()}
        _explain(schema, meanings)
        schema.setdefault("description", _SOURCE)
        if kind is Workload:
            schema["properties"][KEY] = _VARIANTS
        texts[f"{name}.schema.json"] = json.dumps(schema, indent=2, sort_keys=True) + "\n"
    return texts


def _read_meanings() -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the text below each field of a configuration type, by type and field.

    Read from the source: pydantic could do so as well, but would at every start of every command.
    """
    for module in (access, design, records, references, rules, sources, statements):
        for node in ast.parse(inspect.getsource(module)).body:
            if isinstance(node, ast.ClassDef):
                for line, text in pairwise(node.body):
                    match line, text:
                        case (
                            ast.AnnAssign(target=ast.Name(id=field)),
                            ast.Expr(value=ast.Constant(value=str(said))),
                        ):
                            yield (node.name, field), inspect.cleandoc(said)
                        case _:
                            pass


def _explain(schema: dict[str, Any], meanings: Mapping[tuple[str, str], str]) -> None:
    """Add the meaning of each key to a schema and to the types that it defines."""
    for kind in (schema, *schema.get("$defs", {}).values()):
        for key, one in kind.get("properties", {}).items():
            if said := meanings.get((kind["title"], key)) or meanings.get(("_Named", key)):
                one["description"] = said


def write_schemas(target: Path) -> tuple[Path, ...]:
    """Write all schemas into a directory; return the files' paths."""
    target.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in schema_texts().items():
        path = target / name
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return tuple(paths)
