"""Where an artifact can be fetched from."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perf.model.results import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """One place an artifact can come from, tried in the order given by the system.

    ARCHIVE: `location` is a URL, `checksum` a URL of its published digest or the digest itself; or,
    where there is a `signer`, the URL of the detached OpenPGP signature by the key of that fingerprint.
    MAVEN: `location` is group:artifact:version. BUILD: `bring` puts its files into a directory, and
    tells its second argument how far it is. BUILTIN: nothing to fetch.
    """

    source: Source
    location: str
    checksum: str = ""
    signer: str = ""
    bring: Callable[[Path, Callable[[str], None]], None] | None = None
