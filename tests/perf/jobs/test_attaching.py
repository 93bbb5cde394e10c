"""What an attached cluster runs is asked, and is what a night measures."""

from pathlib import Path

import pytest

from perf.jobs.attaching import ask_running, refuse_attached
from perf.jobs.measuring import Job, open_job
from perf.model.errors import StepFailed, UsageError
from perf.model.results import Source
from perf.systems.cassandra.system import Cassandra
from perf.systems.contract import Cluster

CONFIGS = Path(__file__).parents[3] / "configs"


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return open_job(tmp_path, CONFIGS)


def run(monkeypatch: pytest.MonkeyPatch, *versions: str) -> None:
    """Have the servers answer that they run these versions."""

    def answer(_: Cassandra, cluster: Cluster) -> tuple[tuple[str, str], ...]:
        assert cluster.nodes == ()
        assert [node.address for node in cluster.spoken_to] == ["127.0.0.1"]
        return tuple((f"server-{place}", one) for place, one in enumerate(versions))

    monkeypatch.setattr(Cassandra, "running_versions", answer)


def test_a_known_release_is_taken_as_it_is_known(monkeypatch: pytest.MonkeyPatch, job: Job) -> None:
    run(monkeypatch, "5.0.9")
    asked = ask_running(job, "attached")
    (experiment,) = asked.catalog.suite("attached").experiments
    assert experiment.versions == ("5.0.9",)
    fetched = asked.fetch("cassandra", "5.0.9")
    assert fetched.release == asked.catalog.find_release("cassandra", "5.0.9")
    assert fetched.artifact.source is Source.ATTACHED


def test_a_release_that_nobody_knows_is_placed_by_its_version(
    monkeypatch: pytest.MonkeyPatch, job: Job
) -> None:
    run(monkeypatch, "5.0.777", "5.0.777")
    asked = ask_running(job, "attached")
    release = asked.fetch("cassandra", "5.0.777").release
    assert (release.line, release.ordinal) == ("5.0", 777)
    assert asked.catalog.find_release("cassandra", "5.0.777") == release


def test_several_versions_are_not_measured(monkeypatch: pytest.MonkeyPatch, job: Job) -> None:
    run(monkeypatch, "5.0.8", "5.0.9")
    with pytest.raises(StepFailed, match=r"server-0 5\.0\.8, server-1 5\.0\.9"):
        ask_running(job, "attached")


def test_what_is_no_release_is_not_measured(monkeypatch: pytest.MonkeyPatch, job: Job) -> None:
    run(monkeypatch, "trunk")
    with pytest.raises(UsageError, match="trunk"):
        ask_running(job, "attached")


def test_two_releases_are_not_measured_where_one_runs(job: Job) -> None:
    refuse_attached(job.catalog.testbed("local"))
    with pytest.raises(UsageError, match="attached"):
        refuse_attached(job.catalog.testbed("attached"))
