"""Two sides of a real Cassandra, one with a handicap in a named method; measured and explained.

    python tests/planting/planted_code.py --data DIR --micros 40 \\
        --method org.apache.cassandra.db.commitlog.CommitLog.add

prints what profiles of both sides say. With neither a method nor a setting both sides are the same.
"""

import argparse
import sys
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

from analysis.comparing.description import describe_profiles
from analysis.comparing.profiles import ProfileComparison
from analysis.orchestration.explaining import explain
from perf.jobs.interleaving import PLANTED, Pairing, take_side
from perf.jobs.measuring import Job, open_job
from perf.local.paths import cache_dir
from perf.model.results import Purpose, Reason
from perf.releases.java import find_java

sys.path[:0] = [str(Path(__file__).parents[1] / "peers")]
from java_libraries import compile_peer, fetch_jars  # noqa: E402  as in the tests

SOURCE = Path(__file__).with_name("SlowMethod.java")
LIBRARIES = ("net.bytebuddy:byte-buddy:1.17.5", "org.eclipse.jdt:ecj:3.33.0")


def make_agent() -> Path:
    """Return the jar of the agent, which holds all that it needs."""
    java = find_java((17,), print)
    classes, *jars = compile_peer(java.path, SOURCE, fetch_jars("slow-method", LIBRARIES)).split(":")
    agent = cache_dir() / "libraries" / f"{Path(classes).parent.name}.jar"
    if not agent.exists():
        with tempfile.TemporaryDirectory(dir=agent.parent, prefix="part-") as part:
            fresh = Path(part, "agent.jar")
            with zipfile.ZipFile(fresh, "w") as made:
                made.writestr("META-INF/MANIFEST.MF", "Premain-Class: SlowMethod\n")
                for path in sorted(Path(classes).glob("*.class")):
                    made.write(path, path.name)
                (library,) = (jar for jar in jars if Path(jar).name.startswith("byte-buddy"))
                with zipfile.ZipFile(library) as known:
                    for name in known.namelist():
                        if name.startswith("net/bytebuddy/"):
                            made.writestr(name, known.read(name))
            fresh.rename(agent)
    return agent


def pair(
    job: Job,
    suite: str,
    experiment: str,
    *,
    method: str = "",
    micros: float = 0,
    allocated: int = 0,
    settings: dict[str, object] | None = None,
) -> Pairing:
    """Return both sides of 5.0.9; the candidate has the handicap, and says so."""
    baseline = take_side(job.catalog, job.catalog.suite(suite), experiment, "5.0.9")
    config = baseline.deployment.config
    planted = ()
    if method:
        place = ",".join(method.rsplit(".", 1))
        option = f"-javaagent:{make_agent()}={place},{round(micros * 1000)},{allocated}"
        config = replace(config, name="planted", jvm_options=(*config.jvm_options, option))
    if settings:
        config = replace(config, name="planted", settings={**config.settings, **settings})
    if config.name == "planted":
        text = f"planted: {method} {micros:g} µs, {allocated} bytes {settings or ''}".rstrip()
        planted = (Reason(kind=PLANTED, text=text),)
    candidate = replace(
        baseline,
        label="planted",
        deployment=replace(baseline.deployment, config=config),
        remarks=planted,
    )
    return Pairing(purpose=Purpose.COMPARISON, suite=suite, baseline=baseline, candidate=candidate)


def main() -> ProfileComparison:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--configs", type=Path)
    parser.add_argument("--suite", default="single")
    parser.add_argument("--experiment", default="cassandra-single-write")
    parser.add_argument("--method", default="")
    parser.add_argument("--micros", type=float, default=0)
    parser.add_argument("--allocated", type=int, default=0)
    parser.add_argument("--setting", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    job = open_job(given.data, given.configs)
    settings = dict(one.split("=", 1) for one in given.setting)
    found = explain(
        job,
        pair(
            job,
            given.suite,
            given.experiment,
            method=given.method,
            micros=given.micros,
            allocated=given.allocated,
            settings=settings,
        ),
    )
    sys.stdout.write("\n".join(describe_profiles(found)) + "\n")
    return found


if __name__ == "__main__":
    main()
