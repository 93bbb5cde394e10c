"""Find systems: a folder here with a `system.py` is one, imported only when it is asked for."""

import importlib
from functools import cache
from importlib.resources import files

from perf.model.errors import UsageError
from perf.systems.contract import FakeSystem, System


@cache
def names() -> tuple[str, ...]:
    """Return the names of all systems, without importing any of them."""
    folders = files("perf.systems").iterdir()
    return tuple(sorted(folder.name for folder in folders if (folder / "system.py").is_file()))


def databases() -> tuple[str, ...]:
    """Return the names of the systems that are database products.

    Raises:
        UsageError: the driver of one is not installed.

    """
    return tuple(name for name in names() if not isinstance(load(name), FakeSystem))


def load(name: str) -> System:
    """Import one system.

    Raises:
        UsageError: there is no system of that name, or its driver is not installed.

    """
    if name not in names():
        raise UsageError(f"unknown system {name!r}; known: {', '.join(names())}")
    try:
        module = importlib.import_module(f"perf.systems.{name}.system")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"system {name} needs the Python package {error.name!r}; "
            "install it with: pip install 'knickpoint[measure]'"
        ) from error
    system: System = module.SYSTEM
    return system
