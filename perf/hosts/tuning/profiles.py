"""Tuning profiles: which settings a host is to have, why, and how each is read back and applied.

The profiles are files below infra/tuning, shipped with the package. They hold shell text, so they are
code: they are never taken from the revision of a pull request, and no option names another directory.
Ansible (infra/roles/tune) applies the same files; `proof` compares hosts with them.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import TypeAdapter
from ruamel.yaml import YAML

from perf.model.errors import UsageError
from perf.model.scalars import STRICT, SettingName, Text

HASH_DIGITS = 12
SERVER, CLIENT = "server", "client"
"""Profiles of hosts whose system asks for none of its own, and of hosts that offer the load."""

Match: TypeAlias = Literal["equal", "at-least", "contains"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSetting:
    """One setting of a host.

    `read` and `apply` are shell text, run by `sh -c` with $value and $work_dir in their environment.
    The first line that `read` prints is what the host has; if it fails or prints nothing, the host does
    not have the setting. `apply` needs root. Without it, `by_hand` says what a person does, for example
    in the firmware or on the kernel's command line.
    """

    __pydantic_config__ = STRICT
    name: SettingName
    value: Text
    matches: Match = "equal"
    """How it is compared: as text, as a whole number (or "unlimited"), or as one of several words."""
    read: Text
    apply: Text | None = None
    by_hand: Text | None = None
    reason: Text
    source: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningProfile:
    """A named set of settings; those of `extends` come first, and give way to one of the same name."""

    __pydantic_config__ = STRICT
    name: SettingName
    description: Text
    extends: SettingName | None = None
    settings: tuple[HostSetting, ...]


_PROFILE = TypeAdapter(TuningProfile)


def find_root() -> Path:
    """Return the directory of the profiles: that of the package, or of the source tree it runs from."""
    packaged = Path(str(files("perf") / "infra" / "tuning"))
    return packaged if packaged.is_dir() else Path(str(files("perf"))).parent / "infra" / "tuning"


def list_profiles() -> tuple[str, ...]:
    """Return the names of all profiles, sorted."""
    return tuple(sorted(path.stem for path in find_root().glob("*.yaml")))


def name_settings() -> tuple[str, ...]:
    """Return the names of the settings of all profiles, sorted."""
    profiles = (load_profile(name) for name in list_profiles())
    return tuple(sorted({setting.name for profile in profiles for setting in profile.settings}))


@cache
def load_profile(name: str) -> TuningProfile:
    """Read a profile with all that it extends.

    Raises:
        UsageError: there is no profile of that name.

    """
    if name not in list_profiles():
        raise UsageError(f"there is no tuning profile {name!r}; known: {', '.join(list_profiles())}")
    tree = YAML(typ="safe", pure=True).load((find_root() / f"{name}.yaml").read_text(encoding="utf-8"))
    own = _PROFILE.validate_json(json.dumps(tree))
    inherited = load_profile(own.extends).settings if own.extends else ()
    settings = {setting.name: setting for setting in (*inherited, *own.settings)}
    return TuningProfile(name=own.name, description=own.description, settings=tuple(settings.values()))


def hash_profile(profile: TuningProfile) -> str:
    """Return the first 12 hex digits of the SHA-256 of what a profile does; its prose is left out."""
    doing = [
        {
            key: part
            for key, part in asdict(setting).items()
            if key not in {"reason", "source", "by_hand"}
        }
        for setting in profile.settings
    ]
    return hashlib.sha256(json.dumps(doing, sort_keys=True).encode()).hexdigest()[:HASH_DIGITS]


def label(profile: TuningProfile) -> str:
    """Return a profile as trials carry it: name@hash."""
    return f"{profile.name}@{hash_profile(profile)}"
