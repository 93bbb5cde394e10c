"""`knickpoint releases`: the databases that can be measured, and their releases."""

import pytest
from click.testing import CliRunner

from perf.commands.releases import releases
from perf.systems import registry


def _list(*arguments: str) -> list[str]:
    done = CliRunner().invoke(releases, arguments)
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


def test_without_a_system_only_database_products_are_listed() -> None:
    headings = [line for line in _list() if not line.startswith(" ")]
    assert headings == ["cassandra", "cratedb", "mongodb", "scylladb"]


@pytest.mark.parametrize("name", registry.names())
def test_each_system_is_listed_when_it_is_named(name: str) -> None:
    heading, *lines = _list(name)
    assert heading == name
    listed = [version for line in lines for version in line.split()[1:]]
    assert sorted(listed) == sorted(each.version for each in registry.load(name).releases())
