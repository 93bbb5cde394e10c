"""A GitHub with one pull request, in memory: comments, check runs, issues, GraphQL that minimises.

It keeps state, pages, refuses and breaks on demand, and records what it was asked. Where `examples` are
given (GitHub's own, from its description), each answer is one of them with our state laid over it, so
that Prism can hold answers to the contract, too.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

JSON = dict[str, Any]
Route = tuple[str, str, Callable[..., Any]]
HEAD = "b7e2d1c0f9a83746556473829100aabbccddeeff"
TOKEN = "a-token-that-must-not-be-printed"  # noqa: S105  what the tests send
BOT = "github-actions[bot]"
SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to the next request of this method whose path holds `path`.

    With `is_done` the request is carried out before the answer goes wrong. A status of 0 is no answer:
    the connection is closed. `page` is sent as it is, as a proxy does it; else `message`, as GitHub.
    """

    method: str
    path: str
    status: int
    message: str = "Server Error"
    page: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """An answer that is at another address, where no token is wanted: GitHub's storage."""

    url: str


@dataclass(slots=True)
class GitHub:
    """The state. `url` is where clients reach it; `login` is who its token belongs to."""

    url: str = ""
    login: str = BOT
    head: str = HEAD
    head_repo: str = "example/configs"
    examples: Mapping[str, JSON] = field(default_factory=dict)
    comments: dict[int, JSON] = field(default_factory=dict)
    minimised: set[str] = field(default_factory=set)
    runs: dict[int, JSON] = field(default_factory=dict)
    issues: dict[int, JSON] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    graphql: list[str] = field(default_factory=list)
    ids: Iterator[int] = field(default_factory=lambda: count(1000))

    def write(self, body: str, login: str = BOT) -> JSON:
        """Let somebody comment."""
        number = next(self.ids)
        made = {
            **self.examples.get("comment", {}),
            "id": number,
            "node_id": f"IC_{number}",
            "url": f"{self.url}/repos/example/configs/issues/comments/{number}",
            "html_url": f"https://github.com/example/configs/pull/7#issuecomment-{number}",
            "body": body,
            "user": {**self.examples.get("comment", {}).get("user", {}), "login": login},
        }
        self.comments[number] = made
        return made

    def report(self, title: str, body: str, login: str = BOT, *, is_pull: bool = False) -> JSON:
        """Let somebody open an issue, or a pull request, which is listed among them."""
        number = len(self.issues) + 1
        shape = {
            key: one for key, one in self.examples.get("issue", {}).items() if key != "pull_request"
        }
        url = f"{self.url}/repos/example/configs/issues/{number}"
        kind = "pull" if is_pull else "issues"
        made = {
            **shape,
            "id": next(self.ids),
            "number": number,
            "url": url,
            "html_url": f"https://github.com/example/configs/{kind}/{number}",
            "title": title,
            "body": body,
            "state": "open",
            "state_reason": None,
            "user": {**shape.get("user", {}), "login": login},
            **(
                {"pull_request": {"url": url, "html_url": url, "diff_url": url, "patch_url": url}}
                if is_pull
                else {}
            ),
        }
        self.issues[number] = made
        return made

    @property
    def writes(self) -> list[str]:
        """Return what was asked beyond reading, in order."""
        return [one for one in self.asked if not one.startswith(("GET ", "QUERY "))]

    @property
    def shown(self) -> list[str]:
        """Return the bodies of the comments that are not minimised, oldest first."""
        return [one["body"] for one in self.comments.values() if one["node_id"] not in self.minimised]

    def answer(self, method: str, path: str, query: dict[str, list[str]], sent: JSON) -> Any:  # noqa: ANN401  JSON
        """Carry out a request; raise LookupError where there is nothing."""
        for known, pattern, act in self.list_routes():
            if known == method and (found := re.fullmatch(pattern, path)):
                return act(*found.groups(), query, sent)
        raise LookupError(path)

    def list_routes(self) -> tuple[Route, ...]:
        """Return what is known: a method, a pattern of the path, and what answers."""
        return (
            ("GET", r"/repos/example/configs/pulls/7", self._pull),
            ("GET", r"/repos/example/configs/issues/7/comments", self._list_comments),
            ("POST", r"/repos/example/configs/issues/7/comments", self._create_comment),
            ("PATCH", r"/repos/example/configs/issues/comments/(\d+)", self._edit_comment),
            ("GET", r"/repos/example/configs/commits/(\w+)/check-runs", self._list_runs),
            ("POST", r"/repos/example/configs/check-runs", self._create_run),
            ("PATCH", r"/repos/example/configs/check-runs/(\d+)", self._edit_run),
            ("GET", r"/repos/example/configs/issues", self._list_issues),
            ("POST", r"/repos/example/configs/issues", self._open_issue),
            ("PATCH", r"/repos/example/configs/issues/(\d+)", self._edit_issue),
            ("POST", r"/graphql", self._graphql),
        )

    def _pull(self, _query: object, _sent: object) -> JSON:
        shape = self.examples.get("pull", {})
        repo = {
            **shape.get("base", {}).get("repo", {}),
            "url": f"{self.url}/repos/example/configs",
            "full_name": "example/configs",
        }
        return {
            **shape,
            "number": 7,
            "url": f"{self.url}/repos/example/configs/pulls/7",
            "issue_url": f"{self.url}/repos/example/configs/issues/7",
            "head": {
                **shape.get("head", {}),
                "sha": self.head,
                "repo": {**shape.get("head", {}).get("repo", {}), "full_name": self.head_repo},
            },
            "base": {**shape.get("base", {}), "repo": repo},
        }

    def _list_comments(self, query: dict[str, list[str]], _sent: object) -> list[JSON]:
        return page(list(self.comments.values()), query)

    def _create_comment(self, _query: object, sent: JSON) -> JSON:
        return self.write(sent["body"], self.login)

    def _edit_comment(self, number: str, _query: object, sent: JSON) -> JSON:
        self.comments[int(number)]["body"] = sent["body"]
        return self.comments[int(number)]

    def _list_runs(self, sha: str, query: dict[str, list[str]], _sent: object) -> JSON:
        named = [
            one
            for one in self.runs.values()
            if one["head_sha"] == sha and one["name"] in query.get("check_name", [one["name"]])
        ]
        return {"total_count": len(named), "check_runs": page(named, query)}

    def _create_run(self, _query: object, sent: JSON) -> JSON:
        number = next(self.ids)
        self.runs[number] = {
            **self.examples.get("check", {}),
            "id": number,
            "url": f"{self.url}/repos/example/configs/check-runs/{number}",
            "html_url": f"https://github.com/example/configs/runs/{number}",
            "conclusion": None,
            "details_url": "",
        }
        return self._edit_run(str(number), None, sent)

    def _edit_run(self, number: str, _query: object, sent: JSON) -> JSON:
        run = self.runs[int(number)]
        output = {**self.examples.get("check", {}).get("output", {}), **sent["output"]}
        run.update({**sent, "output": output})
        return run

    def _list_issues(self, query: dict[str, list[str]], _sent: object) -> list[JSON]:
        wanted = query.get("state", ["open"])[0]
        found = [one for one in self.issues.values() if wanted in {"all", one["state"]}]
        is_ascending = query.get("direction", ["desc"])[0] == "asc"
        return page(sorted(found, key=lambda one: one["number"] * (1 if is_ascending else -1)), query)

    def _open_issue(self, _query: object, sent: JSON) -> JSON:
        return self.report(sent["title"], sent["body"], self.login)

    def _edit_issue(self, number: str, _query: object, sent: JSON) -> JSON:
        self.issues[int(number)].update(sent)
        return self.issues[int(number)]

    def _graphql(self, _query: object, sent: JSON) -> JSON:
        self.graphql.append(sent["query"])
        if "minimizeComment" in sent["query"]:
            self.minimised.add(sent["variables"]["input"]["subjectId"])
            return {"data": {"minimizeComment": {"minimizedComment": {"isMinimized": True}}}}
        if "viewer" in sent["query"]:
            return {"data": {"viewer": {"login": self.login}}}
        nodes = [{"id": one, "isMinimized": one in self.minimised} for one in sent["variables"]["ids"]]
        return {"data": {"nodes": nodes}}


def page(items: list[JSON], query: dict[str, list[str]]) -> list[JSON]:
    """Return the page that was asked for."""
    size, number = int(query.get("per_page", ["30"])[0]), int(query.get("page", ["1"])[0])
    return items[(number - 1) * size : number * size]


class Handler(BaseHTTPRequestHandler):
    """HTTP around the state of its server."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two packets; 40 ms each time otherwise
    server: "Server"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the parent
        """Say nothing; `asked` keeps it."""

    def do_GET(self) -> None:
        """Answer."""
        self._answer("GET")

    def do_POST(self) -> None:
        """Answer."""
        self._answer("POST")

    def do_PATCH(self) -> None:
        """Answer."""
        self._answer("PATCH")

    def _answer(self, method: str) -> None:
        state = self.server.state
        parts = urlsplit(self.path)
        path, query = unquote(parts.path), parse_qs(parts.query)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        sent = json.loads(raw) if raw else {}
        is_query = path == "/graphql" and not sent["query"].lstrip().startswith("mutation")
        state.asked.append(f"{'QUERY' if is_query else method} {path}")
        if self.headers.get("Authorization") not in {f"token {TOKEN}", f"Bearer {TOKEN}"}:
            self._send(401, {"message": "Bad credentials"})
            return
        fault = next((one for one in state.faults if one.method == method and one.path in path), None)
        if fault:
            state.faults.remove(fault)
        status, answer, headers = 201 if method == "POST" and path != "/graphql" else 200, None, {}
        if not fault or fault.is_done:
            try:
                answer = state.answer(method, path, query, sent)
            except LookupError:
                status, answer = 404, {"message": "Not Found"}
        if fault and not fault.status:
            self.close_connection = True
            return
        if fault:
            status, answer, headers = fault.status, {"message": fault.message}, dict(fault.headers)
        elif isinstance(answer, list | dict):
            headers = self._link(parts.path, query, answer)
        elif isinstance(answer, Elsewhere):
            status, answer, headers = 302, {}, {"Location": answer.url}
        elif answer is None:
            status = 204
        page = fault.page.encode() if fault and fault.page is not None else None
        self._send(status, answer, headers, page)

    def _link(
        self, path: str, query: dict[str, list[str]], answer: list[JSON] | JSON
    ) -> dict[str, str]:
        """Name the next page where this one is full."""
        size, number = int(query.get("per_page", ["30"])[0]), int(query.get("page", ["1"])[0])
        if not isinstance(answer, list) or len(answer) < size:
            return {}
        asked = urlencode({**query, "per_page": [size], "page": [number + 1]}, doseq=True)
        url = f"{self.server.state.url}{path}?{asked}"
        return {"Link": f'<{url}>; rel="next"'}

    def _send(
        self,
        status: int,
        answer: Any,  # noqa: ANN401  JSON
        headers: Mapping[str, str] | None = None,
        page: bytes | None = None,
    ) -> None:
        content = json.dumps(answer).encode() if page is None else page
        if status == 204:
            content = b""
        kind = "application/json" if page is None else "text/html"
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


class Server(ThreadingHTTPServer):
    """Serves one state on a free port of this machine."""

    daemon_threads = True

    def __init__(self, state: GitHub) -> None:
        """Bind."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.state = state
        state.url = f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serve(state: GitHub | None = None) -> Iterator[GitHub]:
    """Serve until the block ends."""
    server = Server(state or GitHub())
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
