"""Run `knickpoint bisect` with a handicap planted from a secret release on, honestly marked.

    python tests/planting/bisect_planted.py --from 5.0.5 --settings '{"concurrent_writes": 2}' -- \\
        cassandra 5.0.2..5.0.7 --suite single --experiment E --metric M

`-- explain bis-2026-11-28-1 …` profiles what a bisection named, planted the same way. Releases from
the secret one on get these settings on top of their configuration. Each trial that had them says so,
in its bundle and wherever it is reported. The command itself is the real one and knows nothing of it:
only the function that makes its sides is wrapped.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from analysis.orchestration import bisecting as bisection_run
from analysis.orchestration import explaining
from perf.commands.main import main as run_command
from perf.config.catalog import Catalog
from perf.jobs.interleaving import PLANTED, Side
from perf.model.design import Suite
from perf.model.results import Reason
from perf.systems import registry

TakeSide = Callable[[Catalog, Suite, str, str], Side]


def plant(take_side: TakeSide, first: str, settings: Mapping[str, Any]) -> TakeSide:
    """Wrap a function that makes sides: those from release `first` on get the handicap and the mark."""

    def take(catalog: Catalog, suite: Suite, experiment: str, version: str) -> Side:
        side = take_side(catalog, suite, experiment, version)
        deployment = side.deployment
        known = registry.load(deployment.experiment.system).releases()
        place = {release.version: (release.line, release.ordinal) for release in known}
        if place[version] < place[first]:
            return side
        config = replace(
            deployment.config,
            name=f"{deployment.config.name}-planted",
            settings={**deployment.config.settings, **settings},
        )
        text = f"a handicap was planted in this trial: {json.dumps(settings)}"
        return replace(
            side,
            deployment=replace(deployment, config=config),
            remarks=(*side.remarks, Reason(kind=PLANTED, text=text)),
        )

    return take


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="first", required=True, help="The secret release.")
    parser.add_argument("--settings", required=True, type=json.loads, help="Settings, as JSON.")
    parser.add_argument(
        "words",
        nargs="+",
        help="After --: what `knickpoint bisect` is given; or `explain` and its own.",
    )
    given = parser.parse_args(arguments)
    for module in (bisection_run, explaining):
        module.take_side = plant(module.take_side, given.first, given.settings)
    sys.argv = ["knickpoint", *([] if given.words[0] == "explain" else ["bisect"]), *given.words]
    run_command()


if __name__ == "__main__":
    main(sys.argv[1:])
