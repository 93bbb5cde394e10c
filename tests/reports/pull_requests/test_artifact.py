"""The zip of an artifact as hostile data: our one member or a refusal, and never a file."""

import struct
import warnings
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from budget import tries
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from analysis.comparing.results import MOST_BYTES
from perf.model.errors import InputError
from reports.pull_requests.artifact import MEMBER, MOST_ZIPPED_BYTES, read_artifact

CONTENT = b'{"schema_version": 1, "rows": [1, 2, 3]}'


def pack(*members: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that is there twice
        with zipfile.ZipFile(buffer, "w", method) as archive:
            for name, content in members:
                archive.writestr(name, content)
    return buffer.getvalue()


def read(tmp_path: Path, zipped: bytes) -> bytes:
    path = tmp_path / "artifact.zip"
    path.write_bytes(zipped)
    return read_artifact(path)


def special(mode: int, name: str = MEMBER) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


def patched(zipped: bytes, *, local: int, central: int, value: int, form: str = "<H") -> bytes:
    """Change a field of both headers of the one member."""
    raw = bytearray(zipped)
    start = raw.index(b"PK\x01\x02")
    struct.pack_into(form, raw, local, value)
    struct.pack_into(form, raw, start + central, value)
    return bytes(raw)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_our_member_is_read_and_no_other(tmp_path: Path, method: int) -> None:
    others = [
        (name, b"x") for name in ("../../comparison.json", "/comparison.json", "a/comparison.json")
    ]
    assert read(tmp_path, pack((MEMBER, CONTENT), *others, method=method)) == CONTENT
    assert sorted(one.name for one in tmp_path.iterdir()) == ["artifact.zip"]


ONE = pack((MEMBER, CONTENT), method=zipfile.ZIP_STORED)


@pytest.mark.parametrize(
    ("zipped", "why"),
    [
        (b"", "no zip"),
        (CONTENT, "no zip"),
        (ONE[:-30], "no zip"),
        (b"PK" * (MOST_ZIPPED_BYTES // 2 + 1), "at most 8388608 are read"),
        (pack(("comment.md", b"x")), "0 times"),
        (pack(("../comparison.json", CONTENT)), "0 times"),
        (pack(("Comparison.json", CONTENT)), "0 times"),
        (pack((f"{MEMBER}?.exe", CONTENT)).replace(b"?", b"\0"), "0 times"),
        (pack((MEMBER, CONTENT), (MEMBER, b"{}")), "2 times"),
        (pack((MEMBER, CONTENT), *((f"{n}", b"") for n in range(16))), "17 members"),
        (pack((special(0o120777), b"/etc/passwd")), "no plain file"),
        (pack((special(0o040755), b"")), "no plain file"),
        (pack((special(0o010644), b"")), "no plain file"),
        (patched(ONE, local=6, central=8, value=1), "encrypted"),
        (patched(ONE, local=8, central=10, value=99), "method"),
        (pack((MEMBER, CONTENT), method=zipfile.ZIP_LZMA), "method"),
        (pack((MEMBER, b" " * (MOST_BYTES + 1))), "at most"),
        (pack((MEMBER, b" " * 1_000_000)), "more than 200 times"),
        (patched(pack((MEMBER, b" " * 9000)), local=22, central=24, value=100, form="<I"), "no zip"),
        (patched(ONE, local=14, central=16, value=7, form="<I"), "no zip"),
        (patched(ONE, local=22, central=24, value=5000, form="<I"), "larger"),
    ],
    ids=range(21),
)
def test_all_else_is_refused_with_the_reason(tmp_path: Path, zipped: bytes, why: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, zipped)
    (problem,) = caught.value.problems
    assert why in problem
    assert sorted(one.name for one in tmp_path.iterdir()) == ["artifact.zip"]


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_artifact(tmp_path / "none.zip")


@settings(
    max_examples=tries(200),
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=6),
    st.integers(0, 400),
    st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]),
)
@example([(0, 0)], 0, zipfile.ZIP_STORED)
def test_no_broken_zip_is_more_than_refused(
    tmp_path: Path, changes: list[tuple[int, int]], cut: int, method: int
) -> None:
    raw = bytearray(pack((MEMBER, CONTENT * 3), method=method))
    for place, value in changes:
        raw[place % len(raw)] = value
    try:
        content = read(tmp_path, bytes(raw[: len(raw) - cut % 40]))
    except InputError:
        return
    assert content == CONTENT * 3
