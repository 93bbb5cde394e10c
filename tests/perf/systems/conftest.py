"""Builders that tests of systems share, as fixtures: a test names only what it is about."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from perf.design import Host, Needs, Steadiness, Testbed, TimeLimits, Validity

TESTBED = Testbed(
    name="here",
    description="one node on this host",
    testbed_class="here",
    transport="local",
    hosts=(Host(name="node-1", address="127.0.0.1", role="server"),),
    client_cores=1,
    needs=Needs(memory_mb=1, disk_mb=1),
    limits=TimeLimits(),
    validity=Validity(
        max_error_share=0.0,
        max_miss_share=0.0,
        min_achieved_share=0.0,
        max_lateness_share=100.0,
        max_client_cpu_share=100.0,
        max_client_wait_share=100.0,
        max_iteration_spread=100.0,
        max_foreign_cpu_share=1.0,
        max_steal_share=1.0,
        max_throttled_share=1.0,
        max_clock_step_ms=10_000.0,
    ),
    steadiness=Steadiness(window_s=1, tolerance=1.0),
)


@pytest.fixture(scope="session")
def make_testbed() -> Callable[..., Testbed]:
    """Give `make_testbed(**changes)`: one server on this host, and limits that nothing passes."""

    def make(**changes: Any) -> Testbed:  # noqa: ANN401  the fields of Testbed, checked by replace
        return replace(TESTBED, **changes)

    return make
