"""Damaged files are refused in words or read; nothing else comes out of an importer."""

import random
import re
from pathlib import Path

import pytest

from perf.history.importers.formats import FORMATS
from perf.history.importers.run import File, Unreadable

IMPORTS = Path(__file__).parents[3] / "data" / "imports"
KINDS = {
    "cassandra-stress-old.txt": "cassandra-stress",
    "cassandra-stress.hdr": "hdr",
    "cassandra-stress.txt": "cassandra-stress",
    "latte.json": "latte",
    "pytest-benchmark.json": "pytest-benchmark",
    "results.csv": "csv",
    "results.json": "json",
    "tsbs-load.txt": "tsbs",
    "tsbs-queries-mislabelled.txt": "tsbs",
    "tsbs-queries.txt": "tsbs",
    "ycsb-Intended-READ.hdr": "hdr",
    "ycsb-new.txt": "ycsb",
    "ycsb-old.txt": "ycsb",
}
DAMAGE = ("", "0", ",", "-", "NaN", "\x00", "\n", '"', "[", "{}", "é", "1e999", "null", "9" * 12)


def test_all_samples_are_there() -> None:
    assert {path.name for path in IMPORTS.iterdir()} == set(KINDS)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_damaged_file_is_refused_in_words_or_read(name: str) -> None:
    generator = random.Random(name)  # noqa: S311  test data, not a secret
    sound = (IMPORTS / name).read_text(encoding="utf-8")
    said: list[str] = []
    refused = 0
    for _ in range(20):
        text = sound
        for _ in range(generator.randint(1, 3)):
            start = generator.randrange(len(text) + 1)
            end = start + generator.choice((1, 1, 5, 50, len(text)))
            text = text[:start] + generator.choice(DAMAGE) + text[end:]
        try:
            FORMATS[KINDS[name]].read(File(name="file", text=text))
        except Unreadable as error:
            said += error.problems
            refused += 1
    assert refused > 0
    assert [problem for problem in said if not problem.startswith("file")] == []


@pytest.mark.parametrize("start", ["1.2.3", ".", "1" * 400])
def test_a_damaged_start_in_the_head_of_a_log_is_refused_in_words_or_read(start: str) -> None:
    sound = (IMPORTS / "cassandra-stress.hdr").read_text(encoding="utf-8")
    text = re.sub(r"StartTime: *[\d.]+", f"StartTime: {start}", sound)
    assert text != sound
    problems: tuple[str, ...] = ()
    try:
        FORMATS["hdr"].read(File(name="file", text=text))
    except Unreadable as error:
        problems = error.problems
    assert [problem for problem in problems if not problem.startswith("file, line ")] == []


@pytest.mark.parametrize("start", ["253402300797", "253402300799.9"])
def test_an_interval_that_ends_with_the_year_9999_or_after_is_refused(start: str) -> None:
    sound = (IMPORTS / "cassandra-stress.hdr").read_text(encoding="utf-8")
    text = re.sub(r"StartTime: *[\d.]+", f"BaseTime: {start}", sound)
    with pytest.raises(Unreadable, match="within the year 9999"):
        FORMATS["hdr"].read(File(name="file", text=text))
