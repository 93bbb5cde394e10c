"""The doctor: each check on given values, and the command on this machine."""

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from catalogs import shipped
from click.testing import CliRunner

from perf.commands import doctor
from perf.commands.doctor import DoctorFinding, Need
from perf.hosts.ports import find_taken
from perf.model.access import Access
from perf.releases.java import Java

CONFIGS = Path(__file__).parents[3] / "configs"


@pytest.mark.parametrize(
    ("version", "state"),
    [((3, 10, 9), Need.MISSING), ((3, 11, 0), Need.OK), ((4, 0, 0), Need.OK)],
)
def test_python_before_3_11_will_not_do(version: tuple[int, int, int], state: Need) -> None:
    assert doctor.check_python(version).state is state


def test_absent_packages_name_the_extra_to_install() -> None:
    assert doctor.check_extra("detect", ()).state is Need.OK
    assert doctor.check_extra("measure", ("pymongo", "numpy")) == DoctorFinding(
        name="extra measure",
        state=Need.MISSING,
        found="without pymongo, numpy",
        advice="run `make setup`, or: pip install 'knickpoint[measure]'",
    )


def test_an_extra_that_measures_nothing_is_not_required() -> None:
    for extra in ("infra", "lake"):
        found = doctor.check_extra(extra, ("some-package",))
        assert found.state is Need.OK
        assert f"requirements/{extra}.lock" in found.found


def test_memory_is_compared_with_the_need() -> None:
    assert doctor.check_memory(5000, 5000).state is Need.OK
    short = doctor.check_memory(4999, 5000)
    assert short.state is Need.MISSING
    assert short.found == "4999 MB available, 5000 MB needed"


def test_single_core_is_advised_against_but_enough() -> None:
    assert doctor.check_cores(1).state is Need.ADVICE
    assert doctor.check_cores(2).state is Need.OK


def test_full_disk_names_the_way_to_another_place() -> None:
    assert doctor.check_disk("data disk", Path("var"), 4000, 4000).state is Need.OK
    data = doctor.check_disk("data disk", Path("var"), 10, 4000)
    cache = doctor.check_disk("cache disk", Path("cache"), 10, 2000)
    assert data.found == "10 MB free for var, 4000 MB needed"
    assert (data.state, cache.state) == (Need.MISSING, Need.MISSING)
    assert "--data DIR" in data.advice
    assert "KNICKPOINT_CACHE=DIR" in cache.advice


def test_read_only_place_is_missing() -> None:
    found = doctor.check_writable("cache", Path("/srv/cache"), is_writable=False)
    assert (found.state, found.found) == (Need.MISSING, "/srv/cache is not writable")
    assert doctor.check_writable("cache", Path("/srv/cache"), is_writable=True).state is Need.OK


def test_java_is_found_fetched_or_missing() -> None:
    java = Java(path="/opt/java/bin/java", version="17.0.9", major=17)
    here = doctor.check_java(17, "Cassandra 5.0", java, "x86_64")
    fetched = doctor.check_java(17, "Cassandra 5.0", None, "x86_64")
    missing = doctor.check_java(17, "Cassandra 5.0", None, "riscv64")
    assert (here.state, here.found) == (Need.OK, "17.0.9, /opt/java/bin/java")
    assert (fetched.state, "fetched" in fetched.found) == (Need.OK, True)
    assert missing.state is Need.MISSING
    assert missing.advice == "Cassandra 5.0 needs it: install a JDK 17 and set JAVA_HOME to it"


def test_program_without_advice_is_optional() -> None:
    assert doctor.check_program("Maven", None, "one is fetched").state is Need.OK
    assert doctor.check_program("ssh", None, "no host", "install it").state is Need.ADVICE
    assert doctor.check_program("ssh", "/usr/bin/ssh", "no host", "install it").advice == ""


def test_ports_in_use_are_listed_with_their_holders() -> None:
    assert doctor.check_ports({}).state is Need.OK
    taken = doctor.check_ports({("127.0.0.1", 7000): " by pid 7 (java)", ("127.0.0.2", 9042): ""})
    assert taken.state is Need.MISSING
    assert taken.found == "127.0.0.1:7000 in use by pid 7 (java), 127.0.0.2:9042 in use"


def test_kernel_settings_are_advice_with_the_command_to_run() -> None:
    bad = {"thp": "always", "max_map_count": "65530", "swap_kb": "1024"}
    good = {"thp": "madvise", "max_map_count": "1048575", "swap_kb": "0"}
    unknown = {"thp": "unavailable", "max_map_count": "unavailable", "swap_kb": "unavailable"}
    assert {finding.state for finding in doctor.check_host_settings(bad)} == {Need.ADVICE}
    assert {finding.state for finding in doctor.check_host_settings(good)} == {Need.OK}
    assert {finding.state for finding in doctor.check_host_settings(unknown)} == {Need.OK}
    assert "sudo sysctl vm.max_map_count=1048575" in [*doctor.check_host_settings(bad)][1].advice


def test_listening_process_is_found_and_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        taken = find_taken(["127.0.0.1"], [port])
        assert list(taken) == [("127.0.0.1", port)]
        assert taken["127.0.0.1", port].startswith(f" by pid {os.getpid()} (")
    assert find_taken(["127.0.0.1"], [port]) == {}


def test_render_puts_the_advice_below_its_line() -> None:
    text = doctor.render(
        [
            DoctorFinding(name="Python", state=Need.OK, found="3.11.7"),
            DoctorFinding(name="ports", state=Need.MISSING, found="7000 in use", advice="stop it"),
        ]
    )
    assert text == (
        "ok       Python          3.11.7\n"
        "MISSING  ports           7000 in use\n"
        "                         → stop it"
    )


def test_command_looks_at_this_machine_and_changes_nothing(tmp_path: Path) -> None:
    data = tmp_path / "not" / "there"
    result = CliRunner().invoke(doctor.doctor, ["--data", str(data), "--configs", str(CONFIGS)])
    lines = result.output.splitlines()
    is_missing = any(line.startswith("MISSING") for line in lines)
    assert result.exit_code == (3 if is_missing else 0)
    names = {line[9:25].strip() for line in lines if line.startswith(("ok", "advice", "MISSING"))}
    assert {"configuration", "Python", "extra measure", "memory", "ports", "Java 17"} <= names
    assert list(tmp_path.iterdir()) == []


def test_data_below_a_file_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    data = tmp_path / "file" / "var"
    result = CliRunner().invoke(doctor.doctor, ["--data", str(data), "--configs", str(CONFIGS)])
    assert result.exit_code == 3
    assert f"MISSING  data directory  {data} is not writable" in result.output


@pytest.mark.slow
def test_data_where_even_root_cannot_write_is_missing() -> None:
    data = Path("/proc/knickpoint")  # a file system that makes no files, whatever its modes say
    result = CliRunner().invoke(doctor.doctor, ["--data", str(data), "--configs", str(CONFIGS)])
    assert result.exit_code == 3
    assert f"MISSING  data directory  {data} is not writable" in result.output


def test_broken_configuration_is_reported_beside_everything_else(tmp_path: Path) -> None:
    result = CliRunner().invoke(doctor.doctor, ["--data", str(tmp_path), "--configs", "/nowhere"])
    assert result.exit_code == 3
    assert "MISSING  configuration   1 problem in the configuration:" in result.output
    assert "ok       Python" in result.output
    assert "Missing: configuration" in result.output


@pytest.mark.slow
def test_a_shared_history_that_cannot_be_opened_is_missing(tmp_path: Path) -> None:
    text = (
        'history: "ducklake:postgres:host=127.0.0.1 port=1 dbname=x"\ndata_path: /srv/x/\nlab: rack-a\n'
    )
    for content, said, advice in (
        (text, "MISSING  shared history  the catalog of the history", "Is PostgreSQL running there"),
        ("lab: Rack A\n", "MISSING  shared history ", "history.yaml:1"),
    ):
        (tmp_path / "history.yaml").write_text(content, encoding="utf-8")
        arguments = ["--data", str(tmp_path), "--configs", str(CONFIGS)]
        result = CliRunner().invoke(doctor.doctor, arguments)
        assert result.exit_code == 3
        assert said in result.output
        assert advice in result.output


def test_the_native_engine_is_looked_for_where_a_suite_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = shipped()
    suite = catalog.suite("quickstart")
    assert list(doctor.examine_engines(catalog, suite)) == []
    testbed = replace(catalog.testbeds[suite.testbed], engine="native")
    asking = replace(catalog, testbeds={**catalog.testbeds, suite.testbed: testbed})
    monkeypatch.setenv("KNICKPOINT_NATIVE", str(tmp_path / "knickload"))
    (absent,) = doctor.examine_engines(asking, suite)
    assert absent.state is Need.MISSING
    assert "knickload is no program" in absent.found
    assert "engine: python" in absent.advice
    (tmp_path / "knickload").touch(mode=0o755)
    (found,) = doctor.examine_engines(asking, suite)
    assert found == DoctorFinding(
        name="native engine", state=Need.OK, found=str(tmp_path / "knickload"), advice=""
    )


def test_secrets_are_looked_for_where_a_config_names_some(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = shipped()
    suite = catalog.suite("quickstart")
    assert list(doctor.examine_access(catalog, suite)) == []
    variable = "KNICKPOINT_PASSWORD_TEST"
    (one,) = {experiment.config for experiment in suite.experiments}
    config = replace(
        catalog.systems["cassandra"][one], access=Access(username="bench", password_env=variable)
    )
    systems = {**catalog.systems, "cassandra": {**catalog.systems["cassandra"], one: config}}
    asking = replace(catalog, systems=systems)
    monkeypatch.delenv(variable, raising=False)
    (absent,) = doctor.examine_access(asking, suite)
    assert absent.state is Need.MISSING
    assert (
        absent.found
        == f"the environment variable {variable} is not set; set it to the password of bench"
    )
    monkeypatch.setenv(variable, "pl4nted")
    (found,) = doctor.examine_access(asking, suite)
    assert found.state is Need.OK
    assert "pl4nted" not in repr(found)
