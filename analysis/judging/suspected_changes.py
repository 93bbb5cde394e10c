"""Suspects: which changes of a night are worth its minutes, most relevant first, and what to ask. Pure.

One comparison of two releases measures all series of an experiment. So all suspects of one experiment
and one pair of releases are one question, and the verdict of that rests on their measures.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from analysis.bisecting.bisection import Ending, Inconclusive
from analysis.bisecting.record import BisectionRecord
from analysis.detection.detection import ChangePoint, ChangeState
from analysis.detection.verdict import Outcome
from analysis.judging.incidents import Case
from analysis.judging.remeasurement import RemeasurementQuestion, is_decided


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspectedChange:
    """A change between two releases that is news, in a series that the newest night measured.

    `relevance` is its size as a multiple of the relevant change, `size` in noise floors. `is_settled`
    says that trials in turns have decided about it; `is_of_testbed` that the testbed made it.
    """

    change: ChangePoint
    relevance: float
    size: float
    is_settled: bool
    is_of_testbed: bool

    @property
    def is_traceable(self) -> bool:
        """Return whether a bisection should look for the release that brought it."""
        return self.change.state is ChangeState.CONFIRMED and not self.is_of_testbed

    @property
    def is_open(self) -> bool:
        """Return whether trials in turns should say what it is."""
        return self.change.state is ChangeState.PROVISIONAL and not self.is_settled

    @property
    def rank(self) -> tuple[object, ...]:
        """Return the sort key of suspects, the most relevant first; no two have the same."""
        return -self.relevance, -self.size, self.change.series.key, self.change.index


def find_suspected_changes(
    cases: Iterable[tuple[Case, bool]], tonight: str
) -> tuple[SuspectedChange, ...]:
    """Return what is news of a night and lies between two releases, the most relevant first.

    With each case comes whether the testbed made it. Derived series ask nothing that those from which
    they are derived do not ask, too; and of the price no trial can tell.
    """
    found = (
        SuspectedChange(
            change=case.change,
            relevance=_in_units(abs(case.change.relative_change), case.relevant),
            size=case.size,
            is_settled=is_decided(case.reply),
            is_of_testbed=is_of_testbed,
        )
        for case, is_of_testbed in cases
        if case.is_news
        and not case.is_derived
        and case.change.last_before.release != case.change.first_after.release
        and case.change.series.points.places_of(tonight)
    )
    return tuple(sorted(found, key=lambda one: one.rank))


def _in_units(size: float, unit: float) -> float:
    return size / unit if unit else math.inf


def choose_open(suspects: Iterable[SuspectedChange]) -> tuple[RemeasurementQuestion, ...]:
    """Put together what to measure again, the most relevant first."""
    return _put_together(one for one in suspects if one.is_open)


def choose_traceable(suspects: Iterable[SuspectedChange]) -> tuple[RemeasurementQuestion, ...]:
    """Put together what to bisect, regressions first; its first measure says most."""
    traceable = (one for one in suspects if one.is_traceable)
    ranked = sorted(traceable, key=lambda one: one.change.outcome is not Outcome.REGRESSED)
    return _put_together(ranked)


def _put_together(suspects: Iterable[SuspectedChange]) -> tuple[RemeasurementQuestion, ...]:
    together: dict[tuple[object, ...], list[SuspectedChange]] = {}
    for one in suspects:
        together.setdefault(_identify(one.change), []).append(one)
    return tuple(
        RemeasurementQuestion(changes=tuple(one.change for one in group)) for group in together.values()
    )


def _identify(change: ChangePoint) -> tuple[object, ...]:
    key = change.series.key
    place = change.last_before.release, change.first_after.release
    return (
        *(key.system, key.line, key.topology, key.testbed_class, key.config, key.workload),
        *(key.engine, *place),
    )


def traces(record: BisectionRecord, question: RemeasurementQuestion, experiment: str) -> bool:
    """Return whether a bisection looks for the origin of changes.

    What was asked before the series began, was asked of another workload.
    """
    return (
        (record.system, record.experiment) == (question.key.system, experiment)
        and (record.good, record.bad) == (question.baseline, question.candidate)
        and record.measure in question.measures
        and record.started_at >= question.changes[0].series.points[0].started_at
    )


def is_final(record: BisectionRecord) -> bool:
    """Return whether more time would add nothing to a bisection."""
    is_cut_short = isinstance(record.found, Inconclusive) and record.found.ending is Ending.BUDGET
    return record.found is not None and not is_cut_short
