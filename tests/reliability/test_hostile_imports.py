"""`history import` of broken and hostile files: read as they are, or refused with nothing written."""

import contextlib
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutations import (
    NO_FILES,
    broken_bytes,
    broken_documents,
    is_well_told,
    offer,
    put_in_place,
    within,
)

from perf.history import bundle
from perf.history.importers.formats import FORMATS
from perf.history.importers.run import File, Naming, Unreadable, parse_number
from perf.history.importing import import_files
from perf.history.store import open_history, rebuild
from perf.local.paths import DataPaths
from perf.model.errors import UsageError

IMPORTS = Path(__file__).parents[1] / "data" / "imports"
KINDS = {
    path.name: {".hdr": "hdr", ".csv": "csv", ".json": "json"}.get(path.suffix, "")
    for path in sorted(IMPORTS.iterdir())
} | {
    "cassandra-stress-old.txt": "cassandra-stress",
    "cassandra-stress.txt": "cassandra-stress",
    "latte.json": "latte",
    "pytest-benchmark.json": "pytest-benchmark",
    "tsbs-load.txt": "tsbs",
    "tsbs-queries-mislabelled.txt": "tsbs",
    "tsbs-queries.txt": "tsbs",
    "ycsb-new.txt": "ycsb",
    "ycsb-old.txt": "ycsb",
}
NAMING = Naming(system="db", release="5.0.4", workload="mixed")
_WORDS = "1e999 -1e999 NaN Infinity 1e308 -0 1_000 1,234.5 ٣ 9.9.9 . + 0x1F -1 20260213 [ ] Tag= min:"
ODD = (
    *_WORDS.split(),
    *(
        "9" * 30,
        "9" * 5000,
        "",
        " ",
        "\x00",
        "\x1b[2J",
        "\u202eevil",
        "\u2028",
        "a" * 5000,
        '"',
        '""\n',
    ),
    *("9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "1969-12-31T23:59:59Z"),
    *("=cmd|' /c calc'!A1", "<script>alert(1)</script>", "count: 1"),
)
_TOKEN = re.compile(r"[\w.+-]+|[^\w\s]")


@st.composite
def broken_texts(draw: st.DrawFn, sound: str) -> bytes:
    """Return a text in which one to four words are others, or are gone, or lines are there twice."""
    text = sound
    for _ in range(draw(st.integers(1, 4))):
        tokens = list(_TOKEN.finditer(text))
        if not tokens:
            break
        token = draw(st.sampled_from(tokens))
        text = text[: token.start()] + draw(st.sampled_from(ODD)) + text[token.end() :]
        if draw(st.integers(0, 4)) == 0:
            lines = text.split("\n")
            lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from(lines)))
            text = "\n".join(lines)
    return text.encode("utf-8", "surrogatepass")


def broken(name: str) -> st.SearchStrategy[bytes]:
    """Return broken files of this sound one."""
    sound = (IMPORTS / name).read_bytes()
    texts = broken_texts(sound.decode()) | broken_bytes(sound)
    return texts | broken_documents(json.loads(sound)) if name.endswith(".json") else texts


def import_one(home: Path, kind: str, content: bytes, naming: Naming) -> None:
    """Import a file, and hold the import to what is promised."""
    file, paths = home / "results", DataPaths(home / "var")
    file.write_bytes(content)
    try:
        done = import_files(paths, FORMATS[kind], [file], naming=naming, report=lambda _text: None)
    except UsageError:
        assert not paths.data.exists(), "something was written"
        raise
    assert done.series > 0
    with open_history(paths.history, read_only=True) as history:
        digest = history.tables_digest()
        kept = {sample for trial in history.trials() for sample in trial.samples}
    read = {sample for path in bundle.find(paths) for sample in bundle.read(path)[0].samples}
    assert kept == read, "the history differs from the bundles"
    assert all(math.isfinite(sample.value) for sample in kept)
    paths.history.unlink()
    assert not rebuild(paths.history, bundle.find(paths), lambda _text: None).bad
    with open_history(paths.history, read_only=True) as history:
        assert history.tables_digest() == digest


@pytest.mark.slow
@pytest.mark.keeps("imports-whole-or-not-at-all")
@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_broken_file_is_imported_as_it_reads_or_refused_with_nothing_written(
    name: str,
    tmp_path_factory: pytest.TempPathFactory,
    effort: Callable[[int, int], int],
    figures: dict[str, object],
) -> None:
    def take(broken: tuple[bytes, str | None]) -> None:
        content, unit = broken
        naming = replace(NAMING, times="duration", unit=unit) if unit else NAMING
        import_one(tmp_path_factory.mktemp("home"), KINDS[name], content, naming)

    inputs = st.tuples(broken(name), st.sampled_from([None, "us", "s"]))
    figures[name] = offer(inputs, take, UsageError, effort(2, 20), "results", seconds=20)


CSV = "time,metric,value,{}\n2026-01-01,score,1,{}\n"
ROW = '{{"time": "2026-01-01", "metric": "score", "value": 1, {}}}'
LATTE = json.loads((IMPORTS / "latte.json").read_bytes())
LATTE["result"]["cycle_latency_by_fn"] = {"cycle": LATTE["result"]["cycle_latency"]}
STRESS = (IMPORTS / "cassandra-stress.txt").read_text(encoding="utf-8")
LOG = (IMPORTS / "cassandra-stress.hdr").read_text(encoding="utf-8")


@pytest.mark.keeps("imports-whole-or-not-at-all")
@pytest.mark.parametrize(
    ("kind", "content", "why"),
    [
        ("csv", CSV.format("ordinal", "9" * 30), "line 2: ordinal: .* less than or equal"),
        ("csv", CSV.format("iteration", 2**31), "line 2: iteration: .* less than or equal"),
        ("csv", CSV.format("x", 1).replace("2026-01-01", "20260101"), "a date or seconds since 1970"),
        ("csv", CSV.format("x", 1).replace("score,1", "score,1_0"), "value: it must be a number"),
        ("csv", CSV.format("\x1b[2J,\x1b[2J", "1,2"), r"two columns \\x1b\[2J"),
        ("csv", CSV.format("operation", "x" * 1001), "more than 1000 characters"),
        ("csv", "time,metric,value\n" + "x,y,z\n" * 100_000, "1,001 problems"),
        (
            "csv",
            f"time,metric,value{''.join(f',c{n}' for n in range(5001))}\n0,score,1{',1' * 5001}\n",
            "at most 5,000 are kept",
        ),
        ("json", ROW.format('"x": "\\ud800"'), "setting x holds half of a character"),
        ("json", ROW.format('"value": 2'), "line 1: the key 'value' is written twice"),
        ("json", ROW.format('"value": true').replace('"value": 1, ', ""), "value: it must be a number"),
        ("json", ROW.format('"x": ' + "[" * 100_000), "nested too deeply"),
        ("json", "[" * 100_000, "nested too deeply"),
        ("json", '"' + "x" * 1_000_000 + '"', "a row must be an object"),
        ("pytest-benchmark", '{"datetime": "2026-01-01", "benchmarks": []}', "it has no values"),
        ("latte", json.dumps(LATTE), "a function of the workload is called cycle"),
        ("cassandra-stress", STRESS.replace("Results:", "Results:\nReal op rate : 5 op/s"), "2 times"),
        ("hdr", LOG + "Tag=a-rt,1,1,1," + "A" * 1_000_000, "line .*: the histogram cannot be decoded"),
    ],
    ids=range(18),
)
def test_what_cannot_be_kept_is_said_before_anything_is_written(
    kind: str, content: str, why: str, tmp_path: Path
) -> None:
    paths, file = DataPaths(tmp_path / "var"), tmp_path / "results"
    sound = tmp_path / "sound"
    sound.write_bytes((IMPORTS / "results.csv").read_bytes())
    file.write_text(content, encoding="utf-8")
    files = [sound, file] if kind == "csv" else [file]
    with within(20), pytest.raises(UsageError, match=why) as caught:
        import_files(paths, FORMATS[kind], files, naming=NAMING, report=lambda _text: None)
    assert is_well_told(caught.value, file)
    assert not paths.data.exists()


@pytest.mark.keeps("imports-whole-or-not-at-all")
def test_two_times_that_an_option_makes_one_are_not_mixed(tmp_path: Path) -> None:
    file = tmp_path / "log.hdr"
    file.write_text(LOG, encoding="utf-8")
    with pytest.raises(UsageError, match="would be one operation of one kind of time"):
        import_files(
            DataPaths(tmp_path / "var"),
            FORMATS["hdr"],
            [file],
            naming=replace(NAMING, times="response_time"),
            report=lambda _text: None,
        )


@pytest.mark.keeps("imports-whole-or-not-at-all")
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "results"
    put_in_place(path, kind)
    with within(20), pytest.raises((UsageError, OSError)) as caught:
        import_files(
            DataPaths(tmp_path / "var"),
            FORMATS["csv"],
            [path],
            naming=NAMING,
            report=lambda _text: None,
        )
    assert is_well_told(caught.value, path)
    assert not (tmp_path / "var").exists()


LONG = 300_000
LINES = {
    "cassandra-stress": (
        *("a" + " " * LONG, "Op rate : 1 op/s [" + "a" * LONG, "Op rate : " + "1" * LONG),
        *("a:" * LONG, "Op rate : 1 [" + "]" * LONG, "Op rate : 1" + " " * LONG + "x"),
    ),
    "ycsb": ("[a]," + " " * LONG + "x", "[" * LONG, "[a], " + "b" * LONG, "[READ], " + "9" * LONG),
    "tsbs": ("min:" * LONG, ":" * LONG, "x: min:" + "a" * LONG + " count: 1", "x: min:" + "a:" * LONG),
    "hdr": ("Tag=" + "," * LONG, "1,1,1," + " " * LONG, "#[StartTime: " + "1" * LONG),
}
SOUND = {"cassandra-stress": STRESS, "hdr": LOG} | {
    kind: (IMPORTS / name).read_text(encoding="utf-8")
    for kind, name in (("ycsb", "ycsb-new.txt"), ("tsbs", "tsbs-queries.txt"))
}


@pytest.mark.keeps("imports-whole-or-not-at-all")
@pytest.mark.parametrize("kind", sorted(LINES))
def test_a_line_however_long_takes_no_longer_than_its_length(kind: str) -> None:
    """Once a line of 200 kB took hours: the time grew with its square."""
    for line in LINES[kind]:
        text = SOUND[kind].replace("Results:\n", f"Results:\n{line}\n", 1).rstrip("\n") + f"\n{line}\n"
        with within(10), contextlib.suppress(Unreadable):
            FORMATS[kind].read(File(name="file", text=text))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_that_was_printed_is_read_to_the_last_bit(value: float) -> None:
    assert parse_number(repr(value)) == value
    assert parse_number(f"{value:.17e}") == value
