"""The page of a trial: its rules with numbers, its phases, what differs from the trial before."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from chromium import watch
from playwright.sync_api import Browser

from analysis.judging.explanations import Explanation
from perf.config.difference import Knob
from perf.history.bundle import SETTINGS
from perf.history.distributions import Recording
from perf.model.clock_offsets import ClockOffset
from perf.model.design import Testbed
from perf.model.identity import named
from perf.model.results import (
    Counter,
    Fact,
    Interval,
    Named,
    Purpose,
    Reason,
    Sample,
    Trial,
    TrialId,
    TrialStatus,
)
from perf.trial.seconds import ServerSecond
from reports.pages.trial import page as trial_pages
from reports.pages.trial.differences import list_differences
from reports.pages.trial.page import SeriesLink, find_beginnings, list_bundle, render_trial
from reports.pages.trial.phases import find_phases
from reports.pages.trial.times import describe_curves
from reports.pages.trial.validity import Ruled, apply_rules
from reports.pages.trial.values import Canary, find_echoes, list_figures
from reports.site.changed_settings import name_changed_settings
from reports.site.context import find_previous
from reports.site.rendering import to_script
from reports.site.writing import flatten
from reports.wording.links import data_path, incident_page, times_data, trial_page
from reports.wording.reproducing import (
    NOTHING_KNOWN,
    Contents,
    list_changed,
    read_contents,
    view_reproduction,
)
from reports.wording.wording import percent, quantity

NBSP = "\N{NO-BREAK SPACE}"
AT: Any = {"phase": "steady", "operation": "write"}
NOTHING_AROUND: Any = {"series": (), "files": (), "reproduce": "", "caveats": {}}


def sample(metric: str, statistic: str, *values: float) -> list[Sample]:
    """Return the value of each iteration."""
    return [
        Sample(**AT, metric=metric, statistic=statistic, value=value, iteration=number)
        for number, value in enumerate(values, start=1)
    ]


def counters(name: str, *values: int) -> list[Counter]:
    return [
        Counter(**AT, iteration=number, name=name, value=value)
        for number, value in enumerate(values, start=1)
    ]


@pytest.fixture
def testbed(demo: Any) -> Testbed:
    found: Testbed = demo.context().catalog.testbeds["local"]
    return found


@pytest.fixture
def open_loop(make_trial: Callable[..., Trial], testbed: Testbed) -> Trial:
    """Return a trial of two iterations on a schedule, on the testbed as it is configured."""
    return make_trial(
        testbed=named(testbed),
        samples=(
            *sample("throughput", "mean", 99.0, 100.0),
            *sample("response_time", "p50", 2.0, 3.0),
            *sample("response_time", "p99", 10.0, 8.0),
            *sample("send_lateness", "p99", 1.0, 2.0),
            *sample("client_cpu", "mean", 4000.0, 5000.0),
            Sample(**AT, metric="warm_up", statistic="mean", value=3.5),
        ),
        counters=(
            *counters("attempted", 600, 600),
            *counters("timeouts", 1, 2),
            *counters("error:Overloaded", 0, 3),
            *counters("not_found", 0, 0),
            *counters("sent_in_window", 590, 594),
            *counters("completed_in_window", 594, 600),
        ),
        environment_after=(Fact(host="node-1", name="kernel", value="6.1"),),
    )


def page_of(trial: Trial, contents: Contents = NOTHING_KNOWN, previous: Trial | None = None) -> str:
    """Return the page of a trial, which is no part of any series."""
    page = render_trial(
        trial, series=(), files=(), reproduce="", caveats={}, contents=contents, previous=previous
    )
    return page.content.decode()


def rules(trial: Trial, *testbeds: Testbed) -> dict[str, Ruled]:
    found = apply_rules(trial, {named(one): one for one in testbeds})
    return {one.rule.title: one for one in found}


def report(ruled: Ruled) -> tuple[str, str, str]:
    """Return the limit, the worst value and the word of a rule."""
    limit = "–" if ruled.limit is None else ruled.rule.say_limit(ruled.limit)
    return limit, ruled.rule.say(ruled.worst.value) if ruled.worst else "–", ruled.held.word


@pytest.mark.parametrize(
    ("after_ms", "limit_ms", "shown"),
    [
        (3.0, 5.0, ("at most 5 ms", f"3.50{NBSP}ms", "Held")),
        (4.75, 5.0, ("at most 5 ms", f"5.25{NBSP}ms", "Cannot tell")),
    ],
)
def test_clocks_of_client_hosts_stand_with_the_most_that_they_were_apart(
    open_loop: Trial, testbed: Testbed, after_ms: float, limit_ms: float, shown: tuple[str, str, str]
) -> None:
    bounded = replace(testbed, validity=replace(testbed.validity, max_clock_offset_ms=limit_ms))
    near = (ClockOffset(0.0, 0.25).fact_of("load-1"), ClockOffset(1.0, 0.25).fact_of("load-2"))
    wide = (near[0], ClockOffset(-after_ms, 0.25).fact_of("load-2"))
    trial = replace(open_loop, testbed=named(bounded), environment_before=near, environment_after=wide)
    ruled = rules(trial, bounded)["Clocks of several client hosts"]
    assert report(ruled) == shown
    assert ruled.worst is not None
    assert ruled.worst.where == "load-1 and load-2, after the load"


def test_a_testbed_without_a_limit_to_clocks_has_no_such_rule(
    open_loop: Trial, testbed: Testbed
) -> None:
    assert "Clocks of several client hosts" not in rules(open_loop, testbed)


def test_each_rule_stands_with_its_limit_and_the_worst_that_was_measured(
    open_loop: Trial, testbed: Testbed
) -> None:
    found = rules(open_loop, testbed)
    reported = {title: report(one) for title, one in found.items()}
    assert reported["Errors"] == (f"at most 1{NBSP}%", f"0.500{NBSP}%", "Held")
    assert reported["Load that was offered"] == (f"at least 95{NBSP}%", f"98.7{NBSP}%", "Held")
    assert reported["Lateness of the client"] == (f"at most 50{NBSP}%", f"25.0{NBSP}%", "Held")
    assert reported["CPU of the client"][1] == f"0.500{NBSP}of a core"
    assert reported["Spread of the iterations"] == (f"at most 100{NBSP}%", f"40.0{NBSP}%", "Held")
    assert reported["Steps of the clock"] == ("at most 100 ms", "–", "No reason given")
    html = page_of(open_loop, Contents(testbeds={named(testbed): testbed}))
    for said in (
        "not recorded",
        "6 of 1,200, write at steady load",
        "2.00 of 8.00 ms, write at steady load, iteration 2",
    ):
        assert said in html


def test_a_broken_rule_is_reported_in_the_words_of_the_harness(
    open_loop: Trial, testbed: Testbed
) -> None:
    reasons = (Reason(kind="host-busy", text="node-1: <others> used 47.6%; the limit is 25 %"),)
    spoiled = replace(open_loop, status=TrialStatus.INVALID, reasons=reasons)
    assert rules(spoiled, testbed)["Other programs on a host"].held.word == "Broken"
    html = page_of(spoiled, Contents(testbeds={named(testbed): testbed}))
    said = f"node-1: &lt;others&gt; used 47.6{NBSP}%; the limit is 25{NBSP}%"
    assert f'<td class="why" colspan="2">{said}</td>' in html
    assert rules(spoiled, testbed)["Errors"].held.word == "Held"


def test_what_was_not_judged_is_not_said_to_have_held(open_loop: Trial, testbed: Testbed) -> None:
    ended = replace(open_loop, environment_after=())
    assert {row.held.word for row in rules(ended, testbed).values()} == {"Cannot tell"}
    assert "ended before it was judged" in page_of(ended)
    imported = replace(open_loop, purpose=Purpose.IMPORTED)
    assert rules(imported, testbed) == {}
    assert "Another program measured this" in page_of(imported)


def test_a_limit_that_has_changed_since_is_not_claimed(open_loop: Trial, testbed: Testbed) -> None:
    other = replace(testbed, validity=replace(testbed.validity, max_error_share=0.5))
    found = rules(open_loop, other)
    assert {(row.limit, row.held.word) for row in found.values()} == {(None, "No reason given")}
    html = page_of(open_loop, Contents(testbeds={named(other): other}))
    assert "its limits then are not known here" in html


def test_phases_say_how_long_they_ran_and_how_their_warm_ups_ended(open_loop: Trial, demo: Any) -> None:
    (row,) = find_phases(open_loop, {})
    assert (row.phase, row.operation, row.load) == ("steady", "write", "open loop")
    assert (row.attempted, row.seconds, row.warm_up_s) == (1200, [6, 6], 3.5)
    assert row.warm == "no remark that the cap came first"
    html = page_of(open_loop)
    for said in ("2 × 6.00 s", "3.50 s on average", "of which 12.0 s were measured"):
        assert said in html
    # The load of the devops workload is measured, and nothing that came before.
    loaded = Counter(phase="load", operation="load", iteration=1, name="attempted", value=36)
    assert "Before" not in str(find_phases(replace(open_loop, counters=(loaded,)), {}))
    capped = (Reason(kind="warm-up-capped", text="steady: 1 of 2 warm-ups ran to their cap"),)
    (row,) = find_phases(replace(open_loop, remarks=capped), {})
    assert row.warm.startswith("not steady by the rule")
    workload = demo.context().catalog.workloads["sensor-write"]
    (row,) = find_phases(replace(open_loop, workload=named(workload)), {named(workload): workload})
    assert "ops/s offered" in row.load
    assert row.warm != "no remark that the cap came first"


def in_turn(trial: Trial, *changes: dict[str, Any]) -> Sequence[Trial]:
    """Return trials one after the other, each a minute after the last."""
    return [
        replace(
            trial,
            id=TrialId(f"trial-{number}"),
            started_at=trial.started_at + timedelta(minutes=number),
            **change,
        )
        for number, change in enumerate(changes)
    ]


def test_the_trial_before_is_the_last_completed_one_of_experiment_config_and_release(
    open_loop: Trial,
) -> None:
    other = Named(name="other", sha256="0")
    newer = replace(open_loop.release, version="9.9.9")
    made = in_turn(
        open_loop,
        *({}, {"config": other}, {"status": TrialStatus.FAILED}, {}),
        *({"status": TrialStatus.INVALID}, {"experiment": "else"}, {"release": newer}, {}),
    )
    assert find_previous(made) == {
        "trial-2": "trial-0",
        "trial-3": "trial-0",
        "trial-4": "trial-3",
        "trial-6": "trial-3",
        "trial-7": "trial-3",
    }


def test_the_first_point_after_a_change_names_its_incident(demo: Any) -> None:
    context = demo.context()
    incident = context.judgement.incidents[0]
    first = incident.lead.first_after
    (found,) = find_beginnings([incident])[first.trial]
    assert found.page == incident_page(incident.name)
    off = percent(first.value / incident.lead.before - 1)
    metric = incident.lead.series.key.metric
    assert f"{quantity(first.value, metric)} here, {off} against the level before (" in found.text
    # What each further night says of the size is no reason to make the page again.
    moved = replace(incident.lead, relative_change=incident.lead.relative_change * 1.01)
    others = tuple(one for one in incident.changes if one is not incident.lead)
    later = replace(incident, lead=moved, changes=(moved, *others))
    assert find_beginnings([later])[first.trial] == (found,)
    pages = {
        file.path: file.content.decode()
        for batch in flatten(trial_pages.batches(context))
        for file in batch.make(batch.versions)
    }
    text = f'href="../{incident_page(incident.name)}"'
    assert [path for path, page in pages.items() if text in page.partition("</section>")[0]] == [
        trial_page(one)
        for one in context.heads
        if one in {change.first_after.trial for change in incident.changes}
    ]


def test_what_differs_from_the_trial_before_is_listed(open_loop: Trial) -> None:
    def facts(kernel: str, load: str) -> tuple[Fact, ...]:
        return (
            Fact(host="node-1", name="kernel", value=kernel),
            Fact(host="node-1", name="load_average_1min", value=load),
        )

    before, after = in_turn(
        open_loop,
        {"environment_before": facts("6.1", "0.3")},
        {"environment_before": facts("<6.2>", "0.9"), "harness_version": "9.9"},
    )
    found = list_differences(before, after)
    assert [(row.name, row.where, row.before, row.after) for row in found] == [
        ("harness", "", before.harness_version or "–", "9.9"),
        ("kernel", "node-1", "6.1", "<6.2>"),
    ]
    html = page_of(after, previous=before)
    assert '<p>2 differences from <a href="../trials/trial-0.html">' in html
    assert "<p>Nothing that is recorded" in page_of(before, previous=before)
    unread = replace(before, environment_before=())
    assert "not recorded of both" in page_of(unread, previous=before)
    assert "No earlier trial of this experiment and config was completed" in page_of(before)


def test_to_reproduce_says_which_files_have_changed_since(demo: Any, open_loop: Trial) -> None:
    catalog = demo.context().catalog
    contents = read_contents(catalog)
    same = replace(
        open_loop,
        topology=named(next(iter(catalog.topologies.values()))),
        workload=named(next(iter(catalog.workloads.values()))),
        config=named(next(iter(catalog.systems["cassandra"].values()))),
    )
    assert list_changed(same, contents) == ()
    assert view_reproduction((), "run it").commands == "run it"
    changed = replace(same, workload=Named(name="gone", sha256="0"), config=same.workload)
    paths = list_changed(changed, contents)
    assert paths == (
        "configs/workloads/gone.yaml",
        f"configs/systems/cassandra/{same.workload.name}.yaml",
    )
    shown = view_reproduction(paths, "run it").commands.splitlines()
    assert shown[0] == f"git log --oneline -- {' '.join(paths)}"
    assert shown[-1] == "run it"


def test_a_page_is_made_again_if_anything_on_it_is_another(demo: Any) -> None:
    context = demo.context()
    _, first, *_ = flatten(trial_pages.batches(context))
    testbed = context.catalog.testbeds["local"]
    strict = replace(testbed, validity=replace(testbed.validity, max_error_share=0.5))
    head = next(iter(context.heads.values()))
    ours = replace(context.catalog, testbeds={"local": testbed})
    known = {one: replace(head, id=one, testbed=named(testbed)) for one in [head.id]}
    versions = [
        tuple(flatten(trial_pages.batches(replace(context, heads=known, catalog=catalog))))[1].versions
        for catalog in (ours, replace(ours, testbeds={"local": strict}))
    ]
    assert versions[0] != versions[1]
    # Another trial before changes what a page compares with.
    newer, older = list(context.previous.items())[-1]
    other = replace(context, digests={**context.digests, older: "f" * 64})
    _, second, *_ = flatten(trial_pages.batches(other))
    page = f"trials/{newer}.html"
    assert first.versions[page] != second.versions[page]
    assert first.versions[f"trials/{head.id}.html"] == second.versions[f"trials/{head.id}.html"]


def test_a_page_is_made_again_when_its_bundle_comes_to_hand(demo: Any, tmp_path: Path) -> None:
    context = replace(demo.context(), bundles=tmp_path / "bundles")
    gone = tuple(flatten(trial_pages.batches(context)))[1].versions
    head = next(iter(context.heads.values()))
    (tmp_path / "bundles" / head.id).mkdir(parents=True)
    there = tuple(flatten(trial_pages.batches(context)))[1].versions
    assert [path for path in gone if gone[path] != there[path]] == [f"trials/{head.id}.html"]


def test_the_page_shows_rules_phases_hashes_and_logs(demo: Any, tmp_path: Path) -> None:
    invalid = next(one for one in demo.trials if one.status is TrialStatus.INVALID)
    place = tmp_path / "trials" / invalid.id
    (place / "logs").mkdir(parents=True)
    (place / "trial.json").write_text("{}")
    (place / "logs" / "node 1&2.log").write_text("x")
    context = replace(demo.context(), bundles=tmp_path / "trials", target=tmp_path / "site")
    _, batch, *_ = flatten(trial_pages.batches(context))
    (page,) = (one for one in batch.make([f"trials/{invalid.id}.html"]) if one.path.endswith(".html"))
    html = page.content.decode()
    for said in (
        context.digests[invalid.id],
        'href="../../trials/',
        "logs/node%201%262.log",
        "logs/node 1&amp;2.log",
        'href="../method.html#validity"',
        "the last completed trial before it",
    ):
        assert said in html
    names = [file.name for file in list_bundle(tmp_path / "trials", invalid.id, tmp_path / "site")]
    assert names == ["logs/node 1&2.log", "trial.json"]
    assert list_bundle(tmp_path / "trials", TrialId("gone"), tmp_path / "site") == ()


def test_the_newest_trials_have_curves_and_keep_them_beside_their_pages(demo: Any) -> None:
    context = demo.context()
    _, batch, curves = flatten(trial_pages.batches(context, with_curves=2))
    newest, older = [list(context.heads)[place] for place in (-1, -3)]
    made = {file.path: file for one in (batch, curves) for file in one.make(one.versions)}
    assert made.keys() >= {data_path(times_data(newest))}
    assert times_data(newest).encode() in made[trial_page(newest)].content
    assert data_path(times_data(older)) not in made
    assert b"data-curves" not in made[trial_page(older)].content
    # One that is among the newest no longer is made again without them.
    _, fewer, left = flatten(trial_pages.batches(context, with_curves=1))
    changed = {path for path in batch.versions if batch.versions[path] != fewer.versions[path]}
    assert changed == {trial_page(list(context.heads)[-2])}
    # The curves of the other one stay as they are.
    assert left.versions.items() < curves.versions.items()


def test_a_trial_draws_the_operation_that_is_chosen(browser: Browser, demo_site: Path) -> None:
    page = next(
        one for one in sorted((demo_site / "trials").iterdir()) if "data-curves" in one.read_text()
    )
    with watch(browser, width=390, height=844) as watched:
        watched.open(page)
        curve = watched.page.locator('[data-chart="spectrum"] svg')
        curve.wait_for(timeout=20_000)
        box = curve.bounding_box()
        assert watched.page.locator(".chart svg").count() == 3  # the demo has no seconds of servers
        assert watched.page.locator(".sides").count() == 0
        few = "[{side: 'B', name: '', one: {course: Array(9).fill([1, 0, 1, 1, 1, 1])}}]"
        assert watched.page.evaluate(f"knickpoint.spectra.courseRows({few})") == []
        assert watched.complaints == []
    assert box is not None
    assert box["y"] < 560


@pytest.mark.slow
def test_what_servers_did_is_drawn_below_with_one_cursor(
    browser: Browser, open_loop: Trial, demo_site: Path
) -> None:
    (only,) = in_turn(open_loop, {})
    page = demo_site / "trials" / "servers.html"
    page.write_bytes(render_trial(only, **NOTHING_AROUND, has_curves=True).content)
    course = [[1 + second // 10, second % 10, 100, 1, 2, 3] for second in range(20)]
    servers = [
        [iteration, at + 0.5, name, 0.5, 1, 2, 300]
        for name in ("a", "b")
        for iteration in (1, 2)
        for at in range(9)
    ]
    curve = {"title": "x", "problem": "", "count": 9, "levels": [[50, 1], [100, 2]]}
    data = {"times": [curve | {"course": course, "servers": servers}]}
    (demo_site / data_path(times_data(only.id))).write_bytes(
        to_script(times_data(only.id), data).content
    )
    with watch(browser, width=1280, height=1400) as watched:
        watched.open(page)
        cores = watched.page.locator('[data-chart="cores"]')
        cores.locator("svg").wait_for(timeout=20_000)
        # Two servers, each with a gap between two iterations.
        assert cores.locator("svg .mark-line path").count() == 4
        cursors = watched.page.locator(".chart .cursor")
        watched.page.wait_for_function("document.querySelectorAll('.chart .cursor').length === 4")
        assert cursors.evaluate_all("all => all.map((one) => one.hidden)") == [True] * 4
        watched.page.locator('[data-chart="rate"]').hover()
        assert cursors.evaluate_all("all => all.map((one) => one.hidden)") == [False] * 4
        watched.page.locator("h1").hover()
        assert cursors.evaluate_all("all => all.map((one) => one.hidden)") == [True] * 4
        assert watched.complaints == []
    page.unlink()


def test_seconds_of_servers_belong_to_the_iteration_that_they_lie_in(
    make_trial: Callable[..., Trial], make_interval: Callable[..., Interval]
) -> None:
    intervals = [make_interval([5], iteration=1, start_s=at, length_s=1.0) for at in (100.0, 101.0)]
    trial = make_trial()
    kept = ("phase", "operation", "kind")
    recording = Recording(
        trial=trial.id, intervals=tuple(intervals), **{one: getattr(intervals[0], one) for one in kept}
    )
    seconds = [
        ServerSecond(
            node="node-1",
            start_s=start,
            end_s=start + 1,
            cores=0.25,
            read_per_s=0,
            written_per_s=3e6,
            memory_bytes=200_000_000,
            threads=9,
        )
        for start in (99.5, 100.5, 101.5)
    ]
    (curve,) = describe_curves(trial, [recording], seconds)["times"]
    assert curve["servers"] == [(1, 0.5, "node-1", 0.25, 3.0, 0.0, 200)]


@pytest.mark.slow
def test_a_trial_is_drawn_over_the_one_before_it(
    browser: Browser, open_loop: Trial, demo_site: Path
) -> None:
    before, after = in_turn(open_loop, {}, {})

    def make(*newest: TrialId) -> str:
        page = render_trial(after, **NOTHING_AROUND, previous=before, has_curves=True, newest=newest)
        return page.content.decode()

    html = make(before.id, after.id)
    assert f'data-before="{times_data(before.id)}"' in html
    assert re.findall(r'<path class="(\w+)" d="M1 6H43"/>', html) == ["baseline", "candidate"]
    assert "data-before" not in make(after.id)
    page = demo_site / "trials" / "over.html"
    page.write_text(html)
    curve = {"title": "x", "problem": "", "count": 9, "course": [], "levels": [[50, 1], [100, 2]]}
    for one in (before, after):
        (demo_site / data_path(times_data(one.id))).write_bytes(
            to_script(times_data(one.id), {"times": [curve]}).content
        )
    with watch(browser, width=1280, height=800) as watched:
        watched.open(page)
        lines = watched.page.locator('[data-chart="spectrum"] svg .mark-line path')
        lines.first.wait_for(timeout=20_000)
        dashes = lines.evaluate_all("all => all.map((one) => one.getAttribute('stroke-dasharray'))")
        assert dashes == ["7,4", ""]
        assert watched.complaints == []
    page.unlink()


def test_a_trial_begins_with_its_figures_and_repeats_none(open_loop: Trial) -> None:
    whole = [
        Sample(**AT, metric="response_time", statistic=name, value=value)
        for name, value in (("p99", 9.0), ("p50", 2.5), ("max", 80.0))
    ]
    rate = Sample(**AT, metric="throughput", statistic="mean", value=100.0)
    trial = replace(open_loop, samples=(*open_loop.samples, *whole, rate))
    at = "write at steady load"
    figures = list_figures(trial, frozenset())
    assert figures == [(at, f"100{NBSP}ops/s, p50 2.50{NBSP}ms, p99 9.00{NBSP}ms")]
    # On a schedule, throughput is what was offered.
    assert list_figures(trial, find_echoes(trial.samples)) == [
        (at, f"p50 2.50{NBSP}ms, p99 9.00{NBSP}ms")
    ]
    assert "p99 9.00" in page_of(trial).partition("</section>")[0]


def test_a_canary_has_moved_if_its_repetitions_do_not_overlap() -> None:
    def canary(low: float, high: float) -> Canary:
        return Canary(
            host="a",
            metric="canary_cpu",
            before={"min": 1.0, "max": 2.0},
            after={"min": low, "max": high},
        )

    moved = [canary(*ends).has_moved for ends in ((2.1, 3.0), (0.1, 0.9), (2.0, 3.0))]
    assert moved == [True, True, False]
    assert not replace(canary(5.0, 6.0), after={"p50": 5.0}).has_moved


def test_a_changed_config_is_named_by_its_settings(demo: Any, tmp_path: Path) -> None:
    context = demo.context()
    first, last = list(context.heads.values())[:: len(context.heads) - 1]
    assert name_changed_settings(first, last, context) == ""  # one content
    config = Named(name=first.config.name, sha256="feedfeedfeed")
    edited = replace(last, config=config)
    assert name_changed_settings(first, edited, context) == ""  # nobody knows the new one
    for head, value in ((first, "periodic"), (edited, "batch")):
        (tmp_path / head.id).mkdir()
        settings = {"config": {"settings": {"commitlog_sync": value}}}
        (tmp_path / head.id / SETTINGS).write_text(json.dumps(settings))
    kept = replace(context, bundles=tmp_path)
    assert name_changed_settings(first, edited, kept) == "commitlog_sync: periodic → batch"
    one = Explanation(name=f"config {config.name}", before=first.config.sha256, after=config.sha256)
    knob = Knob(file="config", steps=("heap_mb",), before="1", after="2")
    assert (
        name_changed_settings(first, edited, replace(kept, settings={one: (knob,)})) == "heap_mb: 1 → 2"
    )


def test_rules_that_are_held_are_folded(open_loop: Trial, testbed: Testbed) -> None:
    contents = Contents(testbeds={named(testbed): testbed})
    plain, folded = page_of(open_loop, contents).split('id="validity"')[1].split("<details>")[:2]
    assert ("<table" in plain, "<table" in folded) == (False, True)
    reasons = (Reason(kind="host-busy", text="x"),)
    spoiled = page_of(replace(open_loop, status=TrialStatus.INVALID, reasons=reasons), contents)
    plain, folded = spoiled.split('id="validity"')[1].split("<details>")[:2]
    assert ("Broken" in plain, "Held</span>" in plain, "Held</span>" in folded) == (True, False, True)


def test_rules_of_which_nothing_is_known_are_one_line(open_loop: Trial, testbed: Testbed) -> None:
    silent = [one for one in rules(open_loop, testbed).values() if one.is_silent]
    assert len(silent) == 5
    html = page_of(open_loop, Contents(testbeds={named(testbed): testbed}))
    assert "No reason given</span>" not in html
    assert all(one.rule.title in html for one in silent)


def test_the_series_of_canaries_are_folded_and_what_is_not_at_hand_is_one_line(demo: Any) -> None:
    links = (
        SeriesLink(title="throughput", page="series/a.html"),
        SeriesLink(title="CPU canary", page="series/b.html", is_canary=True),
    )
    page = render_trial(demo.trials[0], series=links, files=(), reproduce="", caveats={})
    html = page.content.decode()
    listed = html.split('<h2 id="series">')[1].split("</section>")[0]
    plain, folded = listed.split("<details>")
    assert ("throughput" in plain, "CPU canary" in plain, "CPU canary" in folded) == (True, False, True)
    assert html.count("not at hand where this site was built") == 1
    assert 'id="log"' not in html


def test_what_repeats_another_figure_is_folded(open_loop: Trial) -> None:
    repeated = [
        replace(one, phase="saturation", metric=metric, value=one.value)
        for one in open_loop.samples
        for metric in ("response_time", "service_time")
        if one.metric == "response_time"
    ]
    trial = replace(open_loop, samples=(*open_loop.samples, *repeated))
    echoes = find_echoes(trial.samples)
    assert echoes == {("saturation", "write", "service_time"), ("steady", "write", "throughput")}
    slower = [
        replace(one, value=one.value + 0.1) if one.metric == "service_time" else one for one in repeated
    ]
    assert find_echoes(slower) == set()
    links = [SeriesLink(title=of[2], page=f"{of[2]}.html", of=of) for of in sorted(echoes)]
    page = render_trial(trial, series=links, files=(), reproduce="", caveats={}).content.decode()
    listed = page.split('<h2 id="series">')[1].split("</section>")[0]
    plain, folded = listed.split("<details>")
    assert (plain.count("<a "), folded.count("<a ")) == (0, 2)


def test_cells_and_names_are_escaped(make_trial: Callable[..., Trial]) -> None:
    hostile = "<i>&"
    fact = Fact(host=hostile, name=hostile, value=hostile)
    sample = Sample(
        phase=hostile, operation=hostile, metric="throughput", statistic="mean", value=1.0, host=hostile
    )
    counter = Counter(phase=hostile, operation=hostile, iteration=1, name=hostile, value=1)
    trial = make_trial(environment_before=(fact,), samples=(sample,), counters=(counter,))
    links = (SeriesLink(title=hostile, page='"&'), SeriesLink(title=hostile, page="", is_canary=True))
    page = render_trial(trial, series=links, files=(), reproduce=hostile, caveats={})
    html = page.content.decode()
    assert "<i>" not in html
    assert '<a href="../&#34;&amp;">&lt;i&gt;&amp;</a>' in html
    assert html.count("&lt;i&gt;&amp;") > 8
