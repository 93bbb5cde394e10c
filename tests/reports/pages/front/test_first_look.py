"""The releases of one night side by side: by their comparison, else by medians without a verdict."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from made_up_comparison import MEDIAN, P99, RATE, RESULTS, STARTED, measured

from analysis.comparing.results import ComparisonResult
from analysis.detection.verdict import Outcome
from analysis.judging.verdicts import Verdict, VerdictBasis
from perf.model.results import Purpose
from reports.pages.front.first_look import (
    choose_side_badge,
    find_release_comparisons,
    say_sides,
    view_comparison,
)
from reports.pages.front.page import show_front
from reports.site.rendering import render
from reports.wording.links import comparison_page
from reports.wording.series_list import group_series

NBSP = "\N{NO-BREAK SPACE}"


def compared(experiment: str = "writes", hours: int = 0, **changed: Any) -> ComparisonResult:
    """Return a comparison of two releases that began so many hours after the others."""
    template = RESULTS[0]
    began = STARTED + timedelta(hours=hours)
    return replace(
        template,
        **{
            "id": f"cmp-{experiment}-{hours}",
            "purpose": Purpose.COMPARISON,
            "experiment": experiment,
            "baseline": replace(template.baseline, label="5.0.0", version="5.0.0"),
            "candidate": replace(template.candidate, label="5.0.9", version="5.0.9"),
            "measures": (
                measured(RATE, 0.08, outcome=Outcome.IMPROVED),
                measured(P99, -0.02, outcome=Outcome.UNDECIDED),
                measured(MEDIAN, 0.5, is_trusted=False),
            ),
            "started_at": began,
            "finished_at": began + timedelta(minutes=5),
            **changed,
        },
    )


def test_the_newest_comparison_of_releases_of_each_experiment_counts() -> None:
    old, again, other = compared(), compared(hours=2), compared("reads", hours=1)
    of_config = compared("configs", hours=1, baseline=other.candidate)
    asked = compared("branch", hours=1, purpose=Purpose.CANDIDATE)
    everything = (again, old, other, of_config, asked)
    assert find_release_comparisons(everything, STARTED) == (other, again)
    assert find_release_comparisons(everything, STARTED + timedelta(hours=2)) == (again,)
    assert find_release_comparisons(everything, None) == ()


def test_a_comparison_is_a_table_of_its_trusted_measures() -> None:
    table = view_comparison(compared())
    assert (table.before, table.after) == ("5.0.0", "5.0.9")
    assert table.page == comparison_page("cmp-writes-0")
    rate, tail = table.rows
    assert (rate.where, rate.what) == ("write at saturation", "throughput")
    assert (rate.before, rate.after) == (f"3,600{NBSP}ops/s", f"3,888{NBSP}ops/s")
    assert (rate.change, rate.interval) == (f"+8.0{NBSP}%", f"+5.0{NBSP}% to +11.0{NBSP}%")
    assert rate.badge is not None
    assert tail.badge is not None
    assert (rate.badge.word, tail.badge.word) == ("Improved", "Undecided")
    assert (rate.bound, tail.bound) == ("", f"5{NBSP}%")  # −5 % to +1 %
    better = f"5.0.9 is better than 5.0.0: throughput of write at saturation +8.0{NBSP}%"
    assert say_sides([table]) == f"{better}; 1 undecided."
    assert say_sides([replace(table, rows=(rate,))]) == f"{better}."
    still = replace(table, rows=(tail,))
    assert say_sides([still]).startswith("No difference between 5.0.0 and 5.0.9 is shown: p99 ")
    wide = replace(tail, what="p99.9 response time", excluded=0.6)
    assert say_sides([replace(table, rows=(wide, tail))]).endswith(
        f"differs by less than 5{NBSP}%; p99.9 response time: too early to tell."
    )
    words = [badge.word for one in (table, still) if (badge := choose_side_badge([one]))]
    assert words == ["Better in part", "No difference shown"]


@pytest.fixture
def early(demo: Any) -> Any:
    """Return the context of a history in which no series has points enough."""
    context = demo.context()
    few = Verdict(outcome=Outcome.UNDECIDED, basis=VerdictBasis.FEW_POINTS, needed=40)
    series = tuple(
        replace(one, verdict=few, change_points=(), alerts=()) for one in context.judgement.series
    )
    judgement = replace(
        context.judgement,
        series=series,
        incidents=(),
        outcome=Outcome.UNDECIDED,
        minimum_points=40,
    )
    return replace(context, judgement=judgement, comparisons=())


def show(context: Any) -> dict[str, Any]:
    return show_front(
        context, context.judgement.series, group_series(context.judgement.series, context.heads)
    )


def test_before_a_first_verdict_the_page_shows_numbers_and_what_comes_next(early: Any) -> None:
    page = show(early)
    assert page["sentence"].startswith("Too early to tell: ")
    assert page["is_early"]
    assert page["progress"].needed == 40
    assert page["next_night"] == "knickpoint nightly --suite quickstart"
    assert page["compare_now"] == (
        "knickpoint compare --suite quickstart --experiment cassandra-sensor-write "
        "--baseline 5.0.1 --candidate 5.0.3"
    )
    tables = {table.experiment: table for table in page["sides"]}
    write = tables["cassandra-sensor-write"]
    assert write.page == ""
    assert {row.what for row in write.rows} == {"highest load", "throughput", "p99 response time"}
    assert all(row.badge is None for row in write.rows)
    assert "ops/s" in write.rows[0].after
    html = render("index.html", "index.html", **page).content.decode()
    headings = ["sides", "next", "experiments"]
    assert sorted(headings, key=lambda one: html.index(f'<h2 id="{one}"')) == headings
    assert "data-copy-text>knickpoint nightly --suite quickstart</pre>" in html
    for nothing in ("attention", "improvements"):
        assert f'<h2 id="{nothing}"' not in html


def test_a_comparison_of_the_night_takes_the_place_of_the_first_look(early: Any) -> None:
    began = max(head.started_at for head in early.heads.values())
    page = show(replace(early, comparisons=(compared(started_at=began),)))
    (table,) = page["sides"]
    assert table.page
    assert page["verdict"].word == "Better in part"
    assert page["early"].startswith("Too early to tell")
    html = render("index.html", "index.html", **page).content.decode()
    assert f'href="{table.page}"' in html


def test_a_recording_has_no_next_night(early: Any) -> None:
    page = show(replace(early, is_recording=True))
    assert page["progress"] is None
    assert "knickpoint nightly" not in render("index.html", "index.html", **page).content.decode()
