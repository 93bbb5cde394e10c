"""What GitHub knows of workflows, on top of the pull request: runs, artifacts, dispatches, permissions.

Artifacts are the zips that `tests/peers/actions/upload-artifact` wrote: `<store>/<run>/<name>.zip`.
As on GitHub they lie with somebody else: the interface sends the client there, and `leaked` holds what
came with a token that is none of theirs. After https://docs.github.com/en/rest/actions.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from github_server import JSON, Elsewhere, GitHub, Route, page, serve

REPOSITORY = "/repos/example/configs"


@dataclass(slots=True)
class Forge(GitHub):
    """The state. `store` holds the artifacts; `roles` what each login may do, others may read."""

    store: Path = Path()
    storage_url: str = ""
    roles: dict[str, str] = field(default_factory=dict)
    flows: dict[str, list[JSON]] = field(default_factory=dict)
    """The runs of each workflow file, newest first."""
    flow_state: str = "active"
    built: JSON = field(default_factory=dict)
    """What is said of any run: what it built, from which branch of which repository."""
    environments: dict[str, list[JSON]] = field(default_factory=dict)
    """The protection rules of each environment."""
    dispatched: list[JSON] = field(default_factory=list)
    reactions: list[tuple[int, str]] = field(default_factory=list)
    leaked: list[str] = field(default_factory=list)

    def list_routes(self) -> tuple[Route, ...]:
        """Return what is known beside the pull request."""
        return (
            *GitHub.list_routes(self),
            ("GET", REPOSITORY, self._repository),
            ("GET", f"{REPOSITORY}/pulls", self._list_pulls),
            ("GET", rf"{REPOSITORY}/actions/runs/(\d+)", self._run),
            ("GET", rf"{REPOSITORY}/actions/runs/(\d+)/artifacts", self._list_artifacts),
            ("GET", rf"{REPOSITORY}/actions/artifacts/(\d+)/zip", self._send_to_storage),
            ("GET", rf"{REPOSITORY}/actions/workflows/([\w.-]+)/runs", self._list_flow_runs),
            ("POST", rf"{REPOSITORY}/actions/workflows/([\w.-]+)/dispatches", self._dispatch),
            ("GET", rf"{REPOSITORY}/environments/([\w-]+)", self._environment),
            ("GET", rf"{REPOSITORY}/collaborators/([\w-]+)/permission", self._permission),
            ("GET", rf"{REPOSITORY}/issues/comments/(\d+)", self._comment),
            ("GET", rf"{REPOSITORY}/issues/comments/(\d+)/reactions", self._list_reactions),
            ("POST", rf"{REPOSITORY}/issues/comments/(\d+)/reactions", self._react),
            ("GET", rf"{REPOSITORY}/actions/workflows/([\w.-]+)", self._flow),
        )

    def _repository(self, _query: object, _sent: object) -> JSON:
        url = f"{self.url}{REPOSITORY}"
        return {
            "id": 1,
            "full_name": "example/configs",
            "default_branch": "main",
            "fork": False,
            "url": url,
        }

    def _run(self, number: str, _query: object, _sent: object) -> JSON:
        return {"id": int(number), **self.built}

    def _list_pulls(self, query: dict[str, list[str]], _sent: object) -> list[JSON]:
        pulls = {"stranger:topic/1": [{"number": 7, "head": {"sha": self.head}}]}
        return [one for name in query["head"] for one in pulls.get(name, [])]

    def find_artifacts(self, run: str) -> list[Path]:
        """Return the zips of a run."""
        return sorted(self.store.glob(f"{run}/*.zip"))

    def _list_artifacts(self, run: str, query: dict[str, list[str]], _sent: object) -> JSON:
        every = sorted(self.store.glob("*/*.zip"))
        named = [
            {
                "id": every.index(one) + 1,
                "name": one.stem,
                "size_in_bytes": one.stat().st_size,
                "expired": False,
                "created_at": write_time(one.stat().st_mtime),
                "url": f"{self.url}{REPOSITORY}/actions/artifacts/{every.index(one) + 1}",
                "archive_download_url": (
                    f"{self.url}{REPOSITORY}/actions/artifacts/{every.index(one) + 1}/zip"
                ),
                "workflow_run": {"id": int(run)},
            }
            for one in self.find_artifacts(run)
            if one.stem in query.get("name", [one.stem])
        ]
        return {"total_count": len(named), "artifacts": page(named, query)}

    def _send_to_storage(self, number: str, _query: object, _sent: object) -> Elsewhere:
        every = sorted(self.store.glob("*/*.zip"))
        found = every[int(number) - 1].relative_to(self.store)
        return Elsewhere(f"{self.storage_url}/{found.as_posix()}?signature=of-an-hour")

    def _list_flow_runs(self, flow: str, query: dict[str, list[str]], _sent: object) -> JSON:
        named = [
            one
            for one in self.flows[flow]
            if one["status"] in query.get("status", [one["status"]])
            and one["head_branch"] in query.get("branch", [one["head_branch"]])
        ]
        return {"total_count": len(named), "workflow_runs": page(named, query)}

    def _dispatch(self, flow: str, _query: object, sent: JSON) -> None:
        self.dispatched.append({"workflow": flow, **sent})

    def _environment(self, name: str, _query: object, _sent: object) -> JSON:
        return {"id": 1, "name": name, "protection_rules": self.environments[name]}

    def _permission(self, login: str, _query: object, _sent: object) -> JSON:
        role = self.roles.get(login, "read")
        # The older field knows four words, in which maintain is a kind of write and triage of read.
        permission = {"maintain": "write", "triage": "read"}.get(role, role)
        return {"permission": permission, "role_name": role, "user": {"login": login}}

    def _comment(self, number: str, _query: object, _sent: object) -> JSON:
        return self.comments[int(number)]

    def _react(self, number: str, _query: object, sent: JSON) -> JSON:
        self.reactions.append((int(number), sent["content"]))
        return {"id": next(self.ids), "content": sent["content"], "user": {"login": self.login}}

    def _list_reactions(self, number: str, query: dict[str, list[str]], _sent: object) -> list[JSON]:
        found = [content for comment, content in self.reactions if comment == int(number)]
        return page([{"content": one, "user": {"login": self.login}} for one in found], query)

    def _flow(self, name: str, _query: object, _sent: object) -> JSON:
        url = f"{self.url}{REPOSITORY}/actions/workflows/{name}"
        return {"id": 5, "url": url, "path": f".github/workflows/{name}", "state": self.flow_state}


def write_time(seconds: float) -> str:
    """Write a time as GitHub does."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


class Storage(SimpleHTTPRequestHandler):
    """Serves the store; who holds a signed address needs no token, and must not send one."""

    def __init__(self, *args: Any, forge: Forge) -> None:  # noqa: ANN401  what http.server gives
        """Serve the directory of its forge."""
        self.forge = forge
        super().__init__(*args, directory=str(forge.store))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the parent
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer, and remember a token."""
        if self.headers.get("Authorization"):
            self.forge.leaked.append(self.path)
        super().do_GET()


@contextmanager
def serve_forge(forge: Forge) -> Iterator[Forge]:
    """Serve the interface and the storage until the block ends."""
    storage = ThreadingHTTPServer(("127.0.0.1", 0), partial(Storage, forge=forge))
    thread = Thread(target=storage.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    forge.storage_url = f"http://localhost:{storage.server_port}"
    try:
        with serve(forge):
            yield forge
    finally:
        storage.shutdown()
        thread.join()
        storage.server_close()
