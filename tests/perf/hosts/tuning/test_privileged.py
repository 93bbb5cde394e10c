"""The program that root has on a host: what it refuses, and that it compares as Python does."""

import subprocess

import pytest

from perf.hosts.tuning.privileged import render_profile, render_script
from perf.hosts.tuning.profiles import HostSetting, label, list_profiles, load_profile
from perf.hosts.tuning.proof import fits


def run_program(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-s", "--", *arguments],
        input=render_script(),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_program_is_shell_and_holds_each_profile() -> None:
    text = render_script()
    subprocess.run(["sh", "-n"], input=text, text=True, check=True)
    assert text.startswith("#!/bin/sh\n")
    for name in list_profiles():
        assert f"end_tuning {label(load_profile(name))}\n" in text
        subprocess.run(["sh", "-n"], input=render_profile(load_profile(name)), text=True, check=True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "usage: knickpoint-tune PROFILE WORK_DIR"),
        (("server",), "usage: knickpoint-tune PROFILE WORK_DIR"),
        (("fast", "/var/lib/knickpoint"), "no such profile: fast"),
        (("server; reboot", "/var/lib/knickpoint"), "no such profile"),
        (("server", "var/lib"), "not an absolute path"),
        (("server", "/var/../etc"), "without .."),
        (("server", "/var/.."), "without .."),
        (("server", "/var/$(reboot)"), "letters, digits"),
        (("server", "/var/lib\n/etc"), "letters, digits"),
        (("server", "/var lib"), "letters, digits"),
        (("server", "/var/lib/knickpoint", "vm.swappiness; reboot"), "no name of a setting"),
        (("server", "/var/lib/knickpoint", ""), "no name of a setting"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_done(
    arguments: tuple[str, ...], said: str
) -> None:
    done = run_program(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


CASES = [
    (matches, value, found)
    for matches, value in (
        ("equal", "1"),
        ("at-least", "100"),
        ("at-least", "unlimited"),
        ("contains", "a"),
    )
    for found in (
        "1",
        "10",
        "100",
        "99",
        "unlimited",
        "-200",
        "1e9",
        "many",
        "a",
        "b a c",
        "ba",
        "* a",
        "*",
    )
]


def test_the_shell_compares_as_python_does() -> None:
    functions = render_script().partition("# tune NAME")[0].replace("#!/bin/sh\n", "")
    asks = "\n".join(
        f"if fits '{matches}' '{found}' '{value}'; then echo yes; else echo no; fi"
        for matches, value, found in CASES
    )
    done = subprocess.run(
        ["sh", "-s"], input=f"{functions}\n{asks}\n", capture_output=True, text=True, check=True
    )
    expected = [
        fits(
            HostSetting(
                name="x",
                value=value,
                matches=matches,  # type: ignore[arg-type]
                read="true",
                apply="true",
                reason="r",
                source="s",
            ),
            found,
        )
        for matches, value, found in CASES
    ]
    assert done.stdout.split() == ["yes" if one else "no" for one in expected]
