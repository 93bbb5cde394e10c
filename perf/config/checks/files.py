"""The files of a configuration, as checks see them, and what is checked of all kinds of files.

A name is dangling only if no *file* of that name exists: a file that exists but is wrong is complained
about once, where it stands.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from perf.local.document import Steps, YamlDocument, dotted
from perf.local.problems import say
from perf.model.design import Suite, SystemConfig, Testbed, Topology, Workload


class HasName(Protocol):
    """A design value that lives in a file of its own name."""

    @property
    def name(self) -> str:
        """The name that other files use for it."""
        ...


T = TypeVar("T")
N = TypeVar("N", bound=HasName)


@dataclass(frozen=True, slots=True)
class ConfigFile(Generic[T]):
    """One file: its document, and its value if it is valid by itself."""

    document: YamlDocument
    value: T | None


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


def check_name(entry: ConfigFile[N]) -> Iterator[str]:
    """Insist that a file bears the name that it gives inside."""
    if entry.value is not None and entry.value.name != entry.document.path.stem:
        name, file = entry.value.name, entry.document.path.name
        yield say(entry.document, ("name",), name, f"but the file is {file}; make them equal")


def find_repeated(
    document: YamlDocument,
    steps: Steps,
    items: Iterable[T],
    key: str,
    identify: Callable[[T], Hashable],
) -> Iterator[str]:
    """Find items of a list that are the same by some key."""
    seen: dict[Hashable, int] = {}
    for index, item in enumerate(items):
        identity = identify(item)
        first = seen.setdefault(identity, index)
        if first != index:
            why = f"as in {dotted((*steps, first))}; give each its own"
            yield say(document, (*steps, index, key), identity, why)
