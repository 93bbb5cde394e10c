"""The front page: what stands first, what is said of it, and that it stays small."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from made_up_judgement import DETECTABLE, TRIAGED

from analysis.detection.detection import ChangeState
from analysis.detection.verdict import Outcome
from analysis.judging.incidents import Cause, Incident
from analysis.judging.judgement import Judgement
from perf.model.results import Purpose, Reason, Trial, TrialStatus
from reports.pages.front.freshness import find_longest_pause, view_freshness
from reports.pages.front.page import (
    MOST_INCIDENTS,
    count_troubles_in_turns,
    show_all_series,
    show_front,
)
from reports.pages.front.verdict import say_false_alarms
from reports.site.context import SiteContext
from reports.site.rendering import render
from reports.wording.attention import LeftOut, first_reason
from reports.wording.series_list import group_series
from reports.wording.wording import moment, series_words

NBSP = "\N{NO-BREAK SPACE}"
NOTHING = Judgement(series=())
DAY = timedelta(days=1)
MONDAY = datetime(2026, 3, 2, 2, 0, tzinfo=UTC)


def show(context: SiteContext, **changed: Any) -> dict[str, Any]:
    context = replace(context, **changed)
    return show_front(
        context, context.judgement.series, group_series(context.judgement.series, context.heads)
    )


def show_incident(context: SiteContext, **changed: Any) -> Any:
    """Show the incident of the made-up history that is news, with these fields changed."""
    incident = replace(context.judgement.incidents[0], **changed)
    judgement = replace(context.judgement, incidents=(incident,))
    page = show(context, judgement=judgement)
    return next(iter((*page["attention"], *page["improvements"])), None)


def bare(context: SiteContext, *trials: Trial) -> SiteContext:
    """Return a history of these trials and nothing else, as of the end of the last."""
    return replace(
        context,
        heads={trial.id: trial for trial in trials},
        judgement=NOTHING,
        nights=(),
        comparisons=(),
        now=max(trial.finished_at for trial in trials),
    )


@pytest.fixture(scope="module")
def context(demo: Any) -> SiteContext:
    """Return the context of the made-up history, whose configuration takes a while to read."""
    made: SiteContext = demo.context()
    return made


@pytest.fixture(scope="module")
def index(context: SiteContext) -> dict[str, Any]:
    """Return the front page of the made-up history."""
    return show(context)


def test_the_verdict_begins_with_the_worst_incident(index: dict[str, Any]) -> None:
    assert index["verdict"].word == "Regressed"
    assert index["sentence"] == (
        f"Cassandra writes are slower: throughput at saturation 4,189 → 3,622{NBSP}ops/s (−14{NBSP}%), "
        "since 5.0.3; confirmed."
    )
    assert index["top"].cause == "Attributed to the database, 5.0.2 → 5.0.3."
    assert index["counts"][0] == ("bad", "5 regressed", "series.html#find=regressed")
    assert index["tonight"].found == "nothing new"
    assert index["left_out"] == ()
    assert timedelta(hours=4) <= index["age"] < timedelta(hours=5)
    assert index["age"] < index["limit"]


def test_what_could_not_be_measured_is_a_line_that_opens(index: dict[str, Any]) -> None:
    failed, invalid, missing = index["unmeasured"]
    assert index["troubles_tonight"].endswith("1 failed, 1 invalid, 1 missing")
    assert index["troubles_tonight"].startswith("3 of 6 trials")
    assert [row.badge.word for row in index["unmeasured"]] == ["Failed", "Invalid", "Missing"]
    assert failed.subject == "cassandra-sensor-read at 5.0.1"
    assert failed.page == "trials/2026-03-08-1.04.cassandra-sensor-read.5.0.1.html"
    assert failed.todo == "Open the trial: its log says where it stopped."
    assert invalid.text == "client fell behind: 3.1\N{NO-BREAK SPACE}% started late."
    assert missing.page == ""
    assert f"Planned for night 8{NBSP}Mar{NBSP}2026{NBSP}#1" in missing.text
    html = render("index.html", "index.html", **index).content.decode()
    assert html.index('<p class="lead">') < html.index('<details class="unmeasured">')
    headings = ["attention", "trends", "settled", "experiments", "nights", "trust", "troubles"]
    assert sorted(headings, key=lambda one: html.index(f'<h2 id="{one}"')) == headings


def test_a_row_says_what_changed_how_sure_and_what_to_do(index: dict[str, Any]) -> None:
    (row,) = index["attention"]
    html = render("index.html", "index.html", **index).content.decode()
    for text in (
        'cassandra <span class="step">5.0.2 → 5.0.3</span> <span class="note">sensor-write</span>',
        ">throughput of write at saturation</a>",
        '<span aria-hidden="true">↑ better</span><span class="unseen">higher is better</span>',
        f'<strong>−13.5{NBSP}%</strong> <span class="note">−16.1{NBSP}% to −11.0{NBSP}%</span>',
        f'<span title="3.29{NBSP}× the smallest visible change, ≥{NBSP}4.12{NBSP}%">3.29{NBSP}×</span>',
    ):
        assert text in html
    assert row.state == "Confirmed · database · still there"
    assert row.owner == "nobody yet"
    (step,) = row.steps
    assert step.text.startswith("Make sure: an interleaved comparison")
    assert step.commands.startswith(
        "knickpoint compare --suite quickstart --experiment cassandra-sensor"
    )
    assert "--baseline 5.0.2 --candidate 5.0.3" in step.commands
    assert [name for name, _ in row.links] == ["Incident", "Release 5.0.3", "Compare"]
    others = {series_words(line.change.series.key) for line in row.others}
    assert "p99 response time of write at steady load" in others
    assert row.further == len(others)
    assert f"{len(others)} further series moved with it" in html
    assert "but not its size" not in html


def test_a_confirmed_change_whose_interval_holds_0_is_reported_as_one(index: dict[str, Any]) -> None:
    (row,) = index["attention"]
    change = row.lead.change
    wide = replace(row.lead, interval=replace(row.lead.interval, low=-0.3, high=0.04))
    unsure = replace(wide, change=replace(change, state=ChangeState.PROVISIONAL))
    assert [one.is_size_open for one in (row.lead, wide, unsure)] == [False, True, False]
    shown = index | {"attention": (replace(row, lead=wide),)}
    html = render("index.html", "index.html", **shown).content.decode()
    assert f"+4.0{NBSP}%; it holds 0: the change is confirmed, but not its size" in html


def test_each_kind_of_incident_says_its_own_next_step(context: SiteContext) -> None:
    lead = context.judgement.incidents[0].lead
    known = show_incident(context, question=None)
    again, decide = known.steps
    assert "without it is 5.0.2, the first with it 5.0.3." in again.text
    assert again.commands == "knickpoint bisect --change a1b2c3d4"
    sure = replace(lead, earliest=lead.index, latest=lead.index)
    certain, _ = show_incident(context, question=None, lead=sure).steps
    assert certain.text.startswith("Release 5.0.3 has it, 5.0.2 does not.")
    assert certain.commands.startswith("knickpoint compare ")
    assert decide.commands.startswith(
        "knickpoint triage add a1b2c3d4 --state acknowledged --owner OWNER"
    )
    assert "testbed" in show_incident(context, question=None, cause=Cause.TESTBED).steps[0].text
    unsure = replace(lead, state=ChangeState.PROVISIONAL)
    assert (
        show_incident(context, question=None, lead=unsure)
        .steps[0]
        .text.startswith("Wait for the next nights")
    )
    back = show_incident(context, question=None, came_back_after=TRIAGED)
    assert (back.owner, "came back: inform ops <ops>" in back.steps[0].text) == ("ops <ops>", True)
    better = replace(lead, outcome=Outcome.IMPROVED)
    gain = show_incident(context, question=None, lead=better)
    assert "--state expected" in gain.steps[0].commands
    decided = show_incident(context, question=None, triage=TRIAGED)
    assert (decided.owner, decided.steps[0].text) == (
        "ops <ops>",
        "Nothing: testbed by ops <ops> until 2026-04-01.",
    )


def test_the_heaviest_comes_first_and_the_rest_is_counted(context: SiteContext) -> None:
    incident: Incident = context.judgement.incidents[0]
    keys = [one.series.key for one in context.judgement.series]
    noisy = [replace(one, relative_change=10 * one.relative_change) for one in DETECTABLE]
    series = tuple(
        replace(one, detectable=tuple(noisy) if one.series.key == keys[0] else DETECTABLE)
        for one in context.judgement.series
    )

    def at(key: Any, change: float, name: str) -> Incident:
        of_series = next(one.series for one in series if one.series.key == key)
        lead = replace(incident.lead, series=replace(of_series, points=incident.lead.series.points))
        return replace(incident, name=name, lead=replace(lead, relative_change=change))

    few = (at(keys[0], -0.2, "noisy"), at(keys[1], -0.1, "sure"), at(keys[1], -0.06, "small"))
    judgement = replace(context.judgement, series=series, incidents=few)
    rows = show(context, judgement=judgement)["attention"]
    assert [row.incident.name for row in rows] == ["sure", "noisy", "small"]
    many = tuple(at(keys[1], -0.1, f"n{number:02d}") for number in range(MOST_INCIDENTS + 7))
    page = show(context, judgement=replace(judgement, incidents=many))
    assert len(page["attention"]) == MOST_INCIDENTS
    html = render("index.html", "index.html", **page).content.decode()
    assert len(html) < 150_000  # of the 300 kB that it may have, many experiments take the rest
    assert '<a href="incidents.html">7 lighter ones more' in html


def test_deviations_are_shown_from_three_deviations_on(
    index: dict[str, Any], context: SiteContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert index["deviations"] == []
    monkeypatch.setattr("reports.pages.front.page._LEAST_DEVIATIONS", 0.0)
    page = show(context)
    assert len(page["deviations"]) == 3
    assert max(one.deviations for one, _ in page["deviations"]) < 3
    html = render("index.html", "index.html", **page).content.decode()
    assert html.count(" σ</span></td>") == 3


def test_experiments_stand_in_one_line_each_the_worst_first(
    index: dict[str, Any], context: SiteContext
) -> None:
    write, read = index["experiments"]
    assert (write.name, read.name) == ("cassandra-sensor-write", "cassandra-sensor-read")
    assert write.verdict.word == "Regressed"
    assert read.counts == "1 invalid, 5 unchanged"
    groups = group_series(context.judgement.series, context.heads)
    anchors = {group.name: group.anchor for group in groups}
    assert write.page == f"series.html#{anchors['cassandra-sensor-write']}"
    assert (write.freshness and write.freshness.badge.word) == "Fresh"
    assert sum(len(group.series) for group in groups) == len(context.judgement.series)
    first = groups[1].series[0]
    assert series_words(first.series.key) == "throughput of write at saturation"
    (pointless,) = [one for one in groups[0].series if not one.series.points]
    assert series_words(pointless.series.key) == "highest load of read-latest in phase search"


def test_all_series_have_chips_that_filter_and_say_since_when(context: SiteContext) -> None:
    groups = group_series(context.judgement.series, context.heads)
    shown = show_all_series(groups)
    badge, many = shown["outcomes"][0]
    assert (badge.word, many) == ("Regressed", 5)
    assert sum(many for _, many in shown["outcomes"]) == shown["series"] == 12
    html = render("all_series.html", "series.html", **shown, caveats=()).content.decode()
    assert 'href="#find=regressed"' in html
    rows = html.split("<tr id=")[1].split("<tr")
    assert 'data-label="Since">5.0.3</td>' in rows[0]
    assert '<line class="at"' in rows[0]
    assert '<line class="at"' not in html.split("<tr id=")[2]


def test_the_comment_of_a_pull_request_finds_a_series_by_experiment_and_words(
    context: SiteContext,
) -> None:
    """Where there is one experiment, no column names it; its name is found all the same."""
    groups = group_series(context.judgement.series, context.heads)
    for shown in (groups, groups[1:]):
        page = show_all_series(shown)
        html = render("all_series.html", "series.html", **page, caveats=()).content.decode()
        rows = re.findall(r"<tr[^>]*>.*?</tr>", html.partition("<tbody>")[2], re.DOTALL)
        assert all(any(group.name in row for group in shown) for row in rows)
        words = series_words(shown[-1].series[0].series.key)
        assert any(shown[-1].name in row and words in row for row in rows)


def test_troubles_and_caveats_of_the_whole_history_are_listed(
    index: dict[str, Any], context: SiteContext
) -> None:
    assert [trial.status for trial in index["troubles"]] == ["invalid", "failed"]
    assert index["troubles_count"] == 2
    assert index["caveats"] == (f"local: {context.caveats['local']}",)


def test_false_alarms_are_said_for_somebody_who_never_heard_of_them() -> None:
    night = replace(NOTHING, asked=8)
    rare, often = (say_false_alarms(replace(night, expected_false_alarms=many)) for many in (0.02, 1.5))
    assert "about 50 such nights" in rare
    assert "2 false alarms" in often
    assert say_false_alarms(night).startswith("No false alarm")


def nights_at(*days: float) -> list[datetime]:
    return [MONDAY + day * DAY for day in days]


@pytest.mark.parametrize(
    ("nights", "late_after"),
    [
        ((), 1.5),
        ((0, 0.01, 0.02, 0.03), 1.5),  # somebody trying things out
        ((0, 1, 2, 3, 4, 5), 1.5),
        ((0, 1, 2, 5, 6, 7), 1.5),  # one outage is no rhythm
        ((0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 14), 3.5),  # weekends are
        ((0, 7, 14, 21), 10.5),
    ],
)
def test_how_late_is_late_follows_from_the_rhythm(nights: tuple[float, ...], late_after: float) -> None:
    assert find_longest_pause(nights_at(*nights)) == late_after * DAY


def test_each_experiment_is_fresh_stale_or_has_never_been(make_trial: Callable[..., Trial]) -> None:
    def measure(experiment: str, day: int, status: TrialStatus = TrialStatus.COMPLETED) -> Trial:
        began = MONDAY + day * DAY
        return make_trial(
            night=f"n-{day}",
            experiment=experiment,
            status=status,
            started_at=began,
            finished_at=began + timedelta(minutes=3),
        )

    trials = [
        *(measure("nightly", day) for day in range(8)),
        *(measure("weekly", day) for day in (0, 7)),
        *(measure("stopped", day) for day in range(5)),
        measure("sentinel", 1),
        measure("failing", 7, TrialStatus.FAILED),
    ]
    now = MONDAY + 8 * DAY
    reported = view_freshness(trials, ("planned",), now, every_nights={"sentinel": 5})
    assert {name: one.badge.word for name, one in reported.items()} == {
        "failing": "Never",
        "nightly": "Fresh",
        "planned": "Never",
        "sentinel": "Fresh",
        "stopped": "Stale",
        "weekly": "Fresh",
    }
    assert reported["stopped"].text == (
        "The newest completed trial was 3 days old when this page was built; by its rhythm, "
        "36 hours is late."
    )


def test_an_old_history_says_so_when_built_and_when_opened(context: SiteContext) -> None:
    page = show(context, now=context.now + 2 * DAY)
    assert page["age"] > page["limit"]
    assert page["unfresh"] == 2
    html = render("index.html", "index.html", **page).content.decode()
    assert '<p class="alarm">Newest trial: ' in html
    newest = page["newest"]
    assert newest is not None
    assert f'hidden data-built="{moment(newest).iso}" data-stale-after-s="{36 * 3600}"' in html


def test_a_history_without_a_completed_trial_never_looks_fine(
    context: SiteContext, make_trial: Callable[..., Trial]
) -> None:
    page = show(bare(context, make_trial(status=TrialStatus.FAILED, reasons=(), samples=())))
    assert page["sentence"] == "No trial has been completed yet."
    assert page["troubles_tonight"].endswith("1 failed")
    assert page["verdict"].word == "Cannot tell yet"
    assert [row.text for row in page["unmeasured"]] == ["no reason was recorded"]
    (line,) = page["experiments"]
    assert (line.verdict.word, line.freshness and line.freshness.badge.word) == ("No series", "Never")


def test_trials_that_took_turns_are_reported_by_their_comparison_alone(
    context: SiteContext, make_trial: Callable[..., Trial]
) -> None:
    spoilt = {"purpose": Purpose.COMPARISON, "status": TrialStatus.INVALID, "samples": ()}
    turns = bare(context, make_trial(), make_trial(id="cmp-1", night="", **spoilt))
    page = show(turns)
    assert (page["unmeasured"], page["troubles"]) == ((), [])
    assert count_troubles_in_turns(tuple(turns.heads.values())).startswith(
        "1 trial that took turns failed or was invalid"
    )


def test_an_empty_history_has_no_verdict(context: SiteContext) -> None:
    page = show(context, heads={}, judgement=NOTHING, nights=())
    assert page["newest"] is None
    assert page["verdict"].word == "Nothing measured yet"
    assert "How to begin" in render("index.html", "index.html", **page).content.decode()


def test_bundles_outside_of_the_history_come_first(context: SiteContext) -> None:
    missing = [f"  {name} is missing" for name in ("trial.json", "a", "b", "c")]
    fault = "\n".join(("torn cannot be used:", *missing, "  move torn away"))
    left_out = (LeftOut(name="torn", fault=fault), LeftOut(name="fresh", fault=""))
    page = show(context, left_out=left_out)
    said = "2 bundles on disk are not in the history, so not judged either."
    assert said in render("index.html", "index.html", **page).content.decode()
    torn, fresh = page["left_out"]
    many = show(context, left_out=tuple(LeftOut(name=f"b{number}", fault="") for number in range(8)))
    assert [row.subject for row in many["left_out"]] == ["b0 and 7 more"]
    assert (torn.badge.word, torn.subject, torn.page) == ("Left out", "torn", "")
    assert torn.text == ("torn cannot be used: trial.json is missing; 3 more problems; move torn away.")
    assert fresh.text == (
        "Sound, but not appended yet: run `knickpoint append`, then `knickpoint report`."
    )


REASONS = {
    "load-not-offered": "steady, write: 560 of 600 operations were sent in time (93.3%)",
    "client-late": "steady, write: the client sent late by 12.31 ms at p99, which is 0.62 of the p99",
    "client-busy": "saturation, write: engine 0 used 0.95 s of CPU per second over 18.0 s",
    "host-busy": "server-1: others used 0.61 of 2 cores while steady was measured (iteration 1, 6.0 s)",
    "clock-stepped": "server-1: the wall clock moved by 120.3 ms against the time since boot",
    "not-steady": "saturation, write: throughput of the iterations is 300, 290, 120 ops/s",
    "host-drifted": "server-1: kernel was 6.1.0 before the trial and 6.2.0 after it",
    "not-loaded": "1999 of 2000 rows and 999500 of 1000000 bytes were stored after the load phase",
}


@pytest.mark.parametrize("kind", REASONS)
def test_an_invalid_trial_is_reported_by_its_first_reason_in_full(
    context: SiteContext, make_trial: Callable[..., Trial], kind: str
) -> None:
    reasons = (Reason(kind=kind, text=REASONS[kind]), Reason(kind="other", text="one more"))
    reason = REASONS[kind].replace("%", "\N{NO-BREAK SPACE}%")
    for found, said in (
        (reasons[:1], reason),
        (reasons, f"{reason} (1 more reason)"),
        (reasons * 2, f"{reason} (3 more reasons)"),
    ):
        page = show(bare(context, make_trial(status=TrialStatus.INVALID, reasons=found)))
        assert page["unmeasured"][0].text == said
        assert first_reason(page["troubles"][0]) == said
