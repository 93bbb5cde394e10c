"""What a system's config may say: nothing that runs, loads or listens, and no file of the host.

Configs are data that anybody may propose, and servers obey them: a JVM runs the command of
-XX:OnError, Cassandra that of archive_command, WiredTiger loads the libraries that its configString
names. So a config may only say what changes how a server computes. For JVM options that is a short list
of forms; for settings each system has `perf/systems/<system>/settings.yaml`:

    allowed:  patterns of dotted ways, `*` stands for anything; what matches none is refused
    refused:  - settings: patterns, whatever is allowed; upper and lower case are the same
                why: the end of a sentence that begins with the setting
    formed:   - settings: patterns of what reaches a command line
                form: a regular expression of all of the value, written as JSON
                why: the end of a sentence that begins with the setting

Of what is left, no text names a path, a variable or a class by its package, whatever its setting.
Testbeds are not looked at: they name hosts, users and programs, and those of a change that is only
proposed are never measured on.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

from pydantic import JsonValue, TypeAdapter
from ruamel.yaml import YAML

from perf.config.checks.files import ConfigFile
from perf.local.problems import Place, suggest
from perf.model.access import VARIABLES_BEGIN, Access
from perf.model.design import SystemConfig
from perf.model.errors import UsageError
from perf.model.scalars import STRICT
from perf.systems import registry
from perf.systems.contract import ChecksAccess, ChecksLayout


def check_system_config(
    folder: str, entry: ConfigFile[SystemConfig], known: Collection[str]
) -> Iterator[str]:
    """Insist that a config belongs to the system of its folder, and says only what that can obey."""
    if folder not in known:
        yield f"{entry.document.path}: there is no system {folder!r}; {suggest(folder, known)}"
        return
    if entry.value is not None and entry.value.system != folder:
        yield (entry.top / "system").say(f"but the file is in systems/{folder}/; make them equal")
    yield from check_settings(folder, entry)
    yield from check_layout(folder, entry)
    yield from check_access(folder, entry)


MOST_SETTINGS = 1_000
"""Values of one config, those in lists as well; the longest that is shipped has 9."""
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")
_PATH = re.compile(r"[/\\$`]|\.\.|[\x00-\x1f\x7f]")
_RATE = re.compile(r"[0-9]+[A-Za-z]+/s")
_CLASS = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_NUMBER = r"[0-9]+(?:\.[0-9]+)?[kKmMgGtT]?"
_JVM_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"-X(?:mn|ms|mx|ss){_NUMBER}",
        r"-X(?:batch|comp|int|mixed)",
        r"-(?:da|ea)",
        r"-XX:[+-](?P<switch>[A-Za-z][A-Za-z0-9]*)",
        rf"-XX:(?P<flag>[A-Za-z][A-Za-z0-9]*)={_NUMBER}",
        r"-XX:(?:NativeMemoryTracking|ShenandoahGCHeuristics|ShenandoahGCMode)=[a-z]+",
        rf"-D(?P<property>(?:cassandra|io\.netty)\.[A-Za-z0-9_.]+)=(?:true|false|{_NUMBER})",
    )
)
# Of HotSpot 11 to 25: commands, files, archives, agents, compilers from a library, remote control.
_FLAGS = re.compile(
    r"(?:On[A-Z]|AOT|Flags|Log[CFV]|Replay|VMOptions).*"
    r"|.*(?:AgentLoading|Archive|Attach|Dump|ErrorReport|File|HeapAt|JVMCI|Library|ManagementServer"
    r"|MessageBox|OldGenAt|Path|PerfMap|Record|TraceJVMTI|WhiteBox).*"
)
_PROPERTIES = re.compile(r".*(?:addr|class|config|dir|file|host|jmx|native|path|port|trigger).*")
_JVM_WHY = (
    "which may do more than change how the JVM computes; a config may say -Xmn1g and its like, "
    "-XX:+Name, -XX:Name=1, -Dcassandra.name=1, and none that runs, loads, opens or writes something"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refused:
    __pydantic_config__ = STRICT
    settings: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Formed:
    __pydantic_config__ = STRICT
    settings: tuple[str, ...]
    form: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """Patterns of dotted ways that a config may set, that it may not all the same, and of values."""

    __pydantic_config__ = STRICT
    allowed: tuple[str, ...] = ()
    refused: tuple[_Refused, ...] = ()
    formed: tuple[_Formed, ...] = ()


def check_settings(system: str, entry: ConfigFile[SystemConfig]) -> Iterator[str]:
    """Find settings and JVM options that could run, load, open or write something elsewhere."""
    if entry.value is None:
        return
    for index, option in enumerate(entry.value.jvm_options):
        if not is_harmless(option):
            yield (entry.top / "jvm_options" / index).say(_JVM_WHY)
    rules = _read_rules(system)
    values = tuple(_walk(entry.value.settings, entry.top / "settings"))
    if len(values) > MOST_SETTINGS:
        what = (
            f"which has {len(values):,} values, and at most {MOST_SETTINGS:,} are taken; leave some out"
        )
        yield (entry.top / "settings").say(what)
        return
    for at, value in values:
        if why := _refuse(at.steps, value, rules):
            yield at.say(why, value)


def is_harmless(option: str) -> bool:
    """Return whether an option of a JVM only changes how it computes."""
    for form in _JVM_FORMS:
        if found := form.fullmatch(option):
            parts = found.groupdict()
            flag = parts.get("switch") or parts.get("flag") or ""
            name = (parts.get("property") or "").lower()
            return not _FLAGS.fullmatch(flag) and not _PROPERTIES.fullmatch(name)
    return False


def _walk(value: JsonValue | Mapping[str, JsonValue], at: Place) -> Iterator[tuple[Place, JsonValue]]:
    """Yield every value that is no mapping and no list, and every list and mapping that is empty."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _walk(inner, at / key)
        if not value and len(at.steps) > 1:
            yield at, {}
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _walk(inner, at / index)
    else:
        yield at, value


def _refuse(steps: Sequence[str | int], value: JsonValue, rules: _Rules) -> str:
    """Describe why a setting may not be set so; nothing if it may."""
    keys = [step for step in steps[1:] if isinstance(step, str)]
    if not all(_KEY.fullmatch(key) for key in keys):
        return "but its name is none of a setting: letters, digits, dots, dashes and underscores"
    way = ".".join(keys)
    for one in rules.refused:
        if any(_is_at(way, pattern) for pattern in one.settings):
            return f"but it {one.why}; remove it"
    if not any(fnmatchcase(way, pattern) for pattern in rules.allowed):
        return (
            "but a config may not set that: it is not among the settings of this system that only "
            "change how it computes; remove it"
        )
    for form in rules.formed:
        is_meant = any(fnmatchcase(way, pattern) for pattern in form.settings)
        is_alone = len(steps) == len(keys) + 1  # and in no list
        if is_meant and not (is_alone and re.fullmatch(form.form, json.dumps(value))):
            return f"but it {form.why}; correct it"
    is_text = isinstance(value, str) and not _RATE.fullmatch(value)
    if is_text and (_PATH.search(str(value)) or _CLASS.fullmatch(str(value))):
        return "but no setting may name a path, a variable, an address or a class by its package"
    return ""


def _is_at(way: str, pattern: str) -> bool:
    """Return whether a pattern matches a way or any beginning of it up to a dot: all below is meant."""
    steps = way.lower().split(".")
    return any(fnmatchcase(".".join(steps[: end + 1]), pattern.lower()) for end in range(len(steps)))


@cache
def _read_rules(system: str) -> _Rules:
    """Return the rules of a system; one that has none allows nothing."""
    path = files("perf.systems").joinpath(system, "settings.yaml")
    if not path.is_file():
        return _Rules()
    rules = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    return TypeAdapter(_Rules).validate_python(rules, strict=False)


def check_layout(system: str, entry: ConfigFile[SystemConfig]) -> Iterator[str]:
    """Find words of a layout that its system does not know.

    A system whose driver is not installed here cannot be asked: then nothing is measured here either.
    """
    if entry.value is None or not entry.value.layout:
        return
    at, layout = entry.top / "layout", entry.value.layout
    with suppress(UsageError):
        loaded = registry.load(system)
        if not isinstance(loaded, ChecksLayout):
            why = f"but {system} lays out its tables in one way only; remove it"
            yield at.say(why, ", ".join(layout))
            return
        yield from _describe_of_keys(at, loaded.check_layout(layout))


def _describe_of_keys(at: Place, problems: Iterable[str]) -> Iterator[str]:
    """Describe where the keys stand that a system complains about, each as "key: what, what next"."""
    for problem in problems:
        key, _, what = problem.partition(": ")
        yield (at / key).problem(f"{at}.{key} {what}")


_VARIABLE = re.compile(rf"{VARIABLES_BEGIN}[A-Z0-9_]*")


def check_access(system: str, entry: ConfigFile[SystemConfig]) -> Iterator[str]:
    """Find accounts without a password or with two, halves of a certificate, and what no server has.

    A system whose driver is not installed here cannot be asked: then nothing is measured here either.
    """
    if entry.value is None or entry.value.access is None:
        return
    at, access = entry.top / "access", entry.value.access
    yield from _check_password(at, access)
    yield from _check_tls(at / "tls", access)
    with suppress(UsageError):
        loaded = registry.load(system)
        if isinstance(loaded, ChecksAccess):
            yield from _describe_of_keys(at, loaded.check_access(access))
        else:
            yield at.fault(f"is for systems with accounts or TLS; {system} has none, remove it")


def _check_password(at: Place, access: Access) -> Iterator[str]:
    sources = [name for name in ("password_env", "password_file") if getattr(access, name) is not None]
    if access.username is not None and not sources:
        username = at / "username"
        yield at.problem(
            f"{username} is {at.document.show(username.steps, access.username)}, without a password; "
            "add password_env, the name of a variable, or password_file"
        )
    if access.username is None and sources:
        yield at.problem(f"{at / sources[0]} is there without a username; add one, or remove it")
    if len(sources) > 1:
        yield at.problem("access.password_env and access.password_file are both there; remove one")
    if access.password_env is not None and not _VARIABLE.fullmatch(access.password_env):
        # Not shown: it may be the password itself.
        yield (at / "password_env").fault(
            "is not the name of a variable for this; write KNICKPOINT_PASSWORD or "
            "KNICKPOINT_PASSWORD_… (capitals, digits), and put the password into the "
            "environment, never into a file of the configuration"
        )
    if access.username is None and not sources and access.tls is None:
        yield at.fault("is empty; add username and password_env, or tls, or remove it")


def _check_tls(at: Place, access: Access) -> Iterator[str]:
    for name, other in (("certificate_file", "key_file"), ("key_file", "certificate_file")):
        if access.tls and getattr(access.tls, name) and getattr(access.tls, other) is None:
            yield (at / name).say(f"without a {other}; add it, or remove this")
