"""Plans as they are read back, of nights and of comparisons: whole and of their form, or refused."""

from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from perf.local.plain_files import read_plain
from perf.model.errors import BundleError
from perf.model.shown import list_faults, list_some

T = TypeVar("T")

MOST_BYTES = 16 * 1024**2
"""Of a plan that is read."""


def read_plan(path: Path, form: TypeAdapter[T], what: str) -> T:
    """Read a plan; `what` says of what it should be one.

    Raises:
        BundleError: the file is none; all that is wrong is said at once.

    """
    try:
        return form.validate_json(read_plain(path, MOST_BYTES))
    except ValidationError as error:
        raise no_plan(path, what, list_faults(error)) from error
    except OSError as error:
        raise no_plan(path, what, [f"it cannot be read: {error.strerror}"]) from error


def no_plan(path: Path, what: str, problems: list[str]) -> BundleError:
    """Give the error for a file that is no plan."""
    listed = "".join(f"\n  {problem}" for problem in list_some(problems))
    return BundleError(f"{path} is not the plan of {what}; move it away, its trials are kept:{listed}")
