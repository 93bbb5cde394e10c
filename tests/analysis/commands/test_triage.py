"""`knickpoint triage` over a real history: what it says, what it writes, and what it then covers."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from shutil import copytree

import pytest
from click.testing import CliRunner, Result

from analysis.commands.triage import describe, triage
from analysis.orchestration.judging import judge_history
from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.history.store import append_all
from perf.local.paths import DataPaths
from perf.model.errors import ConfigError, UsageError
from perf.model.results import Release, Sample, Trial, TrialId
from perf.model.rules import TriageEntry, TriageState

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
NIGHTS = 8
FIRST = datetime(2026, 3, 1, 2, tzinfo=UTC)
TODAY = date(2026, 4, 1)
DECIDED = (
    "--state", "acknowledged", "--owner", "storage", "--note", "Ticket 12.", "--expires", "2999-12-31",
)  # fmt: skip


@pytest.fixture(scope="module")
def history(make_trial: Callable[..., Trial], tmp_path_factory: pytest.TempPathFactory) -> DataPaths:
    """Give a history in which 5.0.1 writes 20 % less per second, and waits 50 % longer, than 5.0.0."""
    paths = DataPaths(tmp_path_factory.mktemp("data"))
    generator = random.Random(5)  # noqa: S311  test data, not a secret
    for ordinal, throughput, waited_ms in ((0, 1000.0, 4.0), (1, 800.0, 6.0)):
        release = Release(system="cassandra", version=f"5.0.{ordinal}", line="5.0", ordinal=ordinal)
        for number in range(NIGHTS):
            at = FIRST + timedelta(days=number + NIGHTS * ordinal)
            values = (("throughput", "mean", throughput), ("response_time", "p99", waited_ms))
            trial = make_trial(
                id=TrialId(f"trial-{ordinal}-{number}"),
                night=f"{at:%Y-%m-%d}-1",
                release=release,
                started_at=at,
                finished_at=at + timedelta(minutes=2),
                samples=tuple(
                    Sample(
                        phase="saturation",
                        operation="write",
                        metric=metric,
                        statistic=statistic,
                        value=generator.gauss(value, value / 200),
                    )
                    for metric, statistic, value in values
                ),
            )
            bundle.seal(bundle.stage(paths, trial.id), trial, ())
    append_all(paths, lambda _: None)
    return paths


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    return Path(copytree(CONFIGS, tmp_path / "configs"))


@pytest.fixture
def run(history: DataPaths, configs: Path) -> Callable[..., Result]:
    def invoke(*words: str) -> Result:
        options = ["--data", str(history.data), "--configs", str(configs)]
        return CliRunner().invoke(triage, [*words, *options])

    return invoke


@pytest.fixture
def name(history: DataPaths, configs: Path) -> str:
    """Return the name of the one incident."""
    (incident,) = judge_history(history, load_catalog(configs), TODAY).incidents
    return incident.name


def test_an_incident_without_an_entry_comes_with_the_command_that_writes_one(
    run: Callable[..., Result], name: str
) -> None:
    reported = run("list")
    assert reported.exit_code == 0
    lines = reported.output.splitlines()
    assert lines[0] == "No decisions recorded."
    assert "1 open incident without an entry" in lines
    assert lines[-1].startswith(f"    knickpoint triage add {name} --state acknowledged --owner OWNER")
    assert "and 1 more change" in reported.output


def test_what_add_writes_covers_the_incident_and_makes_it_no_news(
    run: Callable[..., Result], name: str, history: DataPaths, configs: Path
) -> None:
    reported = run("add", name, *DECIDED)
    assert reported.exit_code == 0, reported.output
    path = configs / "triage.yaml"
    assert f"written into {path}" in reported.output
    assert f"It covers 2 of the 2 changes of incident {name}." in reported.output
    entries = load_catalog(configs).triage
    assert {entry.metric: entry.sign for entry in entries} == {
        "throughput": "drop",
        "response_time": "rise",
    }
    assert {(entry.from_release, entry.to_release) for entry in entries} == {("5.0.0", "5.0.1")}
    (incident,) = judge_history(history, load_catalog(configs), TODAY).incidents
    assert incident.triage in entries
    assert not incident.is_news
    listed = run("list").output
    assert listed.startswith("2 entries: 0 expired, 0 without a change to cover\n")
    assert listed.count("covers 1 change:") == 2
    assert "0 open incidents without an entry" in listed


def test_a_second_entry_for_an_incident_is_refused_unless_it_is_the_same(
    run: Callable[..., Result], name: str, configs: Path
) -> None:
    run("add", name, *DECIDED)
    before = (configs / "triage.yaml").read_bytes()
    again = run("add", name, *DECIDED)
    assert (again.exit_code, "triage.yaml says so already" in again.output) == (0, True)
    other = run("add", name, *DECIDED, "--note", "another reason")
    assert isinstance(other.exception, ConfigError)
    assert "there is an entry" in str(other.exception)
    assert (configs / "triage.yaml").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["add", "zz", *DECIDED], "no incident 'zz'; see: knickpoint triage list"),
        (["add", "NAME", *DECIDED[:-1], "2020-01-01"], "--expires 2020-01-01 is over already"),
        (["add", "NAME", "--state", "ignored", "--owner", "a", "--note", "b"], "expires of the entry"),
        (["add", "NAME", "--state", "fixed", "--owner", "a", "--note", "b"], "fixed_in of the entry"),
        (["add", "NAME", "--state", "expected", "--owner", " ", "--note", "b"], "must say something"),
    ],
)
def test_a_wrong_decision_is_refused_with_what_to_do(
    run: Callable[..., Result], name: str, configs: Path, words: list[str], answer: str
) -> None:
    reported = run(*(name if word == "NAME" else word for word in words))
    assert isinstance(reported.exception, UsageError | ConfigError)
    assert answer in str(reported.exception)
    assert not (configs / "triage.yaml").exists()


def test_a_near_name_is_suggested(run: Callable[..., Result], name: str) -> None:
    reported = run("add", name[:-1], *DECIDED)
    assert f"did you mean {name}?" in str(reported.exception)


def test_add_writes_into_no_configuration_that_came_with_the_package(
    history: DataPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reported = CliRunner().invoke(triage, ["add", "x", *DECIDED, "--data", str(history.data)])
    assert "no configs/ here to write into; give --configs" in str(reported.exception)


def test_entries_that_expired_or_cover_nothing_say_so(history: DataPaths, configs: Path) -> None:
    judgement = judge_history(history, load_catalog(configs), TODAY)
    entry = TriageEntry(
        name="over",
        state=TriageState.IGNORED,
        system="cassandra",
        line="5.0",
        sign="drop",
        to_release="5.0.1",
        owner="storage",
        note="Too small.",
        expires=date(2026, 3, 31),
    )
    idle = replace(entry, name="idle", expires=None, system="casandra", state=TriageState.EXPECTED)
    lines = list(describe(judgement, [entry, idle], TODAY))
    assert lines[0] == "2 entries: 1 expired, 1 without a change to cover"
    assert lines[2:6] == [
        "over  ignored: a drop of cassandra 5.0, releases (any) to 5.0.1",
        "    storage: Too small.",
        "    EXPIRED on 2026-03-31: it covers nothing any more; renew or remove it",
        "    would cover 1 change:",
    ]
    assert "    COVERS NOTHING: no series has system casandra; the history has cassandra" in lines


def test_an_incident_that_came_back_says_so(history: DataPaths, configs: Path) -> None:
    (configs / "triage.yaml").write_text(
        """\
entries:
  - name: old
    state: fixed
    fixed_in: "5.0.1"
    system: cassandra
    line: "5.0"
    sign: rise
    to_release: "5.0.0"
    owner: storage
    note: Mended.
"""
    )
    judgement = judge_history(history, load_catalog(configs), TODAY)
    lines = list(describe(judgement, load_catalog(configs).triage, TODAY))
    assert "    CAME BACK: it was fixed in 5.0.1 (entry old, storage)" in lines
