"""What the role tune asks Knickpoint for."""

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_site import ROOT

from perf.hosts.tuning.privileged import render_script
from perf.hosts.tuning.profiles import SERVER, label, load_profile


@pytest.fixture
def filters() -> dict[str, Callable[..., Any]]:
    path = ROOT / "infra/filter_plugins/tuning.py"
    spec = importlib.util.spec_from_file_location("tuning_filters", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return dict(module.FilterModule().filters())


def answer(marker: str = "", **changed: str | None) -> str:
    values = {one.name: one.value for one in load_profile(SERVER).settings} | changed
    lines = [f"setting\t{name}\t{value}" for name, value in values.items() if value is not None]
    return "\n".join((f"marker\t{marker}", *lines, "end\t"))


def test_drift_is_what_refuses_a_host(filters: dict[str, Callable[..., Any]]) -> None:
    drift = filters["tuning_drift"]
    assert drift(answer(), SERVER, {}) == []
    seen = answer(
        **{"vm.swappiness": "60", "cpu.smt": None, "cpu.turbo": None, "fs.aio-max-nr": "9999999"}
    )
    found = drift(seen, SERVER, {"cpu.turbo": "the hypervisor does not show it"})
    assert [(one["name"], one["found"], one["is_lacking"]) for one in found] == [
        ("cpu.smt", "–", True),
        ("vm.swappiness", "60", False),
    ]
    assert found[1]["apply"] == 'echo "$value" >/proc/sys/vm/swappiness'


def test_a_host_is_held_to_what_it_was_tuned_to(filters: dict[str, Callable[..., Any]]) -> None:
    marked = filters["tuning_marked"]
    assert marked(answer(label(load_profile("cassandra")))) == "cassandra"
    assert marked(answer("removed@0123456789ab")) == marked(answer("; id")) == marked(answer()) == ""
    assert filters["tuning_label"]("cassandra") == label(load_profile("cassandra"))
    assert filters["tuning_script"]("") == render_script()


def test_an_unknown_profile_and_half_an_answer_are_refused(
    filters: dict[str, Callable[..., Any]],
) -> None:
    with pytest.raises(
        AnsibleFilterError, match="no tuning profile 'cassandro'; known: cassandra, client"
    ):
        filters["tuning_questions"]("cassandro", "/srv")
    with pytest.raises(AnsibleFilterError, match="broke off"):
        filters["tuning_drift"](answer().removesuffix("end\t"), SERVER, {})
