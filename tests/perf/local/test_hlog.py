from collections.abc import Callable
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from perf.local.hlog import HlogWriter, read_hlog, write_hlog
from perf.model.errors import BundleError
from perf.model.results import Interval


def test_intervals_come_back_equal(
    tmp_path: Path, make_intervals: Callable[..., tuple[Interval, ...]]
) -> None:
    path = tmp_path / "intervals.hlog"
    intervals = make_intervals(iterations=2, seconds=3)
    write_hlog(path, intervals)
    assert read_hlog(path) == intervals


def test_no_intervals_come_back_as_none(tmp_path: Path) -> None:
    write_hlog(tmp_path / "empty.hlog", ())
    assert read_hlog(tmp_path / "empty.hlog") == ()


def test_the_standard_reader_reads_it(
    tmp_path: Path, make_intervals: Callable[..., tuple[Interval, ...]]
) -> None:
    path = tmp_path / "intervals.hlog"
    intervals = make_intervals(iterations=1, seconds=2)
    write_hlog(path, intervals)
    reader = HistogramLogReader(str(path), HdrHistogram(1, 60_000_000, 3))
    found = []
    while histogram := reader.get_next_interval_histogram():
        found.append((histogram.get_tag(), histogram.get_start_time_stamp() / 1000, histogram))
    reader.close()
    assert reader.get_start_time_sec() == intervals[0].start_s
    assert len(found) == len(intervals)
    for (tag, start_s, histogram), interval in zip(found, intervals, strict=True):
        assert tag == f"saturation:write:{interval.kind}:{interval.iteration}"
        assert start_s == interval.start_s
        assert histogram.equals(HdrHistogram.decode(interval.encoded))


def test_what_was_appended_is_there_before_the_log_is_closed(
    tmp_path: Path, make_interval: Callable[..., Interval]
) -> None:
    path = tmp_path / "intervals.hlog"
    interval = make_interval([1, 2, 3])
    with path.open("w") as output:
        HlogWriter(output, interval.start_s).append([interval])
        assert read_hlog(path) == (interval,)


@pytest.mark.parametrize("lost", [1, 2, 50])
def test_a_truncated_last_line_is_refused_with_its_number(
    tmp_path: Path, make_intervals: Callable[..., tuple[Interval, ...]], lost: int
) -> None:
    path = tmp_path / "intervals.hlog"
    write_hlog(path, make_intervals(iterations=0, seconds=1))
    path.write_text(path.read_text()[:-lost])
    with pytest.raises(BundleError, match=r"intervals\.hlog, line 6: the line is truncated"):
        read_hlog(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text + "0.1,1.0,2.0,HISTFAAA\n", "line 7: not an interval of Knickpoint"),
        (lambda text: text[:-9] + "\n", "line 6: the histogram cannot be decoded: truncated or not"),
        (
            lambda text: text.replace("HISTF", "AAAAA"),
            "line 5: the histogram cannot be decoded: truncated or not",
        ),
        (lambda _: '"a","b"\n1,2\n', "not an interval log"),
        (lambda _: "", "not an interval log"),
    ],
    ids=["untagged line", "shortened payload", "foreign payload", "foreign file", "empty file"],
)
def test_a_foreign_file_is_refused(
    tmp_path: Path,
    make_intervals: Callable[..., tuple[Interval, ...]],
    change: Callable[[str], str],
    message: str,
) -> None:
    path = tmp_path / "intervals.hlog"
    write_hlog(path, make_intervals(iterations=0, seconds=1))
    path.write_text(change(path.read_text()))
    with pytest.raises(BundleError, match=message):
        read_hlog(path)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "intervals.hlog"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BundleError, match="not an interval log"):
        read_hlog(path)
