"""How the cost of a night grows with the history: measured by size, and drawn.

    python tests/benchmarks/scale/growth.py FOLDER [YEARSxSERIES …]

Each size gets a history of its own in FOLDER, made up and reported once; then three nights in which
each series has a new point are appended, judged and reported, and the last once more with nothing new.
Figures are kept in FOLDER/growth.json: what was interrupted goes on with the size that it was at. The
picture of all is FOLDER/growth.svg. Ten sizes take some two hours and 12 GB.
"""

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from math import log10
from pathlib import Path

from years import NIGHTS_A_YEAR, make_up, report, say, seal_night

from perf.local.paths import DataPaths

sys.path[:0] = [str(Path(__file__).parents[1] / "site")]

from large_history import Size  # noqa: E402  found by the line above

SIZES = (*(f"{years}x{series}" for series in (100, 1000) for years in (1, 2, 5, 10)), "1x10000")
ROUNDS = 3
GOALS_S = {"append": 3.0, "judge": 10.0, "site": 10.0, "nothing new": 2.0}
TITLES = {
    "append": "Append a night",
    "judge": "Judge it",
    "site": "Update the site",
    "nothing new": "Site, nothing new",
}
WIDTH, HEIGHT, LEFT, TOP, PANEL, GAP = 920, 296, 46, 56, 180, 38
BOTTOM, LOWEST_S, HIGHEST_S = 262, 0.01, 200.0
STYLE = """
svg { font: 13px system-ui, sans-serif; background: #fff }
text { fill: #333 } .axis { stroke: #ccc } .goal { stroke: #777; stroke-dasharray: 5 4 }
.series { fill: none; stroke-width: 2 } .s100 { stroke: #0a7d8c } .s1000 { stroke: #b2452b }
.s10000 { stroke: #6b4fb3 } .dot { stroke: none } .dot.s100 { fill: #0a7d8c }
.dot.s1000 { fill: #b2452b } .dot.s10000 { fill: #6b4fb3 } .small { font-size: 11px }
@media (prefers-color-scheme: dark) {
  svg { background: #16191d } text { fill: #d8dde3 } .axis { stroke: #3a4048 }
  .s100 { stroke: #3fc1d0 } .s1000 { stroke: #f08a6c } .s10000 { stroke: #ab92f0 }
  .dot { stroke: none } .dot.s100 { fill: #3fc1d0 } .dot.s1000 { fill: #f08a6c }
  .dot.s10000 { fill: #ab92f0 }
}
"""


def main(folder: str, *sizes: str) -> None:
    """Measure what was not measured yet, and draw."""
    place = Path(folder)
    kept = place / "growth.json"
    figures = json.loads(kept.read_text()) if kept.exists() else {}
    for name in sizes or SIZES:
        if name not in figures:
            figures[name] = measure(place / name, name)
            kept.write_text(f"{json.dumps(figures, indent=1)}\n")
        say(f"{name}: {json.dumps(figures[name])}")
    (place / "growth.svg").write_text(draw(figures))


def prepare(place: Path, name: str) -> tuple[DataPaths, Size]:
    """Make a history up and report it once, unless it is there."""
    years, series = map(int, name.split("x"))
    paths, size = DataPaths(place), Size(series, years * NIGHTS_A_YEAR)
    done = place / "first.json"
    if not done.exists():
        make_up(paths, size)
        done.write_text(json.dumps(report(paths, size.nights)))
    return paths, size


def measure(place: Path, name: str) -> dict[str, list[float]]:
    """Return the seconds that passed of each stage, round by round, and the most memory in MB."""
    paths, size = prepare(place, name)
    rounds = []
    for _ in range(ROUNDS):
        size = replace(size, nights=size.nights + 1)
        seal_night(paths, size, size.experiments)
        rounds.append(report(paths, size.nights))
    again = report(paths, size.nights)
    found = {stage: [one[f"{stage}_s"] for one in rounds] for stage in ("append", "judge", "site")}
    memory = [one["peak_mb"] for one in rounds]
    return {**found, "nothing new": [again["site_s"]], "memory_mb": memory}


def draw(figures: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Return the curves as SVG: a panel for each stage, years and seconds on scales of logarithms."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>Seconds that a night costs, by years of history and number of series</title>",
        f"<style>{STYLE}</style>",
        *legend(sorted({int(name.split("x")[1]) for name in figures})),
    ]
    for number, (stage, title) in enumerate(TITLES.items()):
        left = LEFT + number * (PANEL + GAP)
        parts += axes(left, title)
        goal = height_of(GOALS_S[stage])
        parts.append(f'<path class="goal" d="M{left} {goal:.1f}h{PANEL}"/>')
        for series in sorted({int(name.split("x")[1]) for name in figures}):
            own = {
                int(name.split("x")[0]): statistics.median(one[stage])
                for name, one in figures.items()
                if int(name.split("x")[1]) == series
            }
            points = [(left + place_of(years), height_of(own[years])) for years in sorted(own)]
            line = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
            parts.append(f'<path class="series s{series}" d="M{line}"/>')
            for (x, y), years in zip(points, sorted(own), strict=True):
                seconds = float(f"{own[years]:.2g}")
                said = escape(f"{name_years(years)} × {series:,} series: {seconds:g} s")
                parts.append(
                    f'<circle class="dot s{series}" cx="{x:.1f}" cy="{y:.1f}" r="4">'
                    f"<title>{said}</title></circle>"
                )
    return "\n".join((*parts, "</svg>\n"))


def legend(series: Sequence[int]) -> list[str]:
    """Draw the legend: which colour is how many series, and what the dashes are."""
    parts = []
    for number, one in enumerate(series):
        x = LEFT + 130 * number
        parts.append(f'<circle class="dot s{one}" cx="{x + 5}" cy="16" r="5"/>')
        parts.append(f'<text x="{x + 16}" y="21">{one:,} series</text>')
    x = LEFT + 130 * len(series)
    return [*parts, f'<text x="{x}" y="21">dashed: the goal for 10 years × 1,000 series</text>']


def axes(left: int, title: str) -> list[str]:
    """Draw the axes of a panel."""
    parts = [f'<text x="{left}" y="{TOP - 8}" font-weight="600">{title}</text>']
    for seconds in (0.1, 1, 10, 100):
        y = height_of(seconds)
        parts.append(f'<path class="axis" d="M{left} {y:.1f}h{PANEL}"/>')
        parts.append(
            f'<text class="small" x="{left - 4}" y="{y + 4:.1f}" text-anchor="end">{seconds:g} s</text>'
        )
    for years in (1, 2, 5, 10):
        x = left + place_of(years)
        word = name_years(years) if years in (1, 10) else f"{years}"
        parts.append(
            f'<text class="small" x="{x:.1f}" y="{BOTTOM + 18}" text-anchor="middle">{word}</text>'
        )
    return parts


def name_years(years: int) -> str:
    """Return a number of years in words."""
    return "1 year" if years == 1 else f"{years} years"


def place_of(years: int) -> float:
    """Return how far to the right a number of years lies in a panel."""
    return 18 + (PANEL - 36) * log10(years)


def height_of(seconds: float) -> float:
    """Return at which height so many seconds lie."""
    share = log10(max(seconds, LOWEST_S) / LOWEST_S) / log10(HIGHEST_S / LOWEST_S)
    return BOTTOM - share * (BOTTOM - TOP)


if __name__ == "__main__":
    main(*sys.argv[1:])
