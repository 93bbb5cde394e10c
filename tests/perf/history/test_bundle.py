"""A bundle is whole or refused, and what is read equals what was sealed."""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from budget import tries
from catalogs import shipped
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.history import bundle
from perf.history.store import open_history
from perf.local import durable
from perf.local.paths import DataPaths
from perf.model.access import Access
from perf.model.errors import BundleError
from perf.model.identity import canonical
from perf.model.metrics import LARGEST
from perf.model.results import (
    Artifact,
    Counter,
    Fact,
    Interval,
    LoadStep,
    Named,
    Purpose,
    Reason,
    Release,
    Sample,
    Source,
    StepOutcome,
    Trial,
    TrialId,
    TrialStatus,
)

SMALL = st.integers(0, 2**31 - 1)
LARGE = st.integers(0, 2**63 - 1)
TEXT = st.text(max_size=20)
TIMES = st.datetimes(
    min_value=datetime(2000, 1, 1),  # noqa: DTZ001  the strategy adds the time zones
    max_value=datetime(2026, 1, 1),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))]),
)
NAMED = st.builds(Named, name=TEXT, sha256=TEXT)
FACTS = st.lists(st.builds(Fact, host=TEXT, name=TEXT, value=TEXT), max_size=3).map(tuple)
FINITE = st.floats(-LARGEST, LARGEST)
REASONS = st.lists(st.builds(Reason, kind=TEXT, text=TEXT), max_size=3).map(tuple)
STEPS = st.lists(
    st.builds(
        LoadStep,
        phase=TEXT,
        offered_load_ops_per_s=FINITE,
        achieved_ops_per_s=FINITE,
        response_time_p99_ms=st.none() | FINITE,
        send_lateness_p99_ms=FINITE,
        client_cpu_share=FINITE,
        outcome=st.sampled_from(StepOutcome),
        text=TEXT,
    ),
    max_size=3,
).map(tuple)
SAMPLES = st.lists(
    st.builds(
        Sample,
        phase=TEXT,
        operation=TEXT,
        metric=TEXT,
        statistic=TEXT,
        value=FINITE,
        iteration=st.none() | SMALL,
        host=TEXT,
    ),
    max_size=4,
    unique_by=lambda s: (s.phase, s.operation, s.metric, s.statistic, s.iteration, s.host),
).map(tuple)
TRIALS = st.builds(
    Trial,
    id=st.from_regex(r"\A[a-z0-9][a-z0-9.+@_-]{0,30}\Z").map(TrialId),
    night=TEXT,
    purpose=st.sampled_from(Purpose),
    experiment=TEXT,
    release=st.builds(
        Release,
        system=TEXT,
        version=TEXT,
        line=TEXT,
        ordinal=LARGE,
        released_at=st.none() | st.dates(min_value=date(1990, 1, 1)),
    ),
    artifact=st.none() | st.builds(Artifact, source=st.sampled_from(Source), sha256=TEXT),
    topology=NAMED,
    testbed=NAMED,
    testbed_class=TEXT,
    workload=NAMED,
    config=NAMED,
    engine=TEXT,
    seed=LARGE,
    started_at=TIMES,
    finished_at=TIMES,
    status=st.sampled_from(TrialStatus),
    reasons=REASONS,
    remarks=REASONS,
    steps=STEPS,
    environment_before=FACTS,
    environment_after=FACTS,
    samples=SAMPLES,
    counters=st.lists(
        st.builds(Counter, phase=TEXT, operation=TEXT, iteration=SMALL, name=TEXT, value=LARGE),
        max_size=3,
    ).map(tuple),
    log_tail=TEXT,
    harness_version=TEXT,
)

STEP = LoadStep(
    phase="ladder-200",
    offered_load_ops_per_s=200.0,
    achieved_ops_per_s=199.5,
    response_time_p99_ms=4.25,
    send_lateness_p99_ms=0.5,
    client_cpu_share=0.125,
    outcome=StepOutcome.HELD,
    text="p99 4.25 ms at 200 ops/s",
)
OLD = Path(__file__).parents[2] / "data/bundles/version-1/2026-03-01-sensor-write-cassandra-5.0.4"


@settings(max_examples=tries(25, sample=5), deadline=None, derandomize=True)
@given(trial=TRIALS)
def test_a_trial_comes_back_equal_from_its_bundle_and_from_the_history(trial: Trial) -> None:
    with TemporaryDirectory() as directory:
        paths = DataPaths(Path(directory))
        place = bundle.seal(bundle.stage(paths, trial.id), trial, ())
        assert bundle.read(place) == (trial, ())
        with open_history(paths.history) as history:
            assert history.append(place)
            assert history.trials() == (trial,)


def test_a_bundle_of_the_first_version_is_read_and_left_as_it_is(
    paths: DataPaths, make_trial: Callable[..., Trial]
) -> None:
    """The files were sealed by Knickpoint 0.1.0, before hosts, remarks and load steps were known."""
    place = Path(shutil.copytree(OLD, paths.trials / OLD.name))
    trial, intervals = bundle.read(place)
    assert trial == make_trial()
    assert (trial.remarks, trial.steps, {sample.host for sample in trial.samples}) == ((), (), {""})
    assert [one.iteration for one in intervals] == [0, 0, 1, 1]
    with open_history(paths.history) as history:
        assert history.append(place)
        assert history.trials() == (trial,)
    assert bundle.digest(place) == bundle.digest(OLD)
    assert (place / bundle.TRIAL).read_bytes() == (OLD / bundle.TRIAL).read_bytes()


def test_intervals_and_logs_come_back(
    make_bundle: Callable[..., Path], make_intervals: Callable[..., tuple[Interval, ...]]
) -> None:
    intervals = make_intervals()
    place = make_bundle(intervals=intervals)
    assert bundle.read(place)[1] == intervals
    assert (place / "logs" / "node-1-system.log").read_text(encoding="utf-8") == "INFO started\n"


def test_the_place_of_the_artifact_on_this_machine_is_not_written(
    make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    artifact = Artifact(source=Source.PATH, sha256="cd" * 32, location="/home/someone/build")
    place = make_bundle(make_trial(artifact=artifact))
    assert "someone" not in (place / bundle.TRIAL).read_text(encoding="utf-8")
    assert bundle.read(place)[0].artifact == replace(artifact, location="")


def test_times_are_written_in_utc(
    make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    local = datetime(2026, 3, 1, 7, 30, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    place = make_bundle(make_trial(started_at=local))
    assert '"started_at": "2026-03-01T02:00:00Z"' in (place / bundle.TRIAL).read_text(encoding="utf-8")


def test_find_gives_sealed_bundles_only(
    paths: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    assert bundle.find(paths) == ()
    second, first = (make_bundle(make_trial(id=TrialId(name))) for name in ("b", "a"))
    bundle.stage(paths, TrialId("c"))
    assert bundle.find(paths) == (first, second)


def test_staging_again_starts_empty(paths: DataPaths) -> None:
    staged = bundle.stage(paths, TrialId("a"))
    (staged / bundle.LOGS / "old.log").touch()
    assert bundle.stage(paths, TrialId("a")) == staged
    assert [path.name for path in staged.rglob("*")] == [bundle.LOGS]


def test_what_was_interrupted_goes_but_imports_that_run_beside_stay(
    paths: DataPaths, make_bundle: Callable[..., Path]
) -> None:
    sealed = make_bundle()
    imports = {bundle.stage(paths, TrialId(f"{bundle.IMPORTED}{name}")) for name in "ab"}
    for name in "abc":
        bundle.stage(paths, TrialId(name))
    bundle.remove_interrupted(paths)
    assert set(paths.trials.iterdir()) == {sealed, *imports}


@pytest.mark.parametrize("trial_id", ["", ".", "..", "a/b", "/a", ".hidden", "a\nb", "a" * 201])
def test_an_id_that_cannot_name_a_directory_is_refused(paths: DataPaths, trial_id: str) -> None:
    with pytest.raises(BundleError, match="cannot name a bundle"):
        bundle.stage(paths, TrialId(trial_id))
    assert not paths.data.exists()


def test_a_sealed_bundle_is_never_overwritten(
    paths: DataPaths, make_bundle: Callable[..., Path], make_trial: Callable[..., Trial]
) -> None:
    place = make_bundle()
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    with pytest.raises(BundleError, match="never overwritten"):
        make_bundle(make_trial(seed=7))
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    assert bundle.stage(paths, make_trial().id).exists()


def test_a_trial_is_sealed_only_where_it_was_staged(
    paths: DataPaths, make_trial: Callable[..., Trial]
) -> None:
    with pytest.raises(BundleError, match="was not staged for trial"):
        bundle.seal(bundle.stage(paths, TrialId("other")), make_trial(), ())


def test_all_values_that_cannot_be_kept_are_refused_at_once(
    paths: DataPaths, make_trial: Callable[..., Trial]
) -> None:
    sample = make_trial().samples[0]
    trial = make_trial(
        started_at=datetime(2026, 3, 1),  # noqa: DTZ001  what must be refused
        samples=(
            *(sample, sample, replace(sample, host="node-1")),
            replace(sample, metric="response_time", value=float("nan")),
        ),
        steps=(replace(STEP, response_time_p99_ms=float("inf")),),
    )
    with pytest.raises(BundleError) as caught:
        bundle.seal(bundle.stage(paths, trial.id), trial, ())
    text = str(caught.value)
    assert "started_at has no time zone" in text
    assert "saturation/write/throughput/mean/all iterations is there 2 times" in text
    assert "response_time/mean is nan" in text
    assert "response_time_p99_ms of load step ladder-200 is inf" in text
    assert "node-1" not in text
    assert bundle.find(paths) == ()


@pytest.mark.parametrize("name", [bundle.TRIAL, bundle.INTERVALS, bundle.MANIFEST])
def test_a_truncated_file_is_refused_at_any_length(make_bundle: Callable[..., Path], name: str) -> None:
    place = make_bundle()
    content = (place / name).read_bytes()
    # The last byte of the manifest is a newline; without it the manifest is still whole.
    last = len(content) - (2 if name == bundle.MANIFEST else 1)
    for length in (*range(0, last, max(1, last // 25)), last):
        (place / name).write_bytes(content[:length])
        with pytest.raises(BundleError, match=re.escape(str(place))):
            bundle.read(place)


def test_a_truncated_trial_is_refused_even_if_the_manifest_agrees(
    make_bundle: Callable[..., Path],
) -> None:
    place = make_bundle()
    content = (place / bundle.TRIAL).read_bytes()
    for length in range(0, len(content) - 2, max(1, len(content) // 25)):
        (place / bundle.TRIAL).write_bytes(content[:length])
        forge_manifest(place)
        with pytest.raises(BundleError, match="truncated or not JSON"):
            bundle.read(place)


@pytest.mark.parametrize(
    "name", [bundle.TRIAL, bundle.INTERVALS, bundle.MANIFEST, "logs/node-1-system.log"]
)
def test_a_missing_file_is_named(make_bundle: Callable[..., Path], name: str) -> None:
    place = make_bundle()
    (place / name).unlink()
    with pytest.raises(BundleError, match=name):
        bundle.read(place)


def test_a_changed_file_is_refused_with_both_digests(make_bundle: Callable[..., Path]) -> None:
    place = make_bundle()
    log = place / "logs" / "node-1-system.log"
    log.write_bytes(log.read_bytes().replace(b"started", b"stopped"))
    with pytest.raises(BundleError, match=r"node-1-system\.log .*[0-9a-f]{64}.* says .*[0-9a-f]{64}"):
        bundle.read(place)


def test_an_added_file_is_refused(make_bundle: Callable[..., Path]) -> None:
    place = make_bundle()
    (place / "extra.txt").touch()
    with pytest.raises(BundleError, match=r"extra\.txt is not in manifest\.json"):
        bundle.read(place)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"schema_version": 2', '"schema_version": 3', "newer Knickpoint"),
        ('"schema_version": 2', '"schema_version": 0', "known are 1 and 2"),
        ('"schema_version": 2', '"version": 2', "foreign"),
        ('"schema_version": 2', '"schema_version": "2"', "foreign"),
        ('"seed": 42', '"seed": "42"', r"trial\.seed: "),
        ('"seed": 42', '"seed": 42, "sead": 42', r"trial\.sead: "),
        ('"status": "completed"', '"status": "splendid"', r"trial\.status: "),
        ("02:00:00Z", "02:00:00", "started_at has no time zone"),
        ('"value": 1000.0', '"value": 1e999', "not a finite number"),
        ('"value": 1000.0', '"value": 1e101', r"not a finite number of at most 1e\+100"),
        ("cassandra-5.0.4", "cassandra-5.0.5", "named by its trial"),
    ],
)
def test_a_trial_of_another_form_is_refused(
    make_bundle: Callable[..., Path], old: str, new: str, message: str
) -> None:
    place = make_bundle()
    text = (place / bundle.TRIAL).read_text(encoding="utf-8")
    assert old in text
    (place / bundle.TRIAL).write_text(text.replace(old, new, 1), encoding="utf-8")
    forge_manifest(place)
    with pytest.raises(BundleError, match=message):
        bundle.read(place)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"files": []}']
)
def test_a_foreign_manifest_is_refused(make_bundle: Callable[..., Path], content: bytes) -> None:
    place = make_bundle()
    (place / bundle.MANIFEST).write_bytes(content)
    with pytest.raises(BundleError, match=r"manifest\.json is (foreign|truncated)"):
        bundle.read(place)


def test_foreign_places_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    empty = tmp_path / "empty"
    empty.mkdir()
    for place in (file, empty, tmp_path / "absent"):
        message = rf"is not a trial bundle: .*\n  move {place.name} out of trials/ \(or restore it"
        with pytest.raises(BundleError, match=message):
            bundle.read(place)


def test_what_only_an_update_can_mend_is_not_to_be_moved(make_bundle: Callable[..., Path]) -> None:
    place = make_bundle()
    (place / bundle.MANIFEST).write_text('{"schema_version": 3, "files": []}', encoding="utf-8")
    with pytest.raises(BundleError, match=r"newer Knickpoint.*update it") as caught:
        bundle.read(place)
    assert "out of trials/" not in str(caught.value)


def test_a_file_in_place_of_the_trials_is_refused_with_a_next_step(paths: DataPaths) -> None:
    paths.data.mkdir()
    paths.trials.touch()
    with pytest.raises(
        BundleError, match=r"no bundle can be staged for trial a: .*\nMove away the file"
    ):
        bundle.stage(paths, TrialId("a"))
    with pytest.raises(BundleError, match=r"bundles cannot be listed: .*\nMove away the file"):
        bundle.find(paths)


def test_a_full_disk_while_sealing_is_reported_with_a_next_step(
    paths: DataPaths, make_trial: Callable[..., Trial], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(_path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    trial = make_trial()
    staged = bundle.stage(paths, trial.id)
    monkeypatch.setattr(durable, "sync", fill)
    with pytest.raises(BundleError, match=r"could not be sealed from .*\nMake room"):
        bundle.seal(staged, trial, ())
    assert bundle.find(paths) == ()


def test_histograms_that_the_disk_does_not_give_back_are_reported_with_what_to_do(
    make_bundle: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = make_bundle()

    def fail(_path: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(bundle, "read_hlog", fail)
    with pytest.raises(BundleError, match=rf"{bundle.INTERVALS} cannot be read: .*nput/output error"):
        bundle.read(place)


def test_a_key_that_is_there_twice_is_refused(make_bundle: Callable[..., Path]) -> None:
    manifest = make_bundle() / bundle.MANIFEST
    manifest.write_text(manifest.read_text().replace("{", '{"files": [],', 1))
    with pytest.raises(BundleError, match=r"the key files is there twice"):
        bundle.read(manifest.parent)


def test_a_manifest_that_is_too_large_is_to_be_moved_away(
    make_bundle: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = make_bundle()
    monkeypatch.setattr(bundle, "MOST_MANIFEST_BYTES", 10)
    with pytest.raises(BundleError, match=rf"(?s)cannot be read.*move {place.name} out of trials/"):
        bundle.digest(place)


def test_a_file_that_no_reader_would_take_is_not_sealed(
    make_bundle: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(bundle._MOST_BYTES, bundle.TRIAL, 10)  # noqa: SLF001  64 MB take seconds
    with pytest.raises(BundleError, match=rf"{bundle.TRIAL} has \d+ bytes, and at most 10 are read"):
        make_bundle()


def test_links_and_ways_out_of_the_bundle_are_refused(
    paths: DataPaths, make_bundle: Callable[..., Path], tmp_path: Path
) -> None:
    place = make_bundle()
    linked = paths.trials / "linked"
    linked.symlink_to(place)
    with pytest.raises(BundleError, match="not a directory"):
        bundle.read(linked)

    outside = tmp_path / "outside"
    shutil.move(place / "logs", outside)
    (place / "logs").symlink_to(outside)
    with pytest.raises(BundleError, match="neither a file nor a directory"):
        bundle.read(place)

    (place / "logs").unlink()
    manifest = (place / bundle.MANIFEST).read_text(encoding="utf-8")
    escaping = manifest.replace("logs/node-1", "../../../outside/node-1")
    (place / bundle.MANIFEST).write_text(escaping, encoding="utf-8")
    with pytest.raises(BundleError, match=r"outside/node-1-system\.log is missing"):
        bundle.read(place)


def forge_manifest(place: Path) -> None:
    """Make the manifest agree with the files, as nobody but a forger would."""
    document = json.loads((place / bundle.MANIFEST).read_bytes())
    for entry in document["files"]:
        content = (place / entry["name"]).read_bytes()
        entry["size"], entry["sha256"] = len(content), hashlib.sha256(content).hexdigest()
    (place / bundle.MANIFEST).write_text(json.dumps(document), encoding="utf-8")


def test_settings_are_those_of_the_deployment_without_its_access(tmp_path: Path) -> None:
    catalog = shipped()
    suite = catalog.suite("quickstart")
    deployment = catalog.resolve(suite, suite.experiments[0])
    bundle.write_settings(tmp_path, deployment)
    settings = bundle.read_settings(tmp_path)
    assert settings == {
        "config": canonical(deployment.config),
        "workload": canonical(deployment.workload),
        "topology": canonical(deployment.topology),
    }
    secured = replace(deployment.config, access=Access(username="u"))
    bundle.write_settings(tmp_path, replace(deployment, config=secured))
    assert bundle.read_settings(tmp_path) == settings


@pytest.mark.parametrize("content", [None, b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_settings_that_cannot_be_read_are_none(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / bundle.SETTINGS).write_bytes(content)
    assert bundle.read_settings(tmp_path) == {}
