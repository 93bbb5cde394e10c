"""The summary of a job on GitHub Actions: Markdown for the file that $GITHUB_STEP_SUMMARY names.

GitHub takes 1,024 KiB for each step, and shows nothing at all of more. So the text ends below that;
what other commands of the step wrote before counts.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from perf.model.errors import SiteError

VARIABLE = "GITHUB_STEP_SUMMARY"
MOST_BYTES = 900 * 1024


def is_asked_for(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether the job wants a summary: GitHub names a file for it."""
    return bool(environment.get(VARIABLE, "").strip())


def append_summary(
    render: Callable[[int], str], environment: Mapping[str, str] = os.environ
) -> Path | None:
    """Append what is rendered for the room that is left, in bytes, to the file of the variable.

    Return its path, None where it is not set.

    Raises:
        SiteError: the file cannot be written.

    """
    name = environment.get(VARIABLE, "").strip()
    if not name:
        return None
    path = Path(name)
    try:
        taken = path.stat().st_size if path.exists() else 0
        text = render(max(MOST_BYTES - taken, 0))
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise SiteError(
            f"the step summary {path} ({VARIABLE}) cannot be written: {error.strerror or error}"
        ) from error
    return path
