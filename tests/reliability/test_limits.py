"""What is read of others is bounded: each limit is tried at it, one above it, and far above it.

One table of readers. Each try is a process of its own, so that its memory is its own, and a limit is
taken from the product: one that is changed there is tried as it is. What is above a limit is refused in
words and in little memory. What is at the limit is the worst that was found for its reader: it is read,
or refused for another reason. Times are figures, and decide nothing.
"""

import json
import random
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree

import pytest
from budget import EFFORT
from git_repository import CONFIGS, GitRepository
from mutations import LONGEST_LINE, MOST_LINES, run_bounded
from test_hostile_bundles import head as histogram_head
from test_hostile_bundles import pack as pack_histogram

from analysis.comparing import results
from analysis.detection import series_file
from analysis.orchestration import detector_cache
from perf.config import revisions, variants
from perf.config.checks import systems
from perf.history import bundle, importing
from perf.history.importers.formats import FORMATS
from perf.jobs import plans
from perf.load import spec
from perf.local import document, hlog, plain_files
from perf.model import histograms
from perf.systems import credentials
from reports.commands import answer
from reports.notifications import notifications_file, sent_log
from reports.pull_requests import artifact

LITTLE_MB = 300
"""What refusing may take, Python and its packages included: these alone take up to 190 MB."""
MUCH_MB = 3 * 1024
"""Address space of each try: what is read at a limit fits in there."""
TOO_LARGE = r"it has \d+ bytes, and at most \d+ are read"
AS_NONE = "as none"
"""What is said of a file that is not refused, but read anew from its sources."""
Make = Callable[[Path, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Something that reads what others wrote.

    `make(place, n)` makes what has n of the limited. `of` is the product's function, `how` calls it as
    `read`, of `path`. `refusal` is how the text begins to match that refuses what is above the limit.
    """

    limit: int
    make: Make
    of: str
    how: str = "read(path)"
    refusal: str = TOO_LARGE
    file: str = "file"
    far: int = 0
    is_dear: bool = False
    """At the limit it takes long, or gigabytes: only tried there with some effort."""


def fill(head: str, part: str = "", tail: str = "") -> Make:
    """Return what makes a file of n bytes: a head, parts, a tail; where it is sparse, of n zeros."""

    def make(path: Path, size: int) -> None:
        with path.open("wb") as file:
            # Too large a file is never looked into, and takes no time to make.
            if part and size <= 300 * 1024**2:
                count = (size - len(head) - len(tail)) // len(part)
                content = (head + part * count + tail).encode()
                file.write(content.ljust(size))
            else:
                file.write(head.encode())
                file.truncate(size)

    return make


def repository(make: Make) -> Make:
    """Return what makes a git repository with a head, in whose work tree something was made."""

    def make_all(place: Path, count: int) -> None:
        repository = GitRepository(place)
        repository.branch("topic")
        make(place / "configs", count)
        repository.commit("head")

    return make_all


def make_files(root: Path, count: int) -> None:
    there = sum(path.is_file() for path in root.rglob("*"))
    for number in range(count - there):
        (root / f"{number}.txt").touch()


def make_bytes(root: Path, size: int) -> None:
    there = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    (root / "large.txt").write_bytes(b"x" * (size - there))


def make_parts(root: Path, count: int) -> None:
    """Fill suites with as many values, in files as large as is read."""
    contents = [path.read_bytes() for path in root.rglob("*.yaml")]
    left = count - sum(content.count(part) for content in contents for part in revisions._PARTS)  # noqa: SLF001
    number = 0
    while left > 0:
        some = min(left, 100_000)
        (root / f"suites/many-{number}.yaml").write_text("[" + "1," * (some - 1))
        left, number = left - some, number + 1


def make_experiments(root: Path, count: int) -> None:
    line = "  - {{name: a-{}, system: fake, config: default, topology: three, workload: tiny-write, releases: ['1.0.0']}}\n"  # noqa: E501  a line of a suite
    left = count - sum(path.read_text().count("- {name") for path in root.glob("suites/*.yaml"))
    for number in range(0, left, 1000):
        lines = "".join(map(line.format, range(number, min(left, number + 1000))))
        top = f"name: many-{number}\ndescription: Made up.\ntestbed: loop\nexperiments:\n"
        (root / f"suites/many-{number}.yaml").write_text(top + lines)


def make_variants(root: Path, count: int) -> None:
    copytree(CONFIGS, root)
    lines = "".join(f"  v{number}: {{description: d}}\n" for number in range(count))
    with (root / "workloads/blink.yaml").open("a") as file:
        file.write(f"variants:\n{lines}")


def make_settings(root: Path, count: int) -> None:
    copytree(CONFIGS, root)
    lines = "".join(f"  s{number}: 1\n" for number in range(count))
    top = "name: many\nsystem: fake\ndescription: Made up.\nsettings:\n"
    (root / "systems/fake/many.yaml").write_text(top + lines)


def write(text: Callable[[int], str]) -> Make:
    """Return what makes a file of what a number is turned into."""
    return lambda path, count: (path.write_text(text(count)), None)[1]


def alias(count: int) -> str:
    """Return lists of which each holds the one before nine times; the first is a plain value."""
    laughs = (f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, count))
    return "l0: " + ("&l0 " if count else "") + "[1]\n" + "".join(laughs)


def merge(count: int) -> str:
    return f"a: {'&a ' if count else ''}{{x: 1}}\n" + "b: {<<: *a}\n" * count


def make_log(path: Path, size: int) -> None:
    """Write the head of a log and one line of so many bytes, its end included."""
    hlog.write_hlog(path, [])
    with path.open("a") as file:
        file.write("x" * (size - 1) + "\n")


def make_long_log(path: Path, size: int) -> None:
    hlog.write_hlog(path, [])
    with path.open("r+b") as file:
        file.truncate(size)


def make_facts(path: Path, count: int) -> None:
    names = "".join(f",c{number}" for number in range(count))
    path.write_text(f"time,metric,value{names}\n2026-01-01,score,1{',1' * count}\n")


def make_zip(path: Path, *contents: tuple[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents:
            archive.writestr(name, content)


def make_members(path: Path, count: int) -> None:
    make_zip(path, (artifact.MEMBER, b"{}"), *((f"{number}", b"") for number in range(count - 1)))


def make_member(path: Path, size: int) -> None:
    """Zip so many bytes, as well as figures can be packed; far too many of them are zeros."""
    generator = random.Random(1)  # noqa: S311  test data, not a secret
    # Repeated too far apart for a zip to see it.
    figures = bytes(generator.choices(b"01", k=100_000))
    is_far = size > results.MOST_BYTES + 1
    content = b"\0" * size if is_far else (figures * (size // len(figures) + 1))[:size]
    make_zip(path, (artifact.MEMBER, content))


WORST = {
    "csv": ("time,metric,value," + ",".join(f"c{n}" for n in range(100)), "\n0,score,1" + ",1" * 100),
    "json": ("", '{"time":0,"metric":"score","value":1}\n'),
    "pytest-benchmark": ('{"datetime":"2026-01-01","machine_info":{"a":[1', ",[]"),
    "latte": ('{"result":[1', ",[]"),
    "ycsb": ("", "[a], b, 1\n"),
    "tsbs": ("", "\n"),
    "cassandra-stress": ("", "Results:\n"),
    "hdr": ("", "x\n"),
}
"""How the worst file of each kind begins, and what it repeats."""
IMPORT = "read(DataPaths(path.parent / 'var'), FORMATS['{}'], [path], naming=Naming({}), report=str)"


def make_import(kind: str) -> Reader:
    head, part = WORST[kind]
    return Reader(
        limit=FORMATS[kind].most_bytes,
        make=fill(head, part),
        of="perf.history.importing.import_files",
        how=IMPORT.format(kind, ""),
        is_dear=True,
    )


REVISION = "read(find_repository(path), find_span(path, 'main', 'topic'), 'configs')"
YAML = "refuse(read(path).problems)"
READERS = {
    "files of a revision": Reader(
        limit=revisions.MOST_FILES,
        make=repository(make_files),
        of="perf.config.revisions.load_revisions",
        how=REVISION,
        refusal="has more than 1,000 files",
    ),
    "bytes of a revision": Reader(
        limit=revisions.MOST_BYTES,
        make=repository(make_bytes),
        of="perf.config.revisions.load_revisions",
        how=REVISION,
        refusal="holds more than 2 MiB",
    ),
    "values of a revision": Reader(
        limit=revisions.MOST_PARTS,
        make=repository(make_parts),
        of="perf.config.revisions.load_revisions",
        how=REVISION,
        refusal="has more than 100,000 commas, colons, brackets and lines",
        far=8 * revisions.MOST_PARTS,
    ),
    "experiments of a revision": Reader(
        limit=revisions.MOST_EXPERIMENTS,
        make=repository(make_experiments),
        of="perf.config.revisions.load_revisions",
        how=REVISION,
        refusal="has more than 500 experiments",
    ),
    "variants of a workload": Reader(
        limit=variants.MOST_VARIANTS,
        make=make_variants,
        of="perf.config.catalog.load_catalog",
        refusal=r"has [\d,]+ variants, and at most 100 are read",
        far=90 * variants.MOST_VARIANTS,
    ),
    "settings of a config": Reader(
        limit=systems.MOST_SETTINGS,
        make=make_settings,
        of="perf.config.catalog.load_catalog",
        refusal=r"has [\d,]+ values, and at most 1,000 are taken",
        far=20 * systems.MOST_SETTINGS,
    ),
    "bytes of YAML": Reader(
        limit=document.MAX_BYTES,
        make=fill("a: [1", ",1", "]"),
        of="perf.local.document.read_document",
        how=YAML,
    ),
    "levels of YAML": Reader(
        limit=document.MAX_DEPTH,
        make=write(lambda levels: "[" * (levels + 1) + "]" * (levels + 1)),
        of="perf.local.document.read_document",
        how=YAML,
        refusal="nested deeper than 50 levels",
        far=100_000,
    ),
    "aliases of YAML": Reader(
        limit=0,
        make=write(alias),
        of="perf.local.document.read_document",
        how=YAML,
        refusal="uses the anchor or alias",
        far=1_000,
    ),
    "merge keys of YAML": Reader(
        limit=0,
        make=write(merge),
        of="perf.local.document.read_document",
        how=YAML,
        refusal="uses the anchor or alias",
        far=10_000,
    ),
    "manifest.json": Reader(
        limit=bundle.MOST_MANIFEST_BYTES,
        make=fill('{"schema_version":2,"files":[1', ",[]", "]}"),
        of="perf.history.bundle._read_manifest",
        how="read(path.parent)",
        file=bundle.MANIFEST,
    ),
    "trial.json": Reader(
        limit=bundle.MOST_TRIAL_BYTES,
        make=fill('{"schema_version":2,"trial":[1', ",[]", "]}"),
        of="perf.history.bundle._read_trial",
        file=bundle.TRIAL,
        is_dear=True,
    ),
    "bytes of intervals.hlog": Reader(
        limit=hlog.MOST_BYTES, make=make_long_log, of="perf.local.hlog.read_hlog"
    ),
    "a line of intervals.hlog": Reader(
        limit=hlog.MOST_LINE_BYTES - 1,
        make=make_log,
        of="perf.local.hlog.read_hlog",
        refusal="the line has 4194304 bytes or more",
    ),
    "a histogram, unpacked": Reader(
        limit=histograms.MOST_BYTES,
        make=write(lambda size: pack_histogram(histogram_head(size) + b"\2" * size)),
        of="perf.model.histograms.decode",
        how="read(path.read_text())",
        refusal="its counts take more than 1920000 bytes",
        far=100_000_000,
    ),
    "values of JSON": Reader(
        limit=plain_files.MOST_PARTS,
        make=write(lambda parts: '{"trials":[1' + ",1" * (parts - 2) + "]}"),
        of="perf.jobs.plans.read_plan",
        how="read(path, TypeAdapter(Night), 'a night')",
        refusal=r"it has [\d,]+ commas and brackets, and at most 1,000,000 are read",
        far=8 * plain_files.MOST_PARTS,
    ),
    "plan of a night": Reader(
        limit=plans.MOST_BYTES,
        make=fill('{"id":"a","trials":[1', ",[]", "]}"),
        of="perf.jobs.plans.read_plan",
        how="read(path, TypeAdapter(Night), 'a night')",
    ),
    "result.json of an engine": Reader(
        limit=spec.MOST_RESULT_BYTES,
        make=fill('{"engine_index":0,"counters":[1', ",[]", "]}"),
        of="perf.load.spec.read_result",
    ),
    "certificate": Reader(
        limit=credentials._MOST_BYTES,  # noqa: SLF001  the product's own
        make=fill("", "x"),
        of="perf.systems.credentials._read",
        how="read('tls.ca_file', str(path))",
        refusal="is larger than",
    ),
    **{f"import of {kind}": make_import(kind) for kind in WORST},
    "settings of an import": Reader(
        limit=importing._MOST_FACTS,  # noqa: SLF001  the product's own
        make=make_facts,
        of="perf.history.importing.import_files",
        how=IMPORT.format("csv", "system='db', release='1', workload='w'"),
        refusal="at most 5,000 are kept",
    ),
    "series for detect": Reader(
        limit=series_file.MOST_BYTES,
        make=fill('{"series":[{"name":"a","better":"lower","values":[1', ",null", "]}]}"),
        of="analysis.commands.backtest._read",
        is_dear=True,
    ),
    "readings.json": Reader(
        limit=detector_cache.MOST_BYTES,
        make=fill("x\n"),
        of="analysis.orchestration.detector_cache.read_file",
        how="read(path, 'method') or refuse(['as none'])",
        refusal=AS_NONE,
    ),
    "bytes of an artifact": Reader(
        limit=artifact.MOST_ZIPPED_BYTES,
        make=fill("PK"),
        of="reports.pull_requests.artifact.read_artifact",
    ),
    "members of an artifact": Reader(
        limit=artifact._MOST_MEMBERS,  # noqa: SLF001  the product's own
        make=make_members,
        of="reports.pull_requests.artifact.read_artifact",
        refusal=r"the artifact has \d+ members",
        far=60_000,
    ),
    "comparison.json of an artifact": Reader(
        limit=results.MOST_BYTES,
        make=make_member,
        of="reports.pull_requests.artifact.read_artifact",
        refusal="a comparison has at most 20000000",
        far=200_000_000,
    ),
    "parts of a comparison": Reader(
        limit=results._MOST_PARTS,  # noqa: SLF001  the product's own
        make=write(lambda parts: '{"changes":[1' + ",1" * (parts - 2) + "]}"),
        of="analysis.comparing.results.read_comparisons",
        how="read(path.read_bytes(), path)",
        refusal="a comparison has at most 2000000",
        is_dear=True,
        far=9_000_000,
    ),
    "event": Reader(
        limit=answer._MOST_BYTES,  # noqa: SLF001  the product's own
        make=fill('{"action":[1', ",[]", "]}"),
        of="reports.commands.answer._read_event",
    ),
    "notices": Reader(
        limit=notifications_file.MOST_BYTES,
        make=fill('{"notices":[1', ",[]", "]}"),
        of="reports.notifications.notifications_file.read_notifications",
    ),
    "sent log": Reader(
        limit=sent_log._MOST_BYTES,  # noqa: SLF001  the product's own
        make=fill('{"format":1,"incidents":[1', ",[]", "]}"),
        of="reports.notifications.sent_log.SentLog",
    ),
}  # fmt: skip
_READ = """
import json, sys, time
from importlib import import_module
from pathlib import Path
from perf.model.errors import ConfigError, KnickpointError

def refuse(problems):
    if problems:
        raise ConfigError(problems)

module, _, name = sys.argv[1].rpartition(".")
read, path = getattr(import_module(module), name), Path(sys.argv[3])
if "find_span" in sys.argv[2]:
    from perf.config.revisions import find_repository, find_span
if "Naming" in sys.argv[2]:
    from perf.history.importers.formats import FORMATS
    from perf.history.importers.run import Naming
    from perf.local.paths import DataPaths
if "Night" in sys.argv[2]:
    from pydantic import TypeAdapter
    from perf.model.nights import Night
began = time.monotonic()
try:
    eval(sys.argv[2])
    said = ""
except (KnickpointError, ValueError, OSError) as error:
    said = str(error)
seconds = time.monotonic() - began
# Not that of `resource`, which begins with the memory of whoever started this process.
(peak_kb,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([said, seconds, int(peak_kb) // 1024]))
"""


def list_cases() -> list[tuple[str, str]]:
    """Return what is tried: at dear limits with some effort only, above what is one check only once."""
    checks = {(one.of, one.limit): name for name, one in reversed(READERS.items())}
    return [
        (name, where)
        for name, one in READERS.items()
        for where in ("at", "above", "far above")
        if (checks[one.of, one.limit] == name if where != "at" else EFFORT or not one.is_dear)
    ]


@pytest.mark.slow
@pytest.mark.keeps("limits-hold")
@pytest.mark.parametrize(("name", "where"), list_cases())
def test_what_is_above_a_limit_is_refused_in_words_and_little_memory(
    name: str, where: str, tmp_path: Path, figures: dict[str, object]
) -> None:
    reader = READERS[name]
    far = reader.far or 10 * reader.limit
    count = {"at": reader.limit, "above": reader.limit + 1, "far above": far}[where]
    path = tmp_path / reader.file
    reader.make(path, count)
    ended = run_bounded(_READ, reader.of, reader.how, path, memory_mb=MUCH_MB, seconds=280)
    assert ended.returncode == 0, ended.stderr[-2000:]
    said, seconds, peak_mb = json.loads(ended.stdout)
    lines = said.split("\n")
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= LONGEST_LINE
    is_refused = bool(re.search(reader.refusal, said))
    if where == "at":
        assert not is_refused or reader.refusal == AS_NONE, said
    else:
        assert is_refused, said or "it was read"
        assert peak_mb <= LITTLE_MB
    figures[f"{name}, {where}: {count:,}"] = f"{seconds:.2f} s, {peak_mb} MB"
