"""The command that searches the release that brought a change."""

from pathlib import Path

import click

from perf.errors import UsageError
from perf.model import Release
from perf.options import configs_option, data_option
from perf.releases import find_release
from perf.systems import registry


@click.command()
@click.argument("system")
@click.argument("span", metavar="FIRST..LAST")
@data_option
@configs_option
def bisect(system: str, span: str, data: Path, configs: Path | None) -> None:
    """Find the release of SYSTEM, after FIRST and up to LAST, that brought a change."""
    found = releases_between(system, span)
    click.echo(" ".join(release.version for release in found))


def releases_between(system: str, span: str) -> tuple[Release, ...]:
    """Give the releases from FIRST to LAST of a span "FIRST..LAST", both included, oldest first.

    Raises:
        UsageError: it is no span, a release is unknown, the two are of different lines, or the first
            is not before the last.

    """
    first_version, dots, last_version = span.partition("..")
    if not (dots and first_version and last_version):
        raise UsageError(f"{span!r} is no span of releases; write FIRST..LAST, for example 5.0.2..5.0.9")
    loaded = registry.load(system)
    first, last = (find_release(loaded, version) for version in (first_version, last_version))
    if first.line != last.line:
        raise UsageError(
            f"{first.version} is of line {first.line} and {last.version} of line {last.line}; releases "
            "have an order within one line only. To compare the two: knickpoint compare"
        )
    if first.ordinal >= last.ordinal:
        raise UsageError(
            f"FIRST is the older end, and {first.version} is not before {last.version}; "
            f"see the order: knickpoint releases {system}"
        )
    within = (
        release
        for release in loaded.releases()
        if release.line == first.line and first.ordinal <= release.ordinal <= last.ordinal
    )
    return tuple(sorted(within, key=lambda release: release.ordinal))
