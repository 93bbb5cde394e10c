"""What a layout may say: words from a list, numbers in a range, and nothing else.

A layout ends up in statements that create tables, and anybody may propose one: it holds no free text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some words."""

    words: tuple[str, ...]

    def refuse(self, value: JsonValue) -> str:
        """Describe why a value may not be; nothing if it may."""
        return "" if value in self.words else _say(value, self.words)


@dataclass(frozen=True, slots=True)
class SomeOf:
    """A list of some words, each at most once; it may be empty."""

    words: tuple[str, ...]

    def refuse(self, value: JsonValue) -> str:
        """Describe why a value may not be; nothing if it may."""
        if not isinstance(value, list):
            return f"is {value!r}; write a list of: {', '.join(self.words)}"
        for place, one in enumerate(value):
            if one not in self.words:
                return f"one {_say(one, self.words)}"
            if one in value[:place]:
                return f"holds {one} twice; list each once"
        return ""


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number in a range, its ends included."""

    least: int
    most: int

    def refuse(self, value: JsonValue) -> str:
        """Describe why a value may not be; nothing if it may."""
        if type(value) is int and self.least <= value <= self.most:
            return ""
        return f"is {value!r}; set a whole number from {self.least} to {self.most}"


Words: TypeAlias = Mapping[str, OneOf | SomeOf | Number]
"""Each key of a layout, and what it may be."""


def find_wrong_words(layout: Mapping[str, JsonValue], words: Words) -> list[str]:
    """Return what is wrong with each key of a layout by itself, as "key: what, what next"."""
    problems = []
    for key, value in layout.items():
        if key not in words:
            problems.append(
                f"{key}: is no word of this system's layouts; known: {', '.join(sorted(words))}"
            )
        elif why := words[key].refuse(value):
            problems.append(f"{key}: {why}")
    return problems


def _say(value: JsonValue, words: tuple[str, ...]) -> str:
    return f"is {value!r}; known: {', '.join(words)}"
