"""Which of the ports that servers need are in use on this machine or another, and by whom."""

import contextlib
import socket
from collections.abc import Iterable

import psutil

_CONNECT_S = 0.5
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104  compared with, never bound


def find_taken(addresses: Iterable[str], ports: Iterable[int]) -> dict[tuple[str, int], str]:
    """Return the places where something listens already, each with what is known of the holder.

    The holder reads " by pid 123 (java)"; it is empty where it is another host's or another user's.
    """
    ports = tuple(ports)
    places = [(address, port) for address in addresses for port in ports]
    return {place: _holder(*place) for place in places if _is_taken(*place)}


def _is_taken(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=_CONNECT_S).close()
    except OSError:
        return False
    return True


def _holder(address: str, port: int) -> str:
    with contextlib.suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            at = connection.laddr
            if connection.status != psutil.CONN_LISTEN or not at or not connection.pid:
                continue
            if at.port == port and at.ip.removeprefix("::ffff:") in (address, *_EVERYWHERE):
                return f" by pid {connection.pid} ({psutil.Process(connection.pid).name()})"
    return ""
