"""Check a file against a vendor's detached OpenPGP signature, by the fingerprint of the vendor's key.

The key itself comes from a key server. That server need not be trusted: a key is named by its
fingerprint, and a signature counts only if gpg says that the key of exactly that fingerprint made it.
"""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from perf.local.children import environment
from perf.model.errors import ReleaseError
from perf.releases.downloads import download

KEY_SERVER = "https://keyserver.ubuntu.com/pks/lookup?op=get&options=mr&search=0x"
"""What gives the key whose fingerprint follows."""

# Of GnuPG's doc/DETAILS: what stands in place of GOODSIG. VALIDSIG stands beside most of them as well:
# it says that the signature is that key's, and nothing of what became of the key.
_FAULTS = {
    "REVKEYSIG": "the key was revoked",
    "EXPKEYSIG": "the key has expired",
    "EXPSIG": "the signature has expired",
    "BADSIG": "the signature is of other bytes",
    "ERRSIG": "the signature cannot be checked, as if by a key that is not there",
}
_LIMIT_S = 300.0


def verify_signature(
    file: Path, signature: str, signer: str, *, report: Callable[[str], None], work_dir: Path
) -> None:
    """Check a file against the signature at a URL; delete the file if it was not made by `signer`.

    Raises:
        Unreachable: signature or key cannot be read.
        ReleaseError: the signature is not that key's signature of that file, key or signature was
            revoked or has expired, or gpg is not here or does not end.

    """
    asc, key, home = work_dir / "signature.asc", work_dir / "key.asc", work_dir / "gnupg"
    download(signature, asc, report=report)
    download(f"{KEY_SERVER}{signer}", key, report=report)
    home.mkdir(mode=0o700)
    _gpg(home, "--import", str(key))
    said = _gpg(home, "--status-fd", "1", "--verify", str(asc), str(file))
    if why := _find_fault(said, signer):
        file.unlink(missing_ok=True)
        raise ReleaseError(
            f"{file.name} is not signed by the vendor's key {signer}, so it was deleted: {why}; "
            f"{signature} is the signature that it was checked against"
        )


def find_gpg() -> str:
    """Return the path of gpg.

    Raises:
        ReleaseError: there is none here.

    """
    if found := shutil.which("gpg"):
        return found
    raise ReleaseError(
        "this release is checked by its vendor's signature, which needs the program gpg; install "
        "it (Debian: apt-get install gnupg), or name a local copy of the release"
    )


def _find_fault(said: str, signer: str) -> str:
    """Describe why what gpg said is not enough; nothing if it is."""
    lines = [line.split() for line in said.splitlines() if line.startswith("[GNUPG:] ")]
    statuses = {words[1] for words in lines if len(words) > 1}
    if faults := [f"{why} ({word})" for word, why in _FAULTS.items() if word in statuses]:
        return ", ".join(faults)
    # VALIDSIG: the key's fingerprint, …, and last that of its primary key.
    is_theirs = any(words[1:2] == ["VALIDSIG"] and words[-1] == signer for words in lines)
    return "" if is_theirs and "GOODSIG" in statuses else "gpg knows of no good signature by that key"


def _gpg(home: Path, *arguments: str) -> str:
    command = [find_gpg(), "--homedir", str(home), "--batch", "--no-autostart", *arguments]
    try:
        done = subprocess.run(  # noqa: S603  no shell; the command is ours
            command,
            env=environment(),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_LIMIT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise ReleaseError(
            f"gpg did not end within {_LIMIT_S:g} s, so the release is not checked; see whether "
            f"`{command[0]} --version` answers, or name a local copy of the release"
        ) from error
    return done.stdout
