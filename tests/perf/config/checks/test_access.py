"""What a config may say of how clients log in: names of secrets, complete, and never a secret."""

import shutil
from pathlib import Path

import pytest

from perf.config.catalog import load_catalog
from perf.model.design import SystemConfig
from perf.model.errors import ConfigError

CONFIGS = Path(__file__).parents[3] / "data" / "configs"
PLANTED = "pl4nted-secret"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CONFIGS, tmp_path / "configs"))


def write(root: Path, text: str, system: str = "cassandra") -> Path:
    path = root / "systems" / system / "with-access.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"system: {system}\nname: with-access\ndescription: A test.\n{text}\n")
    return path


def problems(root: Path, text: str, system: str = "cassandra") -> list[str]:
    path = write(root, text, system)
    with pytest.raises(ConfigError) as caught:
        load_catalog(root)
    assert PLANTED not in str(caught.value)
    return [problem.removeprefix(f"{path}:") for problem in caught.value.problems]


def read(root: Path, text: str, system: str = "cassandra") -> SystemConfig:
    write(root, text, system)
    return load_catalog(root).systems[system]["with-access"]


@pytest.mark.parametrize("system", ["cassandra", "scylladb"])
def test_an_account_and_certificates_are_named(root: Path, system: str) -> None:
    config = read(
        root,
        "access:\n  username: bench\n  password_env: KNICKPOINT_PASSWORD_BENCH\n"
        "  tls: {ca_file: /etc/ca.crt, certificate_file: /etc/own.crt, key_file: /etc/own.key}",
        system,
    )
    assert config.access is not None
    assert config.access.password_env == "KNICKPOINT_PASSWORD_BENCH"  # noqa: S105  its name
    assert config.access.tls is not None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "access: {username: bench}",
            (
                '4: access.username is "bench", without a password; add password_env, the name of a '
                "variable, or password_file"
            ),
        ),
        (
            "access:\n  username: bench\n  password_env: KNICKPOINT_PASSWORD\n  password_file: /x",
            "4: access.password_env and access.password_file are both there; remove one",
        ),
        (
            "access: {password_file: /etc/secret}",
            "4: access.password_file is there without a username; add one, or remove it",
        ),
        (
            "access:\n  tls:\n    ca_file: /ca\n    key_file: /key",
            '7: access.tls.key_file is "/key", without a certificate_file; add it, or remove this',
        ),
        (
            "access:\n  tls:\n    ca_file: /ca\n    certificate_file: /crt",
            '7: access.tls.certificate_file is "/crt", without a key_file; add it, or remove this',
        ),
        (
            "access: {tls: {ca_file: ca.crt}}",
            '4: access.tls.ca_file is "ca.crt"; write a whole path, which begins with /',
        ),
        (
            "access:\n  username: bench\n  pasword_env: KNICKPOINT_PASSWORD",
            "6: the key access.pasword_env is not known; write password_env instead",
        ),
        (
            "access:\n  tls: {cafile: /ca}",
            "5: the key access.tls.cafile is not known; write ca_file instead",
        ),
        (
            f"access: bench:{PLANTED}",
            "4: access is not shown here; it must be a mapping",
        ),
        (
            "access: {}",
            "4: access is empty; add username and password_env, or tls, or remove it",
        ),
    ],
)
def test_each_mistake_has_its_sentence(root: Path, text: str, found: str) -> None:
    assert problems(root, text) == [found]


def test_all_mistakes_are_reported_at_once(root: Path) -> None:
    text = "access:\n  password_file: /x\n  password_env: AWS_SECRET_ACCESS_KEY\n"
    found = problems(root, f"{text}  tls: {{ca_file: /ca, key_file: /key}}")
    assert len(found) == 4


@pytest.mark.parametrize(
    "text",
    [
        f"access: {{username: bench, password: {PLANTED}}}",
        f"access: {{username: bench, password_env: {PLANTED}}}",
        "access: {username: bench, password_env: AWS_SECRET_ACCESS_KEY}",
        f"access: bench:{PLANTED}",
        f"access: [bench, {PLANTED}]",
        f"access: {{username: bench, pasword: {PLANTED}}}",
        f"access: {{tls: bench:{PLANTED}}}",
        f"settings: {{auth_password: {PLANTED}}}",
        f"settings: {{client_encryption_options: {{keystore_password: {PLANTED}}}}}",
        f"settings: {{client_encryption_options: {{enabled: true, keystore_password: [{PLANTED}]}}}}",
        "access: {username: bench, password_env: 20261122}",
    ],
)
def test_a_password_or_a_secret_of_others_is_refused_and_not_shown(root: Path, text: str) -> None:
    found = problems(root, text)
    assert found
    assert "20261122" not in "".join(found)


@pytest.mark.parametrize(
    ("system", "wanted"),
    [
        ("mongodb", "4: access.username is for servers with accounts, and those that are started"),
        ("fake", "4: access is for systems with accounts or TLS; fake has none, remove it"),
    ],
)
def test_what_servers_cannot_ask_for_is_refused(root: Path, system: str, wanted: str) -> None:
    (found,) = problems(
        root, "access: {username: bench, password_env: KNICKPOINT_PASSWORD}", system=system
    )
    assert found.startswith(wanted)


def test_mongodb_speaks_tls(root: Path) -> None:
    assert read(root, "access: {tls: {ca_file: /etc/ca.crt}}", "mongodb").access is not None
