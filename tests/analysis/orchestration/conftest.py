"""The lab of the bisections, as a fixture."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from bisection_lab import BROKEN, CONFIGS, SCATTER, Lab

from perf.config.catalog import load_catalog
from perf.history import bundle
from perf.jobs import measuring
from perf.jobs.interleaving import take_side
from perf.local.paths import DataPaths
from perf.local.progress import Progress
from perf.model.identity import named
from perf.model.results import Artifact, Reason, Sample, Source, Trial, TrialStatus
from perf.releases import artifacts as releases
from perf.systems.contract import System
from perf.systems.fake.system import SYSTEM
from perf.trial.harness import Order


@pytest.fixture
def lab(tmp_path: Path, make_trial: Callable[..., Trial], monkeypatch: pytest.MonkeyPatch) -> Lab:
    catalog = load_catalog(CONFIGS)
    side = take_side(catalog, catalog.suite("fake-short"), "fake-blink", "2.0.0")
    deployment = side.deployment

    def seal(lab: Lab, name: str, **changes: object) -> Trial:
        level = lab.levels[name]
        value = level * (1 + SCATTER[len(bundle.find(lab.paths)) % len(SCATTER)])
        status = TrialStatus.COMPLETED if level else TrialStatus.FAILED
        sample = Sample(
            phase="saturation", operation="write", metric="throughput", statistic="mean", value=value
        )
        started = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=len(bundle.find(lab.paths)))
        fields = {
            "experiment": "fake-blink",
            "release": releases.find_release(SYSTEM, name),
            "artifact": Artifact(source=Source.BUILTIN, sha256=""),
            "topology": named(deployment.topology),
            "testbed": named(deployment.testbed),
            "workload": named(deployment.workload),
            "config": named(deployment.config),
            "status": status,
            "reasons": () if level else (Reason(kind="start-failed", text="it does not start"),),
            "samples": (sample,) if level else (),
            "started_at": started,
            "finished_at": started + timedelta(minutes=3),
        }
        trial = make_trial(**{**fields, **changes})
        bundle.seal(bundle.stage(lab.paths, trial.id), trial, ())
        return trial

    lab = Lab(paths=DataPaths(tmp_path), catalog=catalog, seal=seal)

    def run(order: Order, _: System, __: DataPaths, ___: Progress) -> Trial:
        if len(lab.measured) == lab.stop_after:
            raise KeyboardInterrupt
        lab.measured.append(order.release.version)
        if (
            lab.measured.count(order.release.version)
            == lab.break_after.get(order.release.version, -1) + 1
        ):
            lab.levels[order.release.version] = BROKEN
        said = {"id": order.trial, "purpose": order.purpose, "remarks": order.remarks, "night": ""}
        return seal(lab, order.release.version, **said, config=named(order.deployment.config))

    monkeypatch.setattr(measuring, "run_trial", run)
    return lab
