"""What the page of the method says: what each number means, how it came about, what is not known.

Quantities, rules and badges are taken from where they are used, so that none of it can go stale.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from perf.config.catalog import Catalog
from perf.model.metrics import (
    CANARY_CPU,
    CANARY_FSYNC,
    CANARY_LOOPBACK,
    CANARY_MEMORY,
    DIAGNOSTICS,
    METRICS,
    OPERATIONS_PER_DOLLAR,
    Metric,
)
from perf.model.results import StepOutcome, TrialStatus
from reports.pages.method.rules import judging_sections
from reports.pages.method.section import Section, Term
from reports.pages.trial.validity import RULES
from reports.wording import links
from reports.wording.wording import (
    STATUS_BADGES,
    STEP_BADGES,
    definition_words,
    direction_words,
    heading,
    metric_name,
    sentence,
    unit_words,
)

_CANARIES = (CANARY_CPU, CANARY_MEMORY, CANARY_FSYNC, CANARY_LOOPBACK)
_STATUSES = {
    TrialStatus.COMPLETED: "Measured, and no rule was broken: it is a point in its series.",
    TrialStatus.INVALID: "Measured, but the numbers cannot be trusted; kept and shown with its "
    "reasons, and in no series.",
    TrialStatus.FAILED: "A step did not work, so there is nothing to judge; kept and shown with its "
    "reasons.",
}
_STEPS = {
    StepOutcome.HELD: "Offered in full and answered; in a search, within the objective.",
    StepOutcome.MISSED: "The system fell behind, failed or missed the objective, while the client kept "
    "up.",
    StepOutcome.CLIENT_LIMITED: "The client fell behind, so that the step says nothing about the "
    "system.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodView:
    """All that the page of the method says."""

    page: str
    sections: tuple[Section, ...]


def view_method(catalog: Catalog) -> MethodView:
    """Say what the numbers on all pages mean, by the rules of this configuration."""
    return MethodView(
        page=links.METHOD_PAGE,
        sections=(
            *_quantities(),
            *_measuring(catalog),
            *judging_sections(catalog.detection),
            _price(),
            _validity(catalog),
            _unknown(),
        ),
    )


def _define(metrics: Iterable[Metric]) -> tuple[Term, ...]:
    return tuple(
        Term(
            id=f"metric-{metric.name}",
            name=heading(metric_name(metric.name)),
            note=", ".join(filter(None, (unit_words(metric.name), direction_words(metric.name)))),
            text=sentence(definition_words(metric.name)),
        )
        for metric in metrics
    )


def _quantities() -> tuple[Section, ...]:
    diagnostics = [one for one in DIAGNOSTICS.values() if one not in _CANARIES]
    return (
        Section(
            id="metrics",
            title="Metrics: what is judged",
            text=(
                (
                    "Each metric has a unit and a direction that is good news; pages show it as ↑ "
                    "(higher is better) or ↓ (lower is better). The last three come with imported "
                    "results only."
                ),
            ),
            terms=_define(METRICS.values()),
        ),
        _times(),
        _statistics(),
        Section(
            id="diagnostics",
            title="Diagnostics: what explains a result",
            text=("Kept as series and shown, and no verdict rests on them.",),
            terms=_define(diagnostics),
        ),
        Section(
            id="canaries",
            title="Canaries: what watches the hosts",
            terms=_define(_CANARIES),
        ),
    )


def _times() -> Section:
    return Section(
        id="response-time",
        title="Response time against service time",
        text=(
            (
                "In an open loop operations start on a schedule, as users do. Response time counts "
                "from that intended start, so it includes all waiting; service time counts from when "
                "the operation was really sent. When a server stalls, service time shows one slow "
                "operation, and response time all those that had to wait behind it."
            ),
            (
                "In a closed loop there is no schedule: the next operation starts when one has "
                "ended, and both are the same. There, response time does not show how long users "
                "would wait."
            ),
        ),
    )


def _statistics() -> Section:
    return Section(
        id="statistics",
        title="Statistics",
        terms=(
            Term(name="mean", text="The sum of all values by their number."),
            Term(
                name="p50, p95, p99, p99.9",
                text="Percentiles: 99 of 100 operations took at most p99. They come from merged "
                "histograms, never from averaged percentiles; a histogram keeps a time to three "
                "digits. A high one rests on few operations: a p99.9 of 10,000 on ten.",
            ),
            Term(
                name="max",
                text="The slowest operation: one event, so that no series is made of it.",
            ),
            Term(
                name="estimate, lower, upper",
                text="The answer of a search for the highest load, and the ends between which it lies.",
            ),
        ),
    )


def _measuring(catalog: Catalog) -> tuple[Section, ...]:
    return (
        Section(
            id="point",
            title="How a point is made",
            text=(
                (
                    "A point is one completed trial: one release, deployed afresh, loaded, warmed up "
                    "and measured in equal iterations."
                ),
                (
                    "Its value is over all iterations together: completed operations by the whole "
                    "measured time, or the percentile of their merged histogram. The values of the "
                    "single iterations are shown beside it, to see how far they lie apart."
                ),
                (
                    "An operation that failed or got a wrong answer is not part of the throughput; "
                    "one that was never answered is in no percentile, which the trial's page then "
                    "says."
                ),
            ),
        ),
        _steady(catalog),
        Section(
            id="series",
            title="What makes a series",
            text=(
                (
                    "Only equal things are compared: system, release line, topology, class of "
                    "testbed, config, content of the workload, load engine, phase, operation, metric "
                    "and statistic are the same at all points. Releases, nights, kernel, Java and "
                    "driver versions may differ, and are named where they explain a change. Gaps "
                    "stay gaps."
                ),
            ),
        ),
        Section(
            id="hashes",
            title="name@hash",
            text=(
                (
                    "Configuration files are named with the first twelve digits of the SHA-256 of "
                    "what they mean: comments, order and prose do not count. Equal hash, equal "
                    "measurement."
                ),
            ),
        ),
        _loads(),
    )


def _steady(catalog: Catalog) -> Section:
    return Section(
        id="steady",
        title="Warm-up, until the load is steady",
        text=(
            (
                "Each iteration has a warm-up that is thrown away. It ends once two adjacent windows "
                "of it are alike in throughput and mean service time, and at the latest at its cap, "
                "which the trial's page then says. How long a window is and how much alike belongs "
                "to the testbed:"
            ),
        ),
        terms=tuple(
            Term(
                name=testbed.name,
                text=f"windows of {testbed.steadiness.window_s} s, alike within "
                f"{testbed.steadiness.tolerance * 100:g} %.",
            )
            for testbed in catalog.testbeds.values()
        ),
    )


def _loads() -> Section:
    return Section(
        id="loads",
        title="Ladders and searches",
        text=(
            (
                "A ladder offers one load after the other. A search halves the range until it knows "
                "the highest load whose p99 of response time met its objective. Each offered load is "
                "a step:"
            ),
        ),
        terms=tuple(
            Term(id=f"step-{outcome.value}", badge=STEP_BADGES[outcome], text=text)
            for outcome, text in _STEPS.items()
        ),
    )


def _price() -> Section:
    return Section(
        id="price",
        title="Operations per dollar",
        text=(
            sentence(OPERATIONS_PER_DOLLAR.description),
            (
                "The price of an hour is the sum over the hosts that ran servers, as the testbed's "
                "file states it; hosts of clients are not counted. A testbed without prices has no "
                "such figure."
            ),
            (
                "It moves with throughput, and by itself only when the price does: what a price did "
                "is said exactly and put down to the testbed."
            ),
        ),
    )


def _validity(catalog: Catalog) -> Section:
    return Section(
        id="validity",
        title="When a trial does not count",
        text=(
            (
                "A trial is invalid if a rule of its testbed is broken, if a fact of its hosts "
                "changed while it ran, if a server died, or if not all data was loaded. The limits:"
            ),
        ),
        terms=tuple(
            Term(
                id=f"rule-{rule.name}",
                name=rule.title,
                note="; ".join(
                    f"{name}: {rule.say_limit(getattr(testbed.validity, rule.name))}"
                    for name, testbed in catalog.testbeds.items()
                ),
                text=sentence(rule.meaning),
            )
            for rule in RULES
        )
        + tuple(
            Term(id=f"status-{status.value}", badge=STATUS_BADGES[status], text=text)
            for status, text in _STATUSES.items()
        ),
    )


def _unknown() -> Section:
    return Section(
        id="unknown",
        title="What is not known",
        points=(
            (
                "How a workload of yours behaves. These workloads are a few simple ones; a change "
                "that they do not touch is not seen."
            ),
            (
                "What is smaller than the smallest visible change, and what happened between two "
                "nights and was gone by the second."
            ),
            (
                "What changed and is not recorded: a firmware, a neighbour on a shared host, a "
                "cable. Canaries and sentinels may see it; that they stood still does not exclude it."
            ),
            (
                "Whether a difference between two systems is fair: they are measured with their own "
                "configurations, which somebody chose. Series of one system are what this is built "
                "for."
            ),
            (
                "What lies beyond the percentiles that are kept, and times of operations that were "
                "never answered."
            ),
            (
                "How often verdicts are wrong on your hosts. The rates given were measured on "
                "made-up noise."
            ),
        ),
    )
