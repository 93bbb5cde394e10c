"""The page of a bisection: what it says first, what each probe taught, where its links lead."""

from dataclasses import replace

import pytest
from made_up_bisection import INCONCLUSIVE, RECORD, UNCHANGED, UNFINISHED
from made_up_comparison import EXPLAINED
from made_up_profiles import PROFILED

from analysis.bisecting.bisection import Culprit
from analysis.bisecting.description import describe_bisection
from analysis.bisecting.record import BisectionRecord
from analysis.detection.effects import Effect
from reports.pages.bisection.page import render_bisection
from reports.pages.bisection.view import draw_probes, view_bisection
from reports.wording.links import bisection_page, comparison_page, profile_page
from reports.wording.wording import Moment

BUILT = Moment(iso="2026-03-02T00:00:00+00:00", text="2026-03-02 00:00 UTC", day="2026-03-02")


def page(record: BisectionRecord) -> str:
    return render_bisection(record).content.decode()


def test_the_answer_comes_first_and_every_probe_follows_in_order() -> None:
    html = page(RECORD)
    reported = [
        "Regression found",
        "The regression came with one of 2.0.4 (could not be measured), 2.0.5 (after 2.0.3).",
        "2.0.7 does differ from 2.0.0",
        "2.0.4 cannot be measured and is skipped: start failed on node-1: &lt;no&gt; such class.",
        "2.0.3 is like 2.0.0, so the change came after it.",
        "2.0.5 is like 2.0.7, so the change came with it or before it.",
        "no single release",
        "25 trials measured in 29 min",
        "knickpoint bisect fake 2.0.0..2.0.7 --suite fake-short",
    ]
    places = [html.index(text) for text in reported]
    assert places == sorted(places)
    assert "a handicap was planted in this trial: &lt;slow&gt;" in html
    assert "These numbers say nothing." in html
    assert "−20.0\N{NO-BREAK SPACE}%" in html


def test_each_probe_links_the_page_of_its_comparison_which_has_its_trials() -> None:
    html = page(RECORD)
    for number in range(1, 5):
        assert f'href="../{comparison_page(f"cmp-2026-03-01-{number}")}"' in html
    assert view_bisection(RECORD).page == bisection_page("bis-2026-03-01-1")


def test_a_probe_whose_comparison_is_not_at_hand_has_no_link() -> None:
    html = render_bisection(RECORD, comparisons={"cmp-2026-03-01-2": None}).content.decode()
    linked = [comparison_page(f"cmp-2026-03-01-{number}") in html for number in range(1, 5)]
    assert linked == [False, True, False, False]


def test_the_release_that_is_named_has_the_code_or_the_command_that_finds_it() -> None:
    assert f"knickpoint explain {RECORD.id}" in page(RECORD)
    step = RECORD.culprit
    assert step is not None
    profiled = replace(
        PROFILED,
        experiment=RECORD.experiment,
        baseline=replace(PROFILED.baseline, version=step.predecessor.version),
        candidate=replace(PROFILED.candidate, version=step.release.version),
    )
    assert profiled.compares(RECORD.experiment, step.predecessor, step.release)
    assert not profiled.compares(RECORD.experiment, step.predecessor, RECORD.bad)
    html = render_bisection(RECORD, profiled=[profiled]).content.decode()
    assert f'href="../{profile_page(profiled.id)}"' in html
    assert "in CommitLog.sync (steady)" in html
    assert f"knickpoint explain {RECORD.id}" not in html
    assert 'id="code"' not in page(INCONCLUSIVE)


def test_what_the_servers_of_the_named_release_did_is_said_by_its_probe() -> None:
    assert RECORD.culprit is not None
    (probe,) = [one for one in RECORD.probes if one.probed.release == RECORD.culprit.release]
    (result,) = EXPLAINED.comparisons
    html = render_bisection(RECORD, comparisons={probe.comparison: result}).content.decode()
    assert "writes 2.1 × as many bytes per operation (steady)" in html
    other = render_bisection(RECORD, comparisons={"another": result}).content.decode()
    assert "writes 2.1 ×" not in other


def test_bars_are_as_long_as_the_chance_and_need_neither_script_nor_style() -> None:
    html = page(RECORD)
    for release, chance, width in (("2.0.5", "55 %", 88), ("2.0.1", "below 1 %", 0)):
        row = html[html.index(f'<th scope="row">{release}</th>') :].partition("</tr>")[0]
        assert chance in row
        assert f'<rect width="{width}" height="14"/>' in row
    assert html.count("<script") == 1  # that of every page
    assert "style=" not in html


def test_the_chart_has_all_releases_and_a_stake_for_each_that_was_probed() -> None:
    chart = draw_probes(RECORD)
    assert chart is not None
    assert list(chart.places) == [f"2.0.{ordinal}" for ordinal in range(8)]
    reported = [probed.release.version for probed in chart.probes]
    assert reported == ["2.0.7", "2.0.3", "2.0.5"]  # 2.0.4 could not be measured
    bad, good = chart.y(-0.2), chart.y(0.004)
    assert good < chart.height / 2 < bad  # 20 % less lies below no change
    assert page(RECORD).count("<circle") == 3
    assert draw_probes(UNFINISHED) is not None
    assert draw_probes(replace(RECORD, probes=())) is None
    assert '<figure class="probes">' not in page(replace(RECORD, probes=()))


def test_a_probe_whose_interval_has_no_end_is_drawn_to_the_edge() -> None:
    last = replace(RECORD.releases[-1], version="x" * 999)
    effect = Effect(relative_change=0.1, low=float("-inf"), high=float("inf"), confidence=0.99)
    probed = replace(RECORD.probes[0].probed, release=last, effect=effect)
    record = replace(
        RECORD,
        releases=(*RECORD.releases[:-1], last),
        probes=(replace(RECORD.probes[0], probed=probed),),
    )
    chart = draw_probes(record)
    assert chart is not None
    assert (chart.y.high, chart.y.low) == (10.0, -10.0)
    assert chart.y(effect.high) < chart.y(effect.relative_change) < chart.y(effect.low)
    assert f'text-anchor="middle">{"x" * 9}…</text>' in page(record)


@pytest.mark.parametrize(
    ("record", "word"),
    [
        (RECORD, "Regression found"),
        (INCONCLUSIVE, "Not decided"),
        (UNCHANGED, "Nothing changed"),
        (UNFINISHED, "Not over"),
    ],
)
def test_each_end_has_its_word(record: BisectionRecord, word: str) -> None:
    assert view_bisection(record).badge.word == word
    assert word in page(record)


def test_an_improvement_is_good_news() -> None:
    assert isinstance(RECORD.found, Culprit)
    gained = replace(RECORD, found=replace(RECORD.found, is_improvement=True))
    assert view_bisection(gained).badge.kind == "good"


def test_what_an_open_one_would_cost_is_said() -> None:
    html = page(INCONCLUSIVE)
    assert "to finish it, about 16 more trials" in html
    assert (
        "Not over yet: 1 probe is done. The same command goes on, and what was measured counts."
        in page(UNFINISHED)
    )


def test_the_terminal_says_the_same() -> None:
    lines = list(describe_bisection(RECORD))
    assert lines[0].startswith("The regression came with one of 2.0.4")
    text = "\n".join(lines)
    assert "  1. 2.0.7: −20.0 % (−23.0 % to −17.0 %), 1,000 → 800 ops/s, 8 trials" in text
    assert "  2. 2.0.4: no figures, 1 trial" in text
    assert "  2.0.5        55 %  █████████████" in text
    assert "allowed were 160 trials and 16 h 00 min" in text
