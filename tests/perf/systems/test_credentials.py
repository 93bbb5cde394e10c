import os
import ssl
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from certificates import issue, make_authority

from perf.model.access import Access, Tls
from perf.model.errors import AccessError
from perf.systems import credentials
from perf.systems.credentials import open_tls, prove_access, read_login

VARIABLE = "KNICKPOINT_PASSWORD_TEST"
PLANTED = "pl4nted secret"


@pytest.fixture
def kept(tmp_path: Path) -> Callable[..., Access]:
    """Make an access whose password is in a file."""

    def keep(text: str = PLANTED, mode: int = 0o600) -> Access:
        path = tmp_path / "secret"
        path.write_text(text)
        path.chmod(mode)
        return Access(username="bench", password_file=str(path))

    return keep


def refusal(access: Access) -> str:
    with pytest.raises(AccessError) as caught:
        prove_access(access)
    assert PLANTED not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


def test_a_password_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, PLANTED)
    login = read_login(Access(username="bench", password_env=VARIABLE))
    assert login is not None
    assert (login.username, login.password) == ("bench", PLANTED)
    assert PLANTED not in repr(login)


@pytest.mark.parametrize("value", [None, ""])
def test_a_variable_that_is_not_set_is_named(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(VARIABLE, value)
    assert refusal(Access(username="bench", password_env=VARIABLE)) == (
        f"access failed on this host: the environment variable {VARIABLE} is not set; "
        "set it to the password of bench"
    )


@pytest.mark.parametrize("text", [PLANTED, f"{PLANTED}\n", f"{PLANTED}\r\n"])
def test_a_password_comes_from_a_file_without_its_end_of_line(
    kept: Callable[..., Access], text: str
) -> None:
    login = read_login(kept(text))
    assert login is not None
    assert login.password == PLANTED


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_a_file_that_others_may_use_is_refused(kept: Callable[..., Access], mode: int) -> None:
    access = kept(mode=mode)
    assert refusal(access) == (
        f"access failed on this host: password_file {access.password_file} may be used by others "
        f"(mode {mode:04o}); chmod 600 it"
    )


@pytest.mark.parametrize("text", ["", "\n", f"{PLANTED}\nmore\n"])
def test_a_file_without_one_line_is_refused(kept: Callable[..., Access], text: str) -> None:
    assert refusal(kept(text)).endswith("holds no password: one line is wanted, and nothing else")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere"
    assert refusal(Access(username="bench", password_file=str(path))) == (
        f"access failed on this host: password_file {path} cannot be read: No such file or directory; "
        "it must hold the password of bench"
    )


def test_a_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path, 0o600)
    said = refusal(Access(username="bench", password_file=str(path)))
    assert said.endswith(f"password_file {path} is no regular file")


def test_a_file_of_another_user_is_refused(
    kept: Callable[..., Access], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = os.geteuid()
    access = kept()
    if own == 0:  # only root can give a file away
        os.chown(access.password_file or "", 12_345, 12_345)
    else:
        monkeypatch.setattr(credentials.os, "geteuid", lambda: own + 1)
    assert "belongs to another user" in refusal(access)


def test_all_of_a_long_file_is_read_and_what_is_far_too_long_is_refused(tmp_path: Path) -> None:
    authority = make_authority(tmp_path, "authority").certificate.read_text()
    path = tmp_path / "bundle"
    comment = "# an authority that is told about at length\n"
    path.write_text(comment * (200_000 // len(comment)) + authority)
    context = open_tls(Access(tls=Tls(ca_file=str(path))))
    assert context is not None
    assert len(context.get_ca_certs()) == 1
    path.write_text(authority + "#" * 1024 * 1024)
    said = f"access failed on this host: tls.ca_file {path} is larger than 1 MiB"
    assert refusal(Access(tls=Tls(ca_file=str(path)))) == said
    path.chmod(0o600)
    secret = Access(username="bench", password_file=str(path))
    assert refusal(secret).endswith(f"password_file {path} is larger than 1 MiB")


def test_files_of_tls_are_read_and_what_is_wrong_with_one_is_named(tmp_path: Path) -> None:
    authority = make_authority(tmp_path, "authority")
    own, other = issue(authority, "own"), issue(authority, "other")
    ca, certificate, key = str(authority.certificate), str(own.certificate), str(own.key)
    context = open_tls(Access(tls=Tls(ca_file=ca, certificate_file=certificate, key_file=key)))
    assert context is not None
    assert context.check_hostname
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    nonsense = tmp_path / "nonsense"
    nonsense.write_text(PLANTED)
    assert refusal(Access(tls=Tls(ca_file=str(nonsense)))).endswith(
        f"tls.ca_file {nonsense} holds no certificate in PEM form"
    )
    said = refusal(Access(tls=Tls(ca_file=str(tmp_path / "nowhere"))))
    assert said.endswith(f"tls.ca_file {tmp_path}/nowhere cannot be read: No such file or directory")
    pair = Tls(ca_file=ca, certificate_file=certificate, key_file=str(other.key))
    assert refusal(Access(tls=pair)).endswith(
        f"tls.certificate_file {certificate} and tls.key_file {other.key} do not fit together"
    )
    own.key.chmod(0o644)
    pair = Tls(ca_file=ca, certificate_file=certificate, key_file=key)
    assert f"tls.key_file {key} may be used by others (mode 0644)" in refusal(Access(tls=pair))
