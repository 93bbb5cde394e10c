"""Runs one workflow with act, on this machine and without containers, and gives what GitHub would show.

act reads the workflow as it stands in the repository, but for one line: it does not know the word
`queue` of a concurrency group yet (https://github.com/nektos/act/issues/6095), so the copy that it
reads leaves that out. It knows no groups at all, and no environments. Actions of the marketplace are
replaced by those in `tests/peers/actions`, each under the very commit that the workflow pins.
"""

import json
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

JSON = dict[str, Any]
ACT = Path(sys.executable).with_name("act")
STAND_INS = Path(__file__).parent / "actions"
LABELS = ("self-hosted", "knickpoint", "ubuntu-24.04", "ubuntu-latest")
MARK = "KNICKPOINT_ACT_RUN"
_USED = re.compile(r"uses: actions/([\w-]+)\S*@([0-9a-f]{40})")
_QUEUE = re.compile(r"^ +queue: max *(#.*)?\n", re.MULTILINE)
_OURS = ("GITHUB_", "ACTIONS_", "RUNNER_", "KNICKPOINT_", "INPUT_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a run came to. A job that was skipped is in none of the tables; `left` are its processes."""

    code: int
    jobs: Mapping[str, str]
    steps: Mapping[str, str]
    """Outcome of each step that ran, by name, of the main part."""
    summary: str
    outputs: Mapping[str, str]
    log: str
    took_s: float
    left: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Runner:
    """A machine that runs jobs. `repository` has the default branch checked out, `origin` is bare."""

    place: Path
    repository: Path
    origin: Path
    store: Path
    api_url: str
    token: str
    data: Path
    environment: Path | None = None
    """A `.venv` that jobs find instead of making one; None: each job makes its own."""
    next_run: int = field(default=1000)

    def run(
        self,
        workflow: str,
        event: str,
        payload: JSON,
        *,
        variables: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
        limit_s: float = 540,
    ) -> Done:
        """Run `workflow` as after `event`; raise TimeoutExpired past the limit. No process stays."""
        self.next_run += 1
        self.place.mkdir(parents=True, exist_ok=True)
        known = {"full_name": "example/configs", "default_branch": "main", "fork": False}
        event_file = self.place / f"event-{self.next_run}.json"
        event_file.write_text(json.dumps({"repository": known, **payload}))
        known_flows = self.repository / ".github/workflows"
        file = self.place / workflow
        file.write_text(leave_out_queue((known_flows / workflow).read_text()))
        used = {one for flow in known_flows.glob("*.yml") for one in _USED.findall(flow.read_text())}
        command = [str(ACT), event, "--json", "-W", str(file), "-C", str(self.repository)]
        command += ["-e", str(event_file), "--container-daemon-socket", "-", "--no-cache-server"]
        command += ["--no-skip-checkout", "--action-cache-path", str(self.place / "work")]
        command += ["--actor", "octocat", "--defaultbranch", "main", "-s", f"GITHUB_TOKEN={self.token}"]
        for label in LABELS:
            command += ["-P", f"{label}=-self-hosted"]
        for name, commit in sorted(used):
            command += ["--local-repository", f"actions/{name}@{commit}={STAND_INS / name}"]
        for name, value in (variables or {}).items():
            command += ["--var", f"{name}={value}"]
        for name, value in {**self._environ(), **(environ or {})}.items():
            command += ["--env", f"{name}={value}"]
        return self._finish(command, limit_s)

    def _environ(self) -> dict[str, str]:
        environ = {
            "GITHUB_API_URL": self.api_url,
            "GITHUB_GRAPHQL_URL": f"{self.api_url}/graphql",
            "GITHUB_REPOSITORY": "example/configs",
            "GITHUB_RUN_ID": str(self.next_run),
            "KNICKPOINT_DATA": str(self.data),
            "KNICKPOINT_PEER_ORIGIN": str(self.origin),
            "KNICKPOINT_PEER_STORE": str(self.store),
        }
        if self.environment is not None:
            environ["KNICKPOINT_PEER_ENVIRONMENT"] = str(self.environment)
            environ["PIP_DRY_RUN"] = "1"  # it is not theirs to change
        return environ

    def _finish(self, command: list[str], limit_s: float) -> Done:
        mark = uuid.uuid4().hex
        clean = {key: one for key, one in os.environ.items() if not key.startswith(_OURS)}
        begun, path = time.monotonic(), self.place / f"run-{self.next_run}.log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                command, env={**clean, MARK: mark}, stdout=log, stderr=subprocess.STDOUT
            )
            try:
                code = process.wait(timeout=limit_s)
            finally:
                process.kill()
                process.wait()
                left = end_marked(mark)
        return read_log(path.read_text(), code, time.monotonic() - begun, left)


def leave_out_queue(text: str) -> str:
    """Return a workflow without the word that act does not know."""
    return _QUEUE.sub("", text)


def end_marked(mark: str) -> tuple[str, ...]:
    """End the processes that a run left behind, and say which they were."""
    left = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.name() != "act":
                left.append(" ".join(process.cmdline())[:200])
                process.kill()
        except (psutil.Error, OSError):
            continue
    return tuple(left)


def read_log(printed: str, code: int, took_s: float, left: tuple[str, ...]) -> Done:
    """Read what act says of a run, one JSON object a line."""
    jobs, steps, outputs, summary, log = {}, {}, {}, [], []
    for line in printed.splitlines():
        try:
            said = json.loads(line)
        except ValueError:
            log.append(line)
            continue
        log.append(str(said.get("msg", "")).rstrip("\n"))
        if "jobResult" in said:
            jobs[said["jobID"]] = said["jobResult"]
        if said.get("stage") == "Main" and "stepResult" in said and len(said["stepID"]) == 1:
            steps[said["step"]] = said["stepResult"]
        if said.get("command") == "set-output":
            outputs[said["name"]] = said["arg"]
        if said.get("command") == "summary":
            summary.append(said["content"])
    return Done(
        code=code,
        jobs=jobs,
        steps=steps,
        summary="".join(summary),
        outputs=outputs,
        log="\n".join(log),
        took_s=took_s,
        left=left,
    )
