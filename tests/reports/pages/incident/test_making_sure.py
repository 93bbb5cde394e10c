"""The evidence beside the nights: trials in turns, and the release that a bisection found."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from analysis.bisecting.bisection import Culprit, Step
from analysis.bisecting.record import BisectionRecord
from analysis.detection.detection import ChangeState
from analysis.detection.effects import Effect
from analysis.judging.incidents import Incident
from analysis.judging.remeasurement import Reply, SeriesAnswer, measure_of
from perf.model.results import Purpose, Release
from reports.pages.incident.page import show_incident
from reports.site.rendering import render as render_page
from reports.wording.incidents import list_news
from reports.wording.wording import night_words

NBSP = "\u00a0"
NOW = datetime(2026, 3, 8, 4, 12, tzinfo=UTC)
EXPERIMENT = "cassandra-sensor-write"


@pytest.fixture
def incident(demo: Any) -> Incident:
    """Return the incident of the database, as news that is not confirmed."""
    found: Incident = demo.judgement.incidents[0]
    lead = replace(found.lead, state=ChangeState.PROVISIONAL)
    return replace(found, lead=lead, changes=(lead, *found.changes[1:]))


def page(demo: Any, incident: Incident, *bisections: BisectionRecord) -> dict[str, Any]:
    judged = {one.series.key: one for one in demo.judgement.series}
    by_id = {trial.id: trial for trial in demo.trials}
    suites = {EXPERIMENT: "quickstart"}
    return show_incident(incident, judged, by_id, {}, suites=suites, bisections=bisections)


def reply(incident: Incident, *, agrees: bool | None) -> Reply:
    answer = SeriesAnswer(
        key=incident.lead.series.key,
        baseline="5.0.2",
        candidate="5.0.3",
        config_sha256="333333333333",
        artifacts_sha256=("a", "b"),
        effect=Effect(relative_change=-0.12, low=-0.141, high=-0.099, confidence=0.98),
        relevant_change=0.05,
        baseline_trials=6,
        candidate_trials=5,
        comparison="cmp-2026-03-08-1",
        finished_at=NOW,
    )
    return Reply(answer=answer, agrees=agrees)


def render(view: dict[str, Any]) -> str:
    return render_page("incident.html", "incidents/a1b2c3d4.html", **view).content.decode()


def test_what_was_not_measured_in_turns_is_said_with_the_command(demo: Any, incident: Incident) -> None:
    view = page(demo, incident)
    assert view["from_nights"].startswith("−13.5")
    assert view["from_nights"].endswith(
        "(p < 0.0001) from 16 points before and 8 points after, the newest of "
        f"{night_words('2026-03-08-1')}."
    )
    assert view["origins"] == []
    assert "would settle it" in view["missing"]
    (step,) = view["steps"]
    assert view["settling"] == ""  # said once
    assert step.commands == (
        f"knickpoint compare --suite quickstart --experiment {EXPERIMENT} --baseline 5.0.2"
        " --candidate 5.0.3 --measure saturation/write/throughput/mean"
    )


def test_trials_in_turns_are_reported_beside_the_nights(demo: Any, incident: Incident) -> None:
    reported = replace(
        incident, question=None, replies=((incident.lead, reply(incident, agrees=True)),)
    )
    view = page(demo, reported)
    html = render(view)
    assert "</span>Agrees</span>" in html
    for cell in (f"−12.0{NBSP}%", f"−14.1{NBSP}% to −9.9{NBSP}%", "6 and 5"):
        assert f'<td class="num">{cell}</td>' in html
    assert "<td>2026-03-08 04:12 UTC</td>" in html
    assert (view["missing"], view["settling"]) == ("", "")
    assert view["timeline"][-1].page == "comparison/cmp-2026-03-08-1.html"
    assert '<th scope="row"><a href="../comparison/cmp-2026-03-08-1.html">' in html
    assert "6 and 5 interleaved trials (2026-03-08) differ by −12.0" in "".join(
        list_news([reported], demo.context().heads)
    )


@pytest.mark.parametrize(
    ("agrees", "word"), [(True, "Agrees"), (False, "Rules it out"), (None, "Cannot tell")]
)
def test_each_answer_has_its_word(
    demo: Any, incident: Incident, *, agrees: bool | None, word: str
) -> None:
    reported = replace(incident, replies=((incident.lead, reply(incident, agrees=agrees)),))
    assert f"</span>{word}</span></td>" in render(page(demo, reported))


def test_within_one_release_only_nights_can_tell(demo: Any, incident: Incident) -> None:
    release = incident.lead.first_after.release
    lead = replace(incident.lead, last_before=replace(incident.lead.last_before, release=release))
    within = replace(incident, lead=lead, changes=(lead,), question=None)
    view = page(demo, within)
    assert view["missing"].endswith("only more nights can decide.")
    assert view["settling"] == ""
    settled = replace(within, is_news=False)
    assert page(demo, settled)["missing"] == ""


def culprit(incident: Incident) -> BisectionRecord:
    lead = incident.lead
    good, bad = lead.last_before.release, lead.first_after.release
    between = Release(system="cassandra", version="5.0.2.1", line="5.0", ordinal=2)
    effect = Effect(relative_change=-0.13, low=-0.15, high=-0.11, confidence=0.98)
    found = Culprit(
        step=Step(predecessor=good, release=between, skipped=(), unmeasured=(), effect=effect),
        is_improvement=False,
        probability=0.98,
        other_steps=(),
        chances=(),
        trials=16,
        sentence="5.0.2.1 brought it <at last>",
    )
    return BisectionRecord(
        id="bis-2026-03-08-1",
        question_sha256="q",
        purpose=Purpose.BISECTION,
        suite="quickstart",
        experiment=EXPERIMENT,
        system="cassandra",
        measure=measure_of(lead.series.key),
        releases=(good, between, bad),
        most_trials=40,
        most_minutes=60.0,
        trials_per_probe=16,
        started_at=NOW,
        updated_at=NOW,
        found=found,
    )


def test_the_page_shows_the_culprit_and_both_kinds_of_evidence(demo: Any, incident: Incident) -> None:
    record = culprit(incident)
    reported = replace(incident, replies=((incident.lead, reply(incident, agrees=None)),))
    view = page(demo, reported, record, replace(record, id="other", experiment="another"))
    ((_, state, _),) = view["origins"]
    assert state.word == "Found"
    begun = page(demo, reported, replace(record, found=None))
    assert [state.word for _, state, _ in begun["origins"]] == ["Not finished"]
    assert (
        "Not over yet: 0 probes are done. The same command goes on, and what was measured counts."
        in render(begun)
    )
    text = render(view)
    for said in (
        "5.0.2.1 brought it &lt;at last&gt;.",
        '<a href="../bisection/bis-2026-03-08-1.html">',
        '<a href="../comparison/cmp-2026-03-08-1.html">',
        "Side by side",
        "knickpoint compare --suite quickstart",
    ):
        assert said in text
