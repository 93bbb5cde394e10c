"""Write docs/reference from the code: every command, every key of the configuration files.

Run by `make reference`; `.ci/check_tree.py` compares the pages with what this would write.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from perf.commands.main import knickpoint
from perf.config.schema import schema_texts

PAGES = Path(__file__).parents[1] / "docs/reference"
WRITTEN = "<!-- Written by `make reference`; do not edit. -->\n"
FILES = {
    "suite": "configs/suites/NAME.yaml",
    "source": "configs/sources/NAME.yaml",
    "workload": "configs/workloads/NAME.yaml",
    "system-config": "configs/systems/SYSTEM/NAME.yaml",
    "topology": "configs/topologies/NAME.yaml",
    "testbed": "configs/testbeds/NAME.yaml",
    "detection": "configs/detection.yaml",
    "triage": "configs/triage.yaml",
    "reference": "configs/reference/NAME.yaml",
}


def pages() -> Mapping[str, str]:
    """Return the text of each page of the reference, by file name."""
    return {"cli.md": "\n".join(_commands()), "configs.md": "\n".join(_configs())}


def help_texts() -> Mapping[str, str]:
    """Return the whole help of each command, by its name."""
    return dict(_help(knickpoint, click.Context(knickpoint, info_name="knickpoint")))


def _help(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    yield f"{context.command_path} --help", command.get_help(context)
    for name, one in _members(command, context):
        yield from _help(one, click.Context(one, info_name=name, parent=context))


def _members(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name in sorted(command.list_commands(context)):
            if one := command.get_command(context, name):
                yield name, one


def _cell(text: str) -> str:
    """Return a text as it may stand in a table; `<` outside of code would begin a tag."""
    line = " ".join(text.split()).replace("|", "\\|")
    return re.sub(r"`[^`]*`|<", lambda found: "\\<" if found[0] == "<" else found[0], line)


def _commands() -> Iterator[str]:
    yield WRITTEN
    yield "# Command line\n"
    yield "`knickpoint COMMAND --help` prints the same with more detail and examples."
    yield "Exit codes are explained in [architecture](../architecture.md#exit-codes).\n"
    yield from _command(knickpoint, click.Context(knickpoint, info_name="knickpoint"))


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the section of a command, then those of its subcommands."""
    if context.parent:
        yield f"## {context.command_path}\n"
        usage = " ".join((context.command_path, *command.collect_usage_pieces(context)))
        yield f"```text\n{usage}\n```\n"
        paragraphs = re.split(r"\n\s*\n", command.help or "")
        yield " ".join(paragraphs[0].split()) + "\n"
        records = [one.get_help_record(context) for one in command.params]
        if options := [one for one in records if one and one[1]]:
            yield "| option | meaning |"
            yield "|---|---|"
            yield from (f"| `{_cell(names)}` | {_cell(meaning)} |" for names, meaning in options)
            yield ""
    for name, one in _members(command, context):
        yield from _command(one, click.Context(one, info_name=name, parent=context))


def _configs() -> Iterator[str]:
    schemas = {name: json.loads(schema_texts()[f"{name}.schema.json"]) for name in FILES}
    yield WRITTEN
    yield "# Configuration files\n"
    yield "YAML files below `configs/`. Unknown keys are errors."
    yield "A key whose default is – may be left out.\n"
    yield "| file | what it is |"
    yield "|---|---|"
    for name, schema in schemas.items():
        summary = schema["description"].split("\n\n")[0]
        yield f"| [`{FILES[name]}`](#{name}) | {_cell(summary)} |"
    yield ""
    for name, schema in schemas.items():
        yield f"## {name}\n"
        yield f"File: `{FILES[name]}`\n"
        if "properties" in schema:
            yield from _kind(schema)
        else:
            yield f"{schema['description']}\n\nOne of {_type(schema)}.\n"
        for title, kind in sorted(schema.get("$defs", {}).items()):
            yield f"### {title} ({name})\n"
            if "properties" in kind:
                yield from _kind(kind)
            else:
                yield f"One of {_type(kind)}.\n"


def _kind(kind: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a type is, and the table of its keys."""
    said = kind["description"]
    yield said + "\n"
    yield "| key | type | meaning | default |"
    yield "|---|---|---|---|"
    required = kind.get("required", ())
    for key, one in sorted(kind["properties"].items(), key=lambda pair: pair[0] not in required):
        default = "required" if key in required else _default(one)
        meaning = one.get("description") or _sentence(said, key)
        yield f"| `{key}` | {_cell(_type(one))} | {_cell(meaning)} | {default} |"
    yield ""


def _sentence(said: str, key: str) -> str:
    """Return what the text of a type says about a key."""
    sentences = re.split(r"(?<=[.;:]) ", " ".join(said.split()))
    return next((one.strip(".;") for one in sentences if f"`{key}`" in one), "")


def _default(one: Mapping[str, Any]) -> str:
    value = one.get("default")
    return "–" if value in (None, "", [], {}) else f"`{json.dumps(value)}`"


def _type(one: Mapping[str, Any]) -> str:  # noqa: PLR0911  one for each form
    """Return a JSON type in words."""
    if "$ref" in one:
        return one["$ref"].rpartition("/")[2]
    for several in ("anyOf", "oneOf"):
        if several in one:
            return " or ".join(_type(each) for each in one[several] if each.get("type") != "null")
    if "const" in one:
        return f"`{json.dumps(one['const'])}`"
    if "enum" in one:
        return ", ".join(f"`{each}`" for each in one["enum"])
    match one.get("type"):
        case "array":
            return f"list of {_type(one.get('items') or {})}"
        case "object":
            values = one.get("additionalProperties")
            return f"map of {_type(values)}" if isinstance(values, dict) else "map"
        case "integer" | "number" as kind:
            limits = {"exclusiveMinimum": ">", "minimum": "≥", "maximum": "≤"}
            return " ".join(
                (kind, *(f"{sign} {one[name]}" for name, sign in limits.items() if name in one))
            )
        case str(kind):
            return one.get("format", kind)
        case _:
            return "any"


def main() -> None:
    """Write the pages."""
    PAGES.mkdir(exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text)


if __name__ == "__main__":
    sys.exit(main())
