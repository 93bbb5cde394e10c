"""The rows of a table of points as HTML: what a template's loop does, at a fraction of its time.

The series of an experiment share their trials, so what a row says of its trial is made once.
"""

from datetime import datetime
from functools import lru_cache
from html import escape

from markupsafe import Markup

from analysis.detection.series import Point
from analysis.judging.judgement import JudgedSeries
from perf.model.metrics import HIGHEST_LOAD
from perf.model.results import Purpose, SeriesKey, TrialId
from reports.site.context import NO_BOUNDS, Bounds
from reports.wording import links
from reports.wording.wording import interval, moment, night_name, quantity, spread

NEWEST_ROWS = 30
"""Points that a page lists by itself; the others are in its data, and listed when asked for."""
_TRIALS_AT_HAND = 20_000


def rows_of_points(judged: JudgedSeries, bounds: Bounds = NO_BOUNDS) -> Markup:
    """Return a row for each of the newest points of a series, the newest first; all texts are escaped.

    `bounds` are the ends between which the answers of searches lie, by trial, phase and operation.
    """
    key, points = judged.series.key, judged.series.points
    newest = range(len(points) - 1, max(0, len(points) - NEWEST_ROWS) - 1, -1)
    rows = (_row(key, index + 1, points[index], bounds) for index in newest)
    return Markup("\n".join(rows))  # noqa: S704  each text is escaped below


def find_ends(key: SeriesKey, trial: TrialId, bounds: Bounds) -> tuple[float, float] | None:
    """Return the ends between which a search's answer lies; None for what no search answered."""
    return bounds.get((trial, key.phase, key.operation)) if key.metric == HIGHEST_LOAD.name else None


def _row(key: SeriesKey, number: int, point: Point, bounds: Bounds) -> str:
    ends = find_ends(key, point.trial, bounds)
    around = f"between {interval(*ends)}" if ends else spread(point.iterations)
    before = _cells_before(point.release.version, point.night, point.started_at)
    imported = ' <span class="note">imported</span>' if point.purpose is Purpose.IMPORTED else ""
    return (
        f'<tr id="point-{number}">\n<th scope="row" class="num">{number}</th>\n{before}\n'
        f'<td class="num">{escape(quantity(point.value, key.metric))}{imported}</td>\n'
        f'<td class="num">{escape(around)}</td>\n{_trial(point.trial)}\n</tr>'
    )


@lru_cache(_TRIALS_AT_HAND)
def _cells_before(release: str, night: str, started_at: datetime) -> str:
    started = moment(started_at)
    return (
        f'<td>{escape(release)}</td>\n<td class="nowrap">{escape(night_name(night))}</td>\n'
        f'<td class="nowrap"><time datetime="{started.iso}">{started.text}</time></td>'
    )


@lru_cache(_TRIALS_AT_HAND)
def _trial(trial: TrialId) -> str:
    page = links.trial_page(trial)
    return f'<td class="trial"><a href="../{escape(page)}">{escape(trial)}</a></td>'
