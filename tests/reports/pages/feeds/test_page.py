"""The site carries what is for other programs; the jobs that write it say so in their summary."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import duckdb
import pytest
from click.testing import CliRunner
from pydantic import TypeAdapter

from analysis.detection.verdict import Outcome
from analysis.judging.judgement import JudgedSeries, Judgement
from analysis.judging.verdicts import Verdict, VerdictBasis
from perf.local.paths import DataPaths
from reports.commands.report import report
from reports.notifications.summary_file import VARIABLE
from reports.pages import whole_site
from reports.pages.feeds import page as elsewhere
from reports.pages.feeds.export import ExportedJudgement, PointsDocument, points_path
from reports.site.context import SiteContext
from reports.site.writing import flatten, write_site

SITE = "https://example.org/perf"
CONFIGS = Path(__file__).parents[4] / "configs"


@pytest.fixture(scope="module")
def context(demo: Any) -> SiteContext:  # noqa: ANN401  conftest is no module
    found: SiteContext = demo.context()
    return found


@pytest.fixture(scope="module")
def site(context: SiteContext, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_site(tmp_path_factory.mktemp("site") / "site", elsewhere.batches(context)).parent


def test_every_file_is_there_and_speaks_of_the_same_history(site: Path, context: SiteContext) -> None:
    document = TypeAdapter(ExportedJudgement).validate_json(
        (site / "data/export/knickpoint.json").read_bytes()
    )
    assert len(document.series) == len(context.judgement.series)
    read = TypeAdapter(PointsDocument).validate_json
    points = [read((site / path).read_bytes()) for path in document.points]
    total = sum(len(one.values) for of in points for one in of.points)
    assert total == sum(one.points for one in document.series) > 0
    with duckdb.connect() as db:
        query = f"SELECT count(*) FROM '{site}/data/export/points/*.parquet'"  # noqa: S608  our own
        assert db.execute(query).fetchone() == (total,)
    for name in ("knickpoint", "points"):
        assert json.loads((site / f"data/export/{name}.schema.json").read_bytes())["$schema"]
    feed = ET.fromstring((site / "feed.xml").read_bytes())  # noqa: S314  our own
    names = {one.name for one in context.judgement.incidents}
    links = [one.get("href", "") for one in feed.iter("{http://www.w3.org/2005/Atom}link")]
    assert names <= {Path(one).stem for one in links}
    junit = ET.fromstring((site / "junit.xml").read_bytes())  # noqa: S314  our own
    cases = [one.get("name", "") for one in junit.iter("testcase")]
    assert len(cases) > len(context.judgement.series)
    assert sum("Trial" in one for one in cases) == 3  # failed, invalid, and one that never came
    assert b"regressed" in (site / "badges/verdict.svg").read_bytes()


def test_points_are_made_again_only_where_a_bundle_changed(context: SiteContext) -> None:
    def versions(of: SiteContext) -> dict[str, str]:
        return {
            path: version
            for batch in flatten(elsewhere.batches(of))
            for path, version in batch.versions.items()
            if "/points/" in path
        }

    digests = dict.fromkeys(context.heads, "0" * 64)
    before = versions(replace(context, digests=digests))
    assert all(before.values())
    touched = next(one for one in context.heads.values() if one.experiment.endswith("write"))
    after = versions(replace(context, digests={**digests, touched.id: "1" * 64}))
    changed = {path for path, version in after.items() if before[path] != version}
    assert changed == {
        f"data/export/points/{touched.experiment}.{kind}" for kind in ("json", "2026.parquet")
    }
    unknown = versions(replace(context, digests={}))
    assert {path for path, version in unknown.items() if not version} >= changed


def test_each_experiment_has_its_own_points_whichever_are_asked_for(
    context: SiteContext, site: Path
) -> None:
    batches = flatten(elsewhere.batches(context))
    (batch,) = (one for one in batches if any("/points/" in of for of in one.versions))
    for path in batch.versions:
        (file,) = batch.make({path})
        assert (file.path, file.content) == (path, (site / path).read_bytes())
        if path.endswith(".json"):
            document = TypeAdapter(PointsDocument).validate_json(file.content)
            assert path == points_path(document.experiment, "json")


def test_an_experiment_without_a_point_has_a_file_of_points_all_the_same(
    context: SiteContext, tmp_path: Path
) -> None:
    """Else whoever asks all of them would be refused on a first night that failed."""
    verdict = Verdict(outcome=Outcome.INVALID, basis=VerdictBasis.NO_TRIAL)
    judged = tuple(
        JudgedSeries(series=replace(one.series, points=()), change_points=(), verdict=verdict)
        for one in context.judgement.series
    )
    empty = replace(context, judgement=Judgement(series=judged))
    site = write_site(tmp_path / "site", elsewhere.batches(empty)).parent
    with duckdb.connect() as db:
        query = f"SELECT count(*) FROM '{site}/data/export/points/*.parquet'"  # noqa: S608  our own
        assert db.execute(query).fetchone() == (0,)


def test_the_command_writes_the_summary_of_its_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv(VARIABLE, str(summary))
    monkeypatch.setattr(whole_site, "write_site", lambda target, _: target)  # other tests write sites
    given = {"data": DataPaths(tmp_path / "var").data, "configs": CONFIGS, "site-url": SITE}
    asked = [text for name, value in given.items() for text in (f"--{name}", str(value))]
    done = CliRunner().invoke(report, asked)
    assert done.exit_code == 0, done.output
    assert summary.read_text().startswith("## ? Nothing has been measured yet.")
    assert "](https://example.org/perf/index.html)" in summary.read_text()


def test_what_needs_attention_begins_with_what_could_not_be_measured(context: SiteContext) -> None:
    reported = [one.badge.word for one in elsewhere.list_attention(context)]
    assert reported[:3] == ["Failed", "Invalid", "Missing"]
    assert "Regressed" in reported[3:]


def test_every_page_names_the_feed() -> None:
    base = (Path(elsewhere.__file__).parents[2] / "site/templates/base.html").read_text()
    assert '<link rel="alternate" type="application/atom+xml"' in base
