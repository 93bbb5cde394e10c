"""How tables are laid out in CQL databases, in the words of `SystemConfig.layout`.

    compaction       LCS  LeveledCompactionStrategy
                     STCS SizeTieredCompactionStrategy
                     TWCS TimeWindowCompactionStrategy, in windows of `window_minutes`
                     UCS  UnifiedCompactionStrategy, from Cassandra 5.0 on, not in ScyllaDB
                     ICS  IncrementalCompactionStrategy, of ScyllaDB alone, from 2025.1 on
    window_minutes   of TWCS alone: how long a window is, by the time of writing; 5 if not said
    replication      of ScyllaDB alone: simple (if not said), on vnodes; or network-topology, for which
                     its releases from 2025.1 on share out rows in tablets by their own default

The word holds for every table that a session creates. Without it a table has what its session says,
which is levelled compaction for that of the sensor workload, as in the report that it follows, and the
release's own default for the others. All options but those named are the release's defaults.

TWCS's own window is a day: a trial of hours would never leave the first, in which it does what STCS
does. Five minutes give the half hour of a published run six of them.

A statement is only ever made of the words here: no text of a config reaches a server.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from perf.systems.layout_words import Number, OneOf, Words, find_wrong_words

LEVELLED = "LCS"
DEFAULT_WINDOW_MINUTES = 5

# Filters, summaries, statistics and lists of components are small, and some releases write them again
# in place. In the format of tries, partitions and rows are what the index is in the older ones.
UNCHANGING_FILES = ("*-Data.db", "*-Index.db", "*-Partitions.db", "*-Rows.db")
"""Names of the files of a table that are never changed once written: see `KeepsData`."""

_CLASSES = {
    LEVELLED: "LeveledCompactionStrategy",
    "STCS": "SizeTieredCompactionStrategy",
    "TWCS": "TimeWindowCompactionStrategy",
    "UCS": "UnifiedCompactionStrategy",
    "ICS": "IncrementalCompactionStrategy",
}
_REPLICATIONS = {"simple": "SimpleStrategy", "network-topology": "NetworkTopologyStrategy"}
_COMPACTION, _WINDOW, _REPLICATION = "compaction", "window_minutes", "replication"
_DAY_MINUTES = 24 * 60


def check_layout(
    layout: Mapping[str, JsonValue], *, without: tuple[str, ...] = ("ICS",), replicates: bool = False
) -> tuple[str, ...]:
    """Return what is wrong with a layout.

    `without` are the compactions that a system does not have; one that `replicates` has that word, too.
    """
    replication: Words = {_REPLICATION: OneOf(tuple(_REPLICATIONS))} if replicates else {}
    words: Words = {
        **replication,
        _COMPACTION: OneOf(tuple(word for word in _CLASSES if word not in without)),
        _WINDOW: Number(1, _DAY_MINUTES),
    }
    problems = find_wrong_words(layout, words)
    if _WINDOW in layout and layout.get(_COMPACTION) != "TWCS":
        problems.append(f"{_WINDOW}: is of compaction: TWCS alone; say that, or remove it")
    return tuple(problems)


def replication_class(layout: Mapping[str, JsonValue]) -> str:
    """Return the class of a keyspace's replication."""
    return _REPLICATIONS[str(layout.get(_REPLICATION, "simple"))]


def needs_line(layout: Mapping[str, JsonValue]) -> str | None:
    """Return the line of Cassandra from which on it has the compaction of a layout; None: all do."""
    return "5.0" if layout.get(_COMPACTION) == "UCS" else None


def compaction_options(layout: Mapping[str, JsonValue], default: str | None = None) -> tuple[str, ...]:
    """Return what follows WITH, or AND, in a CREATE TABLE for its compaction; nothing if none is said.

    `default` is the word for a table whose config says none.

    Raises:
        KeyError: a word that `check_layout` refuses.

    """
    word = layout.get(_COMPACTION, default)
    if word is None:
        return ()
    options = {"class": _CLASSES[str(word)]}
    if word == "TWCS":
        minutes = int(str(layout.get(_WINDOW, DEFAULT_WINDOW_MINUTES)))
        options |= {"compaction_window_unit": "MINUTES", "compaction_window_size": str(minutes)}
    said = ", ".join(f"'{name}': '{value}'" for name, value in options.items())
    return (f"compaction = {{{said}}}",)


def with_options(layout: Mapping[str, JsonValue], *others: str, default: str | None = None) -> str:
    """Return the whole WITH clause of a CREATE TABLE, with a space before it, or nothing."""
    options = (*others, *compaction_options(layout, default))
    return f" WITH {' AND '.join(options)}" if options else ""
