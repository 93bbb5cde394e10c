"""Find systems by listing this folder; import one only when it is asked for by name."""

import importlib
from importlib.resources import files

from perf.errors import UsageError
from perf.systems.contract import System

_NOT_SYSTEMS = {"__init__", "contract", "registry"}


def names() -> tuple[str, ...]:
    """Give the names of all systems, without importing any of them."""
    stems = (
        item.name.removesuffix(".py")
        for item in files("perf.systems").iterdir()
        if item.name.endswith(".py")
    )
    return tuple(sorted(stem for stem in stems if stem not in _NOT_SYSTEMS))


def load(name: str) -> System:
    """Import one system.

    Raises:
        UsageError: there is no system of that name, or its driver is not installed.

    """
    if name not in names():
        raise UsageError(f"unknown system {name!r}; known: {', '.join(names())}")
    try:
        module = importlib.import_module(f"perf.systems.{name}")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"system {name} needs the Python package {error.name!r}; "
            "install it with: pip install 'knickpoint[measure]'"
        ) from error
    system: System = module.SYSTEM
    return system
