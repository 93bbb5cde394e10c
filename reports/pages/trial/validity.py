"""Whether the numbers of a trial can be trusted: each rule of its testbed, with what was measured.

What the harness judged by and what it keeps are two things: where a figure is not among the samples
and counters of a trial, its rule says so, and what the harness said of it decides.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from statistics import median

from perf.model.clock_offsets import list_apart, read_offsets
from perf.model.design import Testbed
from perf.model.metrics import CLIENT_CPU, RESPONSE_TIME, SEND_LATENESS, THROUGHPUT
from perf.model.records import Answer
from perf.model.results import ATTEMPTED, ERROR, SENT_IN_WINDOW, TIMEOUTS, Named, Purpose, Trial
from reports.wording.wording import Badge, number, phase_words, plain_percent, share

_HELD = Badge(kind="calm", symbol="✓", word="Held")
_SILENT = Badge(kind="calm", symbol="○", word="No reason given")
_BROKEN = Badge(kind="bad", symbol="✕", word="Broken")
_UNJUDGED = Badge(kind="unsure", symbol="?", word="Cannot tell")
_ROUNDING = 1e-9
_CLIENT_RULE = "max_client_cpu_share"
_MISSES = (Answer.NOT_FOUND, Answer.WRONG_DATA)
_JUDGED = frozenset(one.name for one in (CLIENT_CPU, RESPONSE_TIME, SEND_LATENESS, THROUGHPUT))


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidityRule:
    """A rule of a testbed: its name there, a title, what is limited, and the kind of its reason."""

    name: str
    title: str
    meaning: str
    reason: str
    unit: str = "share"
    is_least: bool = False

    def say(self, value: float) -> str:
        """Write a value of this rule in its unit."""
        if self.unit == "share":
            return share(value)
        return f"{number(value)}\N{NO-BREAK SPACE}{self.unit}" if self.unit else number(value)

    def say_limit(self, limit: float | None) -> str:
        """Write its limit as it was configured."""
        if limit is None:
            return "no limit"
        bound = "at least" if self.is_least else "at most"
        reported = plain_percent(limit) if self.unit == "share" else f"{limit:g} {self.unit}".rstrip()
        return f"{bound} {reported}"


RULES = (
    ValidityRule(
        name="max_error_share",
        title="Errors",
        meaning="operations answered with an error, or not at all, among those attempted",
        reason="errors-above-limit",
    ),
    ValidityRule(
        name="max_miss_share",
        title="Missing or wrong rows",
        meaning="operations whose answer lacked a row or held a wrong one, among those attempted",
        reason="misses-above-limit",
    ),
    ValidityRule(
        name="min_achieved_share",
        title="Load that was offered",
        meaning="open loop: operations sent inside a measured window, among those meant to start in it",
        reason="load-not-offered",
        is_least=True,
    ),
    ValidityRule(
        name="max_lateness_share",
        title="Lateness of the client",
        meaning="open loop: p99 of send lateness against p99 of response time, in each iteration",
        reason="client-late",
    ),
    ValidityRule(
        name="max_client_cpu_share",
        title="CPU of the client",
        meaning="CPU time of one engine process per second of an iteration; it ends at 1, one core",
        reason="client-busy",
        unit="of a core",
    ),
    ValidityRule(
        name="max_client_wait_share",
        title="Waiting of the client for a core",
        meaning="time that an engine's threads were ready to run and had no core, per second measured",
        reason="client-starved",
        unit="s/s",
    ),
    ValidityRule(
        name="max_iteration_spread",
        title="Spread of the iterations",
        meaning="(greatest − least) / median over the iterations of a phase: of throughput in a closed "
        "loop, of median response time in an open one",
        reason="not-steady",
    ),
    ValidityRule(
        name="max_foreign_cpu_share",
        title="Other programs on a host",
        meaning="CPU time of all else than servers and engines, as a share of a host's cores",
        reason="host-busy",
    ),
    ValidityRule(
        name="max_steal_share",
        title="Stolen CPU time",
        meaning="CPU time that a hypervisor gave to others, as a share of a host's cores",
        reason="host-stolen",
    ),
    ValidityRule(
        name="max_throttled_share",
        title="Throttling",
        meaning="time that a host's processes were held back by a CPU quota, per second measured",
        reason="host-throttled",
    ),
    ValidityRule(
        name="max_clock_step_ms",
        title="Steps of the clock",
        meaning="how far a host's wall clock moved against the time since boot while it was measured",
        reason="clock-stepped",
        unit="ms",
    ),
    ValidityRule(
        name="max_clock_offset_ms",
        title="Clocks of several client hosts",
        meaning="how far the wall clocks of two client hosts were apart at most, before and after it",
        reason="clock-offset",
        unit="ms",
    ),
)
"""All rules of `perf.model.design.Validity`, in the order in which it has them."""


@dataclass(frozen=True, slots=True)
class Worst:
    """The worst value of a rule, and where it was measured."""

    value: float
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruled:
    """What came of one rule in one trial; `said` is what the harness said of it, None if nothing."""

    rule: ValidityRule
    limit: float | None
    worst: Worst | None
    said: str | None
    held: Badge

    @property
    def is_held(self) -> bool:
        """Whether its figure is known to be within its limit."""
        return self.held is _HELD

    @property
    def is_silent(self) -> bool:
        """Whether the limit is all that is known: no figure was kept, and no reason was given."""
        return self.held is _SILENT and self.worst is None and self.limit is not None


class _Measured:
    """The figures of one trial, read once. Steps of a ladder or a search are judged by themselves."""

    def __init__(self, trial: Trial) -> None:
        self.stepped = {step.phase for step in trial.steps}
        self.environments = {"before": trial.environment_before, "after": trial.environment_after}
        self.totals: dict[tuple[str, str], dict[str, int]] = {}
        for one in trial.counters:
            if one.iteration:
                found = self.totals.setdefault((one.phase, one.operation), {})
                found[one.name] = found.get(one.name, 0) + one.value
        self.values: dict[tuple[str, str, str, str], dict[int, float]] = {}
        for each in trial.samples:
            if each.iteration is not None and each.metric in _JUDGED and not each.host:
                at = each.metric, each.statistic, each.phase, each.operation
                self.values.setdefault(at, {})[each.iteration] = each.value

    def of(self, metric: str, statistic: str, at: tuple[str, str]) -> Mapping[int, float]:
        """Return the value of each iteration."""
        return self.values.get((metric, statistic, *at), {})

    def is_open(self, at: tuple[str, str]) -> bool:
        """Return whether operations started on a schedule: only then is there a lateness."""
        return bool(self.of(SEND_LATENESS.name, "p99", at))

    def plain(self) -> Iterable[tuple[str, str]]:
        """Return phase and operation of all that is judged as a whole."""
        return (at for at in self.totals if at[0] not in self.stepped)


def apply_rules(trial: Trial, testbeds: Mapping[Named, Testbed]) -> list[Ruled]:
    """Hold what a trial keeps against the rules of its testbed, where their numbers are known.

    `testbeds` are those of the configuration by name and content; that of the trial may be another. No
    rule is applied to what another program measured.
    """
    if trial.purpose is Purpose.IMPORTED:
        return []
    testbed = testbeds.get(trial.testbed)
    # The second reading of the environment comes right before the judging.
    is_judged = bool(trial.environment_after)
    reasons = {reason.kind: reason.text for reason in trial.reasons}
    measured = _Measured(trial)
    found = []
    for rule in RULES:
        limit = getattr(testbed.validity, rule.name) if testbed else None
        if testbed and limit is None:
            continue
        worst = _WORST[rule.name](measured) if rule.name in _WORST else None
        said = reasons.get(rule.reason)
        held = _UNJUDGED
        if said is not None:
            held = _BROKEN
        elif is_judged and (worst is None or limit is None):
            held = _SILENT
        elif is_judged and worst and limit is not None and _is_within(rule, worst.value, limit):
            held = _HELD
        found.append(Ruled(rule=rule, limit=limit, worst=worst, said=said, held=held))
    return found


def _is_within(rule: ValidityRule, value: float, limit: float) -> bool:
    if rule.name == _CLIENT_RULE:
        return True  # all engines together are measured, and one is limited: the harness knows more
    return value >= limit - _ROUNDING if rule.is_least else value <= limit + _ROUNDING


def _errors(measured: _Measured) -> Worst | None:
    return _greatest(measured, measured.plain(), lambda name: name.startswith((TIMEOUTS, ERROR)))


def _missing(measured: _Measured) -> Worst | None:
    # They spoil a trial in whatever phase they come, a step of a ladder included.
    return _greatest(measured, measured.totals, lambda name: name in _MISSES)


def _greatest(
    measured: _Measured, places: Iterable[tuple[str, str]], counts: Callable[[str], bool]
) -> Worst | None:
    """Return the greatest share of the attempted operations that ended in one of some ways."""
    found = []
    for at in places:
        totals = measured.totals[at]
        if attempted := totals.get(ATTEMPTED, 0):
            bad = sum(n for name, n in totals.items() if counts(name))
            found.append((bad / attempted, bad, attempted, at))
    if not found:
        return None
    value, bad, attempted, at = max(found, key=itemgetter(0))
    return Worst(value, f"{bad:,} of {attempted:,}, {_where(at)}")


def _achieved(measured: _Measured) -> Worst | None:
    found = []
    for at in measured.plain():
        intended = measured.totals[at].get(ATTEMPTED, 0)
        if intended and measured.is_open(at):
            sent = measured.totals[at].get(SENT_IN_WINDOW, 0)
            found.append(Worst(sent / intended, f"{sent:,} of {intended:,}, {_where(at)}"))
    return min(found, key=lambda one: one.value, default=None)


def _lateness(measured: _Measured) -> Worst | None:
    found = []
    for at in measured.plain():
        response = measured.of(RESPONSE_TIME.name, "p99", at)
        for iteration, late in measured.of(SEND_LATENESS.name, "p99", at).items():
            if p99 := response.get(iteration):
                text = f"{number(late)} of {number(p99)} ms, {_where(at)}, iteration {iteration}"
                found.append(Worst(late / p99, text))
    return max(found, key=lambda one: one.value, default=None)


def _client_cpu(measured: _Measured) -> Worst | None:
    """Give the CPU time of all engines per second: that per operation, times operations per second."""
    found = []
    for at in measured.plain():
        rate = measured.of(THROUGHPUT.name, "mean", at)
        for iteration, each_us in measured.of(CLIENT_CPU.name, "mean", at).items():
            if iteration in rate:
                text = f"all engines together, {_where(at)}, iteration {iteration}"
                found.append(Worst(each_us * rate[iteration] / 1e6, text))
    return max(found, key=lambda one: one.value, default=None)


def _spread(measured: _Measured) -> Worst | None:
    found = []
    for at in measured.plain():
        what = (
            (RESPONSE_TIME.name, "p50", "median response time")
            if measured.is_open(at)
            else (THROUGHPUT.name, "mean", "throughput")
        )
        values = tuple(measured.of(what[0], what[1], at).values())
        if values and (middle := median(values)):
            found.append(Worst((max(values) - min(values)) / middle, f"{what[2]}, {_where(at)}"))
    return max(found, key=lambda one: one.value, default=None)


def _clocks(measured: _Measured) -> Worst | None:
    found = [
        Worst(pair.by.most_ms, f"{' and '.join(pair.hosts)}, {when} the load")
        for when, facts in measured.environments.items()
        for pair in list_apart(read_offsets(facts))
    ]
    return max(found, key=lambda one: one.value, default=None)


def _where(at: tuple[str, str]) -> str:
    return f"{at[1]} {phase_words(at[0])}"


_WORST: Mapping[str, Callable[[_Measured], Worst | None]] = {
    "max_error_share": _errors,
    "max_miss_share": _missing,
    "min_achieved_share": _achieved,
    "max_lateness_share": _lateness,
    _CLIENT_RULE: _client_cpu,
    "max_iteration_spread": _spread,
    "max_clock_offset_ms": _clocks,
}
