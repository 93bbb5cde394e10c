"""The page of an incident: its chart, what else may explain it, which release, how to see it again."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from made_up_comparison import EXPLAINED, REGRESSED_RESULT
from made_up_profiles import PROFILED

from analysis.comparing.results import ComparisonResult, KnobValues
from analysis.detection.alerts import Alert
from analysis.detection.detection import ChangeState
from analysis.detection.series import Points
from analysis.detection.verdict import Outcome
from analysis.judging.drift import WatchEvidence, WatchState
from analysis.judging.explanations import Explanation
from analysis.judging.incidents import Cause, Incident
from analysis.judging.remeasurement import Reply, SeriesAnswer
from analysis.orchestration.setting_words import NO_SETTINGS, ChangedSettings, Settings, find_changed
from perf.model.facts import METHOD
from reports.pages.incident.explaining import ExplanationRow, explain_otherwise
from reports.pages.incident.page import batches, draw_change, show_incident
from reports.site.rendering import render
from reports.site.writing import flatten
from reports.wording.advice import say_question
from reports.wording.links import incident_page, profile_page

NBSP = "\N{NO-BREAK SPACE}"

EXPERIMENT = "cassandra-sensor-write"


@pytest.fixture
def incident(demo: Any) -> Incident:
    found: Incident = demo.judgement.incidents[0]
    return found


def page(
    demo: Any,
    incident: Incident,
    settings: ChangedSettings = NO_SETTINGS,
    comparisons: Sequence[ComparisonResult] = (),
) -> dict[str, Any]:
    judged = {one.series.key: one for one in demo.judgement.series}
    by_id = {trial.id: trial for trial in demo.trials}
    return show_incident(
        incident,
        judged,
        by_id,
        {},
        suites={EXPERIMENT: "quickstart"},
        settings=settings,
        comparisons=comparisons,
    )


def text(view: dict[str, Any]) -> str:
    return render("incident.html", "incidents/a1b2c3d4.html", **view).content.decode()


def explanation(view: dict[str, Any], name: str) -> ExplanationRow:
    (row,) = [row for row in view["explanations"] if row.name.startswith(name)]
    return row


def within(incident: Incident, **changes: Any) -> Incident:
    """Return the incident as one inside of a release."""
    release = incident.lead.first_after.release
    lead = replace(incident.lead, last_before=replace(incident.lead.last_before, release=release))
    return replace(incident, lead=lead, changes=(lead,), question=None, **changes)


def proven(incident: Incident) -> Incident:
    """Return the incident with trials in turns that agree."""
    answer = SeriesAnswer(
        key=incident.lead.series.key,
        baseline="5.0.2",
        candidate="5.0.3",
        config_sha256="333333333333",
        artifacts_sha256=("a", "b"),
        effect=None,
        relevant_change=0.05,
        baseline_trials=6,
        candidate_trials=6,
        comparison="cmp-1",
        finished_at=incident.lead.first_after.started_at,
    )
    return replace(incident, replies=((incident.lead, Reply(answer=answer, agrees=True)),))


def test_the_chart_shows_both_sides_of_the_change_and_each_level(demo: Any, incident: Incident) -> None:
    lead = incident.lead
    chart = page(demo, incident)["chart"]
    assert chart is not None
    assert [place for place, _ in chart.points] == [*range(len(lead.series.points))]
    assert [level for *_, level in chart.levels] == [lead.before, lead.after]
    # What is reported is what is drawn: a level has outliers pulled in, a plain mean has not.
    reported = replace(lead, after=lead.after / 2)
    drawn = draw_change(reported, (reported,))
    assert drawn is not None
    assert drawn.y.low == pytest.approx(reported.after)
    html = text(page(demo, incident))
    assert html.count('class="before"') == lead.index
    assert 'role="img" aria-label="Throughput of write at saturation, higher is better' in html


def test_profiles_of_both_sides_stand_with_what_they_say(demo: Any, incident: Incident) -> None:
    without = text(page(demo, incident))
    assert f"knickpoint explain {incident.name}" in without
    first, last = incident.lead.last_before.release, incident.lead.first_after.release
    profiled = replace(
        PROFILED,
        experiment=EXPERIMENT,
        baseline=replace(PROFILED.baseline, version=first.version),
        candidate=replace(PROFILED.candidate, version=last.version),
    )
    other = replace(profiled, id="cmp-other", experiment="another")
    context = replace(demo.context(), profiles=(profiled, other))
    of_it = incident_page(incident.name)
    files = [file for batch in flatten(batches(context)) for file in batch.make(batch.versions)]
    (html,) = [file.content.decode() for file in files if file.path == of_it]
    assert f'href="../{profile_page(profiled.id)}"' in html
    assert "in CommitLog.sync (steady)" in html
    assert profile_page(other.id) not in html


def test_what_the_servers_did_is_said_by_the_comparison_that_agrees(
    demo: Any, incident: Incident
) -> None:
    (result,) = EXPLAINED.comparisons
    agreeing = replace(result, id="cmp-1")
    view = page(demo, proven(incident), comparisons=(result, agreeing))
    assert "writes 2.1 × as many bytes per operation (steady)" in text(view)
    assert page(demo, incident, comparisons=(agreeing,))["why"] == ""
    assert page(demo, proven(incident), comparisons=(result,))["why"] == ""


def test_a_change_of_method_is_judged_by_the_trials_of_both_methods(incident: Incident) -> None:
    changed = Explanation(name=f"{METHOD}load", before="earlier", after="later")
    asked = replace(incident, explanations=(changed,), replies=())
    system = incident.lead.series.key.system
    tried = replace(
        REGRESSED_RESULT,
        system=system,
        method=(KnobValues(path=changed.name, before="earlier", after="later"),),
    )
    (row, *_) = explain_otherwise(asked, EXPERIMENT)
    assert "--baseline-by PROGRAM" in row.how
    for outcome, word in (
        (Outcome.UNCHANGED, "Ruled out"),
        (Outcome.REGRESSED, "Speaks for it"),
        (Outcome.UNDECIDED, "Not ruled out"),
    ):
        known = (replace(tried, outcome=outcome), replace(tried, system="another"))
        (row, *_) = explain_otherwise(asked, EXPERIMENT, comparisons=known)
        assert (row.standing.word, row.how) == (word, "")
        assert tried.id in row.text
    other = replace(tried, method=(replace(tried.method[0], after="much later"),))
    (row, *_) = explain_otherwise(asked, EXPERIMENT, comparisons=(other,))
    assert "--baseline-by PROGRAM" in row.how


def test_a_long_series_is_cut_to_what_lies_around_the_change(incident: Incident) -> None:
    lead = incident.lead
    points = Points.of(tuple(lead.series.points) * 10)
    long = replace(
        lead, series=replace(lead.series, points=points), index=120, earliest=110, latest=125
    )
    chart = draw_change(long, (long,))
    assert chart is not None
    assert (chart.first, chart.last) == (80, 159)


def test_what_was_reported_taken_back_and_decided_is_in_the_story(
    demo: Any, incident: Incident
) -> None:
    lead = incident.lead
    judged = {one.series.key: one for one in demo.judgement.series}
    alert = Alert(
        index=lead.index,
        earliest=lead.earliest,
        latest=lead.latest,
        rises=False,
        relative_change=-0.1,
        state=ChangeState.PROVISIONAL,
        provisional_at=2,
        confirmed_at=None,
        withdrawn_at=4,
    )
    own = replace(judged[lead.series.key], alerts=(alert,))
    of_testbed = demo.judgement.incidents[1]
    reported = replace(incident, triage=of_testbed.triage)
    by_id = {trial.id: trial for trial in demo.trials}
    view = show_incident(reported, judged | {lead.series.key: own}, by_id, {})
    said = [event.what for event in view["timeline"]]
    assert said[1:3] == ["Reported as suspected", "Retracted: later points did not confirm it"]
    assert said[3].startswith("Triaged: ")
    assert of_testbed.triage.owner in said[3]
    assert view["timeline"][3].when == "date not recorded"


def test_nights_that_measured_both_releases_are_no_order_of_events(
    demo: Any, incident: Incident
) -> None:
    # By release the first point with it comes later, by night it may well be the older one.
    (event,) = page(demo, incident)["timeline"]
    assert event.when == f"nights 1{NBSP}Mar{NBSP}2026{NBSP}#1 to 8{NBSP}Mar{NBSP}2026{NBSP}#1"
    assert event.what == "5.0.2 without it, 5.0.3 with it, in each of the 8 nights of both"
    inside = page(demo, within(incident))["timeline"]
    assert [event.what for event in inside] == [
        "Last point without it, 5.0.3",
        "First point with it, 5.0.3",
    ]


def test_what_changed_with_it_is_not_ruled_out_and_says_how_it_could_be(
    demo: Any, incident: Incident
) -> None:
    environments = {
        "version:java of node-1": "Install the old Java",
        "kernel of node-1": "Boot the old kernel",
        "testbed local": "Check out the old file",
        "knickpoint": "Install Knickpoint old",
        "version:pymongo of client": "Install the old version",
        "governor of node-1": "Set it back on the host",
        "config default": "Let old and new settings take turns",
    }
    reported = replace(
        incident,
        explanations=tuple(Explanation(name=one, before="old", after="<new>") for one in environments),
    )
    rows = page(demo, reported)["explanations"]
    assert [row.standing.word for row in rows[:7]] == ["Not ruled out"] * 7
    assert all(how in row.how for row, how in zip(rows, environments.values(), strict=False))
    assert rows[0].name == "java of node-1"
    assert {row.text for row in rows[:7]} == {
        "It changed between the last trial without the change and the first with it."
    }
    assert all(row.how.endswith(".") for row in rows if row.how)
    assert "old → &lt;new&gt;" in text(page(demo, reported))


def test_settings_that_both_bundles_kept_are_named_in_place_of_hashes(
    demo: Any, incident: Incident
) -> None:
    before: Settings = {"config": {"settings": {"a": 1, "commitlog_sync": "periodic"}}}
    after: Settings = {"config": {"settings": {"a": 1, "commitlog_sync": "batch"}}}
    one = Explanation(name="config default", before="9596", after="8316")
    (knob,) = find_changed(one, (before, after))
    assert (knob.steps, knob.before, knob.after) == (
        ("settings", "commitlog_sync"),
        '"periodic"',
        '"batch"',
    )
    assert find_changed(one, ({}, after)) == ()
    assert find_changed(replace(one, name="knickpoint"), (before, after)) == ()
    reported = within(incident, explanations=(one,), cause=Cause.CONFIGURATION)
    shown = text(page(demo, reported, {one: (knob,)}))
    assert shown.count("<code>commitlog_sync</code>: periodic → batch") == 2
    assert "8316" not in shown


def test_trials_in_turns_that_agree_rule_out_all_else(demo: Any, incident: Incident) -> None:
    rows = page(demo, proven(incident))["explanations"]
    assert {row.standing.word for row in rows} == {"Ruled out"}
    assert not any(row.how for row in rows)


def test_a_canary_that_stood_still_clears_nobody_and_a_sentinel_does(
    demo: Any, incident: Incident
) -> None:
    canary, sentinel = incident.evidence
    assert not sentinel.is_decisive
    drift = explanation(page(demo, incident), "a drift")
    assert drift.standing.word == "Not ruled out"
    assert "does not show that the hosts did" in drift.text
    assert "take turns on the same hosts" in drift.how

    def standing(*evidence: WatchEvidence) -> str:
        row = explanation(page(demo, replace(incident, evidence=evidence)), "a drift")
        return row.standing.word

    assert standing(canary, replace(sentinel, state=WatchState.STILL)) == "Ruled out"
    assert standing(replace(canary, state=WatchState.FOLLOWED), sentinel) == "Speaks for it"
    assert standing() == "Not ruled out"


def test_chance_is_not_ruled_out_before_it_is_confirmed(demo: Any, incident: Incident) -> None:
    assert explanation(page(demo, incident), "chance").standing.word == "Unlikely"
    lead = replace(incident.lead, state=ChangeState.PROVISIONAL)
    row = explanation(page(demo, replace(incident, lead=lead, changes=(lead,))), "chance")
    assert row.standing.word == "Not ruled out"
    assert row.text.endswith(" after it.")
    assert row.how == "More nights, or interleaved trials, would show it once more or not."


def test_the_release_is_named_only_if_no_other_is_in_question(demo: Any, incident: Incident) -> None:
    lead = replace(incident.lead, earliest=incident.lead.index, latest=incident.lead.index)
    certain, is_askable = say_question(replace(incident, lead=lead))
    assert certain.startswith("5.0.3 is the first release with it, and 5.0.2, the release before")
    assert not is_askable
    old = replace(lead.last_before, release=replace(lead.last_before.release, version="4.9", ordinal=0))
    wide = replace(incident, lead=replace(lead, last_before=old))
    assert "after 4.9, up to and including 5.0.3" in say_question(wide)[0]
    assert ">knickpoint bisect --change a1b2c3d4</pre>" in text(page(demo, wide))
    inside, is_askable = say_question(within(incident))
    assert (inside[:31], is_askable) == ("Both sides are release 5.0.3, s", False)
    by_config = say_question(within(incident, cause=Cause.CONFIGURATION))[0]
    assert by_config.endswith("the configuration is the only difference that is recorded.")
    accused, is_askable = say_question(replace(incident, cause=Cause.TESTBED))
    assert ("no release is accused" in accused, is_askable) == (True, False)


def test_the_page_goes_from_what_changed_to_the_evidence(demo: Any, incident: Incident) -> None:
    html = text(page(demo, incident))
    anchors = re.findall(r'<h2 id="([^"]+)"', html)
    assert anchors == ["todo", "what", "sure", "again", "explanations", "evidence"]
    assert "<strong>Not done:</strong> side by side, bisection." in html
    chart = page(demo, incident)["chart"]
    first, last = (point.trial for _, point in (chart.points[0], chart.points[-1]))
    assert f"#zoom={first}..{last}" in html
    assert '<svg class="spark' in html.partition("</section>")[0]


def test_the_change_can_be_seen_again_by_the_commands_of_the_page(
    demo: Any, incident: Incident
) -> None:
    view = page(demo, incident)
    of_suite = f"--suite quickstart --experiment {EXPERIMENT}"
    assert view["reproduction"].commands.splitlines()[-3:] == [
        f"knickpoint measure {of_suite} --release 5.0.2",
        f"knickpoint measure {of_suite} --release 5.0.3",
        "knickpoint bisect --change a1b2c3d4",
    ]
    # The configuration of these pages is not known here, so nothing is claimed of it.
    assert "have another content now" in view["reproduction"].text
    assert view["reproduction"].commands.startswith("git log --oneline -- configs/topologies/")
    config = (Explanation(name="config default", before="a", after="b"),)
    reported = page(demo, within(incident, explanations=config, cause=Cause.CONFIGURATION))
    assert reported["reproduction"].commands.endswith(f"knickpoint measure {of_suite} --release 5.0.3")
    undo, prove, decide = reported["steps"]
    assert undo.text == "Undo the settings of config default, or accept them."
    # What no file holds any more has to be saved before the comparison can run.
    assert "save the old settings as configs/systems/cassandra/default-before.yaml first" in prove.text
    assert prove.commands.splitlines()[-1] == (
        f"knickpoint compare {of_suite} --baseline 5.0.3/default-before --candidate 5.0.3/default"
    )
    assert decide.commands.startswith("knickpoint triage add ")
    assert (reported["configs"], reported["deciding"]) == ([], "")
    unknown = page(demo, within(incident, explanations=config, cause=Cause.UNKNOWN))
    assert [one.commands for one in unknown["configs"]] == [prove.commands]
    assert explanation(reported, "config").standing.word == "Attributed to it"
