"""Configuration that acts like code: each known way is refused with file and line, all at once."""

import shutil
import string
import subprocess
from pathlib import Path

import pytest
from budget import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import need
from pydantic import TypeAdapter

from perf.config.checks.files import ConfigFile
from perf.config.checks.systems import check_settings, is_harmless
from perf.local.document import read_document
from perf.model.design import SystemConfig
from perf.systems import registry

CASES = Path(__file__).parents[3] / "data" / "settings"
"""Each line is a setting or an option: `<system>-refused.txt`, `<system>-taken.txt`; `jvm` of a JVM."""


def read_options(kind: str) -> list[str]:
    found = (CASES / f"jvm-{kind}.txt").read_text().splitlines()
    assert found
    return found


def read_settings(kind: str) -> list[tuple[str, str]]:
    found = [(path.stem.partition("-")[0], path) for path in sorted(CASES.glob(f"*-{kind}.txt"))]
    lines = [(name, line) for name, path in found for line in path.read_text().splitlines()]
    settings_only = [(name, line) for name, line in lines if name != "jvm"]
    assert settings_only
    return settings_only


def check(tmp_path: Path, system: str, body: str) -> list[str]:
    path = tmp_path / "x.yaml"
    path.write_text(f"system: '{system}'\nname: x\ndescription: y\n{body}\n")
    document = read_document(path)
    assert document.problems == ()
    value = TypeAdapter(SystemConfig).validate_python(document.tree, strict=False)
    return list(check_settings(system, ConfigFile(document, value)))


def test_a_setting_that_acts_is_refused_in_its_line(tmp_path: Path) -> None:
    for system, line in read_settings("refused"):
        problems = check(tmp_path, system, f"heap_mb: 1\nsettings:\n  {line}")
        assert problems, (system, line)
        assert all(one.startswith(f"{tmp_path / 'x.yaml'}:6: settings") for one in problems), line


def test_a_setting_that_only_computes_is_taken(tmp_path: Path) -> None:
    for system, line in read_settings("taken"):
        assert check(tmp_path, system, f"settings:\n  {line}") == [], (system, line)


def test_an_option_that_acts_is_refused() -> None:
    assert [option for option in read_options("refused") if is_harmless(option)] == []


def test_an_option_that_only_computes_is_taken() -> None:
    assert [option for option in read_options("taken") if not is_harmless(option)] == []


def test_the_configs_that_are_shipped_are_taken() -> None:
    shipped = sorted((Path(__file__).parents[4] / "configs/systems").glob("*/*.yaml"))
    assert shipped
    for path in shipped:
        document = read_document(path)
        value = TypeAdapter(SystemConfig).validate_python(document.tree, strict=False)
        assert list(check_settings(path.parent.name, ConfigFile(document, value))) == []


def test_no_flag_of_this_java_that_takes_text_takes_a_name() -> None:
    java = shutil.which("java")
    need(java, "no Java on this machine")
    assert java is not None
    unlock = ("-XX:+UnlockDiagnosticVMOptions", "-XX:+UnlockExperimentalVMOptions")
    done = subprocess.run(
        [java, *unlock, "-XX:+PrintFlagsFinal", "-version"], capture_output=True, text=True, check=True
    )
    flags = [line.split()[1] for line in done.stdout.splitlines() if line.lstrip().startswith("ccstr")]
    assert {"OnError", "HeapDumpPath"} <= set(flags)
    taken = {flag for flag in flags if is_harmless(f"-XX:{flag}=name")}
    assert taken <= {"NativeMemoryTracking", "ShenandoahGCHeuristics", "ShenandoahGCMode"}


def test_all_is_said_at_once(tmp_path: Path) -> None:
    problems = check(
        tmp_path,
        "cassandra",
        "jvm_options: [-ea, '-XX:OnError=id', '-cp']\nsettings: {hints_directory: x,\n  jmx_x: 1}",
    )
    assert [one.split(":")[1] for one in problems] == ["4", "4", "5", "6"]
    assert 'jvm_options[1] is "-XX:OnError=id", which may do more' in problems[0]
    assert "remove it" in problems[2]


def test_each_system_says_what_may_be_set(tmp_path: Path) -> None:
    for system in registry.names():
        assert check(tmp_path, system, "settings: {}") == []
        assert (Path(registry.__file__).parent / system / "settings.yaml").is_file()
    assert check(tmp_path, "unheard-of", "settings: {x: 1}")


@settings(max_examples=tries(300), derandomize=True)
@given(st.text(alphabet=f"{string.ascii_letters}{string.digits}-+:=/.@;|$` \n", max_size=30))
def test_no_option_that_passes_names_a_file_or_a_second_word(text: str) -> None:
    for option in (text, f"-XX:{text}", f"-XX:Name={text}", f"-Dcassandra.{text}", f"-X{text}"):
        if is_harmless(option):
            assert not set(option) & set("/@;|$` \n\\")
            assert option[0] == "-"


@settings(max_examples=tries(200), derandomize=True)
@given(
    st.sampled_from(["cluster_name", "memtable.x", "new_setting"]),
    st.text(max_size=10),
    st.sampled_from(["/", "\\", "..", "$", "`", "\n", "\0"]),
    st.text(max_size=10),
)
def test_no_text_with_a_path_passes_whatever_its_setting(
    tmp_path_factory: pytest.TempPathFactory, name: str, before: str, sign: str, after: str
) -> None:
    config = SystemConfig(
        system="cassandra", name="x", description="y", settings={name: before + sign + after}
    )
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text("a: 1")
    assert list(check_settings("cassandra", ConfigFile(read_document(path), config)))
