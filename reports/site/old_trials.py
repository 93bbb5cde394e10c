"""Old trials have no page of their own any more, but a place on the page of their night.

Ten years of 20 trials a night are 73,000 trials, and a page for each would be 3.7 GB. Links are led
to the places by `reports.site.leading`.
"""

from collections.abc import Iterable, Mapping

from perf.model.results import IN_TURNS, Purpose, TrialHead, TrialId
from reports.wording.links import file_stem, night_page

WITH_OWN_PAGE = 600
"""Trials that keep a page of their own, the newest: 30 MB, and a month of 20 trials a night."""


def name_group(head: TrialHead) -> str:
    """Return the night, or the comparison, by whose name that of a trial begins; empty if by none."""
    group, dot, _ = head.id.partition(".")
    is_of_night = head.night == group and head.purpose is not Purpose.IMPORTED
    is_of_comparison = not head.night and head.purpose in IN_TURNS
    return group if dot and (is_of_night or is_of_comparison) else ""


def find_old_trials(heads: Iterable[TrialHead], most: int = WITH_OWN_PAGE) -> Mapping[TrialId, str]:
    """Return where each trial is shown that has no page of its own; `heads` in the order of start.

    Whole nights and comparisons, those whose last trial is the oldest, behind the newest that have
    `most` trials together. What another program measured keeps its page, since its name does not say
    where else to look, and so does a trial that somebody measured by itself.
    """
    groups: dict[str, list[TrialHead]] = {}
    for head in heads:
        if group := name_group(head):
            # As new as its last trial: one that was resumed is not old yet.
            groups[group] = [*groups.pop(group, ()), head]
    found: dict[TrialId, str] = {}
    newer = 0
    for group, own in reversed(groups.items()):
        if newer >= most:
            found |= {head.id: f"{night_page(group)}#{file_stem(head.id)}" for head in own}
        newer += len(own)
    return found
