"""Files of an access on client hosts over SSH are looked at before anything is started."""

from pathlib import Path

import pytest

from perf.hosts.remote import LocalHost, SshHost
from perf.model.access import Access, Tls
from perf.model.errors import AccessError
from perf.trial.client_access import prove_on_clients

SECRET = "pl4nted secret"  # noqa: S105  of this test alone


@pytest.fixture
def access(tmp_path: Path) -> Access:
    names = ("password", "ca", "certificate", "key of client")
    for name in names:
        (tmp_path / name).write_text(SECRET)
        (tmp_path / name).chmod(0o600)
    password, ca, certificate, key = (str(tmp_path / name) for name in names)
    tls = Tls(ca_file=ca, certificate_file=certificate, key_file=key)
    return Access(username="bench", password_file=password, tls=tls)


def refusal(access: Access, host: SshHost) -> str:
    with pytest.raises(AccessError) as caught:
        prove_on_clients(access, [host])
    assert SECRET not in str(caught.value)
    return str(caught.value).removeprefix(f"access failed on {host.name}: ")


def test_files_that_are_as_they_should_be_are_taken(
    sshd: SshHost, access: Access, tmp_path: Path
) -> None:
    (tmp_path / "ca").chmod(0o644)
    prove_on_clients(access, [sshd])
    prove_on_clients(None, [sshd])


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("password", "password_file"),
        ("ca", "tls.ca_file"),
        ("certificate", "tls.certificate_file"),
        ("key of client", "tls.key_file"),
    ],
)
def test_a_file_that_is_not_there_is_named(
    sshd: SshHost, access: Access, tmp_path: Path, name: str, what: str
) -> None:
    path = tmp_path / name
    path.unlink()
    why = "is no regular file there that the user of its engines can read"
    assert refusal(access, sshd) == f"{what} {path} {why}"
    # This machine looks by itself, with the rules of `prove_access`.
    prove_on_clients(access, [LocalHost()])


@pytest.mark.parametrize(
    ("name", "what"), [("password", "password_file"), ("key of client", "tls.key_file")]
)
def test_a_secret_that_others_may_use_is_refused(
    sshd: SshHost, access: Access, tmp_path: Path, name: str, what: str
) -> None:
    path = tmp_path / name
    path.chmod(0o640)
    assert refusal(access, sshd) == f"{what} {path} may be used by others (mode 0640); chmod 600 it"
