"""What is downloaded is checked before it is used, against a real HTTP server on loopback."""

import bz2
import gzip
import hashlib
import io
import lzma
import tarfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from perf.model.errors import ReleaseError
from perf.releases.downloads import OriginUnreachable, download, published_digest, unpack, verify

BODY = bytes(range(256)) * 80_000  # 20 MB: enough for two lines of progress


class _Handler(BaseHTTPRequestHandler):
    """Answers with the next status of the script; /cut breaks off in the middle."""

    statuses: ClassVar[list[int]] = []

    def do_GET(self) -> None:
        status = self.statuses.pop(0) if self.statuses else 200
        self.send_response(status)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        if status == 200:
            self.wfile.write(BODY[:1000] if self.path == "/cut" else BODY)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Callable[..., str]]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()

        def url(path: str, *statuses: int) -> str:
            _Handler.statuses = list(statuses)
            return f"http://127.0.0.1:{http.server_port}{path}"

        yield url
        http.shutdown()
        thread.join()


def test_downloads_with_progress(server: Callable[..., str], tmp_path: Path) -> None:
    reported: list[str] = []
    download(server("/file"), tmp_path / "file", report=reported.append)
    assert (tmp_path / "file").read_bytes() == BODY
    assert reported == ["file: 8 of 20 MB", "file: 17 of 20 MB"]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_tries_again_where_that_may_help(server: Callable[..., str], tmp_path: Path) -> None:
    pauses: list[float] = []
    download(server("/file", 503, 500), tmp_path / "file", report=print, sleep=pauses.append)
    assert (tmp_path / "file").stat().st_size == len(BODY)
    assert pauses == [1.0, 4.0]


@pytest.mark.parametrize(
    ("path", "statuses", "attempts", "why"),
    [
        ("/file", (404,), 1, "HTTP status 404"),
        ("/file", (503, 503, 503), 3, "HTTP status 503"),
        ("/cut", (), 3, "IncompleteRead"),
    ],
)
def test_gives_up_and_leaves_nothing_behind(
    server: Callable[..., str],
    tmp_path: Path,
    path: str,
    statuses: tuple[int, ...],
    attempts: int,
    why: str,
) -> None:
    url, pauses = server(path, *statuses), list[float]()
    with pytest.raises(OriginUnreachable, match=f"{why}.*attempt {attempts}"):
        download(url, tmp_path / "file", report=print, sleep=pauses.append)
    assert len(pauses) == attempts - 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_no_fault_of_the_place(
    server: Callable[..., str], tmp_path: Path
) -> None:
    def never(_: float) -> None:
        pytest.fail("asked again")

    with pytest.raises(FileNotFoundError):
        download(server("/file"), tmp_path / "missing" / "file", report=print, sleep=never)


def test_a_name_that_does_not_exist_is_not_asked_for_again(tmp_path: Path) -> None:
    # RFC 6761: names under .invalid never exist.
    with pytest.raises(OriginUnreachable, match=r"attempt \d"):
        download("http://archive.invalid/x", tmp_path / "x", report=print, sleep=lambda _: None)


def test_a_file_that_differs_from_its_digest_is_deleted(tmp_path: Path) -> None:
    file, wrong = tmp_path / "release.tar.gz", hashlib.sha512(b"other").hexdigest()
    file.write_bytes(b"these")
    found = hashlib.sha512(b"these").hexdigest()
    with pytest.raises(ReleaseError, match=rf"release.tar.gz.*expected {wrong}, found {found}"):
        verify(file, wrong)
    assert not file.exists()


def test_a_file_that_fits_its_digest_stays(tmp_path: Path) -> None:
    file = tmp_path / "release.tar.gz"
    file.write_bytes(b"these")
    for algorithm in ("sha256", "sha512"):
        verify(file, hashlib.new(algorithm, b"these").hexdigest())
    assert file.exists()


@pytest.mark.parametrize("published", ["", "<html>moved</html>", "abc123", "g" * 64])
def test_refuses_what_is_no_digest(tmp_path: Path, published: str) -> None:
    with pytest.raises(ReleaseError, match="not a SHA-256 or SHA-512 digest"):
        published_digest(published, report=print, work_dir=tmp_path)


def test_takes_a_digest_in_capitals(tmp_path: Path) -> None:
    assert published_digest("AB" * 32, report=print, work_dir=tmp_path) == "ab" * 32


def write_tar(path: Path, names: tuple[str, ...]) -> Path:
    """Write a tar archive with one small file per name."""
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 1
            archive.addfile(member, io.BytesIO(b"x"))
    return path


def test_unpacks_without_the_top_directory(tmp_path: Path) -> None:
    archive = write_tar(tmp_path / "a.tar.gz", ("top/lib/a.jar", "top/NOTICE"))
    unpack(archive, tmp_path / "out")
    files = sorted(
        str(path.relative_to(tmp_path / "out"))
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    )
    assert files == ["NOTICE", "lib/a.jar"]


def test_unpacks_several_top_entries_as_they_are(tmp_path: Path) -> None:
    unpack(write_tar(tmp_path / "a.tar.gz", ("lib/a.jar", "NOTICE")), tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["NOTICE", "lib"]


def test_refuses_members_that_would_land_outside(tmp_path: Path) -> None:
    archive = write_tar(tmp_path / "a.tar.gz", ("../../outside",))
    with pytest.raises(ReleaseError, match="outside"):
        unpack(archive, tmp_path / "in" / "out")
    assert not (tmp_path / "outside").exists()


def test_refuses_what_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(b"<html>not found</html>")
    with pytest.raises(ReleaseError, match=r"a.tar.gz cannot be unpacked: it is no tar archive"):
        unpack(tmp_path / "a.tar.gz", tmp_path / "out")


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_refuses_a_damaged_archive(
    tmp_path: Path, compress: Callable[[bytes], bytes], damage: str
) -> None:
    (tmp_path / "noise").write_bytes(hashlib.shake_256(b"noise").digest(300_000))
    archive = tmp_path / "a.tar.packed"
    with tarfile.open(archive, "w") as opened:
        opened.add(tmp_path / "noise", "noise")
    whole = compress(archive.read_bytes())
    half = len(whole) // 2
    rest = b"" if damage == "cut" else bytes(64) + whole[half + 64 :]
    archive.write_bytes(whole[:half] + rest)
    with pytest.raises(ReleaseError, match="damaged or incomplete"):
        unpack(archive, tmp_path / "out")
