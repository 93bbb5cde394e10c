"""What the role tune asks Knickpoint for: profiles are read, hashed and compared in one place only.

Ansible finds filters beside the playbook. They run where Ansible runs, which has Knickpoint installed
(the extra `infra`), and touch no host.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from ansible.errors import AnsibleFilterError

from perf.errors import KnickpointError
from perf.hosts.privileged import render_script
from perf.hosts.proof import Finding, State, compare, describe_found, describe_wanted, parse
from perf.hosts.tuning import label, list_profiles, load_profile


class FilterModule:
    """The filters, by the names that tasks use."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Give the filters by name."""
        return {
            "tuning_drift": tuning_drift,
            "tuning_marked": tuning_marked,
            "tuning_profile": tuning_profile,
            "tuning_script": tuning_script,
        }


def tuning_marked(marker: str) -> str:
    """Give the profile that a host's marker names, or nothing if there is none of that name."""
    name = marker.partition("@")[0]
    return name if name in list_profiles() else ""


def tuning_script(_: str) -> str:
    """Give what `knickpoint host script` prints: the program with which a user without root tunes."""
    return render_script()


def tuning_profile(name: str) -> dict[str, Any]:
    """Give a profile with all that it extends: its name, label (name@hash) and settings.

    Raises:
        AnsibleFilterError: there is no such profile.

    """
    try:
        profile = load_profile(str(name))
    except KnickpointError as error:
        raise AnsibleFilterError(str(error)) from error
    return {
        "name": profile.name,
        "label": label(profile),
        "settings": [asdict(setting) for setting in profile.settings],
    }


def tuning_drift(
    results: Iterable[Mapping[str, Any]], profile: str, unavailable: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Give the settings that refuse a host, in the profile's order, each with what there is.

    `results` are those of a task that looped over settings and ran the `read` of each; settings that
    it left out are not judged. `found` and `wanted` are words for a person; `is_lacking` says that the
    host does not have the setting, so that nothing can be applied.
    """
    read = {str(result["item"]["name"]): result for result in results if "item" in result}
    lines = [
        f"setting\t{name}\t{(result.get('stdout') or '').partition(chr(10))[0][:400]}"
        for name, result in read.items()
        if result.get("rc") == 0
    ]
    answer = parse("\n".join((*lines, "end\t")))
    values = answer.values if answer else {}
    findings = compare(load_profile(str(profile)), values, unavailable)
    return [_describe(one) for one in findings if one.is_trouble and one.setting.name in read]


def _describe(finding: Finding) -> dict[str, Any]:
    return asdict(finding.setting) | {
        "found": describe_found(finding),
        "wanted": describe_wanted(finding.setting),
        "is_lacking": finding.state is State.LACKS,
    }
