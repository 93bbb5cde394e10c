"""The settings behind a change of the configuration, by key and value: a hash says nothing."""

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from pydantic import JsonValue

from analysis.judging.description import SettingsInWords
from analysis.judging.explanations import Explanation
from perf.config.difference import Knob, find_knobs
from perf.local.document import dotted

Settings: TypeAlias = Mapping[str, JsonValue]
"""What a bundle keeps of a trial's config, workload and topology."""
ChangedSettings: TypeAlias = Mapping[Explanation, tuple[Knob, ...]]
"""The settings that differ in what changed, where both contents are known."""

NO_SETTINGS: ChangedSettings = {}
_MOST_NAMED = 2
_MOST_LETTERS = 60
"""Of a value in a sentence; the page of an incident has the whole."""
_CONFIG = "config"


def find_changed(one: Explanation, settings: tuple[Settings, Settings]) -> tuple[Knob, ...]:
    """Return the settings that differ in what changed, where both sides kept them."""
    part = one.name.partition(" ")[0]
    before, after = (side.get(part) for side in settings)
    return find_knobs(part, before, after) if before and after else ()


def say_settings(knobs: Sequence[Knob]) -> str:
    """Name the first settings that changed with both values, and count the others."""
    named = [f"{setting_name(one)}: {' → '.join(setting_values(one))}" for one in knobs[:_MOST_NAMED]]
    rest = len(knobs) - len(named)
    return f"{', '.join(named)}{f' and {rest:,} more' if rest > 0 else ''}"


def name_settings(changed: ChangedSettings) -> SettingsInWords:
    """Name the settings behind each explanation, as `describe` takes them."""
    return {one: say_settings(knobs) for one, knobs in changed.items()}


def setting_name(knob: Knob) -> str:
    """Name a setting as its database does, without the file's own key around all of them."""
    first, *others = knob.steps
    return _clip(dotted(tuple(others)) if first == "settings" and others else dotted(knob.steps))


def setting_values(knob: Knob) -> tuple[str, str]:
    """Write both values of a setting as people do, and say what holds where it is not set."""
    before, after = _plain(knob.before), _plain(knob.after)
    if before == after:  # "1" and 1 are two values
        before, after = knob.before, knob.after
    absent = "not set (the release's default)" if knob.file == _CONFIG else "not set"
    return _clip(before) or absent, _clip(after) or absent


def _plain(value: str) -> str:
    """Take the quotes of a plain string off; what needs them to be read keeps them."""
    if not value.startswith('"'):
        return value
    text = str(json.loads(value))
    return text if text.strip() == text and text and text.isprintable() else value


def _clip(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}…"
