"""The work directory of a job, in which the script of a step runs as a runner runs it."""

import os
import subprocess
from functools import cache
from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]


@cache
def find_script(flow: str, job: str, name: str) -> str:
    """Return the script of a step, by its id or by how its name begins."""
    content = YAML(typ="safe", pure=True).load((ROOT / f".github/workflows/{flow}.yml").read_text())
    (script,) = (
        step["run"]
        for step in content["jobs"][job]["steps"]
        if step.get("id") == name or step["name"].startswith(name)
    )
    return str(script)


class Place:
    """The work directory of a job, with a `knickpoint` that says and ends as it was asked."""

    def __init__(self, root: Path) -> None:
        self.root, self.data, self.temporary = root / "work", root / "data", root / "temporary"
        for one in (self.root, self.data, self.temporary):
            one.mkdir()
        (self.root / ".github").symlink_to(ROOT / ".github")
        self.answer("", 0)

    def answer(self, printed: str, code: int, leaves: str = "") -> None:
        """Let `knickpoint` print this and end so; with `leaves`, it writes comparison.json there."""
        command = self.root / ".venv/bin/knickpoint"
        command.parent.mkdir(parents=True, exist_ok=True)
        (self.root / "told").write_text(printed)
        leave = f'mkdir -p "{leaves}"; echo "{{}}" >"{leaves}/comparison.json"\n' if leaves else ""
        command.write_text(
            f'#!/bin/sh\nprintf "%s\\\\0" "$@" >arguments\n{leave}cat told\nexit {code}\n'
        )
        command.chmod(0o755)

    @property
    def arguments(self) -> list[str]:
        return (self.root / "arguments").read_text().split("\0")[:-1]

    def run(self, script: str, **values: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.root,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.temporary),
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GITHUB_SERVER_URL": "https://github.com",
                "GITHUB_REPOSITORY": "example/configs",
                "KNICKPOINT_DATA": str(self.data),
                "RUNNER_TEMP": str(self.temporary),
                "GITHUB_STEP_SUMMARY": str(self.temporary / "summary"),
                "GITHUB_OUTPUT": str(self.temporary / "output"),
                **values,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    @property
    def output(self) -> dict[str, str]:
        file = self.temporary / "output"
        lines = file.read_text().splitlines() if file.exists() else []
        return dict(line.split("=", 1) for line in lines)

    @property
    def summary(self) -> list[str]:
        return (self.temporary / "summary").read_text().splitlines()

    @property
    def is_owned(self) -> bool:
        return any(one.name == "owned" for one in self.root.parent.rglob("owned"))
