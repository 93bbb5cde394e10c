"""What a system's config may say of its tables: words that the system knows, and no others."""

from collections.abc import Iterator
from contextlib import suppress

from perf.config.checks.topologies_and_testbeds import ConfigFile
from perf.local.problems import say
from perf.model.design import SystemConfig
from perf.model.errors import UsageError
from perf.systems import registry
from perf.systems.contract import ChecksLayout


def check_layout(system: str, entry: ConfigFile[SystemConfig]) -> Iterator[str]:
    """Find words of a layout that its system does not know.

    A system whose driver is not installed here cannot be asked: then nothing is measured here either.
    """
    if entry.value is None or not entry.value.layout:
        return
    document, layout = entry.document, entry.value.layout
    with suppress(UsageError):
        loaded = registry.load(system)
        if not isinstance(loaded, ChecksLayout):
            why = f"but {system} lays out its tables in one way only; remove it"
            yield say(document, ("layout",), ", ".join(layout), why)
            return
        for problem in loaded.check_layout(layout):
            key, _, what = problem.partition(": ")
            yield f"{document.locate(('layout', key))}: layout.{key} {what}"
