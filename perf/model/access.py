"""How clients prove who they are to a database, and whom they trust: names of secrets, never a secret.

A password is in an environment variable, or in a file that nobody else may read; a configuration says
which, and only a client that connects reads it.
"""

from dataclasses import dataclass

from perf.model.scalars import STRICT, AbsolutePath, Text

VARIABLES_BEGIN = "KNICKPOINT_PASSWORD"
"""How the names of variables begin that hold a database's password; no server process gets them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Connections are encrypted, and servers must show a certificate that `ca_file` signed.

    The paths are those on the host that connects. With `certificate_file` and `key_file`, clients show
    one as well.
    """

    __pydantic_config__ = STRICT
    ca_file: AbsolutePath
    """Certificates of the authorities that are trusted."""
    certificate_file: AbsolutePath | None = None
    """Certificate that clients show."""
    key_file: AbsolutePath | None = None
    """Key of that certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The account of all clients, and TLS.

    A `username` has its password in the environment variable `password_env` or in `password_file`,
    exactly one of them.
    """

    __pydantic_config__ = STRICT
    username: Text | None = None
    """Login of all clients."""
    password_env: Text | None = None
    """Environment variable that holds the password."""
    password_file: AbsolutePath | None = None
    """File that holds the password."""
    tls: Tls | None = None
    """Encryption; absent: none."""
