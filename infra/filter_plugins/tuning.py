"""What the role tune asks Knickpoint for: profiles are read, hashed and compared in one place only.

Ansible finds filters beside the playbook. They run where Ansible runs, which has Knickpoint installed
(the extra `infra`), and touch no host.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from ansible.errors import AnsibleFilterError

from perf.hosts.tuning.privileged import render_script
from perf.hosts.tuning.profiles import TuningProfile, label, list_profiles, load_profile
from perf.hosts.tuning.proof import (
    HostAnswer,
    SettingFinding,
    SettingState,
    ask,
    compare,
    describe_found,
    describe_wanted,
    parse,
)
from perf.model.errors import KnickpointError


class FilterModule:
    """The filters, by the names that tasks use."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "tuning_drift": tuning_drift,
            "tuning_label": tuning_label,
            "tuning_marked": tuning_marked,
            "tuning_questions": tuning_questions,
            "tuning_script": tuning_script,
        }


def tuning_questions(profile: str, work_dir: str) -> str:
    """Return the shell text that reads back all settings of a profile."""
    return ask(_load(profile).settings, str(work_dir))


def tuning_marked(text: str) -> str:
    """Return the profile that a host's marker names, or nothing if there is none of that name."""
    name = _parse(text).marker.partition("@")[0]
    return name if name in list_profiles() else ""


def tuning_label(profile: str) -> str:
    """Return a profile as the marker names it: name@hash."""
    return label(_load(profile))


def tuning_script(_: str) -> str:
    """Return what `knickpoint host script` prints: the program with which a user without root tunes."""
    return render_script()


def tuning_drift(text: str, profile: str, unavailable: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the settings that refuse a host, in the profile's order, each with what there is.

    `text` is what the host answered. `found` and `wanted` are words for a person; `is_lacking` says
    that the host does not have the setting, so that nothing can be applied.
    """
    findings = compare(_load(profile), _parse(text).values, unavailable)
    return [_describe(one) for one in findings if one.is_trouble]


def _load(name: str) -> TuningProfile:
    try:
        return load_profile(str(name))
    except KnickpointError as error:
        raise AnsibleFilterError(str(error)) from error


def _parse(text: str) -> HostAnswer:
    answer = parse(text)
    if answer is None:
        raise AnsibleFilterError("the host's answer broke off")
    return answer


def _describe(finding: SettingFinding) -> dict[str, Any]:
    return asdict(finding.setting) | {
        "found": describe_found(finding),
        "wanted": describe_wanted(finding.setting),
        "is_lacking": finding.state is SettingState.LACKS,
    }
