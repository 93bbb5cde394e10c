"""What the lab's program refuses, without a lab: what it could not put back, and who is not root."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from perf.model.errors import HostUnfit

from .conftest import ROOT


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the program, with a lab of no hosts and no bridge."""
    monkeypatch.syspath_prepend(str(ROOT / "infra" / "lab"))
    found = importlib.import_module("lab")
    home = tmp_path / "lab"
    home.mkdir()
    monkeypatch.setattr(found, "HOME", home)
    monkeypatch.setattr(found, "HOSTS", ())
    monkeypatch.setattr(found.network, "owner", lambda: None)
    return found


def test_down_keeps_what_it_could_not_put_back(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = program.HOME / "kernel.json"
    kept.write_text("{}")
    monkeypatch.setattr(program.kernel, "restore", lambda _: ["vm.swappiness"])
    with pytest.raises(HostUnfit, match=r"vm\.swappiness.*kernel\.json, which stays.*again"):
        program.down()
    assert kept.exists()
    monkeypatch.setattr(program.kernel, "restore", lambda _: [])
    program.down()
    assert not program.HOME.exists()


@pytest.mark.parametrize(
    "arguments", [["cut", "db-1"], ["down"], ["mend", "db-1"], ["off", "db-1"], ["up"]]
)
def test_every_change_needs_root(
    program: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    monkeypatch.setattr(program.os, "geteuid", lambda: 1000)
    assert program.main(arguments) == 3
    assert "needs root: run it with sudo" in capsys.readouterr().err
    assert program.HOME.exists()
    assert program.main(["status"]) == 0
