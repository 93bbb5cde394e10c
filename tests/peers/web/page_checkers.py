"""Two judges of pages: axe-core, which finds barriers, and the Nu Html Checker, which finds faults.

`package.json` and its lock pin both.
"""

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from node_packages import install_packages
from playwright.sync_api import Page

from perf.releases.java import find_java

HERE = Path(__file__).parent
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
JAVAS = (21, 17, 11)
UNKNOWN = ("“vector-effect”",)
"""Properties that its style checker does not know: this one is of SVG 2."""


@cache
def _packages() -> Path:
    return install_packages(HERE, "page-checkers") / "node_modules"


@cache
def axe_source() -> str:
    """Return axe-core as a script."""
    return (_packages() / "axe-core/axe.min.js").read_text()


def find_barriers(page: Page) -> list[str]:
    """Return each barrier that axe finds on an open page, with its rule, weight and first places.

    The page's context must bypass its policy, which forbids a script that is not the site's.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe_source())
    # Without `preload`: it would fetch the style sheet, which a page opened from a file cannot.
    run = (
        "rules => axe.run({runOnly: rules, resultTypes: ['violations'], preload: false})"
        ".then(told => told.violations)"
    )
    violations: list[dict[str, Any]] = page.evaluate(run, list(RULES))
    return [
        f"{one['id']} ({one['impact']}): {one['help']}: "
        + "; ".join(
            f"{node['target'][0]} {node['failureSummary'].splitlines()[-1].strip()}"
            for node in one["nodes"][:3]
        )
        for one in violations
    ]


def find_faults(files: list[Path]) -> list[str]:
    """Return what the Nu Html Checker has against these pages and style sheets, in one run."""
    java = find_java(JAVAS, print)
    jar = _packages() / "vnu-jar/build/dist/vnu.jar"
    # It runs for a few seconds only: what a JVM does for its long life would be most of them.
    quick = ("-Xss4m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    reported = ("--stdout", "--format", "json", "--exit-zero-always", "--also-check-css")
    done = subprocess.run(
        [java.path, *quick, "-jar", jar, *reported, *files],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the Nu Html Checker did not run: {done.stderr or done.stdout}")
    return [
        f"{Path(one['url']).name}:{one.get('lastLine')}: {one['message']} {one.get('extract', '')!r}"
        for one in json.loads(done.stdout)["messages"]
        if one["type"] == "error" and not any(name in one["message"] for name in UNKNOWN)
    ]
