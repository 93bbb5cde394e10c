"""A build of Cassandra that was made slow on purpose, from its archive to the comment on GitHub."""

import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from github_contract import install, prism, read_examples
from github_server import TOKEN, GitHub, serve
from origin import SHORT, WIDE, replace

from analysis.comparing.results import Revision, read_comparisons
from analysis.detection.verdict import Outcome
from perf.local.paths import DataPaths, cache_dir
from perf.releases.artifacts import fetch, find_release
from perf.systems import registry
from reports.commands.candidate import COMMENT, COMPARISON

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
ADDRESS = "127.0.0.67"  # which no other test has
COMMIT = "5109" * 10
RELEASE, NAME = "5.0.9", f"0.build.{COMMIT[:10]}"
WAIT_MS = 20
"""So long the slow build lets answers wait, and again, before it sends them."""
FLUSHER = "org/apache/cassandra/transport/Flusher$LegacyFlusher.class"
CONFIG = "org/apache/cassandra/config/Config.class"
PLANTED = {
    # eventLoop.schedule(this, 10000, TimeUnit.NANOSECONDS): the only long in that class.
    FLUSHER: (b"\x05" + struct.pack(">q", 10_000), b"\x05" + struct.pack(">q", WAIT_MS * 1_000_000)),
    # native_transport_flush_in_batches_legacy = false: aload_0, iconst_0, putfield; now iconst_1.
    CONFIG: (bytes.fromhex("2a03b50076"), bytes.fromhex("2a04b50076")),
}
"""By class: bytes of this release, and what they are altered to. No compiler is needed for that."""


def slow_down(library: Path, target: Path) -> None:
    """Copy a library of Cassandra in which answers are to wait."""
    with zipfile.ZipFile(library) as known, zipfile.ZipFile(target, "w") as made:
        for member in known.infolist():
            content = known.read(member)
            if member.filename in PLANTED:
                before, after = PLANTED[member.filename]
                assert content.count(before) == 1
                content = content.replace(before, after)
            made.writestr(member, content)


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """Return an archive of the libraries of the release, one of them altered."""
    cassandra = registry.load("cassandra")
    libraries = Path(fetch(cassandra, find_release(cassandra, RELEASE), report=print).location, "lib")
    altered = f"cassandra-all-{RELEASE}.jar"
    slow_down(libraries / altered, tmp_path / altered)
    path = tmp_path / "head.tar"
    with tarfile.open(path, "w", dereference=True) as archive:
        for library in sorted(libraries.iterdir()):
            kept = tmp_path / altered if library.name == altered else library
            archive.add(kept, f"head/lib/{library.name}")
    return path


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    """Return our configuration, with trials of seconds that any machine can do."""
    root = tmp_path / "configs"
    shutil.copytree(ROOT / "configs", root)
    replace(root / "testbeds/local.yaml", {"127.0.0.1": ADDRESS, **WIDE})
    replace(root / "workloads/sensor-write-short.yaml", SHORT)
    return root


def run(tmp_path: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    cache = tmp_path / "cache"
    cache.mkdir(exist_ok=True)
    for kept in ("java", "native"):
        if not (cache / kept).is_symlink():
            (cache / kept).symlink_to(cache_dir() / kept)
    return subprocess.run(
        [sys.executable, "-m", "perf.commands.main", *arguments],
        cwd=ROOT,
        env={**os.environ, "KNICKPOINT_CACHE": str(cache), **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
    )


def test_a_slow_build_is_found_and_told_to_its_pull_request(
    build: Path, configs: Path, tmp_path: Path
) -> None:
    paths, output = DataPaths(tmp_path / "var"), tmp_path / "result"
    asked = ("--build", str(build), "--against", RELEASE, "--commit", COMMIT, "--suite=single")
    places = (f"--configs={configs}", f"--data={paths.data}", f"--output={output}")
    measured = run(tmp_path, "candidate", *asked, "--trials=8", *places)
    assert measured.returncode == 1, measured.stdout + measured.stderr
    content = read_comparisons((output / COMPARISON).read_bytes(), output / COMPARISON)
    assert (content.outcome, content.problems) == (Outcome.REGRESSED, ())
    assert (content.base, content.head) == (None, Revision(ref=NAME, sha=COMMIT))
    (result,) = content.comparisons
    assert (result.baseline.version, result.candidate.version) == (RELEASE, NAME)
    assert result.defaults == ()
    throughput = result.measures[0]  # its p99 may stay undecided on a machine that others use as well
    assert (throughput.measure.metric, throughput.outcome) == ("throughput", Outcome.REGRESSED)
    assert throughput.before is not None
    assert throughput.after is not None
    # Sixteen at a time, each of which waits once at least.
    assert throughput.after < 16 / (WAIT_MS / 1000) < throughput.before
    trials = [json.loads(path.read_text())["trial"] for path in paths.trials.glob("*/trial.json")]
    ran = {(one["release"]["version"], one["artifact"]["source"]) for one in trials}
    assert ran == {(RELEASE, "maven"), (NAME, "build")}

    place = install()
    hub = GitHub(head=COMMIT, examples=read_examples(place))
    with serve(hub), prism(place, tmp_path / "prism.log", hub.url) as hub.url:
        told = run(
            tmp_path,
            *("comment", f"--comparison={output / COMPARISON}", "--repo=example/configs", "--pr=7"),
            f"--sha={COMMIT}",
            GITHUB_TOKEN=TOKEN,
            GITHUB_API_URL=hub.url,
        )
    assert told.returncode == 0, told.stdout + told.stderr
    (shown,) = hub.shown
    mark, _, said = shown.partition("\n")
    assert mark.startswith("<!-- knickpoint:candidate state=regressed ")
    assert said.rstrip() == (output / COMMENT).read_text().rstrip()
    assert said.startswith("### ❌ Regressed: action needed\n")
    (check,) = hub.runs.values()
    assert (check["head_sha"], check["conclusion"]) == (COMMIT, "failure")
