"""How collections are laid out in MongoDB, in the words of `SystemConfig.layout`.

    collection    time-series (without the word), or plain
    granularity   of a time-series collection: seconds (the server's default), minutes or hours
    indexes       of the devops workload alone, a list; see `perf.systems.mongodb.devops`

A plain collection of readings has one index, {device_id: 1, ts: -1}: without it, the newest readings
of a device would be looked for in all of them. A time-series collection is given the same one.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from perf.systems.layout_words import OneOf, SomeOf, Words, find_wrong_words

DEFAULT_GRANULARITY = "seconds"
DEVOPS_INDEXES = ("time", "hostname-time")

_WORDS: Words = {
    "collection": OneOf(("time-series", "plain")),
    "granularity": OneOf((DEFAULT_GRANULARITY, "minutes", "hours")),
    "indexes": SomeOf(DEVOPS_INDEXES),
}


def check_layout(layout: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Return what is wrong with a layout, each as "key: what, what next"."""
    problems = find_wrong_words(layout, _WORDS)
    if is_plain(layout) and "granularity" in layout:
        problems.append("granularity: is of time-series collections alone; remove it")
    return tuple(problems)


def is_plain(layout: Mapping[str, JsonValue]) -> bool:
    """Return whether collections are plain, rather than time-series."""
    return layout.get("collection") == "plain"


def collection_options(
    layout: Mapping[str, JsonValue], *, time_field: str, meta_field: str
) -> dict[str, Any]:
    """Return what `create_collection` is given beside the name."""
    if is_plain(layout):
        return {}
    granularity = layout.get("granularity", DEFAULT_GRANULARITY)
    series = {"timeField": time_field, "metaField": meta_field, "granularity": granularity}
    return {"timeseries": series}
