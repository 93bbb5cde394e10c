"""Whatever lies in trials/: a bundle is used or refused in words, the others are kept without it."""

import base64
import hashlib
import itertools
import json
import os
import re
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import (
    HUGE,
    NO_FILES,
    broken_bytes,
    broken_documents,
    is_well_told,
    offer,
    put_in_place,
    run_bounded,
    within,
)

from perf.history import bundle
from perf.history.store import History, append_all, open_history, rebuild
from perf.local import hlog
from perf.local.hlog import read_hlog, write_hlog
from perf.local.paths import DataPaths
from perf.model import histograms as encoded
from perf.model.errors import BundleError
from perf.model.results import Fact, Interval, LoadStep, Reason, StepOutcome, Trial, TrialId

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def whole(
    tmp_path_factory: pytest.TempPathFactory,
    make_trial: Callable[..., Trial],
    make_interval: Callable[..., Interval],
) -> Path:
    """Return a sealed bundle that has something of everything."""
    paths = DataPaths(tmp_path_factory.mktemp("whole"))
    step = LoadStep(
        phase="ladder-200",
        offered_load_ops_per_s=200.0,
        achieved_ops_per_s=199.5,
        response_time_p99_ms=4.25,
        send_lateness_p99_ms=0.5,
        client_cpu_share=0.125,
        outcome=StepOutcome.HELD,
        text="p99 4.25 ms",
    )
    trial = make_trial(
        steps=(step,),
        reasons=(Reason(kind="a", text="b"),),
        remarks=(Reason(kind="c", text="d"),),
        environment_before=(Fact(host="localhost", name="kernel", value="6.1.0"),),
    )
    staged = bundle.stage(paths, trial.id)
    (staged / bundle.LOGS / "node-1-system.log").write_text("INFO started\n", encoding="utf-8")
    return bundle.seal(staged, trial, [make_interval([5, 50, 500])])


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    with open_history(tmp_path_factory.mktemp("history") / "history.duckdb") as opened:
        yield opened


def forge(place: Path) -> None:
    """Write a manifest that fits what is there."""
    files = [
        {
            "name": path.relative_to(place).as_posix(),
            "size": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in sorted(place.rglob("*"))
        if path.is_file() and path.name != bundle.MANIFEST
    ]
    manifest = {"schema_version": bundle.SCHEMA_VERSION, "files": files}
    (place / bundle.MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


def copy(whole: Path, to: Path) -> Path:
    """Copy a bundle under the name of another trial."""
    place = to / f"trial-{next(NUMBERS)}"
    shutil.copytree(whole, place)
    text = (place / bundle.TRIAL).read_text(encoding="utf-8").replace(whole.name, place.name)
    (place / bundle.TRIAL).write_text(text, encoding="utf-8")
    forge(place)
    return place


def append(history: History, place: Path) -> None:
    """Append a bundle that may be anything; what is accepted must come back as it is in the bundle."""
    before = history.tables.rows("SELECT count(*) AS trials FROM trials")
    try:
        history.append(place)
    except BundleError:
        assert history.tables.rows("SELECT count(*) AS trials FROM trials") == before
        raise
    trial, intervals = bundle.read(place)
    assert history.trials([TrialId(place.name)]) == (trial,)
    stored = history.tables.rows("SELECT count(*) AS n FROM histograms WHERE trial_id = ?", [trial.id])
    assert stored == [{"n": len(intervals)}]


@pytest.mark.keeps("hostile-bundles")
def test_a_broken_trial_is_used_as_it_is_or_refused(
    whole: Path,
    history: History,
    tmp_path: Path,
    effort: Callable[[int, int], int],
    figures: dict[str, object],
) -> None:
    content = (whole / bundle.TRIAL).read_bytes()

    def take(data: bytes) -> None:
        place = copy(whole, tmp_path)
        (place / bundle.TRIAL).write_bytes(data.replace(whole.name.encode(), place.name.encode()))
        forge(place)
        append(history, place)

    changes = (
        (b"2026-03-01T02:00:00Z", b"0001-01-01T00:00:00+23:59"),
        (b'"seed": 42', b'"seed": 42, "seed": 43'),
        (b'"seed": 42', b'"seed": 1' + b"0" * 400),
        (b'"engine": "python"', b'"engine": "py\\u0000thon"'),
        (b'"engine": "python"', b'"engine": "py\\ud800thon"'),
        (b'"value": 10', b'"value": 1' + b"0" * 30),
    )
    examples = [content, *(content.replace(old, new) for old, new in changes)]
    broken = broken_documents(json.loads(content)) | broken_bytes(content)
    found = offer(broken, take, BundleError, effort(25, 1500), examples=examples)
    assert not found.startswith("0 taken")
    figures["broken trial.json"] = found


@pytest.mark.keeps("hostile-bundles")
def test_a_broken_manifest_or_log_is_refused(
    whole: Path,
    history: History,
    tmp_path: Path,
    effort: Callable[[int, int], int],
    figures: dict[str, object],
) -> None:
    manifest = (whole / bundle.MANIFEST).read_bytes()
    log = (whole / bundle.INTERVALS).read_bytes()
    manifests = broken_documents(json.loads(manifest)) | broken_bytes(manifest)

    def take(broken: tuple[str, bytes]) -> None:
        name, data = broken
        place = copy(whole, tmp_path)
        (place / name).write_bytes(data)
        if name != bundle.MANIFEST:
            forge(place)
        append(history, place)

    broken = st.tuples(st.just(bundle.MANIFEST), manifests) | st.tuples(
        st.just(bundle.INTERVALS), broken_bytes(log)
    )
    figures["broken manifests and logs"] = offer(broken, take, BundleError, effort(15, 600))


def pack(data: bytes) -> str:
    """Return a payload of a log, of what zlib packs."""
    packed = zlib.compress(data, 9)
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(packed)) + packed).decode()


def head(
    length: int, digits: int = 3, lowest: int = 1, highest: int = 3_600_000_000, offset: int = 0
) -> bytes:
    """Return the head of a packed histogram."""
    return struct.pack(">IIIIQQd", 0x1C849313, length, offset, digits, lowest, highest, 1.0)


def zigzag(*numbers: int) -> bytes:
    """Return counts as they are packed; a negative one stands for so many zeros."""
    data = bytearray()
    for number in numbers:
        rest = number << 1 if number >= 0 else (-number << 1) - 1
        while rest > 0x7F:
            data.append(rest & 0x7F | 0x80)
            rest >>= 7
        data.append(rest)
    return bytes(data)


BOMBS = {
    "50 MB in 50 KB": pack(b"\0" * 50_000_000),
    "50 MB of counts": pack(head(50_000_000) + b"\2" * 50_000_000),
    "17 GB of range": pack(head(1, digits=5, highest=2**63 - 1) + zigzag(1)),
    "digits": pack(head(1, digits=2**31) + zigzag(1)),
    "no lowest": pack(head(1, lowest=0) + zigzag(1)),
    "lowest above highest": pack(head(1, lowest=2**62, highest=3) + zigzag(1)),
    "counts that overflow": pack(head(9) + b"\xfe" * 8 + b"\x7f"),
    "more counts than room": pack(head(6) + zigzag(-(2**31) + 1, 1)),
    "zeros beyond room": pack(head(10) + zigzag(-(2**31) + 1, -(2**31) + 1)),
    "cut count": pack(head(1) + b"\x80"),
    "another length": pack(head(7) + zigzag(1)),
    "an offset": pack(head(1, offset=5) + zigzag(1)),
    "another cookie": pack(b"\0" * 40),
    "only a head": pack(head(0))[:12],
    "nothing": "",
    "empty": pack(b""),
    "no base64": "====",
}


@pytest.mark.keeps("hostile-histograms")
@pytest.mark.parametrize("name", BOMBS)
def test_a_histogram_that_lies_about_itself_is_refused_and_costs_nothing(name: str) -> None:
    with pytest.raises(ValueError, match=r"histogram .*cannot be decoded") as caught:
        encoded.decode(BOMBS[name])
    assert len(str(caught.value)) < 400
    if name == "zeros beyond room":  # for which a sparse one makes none
        assert encoded.decode_sparse([BOMBS[name]]).totals == [0]
        return
    with pytest.raises(ValueError, match=r"histogram .*cannot be decoded"):
        encoded.decode_sparse([BOMBS[name]])


@pytest.mark.keeps("hostile-histograms")
def test_bombs_in_a_bundle_fit_into_half_a_gigabyte(whole: Path, tmp_path: Path) -> None:
    place = copy(whole, tmp_path)
    line = "Tag=a:b:c:1,1772330402.000000,1.000000,9.503,{}\n"
    with (place / bundle.INTERVALS).open("a", encoding="utf-8") as log:
        log.writelines(line.format(payload or "A") for payload in [*BOMBS.values()] * 3)
    forge(place)
    code = """
import sys
from pathlib import Path
from perf.model.errors import BundleError
from perf.history import bundle
try:
    bundle.read(Path(sys.argv[1]))
except BundleError as error:
    print(error)
"""
    done = run_bounded(code, place, memory_mb=512)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("cannot be decoded") + done.stdout.count("not an interval") >= 49
    assert "nothing more was read" in done.stdout


@pytest.mark.keeps("hostile-histograms")
def test_any_bytes_are_a_histogram_or_none(
    make_interval: Callable[..., Interval],
    effort: Callable[[int, int], int],
    figures: dict[str, object],
) -> None:
    sound = zlib.decompress(base64.b64decode(make_interval([1, 20, 300, 4000, 50_000]).encoded)[8:])
    counts = st.lists(st.integers(-(2**33), 2**63), max_size=30).map(lambda some: zigzag(*some))
    heads = st.builds(
        head,
        st.integers(0, 40),
        st.integers(0, 6),
        st.sampled_from([0, 1, 2, 1000, 2**40, 2**63]),
        st.sampled_from([0, 1, 2, 1000, 60_000_000, 3_600_000_000, 2**40, 2**63 - 1]),
    )
    whole_heads = st.builds(
        lambda data, digits: head(len(data), digits) + data, counts, st.sampled_from([1, 2, 3, 4])
    )
    tries = effort(40, 2000)
    decoded = 0

    @settings(max_examples=tries, deadline=None, derandomize=True)
    @given(data=broken_bytes(sound) | whole_heads | st.builds(bytes.__add__, heads, counts))
    def run(data: bytes) -> None:
        nonlocal decoded
        try:
            histogram = encoded.decode(pack(data))
        except ValueError as error:
            said = str(error)
        else:
            said = ""
        try:
            sparse = encoded.decode_sparse([pack(data)])
        except ValueError as error:
            assert said, f"{error}, but the library decodes it"  # noqa: PT017  what it says is asserted
        if said:
            assert "cannot be decoded" in said
            assert len(said) < 400
            return
        decoded += 1
        assert histogram.counts_len <= encoded.MOST_COUNTERS
        assert 0 <= histogram.total_count == sum(histogram.counts) == sparse.totals[0]
        merged = type(histogram)(1, encoded.HIGHEST_US, 3)
        merged.add(histogram)
        assert encoded.decode(merged.encode().decode()).total_count == histogram.total_count

    run()
    figures["hostile histograms"] = f"{tries}, {decoded} sound"


LINES = {
    "huge start": f"Tag=a:b:c:1,{'9' * 400}.0,1.0,1.0,X",
    "huge max": f"Tag=a:b:c:1,1.0,1.0,{'9' * 400}.0,X",
    "huge iteration": f"Tag=a:b:c:{'9' * 5000},1.0,1.0,1.0,X",
    "digits of another script": "Tag=a:b:c:\N{ARABIC-INDIC DIGIT ONE},1.0,1.0,1.0,X",
    "negative": "Tag=a:b:c:1,-1.0,1.0,1.0,X",
    "not a number": "Tag=a:b:c:1,nan,inf,1.0,X",
    "escape": "Tag=\x1b[2J:b:c:1,1.0,\x1b]0;owned\x07,1.0,X",
    "long": "x" * 1_000_000,
}


@pytest.mark.keeps("hostile-bundles")
@pytest.mark.parametrize("name", LINES)
def test_a_line_that_is_no_interval_is_reported_with_its_number(
    make_interval: Callable[..., Interval], tmp_path: Path, name: str
) -> None:
    path = tmp_path / "intervals.hlog"
    write_hlog(path, [make_interval([5])])
    with path.open("a", encoding="utf-8") as log:
        log.write(f"{LINES[name].replace('X', make_interval([5]).encoded)}\n" * 3)
    with pytest.raises(BundleError) as caught:
        read_hlog(path)
    assert is_well_told(caught.value, *(f"line {number}: not an interval" for number in (6, 7, 8)))


@pytest.mark.keeps("hostile-bundles")
def test_what_is_no_file_stops_no_other_bundle(whole: Path, tmp_path: Path) -> None:
    paths = DataPaths(tmp_path)
    good = copy(whole, paths.trials)
    bad = []
    for name in (bundle.TRIAL, bundle.INTERVALS, bundle.MANIFEST, "logs/node-1-system.log", "."):
        for kind in NO_FILES:
            place = copy(whole, paths.trials)
            bad.append(place.name)
            if name == ".":
                shutil.rmtree(place)
            put_in_place(place / name, kind)
            if kind == "huge" and name.endswith(".log"):
                os.truncate(place / name, 1)  # in pieces, it would be read for half a minute
    with within(60):
        appended = append_all(paths, lambda _: None)
    assert (appended.new, appended.known, len(appended.bad)) == (1, 0, len(bad))
    for name, error in zip(sorted(bad), appended.bad, strict=True):
        assert is_well_told(BundleError(error), name)
    with open_history(paths.history, read_only=True) as history:
        assert [trial.id for trial in history.heads()] == [good.name]


@pytest.mark.keeps("hostile-bundles")
def test_files_of_ten_gigabytes_are_refused_in_little_memory(whole: Path, tmp_path: Path) -> None:
    paths = DataPaths(tmp_path)
    for name in (bundle.TRIAL, bundle.INTERVALS, bundle.MANIFEST):
        put_in_place(copy(whole, paths.trials) / name, "huge")
    copy(whole, paths.trials)
    code = """
import sys
from pathlib import Path
from perf.history.store import append_all, rebuild
from perf.history import bundle
from perf.local.paths import DataPaths
paths = DataPaths(Path(sys.argv[1]))
print(append_all(paths, lambda _: None))
print(rebuild(paths.history, bundle.find(paths), lambda _: None))
"""
    done = run_bounded(code, tmp_path, memory_mb=1024)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("Appended(new=1") == 2
    assert done.stdout.count(str(HUGE)) == 6


@pytest.mark.keeps("hostile-bundles")
def test_names_that_drive_a_terminal_are_escaped(whole: Path, tmp_path: Path) -> None:
    paths = DataPaths(tmp_path)
    bad = copy(whole, paths.trials)
    good = copy(whole, paths.trials)
    bad.rename(paths.trials / os.fsdecode(b"\x1b[2J\xff\nx"))
    reported: list[str] = []
    appended = append_all(paths, reported.append)
    assert appended.new == 1
    assert is_well_told(BundleError(appended.bad[0]))
    assert re.search(r"\\x1b\[2J\\udcff", appended.bad[0])
    assert rebuild(paths.history, bundle.find(paths), reported.append).new == 1
    with open_history(paths.history, read_only=True) as history:
        assert [trial.id for trial in history.heads()] == [good.name]


@pytest.mark.keeps("hostile-bundles")
def test_a_hard_link_is_a_file_and_what_it_leads_to_stays(whole: Path, tmp_path: Path) -> None:
    paths = DataPaths(tmp_path)
    place = copy(whole, paths.trials)
    outside = tmp_path / "outside.json"
    os.link(place / bundle.TRIAL, outside)
    before = outside.read_bytes()
    assert append_all(paths, lambda _: None).new == 1
    assert outside.read_bytes() == before


@pytest.mark.keeps("hostile-bundles")
def test_a_log_of_more_intervals_than_allowed_is_not_read_to_its_end(
    make_interval: Callable[..., Interval],
    tmp_path: Path,
    effort: Callable[[int, int], int],
    figures: dict[str, object],
) -> None:
    path = tmp_path / "intervals.hlog"
    interval, most = make_interval([5]), effort(2000, 100_000)
    seconds = range(most + 1000)
    write_hlog(path, (replace(interval, start_s=interval.start_s + second) for second in seconds))
    code = """
import resource, sys
from pathlib import Path
from perf.model.errors import BundleError
from perf.local import hlog
hlog.MOST_INTERVALS = int(sys.argv[2])
try:
    hlog.read_hlog(Path(sys.argv[1]))
except BundleError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
    done = run_bounded(code, path, most, memory_mb=1024, seconds=600)
    *said, peak_mb = done.stdout.split("\n")[:-1]
    assert f"from line {most + 5} on nothing more was read" in said[0], done.stderr
    assert f"more than {most} intervals" in said[1]
    assert hlog.MOST_INTERVALS == 1_000_000
    figures[f"MB for {most} intervals"] = int(peak_mb)
