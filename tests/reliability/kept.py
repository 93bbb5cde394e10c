"""The promises of docs/reliability.md: which tests hold them, and with what figures.

A test says `@pytest.mark.keeps("finished-trials-survive")`, and tells its figures by the fixture
`figures`: `figures["kills"] = 213`. With `--promises`, which is `make reliability`, tests do their full
effort and the table is printed; without it they do as much as `make test` has time for.
"""

import os
import platform
import re
import time
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
    """Give what docs/reliability.md promises, by name, in its order."""
    rows = map(_ROW.match, DOCS.read_text(encoding="utf-8").splitlines())
    return {row[1]: row[2] for row in rows if row}


def find_names(item: pytest.Item) -> list[str]:
    """Give the promises that a test holds."""
    return [name for mark in item.iter_markers("keeps") for name in mark.args]


class PromiseTable:
    """A plug-in of pytest: collects what tests tell of promises, prints the table at the end."""

    def __init__(self) -> None:
        self.began_s = time.monotonic()
        self.promises = read_promises()
        self.shown: dict[str, Shown] = {name: Shown() for name in self.promises}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[Any]:
        report: pytest.TestReport = yield
        for name in find_names(item):
            shown = self.shown[name]
            shown.seconds += report.duration
            if report.when == "call" or not report.passed:
                shown.outcomes[report.outcome] += 1
            if report.when == "teardown":
                told = dict(report.user_properties).get("figures", {})
                shown.figures += [f"{key}: {value}" for key, value in told.items()]
        return report

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A promise that no test showed is none that is kept."""
        if session.exitstatus == pytest.ExitCode.OK and not all(
            shown.is_kept for shown in self.shown.values()
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        tell = terminalreporter.write_line
        terminalreporter.section("promises")
        for name, promise in self.promises.items():
            shown = self.shown[name]
            tell(f"{'kept' if shown.is_kept else 'NOT SHOWN':<9} {name} [{shown.seconds:.0f} s]")
            tell(f"          {promise}")
            tell(f"          {shown.describe()}")
        kept = sum(shown.is_kept for shown in self.shown.values())
        minutes = (time.monotonic() - self.began_s) / 60
        tell("")
        tell(
            f"{kept} of {len(self.promises)} promises kept, in {minutes:.0f} min; Python "
            f"{platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores"
        )
        tell(f"What is not covered: {DOCS.parent.name}/{DOCS.name}#what-is-not-covered")
