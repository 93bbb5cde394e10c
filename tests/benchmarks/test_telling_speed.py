"""How fast a large history is reported: whole, after one night, after nothing. No time is asserted.

KNICKPOINT_BENCH_SITE=1000x1000 is the size of the goals (docs/reports.md), series × nights; it takes
a quarter of an hour. KNICKPOINT_BENCH_ROUNDS is how often each is measured.
"""

import json
import os
import statistics
import sys
from pathlib import Path

import chromium
import pytest
from large_history import PER_EXPERIMENT, Size, grow
from memory import run
from pytest_benchmark.fixture import BenchmarkFixture

from perf.local.paths import DataPaths

TELL = Path(__file__).parent / "site" / "tell.py"
FIGURES = ("judge_s", "judge_cpu_s", "write_s", "write_cpu_s", "peak_mb")


def show(text: str) -> None:
    """Write a line to the terminal."""
    sys.stdout.write(f"{text}\n")


def report(paths: DataPaths, nights: int) -> dict[str, float]:
    """Judge and tell in a process of its own."""
    output, peak_mb = run([sys.executable, str(TELL), str(paths.data), str(nights)])
    return {**json.loads(output.splitlines()[-1]), "peak_mb": peak_mb}


def say(what: str, rounds: list[dict[str, float]]) -> None:
    """Print the median and the spread of each figure."""
    show(f"\n{what}, n = {len(rounds)}:")
    for name in FIGURES:
        values = sorted(one[name] for one in rounds)
        show(f"  {name}: {statistics.median(values):.1f} ({values[0]:.1f} to {values[-1]:.1f})")


def say_sizes(site: Path) -> None:
    """Print how large the pages of each kind are."""
    show(f"\n  index.html: {(site / 'index.html').stat().st_size / 1000:.0f} KB")
    for folder in sorted(path for path in site.iterdir() if path.is_dir()):
        sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
        show(f"  {folder.name}/: {len(sizes):,} files, {sum(sizes) / 1e6:.1f} MB")


def say_how_soon_the_index_is_usable(index: Path) -> None:
    """Print how long Chromium takes until the front page is laid out and its scripts have run."""
    seconds = []
    with chromium.start() as browser:
        for _ in range(5):
            page = browser.new_page()
            page.goto(index.as_uri())
            entry = "performance.getEntriesByType('navigation')[0].loadEventEnd"
            page.wait_for_function(f"{entry} > 0")
            seconds.append(page.evaluate(entry) / 1000)
            page.close()
    show(f"  index usable after {statistics.median(seconds):.2f} s, n = 5")


def test_tell_a_large_history(
    benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    series, nights = map(int, os.environ.get("KNICKPOINT_BENCH_SITE", "100x200").split("x"))
    rounds = int(os.environ.get("KNICKPOINT_BENCH_ROUNDS", "3"))
    paths = DataPaths(tmp_path)
    grow(paths, Size(series, nights))
    whole, again, grown = [], [], []
    for number in range(rounds):
        if paths.site.exists():
            (paths.site / ".knickpoint-site").write_text("{}")  # nothing is known: all is made
        whole.append(report(paths, nights + number))
        again.append(report(paths, nights + number))
        grow(paths, Size(series, nights + number + 1), first=nights + number)
        grown.append(report(paths, nights + number + 1))
    benchmark.extra_info |= {"whole": whole, "again": again, "grown": grown}
    benchmark.pedantic(report, args=(paths, nights + rounds), rounds=1)
    with capsys.disabled():
        show(f"\n{series:,} series of {nights:,} nights, {nights * series // PER_EXPERIMENT:,} trials")
        say("everything", whole)
        say("again, nothing new", again)
        say("after one more night of all experiments", grown)
        say_sizes(paths.site)
        say_how_soon_the_index_is_usable(paths.site / "index.html")
