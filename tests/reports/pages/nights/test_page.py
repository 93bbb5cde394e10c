"""Nights by date: what is said of each, and that the page of an old night is not made again."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from analysis.judging.incidents import Cause
from perf.model.results import Named, Trial, TrialId
from reports.pages.nights import page as pages
from reports.pages.nights.moves import (
    find_config_moves,
    find_offsets,
    say_value,
)
from reports.pages.nights.view import (
    NightRow,
    find_current_night,
    group_nights,
    list_nights,
)
from reports.site.rendering import render
from reports.site.writing import SiteFile, write_site
from reports.wording.links import incident_page, series_page
from reports.wording.wording import percent, quantity

NBSP = "\N{NO-BREAK SPACE}"


def list_rows(demo: Any) -> tuple[NightRow, ...]:
    context = demo.context()
    nights = group_nights(demo.trials, demo.nights)
    return list_nights(nights, context.judgement.series, context.heads)


def test_a_night_says_what_it_measured_missed_and_found(demo: Any) -> None:
    rows = list_rows(demo)
    assert len(rows) == 8
    assert rows[-1].night.title == f"Night 8{NBSP}Mar{NBSP}2026{NBSP}#1"
    assert rows[-1].night.plan.suite == "quickstart"
    assert (rows[-1].night.statuses, rows[-1].missing) == ("1 failed, 1 invalid, 3 completed", 1)
    assert (rows[0].night.statuses, rows[0].missing) == ("6 completed", None)  # its plan is not known
    found = {row.night.name[-4:-2]: row.found for row in rows}
    assert rows[4].found_how == "Known after this night: 1 suspected."
    assert (found["04"], found["05"], found["07"]) == ("nothing new", "1 suspected", "1 retracted")
    ((word, (key,)),) = rows[4].events
    assert (word, key.operation) == ("suspected", "read-latest")


def test_a_headline_is_held_against_the_level_before(demo: Any) -> None:
    judged = next(
        one
        for one in demo.judgement.series
        if (one.series.key.phase, one.series.key.metric) == ("saturation", "throughput")
        and one.change_points
    )
    key, points = judged.series.key, judged.series.points
    index = judged.change_points[0].index
    offsets = find_offsets([judged], set(points.trials) - {points.trials[index + 4]})
    at = (key.phase, key.operation)
    expected = points.values[index] / median(points.values[:index][-30:]) - 1
    assert offsets[points.trials[index]][at] == pytest.approx(expected)
    assert points.trials[index + 2] not in offsets  # its level is not three points long yet
    assert points.trials[index + 3] in offsets
    assert points.trials[index + 4] not in offsets  # nobody asked


def test_a_value_is_held_against_the_level_before_its_change(demo: Any) -> None:
    judged = next(one for one in demo.judgement.series if one.change_points)
    key, points, change = judged.series.key, judged.series.points, judged.change_points[-1]
    for place in (change.index, change.index + 1):
        value = points.values[place]
        off = percent(value / change.before - 1)
        assert say_value(judged, {points.trials[place]}) == (
            f"{quantity(value, key.metric)}, {off} against the level before"
        )
    both = {points.trials[change.index + 1], points.trials[change.index]}
    assert say_value(judged, both) == say_value(judged, {points.trials[change.index]})
    # Before there is a level, the value stands alone.
    assert say_value(judged, {points.trials[0]}) == quantity(points.values[0], key.metric)
    assert say_value(judged, {TrialId("other")}) == ""


def test_a_night_says_which_config_changed_and_links_the_incident(demo: Any, tmp_path: Path) -> None:
    context = demo.context()
    incident = context.judgement.incidents[0]
    lead = replace(incident.lead, last_before=incident.lead.series.points[0])
    incident = replace(incident, cause=Cause.CONFIGURATION, lead=lead, changes=(lead,))
    first = context.heads[lead.first_after.trial]
    edited = Named(name=first.config.name, sha256="feedfeedfeed")
    heads = {
        one: replace(head, config=edited)
        if head.started_at >= first.started_at and head.config == first.config
        else head
        for one, head in context.heads.items()
    }
    moves = find_config_moves(heads, [incident])
    assert moves.keys() == {first.night}
    assert find_config_moves(context.heads, [incident]) == {}
    judgement = replace(context.judgement, incidents=(incident,))
    target = tmp_path / "site"
    changed = replace(context, heads=heads, judgement=judgement, target=target)
    write_site(target, pages.batches(changed))
    page = (target / "night" / f"{first.night}.html").read_text()
    lines = [text.partition("</p>")[0] for text in page.split("Configuration changed:")[1:]]
    (line,) = (one for one in lines if first.experiment in one)
    assert f'href="../{incident_page(incident.name)}"' in line
    # What a night found leads to its series.
    night = list_rows(demo)[4]
    ((_, (key,)),) = night.events
    verdict = (target / night.night.page).read_text().partition("</section>")[0]
    assert ("Suspected</span>" in verdict, f'href="../{series_page(key)}"' in verdict) == (True, True)


def test_of_nights_that_are_not_judged_again_nothing_is_claimed(
    demo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reports.pages.nights.view.REPLAYED_NIGHTS", 5)
    monkeypatch.setattr("analysis.judging.findings.REPLAYED_NIGHTS", 5)
    found = [row.found for row in list_rows(demo)]
    assert found[:5] == [""] * 4 + ["1 suspected"]
    # Some series are known further back than others.
    monkeypatch.setattr("reports.pages.nights.view.REPLAYED_NIGHTS", 3)
    found = [row.found for row in list_rows(demo)]
    assert found[3:7] == [
        "",
        "at least 1 suspected",
        "",
        "1 retracted",
    ]


def test_a_night_without_a_point_costs_no_series_its_story(
    demo: Any, make_trial: Callable[..., Trial]
) -> None:
    began = demo.trials[-1].started_at
    newer = [
        make_trial(night=f"2026-04-{10 + day}-1", started_at=began + timedelta(days=day + 1))
        for day in range(20)
    ]
    rows = list_nights(group_nights([*demo.trials, *newer], ()), demo.judgement.series, {})
    assert [row.found for row in rows[3:5]] == ["nothing new", "1 suspected"]


def test_a_planned_night_without_a_trial_is_a_night(demo: Any) -> None:
    (plan,) = demo.nights
    (row,) = list_nights(group_nights((), (plan,)), (), {})
    assert (row.night.statuses, row.missing) == ("", 6)
    assert find_current_night(()) == ()


def test_the_pages_of_old_nights_are_not_made_again(
    demo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = replace(demo.context(), target=tmp_path / "site")
    made: list[str] = []

    def watch(template: str, path: str, **shown: Any) -> SiteFile:
        made.extend([Path(path).stem] if template == "night.html" else [])
        return render(template, path, **shown)

    monkeypatch.setattr(pages, "render", watch)

    def write(heads: Any) -> None:
        made.clear()
        write_site(context.target, pages.batches(replace(context, heads=heads)))

    tonight = {trial.id for trial in find_current_night(demo.trials)}
    write({trial.id: trial for trial in demo.trials if trial.id not in tonight})
    assert len(made) == 8  # the newest is planned, and nothing of it has come
    write({trial.id: trial for trial in demo.trials})
    assert made == ["2026-03-08-1"]  # the night before it was linked to its plan already
    write({trial.id: trial for trial in demo.trials})
    assert made == []
    page = (context.target / "night" / "2026-03-08-1.html").read_text()
    assert "5 of 6 planned trials of suite quickstart ended: 1 failed, 1 invalid, 3 completed." in page
    assert 'href="../trials/2026-03-08-1.04.cassandra-sensor-read.5.0.1.html"' in page
    assert "cassandra-sensor-read at 5.0.3" in page  # the one that is missing
    assert f"{NBSP}ops/s" in page
    assert 'href="../night/2026-03-07-1.html" rel="prev"' in page
