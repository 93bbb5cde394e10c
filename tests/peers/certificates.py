"""Certificates of a test's own, made when it runs, by openssl and, for Java's trust, keytool."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as files in PEM form."""

    certificate: Path
    key: Path

    def joined(self, path: Path) -> Path:
        """Write both into one file that nobody else may read."""
        path.write_text(self.certificate.read_text() + self.key.read_text())
        path.chmod(0o600)
        return path

    def as_pkcs12(self, path: Path, passphrase: str) -> Path:
        """Write both as PKCS #12, which a JVM reads."""
        files = ("-in", str(self.certificate), "-inkey", str(self.key), "-out", str(path))
        _run("openssl", "pkcs12", "-export", *files, "-passout", f"pass:{passphrase}")
        path.chmod(0o600)
        return path


def make_authority(directory: Path, name: str) -> Pair:
    """Make an authority that vouches for itself."""
    directory.mkdir(parents=True, exist_ok=True)
    pair = Pair(directory / f"{name}.crt", directory / f"{name}.key")
    extensions = ("basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign")
    _make(pair, name, extensions)
    return pair


def issue(authority: Pair, name: str, *addresses: str) -> Pair:
    """Make a certificate that an authority vouches for, valid for these IP addresses."""
    directory = authority.certificate.parent
    pair = Pair(directory / f"{name}.crt", directory / f"{name}.key")
    names = ",".join(f"IP:{address}" for address in addresses) or "DNS:client"
    uses = ("extendedKeyUsage=serverAuth,clientAuth", "basicConstraints=CA:FALSE")
    by = ("-CA", str(authority.certificate), "-CAkey", str(authority.key))
    _make(pair, name, (f"subjectAltName={names}", *uses), *by)
    return pair


def _make(pair: Pair, name: str, extensions: tuple[str, ...], *options: str) -> None:
    files = ("-keyout", str(pair.key), "-out", str(pair.certificate), "-subj", f"/CN={name}")
    added = [word for extension in extensions for word in ("-addext", extension)]
    # Without a configuration file of the system, which would add extensions of its own.
    _run("openssl", "req", "-x509", "-config", "/dev/null", *_NEW_KEY, *files, *added, *options)
    pair.key.chmod(0o600)


def trust_store(authority: Pair, path: Path, passphrase: str) -> Path:
    """Write an authority's certificate as what a JVM trusts."""
    files = ("-file", str(authority.certificate), "-keystore", str(path), "-storetype", "PKCS12")
    _run("keytool", "-importcert", "-noprompt", "-alias", "ca", *files, "-storepass", passphrase)
    path.chmod(0o600)
    return path


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
