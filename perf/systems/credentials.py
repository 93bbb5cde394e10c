"""Read the secrets that an `Access` names, when a client connects; whom it trusts, as a TLS context.

No error and no `repr` holds a secret. What is wrong is said by these sentences, by the native engine as
by this one, after "access failed on HOST: ", where HOST is "this host" or ADDRESS:PORT of a server:

    the environment variable NAME is not set; set it to the password of USER
    password_file PATH cannot be read: WHY; it must hold the password of USER
    password_file PATH is no regular file
    password_file PATH belongs to another user; it must belong to the one that runs this, or to root
    password_file PATH may be used by others (mode 0644); chmod 600 it
    password_file PATH holds no password: one line is wanted, and nothing else
    tls.ca_file PATH cannot be read: WHY                         the same for its other two files
    tls.ca_file PATH is larger than 1 MiB                        the same for all files
    tls.ca_file PATH holds no certificate in PEM form
    tls.certificate_file PATH and tls.key_file PATH do not fit together
    the server refuses the account USER; check its name and password
    the server asks for an account; set access.username, and where its password is
    its certificate is not valid for ADDRESS, at which it was reached; it must name that address
    its certificate is not signed by tls.ca_file PATH: WHY
    it refuses this client's certificate, or that there is none: WHY; check tls.certificate_file
    it does not speak TLS here: WHY; turn TLS on in the server, or remove access.tls

The rules of password_file hold for tls.key_file as well: it is opened once, and what was opened is
looked at, so that nobody can put another file there in between.
"""

import os
import socket
import ssl
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from perf.model.access import Access, Tls
from perf.model.errors import AccessError, AccountRefused

HERE = "this host"
# The authorities of a whole system are a quarter of this.
_MOST_BYTES = 1024 * 1024
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_HANDSHAKE_S = 5.0
_REFUSAL_S = 0.5
# Of OpenSSL's names of alerts, which are those of RFC 8446, 6.2.
_REFUSALS = ("CERTIFICATE_REQUIRED", "UNKNOWN_CA", "BAD_CERTIFICATE", "CERTIFICATE_UNKNOWN")
# OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH.
_OTHER_HOST = (62, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """An account with its password, which no `repr` shows."""

    username: str
    password: str = field(repr=False)


def read_login(access: Access | None) -> Login | None:
    """Return the account of all clients with its password; None where there is none.

    Raises:
        AccessError: the password cannot be had as `access` says.

    """
    if access is None or access.username is None:
        return None
    if access.password_env is not None:
        password = os.environ.get(access.password_env, "")
        if not password:
            why = f"the environment variable {access.password_env} is not set"
            raise AccessError(HERE, f"{why}; set it to the password of {access.username}")
    else:
        path = access.password_file or ""
        text = _read_private("password_file", path, f"; it must hold the password of {access.username}")
        password = text.decode(errors="replace").removesuffix("\n").removesuffix("\r")
        if not password or "\n" in password or "\ufffd" in password:
            why = "holds no password: one line is wanted, and nothing else"
            raise AccessError(HERE, f"password_file {path} {why}")
    return Login(username=access.username, password=password)


def prove_access(access: Access | None) -> None:
    """Return if all that `access` names can be read here, before anything is started for it.

    Raises:
        AccessError: it cannot, or is not what it should be.

    """
    read_login(access)
    open_tls(access)


def open_tls(access: Access | None) -> ssl.SSLContext | None:
    """Return what encrypts a client's connections; None where they are not encrypted.

    At least TLS 1.2; a server must show a certificate for the very address at which it is reached.

    Raises:
        AccessError: a file cannot be read, or does not hold what it should.

    """
    if access is None or access.tls is None:
        return None
    tls = access.tls
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cadata=_read("tls.ca_file", tls.ca_file).decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        why = "holds no certificate in PEM form"
        raise AccessError(HERE, f"tls.ca_file {tls.ca_file} {why}") from error
    with own_certificate(tls) as path:
        if path is not None:
            context.load_cert_chain(path)
    return context


@contextmanager
def own_certificate(tls: Tls) -> Iterator[str | None]:
    """Yield the path of a file with the client's certificate and key, which is on no disk; None: none.

    Raises:
        AccessError: a file cannot be read, others may use the key, or the two do not fit together.

    """
    if tls.certificate_file is None or tls.key_file is None:
        yield None
        return
    certificate = _read("tls.certificate_file", tls.certificate_file)
    key = _read_private("tls.key_file", tls.key_file, "")
    # Drivers read files; this one is in memory alone, and gone once it is closed.
    with os.fdopen(os.memfd_create("certificate"), "wb") as both:
        both.write(certificate.rstrip() + b"\n" + key)
        both.flush()
        path = f"/proc/self/fd/{both.fileno()}"
        try:
            # No passphrase can be asked for: nobody is there.
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(path, password=lambda: b"")
        except (ssl.SSLError, ValueError) as error:
            names = f"tls.certificate_file {tls.certificate_file} and tls.key_file {tls.key_file}"
            raise AccessError(HERE, f"{names} do not fit together") from error
        yield path


def explain_tls(access: Access | None, address: str, port: int) -> AccessError | None:
    """Say why a server cannot be spoken to over TLS, by trying; None: it can, or there is none to try.

    For a driver's failed connection: drivers tell of it in many ways, and late.

    Raises:
        AccessError: a file of `access` cannot be read, or does not hold what it should.

    """
    context = open_tls(access)
    if access is None or access.tls is None or context is None:
        return None
    try:
        plain = socket.create_connection((address, port), timeout=_HANDSHAKE_S)
    except OSError:  # nobody is there: that is for the driver to say
        return None
    try:
        with plain, context.wrap_socket(plain, server_hostname=address) as tls:
            # With TLS 1.3 a server says only after the handshake what it thinks of a certificate.
            tls.settimeout(_REFUSAL_S)
            with suppress(TimeoutError):
                tls.recv(1)
            return None
    except OSError as error:
        return AccessError(f"{address}:{port}", _why_no_tls(error, access.tls, address))


def _why_no_tls(error: OSError, tls: Tls, address: str) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _OTHER_HOST:
            why = f"its certificate is not valid for {address}, at which it was reached"
            return f"{why}; it must name that address"
        return f"its certificate is not signed by tls.ca_file {tls.ca_file}: {error.verify_message}"
    said = getattr(error, "reason", None) or error
    if any(word in str(said) for word in _REFUSALS):
        why = f"it refuses this client's certificate, or that there is none: {said}"
        return f"{why}; check tls.certificate_file"
    why = f"it does not speak TLS here: {said}"
    return f"{why}; turn TLS on in the server, or remove access.tls"


def refuse_account(access: Access | None, address: str, port: int) -> AccountRefused:
    """Return the error of a client whom a server does not let in."""
    where = f"{address}:{port}"
    if access is None or access.username is None:
        why = "the server asks for an account; set access.username, and where its password is"
        return AccountRefused(where, why)
    why = f"the server refuses the account {access.username}; check its name and password"
    return AccountRefused(where, why)


def _read(what: str, path: str, rest: str = "") -> bytes:
    with _opened(what, path, rest) as file:
        return _read_all(file, what, path)


def _read_private(what: str, path: str, rest: str) -> bytes:
    """Read a file that nobody else may use."""
    with _opened(what, path, rest) as file:
        about = os.fstat(file)
        if why := why_not_private(about.st_uid, stat.S_IMODE(about.st_mode), os.geteuid()):
            raise AccessError(HERE, f"{what} {path} {why}")
        return _read_all(file, what, path)


def why_not_private(owner: int, mode: int, user: int) -> str:
    """Describe why a file may be used by others than `user`, by their ids; nothing if none may."""
    if owner not in {user, 0}:
        return "belongs to another user; it must belong to the one that runs this, or to root"
    return f"may be used by others (mode {mode:04o}); chmod 600 it" if mode & _OTHERS else ""


def _read_all(descriptor: int, what: str, path: str) -> bytes:
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise AccessError(HERE, f"{what} {path} is larger than 1 MiB")
    return content


@contextmanager
def _opened(what: str, path: str, rest: str) -> Iterator[int]:
    try:
        # Without waiting: a pipe would keep a client until somebody writes into it.
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise AccessError(HERE, f"{what} {path} cannot be read: {error.strerror}{rest}") from error
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise AccessError(HERE, f"{what} {path} is no regular file")
        yield file
    finally:
        os.close(file)
