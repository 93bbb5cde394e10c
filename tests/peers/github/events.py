"""The payloads of events, cut to what our workflows may look at.

After https://docs.github.com/en/webhooks/webhook-events-and-payloads. The runner adds `repository`.
"""

from typing import Any
from zlib import crc32

JSON = dict[str, Any]
REPOSITORY = {"full_name": "example/configs", "fork": False, "default_branch": "main"}
FORK = {"full_name": "stranger/configs", "fork": True, "default_branch": "main"}
CANDIDATE = ".github/workflows/candidate.yml"


def pull_request_target(head: str, base: str, *, is_fork: bool = False, number: int = 7) -> JSON:
    """Return the event of a push to a pull request onto main."""
    return {
        "action": "synchronize",
        "number": number,
        "pull_request": {
            "number": number,
            "state": "open",
            "draft": False,
            "title": 'Slower" $(touch /tmp/owned) `id` ${{ github.token }}',
            "head": {"sha": head, "ref": "slower", "repo": FORK if is_fork else REPOSITORY},
            "base": {"sha": base, "ref": "main", "repo": REPOSITORY},
        },
    }


def workflow_run(run: int, title: str, **changes: Any) -> JSON:  # noqa: ANN401  fields of the run
    """Return the event of a run of `candidate` that ended."""
    action = changes.pop("action", "completed")
    return {
        "action": action,
        "workflow": {"name": "candidate", "path": CANDIDATE},
        "workflow_run": {
            "id": run,
            "name": "candidate",
            "path": CANDIDATE,
            "event": "pull_request_target",
            "display_title": title,
            "head_branch": "main",
            "head_sha": "0" * 40,
            "head_repository": REPOSITORY,
            "status": action,
            "conclusion": "success" if action == "completed" else None,
            "run_attempt": 1,
            "pull_requests": [],
            **changes,
        },
    }


def nightly_run(run: int) -> JSON:
    """Return the event of a scheduled night that ended."""
    path = ".github/workflows/nightly.yml"
    event = workflow_run(run, "nightly", name="nightly", path=path, event="schedule")
    return {**event, "workflow": {"name": "nightly", "path": path}}


def issue_comment(body: str, number: int, *, login: str, is_pull: bool = True) -> JSON:
    """Return the event of a new comment on pull request 7, or on issue 7."""
    pull = {"url": "https://api.github.com/repos/example/configs/pulls/7"}
    return {
        "action": "created",
        "issue": {"number": 7, "state": "open", **({"pull_request": pull} if is_pull else {})},
        "comment": {
            "id": number,
            "body": body,
            "user": {"id": crc32(login.encode()), "login": login, "type": "User"},
            "author_association": "NONE",
        },
        "sender": {"login": login},
    }
