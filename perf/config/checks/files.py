"""The files of a configuration, as checks see them, and what is checked of all kinds of files.

A name is dangling only if no *file* of that name exists: a file that exists but is wrong is complained
about once, where it stands.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from perf.local.document import YamlDocument
from perf.local.problems import Place, suggest
from perf.model.design import Suite, SystemConfig, Testbed, Topology, Workload


class HasName(Protocol):
    """A design value that lives in a file of its own name, or in a list by its name."""

    @property
    def name(self) -> str:
        """The name that other files use for it."""
        ...


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ConfigFile(Generic[T]):
    """One file: its document, and its value if it is valid by itself."""

    document: YamlDocument
    value: T | None

    @property
    def top(self) -> Place:
        """The whole file, as a place in it."""
        return Place(self.document)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """All files of a configuration by name; system configs by system and name."""

    topologies: Mapping[str, ConfigFile[Topology]]
    testbeds: Mapping[str, ConfigFile[Testbed]]
    workloads: Mapping[str, ConfigFile[Workload]]
    systems: Mapping[str, Mapping[str, ConfigFile[SystemConfig]]]
    suites: Mapping[str, ConfigFile[Suite]]
    known_systems: Collection[str]
    known_releases: Mapping[str, Mapping[str, str]]
    """Each version's line, by system; a system that cannot be loaded here is absent, not checked."""


def find_repeated(at: Place, items: Iterable[HasName]) -> Iterator[str]:
    """Find items of a list that have the same name."""
    seen: dict[str, int] = {}
    for index, item in enumerate(items):
        first = seen.setdefault(item.name, index)
        if first != index:
            yield (at / index / "name").say(f"as in {at / first}; give each its own")


def find_dangling(at: Place, name: str, folder: str, known: Collection[str]) -> Iterator[str]:
    """Find a name that leads to no file; say which names do."""
    if name not in known:
        yield at.say(f"but there is no {folder}/{name}.yaml; {suggest(name, known)}", name)


def find_unnamed(at: Place, name: str | None, kind: str, known: Collection[str]) -> Iterator[str]:
    """Find a name that nothing in the same file has; say which there are."""
    if name is not None and name not in known:
        yield at.say(f"but there is no such {kind}; {suggest(name, known)}", name)
