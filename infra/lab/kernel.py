"""The machine's kernel settings, kept before tuning and put back after it: all hosts share one kernel.

What tuning can change stands in the profiles below infra/tuning; the same shell text reads a setting
and writes it. Settings of the network belong to each host; those of CPUs, interrupts, disks and
services the lab leaves alone (`unavailable` in configs/testbeds/lab.yaml).
"""

import json
import os
import subprocess
from pathlib import Path

from perf.hosts.tuning.profiles import HostSetting, list_profiles, load_profile

_LIMIT_S = 30.0
_PLACES = ("/proc/sys/fs/", "/proc/sys/kernel/", "/proc/sys/vm/", "/sys/kernel/mm/")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def save(path: Path) -> None:
    """Keep each setting as it is now; what was kept before, since the machine's last boot, stays."""
    now = {setting.name: value for setting in _settings() if (value := _read_setting(setting))}
    values = now | (_read(path) or {})
    path.write_text(json.dumps({"boot": _BOOT_ID.read_text(), "values": values}, indent=1))


def restore(path: Path) -> list[str]:
    """Put back what differs from what was kept; give the names of settings that stayed different."""
    values = _read(path) or {}
    left = []
    for setting in _settings():
        value = values.get(setting.name)
        if value is None or setting.apply is None or _read_setting(setting) == value:
            continue
        _shell(setting.apply, value)
        if _read_setting(setting) != value:
            left.append(setting.name)
    return left


def _read(path: Path) -> dict[str, str] | None:
    """Return what was kept, if it is of this boot: a boot forgets all settings by itself."""
    try:
        kept = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    values: dict[str, str] = kept["values"]
    return values if kept["boot"] == _BOOT_ID.read_text() else None


def _settings() -> list[HostSetting]:
    found = (setting for name in list_profiles() for setting in load_profile(name).settings)
    return list({setting.name: setting for setting in found if _is_of_kernel(setting)}.values())


def _is_of_kernel(setting: HostSetting) -> bool:
    return any(place in (setting.apply or "") for place in _PLACES)


def _read_setting(setting: HostSetting) -> str:
    return _shell(setting.read, "").partition("\n")[0].strip()


def _shell(text: str, value: str) -> str:
    # The hosts' own files are not the machine's: a directory that is not there has no settings.
    env = {**os.environ, "value": value, "work_dir": "/nonexistent"}
    command = ["sh", "-c", text]
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return ""  # the value that is read afterwards shows whether it was written
    return done.stdout if done.returncode == 0 else ""
