"""The one file of an artifact that we want, out of a zip that a stranger's job may have made.

Nothing is unpacked to disk. The member is found by its whole name, `comparison.json`, at the root of
the zip; others are never opened, whatever they are called. Sizes are bounded three times: the zip as it
is read, the size that it declares, and what really comes out of it. All in memory: two bounded buffers.
"""

import stat
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from struct import error as StructError  # noqa: N812  the name of an exception

from analysis.comparing.results import MOST_BYTES
from perf.local.plain_files import read_input
from perf.model.errors import InputError

MEMBER = "comparison.json"
MOST_ZIPPED_BYTES = 8 * 1024 * 1024
_MOST_MEMBERS = 16
_MOST_RATIO = 200
"""JSON shrinks to a tenth or twentieth; what grows by more than this was made to."""
_ENCRYPTED = 0x1 | 0x40 | 0x2000
"""Bits of a member's flags: encrypted, strongly so, and with its header masked."""
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_BROKEN = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, StructError, EOFError, OSError),
    *(ValueError, RuntimeError, LookupError, OverflowError, AssertionError, TypeError),
)
"""What zipfile comes to on bytes that are no zip; RuntimeError also of what it does not know."""


def read_artifact(path: Path) -> bytes:
    """Return the content of comparison.json out of the zip at `path`.

    Raises:
        InputError: it cannot be read, or is not such a zip; says why.

    """
    zipped = read_input(path, MOST_ZIPPED_BYTES)
    try:
        with zipfile.ZipFile(BytesIO(zipped)) as archive:
            found = archive.infolist()
            for problem in _find_problems(found):
                raise InputError(path, [problem])
            (member,) = (one for one in found if one.orig_filename == MEMBER)
            with archive.open(member) as content:
                unpacked = content.read(MOST_BYTES + 1)
    except _BROKEN as error:
        raise InputError(path, ["the artifact is no zip that can be read"]) from error
    if len(unpacked) > MOST_BYTES or len(unpacked) != member.file_size:
        raise InputError(path, [f"{MEMBER} is larger than the artifact says"])
    return unpacked


def _find_problems(members: list[zipfile.ZipInfo]) -> Iterator[str]:
    """Describe what speaks against reading our member; the first is enough."""
    named = [one for one in members if one.orig_filename == MEMBER]
    if len(members) > _MOST_MEMBERS:
        yield f"the artifact has {len(members)} members; ours has one"
    if len(named) != 1:
        yield f"the artifact holds {MEMBER} {len(named)} times at its root; ours holds it once"
    for one in named:
        if stat.S_IFMT(one.external_attr >> 16) not in {0, stat.S_IFREG}:
            yield f"{MEMBER} is no plain file in the artifact"
        if one.flag_bits & _ENCRYPTED:
            yield f"{MEMBER} is encrypted in the artifact"
        if one.compress_type not in _METHODS:
            yield f"{MEMBER} is compressed by a method that we do not read"
        if one.file_size > MOST_BYTES:
            yield f"{MEMBER} has {one.file_size} bytes; a comparison has at most {MOST_BYTES}"
        if one.file_size > _MOST_RATIO * max(one.compress_size, 1):
            yield f"{MEMBER} is compressed more than {_MOST_RATIO} times"
