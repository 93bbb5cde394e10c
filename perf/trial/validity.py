"""Can these numbers be trusted? Each broken limit of the testbed is one reason, with numbers. Pure.

Three kinds of rules: what was answered (errors, misses), whether the client kept up, and whether the
hosts were left alone. On a ladder or in a search errors and a client that fell behind mark the step,
and the trial stays valid; see `judge_step`. Missing and wrong rows do not: a system that loses data has
no performance, whatever the load.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import floor, inf, log10
from statistics import median

from perf.load.results.outcome import LoadOutcome
from perf.load.results.phases import PhaseFigures, add_up, collect_phases
from perf.model.design import OpenLoop, Validity
from perf.model.metrics import RESPONSE_TIME, SEND_LATENESS, SERVICE_TIME
from perf.model.records import Answer
from perf.model.results import (
    ATTEMPTED,
    COMPLETED_IN_WINDOW,
    ERROR,
    HELD,
    SENT_IN_WINDOW,
    TIMEOUTS,
    LoadStep,
    Reason,
    StepOutcome,
)
from perf.trial.disturbance import Measured, find_disturbances, find_worst, percent
from perf.trial.telemetry import Window
from perf.workloads.stages import Stage

_ERRORS = (TIMEOUTS, ERROR)
_MISSES = (Answer.NOT_FOUND, Answer.WRONG_DATA)
_NOTHING = "nothing-completed"
# Of the time of a closed loop's slots, which timeouts may take: each is one operation among many, and
# keeps its slot for as long as thousands of others would.
_MAX_LOST_SHARE = 0.25


def find_faults(
    stages: Sequence[Stage], outcome: LoadOutcome, windows: Sequence[Window], limits: Validity
) -> tuple[Reason, ...]:
    """Compare all that was measured with the limits of the testbed; one reason per kind and phase.

    `stages` are those of closed and open loops; steps of a ladder or a search are judged one by one,
    by `judge_step`. But `outcome` and `windows` are of the whole trial: missing or wrong rows in a step
    spoil the trial, and so does a host that was not left alone in one.
    """
    reasons: list[Reason] = []
    collected = tuple(collect_phases(stages, outcome))
    measured = {figures.phase for figures in collected}
    for phase in dict.fromkeys(stage.phase for stage in stages):
        if phase not in measured:
            text = f"{phase}: none of 0 operations completed; the engines recorded nothing of it"
            reasons.append(Reason(kind=_NOTHING, text=text))
    for figures in collected:
        if not figures.count(Answer.COMPLETED):
            reasons.append(_nothing_completed(figures, outcome))
            continue
        reasons += _answer_faults(figures, outcome, limits)
        reasons += _shortfall(figures, limits)
        reasons += _client_faults(figures, limits)
        reasons += _unsteadiness(figures, limits)
    plain = {stage.phase for stage in stages}
    for (phase, operation), totals in add_up(outcome).items():
        if phase not in plain:
            reasons += _misses(f"{phase}, {operation}", totals, outcome, limits)
    return (*reasons, *find_disturbances(outcome, windows, limits))


def find_lost_time(stages: Sequence[Stage], outcome: LoadOutcome, timeout_s: float) -> Iterator[Reason]:
    """Find closed loops whose slots waited in vain for much of the time.

    A server that falls silent half-way fails few operations: the loop sends no others meanwhile.
    """
    for figures in collect_phases(stages, outcome):
        if figures.is_open or not figures.count(TIMEOUTS):
            continue
        slots = figures.load.in_flight * max(1, len(figures.engines()))
        lost_s = figures.count(TIMEOUTS) * timeout_s
        share = lost_s / (slots * figures.seconds(figures.iterations))
        if share > _MAX_LOST_SHARE:
            text = (
                f"{_where(figures)}: {figures.count(TIMEOUTS)} timeouts of {timeout_s:g} s took "
                f"{percent(min(1.0, share))} of the time of the client's {slots} slots; the limit is "
                f"{percent(_MAX_LOST_SHARE)}"
            )
            yield Reason(kind="errors-above-limit", text=text + _example(outcome))


def find_remarks(stages: Sequence[Stage], outcome: LoadOutcome) -> tuple[Reason, ...]:
    """Describe what a reader must know of a load that is valid all the same.

    A warm-up whose least and greatest length are one was never asked to end by rule.
    """
    remarks = []
    for phase in dict.fromkeys(stage.phase for stage in stages):
        (stage, *_) = (stage for stage in stages if stage.phase == phase)
        warm_ups = [one for one in outcome.warm_ups if one.phase == phase]
        capped = sum(not one.is_steady for one in warm_ups)
        if capped and stage.warmup_s < stage.warmup_cap_s:
            text = (
                f"{phase}: {capped} of {len(warm_ups)} warm-ups ran to their cap of "
                f"{stage.warmup_cap_s:g} s: the rule was not met in time; "
                "the figures may be of a system that was still warming up"
            )
            remarks.append(Reason(kind="warm-up-capped", text=text))
    for figures in collect_phases(stages, outcome):
        remarks += _unanswered(figures)
    return tuple(remarks)


def judge_step(
    stages: Sequence[Stage],
    outcome: LoadOutcome,
    windows: Sequence[Window],
    limits: Validity,
    objective_ms: float | None,
) -> LoadStep:
    """Describe how one offered load of a ladder (without objective) or of a search went.

    A load of a search that was offered in full and answered within the objective held, however the
    client did: a client that is late, busy or starved makes response times longer, never shorter. In
    all other cases such a client makes the step client-limited. A server that falls behind does not:
    waiting for a slot is no lateness. A missed step says so if a host was not left alone in it.

    Raises:
        ValueError: `stages` are not of one phase with an open loop.

    """
    load = stages[0].load if stages else None
    phases = {stage.phase for stage in stages}
    if not isinstance(load, OpenLoop) or len(phases) != 1:
        raise ValueError(f"a step is one phase with an open loop, not {sorted(phases)} with {load}")
    (phase,) = phases
    offered = load.offered_load_ops_per_s
    figures = next(collect_phases(stages, outcome), None)
    if figures is None:
        return LoadStep(
            phase=phase,
            offered_load_ops_per_s=offered,
            achieved_ops_per_s=0.0,
            response_time_p99_ms=None,
            send_lateness_p99_ms=0.0,
            client_cpu_share=0.0,
            outcome=StepOutcome.CLIENT_LIMITED,
            text=f"of {offered:g} ops/s none was sent",
        )
    hosts = [reason.text for reason in find_disturbances(outcome, windows, limits, phase)]
    result, text = _judge(figures, outcome, limits, objective_ms)
    if result is not StepOutcome.HELD and hosts:
        text = "; ".join((text, *hosts))
    response = figures.times(RESPONSE_TIME.name)
    lateness = figures.times(SEND_LATENESS.name)
    return LoadStep(
        phase=phase,
        offered_load_ops_per_s=offered,
        achieved_ops_per_s=_achieved_ops_per_s(figures),
        response_time_p99_ms=response.p99 if response else None,
        send_lateness_p99_ms=lateness.p99 if lateness else 0.0,
        client_cpu_share=max((use.cpu_share for use in figures.engines()), default=0.0),
        outcome=result,
        text=text,
    )


def _judge(
    figures: PhaseFigures, outcome: LoadOutcome, limits: Validity, objective_ms: float | None
) -> tuple[StepOutcome, str]:
    response = figures.times(RESPONSE_TIME.name)
    shortfall = [reason.text for reason in _shortfall(figures, limits)]
    server = [reason.text for reason in _answer_faults(figures, outcome, limits)]
    if response is None:
        server.append(_nothing_completed(figures, outcome).text)
    elif objective_ms is not None and response.p99 > objective_ms:
        server.append(
            f"p99 of response time is {response.p99:.2f} ms; the objective is {objective_ms:g} ms"
        )
    client = [reason.text for reason in _client_faults(figures, limits)]
    has_held = not shortfall and not server
    if shortfall and not _is_held_up(figures):
        client += shortfall
    elif shortfall:
        server += shortfall
    if response and has_held and (objective_ms is not None or not client):
        objective = "" if objective_ms is None else f"; the objective is {objective_ms:g} ms"
        return StepOutcome.HELD, (
            f"{_achieved_ops_per_s(figures):.1f} ops/s were sent; "
            f"p99 of response time is {response.p99:.2f} ms{objective}"
        )
    if client:
        return StepOutcome.CLIENT_LIMITED, "; ".join((*client, *server))
    return StepOutcome.MISSED, "; ".join(server)


def _answer_faults(figures: PhaseFigures, outcome: LoadOutcome, limits: Validity) -> Iterator[Reason]:
    """Find too many errors (answered with one, or not at all), and too many missing or wrong rows."""
    where, totals = _where(figures), figures.totals()
    text = _say_too_many(where, totals, _ERRORS, limits.max_error_share)
    if text is not None:
        yield Reason(kind="errors-above-limit", text=text + _example(outcome))
    yield from _misses(where, totals, outcome, limits)


def _misses(
    where: str, totals: Mapping[str, int], outcome: LoadOutcome, limits: Validity
) -> Iterator[Reason]:
    """Find too many missing or wrong rows."""
    text = _say_too_many(where, totals, _MISSES, limits.max_miss_share)
    if text is not None:
        yield Reason(kind="misses-above-limit", text=text + _example(outcome))


def _say_too_many(
    where: str, totals: Mapping[str, int], prefixes: tuple[str, ...], limit: float
) -> str | None:
    """Describe how many operations ended in one of these ways; None if they are not above the limit."""
    attempted = totals.get(ATTEMPTED, 0)
    found = {name: n for name, n in totals.items() if n and name.startswith(prefixes)}
    share = sum(found.values()) / attempted if attempted else 0.0
    if share <= limit:
        return None
    each = ", ".join(f"{n} × {name.removeprefix(ERROR)}" for name, n in found.items())
    return (
        f"{where}: {percent(share)} of {attempted} operations ({each}); the limit is {percent(limit)}"
    )


def _unanswered(figures: PhaseFigures) -> Iterator[Reason]:
    """Find operations that belong to the slowest of all, and are in no histogram.

    With them, each percentile is that of a lower rank, and nothing is known above the share that was
    answered. Where nothing was answered at all there is no percentile to doubt.
    """
    attempted, missing = figures.count(ATTEMPTED), figures.count(TIMEOUTS)
    if not missing or figures.times(RESPONSE_TIME.name) is None:
        return
    share = missing / attempted
    # Two digits of the share, whatever its size: p99.9991 and not p100.
    digits = max(0, 1 - floor(log10(share * 100)))
    p99, known = 99 * (1 - share), 100 * (1 - share)
    text = (
        f"{figures.phase}: {missing} of {attempted} operations ({percent(share)}) timed out and are in "
        f"no percentile: the p99 shown is p{p99:.{digits}f} of all of them, and those beyond "
        f"p{known:.{digits}f} are too good"
    )
    yield Reason(kind="unanswered", text=text)


def _shortfall(figures: PhaseFigures, limits: Validity) -> Iterator[Reason]:
    """Find an open loop that did not send what it was to send, and say who fell behind."""
    intended, sent = figures.count(ATTEMPTED), figures.count(SENT_IN_WINDOW)
    if not figures.is_open or sent >= limits.min_achieved_share * intended:
        return
    what = f"{_where(figures)}: {sent} of {intended} operations were sent in time"
    limit = f"the limit is {percent(limits.min_achieved_share)}"
    if HELD not in figures.totals():
        # A program of the user's own: of its slots nothing is known.
        text = f"{what} ({percent(sent / intended)}), by its own report; {limit}"
        yield Reason(kind="load-not-offered", text=text)
        return
    held = figures.count(HELD)
    use = max(figures.engines(), key=lambda one: one.cpu_share, default=None)
    cpu = f"; the busiest engine used {use.cpu_share:.2f} of a core" if use else ""
    who = (
        "the server fell behind, or in_flight is too small for this load"
        if _is_held_up(figures)
        else "the client fell behind"
    )
    text = (
        f"{what} ({percent(sent / intended)}); {limit}; {who}: "
        f"{held} operations ({percent(held / intended)}) waited for one of the client's slots{cpu}"
    )
    yield Reason(kind="load-not-offered", text=text)


def _is_held_up(figures: PhaseFigures) -> bool:
    """Return whether waiting for slots explains all that was not sent in time.

    What the server holds up at the end of a window waits for a slot; what the client has not got
    round to does not. That most operations of the whole window waited would ask too much: after a
    stall in its last second they did not, and still it was the server that fell behind.
    """
    missing = figures.count(ATTEMPTED) - figures.count(SENT_IN_WINDOW)
    return figures.count(HELD) >= missing


def _client_faults(figures: PhaseFigures, limits: Validity) -> Iterator[Reason]:
    """Find a client that was late, busy or starved, so that times are partly its own.

    Each iteration is judged by itself, and the worst of each kind is reported: over all together,
    one bad iteration of three would look like a third of one.
    """
    worst = find_worst(
        found
        for iteration in figures.iterations
        for found in _client_delays(figures, iteration, limits)
    )
    yield from sorted(worst, key=lambda one: one.kind)


def _client_delays(figures: PhaseFigures, iteration: int, limits: Validity) -> Iterator[Measured]:
    where, only = f"{_where(figures)}, iteration {iteration}", (iteration,)
    late = figures.times(SEND_LATENESS.name, only) if figures.is_open else None
    response = figures.times(RESPONSE_TIME.name, only)
    if late and late.p99 and response:
        share = late.p99 / response.p99 if response.p99 else inf
        text = (
            f"{where}: the client sent late by {late.p99:.2f} ms at p99, which is {share:.2f} of the "
            f"p99 of response time ({response.p99:.2f} ms); the limit is {limits.max_lateness_share:g}"
        )
        yield Measured("client-late", share, limits.max_lateness_share, text)
    for use in figures.engines(only):
        text = (
            f"{where}: engine {use.engine_index} used {use.cpu_share:.2f} s of CPU per second over "
            f"{use.wall_s:.1f} s; the limit is {limits.max_client_cpu_share:g}"
        )
        yield Measured("client-busy", use.cpu_share, limits.max_client_cpu_share, text)
        text = (
            f"{where}: threads of engine {use.engine_index} waited {use.waited_share:.2f} s "
            f"for a core per second over {use.wall_s:.1f} s; the limit is "
            f"{limits.max_client_wait_share:g}"
        )
        yield Measured("client-starved", use.waited_share, limits.max_client_wait_share, text)


def _unsteadiness(figures: PhaseFigures, limits: Validity) -> Iterator[Reason]:
    """Find iterations that disagree: in throughput, or in median response time of an open loop."""
    values = []
    for iteration in figures.iterations:
        if figures.is_open:
            response = figures.times(RESPONSE_TIME.name, (iteration,))
            if response is not None:
                values.append(response.p50)
        else:
            completed = figures.count(COMPLETED_IN_WINDOW, (iteration,))
            values.append(completed / figures.seconds((iteration,)))
    apart = max(values) - min(values) if values else 0.0
    if apart > limits.max_iteration_spread * median(values or (0.0,)):
        what, unit = ("median response time", "ms") if figures.is_open else ("throughput", "ops/s")
        each = ", ".join(f"{value:.4g}" for value in values)
        text = (
            f"{_where(figures)}: {what} of the iterations is {each} {unit}, {apart:.4g} {unit} apart; "
            f"the limit is {limits.max_iteration_spread:g} of their median, {median(values):.4g} {unit}"
        )
        yield Reason(kind="not-steady", text=text)


def find_unsteady_reports(
    stages: Sequence[Stage], outcome: LoadOutcome, limits: Validity
) -> Iterator[Reason]:
    """Find iterations whose mean times disagree by a program's own report, in open loops."""
    open_loops = {stage.phase for stage in stages if isinstance(stage.load, OpenLoop)}
    values: dict[tuple[str, str, str], list[float]] = {}
    for one in outcome.reported:
        is_time = one.metric in {RESPONSE_TIME.name, SERVICE_TIME.name} and one.statistic == "mean"
        if is_time and one.phase in open_loops:
            values.setdefault((one.phase, one.operation, one.metric), []).append(one.value)
    worst = find_worst(
        Measured(
            "not-steady",
            (max(each) - min(each)) / (median(each) or inf),
            limits.max_iteration_spread,
            f"{phase}, {operation}: mean {metric.replace('_', ' ')} of the iterations is "
            f"{', '.join(f'{value:.4g}' for value in each)} ms; the limit is "
            f"{limits.max_iteration_spread:g} of their median apart",
        )
        for (phase, operation, metric), each in values.items()
    )
    yield from worst


def _nothing_completed(figures: PhaseFigures, outcome: LoadOutcome) -> Reason:
    text = f"{_where(figures)}: none of {figures.count(ATTEMPTED)} operations completed"
    return Reason(kind=_NOTHING, text=text + _example(outcome))


def _achieved_ops_per_s(figures: PhaseFigures) -> float:
    return figures.count(SENT_IN_WINDOW) / figures.seconds(figures.iterations)


def _where(figures: PhaseFigures) -> str:
    return f"{figures.phase}, {figures.operation}"


def _example(outcome: LoadOutcome) -> str:
    return f"; the first: {outcome.examples[0]}" if outcome.examples else ""
