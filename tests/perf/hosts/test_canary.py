"""The fixed work, done once here: every part is there, and nothing of it stays."""

from pathlib import Path

import pytest

from perf.hosts.canary import run_canary, summarize_work
from perf.hosts.remote import LocalHost
from perf.model.errors import StepFailed
from perf.model.metrics import DIAGNOSTICS
from perf.model.results import Sample

PARTS = ("canary_cpu", "canary_memory", "canary_fsync", "canary_loopback")


def test_each_part_gives_its_median_and_extremes(tmp_path: Path) -> None:
    samples = run_canary(LocalHost(), str(tmp_path / "not" / "there" / "yet"), "canary-before")
    values = {(sample.metric, sample.statistic): sample.value for sample in samples}
    assert set(values) == {(part, statistic) for part in PARTS for statistic in ("p50", "min", "max")}
    for part in PARTS:
        assert part in DIAGNOSTICS
        assert 0 < values[part, "min"] <= values[part, "p50"] <= values[part, "max"]
    # Wide: a machine of this century, whatever else it does at the moment.
    assert 0.5 < values["canary_cpu", "min"] < 1000
    assert 100 < values["canary_memory", "max"] < 1_000_000
    assert 1 < values["canary_loopback", "min"] < 100_000
    assert {(one.phase, one.operation, one.host, one.iteration) for one in samples} == {
        ("canary-before", "canary", "local", None)
    }
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_directory_that_was_there_stays(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    run_canary(LocalHost(), str(kept), "canary-after")
    assert list(tmp_path.iterdir()) == [kept]
    assert list(kept.iterdir()) == []


def test_repetitions_become_samples() -> None:
    work = {part: [3.0, 1.0, 2.0, 10.0] for part in PARTS}
    samples = summarize_work(work, "server-2", "canary-after")
    assert samples[:3] == tuple(
        Sample(
            phase="canary-after",
            operation="canary",
            metric="canary_cpu",
            statistic=statistic,
            value=value,
            host="server-2",
        )
        for statistic, value in (("p50", 2.5), ("min", 1.0), ("max", 10.0))
    )
    assert len(samples) == 12


def test_a_host_without_python_is_named(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match=r"failed on local: .*no-such-python"):
        run_canary(LocalHost(), str(tmp_path), "canary-before", "no-such-python")


@pytest.mark.slow
def test_work_that_fails_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StepFailed, match=r"canary failed on local: python3 ended with exit 1: .*Error"):
        run_canary(LocalHost(), str(tmp_path / "file" / "below"), "canary-before")
