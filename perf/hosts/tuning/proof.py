"""Is a host what its tuning profile says? Read back, compare, explain.

Reading is one command on the host for all settings; comparing and explaining are pure.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from perf.hosts.remote import Remote
from perf.hosts.tuning.profiles import HostSetting, TuningProfile
from perf.model.errors import StepFailed

MARKER = "/run/knickpoint/tuning"
"""Says on a host which profile it was last tuned to, as name@hash; gone after a boot."""
_READ_TIMEOUT_S = 60.0
_SHOWN = 120
_UNLIMITED = "unlimited"
_MARK = re.compile(r"[a-z0-9._-]{1,80}@[0-9a-f]{12}")

# Answers are lines of our own making, so what a setting prints must not end one: only its first line,
# so many bytes of it, and no control characters. An answer that was cut off lacks its last line.
_ASK = rf"""
nl='
'
export work_dir
ask() {{
  answer=$(value=$2 sh -c "$3" </dev/null 2>/dev/null) || answer=
  printf 'setting\t%s\t%.400s\n' "$1" "${{answer%%"$nl"*}}"
}}
{{
  printf 'root\t%s\n' "$(id -u)"
  printf 'marker\t%.400s\n' "$(head -n 1 {MARKER} 2>/dev/null)"
"""
_END = r"""
  printf 'end\t\n'
} | LC_ALL=C tr '\000-\010\013-\037\177' '?'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAnswer:
    """What a host says of itself; `values` holds only the settings that it has.

    `marker` is empty on a host that was not tuned since it booted.
    """

    marker: str
    is_root: bool
    values: Mapping[str, str]


class SettingState(StrEnum):
    """How a setting of a host stands to its profile."""

    KEPT = "as wanted"
    DIFFERS = "differs"
    LACKS = "not there"
    EXCUSED = "declared unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingFinding:
    """One setting of one host: what is wanted, what is there (None: nothing), and what excuses it."""

    setting: HostSetting
    found: str | None
    declared: str | None

    @property
    def state(self) -> SettingState:
        """Describe how it stands."""
        if self.found is not None and fits(self.setting, self.found):
            return SettingState.KEPT
        if self.declared is not None:
            return SettingState.EXCUSED
        return SettingState.LACKS if self.found is None else SettingState.DIFFERS

    @property
    def is_trouble(self) -> bool:
        """Return whether it refuses the host."""
        return self.state in {SettingState.DIFFERS, SettingState.LACKS}


def ask(settings: Iterable[HostSetting], work_dir: str) -> str:
    """Return the shell text that asks a host for all settings; `parse` reads what it prints."""
    questions = "\n".join(
        f"ask {shlex.quote(one.name)} {shlex.quote(one.value)} {shlex.quote(one.read)}"
        for one in settings
    )
    return f"work_dir={shlex.quote(work_dir)}\n{_ASK}\n{questions}\n{_END}"


def read(remote: Remote, settings: Iterable[HostSetting], work_dir: str) -> HostAnswer:
    """Ask a host for all settings at once; `work_dir` is the directory of its nodes.

    Raises:
        StepFailed: the host cannot be reached, or did not answer to the end.

    """
    script = ask(settings, work_dir)
    done = remote.run(["sh", "-s"], stdin=script, check=False, timeout_s=_READ_TIMEOUT_S)
    answer = parse(done.stdout)
    if answer is None:
        why = f"its answer broke off; it printed: {_show(done.stderr)}"
        raise StepFailed("reading the tuning", remote.name, why)
    return answer


def parse(text: str) -> HostAnswer | None:
    """Read what a host answered, without lines that nobody asked for; None if it is not whole."""
    values: dict[str, str] = {}
    marker, is_root, is_whole = "", False, False
    for line in text.split("\n"):
        kind, _, rest = line.partition("\t")
        if kind == "setting":
            name, _, value = rest.partition("\t")
            if _clean(value):
                values.setdefault(name, _clean(value))
        elif kind == "marker":
            marker = rest if _MARK.fullmatch(rest) else ""
        elif kind == "root":
            is_root = rest == "0"
        elif kind == "end":
            is_whole = True
    return HostAnswer(marker=marker, is_root=is_root, values=values) if is_whole else None


def compare(
    profile: TuningProfile, values: Mapping[str, str], unavailable: Mapping[str, str]
) -> tuple[SettingFinding, ...]:
    """Compare what a host has with a profile, in the profile's order."""
    return tuple(
        SettingFinding(
            setting=setting, found=values.get(setting.name), declared=unavailable.get(setting.name)
        )
        for setting in profile.settings
    )


def fits(setting: HostSetting, found: str) -> bool:
    """Return whether what was found is what a setting asks for."""
    if setting.matches == "contains":
        return setting.value in found.split()
    if setting.matches == "at-least":
        least, there = _amount(setting.value), _amount(found)
        return least is not None and there is not None and there >= least
    return found == setting.value


def _amount(text: str) -> float | None:
    if text == _UNLIMITED:
        return float("inf")
    return float(text) if text.isascii() and text.isdigit() else None


def explain(host: str, finding: SettingFinding, testbed: str) -> Iterator[str]:
    """Say of a setting that is not as wanted what is there, what is wanted, why, and how to set it."""
    setting = finding.setting
    wanted = describe_wanted(setting)
    if finding.state is SettingState.LACKS:
        yield f"{host}: {setting.name} cannot be read, so this host does not have it; wanted {wanted}"
    else:
        yield f"{host}: {setting.name} is {describe_found(finding)}, wanted {wanted}"
    yield f"    why: {' '.join(setting.reason.split())}"
    if finding.state is SettingState.LACKS:
        yield (
            f"    fix: if these hosts cannot have it, say why in configs/testbeds/{testbed}.yaml: "
            f"tuning: {{unavailable: {{{setting.name}: …}}}}"
        )
        return
    ways = [f"knickpoint host tune {testbed}"] if setting.apply is not None else []
    ways += [f"by hand: {' '.join(setting.by_hand.split())}"] if setting.by_hand is not None else []
    yield f"    fix: {'; '.join(ways)}"


def describe_wanted(setting: HostSetting) -> str:
    """Describe what a setting asks for."""
    if setting.matches == "at-least" and setting.value != _UNLIMITED:
        return f"at least {setting.value}"
    return f"with {setting.value}" if setting.matches == "contains" else setting.value


def describe_found(finding: SettingFinding) -> str:
    """Describe what a host has, short enough for a line."""
    return "–" if finding.found is None else _show(finding.found)


def _show(text: str) -> str:
    clean = _clean(text)
    return clean if len(clean) <= _SHOWN else f"{clean[: _SHOWN - 1]}…"


def _clean(text: str) -> str:
    """Make what a host printed harmless for terminals and pages: one line of printable characters."""
    return "".join(one if one.isprintable() else "?" for one in text.replace("\t", " ")).strip()
