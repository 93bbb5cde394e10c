"""What a test needs of the machine: without it, it is skipped, or fails where nothing may lack."""

import os
from pathlib import Path

import pytest

from perf.load.native_binary import ENGINE, find_native
from perf.model.errors import UsageError


def need(condition: object, what: str) -> None:
    """Skip unless the condition holds; fail instead where KNICKPOINT_REQUIRE_REAL is set."""
    if condition:
        return
    if os.environ.get("KNICKPOINT_REQUIRE_REAL"):
        pytest.fail(what)
    pytest.skip(what)


def need_native(program: str = ENGINE) -> Path:
    """Return a built program of the native load engine: `make native` builds it."""
    try:
        return find_native(program)
    except UsageError as missing:
        what = str(missing)
    need(False, what)  # noqa: FBT003  it is not there
    raise AssertionError(what)
