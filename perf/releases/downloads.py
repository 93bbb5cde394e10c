"""Download one file over HTTP, check it against a digest, unpack it: nothing unchecked is unpacked."""

import errno
import hashlib
import http.client
import lzma
import socket
import tarfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from pathlib import Path

from perf.model.errors import ReleaseError

_TIMEOUT_S = 30.0
_BACK_OFF_S = (1.0, 4.0)
_CHUNK_BYTES = 1 << 20
_TELL_EVERY_BYTES = 8 << 20
_MB = 1_000_000
_RETRIED_STATUS = frozenset({408, 429, 500, 502, 503, 504})
# What goes wrong on our own disk: no other place would do better, and asking again does not help.
_DISK_ERRORS = frozenset(
    {
        *(errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO),
        *(errno.ENOENT, errno.ENOSPC, errno.ENOTDIR, errno.EPERM, errno.EROFS),
    }
)
_ALGORITHM_BY_LENGTH = {64: "sha256", 128: "sha512"}


class OriginUnreachable(ReleaseError):  # noqa: N818  a state of the place, not a fault of ours
    """The place does not answer, or does not have the file; another place may."""


def download(
    url: str,
    target: Path,
    *,
    report: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Download `url` to `target`; a partial file is never left under its final name.

    Raises:
        Unreachable: after three attempts, or at once where another attempt cannot help.
        OSError: the file cannot be written.

    """
    for attempt, pause_s in enumerate((*_BACK_OFF_S, None), start=1):
        try:
            _download_once(url, target, report)
        except (OSError, http.client.HTTPException) as error:
            if getattr(error, "errno", None) in _DISK_ERRORS:
                raise
            if pause_s is None or not _may_pass(error):
                raise OriginUnreachable(f"{url}: {_say(error)} (attempt {attempt})") from error
            report(f"{url}: {_say(error)}; again in {pause_s:g} s")
            sleep(pause_s)
        else:
            return


def _download_once(url: str, target: Path, report: Callable[[str], None]) -> None:
    part = target.with_name(f"{target.name}.part")
    request = urllib.request.Request(url, headers={"User-Agent": "knickpoint"})  # noqa: S310  see urlopen
    try:
        with (
            urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer,  # noqa: S310  packaged URLs only
            part.open("wb") as output,
        ):
            total = int(answer.headers.get("Content-Length") or 0)
            done = 0
            reported = 0
            while chunk := answer.read(_CHUNK_BYTES):
                output.write(chunk)
                done += len(chunk)
                if done - reported >= _TELL_EVERY_BYTES:
                    reported = done
                    report(f"{target.name}: {_progress(done, total)}")
        if total and done != total:
            raise http.client.IncompleteRead(b"", total - done)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _progress(done: int, total: int) -> str:
    return f"{done / _MB:.0f} of {total / _MB:.0f} MB" if total else f"{done / _MB:.0f} MB"


def _may_pass(error: Exception) -> bool:
    if isinstance(error, urllib.error.HTTPError):
        return error.code in _RETRIED_STATUS
    reason = getattr(error, "reason", error)
    return not (isinstance(reason, socket.gaierror) and reason.errno == socket.EAI_NONAME)


def _say(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP status {error.code} {error.reason}"
    return str(getattr(error, "reason", error)) or type(error).__name__


def published_digest(checksum: str, *, report: Callable[[str], None], work_dir: Path) -> str:
    """Return the digest that `checksum` names: the digest itself, or the first word behind its URL.

    Raises:
        Unreachable: the URL cannot be read.
        ReleaseError: what it gives is no SHA-256 and no SHA-512.

    """
    digest = checksum
    if "://" in checksum:
        target = work_dir / "checksum"
        download(checksum, target, report=report)
        digest = (target.read_text(errors="replace").split() or [""])[0]
    digest = digest.lower()
    if len(digest) not in _ALGORITHM_BY_LENGTH or set(digest) - set("0123456789abcdef"):
        raise ReleaseError(f"{checksum}: not a SHA-256 or SHA-512 digest: {digest[:80]!r}")
    return digest


def verify(file: Path, expected: str) -> None:
    """Compare a file with its digest; delete the file if it differs.

    Raises:
        ReleaseError: it differs; the message holds both digests.

    """
    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, _ALGORITHM_BY_LENGTH[len(expected)]).hexdigest()
    if found != expected:
        file.unlink()
        raise ReleaseError(
            f"{file.name}: the checksum does not match, so the file was deleted: expected {expected}, "
            f"found {found}; a second failure means that the archive and its checksum disagree"
        )


def unpack(archive: Path, target: Path) -> None:
    """Unpack a tar archive into `target`; a single top-level directory is left out.

    Raises:
        ReleaseError: it is no whole tar archive, or has members that would land outside of `target`.
        OSError: the archive cannot be read, or its files cannot be written.

    """
    fresh = target.with_name(f"{target.name}.unpacked")
    try:
        with tarfile.open(archive) as opened:
            opened.extractall(fresh, filter="data")
            # A compressed file's own checksum is at its end, behind what tar needs to read.
            while opened.fileobj.read(_CHUNK_BYTES):
                pass
    except tarfile.FilterError as error:
        raise ReleaseError(f"{archive.name} cannot be unpacked: {error}") from error
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # gzip and bz2 report damage as an OSError without a number
        raise ReleaseError(
            f"{archive.name} cannot be unpacked: it is no tar archive, or a damaged or incomplete one"
        ) from error
    children = tuple(fresh.iterdir())
    top = children[0] if len(children) == 1 and children[0].is_dir() else fresh
    top.rename(target)
    if top is not fresh:
        fresh.rmdir()
