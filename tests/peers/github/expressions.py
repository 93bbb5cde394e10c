"""GitHub's expressions, as far as the conditions and values of our workflows use them.

After https://docs.github.com/en/actions/reference/workflows-and-actions/expressions: `&&` and `||` give
an operand, null and booleans are numbers beside anything else, texts are equal whatever their case.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

_TOKEN = re.compile(r"\s*(?:(&&|\|\||==|!=|[!(),])|'((?:[^']|'')*)'|([A-Za-z_][\w.-]*))")
_HOLE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)


def evaluate(text: str, contexts: Mapping[str, Any]) -> Any:  # noqa: ANN401  any value of JSON
    """Return the value of an expression, with or without `${{ }}` around it."""
    whole = _HOLE.fullmatch(text.strip())
    reader = _Reader((whole[1] if whole else text).strip(), contexts)
    value = reader.either()
    assert not reader.tokens, f"not understood: {text}"
    return value


def fill(text: str, contexts: Mapping[str, Any]) -> str:
    """Return a text with its expressions replaced by their values."""
    return _HOLE.sub(lambda hole: _show(evaluate(hole[1], contexts)), text)


def _show(value: Any) -> str:  # noqa: ANN401
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _number(value: Any) -> float:  # noqa: ANN401
    if value is None or value == "":
        return 0.0
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _equal(one: Any, other: Any) -> bool:  # noqa: ANN401
    if isinstance(one, str) and isinstance(other, str):
        return one.lower() == other.lower()
    return (one is None and other is None) or _number(one) == _number(other)


class _Reader:
    def __init__(self, text: str, contexts: Mapping[str, Any]) -> None:
        self.contexts = contexts
        self.tokens: list[tuple[str, str | None, str]] = []
        place = 0
        while place < len(text):
            found = _TOKEN.match(text, place)
            assert found, f"not understood: {text[place:]}"
            self.tokens.append((found[1] or "", found[2], found[3] or ""))
            place = found.end()

    def _takes(self, symbol: str) -> bool:
        if self.tokens and self.tokens[0][0] == symbol:
            self.tokens.pop(0)
            return True
        return False

    def either(self) -> Any:  # noqa: ANN401
        value = self._both()
        while self._takes("||"):
            other = self._both()
            value = value or other
        return value

    def _both(self) -> Any:  # noqa: ANN401
        value = self._compared()
        while self._takes("&&"):
            other = self._compared()
            value = value and other
        return value

    def _compared(self) -> Any:  # noqa: ANN401
        value = self._single()
        if self._takes("=="):
            return _equal(value, self._single())
        if self._takes("!="):
            return not _equal(value, self._single())
        return value

    def _single(self) -> Any:  # noqa: ANN401
        if self._takes("!"):
            return not self._single()
        if self._takes("("):
            value = self.either()
            assert self._takes(")")
            return value
        _, literal, name = self.tokens.pop(0)
        if literal is not None:
            return literal.replace("''", "'")
        if self._takes("("):
            return self._call(name)
        return self._look_up(name)

    def _call(self, name: str) -> Any:  # noqa: ANN401
        given = []
        while not self._takes(")"):
            given.append(self.either())
            self._takes(",")
        match name, given:
            case "startsWith", [text, start]:
                return _show(text).lower().startswith(_show(start).lower())
            case "cancelled", []:
                return False
            case _:
                raise AssertionError(f"not understood: {name}({given})")

    def _look_up(self, name: str) -> Any:  # noqa: ANN401
        if name in {"true", "false"}:
            return name == "true"
        value: Any = self.contexts
        for step in name.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        return value
