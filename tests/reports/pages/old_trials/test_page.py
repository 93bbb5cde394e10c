"""Old trials: what is still told of each, that every link reaches it, and that an update finds them."""
# ruff: noqa: ANN401  a conftest is no module, so the type of its `demo` cannot be imported

import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from chromium import watch
from page_kinds import find_broken_links
from playwright.sync_api import Browser

from perf.model.results import Purpose, Trial, TrialId, TrialStatus
from reports.pages.nights import page as nights
from reports.pages.old_trials import page as pages
from reports.pages.whole_site import all_batches
from reports.site.context import SiteContext
from reports.site.old_trials import find_old_trials
from reports.site.publishing import LOCK, MARKER
from reports.site.writing import Batch, LazyBatches, SiteFile, flatten, write_site
from reports.wording.links import night_page, series_page, trial_page

NBSP = "\N{NO-BREAK SPACE}"


def age(demo: Any, most: int) -> SiteContext:
    """Return the made-up history as a site in which only the newest nights have pages of trials."""
    context = demo.context()
    return replace(context, old_trials=find_old_trials(context.heads.values(), most))


@pytest.fixture(scope="module")
def old_site(demo: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site of the made-up history in which six nights are old."""
    site = tmp_path_factory.mktemp("old") / "site"
    write_site(site, all_batches(age(demo, 6)))
    return site


def section_of(site: Path, trial: TrialId) -> str:
    """Return what is told of an old trial, as plain text."""
    page = (site / night_page(trial.partition(".")[0])).read_text()
    (section,) = re.findall(
        f'<section id="{re.escape(trial)}" class="old">(.*?)</section>', page, re.DOTALL
    )
    return unescape(re.sub(r"<[^>]+>", " ", section))


def test_every_link_of_the_site_leads_somewhere_and_old_trials_have_no_page(
    old_site: Path, demo: Any
) -> None:
    assert find_broken_links(old_site) == []
    kept = {path.name for path in (old_site / "trials").iterdir()}
    assert kept == {Path(trial_page(trial.id)).name for trial in demo.trials[36:]}
    # Each of the others has its place, and so has a new one, whose address stays when it is old.
    for trial in demo.trials:
        assert f' id="{trial.id}"' in (old_site / night_page(trial.night)).read_text()


def test_pages_of_series_releases_incidents_and_new_trials_link_old_ones(
    old_site: Path, demo: Any
) -> None:
    (first_after,) = {
        one.first_after.trial for judged in demo.judgement.series for one in judged.change_points
    }
    first_old, newest_old = demo.trials[0].id, demo.trials[35].id
    linking = {
        folder: "".join(page.read_text() for page in (old_site / folder).glob("*.html"))
        for folder in ("series", "incidents", "releases", "trials", "night")
    }
    for folder, trial in (
        ("series", first_old),
        ("series", first_after),
        ("incidents", first_after),
        ("releases", first_old),
        ("trials", newest_old),
        ("night", first_old),
    ):
        assert f'href="../night/{trial.partition(".")[0]}.html#{trial}"' in linking[folder], folder
    data = "".join(path.read_text() for path in (old_site / "data").glob("variant-*.js"))
    assert f'"page":"{trial_page(demo.trials[-4].id)}"' in data


def test_an_old_trial_keeps_what_a_reader_comes_for(old_site: Path, demo: Any) -> None:
    trial = demo.trials[6]
    value = next(one.value for one in trial.samples if one.metric == "throughput" and not one.iteration)
    text = section_of(old_site, trial.id)
    assert f"{trial.experiment}, cassandra 5.0.1" in text
    assert f"{value:,.0f}{NBSP}ops/s, p99 " in text
    assert re.search(rf"At steady load\s+write: p50 [\d.]+{NBSP}ms, p99 [\d.]+{NBSP}ms", text)
    assert f"config {trial.config.name}@{trial.config.sha256}" not in text  # it is that of all
    page = (old_site / night_page(trial.night)).read_text()
    assert f"config {trial.config.name}@{trial.config.sha256}" in page
    assert f"starts_with(trial_id, &#39;{trial.night}.&#39;)" in page
    assert "knickpoint measure --suite" in page
    assert f'href="../series.html#find={trial.experiment}"' in page


def test_old_trials_that_gave_no_result_say_why_and_searches_what_they_came_to(
    demo: Any, tmp_path: Path
) -> None:
    write_site(
        tmp_path / "site",
        all_batches(
            replace(
                age(demo, 6),
                old_trials={one.id: f"{night_page(one.night)}#{one.id}" for one in demo.trials},
            )
        ),
    )
    failed = next(one for one in demo.trials if one.status is TrialStatus.FAILED)
    text = section_of(tmp_path / "site", failed.id)
    assert "Failed" in text
    assert failed.reasons[0].text in text
    searched = section_of(tmp_path / "site", demo.trials[-3].id)
    assert f"2,278{NBSP}ops/s; it lies between 2,181 and 2,378" in searched
    assert "warm-up-capped" in searched
    assert not list((tmp_path / "site").glob("trials/*"))
    assert find_broken_links(tmp_path / "site") == []


def test_differences_from_the_trial_before_are_told_with_a_link(demo: Any) -> None:
    context = age(demo, 6)
    trial = demo.trials[6]
    moved = tuple(
        replace(one, value="6.9.9") if one.name == "kernel" else one for one in trial.environment_before
    )
    changed = replace(trial, environment_before=moved)
    content = _render_night(demo, context, changed)
    link = f'href="../{trial_page(demo.trials[0].id)}"'  # led on when the site is written
    assert (
        f"Differs from <a {link}>the trial before it</a>: kernel of localhost 6.1.0-18 → 6.9.9."
        in content
    )
    # That another release is another artifact goes without saying.
    other = replace(trial, release=demo.trials[7].release, artifact=None)
    assert "artifact" not in _render_night(demo, context, other)


def _render_night(demo: Any, context: SiteContext, trial: Trial) -> str:
    known = {one.id: one for one in demo.trials} | {trial.id: trial}
    archive = type(context.archive)(tuple(known.values()))
    changed = replace(context, archive=archive)
    path = night_page(trial.night)
    for batch in flatten(nights.batches(changed)):
        if path in batch.versions:
            return next(file for file in batch.make({path}) if file.path == path).content.decode()
    raise AssertionError(path)


def test_trials_of_no_night_have_a_page_of_their_comparison(demo: Any) -> None:
    context = demo.context()
    name = f"{context.comparisons[0].id}.01a.baseline.5.0.1"
    trial = replace(demo.trials[0], id=TrialId(name), night="", purpose=Purpose.COMPARISON)
    heads = {trial.id: trial, **context.heads}
    changed = replace(
        context,
        heads=heads,
        digests={**context.digests, trial.id: "0" * 64},
        archive=type(context.archive)((trial, *demo.trials)),
        old_trials=find_old_trials(heads.values(), 47),
    )
    assert list(changed.old_trials) == [trial.id]
    files = {
        file.path: file.content.decode()
        for batch in flatten(pages.batches(changed))
        for file in batch.make(batch.versions)
    }
    page = files[night_page(context.comparisons[0].id)]
    assert f'<section id="{name}"' in page
    assert f'href="../comparison/{context.comparisons[0].id}.html"' in page


def snapshot(site: Path) -> dict[str, bytes]:
    """Return all files of a site but what it remembers of itself, by path."""
    return {
        path.relative_to(site).as_posix(): path.read_bytes()
        for path in sorted(site.rglob("*"))
        if path.is_file() and path.name not in {MARKER, LOCK}
    }


def test_an_update_is_what_a_fresh_site_would_be_and_only_news_is_made(
    demo: Any, tmp_path: Path
) -> None:
    context, made = age(demo, 12), []
    write_site(tmp_path / "site", all_batches(context))
    crossed = age(demo, 6)
    fresh = {one for one in crossed.old_trials if one not in context.old_trials}
    assert len(fresh) == 6
    write_site(tmp_path / "site", map(partial(_note, made), all_batches(crossed)))
    write_site(tmp_path / "fresh", all_batches(crossed))
    assert snapshot(tmp_path / "site") == snapshot(tmp_path / "fresh")
    # Of all nights only that which is old now; its trials have no pages any more.
    assert {path for path in made if path.startswith("night/")} == {
        night_page(one.partition(".")[0]) for one in fresh
    }
    assert not {trial_page(one) for one in fresh} & snapshot(tmp_path / "site").keys()


def _note(made: list[str], one: Batch | LazyBatches) -> Batch | LazyBatches:
    def make(batch: Batch, paths: Collection[str]) -> Iterable[SiteFile]:
        made.extend(path for path in paths if batch.versions[path])
        return batch.make(paths)

    if isinstance(one, LazyBatches):
        return LazyBatches(0, lambda: (_note(made, each) for each in one.batches()))  # type: ignore[misc]
    return replace(one, make=partial(make, one))


@pytest.mark.slow
def test_a_point_of_a_chart_leads_to_its_old_trial(old_site: Path, demo: Any, browser: Browser) -> None:
    page = old_site / series_page(demo.judgement.series[0].series.key)
    with watch(browser) as watched:
        watched.open(page)
        ways = watched.page.evaluate(
            """async () => {
              const own = document.querySelector("[data-series]").dataset.series;
              const { track } = await window.knickpoint.series.load(own);
              return Object.fromEntries(track.trial.map((trial, slot) => [trial, track.pageOf(slot)]));
            }"""
        )
        assert watched.complaints == []
    never_came = [trial for trial, way in ways.items() if not way]
    assert never_came == [demo.nights[0].trials[-1].id]
    for trial, way in ways.items():
        if not way:
            continue
        night, _, _ = trial.partition(".")
        is_old = trial in {one.id for one in demo.trials[:36]}
        assert way == (f"../night/{night}.html#{trial}" if is_old else f"../{trial_page(trial)}")
