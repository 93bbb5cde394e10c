"""What a test needs of the machine: without it, it is skipped, or fails where nothing may lack."""

import os

import pytest


def need(condition: object, what: str) -> None:
    """Skip unless the condition holds; fail instead where KNICKPOINT_REQUIRE_REAL is set."""
    if condition:
        return
    if os.environ.get("KNICKPOINT_REQUIRE_REAL"):
        pytest.fail(what)
    pytest.skip(what)
