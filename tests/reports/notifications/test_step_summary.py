"""The summary of a job: the verdict first, honest about what it leaves out, below GitHub's limit."""

from pathlib import Path

import pytest
from cmarkgfm import github_flavored_markdown_to_html as to_html
from made_up_nights import HOSTILE, judge_nights

from analysis.detection.verdict import Outcome
from analysis.judging.judgement import Judgement
from perf.model.errors import SiteError
from reports.notifications.step_summary import append_step_summary, render_step_summary
from reports.notifications.summary_file import MOST_BYTES, VARIABLE
from reports.wording.attention import Attention
from reports.wording.wording import OUTCOME_BADGES, STATE_BADGES

REGRESSED = judge_nights(20).judgement
EMPTY = Judgement(series=())


def thing(text: str, number: int = 1) -> Attention:
    badge = OUTCOME_BADGES[Outcome.REGRESSED]
    more = (next(iter(STATE_BADGES.values())),)
    return Attention(
        badge=badge, subject=f"subject {number}", page="incidents/a.html", text=text, more=more
    )


def test_the_verdict_comes_first_then_what_needs_attention_then_the_counts() -> None:
    text = render_step_summary(
        REGRESSED, (thing("It is slower."),), site_url="https://example.org/perf/"
    )
    lines = [line for line in text.splitlines() if line]
    assert lines[0].startswith("## ✕ Regressed: of 1 series, 1 regressed")
    assert text.index("Needs attention: 1\n") < text.index("| ✕ Regressed | 1 |")
    assert "(https://example.org/perf/incidents/a.html): It is slower." in text
    assert "<table>" in to_html(text)


def test_without_anything_to_say_it_does_not_look_like_success() -> None:
    text = render_step_summary(EMPTY, ())
    assert text.startswith("## ? Nothing has been measured yet.")


def test_of_too_much_it_shows_as_much_as_fits_and_counts_the_rest() -> None:
    things = [thing("ü" * 1900, number) for number in range(2000)]
    text = render_step_summary(REGRESSED, things)
    assert 0.98 * MOST_BYTES < len(text.encode()) <= MOST_BYTES
    reported = text.count("subject ")
    assert f"…and {2000 - reported:,} more that this summary has no room for" in text
    assert "Needs attention: 2,000\n" in text
    assert "| ✕ Regressed | 1 |" in text


@pytest.mark.parametrize("most", [0, 10, 100, 300, 600])
def test_it_is_never_longer_than_there_is_room(most: int) -> None:
    text = render_step_summary(REGRESSED, (thing("x" * 500),), most_bytes=most)
    assert len(text.encode()) <= most


def test_hostile_text_is_shown_and_does_nothing() -> None:
    text = render_step_summary(REGRESSED, (thing(200 * HOSTILE), thing(HOSTILE)))
    shown = to_html(text)
    assert "<script" not in shown
    assert "<a " not in shown
    assert "@everyone" not in text
    assert text.count("\n- ") == 2


def test_it_is_appended_where_the_variable_says_and_what_is_there_counts(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    path.write_text("before\n" + "x" * (MOST_BYTES - 1000))
    assert append_step_summary(REGRESSED, (thing("y" * 1900),), environment={VARIABLE: str(path)})
    text = path.read_text()
    assert text.startswith("before\n")
    assert "…and 1 more that this summary has no room for" in text
    assert path.stat().st_size <= MOST_BYTES + 10
    assert append_step_summary(REGRESSED, (), environment={}) is None
    with pytest.raises(SiteError, match=rf"{VARIABLE}.*cannot be written"):
        append_step_summary(REGRESSED, (), environment={VARIABLE: str(tmp_path / "no" / "such")})
