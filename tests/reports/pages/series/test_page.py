"""The page of a series without a browser: its data, when it is made again, what it lists."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from made_up_series import INVALID, KEY, MISSING, SLOWER, make_scene

from analysis.judging.verdicts import VerdictBasis
from perf.model.results import Move, Named, Purpose, Trial, TrialId
from reports.pages.series import page as series
from reports.pages.series.point_rows import NEWEST_ROWS
from reports.pages.series.track import find_tracks, track_data, track_of
from reports.site.context import SiteContext
from reports.site.writing import SiteFile, flatten
from reports.wording.links import data_path, series_page, series_stem, track_stem

TRIALS = 130
POINTS = TRIALS - 2  # one is invalid, one never came


@pytest.fixture(scope="module")
def context(make_trial: Callable[..., Trial]) -> SiteContext:
    """Return an experiment of 130 trials."""
    return make_scene(make_trial, TRIALS, Path("site"))


@pytest.fixture(scope="module")
def files(context: SiteContext) -> dict[str, SiteFile]:
    """Return all files of its series by path."""
    made = (file for batch in flatten(series.batches(context)) for file in batch.make(batch.versions))
    return {file.path: file for file in made}


def data_of(files: dict[str, SiteFile], name: str) -> Any:  # noqa: ANN401  any JSON
    text = files[data_path(name)].content.decode()
    return json.loads(text.removeprefix(f'knickpoint.receive("{name}",').removesuffix(");\n"))


def unfold(runs: list[list[int]]) -> list[int]:
    """Return the slots of runs: the first of each, and how many."""
    return [first + place for first, many in runs for place in range(many)]


def test_old_points_are_rounded_and_lose_their_iterations(
    context: SiteContext, files: dict[str, SiteFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = data_of(files, series_stem(KEY))
    monkeypatch.setattr("reports.pages.series.page._WHOLE_POINTS", 100)
    made = (file for batch in flatten(series.batches(context)) for file in batch.make(batch.versions))
    data = data_of({file.path: file for file in made}, series_stem(KEY))
    old = POINTS - 100
    assert data["counts"] == [[0, old], [3, 100]]
    assert data["iterations"] == whole["iterations"][3 * old :]
    assert data["value"][old:] == whole["value"][old:]
    assert data["value"][:old] != whole["value"][:old]
    assert data["value"][:old] == pytest.approx(whole["value"][:old], rel=1e-6)


def versions(context: SiteContext) -> dict[str, str]:
    return {
        path: at for batch in flatten(series.batches(context)) for path, at in batch.versions.items()
    }


def test_a_page_lists_its_newest_points_and_the_data_hold_all(files: dict[str, SiteFile]) -> None:
    page = files[series_page(KEY)].content.decode()
    assert page.count('<tr id="point-') == NEWEST_ROWS
    assert f"Show all {POINTS}" in page
    data = data_of(files, series_stem(KEY))
    assert len(data["value"]) == len(unfold(data["at"])) == POINTS
    assert len(data["iterations"]) == 3 * POINTS
    assert data["counts"] == [[3, POINTS]]


def test_each_point_is_of_its_trial_and_iterations_keep_nine_digits(
    context: SiteContext, files: dict[str, SiteFile]
) -> None:
    data = data_of(files, series_stem(KEY))
    track = data_of(files, data["track"])
    (judged,) = [one for one in context.judgement.series if one.series.key == KEY]
    assert [track["trial"][slot] for slot in unfold(data["at"])] == [
        p.trial for p in judged.series.points
    ]
    assert data["value"] == [point.value for point in judged.series.points]
    exact = [value for point in judged.series.points for value in point.iterations]
    assert data["iterations"] == pytest.approx(exact, rel=1e-8)


def test_trials_without_a_point_have_a_place_a_symbol_a_word_and_a_reason(
    files: dict[str, SiteFile],
) -> None:
    data = data_of(files, series_stem(KEY))
    track = data_of(files, data["track"])
    assert track["unusable"] == [
        [INVALID, "unsure", "!", "Invalid", "client fell behind: 3.1\N{NO-BREAK SPACE}% started late"],
        [MISSING, "bad", "…", "Missing", "planned, and no result is there"],
    ]
    assert not {INVALID, MISSING} & set(unfold(data["at"]))
    assert track["pages"] == {str(MISSING): ""}  # what never ran has no page
    assert track["imported"] == [0]


def test_series_of_one_experiment_share_their_trials_and_lines_know_each_other(
    files: dict[str, SiteFile],
) -> None:
    one, other = (data_of(files, series_stem(key)) for key in (KEY, SLOWER))
    assert one["track"] == other["track"] == track_stem(track_of(KEY))
    listed = [stem for _, stem, _ in data_of(files, one["track"])["series"]]
    assert listed == [series_stem(KEY), series_stem(SLOWER)]
    assert one["lines"] == [["4.1", series_stem(replace(KEY, line="4.1"))]]
    assert other["lines"] == []


def test_the_chart_is_said_in_words(files: dict[str, SiteFile]) -> None:
    page = files[series_page(KEY)].content.decode()
    said = data_of(files, series_stem(KEY))["inWords"]
    assert said.startswith(f"{POINTS} points over 6 releases. The newest level is 3,696")
    assert "1 change point: regressed −12.0" in said
    assert "Newest value: 3," in said
    assert said in page


def test_what_is_not_known_of_the_noise_is_left_out(context: SiteContext) -> None:
    parts = [replace(one, detectable=(), noise=None) for one in context.judgement.series]
    short = replace(context, judgement=replace(context.judgement, series=tuple(parts)))
    made = (file for batch in flatten(series.batches(short)) for file in batch.make(batch.versions))
    page = next(file for file in made if file.path == series_page(KEY)).content.decode()
    reading = page.split("How to read and use the chart")[1].split("</details>")[0]
    assert "\N{EN DASH}" not in reading


def test_published_figures_are_reported_as_what_they_are(files: dict[str, SiteFile]) -> None:
    page = files[series_page(KEY)].content.decode()
    assert "a paper &lt;of 2024&gt;" in page
    assert "no verdict rests on them" in page
    assert data_of(files, series_stem(KEY))["references"][0]["value"] == 4500.0
    assert data_of(files, series_stem(SLOWER))["references"] == []
    assert "Published figures" not in files[series_page(SLOWER)].content.decode()


def test_what_changed_between_trials_is_marked_unless_it_flickers(context: SiteContext) -> None:
    track = find_tracks(context.judgement.series, context.heads, context.nights)[track_of(KEY)]
    moves = (
        *(Move(place=at, name="cpu MHz", before="1", after="2") for at in range(1, TRIALS)),
        Move(place=3, name="kernel", before="6.1", after="6.2"),
        # Of another release the artifact is what is being measured; of the same one it tells.
        Move(place=25, name="artifact", before="aa", after="bb"),
        Move(place=30, name="artifact", before="bb", after="cc"),
    )
    data = track_data(track, moves, moves[-2:])
    assert data["moves"] == [(3, "kernel", "6.1", "6.2"), (30, "artifact", "bb", "cc")]
    assert data["movesInTime"] == [(30, "artifact", "bb", "cc")]
    # The ids are for copies, the names for people.
    assert len(data["nightNames"]) == len(data["nights"])
    assert not set(data["nightNames"]) & set(data["nights"])


def test_a_sentinel_without_a_point_stands_on_the_track_of_its_release(
    context: SiteContext,
) -> None:
    key = replace(KEY, line="5.0.1", config="sentinel")
    (judged,) = [one for one in context.judgement.series if one.series.key == KEY]
    watched = replace(judged, series=replace(judged.series, key=key))
    (invalid,) = [head for head in context.heads.values() if head.status != "completed"]
    spoilt = replace(
        invalid,
        id=TrialId("sentinel"),
        purpose=Purpose.SENTINEL,
        config=replace(invalid.config, name="sentinel"),
    )
    tracks = find_tracks([watched], {**context.heads, spoilt.id: spoilt}, ())
    assert [slot.trial for slot in tracks[track_of(key)].slots if slot.badge] == ["sentinel"]


def test_only_what_moved_is_made_again(context: SiteContext) -> None:
    before = versions(context)
    assert all(before.values())
    assert versions(context) == before
    old = replace(KEY, line="4.1")
    (moved,) = [one for one in context.judgement.series if one.series.key == old]
    parts = [
        replace(one, verdict=replace(one.verdict, basis=VerdictBasis.NO_TRIAL)) if one is moved else one
        for one in context.judgement.series
    ]
    later = versions(replace(context, judgement=replace(context.judgement, series=tuple(parts))))
    changed = {path for path in before if before[path] != later[path]}
    assert changed == {series_page(old), data_path(series_stem(old))}


def test_another_content_of_a_trial_makes_its_series_and_their_track_again(
    context: SiteContext,
) -> None:
    before = versions(context)
    (trial,) = [head.id for head in context.heads.values() if head.release.version == "4.1.1"][:1]
    later = versions(replace(context, digests={**context.digests, trial: "another"}))
    changed = {path for path in before if before[path] != later[path]}
    old = replace(KEY, line="4.1")
    assert changed == {
        series_page(old),
        data_path(series_stem(old)),
        data_path(track_stem(track_of(old))),
    }
    unknown = versions(replace(context, digests={}))
    assert unknown[series_page(old)] == ""  # then only making it tells


def test_a_series_of_several_testbeds_shows_the_caveat_of_each(context: SiteContext) -> None:
    testbed = next(iter(context.catalog.testbeds.values()))
    (judged,) = (one for one in context.judgement.series if one.series.key == KEY)
    name = judged.series.points.trials[0]
    other = replace(context.heads[name], testbed=Named(name="another", sha256="2" * 12))
    caveats = {"another": "One core.", context.heads[name].testbed.name: "Two cores."}
    testbeds = {one: replace(testbed, caveat=text) for one, text in caveats.items()}
    mixed = replace(
        context,
        heads={**context.heads, name: other},
        catalog=replace(context.catalog, testbeds=testbeds),
    )
    made = (file for batch in flatten(series.batches(mixed)) for file in batch.make(batch.versions))
    page = next(file for file in made if file.path == series_page(KEY)).content.decode()
    assert "One core. Two cores." in page  # by the names of the testbeds


def test_hostile_names_stay_data(context: SiteContext) -> None:
    hostile = '"]; alert(1); </script>\N{LINE SEPARATOR}\N{RIGHT-TO-LEFT OVERRIDE}' + "x" * 10_000
    heads = {
        name: replace(head, release=replace(head.release, version=hostile))
        for name, head in context.heads.items()
    }
    track = find_tracks(context.judgement.series, heads, context.nights)[track_of(KEY)]
    assert track_data(track, (), ())["releases"] == [hostile]
    made = [
        file
        for batch in flatten(series.batches(replace(context, heads=heads)))
        for file in batch.make(batch.versions)
    ]
    by_path = {file.path: file for file in made}
    assert data_of(by_path, track.stem)["releases"][0].startswith('"]; alert(1); </script>')


def test_slots_are_ordered_by_release_and_then_by_time(context: SiteContext) -> None:
    track = find_tracks(context.judgement.series, context.heads, context.nights)[track_of(KEY)]
    first, *_ = track.slots
    late = replace(first, trial=TrialId("late"), started_at=datetime(2030, 1, 1, tzinfo=UTC))
    mixed = replace(track, slots=(*track.slots[:1], late, *track.slots[1:]))
    assert mixed.in_time[-1].trial == "late"
    assert track.in_time == track.slots
