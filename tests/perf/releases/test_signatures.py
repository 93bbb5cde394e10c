"""A vendor's signature: what the right key has signed passes, and nothing else is kept.

Keys and signatures are made once, with a clock of 2020, and kept under tests/data/signatures.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from needs import need

from perf.model.errors import ReleaseError
from perf.model.results import Release, Source
from perf.releases import signatures
from perf.releases.artifacts import fetch
from perf.releases.origin import Origin
from perf.releases.signatures import verify_signature
from perf.systems.contract import System

DATA = Path(__file__).parents[2] / "data" / "signatures"
SIGNER = "68E54EBD6C913AFB657EDCB301196DFB1799871E"
FAULTY = {
    "expired": "0CFABC956142C1D46B594AEBB86A4D8E850080BE",
    "outlived": "885AD0263CBB1044A5EDC89BAFBC7000F4862409",
    "revoked": "7F45E24C96DE61008077928665CF5D32B44471CF",
}
"""Keys that signed the archive by the rules, and what became of key or signature since."""
STRANGER = "90C23FC6585BC0717F8FBFC37FAAE51A06F6EAEB"

Verify = Callable[..., None]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return a copy of the archive that was signed."""
    copy = tmp_path / "archive.tar.gz"
    shutil.copy2(DATA / "archive.tar.gz", copy)
    return copy


@pytest.fixture
def verify(tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch) -> Verify:
    """Give `verify(signer=…, signature=…)`, where a key server gives the vendor's key for any name."""
    need(shutil.which("gpg"), "install gnupg")
    keys = tmp_path / "keys"
    keys.mkdir()
    for name in (SIGNER, STRANGER):
        shutil.copy2(DATA / "key.asc", keys / name)
    for kind, name in FAULTY.items():
        shutil.copy2(DATA / f"{kind}-key.asc", keys / name)
    monkeypatch.setattr(signatures, "KEY_SERVER", f"{keys.as_uri()}/")

    def ask(signer: str = SIGNER, signature: str = "") -> None:
        url = signature or (DATA / "archive.tar.gz.asc").as_uri()
        verify_signature(archive, url, signer, report=print, work_dir=tmp_path)

    return ask


def test_what_the_vendor_signed_is_kept(archive: Path, verify: Verify) -> None:
    verify()
    assert archive.is_file()


def test_another_byte_is_refused_and_deleted(archive: Path, verify: Verify) -> None:
    archive.write_bytes(archive.read_bytes() + b"\n")
    with pytest.raises(
        ReleaseError, match=f"archive.tar.gz is not signed by the vendor's key {SIGNER}"
    ):
        verify()
    assert not archive.exists()


def test_a_key_server_cannot_pass_off_another_key(archive: Path, verify: Verify) -> None:
    with pytest.raises(ReleaseError, match=STRANGER):
        verify(signer=STRANGER)
    assert not archive.exists()


def test_what_is_no_signature_is_refused(archive: Path, verify: Verify) -> None:
    with pytest.raises(ReleaseError, match="is not signed"):
        verify(signature=(DATA / "key.asc").as_uri())
    assert not archive.exists()


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("expired", r"the key has expired \(EXPKEYSIG\)"),
        ("outlived", r"the signature has expired \(EXPSIG\)"),
        ("revoked", r"the key was revoked \(REVKEYSIG\)"),
    ],
)
def test_a_key_or_signature_that_no_longer_counts_is_refused_by_name(
    archive: Path, verify: Verify, kind: str, why: str
) -> None:
    with pytest.raises(ReleaseError, match=why):
        verify(signer=FAULTY[kind], signature=(DATA / f"archive.tar.gz.{kind}.asc").as_uri())
    assert not archive.exists()


@pytest.mark.usefixtures("verify")
def test_a_release_that_is_signed_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNICKPOINT_CACHE", str(tmp_path / "cache"))
    url = (DATA / "archive.tar.gz").as_uri()
    signed = Origin(source=Source.ARCHIVE, location=url, checksum=f"{url}.asc", signer=SIGNER)
    system = cast("System", SimpleNamespace(name="river", origins=lambda _: (signed,)))
    release = Release(system="river", version="1.0.0", line="1.0", ordinal=0)
    artifact = fetch(system, release)
    assert "a server" in Path(artifact.location, "bin/crate").read_text()

    forged = replace(signed, signer=STRANGER)
    other = cast("System", SimpleNamespace(name="lake", origins=lambda _: (forged,)))
    with pytest.raises(ReleaseError, match="is not signed"):
        fetch(other, release)
    assert not list(Path(tmp_path, "cache/releases/lake").rglob("crate"))


def test_without_gpg_the_message_says_what_to_install(
    verify: Verify, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ReleaseError, match=r"needs the program gpg; install it \(Debian"):
        verify()


def test_gpg_is_looked_for_before_anything_is_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNICKPOINT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "")
    url = (tmp_path / "nowhere.tar.gz").as_uri()
    signed = Origin(source=Source.ARCHIVE, location=url, checksum=f"{url}.asc", signer=SIGNER)
    system = cast("System", SimpleNamespace(name="river", origins=lambda _: (signed,)))
    reported: list[str] = []
    release = Release(system="river", version="1.0.0", line="1.0", ordinal=0)
    with pytest.raises(ReleaseError, match="needs the program gpg"):
        fetch(system, release, report=reported.append)
    assert reported == []


def test_a_gpg_that_does_not_end_is_not_waited_for(
    tmp_path: Path, verify: Verify, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "gpg").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    (programs / "gpg").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(signatures, "_LIMIT_S", 0.2)
    with pytest.raises(ReleaseError, match=r"gpg did not end within 0\.2 s"):
        verify()
