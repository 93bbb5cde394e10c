"""GitHub's own description of its interface, held by Prism against what our client and our server say.

`package.json` and its lock pin both; the Node of a wheel installs them once into the cache. The
description is 13 MB: it is cut to the paths that the client uses, which makes Prism start in a second
or two. GraphQL is not in it, so a path for it is added, of our own making; GitHub's schema of it judges
the queries.
"""

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from node_packages import NODE, install_packages

JSON = dict[str, Any]
HERE = Path(__file__).parent
USED = {
    "/repos/{owner}/{repo}/pulls/{pull_number}": {"get"},
    "/repos/{owner}/{repo}/issues/{issue_number}/comments": {"get", "post"},
    "/repos/{owner}/{repo}/issues/comments/{comment_id}": {"patch"},
    "/repos/{owner}/{repo}/check-runs": {"post"},
    "/repos/{owner}/{repo}/check-runs/{check_run_id}": {"patch"},
    "/repos/{owner}/{repo}/commits/{ref}/check-runs": {"get"},
    "/repos/{owner}/{repo}/issues": {"get", "post"},
    "/repos/{owner}/{repo}/issues/{issue_number}": {"patch"},
    "/repos/{owner}/{repo}": {"get"},
    "/repos/{owner}/{repo}/collaborators/{username}/permission": {"get"},
    "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions": {"get", "post"},
    "/repos/{owner}/{repo}/actions/workflows/{workflow_id}": {"get"},
    "/repos/{owner}/{repo}/actions/workflows/{workflow_id}/dispatches": {"post"},
    "/repos/{owner}/{repo}/actions/workflows/{workflow_id}/runs": {"get"},
    "/repos/{owner}/{repo}/actions/runs/{run_id}/artifacts": {"get"},
}
ISSUES = "/repos/{owner}/{repo}/issues"
SENT_OF_ISSUE = {"title", "body", "state", "state_reason"}
EXAMPLES = {
    "pull": "pull-request",
    "comment": "issue-comment",
    "check": "check-run",
    "issue": "issue",
}
GRAPHQL: JSON = {
    "post": {
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "required": ["query", "variables"],
                        "properties": {"query": {"type": "string"}, "variables": {"type": "object"}},
                    }
                }
            },
        },
        "responses": {
            "200": {
                "description": "All that the client asks for.",
                "content": {
                    "application/json": {
                        "schema": {"type": "object", "required": ["data"]},
                        "example": {
                            "data": {
                                "viewer": {"login": "octocat"},
                                "nodes": [],
                                "minimizeComment": {"minimizedComment": {"isMinimized": True}},
                            }
                        },
                    }
                },
            }
        },
    }
}
OLD_TYPE = "application/vnd.github.v3+json"
"""GitHub's former name of JSON, which PyGithub asks for in places, and GitHub still knows."""
START_S = 60


def install() -> Path:
    """Install Prism and the cut description into the cache, once; give the directory."""
    return install_packages(HERE, "prism", cut_description, version=Path(__file__).read_bytes())


def cut_description(staged: Path) -> None:
    """Replace the whole description by the part that is used."""
    openapi = staged / "node_modules/@octokit/openapi"
    whole = json.loads((openapi / "generated/api.github.com.json").read_bytes())
    (staged / "github.json").write_text(json.dumps(cut(whole)))
    shutil.rmtree(openapi)  # 400 MB of descriptions that nobody reads


def cut(whole: JSON) -> JSON:
    """Keep the operations that are used, and what these refer to."""
    paths = {
        path: {key: value for key, value in whole["paths"][path].items() if key in methods}
        for path, methods in USED.items()
    }
    kept: JSON = {}
    waiting: list[Any] = [
        paths,
        *({"$ref": f"#/components/examples/{one}"} for one in EXAMPLES.values()),
    ]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, dict):
            if isinstance(reference := node.get("$ref"), str) and reference not in kept:
                _, kind, name = reference.removeprefix("#/").split("/")
                kept[reference] = whole["components"][kind][name]
                waiting.append(kept[reference])
            waiting.extend(value for key, value in node.items() if key != "$ref")
    complete(kept)
    for operation in (one for path in paths.values() for one in path.values()):
        if body := operation.get("requestBody"):
            body["required"] = True  # we always send one
        for response in operation["responses"].values():
            response.pop("headers", None)  # the example of a next page leads nowhere
            if content := response.get("content"):
                content[OLD_TYPE] = content["application/json"]
    narrow(paths[ISSUES]["post"])
    narrow(paths[f"{ISSUES}/{{issue_number}}"]["patch"])
    components: JSON = {}
    for reference, value in kept.items():
        _, kind, name = reference.removeprefix("#/").split("/")
        components.setdefault(kind, {})[name] = value
    return {
        **{key: whole[key] for key in ("openapi", "info", "servers")},
        "paths": {**paths, "/graphql": GRAPHQL},
        "components": components,
    }


def complete(kept: JSON) -> None:
    """Mend the examples that break their own schema."""
    examples = {key.rsplit("/", 1)[1]: one["value"] for key, one in kept.items() if "/examples/" in key}
    examples["pull-request"]["requested_teams"] = []
    repository = examples["full-repository-default-response"]
    for one in (repository, repository["source"]):
        one["language"] = None
    permission = "repository-collaborator-permission-response-if-user-has-admin-permissions"
    examples[permission]["user"]["role_name"] = "admin"


def narrow(operation: JSON) -> None:
    """Keep of an issue's body what we send, and take nothing else.

    Beside some of its other fields Prism looks at none of them, without a word.
    """
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    kept = {key: one for key, one in schema["properties"].items() if key in SENT_OF_ISSUE}
    kept["title"] = {"type": "string"}
    kept.get("state_reason", {}).pop("nullable", None)
    kept["body"].pop("nullable", None)
    schema |= {"properties": kept, "additionalProperties": False}


def read_examples(place: Path) -> dict[str, JSON]:
    """Return GitHub's own examples of what the client reads."""
    examples = json.loads((place / "github.json").read_bytes())["components"]["examples"]
    return {key: examples[name]["value"] for key, name in EXAMPLES.items()}


def find_faults(place: Path, queries: list[str]) -> list[str]:
    """Return what GitHub's GraphQL schema has against these queries."""
    script = (
        'import { validate } from "@octokit/graphql-schema";'
        "const faults = JSON.parse(process.argv[1]).flatMap((query) => validate(query));"
        "console.log(JSON.stringify(faults.map((fault) => fault.message)));"
    )
    answer = subprocess.run(
        [NODE, "--input-type=module", "--eval", script, json.dumps(queries)],
        cwd=place,
        check=True,
        capture_output=True,
    )
    faults: list[str] = json.loads(answer.stdout)
    return faults


@contextmanager
def prism(place: Path, log: Path, upstream: str = "") -> Iterator[str]:
    """Run Prism, in front of `upstream` or as a mock; it answers each violation with an error."""
    port = find_port()
    url = f"http://127.0.0.1:{port}"
    description = log.with_suffix(".json")
    # Its examples lead to GitHub; the client follows them, so they lead here.
    text = (place / "github.json").read_text()
    description.write_text(text.replace("https://api.github.com", url))
    mode = ["proxy", str(description), upstream] if upstream else ["mock", str(description)]
    program = place / "node_modules/@stoplight/prism-cli/dist/index.js"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [NODE, program, *mode, "--errors", "--host", "127.0.0.1", "--port", str(port)],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_until_listening(port, process, log)
            yield url
        finally:
            process.terminate()
            process.wait(10)


def find_port() -> int:
    """Return a port that nothing uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_listening(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Poll until it accepts connections; raise RuntimeError with its log if it never does."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"Prism did not start:\n{log.read_text()}")
