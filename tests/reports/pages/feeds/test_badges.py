"""Badges: words beside colours, a title, contrast, and room for each text."""

import re
from xml.etree import ElementTree as ET

import pytest
from made_up_nights import HOSTILE, Course, hostile_course, judge_nights

from analysis.detection.verdict import Outcome
from analysis.judging.judgement import Judgement
from reports.pages.feeds.badges import OVERALL, badge_path, measure, render_badge, render_badges
from reports.wording.wording import OUTCOME_BADGES

SVG = "{http://www.w3.org/2000/svg}"
NAMES = ("a", "cassandra-sensor-write", 10_000 * "W", "データベース", HOSTILE, "")


def check(content: bytes) -> ET.Element:
    """Each text lies inside of its field, and the picture is as wide as its fields."""
    root = ET.fromstring(content)  # noqa: S314  our own
    assert root.get("role") == "img"
    assert root.get("aria-label") == root.findtext(f"{SVG}title")
    left, right = root.findall(f"{SVG}rect")
    width = float(root.get("width", "0"))
    edge = float(left.get("width", "0"))
    assert float(right.get("x", "0")) == edge
    assert edge + float(right.get("width", "0")) == width
    label, message = root.iter(f"{SVG}text")
    for text, begin, end in ((label, 0.0, edge), (message, edge, width)):
        x, length = float(text.get("x", "0")), float(text.get("textLength", "0"))
        assert begin < x < x + length < end
    assert "style" not in content.decode()
    return root


def contrast(colour: str) -> float:
    """Return the contrast of white on a colour, as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_badge_says_it_in_words_that_have_room_and_contrast(outcome: Outcome, name: str) -> None:
    badge = OUTCOME_BADGES[outcome]
    root = check(render_badge(name, badge))
    _, message = root.iter(f"{SVG}text")
    assert message.text == f"{badge.symbol} {outcome}"
    assert (root.findtext(f"{SVG}title") or "").endswith(f": {outcome}")
    assert all(
        contrast(one.get("fill", "")) >= 4.5 for one in root.iter(f"{SVG}rect") if one.get("fill")
    )


def test_longer_and_wider_texts_take_more_room() -> None:
    assert measure("iiii") < measure("nnnn") < measure("MMMM") < measure("データ例")
    assert measure("n" * 80) == pytest.approx(80 * measure("n"), rel=0.15)


def test_there_is_one_of_all_and_one_for_each_experiment() -> None:
    nights = judge_nights(20, (Course(), hostile_course()))
    badges = dict(render_badges(nights.judgement, nights.heads))
    assert set(badges) == {OVERALL, badge_path("cassandra-sensor-write"), badge_path(HOSTILE)}
    assert all(re.fullmatch(r"badges/[A-Za-z0-9./+_-]+\.svg", path) for path in badges)
    for content in badges.values():
        check(content)
    assert b"regressed" in badges[OVERALL]
    empty = Judgement(series=())
    ((path, content),) = render_badges(empty, {})
    assert path == OVERALL
    assert b"nothing measured yet" in content
