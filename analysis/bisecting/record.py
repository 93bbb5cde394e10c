"""Bisections in a JSON file: what was asked, probe by probe, and what it came to. Pure.

<data>/bisections/<id>/bisection.json     written anew after each probe; what a resumed one begins with
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import numpy as np
from annotated_types import MaxLen, MinLen
from pydantic import ConfigDict, StringConstraints, TypeAdapter, ValidationError

from analysis.bisecting.bisection import Culprit, Inconclusive, NextStep, Step, next_step
from analysis.bisecting.probing import Probed, ReleaseStatus
from analysis.comparing.blocks import Measure
from analysis.comparing.results import TrialRecord, find_faults
from analysis.detection.verdict import Outcome
from perf.model.errors import InputError
from perf.model.metrics import METRICS, Better
from perf.model.results import Purpose, Release
from perf.model.shown import printable

BISECTION = "bisection.json"
_STRICT = ConfigDict(extra="forbid")
_Line = Annotated[str, StringConstraints(max_length=2000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRecord:
    """One probe, as it ended.

    `asked` says why this release. `comparison` is the id of its comparison with the known good end;
    empty where the release could not even be fetched. `standing` says whether it was like what is named
    `lower` or like what is named `upper`; None for the known bad end, by which the others are read.
    `outcome` is that of the measure, `before` and `after` are medians of the good end and of the
    release. `trials` are those of both sides, those included that had been measured before.
    """

    __pydantic_config__ = _STRICT
    asked: _Line
    probed: Probed
    standing: ReleaseStatus | None = None
    lower: _Line = ""
    upper: _Line = ""
    comparison: _Line = ""
    outcome: Outcome = Outcome.INVALID
    before: float | None = None
    after: float | None = None
    trials: Annotated[tuple[TrialRecord, ...], MaxLen(2000)] = ()

    @property
    def measured(self) -> tuple[TrialRecord, ...]:
        """Return the trials that were measured for this probe."""
        return tuple(one for one in self.trials if one.id.startswith(f"{self.comparison}."))

    @property
    def is_verdict(self) -> bool:
        """Return whether it teaches anything: its trials show something, or it cannot be measured."""
        return self.probed.estimate is not None or self.standing is ReleaseStatus.SKIPPED


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionRecord:
    """One bisection. `releases` are the range in order, from the known good end to the known bad one.

    `found` is None until it is over. `most_trials` and `most_minutes` are its budget, and
    `trials_per_probe` the most that one probe may take. `command` asks the same again; the same
    `question_sha256`, the same question.
    """

    __pydantic_config__ = _STRICT
    id: _Line
    question_sha256: _Line
    purpose: Purpose
    suite: _Line
    experiment: _Line
    system: _Line
    measure: Measure
    releases: Annotated[tuple[Release, ...], MinLen(2), MaxLen(1000)]
    most_trials: int
    most_minutes: float
    trials_per_probe: int
    started_at: datetime
    updated_at: datetime
    probes: Annotated[tuple[ProbeRecord, ...], MaxLen(1000)] = ()
    found: Culprit | Inconclusive | None = None
    command: _Line = ""
    caveat: _Line = ""
    remarks: Annotated[tuple[_Line, ...], MaxLen(1000)] = ()

    @property
    def good(self) -> Release:
        """Return the known good end."""
        return self.releases[0]

    @property
    def bad(self) -> Release:
        """Return the known bad end."""
        return self.releases[-1]

    @property
    def culprit(self) -> Step | None:
        """Return the release that it named, with the one before it."""
        return self.found.step if isinstance(self.found, Culprit) else None

    @property
    def measured(self) -> tuple[TrialRecord, ...]:
        """Return the trials that were measured for it, in order."""
        return tuple(trial for probe in self.probes for trial in probe.measured)

    @property
    def reused(self) -> int:
        """Return how many trials count that had been measured before it."""
        counted = {trial.id for probe in self.probes for trial in probe.trials}
        return len(counted) - len(self.measured)

    @property
    def minutes(self) -> float:
        """Return how long the trials that were measured for it took."""
        return sum(trial.duration_s for trial in self.measured) / 60

    def next_step(self, trials_left: int | None) -> NextStep:
        """Describe which release to probe next with so many trials left, or what it came to."""
        return next_step(
            self.releases,
            tuple(one.probed for one in self.probes if one.is_verdict),
            higher_is_better=METRICS[self.measure.metric].better is Better.HIGHER,
            trials_per_probe=self.trials_per_probe,
            trials_left=trials_left,
        )


_RECORD = TypeAdapter(BisectionRecord)


def write_bisection(record: BisectionRecord) -> bytes:
    """Write a bisection, readable."""
    return _RECORD.dump_json(record, indent=1) + b"\n"


def read_bisection(content: bytes, path: Path) -> BisectionRecord:
    """Read a bisection; `path` is said in errors.

    Raises:
        InputError: it is none.

    """
    try:
        found = _RECORD.validate_json(content)
        # What it says must make sense together, too: it is asked this when it is resumed or shown.
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            found.next_step(None)
    except ValidationError as error:
        raise InputError(path, find_faults(error)) from error
    except (ValueError, LookupError, ArithmeticError) as error:
        why = printable(f"{error}")
        raise InputError(path, [f"it contradicts itself: {why}"]) from error
    return found
