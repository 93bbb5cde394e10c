"""Two parsers read configuration: the fast one only what both take to mean the same."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from perf.local.document import fast_reader, is_read_alike

CONFIGS = Path(__file__).parents[3] / "configs"
PIECES = (
    *" \t\n:-?,[]{}#&*!|>'\"%@`\\~=<01aeyN.+_/\r\x85\u2028é\ufeff",
    *("- ", ": ", "? ", "key:", "key: value\n", "  inner: 1\n", "- item\n", "---\n", "...\n", "# c\n"),
    *("{a:1}", "[a,b]", "{a: b}", "[a: b]", "{}", "[]", '{"a":1}', "'it''s'", '"\\x41\\u0041"'),
    *("!!str ", "&a ", "*a", "<<: ", "|\n  x\n", ">-\n  x\n y\n", "|\n#c\n", "%YAML 1.1\n---\n"),
    *("0o17", "017", "1:30", "yes", "null", "1e3", ".inf", "2020-01-01", "a: b: c", "::", "- - -"),
)


def read(yaml: YAML, text: str) -> object:
    """Return what a text means: tags, texts, anchors and lines; of what is no YAML, None."""
    try:
        return flatten(yaml.compose(text))
    except (YAMLError, ValueError, TypeError, AttributeError, AssertionError, LookupError):
        return None


def flatten(node: Node | None) -> object:
    """Return a node as plain values; the line of an empty one is not told by all parsers alike."""
    if node is None:
        return "nothing"
    if isinstance(node, ScalarNode):
        return node.tag, node.anchor, node.value, node.value and node.start_mark.line
    items: Sequence[object] = node.value
    if isinstance(node, MappingNode):
        items = [(flatten(key), flatten(value)) for key, value in node.value]
    elif isinstance(node, SequenceNode):
        items = [flatten(one) for one in node.value]
    return node.tag, node.anchor, node.start_mark.line, items


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_what_the_fast_parser_takes_means_the_same(text: str) -> None:
    if is_read_alike(text) and (fast := read(fast_reader(text), text)) is not None:
        pure = read(YAML(typ="safe", pure=True), text)
        # The other one refuses a key in quotes without a value in a list, `["a":, b]`, which is YAML.
        assert fast == pure or (pure is None and '":' in text)


@pytest.mark.parametrize(
    "text",
    [
        *("a:\tb", "a: b\r\n", "a: \x85b", "%YAML 1.1\n---\na: no", "|\n#c", "a: !<str> b"),
        *("a: &b c", "a: [*b]", "? a", "a: |# c", "\ufeffa: b"),
    ],
)
def test_what_the_parsers_may_read_differently_is_left_to_the_one_of_yaml_1_2(text: str) -> None:
    assert not is_read_alike(text)


def test_all_that_is_shipped_is_read_by_the_fast_parser() -> None:
    for path in CONFIGS.rglob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        assert is_read_alike(text), path
        fast = read(fast_reader(text), text)
        assert fast is not None, path
        assert fast == read(YAML(typ="safe", pure=True), text), path
