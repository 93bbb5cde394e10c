"""The whole way: bundles into a history, the history judged, the site written."""

import html
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from catalogs import shipped
from click.testing import CliRunner
from filelock import FileLock, Timeout
from made_up_bisection import RECORD, UNFINISHED

from analysis.bisecting.record import BISECTION, write_bisection
from perf.history import bundle
from perf.history.store import append_all
from perf.local.paths import DataPaths
from perf.model.errors import HistoryError, SiteError, UsageError
from perf.model.results import TrialId
from reports.commands.nightly import nightly
from reports.commands.report import report
from reports.pages import whole_site
from reports.pages.report import write_report
from reports.site import context
from reports.site.context import SiteContext, read_context
from reports.wording.links import bisection_page

CONFIGS = Path(__file__).parents[3] / "configs"
NOW = datetime(2026, 3, 8, 6, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def paths(demo: Any, tmp_path_factory: pytest.TempPathFactory) -> DataPaths:  # noqa: ANN401  conftest is no module
    """Return a data directory with half of the made-up history in it."""
    paths = DataPaths(tmp_path_factory.mktemp("kept") / "var")
    trials = [trial for trial in demo.trials if trial.experiment == "cassandra-sensor-write"]
    for trial in trials:
        staged = bundle.stage(paths, trial.id)
        (staged / "logs" / "node #1.log").write_text("one line\n")
        bundle.seal(staged, trial, ())
    assert append_all(paths, lambda _: None).new == len(trials)
    return paths


def snapshot(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


def test_a_history_becomes_a_site_again_and_again(paths: DataPaths) -> None:
    index = write_report(paths, shipped(), NOW)
    assert index == (paths.site / "index.html").resolve()
    assert "Regressed" in index.read_text()
    first = snapshot(paths.site)
    paths.site_stamp.unlink()  # so that each page is compared
    write_report(paths, shipped(), NOW)
    assert snapshot(paths.site) == first


def test_a_report_without_news_reads_judges_and_writes_nothing(
    paths: DataPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_report(paths, shipped(), NOW)
    first = snapshot(paths.site)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("nothing is new")

    for name in ("judge_any", "read_context", "write_site"):
        monkeypatch.setattr(whole_site, name, refuse)
    index = write_report(paths, shipped(), NOW + timedelta(minutes=5))
    assert index == (paths.site / "index.html").resolve()
    assert snapshot(paths.site) == first
    assert "Site built <time" in index.read_text()


def test_a_report_without_news_loads_nothing_that_judges_or_makes_pages(paths: DataPaths) -> None:
    index = write_report(paths, shipped(), NOW)
    code = f"""
import sys
from datetime import datetime
from pathlib import Path
import reports.commands.report
from perf.config.catalog import load_catalog
from perf.local.paths import DataPaths
from reports.pages.report import write_report
catalog = load_catalog(Path({str(CONFIGS)!r}))
print(write_report(DataPaths(Path({str(paths.data)!r})), catalog, datetime.fromisoformat("{NOW}")))
print({{"github", "jinja2", "scipy"}} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == f"{index}\nset()\n"


@pytest.mark.slow
def test_a_trial_page_leads_to_its_bundle_and_says_how_to_repeat_it(
    paths: DataPaths, tmp_path: Path
) -> None:
    write_report(paths, shipped(), NOW, output=tmp_path / "elsewhere")
    page = tmp_path / "elsewhere" / "trials" / "2026-03-08-1.01.cassandra-sensor-write.5.0.1.html"
    text = page.read_text()
    for name in ("trial.json", "manifest.json", "intervals.hlog", "logs/node%20%231.log"):
        (href,) = {part.partition('"')[0] for part in text.split('href="') if f"/{name}" in part}
        target = page.parent / href.replace("%20", " ").replace("%23", "#")
        assert target.is_file(), href
    assert "--experiment cassandra-sensor-write --release 5.0.1" in html.unescape(text)


def test_an_empty_data_directory_gets_a_page_that_says_how_to_begin(tmp_path: Path) -> None:
    done = CliRunner().invoke(report, ["--data", str(tmp_path), "--configs", str(CONFIGS)])
    assert done.exit_code == 0, done.output
    assert "There is no history" in done.stderr
    index = Path(done.stdout.strip())
    assert index == tmp_path.resolve() / "site" / "index.html"
    assert "knickpoint nightly" in index.read_text()


def test_bundles_that_the_history_lacks_are_reported_on_the_front_page(
    demo: Any,  # noqa: ANN401  conftest is no module
    paths: DataPaths,
    tmp_path: Path,
) -> None:
    mine = DataPaths(shutil.copytree(paths.data, tmp_path / "var"))
    trial = replace(demo.trials[0], id=TrialId("not-appended"))
    bundle.seal(bundle.stage(mine, trial.id), trial, ())
    (mine.trials / "foreign").mkdir()
    torn = replace(trial, id=TrialId("torn"))
    (bundle.seal(bundle.stage(mine, torn.id), torn, ()) / "intervals.hlog").unlink()
    text = html.unescape(write_report(mine, shipped(), NOW).read_text())
    assert "3 bundles on disk are not in the history" in text
    assert "foreign is not a trial bundle: it has no manifest.json" in text
    assert "torn cannot be used: intervals.hlog is missing" in text
    assert "Sound, but not appended yet: run `knickpoint append`" in text
    assert str(tmp_path) not in text


def test_bundles_without_any_history_are_told_too(tmp_path: Path) -> None:
    paths = DataPaths(tmp_path)
    (paths.trials / "foreign").mkdir(parents=True)
    text = write_report(paths, shipped(), NOW).read_text()
    assert "1 bundle on disk is not in the history" in text
    assert "How to begin" in text


def test_a_night_on_an_unknown_history_is_refused_before_it_measures(
    paths: DataPaths, tmp_path: Path
) -> None:
    mine = DataPaths(shutil.copytree(paths.data, tmp_path / "var"))
    with duckdb.connect(mine.history) as connection:
        connection.execute("UPDATE meta SET schema_version = 0")
    done = CliRunner().invoke(nightly, ["--data", str(mine.data), "--configs", str(CONFIGS)])
    assert isinstance(done.exception, HistoryError)
    assert str(done.exception).endswith("the history from them with: knickpoint history rebuild")
    assert done.output == ""
    assert not mine.nights.exists()


def test_a_place_that_cannot_be_written_is_reported_in_a_sentence(
    paths: DataPaths, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    for target in (tmp_path / "file" / "site", Path("/proc/site")):
        with pytest.raises(SiteError, match="choose another place with --output"):
            write_report(paths, shipped(), NOW, output=target)


def test_a_directory_of_somebody_else_is_refused_before_any_work(
    paths: DataPaths, tmp_path: Path
) -> None:
    (tmp_path / "precious.txt").touch()
    with pytest.raises(UsageError, match="give --output an empty or a new directory"):
        write_report(paths, shipped(), NOW, output=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_each_bisection_has_a_page_that_the_front_page_lists(paths: DataPaths, tmp_path: Path) -> None:
    copy = DataPaths(shutil.copytree(paths.data, tmp_path / "var"))
    for record in (RECORD, replace(UNFINISHED, id="bis-2026-03-02-1")):
        directory = copy.bisections / record.id
        directory.mkdir(parents=True)
        (directory / BISECTION).write_bytes(write_bisection(record))
    index = write_report(copy, shipped(), NOW)
    text = html.unescape(index.read_text())
    newest, oldest = (text.index(f'href="{bisection_page(f"bis-2026-03-0{day}-1")}"') for day in (2, 1))
    assert newest < oldest
    assert "Regression found" in text
    assert (copy.site / bisection_page(RECORD.id)).is_file()


@pytest.mark.slow
def test_one_report_at_a_time_reads_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = DataPaths(tmp_path)
    lock = write_report(paths, shipped(), NOW).with_name(".knickpoint-site.lock")

    def read_while_held(*args: Any, **more: Any) -> SiteContext:  # noqa: ANN401  all that it takes
        with pytest.raises(Timeout):
            FileLock(lock).acquire(timeout=0)
        return read_context(*args, **more)

    monkeypatch.setattr("reports.pages.whole_site.read_context", read_while_held)
    write_report(paths, shipped(), NOW)
    monkeypatch.setattr("reports.site.writing._WAIT_S", 0.01)
    with FileLock(lock), pytest.raises(UsageError, match="another report has been writing"):
        write_report(paths, shipped(), NOW)
    assert "another report writes" in capsys.readouterr().err
    write_report(paths, shipped(), NOW)


@pytest.mark.slow
def test_a_trial_that_is_appended_while_a_report_reads_stops_no_report(
    paths: DataPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = DataPaths(shutil.copytree(paths.data, tmp_path / "var"))
    judge = context.judge_evidence

    def append_and_judge(*args: Any, **more: Any) -> Any:  # noqa: ANN401  all that it takes
        trial, intervals = bundle.read(max(bundle.find(mine)))
        new = replace(trial, id=TrialId(f"{trial.id}-again"), experiment="new")
        bundle.seal(bundle.stage(mine, new.id), new, intervals)
        append_all(mine, lambda _: None)
        return judge(*args, **more)

    monkeypatch.setattr("reports.site.context.judge_evidence", append_and_judge)
    assert write_report(mine, shipped(), NOW).is_file()
