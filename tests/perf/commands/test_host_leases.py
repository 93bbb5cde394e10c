"""`knickpoint host lease`: shows whose each host is, and takes it away."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from near_host import NearHost

from perf.commands.host import host
from perf.config.catalog import load_catalog
from perf.hosts import lease
from perf.hosts.lease import hold, list_places, look, renew
from perf.hosts.lease_file import LEASE
from perf.local.this_process import name_owner
from perf.model.design import Host, Testbed
from perf.model.errors import MeasureError, UsageError

CONFIGS = Path(__file__).parents[3] / "configs"


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shipped configuration; hosts of the example rack are directories of this machine."""

    def connect(_: Testbed, found: Host) -> NearHost:
        return NearHost(found.name)

    root = tmp_path / "configs"
    shutil.copytree(CONFIGS, root)
    path = root / "testbeds" / "example-rack.yaml"
    text = path.read_text()
    for address in ("192.0.2.11", "192.0.2.12", "192.0.2.13", "192.0.2.21"):
        assert text.count(address) == 1
        user = f"address: {address}\n    user: knickpoint\n    work_dir: "
        text = text.replace(f"{user}/var/lib/knickpoint", f"{user}{tmp_path}/{address}")
    path.write_text(text)
    monkeypatch.setattr(lease, "open_host", connect)
    return root


@pytest.fixture
def run(configs: Path) -> Callable[..., Result]:
    def run(*words: str) -> Result:
        return CliRunner().invoke(host, ["lease", *words, "--configs", str(configs)])

    return run


def rack(configs: Path) -> Testbed:
    return load_catalog(configs).testbeds["example-rack"]


def test_a_free_testbed_is_shown_as_free(run: Callable[..., Result]) -> None:
    done = run("example-rack")
    assert done.exit_code == 0
    assert done.output == "db-1: free\ndb-2: free\ndb-3: free\nload-1: free\n"


def test_who_holds_it_is_shown_and_taken_away(configs: Path, run: Callable[..., Result]) -> None:
    testbed = rack(configs)
    with hold([testbed], "the nightly of suite rack", print):
        shown = run("example-rack").output.splitlines()
        assert len(shown) == 4
        assert shown[0].startswith(
            f"db-1: held by {name_owner()} for the nightly of suite rack, from 2"
        )
        broken = run("example-rack", "--break")
        assert broken.exit_code == 0
        # First whose it is, then that it is gone.
        assert broken.output.splitlines()[1] == "db-1: broken"
        assert broken.output.splitlines()[0].startswith(f"db-1: held by {name_owner()} for the nightly")
        with pytest.raises(
            MeasureError, match=f"db-3: the lease of this job was broken by {name_owner()}"
        ):
            renew(testbed, 60.0)
    assert run("example-rack", "--break").output == run("example-rack").output


def test_a_damaged_lease_is_shown_and_can_be_broken(configs: Path, run: Callable[..., Result]) -> None:
    place = list_places([rack(configs)])[0]
    Path(place.work_dir).mkdir()
    (Path(place.work_dir) / LEASE).write_text("{}")
    assert "db-1: held by an unknown job: " in run("example-rack").output
    assert "db-1: broken\n" in run("example-rack", "--break").output
    assert look(place).fault == ""


def test_a_host_out_of_reach_is_reported_and_the_others_are_shown(
    configs: Path, run: Callable[..., Result]
) -> None:
    place = Path(list_places([rack(configs)])[1].work_dir)
    (place / LEASE).mkdir(parents=True)
    done = run("example-rack", "--break")
    assert done.exit_code == 3
    assert "\nlease failed on db-2: python3 there ended with exit 1: IsADirectory" in done.output
    assert "db-3: free\n" in done.output


def test_this_machine_has_none(run: Callable[..., Result]) -> None:
    done = run("local")
    assert done.exit_code == 0
    assert "the lock of the data directory (measuring.lock) and the ports" in done.output
    refused = run("local", "--break")
    assert isinstance(refused.exception, UsageError)
