"""The lab's network: a bridge with an address of the machine, and a cable to each host."""

import ipaddress
import json
import subprocess
from pathlib import Path

from perf.model.errors import HostUnfit

BRIDGE = "kp-lab"
NETWORK = ipaddress.IPv4Network("10.77.0.0/24")
_MACHINE = "10.77.0.1/24"
_LIMIT_S = 10.0


def owner() -> str | None:
    """Return whose lab is up on this machine, as written on its bridge; None if there is none."""
    try:
        return Path("/sys/class/net", BRIDGE, "ifalias").read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None


def check_free() -> None:
    """Raise HostUnfit if something other than a lab uses the lab's addresses."""
    for route in json.loads(run("ip", "-json", "-4", "route", "show", "table", "all")):
        where = route["dst"]
        if where == "default" or route.get("dev") == BRIDGE:
            continue
        if ipaddress.IPv4Network(where, strict=False).overlaps(NETWORK):
            raise HostUnfit(
                f"the lab's addresses ({NETWORK}) are in use: route to {where} by "
                f"{route.get('dev', 'another way')}; end what made it, for example a VPN, and try again"
            )


def build_bridge(home: Path) -> None:
    """Make the bridge, or complete one that was begun."""
    if owner() is None:
        run("ip", "link", "add", BRIDGE, "type", "bridge")
    run("ip", "link", "set", BRIDGE, "alias", str(home))
    run("ip", "address", "replace", _MACHINE, "dev", BRIDGE)
    run("ip", "link", "set", BRIDGE, "up")


def remove_bridge() -> None:
    """Remove the bridge."""
    run("ip", "link", "delete", BRIDGE)


def plug(name: str, address: str, pid: int) -> None:
    """Lay a fresh cable from the bridge to the host whose first process is `pid`."""
    unplug(name)
    # A card of the same number each time: who has talked to the host before finds it again at once.
    card = f"02:00:{ipaddress.IPv4Address(address).packed.hex(':')}"
    end = ("peer", "name", "eth0", "address", card, "netns", str(pid))
    run("ip", "link", "add", _cable(name), "type", "veth", *end)
    for change in (
        ("address", "add", f"{address}/{NETWORK.prefixlen}", "dev", "eth0"),
        ("link", "set", "lo", "up"),
        ("link", "set", "eth0", "up"),
    ):
        run("nsenter", f"--net=/proc/{pid}/ns/net", "ip", *change)
    run("ip", "link", "set", _cable(name), "master", BRIDGE, "up")


def unplug(name: str) -> None:
    """Remove a host's cable, if there is one."""
    if is_plugged(name):
        try:
            run("ip", "link", "delete", _cable(name))
        except HostUnfit:
            # The kernel takes the cable of a host that has ended away by itself, a moment later.
            if is_plugged(name):
                raise


def is_plugged(name: str) -> bool:
    """Return whether a host's cable exists, cut or not."""
    return Path("/sys/class/net", _cable(name)).exists()


def is_cut(name: str) -> bool:
    """Return whether nothing goes through a host's cable."""
    flags = Path("/sys/class/net", _cable(name), "flags").read_text()
    return not int(flags, 16) & 1  # IFF_UP


def cut(name: str) -> None:
    """Let nothing more through a host's cable."""
    run("ip", "link", "set", _cable(name), "down")


def mend(name: str) -> None:
    """Let everything through a host's cable again."""
    run("ip", "link", "set", _cable(name), "up")


def run(*command: str) -> str:
    """Run a command to its end and give what it prints; HostUnfit with its words if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    except subprocess.TimeoutExpired as problem:
        raise HostUnfit(f"{' '.join(command)}: no answer within {_LIMIT_S:g} s") from problem
    if done.returncode:
        why = done.stderr.strip() or f"exit {done.returncode}"
        raise HostUnfit(f"{' '.join(command)}: {why}")
    return done.stdout


def _cable(name: str) -> str:
    return f"kp-{name}"
