"""What the history answers, and that it answers alike however it came about."""

import csv
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from zlib import crc32

import duckdb
import pytest

from perf.history import bundle, store
from perf.history.store import History, append_all, open_history, rebuild
from perf.local.paths import DataPaths
from perf.model.errors import BundleError, HistoryError, UsageError
from perf.model.results import (
    Fact,
    Observation,
    Purpose,
    Reason,
    Release,
    Sample,
    SeriesKey,
    Trial,
    TrialId,
    TrialStatus,
)

EMPTY = {f"{table}.csv" for table in ("reasons", "remarks", "load_steps", "rolled_up")}
"""Tables of which an ordinary trial has no row."""


def silent(_text: str) -> None:
    """Swallow progress."""


def test_appending_twice_keeps_one_trial(paths: DataPaths, make_bundle: Callable[..., Path]) -> None:
    place = make_bundle()
    with open_history(paths.history) as history:
        assert history.append(place)
        once = history.tables_digest()
        assert not history.append(place)
        assert history.tables_digest() == once
    with open_history(paths.history, read_only=True) as history:
        assert history.trials() == (bundle.read(place)[0],)


def test_of_bundles_that_are_appended_together_one_that_cannot_be_held_stops_no_other(
    paths: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    first, beyond, last = (make_trial(id=TrialId(name)) for name in ("a", "b", "c"))
    counters = (replace(first.counters[0], value=2**63), *first.counters[1:])
    for trial in (first, replace(beyond, counters=counters), last):
        make_bundle(trial)
    appended = append_all(paths, silent)
    assert (appended.new, appended.known) == (2, 0)
    (problem,) = appended.bad
    assert str(paths.trials / "b") in problem
    with open_history(paths.history, read_only=True) as history:
        assert [one.id for one in history.trials()] == ["a", "c"]


def test_large_bundles_are_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "_PORTION_BYTES", 100)
    sizes = {"a": 40, "b": 50, "c": 60, "d": 500, "e": 1, "f": 1, "g": 1, "h": 1}
    for name, size in sizes.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / bundle.TRIAL).write_bytes(b"x" * size)
    found = bundle.in_portions([tmp_path / name for name in (*sizes, "absent")], 3)
    assert ["".join(place.name[0] for place in some) for some in found] == ["ab", "c", "d", "efg", "ha"]


def test_a_trial_brief_has_what_it_came_to(
    paths: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    trial = make_trial()
    make_bundle(trial)
    append_all(paths, silent)
    whole = [one for one in trial.samples if one.iteration is None]
    assert 0 < len(whole) < len(trial.samples)
    assert trial.counters
    assert trial.environment_after
    with open_history(paths.history, read_only=True) as history:
        (found,) = history.trials([trial.id], brief=True)
    assert found == replace(trial, samples=tuple(whole), counters=(), environment_after=())


def test_another_content_under_a_known_id_is_refused(
    paths: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    place = make_bundle()
    with open_history(paths.history) as history:
        history.append(place)
        before = history.tables_digest()
        shutil.rmtree(place)
        make_bundle(make_trial(seed=43))
        with pytest.raises(BundleError, match="must not change"):
            history.append(place)
        assert history.tables_digest() == before


def test_an_append_compares_the_latest_of_the_known_bundles_again(
    filled: DataPaths, bundles: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in bundles:
        (place / bundle.MANIFEST).write_text("{}", encoding="utf-8")
    monkeypatch.setattr(store, "COMPARED_AGAIN", 2)
    monkeypatch.setattr(store, "_find_due", lambda *_: ())
    with open_history(filled.history, read_only=True) as history:
        by_start = [trial.id for trial in history.trials()]
    appended = append_all(filled, silent)
    assert (appended.new, appended.known) == (0, 1)
    assert [Path(text.split(" is not the bundle")[0]).name for text in appended.bad] == by_start[1:]


def test_on_a_monday_an_append_reads_what_was_due_on_the_weekend(
    filled: DataPaths, bundles: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    monkeypatch.setattr(store, "COMPARED_AGAIN", 0)
    monkeypatch.setattr(store, "READ_AGAIN", 0)
    monkeypatch.setattr(bundle, "check", lambda place: read.append(place.name))
    with open_history(filled.history, read_only=True) as history:
        newest = max(trial.started_at for trial in history.trials())
    within = store.VERIFIED_WITHIN_DAYS
    due = {place.name: crc32(place.name.encode()) % within for place in bundles}
    for days in range(1, within + 1):
        today = newest + timedelta(days=days)
        monkeypatch.setattr(store, "datetime", SimpleNamespace(now=lambda _zone, at=today: at))
        read.clear()
        append_all(filled, silent)
        since = {(today.toordinal() - back) % within for back in range(days)}
        assert set(read) == {name for name, day in due.items() if day in since}
    assert len(read) == len(bundles), "all of them within that time"


def test_of_many_bundles_no_day_reads_more_than_the_most(
    filled: DataPaths, bundles: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    for name, most in (("COMPARED_AGAIN", 0), ("READ_AGAIN", 0), ("VERIFIED_WITHIN_DAYS", 1)):
        monkeypatch.setattr(store, name, most)
    monkeypatch.setattr(store, "MOST_READ_AGAIN", 1)
    monkeypatch.setattr(bundle, "check", lambda place: read.append(place.name))
    with open_history(filled.history, read_only=True) as history:
        newest = max(trial.started_at for trial in history.trials())
    for days in range(4):  # the cycle of one day, doubled until each has room
        today = newest + timedelta(days=days)
        monkeypatch.setattr(store, "datetime", SimpleNamespace(now=lambda _zone, at=today: at))
        monkeypatch.setattr(History, "started_at", lambda *_: today - timedelta(days=1))  # noqa: B023
        append_all(filled, silent)
    assert sorted(read) == sorted(place.name for place in bundles), "each on one of four days"


def test_verifying_finds_what_is_bad_replaced_gone_or_new_and_changes_nothing(
    filled: DataPaths,
    bundles: tuple[Path, ...],
    make_trial: Callable[..., Trial],
    make_bundle: Callable[..., Path],
) -> None:
    before = filled.history.read_bytes()
    found = store.verify(filled, silent)
    assert (found.bundles, found.bad, found.unknown, found.gone) == (len(bundles), (), (), ())
    cut, replaced, gone = bundles
    (cut / "trial.json").write_text("{")
    shutil.rmtree(replaced)
    make_bundle(make_trial(id=TrialId(replaced.name), seed=99), ())
    shutil.rmtree(gone)
    make_bundle(make_trial(id=TrialId("new")), ())
    found = store.verify(filled, silent)
    assert [one.split(" ")[0].rsplit("/")[-1].rstrip(":") for one in found.bad] == [
        *sorted([cut.name, replaced.name])
    ]
    assert (found.unknown, found.gone) == (("new",), (gone.name,))
    assert filled.history.read_bytes() == before


def test_a_grown_and_a_rebuilt_history_are_equal_in_any_order(
    paths: DataPaths, bundles: tuple[Path, ...], tmp_path: Path
) -> None:
    append_all(paths, silent)
    expected = export(paths.history, tmp_path / "grown")
    assert all(text.count(b"\n") > 1 for name, text in expected.items() if name not in EMPTY)
    with open_history(paths.history, read_only=True) as history:
        digest, observations = history.tables_digest(), history.observations()
    for seed in range(3):
        order = random.Random(seed).sample(bundles, len(bundles))  # noqa: S311  an order, not a secret
        rebuild(paths.history, order, silent)
        assert export(paths.history, tmp_path / f"rebuilt-{seed}") == expected
        with open_history(paths.history, read_only=True) as history:
            assert history.tables_digest() == digest
            assert history.observations() == observations


def test_the_digest_sees_a_single_changed_value(filled: DataPaths) -> None:
    digests = set()
    for statement in (
        "SELECT 1",
        "UPDATE samples SET value = value + 1e-9 WHERE trial_id = 'trial-3' AND position = 0",
        "DELETE FROM facts WHERE trial_id = 'trial-3' AND moment = 'after'",
    ):
        with duckdb.connect(filled.history) as connection:
            connection.execute(statement)
        with open_history(filled.history, read_only=True) as history:
            digests.add(history.tables_digest())
    assert len(digests) == 3


def test_append_all_reports_all_bad_bundles_and_keeps_the_good_ones(
    paths: DataPaths, bundles: tuple[Path, ...]
) -> None:
    (bundles[0] / bundle.TRIAL).write_text("{", encoding="utf-8")
    (paths.trials / "foreign").mkdir()
    reported: list[str] = []
    first = append_all(paths, reported.append)
    assert (first.new, first.known, len(first.bad)) == (2, 0, 2)
    assert reported[:2] == ["appended trial-4", "appended trial-5"]
    assert reported[2].startswith("2 bundles are bad and NOT in the history:")
    assert "trial-3" in reported[2]
    assert "foreign" in reported[2]
    again = append_all(paths, silent)
    assert (again.new, again.known, again.bad) == (0, 2, first.bad)


def test_a_value_beyond_64_bits_is_refused_whole(
    paths: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    counter = replace(make_trial().counters[0], value=2**64)
    place = make_bundle(make_trial(counters=(counter,)))
    with open_history(paths.history) as history:
        with pytest.raises(BundleError, match="cannot hold"):
            history.append(place)
        assert history.trials() == ()


def test_observations_hold_the_value_over_all_iterations_and_each_of_them(
    paths: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    trial = make_trial(status=TrialStatus.INVALID)
    make_bundle(trial)
    append_all(paths, silent)
    with open_history(paths.history, read_only=True) as history:
        observations = history.observations()
    throughput = next(o for o in observations if o.key.metric == "throughput")
    assert throughput == Observation(
        key=SeriesKey(
            system="cassandra",
            line="5.0",
            topology="local-three",
            testbed_class="local",
            config="default",
            workload="sensor-write@0123456789ab",
            engine="python",
            phase="saturation",
            operation="write",
            metric="throughput",
            statistic="mean",
        ),
        trial=trial.id,
        release=trial.release,
        started_at=trial.started_at,
        status=TrialStatus.INVALID,
        value=1000.0,
        iterations=(990.0, 1010.0),
        night=trial.night,
        purpose=trial.purpose,
    )
    assert [(o.key.metric, o.key.statistic) for o in observations] == [
        ("response_time", "p50"),
        ("response_time", "p99"),
        ("service_time", "p99"),
        ("throughput", "mean"),
    ]


def test_the_values_of_each_host_are_a_series_of_their_own(
    paths: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    samples = tuple(
        Sample(
            phase="steady",
            operation="write",
            metric="server_cpu",
            statistic="mean",
            value=value + (iteration or 0),
            iteration=iteration,
            host=host,
        )
        for host, value in (("", 300.0), ("node-1", 100.0), ("node-2", 200.0))
        for iteration in (None, 1, 2)
    )
    make_bundle(make_trial(samples=samples))
    append_all(paths, silent)
    with open_history(paths.history, read_only=True) as history:
        found = [(o.key.host, o.value, o.iterations) for o in history.observations()]
    assert found == [
        ("", 300.0, (301.0, 302.0)),
        ("node-1", 100.0, (101.0, 102.0)),
        ("node-2", 200.0, (201.0, 202.0)),
    ]


def test_a_trial_with_two_values_of_one_series_shares_its_iterations_among_none(
    paths: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    sample = make_trial().samples[0]
    reported = (("", None, 2.0), ("node-1", None, 1.0), ("", 1, 10.0), ("", 2, 20.0))
    samples = tuple(
        replace(sample, host=host, iteration=iteration, value=value)
        for host, iteration, value in reported
    )
    make_bundle(make_trial(samples=samples))
    append_all(paths, silent)
    with open_history(paths.history) as history:
        history.tables.execute("UPDATE samples SET host = ''", ())  # as no bundle has it
        found = [(one.value, one.iterations) for one in history.observations()]
    assert found == [(1.0, (10.0, 20.0)), (2.0, (10.0, 20.0))]


def test_observations_are_ordered_by_release_then_time_and_without_other_purposes(
    paths: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    trial = make_trial()
    sample = trial.samples[0]
    for name, version, ordinal, days, purpose in (
        ("a", "5.0.10", 10, 0, Purpose.SCHEDULED),
        ("b", "5.0.9", 9, 2, Purpose.SCHEDULED),
        ("c", "5.0.9", 9, 1, Purpose.SCHEDULED),
        ("d", "5.0.9", 9, 0, Purpose.CANDIDATE),
        ("e", "5.0.11", 11, 0, Purpose.IMPORTED),
        ("f", "5.0.1", 1, 0, Purpose.SENTINEL),
    ):
        release = Release(system="cassandra", version=version, line="5.0", ordinal=ordinal)
        started_at = trial.started_at + timedelta(days=days)
        changes = {"release": release, "started_at": started_at, "purpose": purpose}
        make_bundle(make_trial(id=TrialId(name), samples=(sample,), **changes), ())
    append_all(paths, silent)
    with open_history(paths.history, read_only=True) as history:
        assert [o.trial for o in history.observations()] == ["c", "b", "a", "e"]
        (candidate,) = history.observations(Purpose.CANDIDATE)
        others = history.observations(Purpose.CANDIDATE, Purpose.SENTINEL)
    assert (candidate.trial, candidate.purpose, candidate.night) == (
        "d",
        Purpose.CANDIDATE,
        trial.night,
    )
    assert [o.trial for o in others] == ["f", "d"]


@pytest.mark.keeps("reads-are-of-one-moment")
@pytest.mark.parametrize("question", ["observations", "environments", "trials", "heads", "both"])
def test_what_is_appended_meanwhile_moves_no_answer(
    filled: DataPaths,
    make_bundle: Callable[..., Path],
    make_trial: Callable[..., Trial],
    append_between: Callable[[History, Path], None],
    question: str,
) -> None:
    def ask_all(history: History) -> object:
        if question != "both":
            return getattr(history, question)()
        with history.snapshot():
            return history.heads(), history.environments(), history.observations()

    release = replace(make_trial().release, version="5.0.1", ordinal=1)
    facts = (Fact(host="", name="a first one", value="1"),)
    samples = tuple(replace(one, value=1e9) for one in make_trial().samples)
    changes = {"release": release, "samples": samples, "environment_before": facts}
    earlier = make_bundle(make_trial(id=TrialId("trial-1"), **changes))
    with open_history(filled.history) as asking, open_history(filled.history) as other:
        before = ask_all(asking)
        append_between(other, earlier)
        assert ask_all(asking) == before
        assert ask_all(asking) == ask_all(other) != before


def test_a_question_that_fails_leaves_a_history_that_answers(filled: DataPaths) -> None:
    with open_history(filled.history) as history:
        history.tables.execute("UPDATE trials SET status = 'odd'", ())
        for _ in range(2):
            with pytest.raises(HistoryError, match="odd"):
                history.observations()
        with pytest.raises(HistoryError, match="nowhere"), history.snapshot():
            history.tables.rows("SELECT * FROM nowhere")
        history.tables.execute("UPDATE trials SET status = 'completed'", ())
        assert history.observations() != ()


def test_circumstances_are_what_may_explain_a_change(
    paths: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    facts = [("node-1", "kernel", "6.1.0"), ("", "fsync", "off"), ("node-1", "boot_id", "9f3c")]
    facts += [("node-1", name, "1") for name in ("load_average_1min", "steal_ticks")]
    facts += [("node-1", "thermal_throttle_count", "7")]
    trial = make_trial(
        environment_before=tuple(Fact(host=h, name=n, value=v) for h, n, v in facts),
        harness_version="0.1.0",
    )
    assert trial.artifact
    make_bundle(trial, ())
    append_all(paths, silent)
    with open_history(paths.history, read_only=True) as history:
        found = history.environments()
    assert found.keys() == {trial.id}
    assert set(found[trial.id].items()) == {
        ("kernel of node-1", "6.1.0"),
        ("fsync", "off"),
        (f"config {trial.config.name}", trial.config.sha256),
        (f"testbed {trial.testbed.name}", trial.testbed.sha256),
        (f"topology {trial.topology.name}", trial.topology.sha256),
        ("artifact", trial.artifact.sha256),
        ("knickpoint", "0.1.0"),
    }
    assert list(found[trial.id]) == sorted(found[trial.id])


def test_a_failed_trial_without_samples_is_kept_with_its_reason(
    paths: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    trial = make_trial(
        status=TrialStatus.FAILED,
        samples=(),
        counters=(),
        artifact=None,
        reasons=(Reason(kind="start-failed", text="node-2 ended after 3 s"),),
        log_tail="ERROR out of memory\n",
    )
    make_bundle(trial, ())
    append_all(paths, silent)
    with open_history(paths.history, read_only=True) as history:
        assert history.observations() == ()
        assert history.trials() == (trial,)


def test_each_table_and_column_has_a_comment(paths: DataPaths) -> None:
    with open_history(paths.history) as history:
        silent_ones = history.query(
            "SELECT table_name, '' FROM duckdb_tables() WHERE comment IS NULL UNION ALL "
            "SELECT table_name, column_name FROM duckdb_columns() "
            "WHERE comment IS NULL AND NOT internal"
        )
    assert silent_ones.rows == ()


def test_a_query_can_neither_write_nor_touch_other_files(filled: DataPaths, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n", encoding="utf-8")
    with open_history(filled.history, read_only=True) as history:
        for sql in (
            "DELETE FROM trials",
            "CREATE TABLE x (y INTEGER)",
            f"FROM read_csv('{secret}')",
            f"COPY trials TO '{tmp_path}/out.csv'",
            f"ATTACH '{tmp_path}/other.duckdb'",
            "INSTALL httpfs",
            "SET enable_external_access = true",
            "SELEKT",
        ):
            with pytest.raises(UsageError, match="the query failed"):
                history.query(sql)
        assert history.query("SELECT count(*) AS trials FROM trials").rows == ((3,),)
    assert not list(tmp_path.glob("o*"))


def test_each_trial_s_head_has_its_own_reasons_in_order(
    paths: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    reasons = tuple(Reason(kind=kind, text=f"{kind} of b") for kind in ("z-first", "a-second"))
    make_bundle(make_trial(id=TrialId("b"), status=TrialStatus.INVALID, reasons=reasons), ())
    make_bundle(make_trial(id=TrialId("a")), ())
    append_all(paths, silent)
    with open_history(paths.history, read_only=True) as history:
        assert [(one.id, one.reasons) for one in history.heads()] == [("a", ()), ("b", reasons)]


def test_a_search_is_bounded_where_both_ends_are_known(
    paths: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    def bound(statistic: str, value: float, **changes: object) -> Sample:
        plain = Sample(
            phase="search", operation="write", metric="highest_load", statistic=statistic, value=value
        )
        return replace(plain, **changes)

    ends = (bound("lower", 900.0), bound("upper", 1100.0), bound("mean", 1.0))
    half = (bound("lower", 1.0, operation="read"), bound("upper", 2.0, operation="read", iteration=1))
    make_bundle(make_trial(samples=(*ends, *half)), ())
    append_all(paths, silent)
    with open_history(paths.history, read_only=True) as history:
        assert history.search_bounds() == {
            (make_trial().id, "search", "write"): (900.0, 1100.0),
        }


def test_what_is_dated_in_the_future_is_not_appended_and_holds_nothing_else_up(
    paths: DataPaths, make_trial: Callable[..., Trial], make_bundle: Callable[..., Path]
) -> None:
    def at(began: datetime, name: str) -> None:
        ended = began + timedelta(minutes=9)
        make_bundle(make_trial(id=TrialId(name), started_at=began, finished_at=ended), ())

    now = datetime.now(UTC)
    at(now + timedelta(days=365), "next-year")
    at(now, "now")
    at(now + timedelta(hours=20), "of-a-clock-ahead")
    done = append_all(paths, silent)
    assert done.new == 2
    (bad,) = done.bad
    assert "next-year is dated" in bad
    with open_history(paths.history) as history:
        assert {one.id for one in history.heads()} == {"now", "of-a-clock-ahead"}


def test_of_several_operations_the_first_gives_the_value_of_a_whole_phase(
    paths: DataPaths,
    make_trial: Callable[..., Trial],
    make_bundle: Callable[..., Path],
) -> None:
    plain = Sample(phase="steady", operation="write", metric="throughput", statistic="mean", value=3.0)
    others = [
        replace(plain, iteration=1),
        replace(plain, statistic="p99"),
        replace(plain, phase="other"),
    ]
    first = make_trial(samples=(*others, plain, replace(plain, operation="read", value=4.0)))
    without = make_trial(id=TrialId("without"), samples=())
    make_bundle(first, ())
    make_bundle(without, ())
    append_all(paths, silent)
    with open_history(paths.history, read_only=True) as history:
        found = history.first_values([first.id, without.id], "steady", "throughput", "mean")
        assert found == {first.id: ("write", 3.0)}
        assert history.first_values([without.id], "steady", "throughput", "mean") == {}


def test_without_bundles_a_history_stays_and_where_there_is_none_either_it_is_no_data_directory(
    paths: DataPaths, filled: DataPaths
) -> None:
    nothing = DataPaths(paths.data / "nothing")
    in_the_way = DataPaths(paths.data / "file")
    in_the_way.data.mkdir()
    in_the_way.trials.touch()
    with pytest.raises(BundleError, match="cannot be listed"):
        append_all(in_the_way, silent)
    with pytest.raises(UsageError, match="no trial bundles"):
        append_all(nothing, silent)
    assert not nothing.history.exists()
    shutil.rmtree(filled.trials)
    appended = append_all(filled, silent)
    assert (appended.new, appended.known, appended.bad) == (0, 0, ())


def export(path: Path, directory: Path) -> dict[str, bytes]:
    """Write each table in order as CSV, with DuckDB itself, and give the files' bytes."""
    directory.mkdir()
    with duckdb.connect(path, read_only=True) as connection:
        for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            query = f'SELECT * FROM "{table}" ORDER BY ALL'  # noqa: S608  from the catalog
            connection.execute(f"COPY ({query}) TO '{directory}/{table}.csv'")
    files = {file.name: file.read_bytes() for file in directory.iterdir()}
    assert len(list(csv.reader(files["trials.csv"].decode().splitlines()))) > 1
    return files
