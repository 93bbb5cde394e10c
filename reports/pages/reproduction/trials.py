"""What became of the trials of a reproduced report: those without a result, and changed workloads."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from perf.model.results import TrialHead, TrialStatus
from perf.model.scaling import unscaled_name
from reports.pages.nights.view import count_statuses
from reports.wording import links
from reports.wording.attention import first_reason
from reports.wording.wording import count, moment, sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutResult:
    """How many trials gave no result, and what the newest of them says of it, with its page."""

    text: str
    reason: str
    experiment: str
    page: str


def view_without_result(trials: Sequence[TrialHead]) -> WithoutResult | None:
    """Say how many trials there are and how many gave no result; None where each gave one.

    `trials` are in order of time.
    """
    without = [one for one in trials if one.status is not TrialStatus.COMPLETED]
    if not without:
        return None
    newest = without[-1]
    kinds = Counter(one.reasons[0].kind for one in without if one.reasons)
    often = ", ".join(f"{kind} {number:,} ×" for kind, number in kinds.most_common())
    text = f"{count(len(trials), 'trial')} of its workloads at this scale: {count_statuses(trials)}"
    if len(without) == len(trials):
        text += "; so nothing could be put beside the published figures"
    said = f" First reasons: {often}." if often else ""
    return WithoutResult(
        text=f"{text}.{said}",
        reason=sentence(first_reason(newest)) if newest.reasons else "",
        experiment=newest.experiment,
        page=links.trial_page(newest.id),
    )


def tell_changes(trials: Iterable[TrialHead]) -> tuple[str, ...]:
    """Say of each workload that was changed when, and how many trials are of what it was before.

    `trials` are in order of time; the values of the page are those of the newest content.
    """
    of_workload: defaultdict[str, list[TrialHead]] = defaultdict(list)
    for one in trials:
        if one.status is TrialStatus.COMPLETED:
            of_workload[one.workload.name].append(one)
    return tuple(text for name, own in sorted(of_workload.items()) for text in _tell_change(name, own))


def _tell_change(name: str, trials: Sequence[TrialHead]) -> Iterator[str]:
    turns = [
        (before.workload.sha256, after)
        for before, after in pairwise(trials)
        if before.workload.sha256 != after.workload.sha256
    ]
    if not turns:
        return
    old, first = turns[-1]
    new = first.workload.sha256
    earlier = sum(one.workload.sha256 != new for one in trials)
    are = "is" if earlier == 1 else "are"
    yield (
        f"Workload {unscaled_name(name)} was changed (hash {old} → {new}, first measured "
        f"{moment(first.started_at).day}). {count(earlier, 'completed trial')} {are} of what it was "
        "before, which does not compare: a setting that was measured with both shows the newer alone."
    )
