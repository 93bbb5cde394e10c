"""The promises of docs/reliability.md: which tests hold them, and with what figures.

A test says `@pytest.mark.keeps("finished-trials-survive")`, and tells its figures by the fixture
`figures`: `figures["kills"] = 213`. Where KNICKPOINT_TESTS_TOLD names a file, each test adds a line
that says what it came to. `python kept.py FILE` prints the table, and fails where one is not shown.
"""

import json
import os
import platform
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs" / "reliability.md"
_ROW = re.compile(r"^\| `([a-z-]+)` \| (.+?) \| ")


@dataclass(slots=True)
class Shown:
    """What the tests of one promise came to; `outcomes` counts them by pytest's words."""

    outcomes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    figures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_kept(self) -> bool:
        return set(self.outcomes) == {"passed"}

    def describe(self) -> str:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        return "; ".join((counts or "no test was run", *self.figures))


def read_promises() -> dict[str, str]:
    """Return what docs/reliability.md promises, by name, in its order."""
    rows = map(_ROW.match, DOCS.read_text(encoding="utf-8").splitlines())
    return {row[1]: row[2] for row in rows if row}


def find_names(item: pytest.Item) -> list[str]:
    """Return the promises that a test holds."""
    return [name for mark in item.iter_markers("keeps") for name in mark.args]


class Teller:
    """A plug-in of pytest: adds a line to a file for each phase of each test, parallel ones as well."""

    def __init__(self, reported: Path) -> None:
        self.reported = reported

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[Any]:
        """Describe which promises a test is about, where it runs."""
        report: pytest.TestReport = yield
        figures = dict(report.user_properties).get("figures", {})
        reported = (
            [f"{key}: {value}" for key, value in figures.items()] if report.when == "teardown" else []
        )
        report.user_properties = [("keeps", find_names(item)), ("figures", reported)]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write down what a test came to, where all reports arrive."""
        if os.environ.get("PYTEST_XDIST_WORKER"):
            return
        properties = dict(report.user_properties)
        line = {
            "test": report.nodeid,
            # A worker that crashed does not say what it was about.
            "keeps": properties.get("keeps", [*read_promises()]),
            "seconds": report.duration,
            "outcome": report.outcome if report.when == "call" or not report.passed else "",
            "figures": properties.get("figures", []),
        }
        with self.reported.open("a") as reported:
            reported.write(f"{json.dumps(line)}\n")


def read_shown(reported: Path) -> dict[str, Shown]:
    """Return what the tests of each promise came to, by what was written down in a file."""
    shown: dict[str, Shown] = {name: Shown() for name in read_promises()}
    for line in map(json.loads, reported.read_text().splitlines() if reported.exists() else ()):
        for name in line["keeps"]:
            one = shown[name]
            one.seconds += line["seconds"]
            if line["outcome"]:
                one.outcomes[line["outcome"]] += 1
            one.figures += line["figures"]
    return shown


def main(file: str) -> int:
    """Print the table of a file; what no test showed is not kept."""
    shown, report = read_shown(Path(file)), sys.stdout.write
    for name, promise in read_promises().items():
        one = shown[name]
        report(f"{'kept' if one.is_kept else 'NOT SHOWN':<9} {name} [{one.seconds:.0f} s]\n")
        report(f"          {promise}\n          {one.describe()}\n")
    kept = sum(one.is_kept for one in shown.values())
    report(
        f"\n{kept} of {len(shown)} promises kept; Python "
        f"{platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores\n"
        f"What is not covered: {DOCS.parent.name}/{DOCS.name}#what-is-not-covered\n"
    )
    return 0 if kept == len(shown) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
