"""Check a file against a vendor's detached OpenPGP signature, by the fingerprint of the vendor's key.

The key itself comes from a key server. That server need not be trusted: a key is named by its
fingerprint, and a signature counts only if gpg says that the key of exactly that fingerprint made it.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path

from perf.downloads import download
from perf.errors import ReleaseError

KEY_SERVER = "https://keyserver.ubuntu.com/pks/lookup?op=get&options=mr&search=0x"
"""What gives the key whose fingerprint follows."""


def verify_signature(
    file: Path, signature: str, signer: str, *, tell: Callable[[str], None], work_dir: Path
) -> None:
    """Check a file against the signature at a URL; delete the file if it was not made by `signer`.

    Raises:
        Unreachable: signature or key cannot be read.
        ReleaseError: the signature is not that key's signature of that file, or there is no gpg here.

    """
    asc, key, home = work_dir / "signature.asc", work_dir / "key.asc", work_dir / "gnupg"
    download(signature, asc, tell=tell)
    download(f"{KEY_SERVER}{signer}", key, tell=tell)
    home.mkdir(mode=0o700)
    _gpg(home, "--import", str(key))
    said = _gpg(home, "--status-fd", "1", "--verify", str(asc), str(file))
    # A line for a good signature: VALIDSIG, the key's fingerprint, …, and last that of its primary key.
    valid = [line.split() for line in said.splitlines() if line.startswith("[GNUPG:] VALIDSIG ")]
    if not any(words[-1] == signer for words in valid):
        file.unlink(missing_ok=True)
        raise ReleaseError(
            f"{file.name} is not signed by the vendor's key {signer}, so it was deleted; "
            f"{signature} is the signature that it was checked against"
        )


def _gpg(home: Path, *arguments: str) -> str:
    command = ["gpg", "--homedir", str(home), "--batch", "--no-autostart", *arguments]
    try:
        done = subprocess.run(  # noqa: S603  no shell; the command is ours
            command, capture_output=True, text=True, errors="replace", check=False
        )
    except FileNotFoundError as error:
        raise ReleaseError(
            "this release is checked by its vendor's signature, which needs the program gpg; install "
            "it (Debian: apt-get install gnupg), or name a local copy of the release"
        ) from error
    return done.stdout
