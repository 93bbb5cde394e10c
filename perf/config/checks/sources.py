"""What a source's schema cannot see: systems that there are not, patterns without a group."""

import re
from collections.abc import Collection, Iterator

from perf.config.checks.files import ConfigFile
from perf.local.problems import suggest
from perf.model.sources import ArchiveSource, BuildSource


def check_source(entry: ConfigFile[BuildSource], known_systems: Collection[str]) -> Iterator[str]:
    """Find a system that there is not, and a pattern that finds no version."""
    source, at = entry.value, entry.top
    if source is None:
        return
    if source.system not in known_systems:
        why = f"and there is no such system; {suggest(source.system, known_systems)}"
        yield (at / "system").say(why)
    if isinstance(source, ArchiveSource):
        try:
            names = re.compile(source.pattern).groupindex
        except re.error as error:
            yield (at / "pattern").say(f"which is no regular expression: {error}")
        else:
            if "version" not in names or names.keys() - {"version", "file"}:
                yield (at / "pattern").say(
                    "which must find the version in a group (?P<version>…), and may find its archive in"
                    " a group (?P<file>…), and nothing else by name"
                )
