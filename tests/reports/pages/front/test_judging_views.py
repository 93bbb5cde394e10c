"""What the pages say of a judgement: incidents, how small a change could be seen, the testbed."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

import re
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from made_up_judgement import DETECTABLE, NOISE, SETTINGS, TRIAGED

from analysis.judging.incidents import Incident
from analysis.judging.judgement import JudgedSeries
from perf.model.results import SeriesKey, Trial, TrialId
from reports.pages.front.page import show_front
from reports.pages.incident.page import show_incident
from reports.pages.series.page import ShownSeries, show_series
from reports.pages.testbed.page import render_testbed
from reports.pages.testbed.view import step_badge, summarize_testbed
from reports.site.rendering import render
from reports.wording.attention import view_expired, view_incidents
from reports.wording.changes import by_change
from reports.wording.incidents import list_news
from reports.wording.sensitivity import summarize_sensitivity, view_sensitivity
from reports.wording.series_list import group_series

NBSP = "\N{NO-BREAK SPACE}"


def night(day: int) -> str:
    return f"night {day}{NBSP}Mar{NBSP}2026{NBSP}#1"


@pytest.fixture(scope="module")
def by_id(demo: Any) -> dict[TrialId, Trial]:
    """Return the trials of the made-up history by id."""
    return {trial.id: trial for trial in demo.trials}


@pytest.fixture(scope="module")
def judged(demo: Any) -> dict[SeriesKey, JudgedSeries]:
    """Return all series of the made-up judgement."""
    return {one.series.key: one for one in (*demo.judgement.series, *demo.judgement.watched)}


def show(demo: Any, **changed: Any) -> dict[str, Any]:
    context = replace(demo.context(), judgement=replace(demo.judgement, **changed))
    return show_front(
        context, context.judgement.series, group_series(context.judgement.series, context.heads)
    )


def page(demo: Any, incident: Incident) -> dict[str, Any]:
    judged = {one.series.key: one for one in demo.judgement.series}
    return show_incident(incident, judged, {trial.id: trial for trial in demo.trials}, {})


def look(judged: JudgedSeries, by_id: dict[TrialId, Trial], demo: Any) -> ShownSeries:
    incidents = by_change(demo.judgement.incidents)
    return show_series(judged, by_id, settings=SETTINGS, incidents=incidents, caveat="")


def write_throughput(demo: Any) -> JudgedSeries:
    key = demo.judgement.incidents[0].lead.series.key
    found: JudgedSeries = next(one for one in demo.judgement.series if one.series.key == key)
    return found


def test_an_incident_is_one_row_whatever_moved_with_it(demo: Any, by_id: dict[TrialId, Trial]) -> None:
    reported = demo.judgement.incidents[0]
    row = view_incidents(demo.judgement.incidents, by_id)[0]
    assert row.subject == "cassandra-sensor-write: throughput of write at saturation"
    assert (row.badge.word, row.is_faded) == ("Regressed", False)
    assert [badge.word for badge in row.more] == ["Confirmed · database · still there"]
    others = len({change.series.key for change in reported.changes}) - 1
    assert others > 1
    assert f"5.0.2 → 5.0.3; {others} further series moved with it." in row.text
    assert "May explain it too: JVM of node-1, 17.0.1 → <17.0.2>." in row.text
    assert row.text.endswith("comparison on the same hosts would settle it sooner than nights.")
    assert "canary" not in row.text  # it did not move


def test_what_the_testbed_did_is_reported_with_its_evidence_and_whoever_decided(demo: Any) -> None:
    _, of_testbed = demo.judgement.incidents
    assert show(demo)["decided"] == ()  # it was mended
    (row,) = show(demo, incidents=(replace(of_testbed, fixed_by=()),))["decided"]
    assert row.page == "incidents/e5f6a7b8.html"
    assert [badge.word for badge in row.more] == ["Suspected · testbed · still there · testbed"]
    assert row.is_faded
    assert row.text.startswith("Regressed? ")
    canary = "p50 CPU canary before the trial, localhost"
    assert f"{canary}: canary_cpu on localhost, before each trial moved too: a " in row.text
    assert "Testbed by ops <ops>, until 2026-04-01: a neighbour on the same host." in row.text


def test_all_incidents_are_listed_news_first(demo: Any, by_id: dict[TrialId, Trial]) -> None:
    rows = view_incidents(demo.judgement.incidents, by_id)
    assert [row.page for row in rows] == ["incidents/a1b2c3d4.html", "incidents/e5f6a7b8.html"]
    assert view_incidents(reversed(demo.judgement.incidents), by_id) == rows
    assert len(tuple(list_news(demo.judgement.incidents, by_id))) == 1


def test_a_withdrawn_alert_is_reported_for_a_week_and_kept_on_its_page(
    demo: Any, by_id: dict[TrialId, Trial]
) -> None:
    (row,) = show(demo)["withdrawn"]
    assert row.is_faded
    assert row.text == (
        f"Reported as suspected in {night(5)} (+12.0{NBSP}%, within 5.0.3, "
        f"{night(4)} → {night(5).removeprefix('night ')}), retracted in {night(7)}: "
        "later points do not confirm it."
    )
    (one,) = [one for one in demo.judgement.series if one.alerts]
    gone = replace(one.alerts[0], withdrawn_at=0)
    long_ago = replace(write_throughput(demo), alerts=(gone,))  # it has eight nights
    assert show(demo, series=(long_ago,), incidents=())["withdrawn"] == ()
    assert len(look(long_ago, by_id, demo).withdrawn) == 1


def test_an_expired_triage_is_reported(demo: Any) -> None:
    today = demo.now.date()
    expired = replace(TRIAGED, expires=today - timedelta(days=1))
    entries = (TRIAGED, replace(TRIAGED, name="last-day", expires=today), expired)
    (row,) = view_expired(entries, today)
    assert row.subject == "noisy-neighbour"
    assert row.todo == "Renew it or take it out of triage.yaml."


def test_beside_the_verdict_stands_what_it_could_not_have_seen(demo: Any) -> None:
    index = show(demo)
    assert f"4.12{NBSP}%" in index["sensitivity"]
    group, *_ = group_series(demo.judgement.series, demo.context().heads)
    assert {view_sensitivity(one).brief for one in group.series} == {f"≥{NBSP}4.12{NBSP}%"}


def test_a_series_shows_its_noise_floor_and_what_nights_confirm(demo: Any) -> None:
    one = write_throughput(demo)
    reported = view_sensitivity(one)
    assert reported.floor == f"1.86{NBSP}%"  # of its newest level; the series as a whole has 1.53 %
    assert re.findall(rf"[\d.]+(?={NBSP}%)", reported.text) == [
        "1.86",
        "4.12",
        "2.51",
    ]  # one night confirms nothing
    assert [(row.nights, row.relative) for row in reported.rows] == [
        ("3 nights", f"≥{NBSP}4.12{NBSP}%"),
        ("10 nights", f"≥{NBSP}2.51{NBSP}%"),
    ]
    assert reported.rows[0].absolute == f"≥ 149{NBSP}ops/s"


def test_a_newest_level_that_scatters_more_than_the_series_is_reported(
    demo: Any, by_id: dict[TrialId, Trial]
) -> None:
    one = write_throughput(demo)
    assert one.noise is not None
    (change,) = one.change_points
    points = [
        replace(point, value=change.after * (1 + (0.2 if place % 3 else -0.3)))
        if place >= change.index
        else point
        for place, point in enumerate(one.series.points)
    ]
    wild = replace(one, series=replace(one.series, points=tuple(points)))
    assert wild.newest_noise is not None
    assert wild.newest_noise.deviation > 5 * one.noise.deviation
    reported = view_sensitivity(wild)
    assert reported.floor == f"25.1{NBSP}%"
    assert re.findall(rf"[\d.]+(?={NBSP}%)", reported.text)[:2] == [
        "25.1",
        "1.53",
    ]  # its own, and of all
    assert f"{one.noise.points} points" in reported.text
    before, after = look(wild, by_id, demo).segments
    assert after.high - after.low == pytest.approx(2 * wild.newest_noise.deviation)
    assert before.high - before.low < (after.high - after.low) / 3


def test_one_level_is_reported_and_drawn(demo: Any, by_id: dict[TrialId, Trial]) -> None:
    one = write_throughput(demo)
    change = replace(one.change_points[0], before=3650.0, after=3210.0)  # outliers pulled in
    page = look(replace(one, change_points=(change,)), by_id, demo)
    assert [segment.mean for segment in page.segments] == [3650.0, 3210.0]
    assert f"The newest level is {page.changes[0].after}." in page.in_words


def test_what_no_noise_shows_is_said_to_be_unknown(demo: Any) -> None:
    one = replace(demo.judgement.series[0], noise=None, detectable=())
    assert "is not known" in view_sensitivity(one).text
    assert "not known yet" in summarize_sensitivity([one])
    known = replace(one, noise=NOISE, detectable=DETECTABLE)
    assert summarize_sensitivity([known, one]).endswith("; of 1 it is not known.")


def test_significant_and_relevant_are_told_apart(demo: Any, by_id: dict[TrialId, Trial]) -> None:
    one = write_throughput(demo)
    (row,) = look(one, by_id, demo).changes
    assert (row.p_value, row.relevant, row.threshold) == ("p < 0.0001", "yes", f"5{NBSP}% matter")
    assert row.located == "one of 3 places, 5.0.2 → 5.0.3"
    small = replace(one.change_points[0], relative_change=0.01)
    (row,) = look(replace(one, change_points=(small,)), by_id, demo).changes
    assert row.relevant == "no"
    assert row.cause is not None
    assert (row.cause.word, row.incident) == ("Database", "incidents/a1b2c3d4.html")
    assert row.notes[0] == "May explain it too: JVM of node-1, 17.0.1 → <17.0.2>."
    assert row.notes[1:] == (
        (
            "Sentinel cassandra 5.0, throughput of write at saturation: not measured since (last:"
            f" 1{NBSP}Mar{NBSP}2026{NBSP}#1)."
        ),
        "Canaries: 1 of 1 did not move that far.",
    )


def test_an_incident_page_shows_the_story_from_change_to_fix(demo: Any) -> None:
    first, second = (page(demo, incident) for incident in demo.judgement.incidents)
    assert first["deciding"].startswith("knickpoint triage add a1b2c3d4 --state ")
    assert [event.what for event in first["timeline"]] == [
        "5.0.2 without it, 5.0.3 with it, in each of the 8 nights of both"
    ]
    shown = [[(row.follows, row.is_decisive) for row in first[rows]] for rows in ("evidence", "still")]
    assert shown == [[(False, False)], [(False, True)]]
    assert first["still_title"] == "Canaries: 1 of 1 did not move that far"
    assert [row.follows for row in (*second["evidence"], *second["still"])] == [True, False]
    html = render("incident.html", "incidents/a1b2c3d4.html", **first).content.decode()
    assert html.index("</span>Cannot tell yet</span>") < html.index(
        "</span>Did not move that far</span>"
    )
    assert html.count('<td class="num" data-label="Change">–</td>') == 2  # nobody measured ±0.0 %
    assert "Did not move (20 points before, 5 after)." in html
    assert second["timeline"][-1].what.startswith("Improved ")
    assert second["triage"].startswith("Testbed by ops <ops>")
    assert len(first["members"]) == len(demo.judgement.incidents[0].changes)


def test_the_story_names_the_nights_that_reported_it(demo: Any) -> None:
    incident = demo.judgement.incidents[0]
    (alert,) = (alert for one in demo.judgement.series for alert in one.alerts)
    seen = replace(
        alert, index=16, earliest=15, latest=17, rises=False, confirmed_at=5, withdrawn_at=None
    )
    lead = write_throughput(demo)
    reported = {lead.series.key: replace(lead, alerts=(seen,))}
    view = show_incident(incident, reported, {trial.id: trial for trial in demo.trials}, {})
    assert [(event.when, event.what) for event in view["timeline"][1:]] == [
        (night(5), "Reported as suspected"),
        (night(6), "Reported as confirmed"),
    ]


def test_what_the_first_night_replayed_saw_is_not_reported_as_of_that_night(
    demo: Any, by_id: dict[TrialId, Trial]
) -> None:
    (withdrawn,) = (alert for one in demo.judgement.series for alert in one.alerts)
    incident, lead = demo.judgement.incidents[0], write_throughput(demo)
    first, *rest = lead.series.points
    older = (replace(first, night=f"2026-02-0{day}-1") for day in range(1, 7))
    long = replace(lead.series, points=(*older, first, *rest))  # of 14 nights, the last ten replayed
    seen = replace(
        withdrawn, index=16, earliest=15, latest=17, rises=False, confirmed_at=4, withdrawn_at=None
    )
    reported = {lead.series.key: replace(lead, series=long, alerts=(seen,))}
    view = show_incident(incident, reported, by_id, {})
    assert not [event for event in view["timeline"] if event.what.startswith("Told")]
    gone = replace(seen, confirmed_at=None, withdrawn_at=6)
    (row,) = look(replace(lead, series=long, alerts=(gone,)), by_id, demo).withdrawn
    assert row.reported == f"by night 5{NBSP}Feb{NBSP}2026{NBSP}#1"


def test_a_series_of_one_release_speaks_of_nights(demo: Any, by_id: dict[TrialId, Trial]) -> None:
    sentinel = demo.judgement.watched[1]
    view = look(sentinel, by_id, demo)
    assert view.summary == "8 points of 5.0.1 over 8 nights"
    assert view.is_by_night


def test_a_drift_is_a_slope_and_no_level_runs_through_it(
    demo: Any, by_id: dict[TrialId, Trial]
) -> None:
    (one,) = [one for one in demo.judgement.series if one.drifts]
    view = look(one, by_id, demo)
    assert view.segments == ()
    (slope,) = view.slopes
    assert (slope.first, slope.last, slope.badge.word) == (3, 10, "Drift, no step")
    assert slope.text.endswith("over 8 points")
    (scatter,) = view.scatter
    assert (scatter.index, scatter.label) == (16, "scatter ×2.10")
    assert view.changes == ()
    assert view.has_imported


def page_of_testbed(demo: Any, **judged: Any) -> str:
    context = demo.context()
    changed = replace(context, judgement=replace(context.judgement, **judged))
    return render_testbed(changed, context.heads).content.decode()


def test_the_testbed_has_a_page_of_its_own(demo: Any) -> None:
    page = page_of_testbed(demo)
    for said in (
        (
            "2 series of canaries and sentinels watch the testbed; a step was seen in 0 of them, "
            "and 2 have too few points to tell."
        ),
        "incidents/e5f6a7b8.html",
        "p50 CPU canary before the trial, localhost",
        demo.caveats["local"],
    ):
        assert said in page
    assert ("Too few points" in page, "No step" in page) == (True, False)
    canary = replace(demo.judgement.watched[0], change_points=write_throughput(demo).change_points)
    assert step_badge(canary, SETTINGS).word == "A step"
    still = replace(canary, change_points=(), noise=NOISE)
    assert step_badge(still, SETTINGS).word == "No step"
    extremes = replace(canary.series, key=replace(canary.series.key, statistic="max"))
    folded = page_of_testbed(demo, watched=(replace(canary, series=extremes),))
    assert "1 further series of the same trials, a step in 1 of them" in folded
    nothing = page_of_testbed(demo, watched=(), incidents=())
    assert "No canary or sentinel has been measured yet" in nothing


def test_an_incident_of_a_change_is_found_by_series_and_place(
    demo: Any, judged: dict[SeriesKey, JudgedSeries], by_id: dict[TrialId, Trial]
) -> None:
    incident = demo.judgement.incidents[0]
    for change in incident.changes:
        (row,) = look(judged[change.series.key], by_id, demo).changes
        assert row.incident == "incidents/a1b2c3d4.html"
    assert TRIAGED.expires == date(2026, 4, 1)


def test_no_step_is_said_only_where_one_could_have_been_reported(demo: Any) -> None:
    one = write_throughput(demo)
    still = replace(one, change_points=())
    key = replace(one.series.key, config="sentinel")
    few = replace(still, series=replace(still.series, key=key, points=still.series.points[:6]))
    judgement = replace(demo.judgement, watched=(still, few), incidents=())
    reported = [step_badge(one, SETTINGS).word for one in judgement.watched]
    assert reported == ["No step", "Too few points"]
    said = summarize_testbed(judgement, SETTINGS)
    assert said.endswith("a step was seen in 0 of them, and 1 has too few points to tell.")
