"""Files that are put in place in one step, also by several at once."""

import multiprocessing
from pathlib import Path

import pytest

from perf.local import durable

CONTENTS = [bytes([65 + number]) * (50_000 + 20_000 * number) for number in range(4)]
_FORK = multiprocessing.get_context("fork")


def write_often(path: Path, content: bytes) -> None:
    for _ in range(50):
        durable.atomic_write(path, content)


def test_of_several_at_once_each_puts_its_own_content_in_place(tmp_path: Path) -> None:
    path = tmp_path / "below" / "file.json"
    durable.atomic_write(path, CONTENTS[0])
    writers = [_FORK.Process(target=write_often, args=(path, content)) for content in CONTENTS]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert path.read_bytes() in CONTENTS
    assert [writer.exitcode for writer in writers] == [0] * len(writers)
    assert path.read_bytes() in CONTENTS
    assert [*path.parent.iterdir()] == [path]


def test_what_a_killed_writer_left_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "file.json.new").write_text("half of something that was long")
    durable.atomic_write(tmp_path / "file.json", b"{}")
    assert (tmp_path / "file.json").read_bytes() == b"{}"
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]


def test_what_is_in_the_way_is_reported_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "file.json").mkdir()
    with pytest.raises(IsADirectoryError):
        durable.atomic_write(tmp_path / "file.json", b"{}")
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]
