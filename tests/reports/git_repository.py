"""A real git repository with a copy of the tests' configuration, for tests of revisions."""

import os
import shutil
import subprocess
from pathlib import Path

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
# Nothing that somebody configured for their own work decides how a test ends.
ENVIRONMENT = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


class GitRepository:
    """A repository on branch main, whose first commit holds the configuration."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(CONFIGS, root / "configs")
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.name", "tests")
        self.git("config", "user.email", "tests@example.org")
        self.commit("begin")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.root,
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

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text that is there, in a file below configs/."""
        file = self.root / "configs" / path
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    def branch(self, name: str) -> None:
        self.git("checkout", "--quiet", "-b", name)
