"""Fetch one artifact as actions/download-artifact does, and unpack it."""

import json
import os
import sys
from io import BytesIO
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, Request, build_opener, urlopen
from zipfile import ZipFile


class Stay(HTTPRedirectHandler):
    """Follows nothing: the token is not for the host behind the redirection."""

    def redirect_request(self, *_: object) -> None:
        """Decline."""


def ask(path: str) -> tuple[bytes, str]:
    """Return the answer of the local GitHub, and where it sends us."""
    url = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['REPOSITORY']}/actions/{path}"
    request = Request(url)  # noqa: S310  the local GitHub
    request.add_header("Authorization", f"Bearer {os.environ['TOKEN']}")
    try:
        with build_opener(Stay).open(request, timeout=30) as answer:
            return answer.read(), ""
    except HTTPError as error:
        if error.code != 302:
            sys.exit(f"::error::GitHub answered {error.code} to {path}")
        return b"", error.headers["Location"]


def fetch(name: str) -> bytes:
    """Return the zip of that name."""
    run = os.environ["RUN"]
    if not os.environ["TOKEN"]:
        return Path(os.environ["KNICKPOINT_PEER_STORE"], run, f"{name}.zip").read_bytes()
    found = json.loads(ask(f"runs/{run}/artifacts?name={quote(name)}")[0])["artifacts"]
    if not found:
        sys.exit(f"::error::Unable to download artifact(s): Artifact not found for name: {name}")
    newest = max(one["id"] for one in found)
    _, url = ask(f"artifacts/{newest}/zip")
    with urlopen(url, timeout=30) as answer:  # noqa: S310  the local storage
        content: bytes = answer.read()
        return content


def main() -> None:
    """Unpack it where the inputs say."""
    if not (name := os.environ["NAME"]):
        sys.exit("::error::this stand-in wants a name")
    target = Path(os.environ["DIRECTORY"])
    target.mkdir(parents=True, exist_ok=True)
    with ZipFile(BytesIO(fetch(name))) as archive:
        archive.extractall(target)
        sys.stdout.write(f"artifact {name}: {len(archive.namelist())} files\n")


main()
