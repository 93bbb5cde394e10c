"""A bare git repository as GitHub has it: branches, and a ref for the head of each pull request.

Its main branch is this repository as it lies here, whatever is committed of it, with a configuration
that measures for real but in seconds. The database, its release and the harness are those of always.
"""

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
DEFAULT = "configs/systems/cassandra/default.yaml"
SUITES = {"nightly", "single"}
WIDE = {
    # Whatever else this machine does meanwhile, the way of a result to GitHub is what is tried here.
    "max_error_share: 0.01": "max_error_share: 0.5",
    "min_achieved_share: 0.95": "min_achieved_share: 0.1",
    "max_lateness_share: 0.5": "max_lateness_share: 100.0",
    "max_client_cpu_share: 0.9": "max_client_cpu_share: 100.0",
    "max_client_wait_share: 1.5": "max_client_wait_share: 100.0",
    "max_iteration_spread: 1.0": "max_iteration_spread: 100.0",
    "max_foreign_cpu_share: 0.25": "max_foreign_cpu_share: 1.0",
    "max_steal_share: 0.1": "max_steal_share: 1.0",
    "max_throttled_share: 0.1": "max_throttled_share: 1.0",
    "max_clock_step_ms: 100": "max_clock_step_ms: 10000",
}
SHORT = {
    "warmup_s: 2": "warmup_s: 1",
    "warmup_cap_s: 2": "warmup_cap_s: 1",
    "iteration_s: 2": "iteration_s: 1",
    "iterations: 3": "iterations: 2",
}
WINDOW = "commitlog_sync_group_window"
"""A knob of Cassandra whose effect is certain: so long a write waits for others to be synced with."""
SETTINGS = f"settings: {{commitlog_sync: group, commitlog_sync_period: 0ms, {WINDOW}: 2ms}}\n"


class Origin:
    """The bare repository at `bare`, and `work`, a clone in which commits are made."""

    def __init__(self, root: Path, own: Path | None = None) -> None:
        """Commit `own`, or this repository as it lies here with short trials, and make it bare."""
        self.bare, self.work = root / "configs.git", root / "work"
        if own:
            shutil.copytree(own, self.work)
        else:
            copy_tree(self.work)
            shorten(self.work / "configs")
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.name", "tests")
        self.git("config", "user.email", "tests@example.org")
        self.main = self.commit("begin")
        self.git("clone", "--quiet", "--bare", str(self.work), str(self.bare))
        # GitHub gives any commit that it has to who asks for it by its hash.
        self.git("--git-dir", str(self.bare), "config", "uploadpack.allowAnySHA1InWant", "true")
        self.git("remote", "add", "origin", "https://github.com/example/configs.git")

    def git(self, *arguments: str) -> str:
        """Run git in the clone; give what it prints."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.work,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, message: str) -> str:
        """Commit all that is in the work tree; give the hash."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD")

    def propose(self, edits: dict[str, tuple[str, str]], *, branch: str = "", number: int = 7) -> str:
        """Push a commit on main, with texts replaced or files added, as a pull request; give its hash.

        With `branch`, it is on that branch of the repository as well; else somebody's fork has it.
        """
        self.git("checkout", "--quiet", "--detach", "main")
        for path, (old, new) in edits.items():
            file = self.work / path
            text = file.read_text() if file.exists() else ""
            assert old in text
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace(old, new) if old else new)
        head = self.commit("a proposal")
        self.git("push", "--quiet", "--force", str(self.bare), f"HEAD:refs/pull/{number}/head")
        if branch:
            self.git("push", "--quiet", "--force", str(self.bare), f"HEAD:refs/heads/{branch}")
        self.git("checkout", "--quiet", "main")
        return head


def copy_tree(target: Path) -> None:
    """Copy what git would take of this repository: what it knows, and what is new."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in sorted(set(listed.stdout.split("\0")) - {""}):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def shorten(configs: Path) -> None:
    """Leave one experiment, a server and trials of seconds; measure them with wide limits."""
    for suite in (configs / "suites").glob("*.yaml"):
        if suite.stem not in SUITES:
            suite.unlink()
    shutil.rmtree(configs / "reference")  # reports that name the suites which just went
    single = (configs / "suites/single.yaml").read_text()
    replace(configs / "suites/single.yaml", {'["5.0.0", "5.0.9"]': '["5.0.9"]'})
    short = single.replace('["5.0.0", "5.0.9"]', '["5.0.9"]').replace("name: single", "name: nightly")
    (configs / "suites/nightly.yaml").write_text(short)
    replace(configs / "workloads/sensor-write-short.yaml", SHORT)
    replace(configs / "testbeds/local.yaml", WIDE)
    with (configs / "systems/cassandra/default.yaml").open("a") as file:
        file.write(SETTINGS)
    with (configs / "detection.yaml").open("a") as file:
        file.write("comparison: {trials: 8}\n")


def replace(path: Path, texts: dict[str, str]) -> None:
    """Replace texts that are there; a change of the file that this misses must show."""
    content = path.read_text()
    for old, new in texts.items():
        assert old in content, f"{path.name} has no {old}"
        content = content.replace(old, new)
    path.write_text(content)
