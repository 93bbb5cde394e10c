"""What the hosts of a deployment cost."""

from dataclasses import replace
from pathlib import Path

import pytest

from perf.config import load_catalog
from perf.deployment import price_per_hour_usd
from perf.design import Testbed

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.fixture(scope="module")
def rack() -> Testbed:
    return load_catalog(CONFIGS).testbeds["example-rack"]


def test_the_price_is_that_of_the_server_hosts_in_use(rack: Testbed) -> None:
    assert price_per_hour_usd(rack, servers=3) == 4.5
    assert price_per_hour_usd(rack, servers=1) == 1.5


def test_without_a_price_of_each_there_is_none(rack: Testbed) -> None:
    first, *others = rack.hosts
    partly = replace(rack, hosts=(replace(first, price_per_hour_usd=None), *others))
    assert price_per_hour_usd(partly, servers=3) is None
    assert price_per_hour_usd(load_catalog(CONFIGS).testbeds["local"], servers=3) is None
