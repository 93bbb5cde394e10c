"""What the shipped profiles promise, and how each setting reads files like those of the kernel."""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from perf.hosts.tuning.profiles import (
    CLIENT,
    SERVER,
    HostSetting,
    hash_profile,
    label,
    list_profiles,
    load_profile,
    name_settings,
)
from perf.model.errors import UsageError
from perf.systems import registry
from perf.systems.contract import WantsTuning

ROOT = Path(__file__).parents[4]
SERVERS = [name for name in list_profiles() if name != CLIENT]
SETTINGS = {
    (name, setting.name): setting for name in list_profiles() for setting in load_profile(name).settings
}


def find(name: str, profile: str = SERVER) -> HostSetting:
    return SETTINGS[profile, name]


def run_read(setting: HostSetting, files: Mapping[str, str], root: Path) -> str | None:
    """Run what reads a setting, on files of ours instead of the kernel's; None if it is not there."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    script = re.sub(r"/(?=sys/|proc/|run/systemd)", f"{root}/", setting.read)
    environment = {**os.environ, "value": setting.value, "work_dir": str(root)}
    done = subprocess.run(
        ["sh", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    first = done.stdout.partition("\n")[0].strip()
    return first if first and done.returncode == 0 else None


def test_the_profiles_are_there() -> None:
    assert list_profiles() == (
        *("cassandra", "client", "cratedb", "mongodb-thp-off", "mongodb-thp-on", "scylladb", "server"),
    )
    assert len(load_profile(SERVER).settings) > 45


def test_an_unknown_profile_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="there is no tuning profile 'fast'; known: cassandra, client"):
        load_profile("fast")


def test_each_setting_can_be_mended_and_compared() -> None:
    for key, setting in SETTINGS.items():
        assert setting.apply or setting.by_hand, key
        if setting.matches == "at-least":
            assert setting.value.isdigit() or setting.value == "unlimited", key
        # A host is asked with one profile's text and may be held to another's value.
        assert "$value" not in setting.read, key


@pytest.mark.parametrize("name", SERVERS)
def test_a_switch_of_profiles_leaves_nothing_behind(name: str) -> None:
    base = {setting.name: setting for setting in load_profile(SERVER).settings}
    own = {setting.name: setting for setting in load_profile(name).settings}
    assert own.keys() == base.keys()
    for setting in own.values():
        general = base[setting.name]
        assert (setting.read, setting.apply, setting.matches) == (
            general.read,
            general.apply,
            general.matches,
        )


@pytest.mark.parametrize("name", SERVERS)
def test_one_machine_can_be_a_server_and_a_client(name: str) -> None:
    own = load_profile(name).settings
    assert [one for one in load_profile(CLIENT).settings if one not in own] == []


def test_the_hash_is_of_what_is_done_not_of_what_is_said() -> None:
    profile = load_profile(SERVER)
    first, *others = profile.settings
    said = replace(first, reason="another reason", source="elsewhere", by_hand="do it")
    assert hash_profile(replace(profile, settings=(said, *others))) == hash_profile(profile)
    for changes in ({"value": "on"}, {"read": "true"}, {"apply": "true"}, {"matches": "contains"}):
        other = replace(first, **changes)  # type: ignore[arg-type]
        assert hash_profile(replace(profile, settings=(other, *others))) != hash_profile(profile)
    assert re.fullmatch(r"server@[0-9a-f]{12}", label(profile))


@pytest.mark.parametrize("system", registry.names())
def test_each_release_has_a_profile_of_servers(system: str) -> None:
    found = registry.load(system)
    if isinstance(found, WantsTuning):
        for release in found.releases():
            assert found.tuning(release) in SERVERS


def test_mongodb_wants_huge_pages_from_8_0_on() -> None:
    mongodb = registry.load("mongodb")
    assert isinstance(mongodb, WantsTuning)
    for release in mongodb.releases():
        wanted = "always" if int(release.line.split(".")[0]) >= 8 else "never"
        profile = mongodb.tuning(release)
        assert find("thp.enabled", profile).value == wanted
    assert {
        name: find(name, "mongodb-thp-on").value
        for name in ("thp.defrag", "thp.max_ptes_none", "vm.overcommit_memory")
    } == {"thp.defrag": "defer+madvise", "thp.max_ptes_none": "0", "vm.overcommit_memory": "1"}


CPU = "sys/devices/system/cpu"


@pytest.mark.parametrize(
    ("name", "files", "found"),
    [
        ("cpu.smt", {f"{CPU}/smt/control": "on"}, "on"),
        ("cpu.smt", {f"{CPU}/smt/control": "forceoff"}, "off"),
        ("cpu.smt", {f"{CPU}/smt/control": "notsupported"}, None),
        ("cpu.turbo", {f"{CPU}/intel_pstate/no_turbo": "1"}, "off"),
        ("cpu.turbo", {f"{CPU}/intel_pstate/no_turbo": "0"}, "on"),
        ("cpu.turbo", {f"{CPU}/cpufreq/boost": "0"}, "off"),
        (
            "cpu.turbo",
            {f"{CPU}/cpufreq/policy0/boost": "0", f"{CPU}/cpufreq/policy1/boost": "1"},
            "off,on",
        ),
        ("cpu.turbo", {f"{CPU}/online": "0-1"}, None),
        (
            "cpu.governor",
            {
                f"{CPU}/cpufreq/policy0/scaling_governor": "performance",
                f"{CPU}/cpufreq/policy1/scaling_governor": "performance",
                f"{CPU}/cpufreq/policy17/scaling_governor": "powersave",
            },
            "performance,powersave",
        ),
        ("cpu.governor", {f"{CPU}/online": "0-1"}, None),
        (
            "cpu.frequency-range",
            {
                f"{CPU}/cpufreq/policy0/scaling_min_freq": "2901000",
                f"{CPU}/cpufreq/policy0/scaling_max_freq": "2901000",
                f"{CPU}/cpufreq/policy1/scaling_min_freq": "800000",
                f"{CPU}/cpufreq/policy1/scaling_max_freq": "2901000",
            },
            "800000-2901000,fixed",
        ),
        (
            "cpu.highest-frequency",
            {
                f"{CPU}/cpufreq/policy0/scaling_max_freq": "2901000",
                f"{CPU}/cpufreq/policy0/base_frequency": "2901000",
                f"{CPU}/cpufreq/policy0/cpuinfo_max_freq": "3500000",
            },
            "full",
        ),
        (
            "cpu.highest-frequency",
            {
                f"{CPU}/cpufreq/policy0/scaling_max_freq": "2000000",
                f"{CPU}/cpufreq/policy0/cpuinfo_max_freq": "3500000",
            },
            "2000000",
        ),
        (
            "cpu.energy-bias",
            {f"{CPU}/cpu0/power/energy_perf_bias": "0", f"{CPU}/cpu1/power/energy_perf_bias": "6"},
            "6,performance",
        ),
        (
            "cpu.idle-states",
            {
                f"{CPU}/cpu{cpu}/cpuidle/state{state}/{key}": value
                for cpu in (0, 1)
                for state, latency, name in ((0, "0", "POLL"), (1, "2", "C1"), (2, "133", "C6"))
                for key, value in (
                    ("latency", latency),
                    ("name", name),
                    ("disable", "0" if (cpu, state) == (1, 2) else "1"),
                )
            },
            "C6",
        ),
        ("cpu.idle-states", {f"{CPU}/online": "0-1"}, None),
        ("irq.default-cores", {"proc/irq/default_smp_affinity": "00000000,00000001"}, "1"),
        (
            "irq.network-cores",
            {
                "sys/class/net/eth0/device/msi_irqs/37": "msix",
                "sys/class/net/eth0/device/msi_irqs/38": "msix",
                "proc/irq/37/smp_affinity_list": "0",
                "proc/irq/38/smp_affinity_list": "0-3",
            },
            "0,0-3",
        ),
        ("irq.balance", {"proc/77/comm": "irqbalance"}, "running"),
        ("irq.balance", {"proc/77/comm": "sshd"}, "stopped"),
        ("memory.swap", {"proc/swaps": "Filename Type Size"}, "none"),
        ("memory.swap", {"proc/swaps": "Filename Type Size\n/dev/sda2 partition 99"}, "/dev/sda2"),
        ("kernel.skew_tick", {"proc/cmdline": "quiet skew_tick=1 splash"}, "1"),
        ("kernel.skew_tick", {"proc/cmdline": "quiet"}, "0"),
        ("service.cron", {"proc/9/comm": "cron", "proc/10/comm": "atd"}, "atd,cron"),
        ("clock.chrony", {"proc/9/comm": "chronyd"}, "running"),
        (
            "thp.enabled",
            {"sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never"},
            "madvise",
        ),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_one_line_is_read_and_one_differing_cpu_is_seen(
    name: str, files: Mapping[str, str], found: str | None, tmp_path: Path
) -> None:
    assert run_read(find(name), files, tmp_path) == found


def test_the_page_on_hosts_lists_each_setting_with_each_value() -> None:
    page = (ROOT / "docs/hosts.md").read_text()
    rows = {row.split("`")[1]: row for row in page.splitlines() if row.startswith("| `")}
    for name in name_settings():
        values = {setting.value for (_, each), setting in SETTINGS.items() if each == name}
        assert name in rows, f"docs/hosts.md has no row for {name}"
        assert [value for value in values if f"`{value}`" not in rows[name]] == [], name
