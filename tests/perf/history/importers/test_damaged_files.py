"""Damaged files are refused in words or read; nothing else comes out of an importer."""

import random
from pathlib import Path

import pytest

from perf.history.importers.formats import FORMATS
from perf.history.importers.run import File, Hints, Unreadable

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
            FORMATS[KINDS[name]].read(File(name="file", text=text), Hints())
        except Unreadable as error:
            said += error.problems
            refused += 1
    assert refused > 0
    assert [problem for problem in said if not problem.startswith("file")] == []
