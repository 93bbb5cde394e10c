"""What an installed Knickpoint promises: its commands, its metadata, its lock files."""

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
COMMANDS = sorted(importlib.metadata.entry_points(group="knickpoint.commands"), key=lambda e: e.name)
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def name_of(requirement: str) -> str:
    """Return the normalised name of the distribution that a requirement is about."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0]).lower()


def read_lock(path: Path) -> dict[str, str]:
    """Return the requirements of a lock file by name, each with its hashes on one line."""
    text = path.read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {name_of(line): line for line in lines}


def test_has_the_commands_of_the_table_and_no_others() -> None:
    table = PROJECT["entry-points"]["knickpoint.commands"]
    assert {entry.name: entry.value for entry in COMMANDS} == table


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_each_command_loads_and_teaches(entry: importlib.metadata.EntryPoint) -> None:
    command = entry.load()
    assert isinstance(command, click.Command)
    result = CliRunner().invoke(command, ["--help"])
    assert result.exit_code == 0, result.output
    assert command.help
    assert command.get_short_help_str(200) in " ".join(result.output.split())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["measure", "append", "releases", "schema", "doctor", "history"])
def test_measuring_loads_neither_judging_nor_telling(name: str) -> None:
    module = next(entry.module for entry in COMMANDS if entry.name == name)
    watched = [module, "analysis", "reports", "scipy", "otava", "jinja2", "vl_convert"]
    program = (
        "import sys\n"
        "from perf.commands import main as cli\n"
        f"sys.argv = ['knickpoint', {name!r}, '--help']\n"
        "try:\n"
        "    cli.main()\n"
        "finally:\n"
        f"    print('loaded:', *(name for name in {watched} if name in sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"loaded: {module}"


def test_metadata_says_what_pyproject_says() -> None:
    metadata = importlib.metadata.metadata("knickpoint")
    assert metadata["Version"] == PROJECT["version"]
    assert metadata["Requires-Python"] == PROJECT["requires-python"]
    assert metadata["License-Expression"] == "Apache-2.0"
    assert set(metadata.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("package", ["perf", "analysis", "reports"])
def test_each_package_is_installed_and_typed(package: str) -> None:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).with_name("py.typed").is_file()


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.stem)
def test_lock_pins_everything_by_hash_and_names_no_address(path: Path) -> None:
    assert "://" not in path.read_text()
    requirements = read_lock(path)
    assert requirements
    unpinned = [line for line in requirements.values() if "==" not in line or not HASH.search(line)]
    assert unpinned == []


def test_each_extra_has_a_lock_with_its_dependencies() -> None:
    for extra, dependencies in PROJECT["optional-dependencies"].items():
        locked = read_lock(ROOT / f"requirements/{extra}.lock").keys()
        wanted = {name_of(line) for line in (*PROJECT["dependencies"], *dependencies)}
        assert wanted <= locked, f"{extra}.lock lacks {wanted - locked}; run: make lock"


def test_a_host_that_only_measures_needs_no_statistics_package() -> None:
    assert read_lock(ROOT / "requirements/measure.lock").keys().isdisjoint({"scipy", "apache-otava"})
