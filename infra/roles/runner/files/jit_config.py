#!/usr/bin/python3
"""Ask GitHub for the configuration of one runner for one job, and print it.

Runs on the host that holds the token, as the forced command of the one key that may ask: the token
never leaves this host, and what is printed registers one runner, once. Standard library only.
"""

import http.client
import json
import secrets
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

SETTINGS = Path("/etc/knickpoint-jit/settings.json")
TIME_LIMIT_S = 60


def ask(settings: dict[str, Any], token: str) -> str:
    """Return the encoded configuration of a new runner with a name of its own.

    Raises:
        urllib.error.URLError: GitHub cannot be reached, or refuses.
        KeyError, ValueError: its answer is not what its description says.

    """
    body = {
        "name": f"{settings['name']}-{secrets.token_hex(4)}",
        "runner_group_id": settings["runner_group_id"],
        "labels": settings["labels"],
        "work_folder": "_work",
    }
    request = urllib.request.Request(  # noqa: S310  the address is root's, in SETTINGS
        f"{settings['api']}/{settings['scope']}/actions/runners/generate-jitconfig",
        data=json.dumps(body).encode(),
        method="POST",
        headers={
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "X-GitHub-Api-Version": "2022-11-28",
        },
    )
    with urllib.request.urlopen(request, timeout=TIME_LIMIT_S) as answer:  # noqa: S310  see above
        return str(json.load(answer)["encoded_jit_config"])


def main(settings_file: Path = SETTINGS) -> int:
    """Print the configuration; on failure say why, and give 1."""
    try:
        settings = json.loads(settings_file.read_text(encoding="utf-8"))
        token = Path(settings["token_file"]).read_text(encoding="utf-8").strip()
        config = ask(settings, token)
    except urllib.error.HTTPError as error:
        why = {
            401: "the token is not valid (any more)",
            403: "the token may not administer runners, or not this runner group",
            404: "there is no such repository, organisation or runner group for this token",
        }.get(error.code, error.reason)
        print(f"GitHub gave no runner configuration: {error.code}, {why}", file=sys.stderr)  # noqa: T201
        return 1
    except (OSError, KeyError, ValueError, http.client.HTTPException) as error:
        print(f"no runner configuration: {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
        return 1
    print(config)  # noqa: T201  what it is for
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
