"""Comparing and explaining, and answers of hosts that nobody should believe."""

import os
import subprocess
from dataclasses import replace

import pytest

from perf.hosts.remote import LocalHost
from perf.hosts.tuning.profiles import HostSetting, TuningProfile, load_profile
from perf.hosts.tuning.proof import (
    HostAnswer,
    SettingState,
    ask,
    compare,
    describe_found,
    explain,
    fits,
    parse,
    read,
)
from perf.model.errors import StepFailed

SETTING = HostSetting(
    name="vm.swappiness",
    value="1",
    read="cat /proc/sys/vm/swappiness",
    apply="true",
    reason="because of   that",
    source="a book",
)


@pytest.mark.parametrize(
    ("matches", "value", "found", "is_fit"),
    [
        ("equal", "1", "1", True),
        ("equal", "1", "10", False),
        ("equal", "never", "never always", False),
        ("at-least", "100", "100", True),
        ("at-least", "100", "1000000000000000000000", True),
        ("at-least", "100", "99", False),
        ("at-least", "100", "unlimited", True),
        ("at-least", "unlimited", "unlimited", True),
        ("at-least", "unlimited", "9999999999", False),
        ("at-least", "100", "-200", False),
        ("at-least", "100", "1e9", False),
        ("at-least", "100", "٣٠٠", False),
        ("at-least", "100", "many", False),
        ("contains", "noatime", "rw noatime discard", True),
        ("contains", "noatime", "rw nonoatime", False),
    ],
)
def test_values_are_compared_as_the_setting_says(
    matches: str, value: str, found: str, *, is_fit: bool
) -> None:
    setting = replace(SETTING, matches=matches, value=value)  # type: ignore[arg-type]
    assert fits(setting, found) is is_fit


def test_each_state_of_a_setting() -> None:
    profile = TuningProfile(name="p", description="d", settings=(SETTING,))

    def state(values: dict[str, str], unavailable: dict[str, str]) -> tuple[SettingState, bool]:
        (finding,) = compare(profile, values, unavailable)
        return finding.state, finding.is_trouble

    declared = {"vm.swappiness": "a container"}
    assert state({"vm.swappiness": "1"}, {}) == (SettingState.KEPT, False)
    assert state({"vm.swappiness": "60"}, {}) == (SettingState.DIFFERS, True)
    assert state({}, {}) == (SettingState.LACKS, True)
    assert state({}, declared) == (SettingState.EXCUSED, False)
    assert state({"vm.swappiness": "60"}, declared) == (SettingState.EXCUSED, False)
    assert state({"vm.swappiness": "1"}, declared) == (SettingState.KEPT, False)


def explained(setting: HostSetting, values: dict[str, str]) -> str:
    (finding,) = compare(TuningProfile(name="p", description="d", settings=(setting,)), values, {})
    return "\n".join(explain("db1", finding, "rack"))


def test_a_difference_says_what_is_there_what_is_wanted_why_and_how_to_mend_it() -> None:
    assert explained(SETTING, {"vm.swappiness": "60"}) == (
        "db1: vm.swappiness is 60, wanted 1\n"
        "    why: because of that\n"
        "    fix: knickpoint host tune rack"
    )
    by_hand = replace(SETTING, apply=None, by_hand="set it in\nthe firmware")
    assert "fix: by hand: set it in the firmware" in explained(by_hand, {"vm.swappiness": "60"})


def test_a_setting_that_is_not_there_says_how_to_declare_it() -> None:
    said = explained(SETTING, {})
    assert "cannot be read, so this host does not have it; wanted 1" in said
    assert "configs/testbeds/rack.yaml: tuning: {unavailable: {vm.swappiness: …}}" in said


def test_a_whole_answer_is_read() -> None:
    text = "root\t0\nmarker\tserver@0123456789ab\nsetting\ta\t 1 \nsetting\tb\t\nend\t\n"
    assert parse(text) == HostAnswer(marker="server@0123456789ab", is_root=True, values={"a": "1"})


def test_an_answer_that_broke_off_is_no_answer() -> None:
    assert parse("root\t0\nmarker\t\nsetting\ta\t1\n") is None


def test_what_a_host_prints_cannot_reach_a_terminal_or_stand_for_another_setting() -> None:
    hostile = (
        "root\t1000\nmarker\t\x1b[31m; rm -rf /\nsetting\ta\t\x1b[2J\u202egpj\x07\n"
        "setting\ta\t2\nnonsense\nend\t\n"
    )
    answer = parse(hostile)
    assert answer == HostAnswer(marker="", is_root=False, values={"a": "?[2J?gpj?"})
    (finding,) = compare(
        TuningProfile(name="p", description="d", settings=(SETTING,)), {"vm.swappiness": "9" * 5000}, {}
    )
    assert len(describe_found(finding)) <= 120


def setting(name: str, text: str) -> HostSetting:
    return replace(SETTING, name=name, read=text)


def test_a_host_is_read_with_one_command_and_hostile_output_stays_in_its_place() -> None:
    settings = (
        setting("plain", "echo 1; echo 2"),
        setting("fails", "echo 1; exit 3"),
        setting("silent", "true"),
        setting("empty", "echo; echo 1"),
        setting("long", "head -c 100000 /dev/zero | tr '\\0' x"),
        setting("forged", r"printf '1\rsetting\tsilent\t7\nsetting\tsilent\t7\nend\t\n'"),
        setting("control", r"printf '\033[31mred\000\007'"),
        setting("swallows", "cat; echo done"),
        setting("told", 'echo "$value $work_dir"'),
        setting("quoted", "echo \"it's\" '$HOME' `echo ok`"),
    )
    answer = read(LocalHost(), settings, "/some where/it's")
    assert answer.values == {
        "plain": "1",
        "long": "x" * 400,
        "forged": "1?setting silent 7",
        "control": "?[31mred?",
        "swallows": "done",
        "told": "1 /some where/it's",
        "quoted": "it's $HOME ok",
    }


def test_a_host_that_cannot_answer_is_a_failed_step() -> None:
    with pytest.raises(StepFailed, match="its answer broke off; it printed: "):
        read(LocalHost(), (setting("kills", "kill -9 $PPID"),), "/")


@pytest.mark.skipif(os.geteuid() != 0, reason="compares what root reads with what nobody reads")
def test_no_root_is_needed_to_read() -> None:
    settings = load_profile("cassandra").settings
    text = ask(settings, "/")
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-s"]
    done = subprocess.run(nobody, input=text, capture_output=True, text=True, check=True, cwd="/")
    seen, of_root = parse(done.stdout), read(LocalHost(), settings, "/")
    assert seen is not None
    assert (seen.is_root, of_root.is_root) == (False, True)
    assert seen.values == of_root.values
