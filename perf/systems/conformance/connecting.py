"""Checks of any session, whatever its data model: about connecting, and the names of errors."""

import re
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from perf.systems.conformance.check import Check, require
from perf.systems.contract import Target
from perf.systems.sessions import Session

_NOBODY_LIMIT_S = 1.0


@dataclass(frozen=True, slots=True)
class Reach:
    """How clients of one data model connect to a server, and one that has; its schema is there."""

    connect: Callable[[Target], AbstractContextManager[Session]]
    target: Target
    session: Session


def _change_no_data(reach: Reach) -> str:
    before = reach.session.stored()
    with reach.connect(reach.target) as other:
        after = other.stored()
    require(after == before, f"{before.rows} rows before, {after.rows} after")
    return f"{after.rows} rows, as before"


def _name_nobody(reach: Reach) -> str:
    with socket.socket() as unused:
        # Bound here, where nobody else listens; a testbed's address cannot be bound from another host.
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        nobody = replace(reach.target, addresses=("127.0.0.1",), port=port, timeout_s=_NOBODY_LIMIT_S)
        try:
            with reach.connect(nobody):
                pass
        except Exception as error:  # noqa: BLE001  any driver's
            kind = reach.session.classify(error)
        else:
            kind = "a connection to a port without a listener"
    require(re.fullmatch(r"timeouts|error:[\w-]+", kind) is not None, kind)
    return kind


def _name_the_unknown(reach: Reach) -> str:
    kind = reach.session.classify(LookupError("?"))
    require(kind == "error:LookupError", kind)
    return kind


CHECKS: tuple[Check[Reach], ...] = (
    Check("connecting changes no data", _change_no_data, reads_back=False),
    Check("a port without a listener is a named error", _name_nobody, reads_back=False),
    Check("an unknown error keeps its name", _name_the_unknown, reads_back=False),
)
