"""Adding entries to triage.yaml: the rest of the file stays as a person wrote it."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from perf.config.catalog import read_triage
from perf.config.triage_file import add_entries
from perf.model.errors import ConfigError
from perf.model.rules import TriageEntry, TriageState

SHIPPED = Path(__file__).parents[3] / "configs" / "triage.yaml"
ENTRY = TriageEntry(
    name="12345678",
    state=TriageState.ACKNOWLEDGED,
    system="cassandra",
    line="5.0",
    metric="throughput",
    sign="drop",
    from_release="5.0.4",
    to_release="5.0.5",
    owner="storage",
    note="New commit log: see #12.",
    expires=date(2026, 12, 31),
)
WRITTEN = """\
  - name: '12345678'
    state: acknowledged
    system: cassandra
    line: "5.0"
    metric: throughput
    sign: drop
    from_release: "5.0.4"
    to_release: "5.0.5"
    owner: storage
    note: 'New commit log: see #12.'
    expires: "2026-12-31"
"""
OTHERS = """\
# Decided in the weekly round.

entries:
  # The first of all.
  - name: zero   # kept for reference
    system: 'cassandra'
    line: "4.1"
    state: expected
    sign: rise
    to_night: "2026-03-01"
    owner: storage
    note: >-
      Folded over
      two lines, and one of them is so long that a program which rewrites files would like to break it.

  - {name: brief, system: x, line: y, state: testbed, sign: drop, to_night: "2026-04-01", owner: o, note: n}
"""  # noqa: E501  one line, as somebody would write it


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "triage.yaml"


def read(path: Path) -> tuple[TriageEntry, ...]:
    problems: list[str] = []
    entries = read_triage(path, problems)
    assert problems == []
    return entries


def test_the_shipped_file_gets_its_first_entry_below_its_comments(path: Path) -> None:
    text = SHIPPED.read_text()
    assert text.endswith("entries: []\n")
    path.write_text(text)
    added = add_entries(path, [ENTRY])
    assert path.read_text() == text.replace("entries: []\n", "entries:\n") + WRITTEN
    assert added == WRITTEN
    assert read(path) == (ENTRY,)


def test_a_missing_file_is_made(path: Path) -> None:
    add_entries(path, [ENTRY])
    assert path.read_text() == "entries:\n" + WRITTEN


def test_comments_order_and_spelling_of_other_entries_stay(path: Path) -> None:
    path.write_text(OTHERS)
    path.chmod(0o640)
    add_entries(path, [ENTRY, replace(ENTRY, name="more", sign="rise")])
    assert path.read_text().startswith(OTHERS + WRITTEN + "  - name: more\n")
    assert path.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in read(path)] == ["zero", "brief", "12345678", "more"]
    assert [one.name for one in path.parent.iterdir()] == ["triage.yaml"]


@pytest.mark.parametrize(
    ("entry", "answer"),
    [
        (replace(ENTRY, sign="rise"), "there is an entry '12345678' already"),
        (
            replace(ENTRY, name="new"),
            "the entry '12345678' is about the same changes as 'new' would be",
        ),
        (
            replace(ENTRY, name="new", sign="rise", expires=None),
            "expires of the entry 'new' is missing",
        ),
        (replace(ENTRY, name="No Name", sign="rise"), "cannot be added without changing the rest"),
    ],
)
def test_what_cannot_be_added_leaves_the_file_alone(
    path: Path, entry: TriageEntry, answer: str
) -> None:
    add_entries(path, [ENTRY])
    before = path.read_bytes()
    with pytest.raises(ConfigError) as caught:
        add_entries(path, [entry])
    assert answer in caught.value.problems[0]
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == ["triage.yaml"]


def test_a_file_that_is_wrong_is_not_touched(path: Path) -> None:
    path.write_text(OTHERS.replace("state: expected", "state: hoped"))
    with pytest.raises(ConfigError, match=r"state is .hoped."):
        add_entries(path, [ENTRY])
    assert ENTRY.name not in path.read_text()


def test_a_link_to_the_file_stays_a_link(path: Path) -> None:
    real = path.with_name("elsewhere.yaml")
    real.write_text(OTHERS)
    path.symlink_to(real)
    add_entries(path, [ENTRY])
    assert path.is_symlink()
    assert real.read_text() == OTHERS + WRITTEN
