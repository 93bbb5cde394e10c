"""Whether the hosts of a testbed are steady, in one sentence: rejected trials and moved canaries."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from analysis.judging.drift import is_canary
from analysis.judging.judgement import JudgedSeries
from perf.model.results import Purpose, TrialHead, TrialStatus
from perf.model.rules import Detection
from reports.pages.testbed.view import is_short
from reports.wording.attention import HOST_REASONS
from reports.wording.wording import Badge, count, share

_NOISY = 0.1
"""With this share of all trials rejected, the rejected ones are what a reader must know first."""
_NOISY_HOSTS = Badge(kind="bad", symbol="!", word="Noisy")
_REJECTED = Badge(kind="unsure", symbol="!", word="Trials rejected")
_UNKNOWN = Badge(kind="unsure", symbol="?", word="Cannot tell")
_ADVICE = {
    "host-busy": "Stop what else runs on the hosts, or measure on hosts of their own.",
    "host-stolen": "Measure on hosts that share no CPU with other virtual machines.",
    "host-throttled": "Lift the CPU quota of the processes that are measured.",
    "clock-stepped": "Let the clocks be slewed, not set, while trials run.",
    "clock-offset": "Let one time service keep the clocks of all client hosts.",
}
_OTHER_CAUSES = {
    "not-steady": "because their iterations lay too far apart",
    "client-late": "because the client sent too late",
    "client-busy": "because the client had no CPU left",
    "client-starved": "because the client waited for a core",
    "errors-above-limit": "because of errors",
    "misses-above-limit": "because of missing or wrong rows",
    "load-not-offered": "because the load was not offered in full",
}


@dataclass(frozen=True, slots=True)
class HostVerdict:
    """What is known of the hosts: in a word, in a sentence with what it rests on, and what to do."""

    badge: Badge
    answer: str
    detail: str = ""
    todo: str = ""

    @property
    def text(self) -> str:
        """Return both in one sentence."""
        return f"{self.answer}{self.detail}."


def judge_hosts(
    heads: Iterable[TrialHead], watched: Iterable[JudgedSeries], settings: Detection
) -> HostVerdict:
    """Return whether the hosts of trials are steady, as their rejected trials and canaries tell."""
    own = [head for head in heads if head.purpose is not Purpose.IMPORTED]
    if not own:
        return HostVerdict(_UNKNOWN, "No trial has run here")
    rejected = [head for head in own if head.status is not TrialStatus.COMPLETED]
    if len(rejected) >= _NOISY * len(own):
        return _say_rejected(rejected, own)
    valid = f"{share(1 - len(rejected) / len(own))} of {count(len(own), 'trial')} were valid"
    canaries = [one for one in watched if is_canary(one.series.key)]
    moved = sum(bool(one.change_points) for one in canaries)
    if moved:
        return HostVerdict(
            Badge(kind="unsure", symbol="≠", word="Moved"),
            f"Hosts moved: a step in {moved:,} of {len(canaries):,} canary series",
            f"; {valid}",
        )
    if all(is_short(one, settings) for one in canaries):
        why = "too few points of each canary" if canaries else "no canary was measured"
        return HostVerdict(_UNKNOWN, f"Cannot tell whether the hosts are steady: {why}", f"; {valid}")
    return HostVerdict(
        Badge(kind="good", symbol="✓", word="Steady"), f"Hosts are steady: no canary moved and {valid}"
    )


def _say_rejected(rejected: Collection[TrialHead], trials: Sequence[TrialHead]) -> HostVerdict:
    """Describe how many were rejected, and what most of them have in common."""
    part = share(len(rejected) / len(trials))
    said = f"{len(rejected):,} of {count(len(trials), 'trial')} ({part}) rejected"
    kinds = Counter(kind for head in rejected for kind in {one.kind for one in head.reasons})
    # Of two that are equally frequent, what the hosts did explains what the client saw of it.
    ranked = sorted(kinds, key=lambda kind: (-kinds[kind], kind not in HOST_REASONS, kind))
    if not ranked:
        return HostVerdict(_REJECTED, said)
    most = ranked[0]
    many = "all" if kinds[most] == len(rejected) else f"{kinds[most]:,}"
    cause = HOST_REASONS.get(most) or _OTHER_CAUSES.get(most) or f"for the reason {most}"
    newest = sum(1 for _ in takewhile(lambda head: head in rejected, reversed(trials)))
    lately = f"; none of the newest {newest:,} is valid" if newest > 1 else ""
    detail = f", {many} of them {cause}{lately}"
    if most in HOST_REASONS:
        return HostVerdict(_NOISY_HOSTS, f"Noisy hosts: {said}", detail, _ADVICE.get(most, ""))
    return HostVerdict(_REJECTED, said, detail)
