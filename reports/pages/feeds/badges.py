"""Badges: how things stand, as small SVG pictures for a README. Pure.

The word says it, the colour only repeats it; a title reads it aloud. The text is as wide as it says
(`textLength`), whatever font a browser takes, so a long name fits its field. The two fields have their
own background, so that they can be read on a light and on a dark page.
"""

import html
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping

from analysis.detection.verdict import Outcome, merge
from analysis.judging.judgement import Judgement
from perf.model.results import TrialHead, TrialId
from reports.wording.links import file_stem
from reports.wording.markdown import line
from reports.wording.series_list import experiment_of
from reports.wording.wording import EMPTY_BADGE, OUTCOME_BADGES, Badge

OVERALL = "badges/verdict.svg"
"""Path of the verdict over all, relative to the root of the site."""
_COLOURS = {"bad": "#a4262c", "good": "#1a6b36", "calm": "#3d5a80", "unsure": "#7a4f01"}
"""White on each of them has a contrast of at least 6 : 1."""
_GREY = "#4a4a4a"
_HEIGHT, _PAD, _SIZE = 20, 6, 11
_MOST_LABEL = 80
_WIDE = frozenset({"W", "F"})
_WIDTHS = (
    (0.29, "'ijlIJ"),
    (0.34, ",. /:;\\|"),
    (0.37, "f-"),
    (0.41, "()[]t!r"),
    (0.50, '"*_`–'),
    (0.55, "sz?cL"),
    (0.60, "FkvxyP"),
    (0.64, "TYoaeEhnubdgpqS0123456789${}"),
    (0.70, "KAVXZBRC"),
    (0.79, "UNHDG&OQ"),
    (0.84, "w#+<=>^~"),
    (0.99, "Mm%W"),
    (1.00, "@…"),
)
"""Widths in em of DejaVu Sans, which Verdana is nearly as wide as; rounded up within a group."""
_OTHER_EM, _WIDE_EM = 0.75, 1.05
_EM = {sign: width for width, signs in _WIDTHS for sign in signs}


def render_badges(
    judgement: Judgement, by_id: Mapping[TrialId, TrialHead]
) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each badge: the verdict over all, then that of each experiment."""
    overall = OUTCOME_BADGES[judgement.outcome] if judgement.series else EMPTY_BADGE
    yield OVERALL, render_badge("performance", overall)
    outcomes: defaultdict[str, list[Outcome]] = defaultdict(list)
    for judged in judgement.series:
        outcomes[experiment_of(judged, by_id)].append(judged.verdict.outcome)
    for experiment in sorted(outcomes):
        badge = OUTCOME_BADGES[merge(outcomes[experiment])]
        yield badge_path(experiment), render_badge(experiment, badge)


def badge_path(experiment: str) -> str:
    """Return the path of an experiment's badge, relative to the root of the site."""
    return f"badges/experiments/{file_stem(experiment)}.svg"


def render_badge(name: str, badge: Badge) -> bytes:
    """Draw one badge: a name, and how it stands."""
    label = line(name, _MOST_LABEL)
    message = f"{badge.symbol} {badge.word.lower()}"
    left, right = measure(label) + 2 * _PAD, measure(message) + 2 * _PAD
    title = html.escape(f"{label}: {badge.word.lower()}", quote=True)
    colour = _COLOURS.get(badge.kind, _GREY)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{_HEIGHT}"'
        f' viewBox="0 0 {left + right} {_HEIGHT}" role="img" aria-label="{title}">\n'
        f"<title>{title}</title>\n"
        f'<rect width="{left}" height="{_HEIGHT}" fill="{_GREY}"/>\n'
        f'<rect x="{left}" width="{right}" height="{_HEIGHT}" fill="{colour}"/>\n'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="{_SIZE}"'
        ' aria-hidden="true">\n'
        f"{_text(label, _PAD)}\n{_text(message, left + _PAD)}\n</g>\n</svg>\n"
    ).encode()


def _text(text: str, x: int) -> str:
    return (
        f'<text x="{x}" y="14" textLength="{measure(text)}" lengthAdjust="spacingAndGlyphs">'
        f"{html.escape(text, quote=False)}</text>"
    )


def measure(text: str) -> int:
    """Return the width of a text in pixels, rounded up; at least one."""
    return max(1, round(sum(_SIZE * _width(sign) for sign in text) + 0.5))


def _width(sign: str) -> float:
    if unicodedata.combining(sign):
        return 0.0
    wide = unicodedata.east_asian_width(sign) in _WIDE
    return _WIDE_EM if wide else _EM.get(sign, _OTHER_EM)
