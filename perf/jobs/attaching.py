"""What an attached cluster runs: asked before anything is planned, since it cannot be chosen."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from perf.jobs.measuring import Fetched, Job
from perf.model.design import Deployment, Suite, Testbed
from perf.model.errors import UsageError
from perf.model.results import Artifact, Release, Source
from perf.model.sources import Build
from perf.releases.versions import place_version
from perf.systems import registry
from perf.trial import placement
from perf.trial.attached import ask_version

_NOT_KNOWN_YET = "running"


def ask_running(job: Job, suite_name: str) -> Job:
    """Return the job that knows what the attached cluster of a suite runs.

    Raises:
        StepFailed: a server does not answer, or they run several versions.
        UsageError: what runs is no version of a release.

    """
    suite = job.catalog.suite(suite_name)
    running = dict(_ask_all(job, suite))
    catalog = job.catalog
    known = {(system, one.version) for system in running for one in catalog.releases(system)}
    today = datetime.now(UTC).date()
    unknown = tuple(
        Build(release=one.release, source="attached", found_on=today)
        for one in running.values()
        if (one.release.system, one.release.version) not in known
    )
    experiments = tuple(
        replace(one, releases=(running[one.system].release.version,)) for one in suite.experiments
    )
    catalog = replace(
        catalog,
        found=replace(catalog.found, builds=(*catalog.found.builds, *unknown)),
        suites={**catalog.suites, suite_name: replace(suite, experiments=experiments)},
    )
    fetched = {(one.release.system, one.release.version): one for one in running.values()}
    return replace(job, catalog=catalog, running=fetched)


def refuse_attached(testbed: Testbed) -> None:
    """Raise UsageError where one release runs and cannot be chosen, for what measures several."""
    if testbed.attached:
        raise UsageError(
            f"testbed {testbed.name} is attached: one release runs there, and no other one can be "
            "measured beside it; choose a testbed whose servers are deployed"
        )


def _ask_all(job: Job, suite: Suite) -> Iterator[tuple[str, Fetched]]:
    """Yield each system of a suite with what of it runs."""
    deployments = {one.system: job.catalog.resolve(suite, one) for one in suite.experiments}
    for system, deployment in deployments.items():
        yield system, _ask(job, deployment)


def _ask(job: Job, deployment: Deployment) -> Fetched:
    name, testbed = deployment.experiment.system, deployment.testbed.name
    system, artifact = registry.load(name), Artifact(source=Source.ATTACHED, sha256="")
    asking = Release(system=name, version=_NOT_KNOWN_YET, line="", ordinal=0)
    cluster = placement.place(deployment, asking, artifact, job.paths.run)
    version = ask_version(system, cluster)
    job.progress.report(f"testbed {testbed} runs {name} {version}")
    for known in job.catalog.releases(name):
        if known.version == version:
            return Fetched(release=known, artifact=artifact)
    if (place := place_version(version)) is None:
        raise UsageError(f"testbed {testbed} runs {name} {version}, which has no place among releases")
    line, ordinal = place
    release = Release(system=name, version=version, line=line, ordinal=ordinal)
    return Fetched(release=release, artifact=artifact)
