"""A report with no news leaves the site alone, and whatever may change a page is news."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from catalogs import shipped

from analysis.judging.judgement import Judgement
from analysis.orchestration.inputs import describe_inputs
from perf.config.catalog import Catalog
from perf.local import standing
from perf.local.paths import DataPaths
from reports.pages import whole_site
from reports.pages.report import write_report
from reports.site import context
from reports.site.context import JudgedHistory
from reports.site.publishing import MARKER
from reports.site.writing import SiteFile, batch_of

NOW = datetime(2026, 3, 8, 6, 30, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
NIGHT = {"id": "2026-03-08-1", "suite": "nightly", "plan_sha256": "0" * 64, "trials": []}


class Reports:
    """Reports of a data directory whose pages are two and cost nothing; `made` counts the sites."""

    def __init__(self, paths: DataPaths) -> None:
        self.paths, self.made = paths, 0
        self.catalog, self.options = shipped(), {}

    def judge(self, paths: DataPaths, catalog: Catalog, today: object) -> JudgedHistory:
        inputs = describe_inputs(paths, catalog, today)  # type: ignore[arg-type]  a date
        return JudgedHistory(judgement=Judgement(series=()), inputs=inputs)

    def pages(self, _: object) -> Iterator[object]:
        self.made += 1
        yield batch_of(SiteFile("index.html", b"front"), SiteFile("trials/one.html", b"one"))

    def report(self, now: datetime = NOW) -> bool:
        """Return whether a report made the site."""
        before = self.made
        index = write_report(self.paths, self.catalog, now, **self.options)
        assert index.read_bytes() == b"front"
        return self.made > before


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reports:
    """Return reports of a history that is not read, since nothing is judged and no page made of it."""
    reports = Reports(DataPaths(tmp_path / "var"))
    for folder in (reports.paths.trials / "known", reports.paths.nights, reports.paths.comparisons):
        folder.mkdir(parents=True)
    reports.paths.history.write_bytes(b"a history")
    monkeypatch.setattr(whole_site, "judge_any", reports.judge)
    monkeypatch.setattr(whole_site, "all_batches", reports.pages)
    monkeypatch.setattr(context, "find_left_out", lambda *_: ())
    return reports


def grow_history(reports: Reports) -> None:
    with reports.paths.history.open("ab") as file:
        file.write(b", grown")


def rewrite_history(reports: Reports) -> None:
    """Change it, and let its length and the time that it was written at be what they were."""
    about = reports.paths.history.stat()
    reports.paths.history.write_bytes(b"A HISTORY")
    os.utime(reports.paths.history, ns=(about.st_atime_ns, about.st_mtime_ns))


def add_log(reports: Reports) -> None:
    reports.paths.history.with_name("history.duckdb.wal").write_bytes(b"log")


def plan_night(reports: Reports) -> None:
    plan = {**NIGHT, "started_at": "2026-03-08T01:00:00Z"}
    (reports.paths.nights / "2026-03-08-1.json").write_text(json.dumps(plan))


def keep_comparison(reports: Reports) -> None:
    (reports.paths.comparisons / "cmp-1").mkdir()
    (reports.paths.comparisons / "cmp-1" / "plan.json").write_text("{}")


def keep_bisection(reports: Reports) -> None:
    (reports.paths.bisections / "one").mkdir(parents=True)
    (reports.paths.bisections / "one" / "notes.txt").write_text("")


def lose_bundle(reports: Reports) -> None:
    (reports.paths.trials / "known").rmdir()


def gain_bundle(reports: Reports) -> None:
    (reports.paths.trials / "fresh").mkdir()


def change_rules(reports: Reports) -> None:
    rules = replace(reports.catalog.detection, minimum_points=99)
    reports.catalog = replace(reports.catalog, detection=rules)


def be_a_recording(reports: Reports) -> None:
    reports.options = {"is_recording": True}


def lose_page(reports: Reports) -> None:
    (reports.paths.site / "trials" / "one.html").unlink()


def change_page(reports: Reports) -> None:
    page = reports.paths.site / "trials" / "one.html"
    page.write_bytes(b"ONE")
    os.utime(page, (page.stat().st_atime, page.stat().st_mtime + 10))


def add_page(reports: Reports) -> None:
    (reports.paths.site / "trials" / "two.html").write_bytes(b"two")


def break_marker(reports: Reports) -> None:
    (reports.paths.site / MARKER).write_text("{}")


def lose_stamp(reports: Reports) -> None:
    reports.paths.site_stamp.unlink()


def break_stamp(reports: Reports) -> None:
    reports.paths.site_stamp.write_text('{"made_from": 1, "until": []}')


def nest_stamp(reports: Reports) -> None:
    reports.paths.site_stamp.write_text("[" * 5000)


def strip_stamp_of_its_zone(reports: Reports) -> None:
    stamp = reports.paths.site_stamp
    stamp.write_text(stamp.read_text().replace("Z", ""))


def move_away_and_back(reports: Reports) -> None:
    """Restore a history from a copy: the same content may be another state's."""
    shutil.copy2(reports.paths.history, reports.paths.data / "copy")
    (reports.paths.data / "copy").replace(reports.paths.history)


@pytest.mark.parametrize(
    "change",
    [
        grow_history,
        rewrite_history,
        move_away_and_back,
        add_log,
        plan_night,
        keep_comparison,
        keep_bisection,
        lose_bundle,
        gain_bundle,
        change_rules,
        be_a_recording,
        lose_page,
        change_page,
        add_page,
        break_marker,
        lose_stamp,
        break_stamp,
        nest_stamp,
        strip_stamp_of_its_zone,
    ],
)
def test_whatever_may_change_a_page_is_news_once(
    reports: Reports, change: Callable[[Reports], None]
) -> None:
    assert reports.report()
    assert not reports.report(LATER)
    change(reports)
    assert reports.report(LATER)
    assert not reports.report(LATER)


def test_another_day_an_older_clock_and_another_place_are_news(
    reports: Reports, tmp_path: Path
) -> None:
    assert reports.report(LATER)
    assert reports.report(NOW)
    assert reports.report(NOW + timedelta(days=1))
    reports.options = {"output": tmp_path / "elsewhere"}
    assert reports.report(NOW + timedelta(days=1))
    shutil.copytree(reports.paths.site, tmp_path / "copied", copy_function=shutil.copy2)
    reports.options = {"output": tmp_path / "copied"}
    assert reports.report(NOW + timedelta(days=1))


def test_other_code_and_other_libraries_are_news(
    reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reports.report()
    monkeypatch.setattr(standing, "list_libraries", lambda: ("another-1.0.dist-info",))
    assert reports.report()
    monkeypatch.setattr(standing, "digest_sources", lambda package: f"other {package}")
    assert reports.report()
    assert not reports.report()


def test_what_becomes_late_meanwhile_is_news(reports: Reports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_site, "find_next_lateness", lambda _: LATER)
    assert reports.report()
    assert not reports.report(LATER - timedelta(seconds=1))
    assert reports.report(LATER)


@pytest.mark.parametrize("name", ["history.yaml", "GITHUB_STEP_SUMMARY", "left out"])
def test_where_it_cannot_be_told_a_site_is_made_each_time(
    reports: Reports, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name == "history.yaml":
        # Nobody listens there: what is in that history cannot be told.
        reports.paths.history.with_suffix(".yaml").write_text(
            "history: ducklake:postgres:host=127.0.0.1 port=1 dbname=a\ndata_path: /srv/lake/\nlab: a\n"
        )
    elif name == "left out":
        left_out = (context.LeftOut(name="fresh", fault="it is damaged"),)
        monkeypatch.setattr(context, "find_left_out", lambda *_: left_out)
    else:
        monkeypatch.setenv(name, f"{reports.paths.data / 'summary.md'}")
        reports.options = {"summarizes": True}
    assert reports.report()
    assert reports.report()


def test_what_was_judged_of_an_older_state_is_not_taken_for_this_one(reports: Reports) -> None:
    old = reports.judge(reports.paths, reports.catalog, NOW.date())
    grow_history(reports)
    reports.options = {"judged": old}
    assert reports.report()
    reports.options = {}
    assert reports.report()
    assert not reports.report()
