"""A peer of CrateDB's HTTP endpoint, and how a client reaches it."""

from collections.abc import Iterator

import pytest
from crate_peer import CratePeer

from perf.systems.contract import Target


@pytest.fixture
def peer() -> Iterator[CratePeer]:
    with CratePeer() as peer:
        yield peer


@pytest.fixture
def target(peer: CratePeer) -> Target:
    return Target(
        system="cratedb",
        addresses=(peer.address,),
        port=peer.port,
        replication_factor=3,
        consistency="quorum",
        timeout_s=5.0,
    )
