"""Two parsers read configuration: the fast one only what both take to mean the same."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from random import Random

import pytest
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from perf.local import document
from perf.local.document import fast_reader, is_read_alike, read_document
from perf.model.errors import ConfigError

CONFIGS = Path(__file__).parents[3] / "configs"
pytestmark = pytest.mark.skipif(document.CParser is None, reason="ruamel.yaml has no parser in C here")
NODES = (
    *(
        "x",
        "",
        "yes",
        "0o17",
        "1e3",
        "2020-01-01",
        '"q"',
        "'s'",
        '""',
        '"x\n # y"',
        "x\n y",
        "a#b",
        "x # c",
    ),
    *("[]", "[a, b]", "{}", "{a: b}", "[a: b]", "{a:1}", "k: v", '"k": v', "k:", "- i", "- - i", "::"),
    *(
        "|\n  x",
        ">-\n  x\n y",
        "|\n#c",
        "|2-\n  x",
        "|\n  \n   x",
        "&a b",
        "*a",
        "!t x",
        "!!str 1",
        "? k",
        "<<: x",
        "-",
    ),
)
OPENINGS = (
    "",
    "- ",
    "k: ",
    "[",
    "{",
    "k:\n  - ",
    "[{k: ",
    '["x\n # y", ',
    "# c\n",
    "---\n",
    "a: [\n  ",
)
BETWEEN = (
    "\n",
    ", ",
    ": ",
    ":",
    "\n# c\n",
    " # c\n",
    "\n- ",
    "\nl: ",
    ",\n  ",
    "\n...\n",
    "\t",
    "\r\n",
    "\x85",
)
ENDS = ("", "]", "}", "}]", "\n", "\n# c")


def read(yaml: YAML, text: str) -> object:
    """Return what a text means: tags, texts, anchors and lines; of what is no YAML, None."""
    try:
        return flatten(yaml.compose(text))
    except (YAMLError, ValueError, TypeError, AttributeError, AssertionError, LookupError):
        return None


def flatten(node: Node | None) -> object:
    """Return a node as plain values; where one begins that is not written, is nowhere asked."""
    if node is None:
        return "nothing"
    if isinstance(node, ScalarNode):
        line = node.start_mark.line if node.value or node.style else 0
        return node.tag, node.anchor, node.value, line
    items: Sequence[object] = node.value
    if isinstance(node, MappingNode):
        items = [(flatten(key), flatten(value)) for key, value in node.value]
    elif isinstance(node, SequenceNode):
        items = [flatten(one) for one in node.value]
    return node.tag, node.anchor, node.start_mark.line, items


def test_what_the_fast_parser_takes_means_the_same() -> None:
    parts = [*product(OPENINGS, NODES, BETWEEN, NODES, ENDS)]
    compared = 0
    for text in map("".join, Random(1).sample(parts, 8000)):  # noqa: S311  nothing secret
        if is_read_alike(text) and (fast := read(fast_reader(text), text)) is not None:
            assert fast == read(YAML(typ="safe", pure=True), text), repr(text)
            compared += 1
    assert compared > 500


@pytest.mark.parametrize(
    "text",
    [
        *(
            "a:\tb",
            "a: b\r\n",
            "a: \x85b",
            "%YAML 1.1\n---\na: no",
            "|\n#c",
            "a: !<str> b",
            "a: b\n...\n...",
        ),
        *("a: &b c", "a: [*b]", "? a", "a: |# c", "\ufeffa: b", '["a":, b]', '["x\n # y", &a:b c]'),
    ],
)
def test_what_the_parsers_may_read_differently_is_left_to_the_one_of_yaml_1_2(text: str) -> None:
    assert not is_read_alike(text)


def test_all_configs_that_are_shipped_mean_the_same_to_both() -> None:
    alike = 0
    for path in CONFIGS.rglob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        if is_read_alike(text):
            fast = read(fast_reader(text), text)
            assert fast is not None, path
            assert fast == read(YAML(typ="safe", pure=True), text), path
            alike += len(text)
    assert alike > 200_000


def test_without_the_fast_parser_all_is_read_by_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "x.yaml"
    place.write_text("a: [1, yes]\nb:\n  - x: '2'\nb: 3\n")
    found = read_document(place)
    monkeypatch.setattr(document, "CParser", None)
    # What was composed is kept by its text.
    other = tmp_path / "y.yaml"
    other.write_text(f"{place.read_text()}# other\n")
    assert read_document(other).tree == found.tree
    assert read_document(other).lines == found.lines
    assert found.tree == {"a": [1, "yes"], "b": [{"x": "2"}]}
    assert len(found.problems) == 1


def test_what_the_fast_parser_refuses_is_reported_by_the_other(tmp_path: Path) -> None:
    place = tmp_path / "x.yaml"
    place.write_text("a: 1\nb: [1, 2\nc: 3\n")
    assert is_read_alike(place.read_text())
    with pytest.raises(YAMLError) as pure:
        YAML(typ="safe", pure=True).compose(place.read_text())
    with pytest.raises(ConfigError) as said:
        read_document(place)
    mark = pure.value.problem_mark
    assert f"{place}:{mark.line + 1}:{mark.column + 1}: not YAML" in str(said.value)
