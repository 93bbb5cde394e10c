"""The self-test in words: a table of findings, the floor, and a last sentence; pure."""

from collections.abc import Iterator, Sequence

from perf.load.selftest.finding import CheckOutcome, SelftestFinding, merge_outcomes
from perf.load.selftest.floor import MAX_LATENESS_P99_MS, MIN_ACHIEVED_SHARE, SHOWN_LOADS, Floor

_COST = (
    "  CPU time per operation   {floor.cpu_us_per_operation:.0f} µs "
    "(closed loop, {floor.throughput_ops_per_s:.0f} operations/s)"
)
_LATENESS = (
    "  send lateness at {rung.offered_load_ops_per_s:5.0f}/s   p50 {rung.lateness_p50_ms:.2f} ms, "
    "p99 {rung.lateness_p99_ms:.2f} ms, max {rung.lateness_max_ms:.2f} ms; "
    "{rung.achieved_share:.1%} sent in the window"
)
_RULE = (
    "    (the last rung of {ladder}/s up to which at least "
    f"{MIN_ACHIEVED_SHARE:.0%}\n    was sent in its window and the p99 of send lateness was at most "
    f"{MAX_LATENESS_P99_MS:g} ms)"
)
_MACHINE = (
    "  this machine, meanwhile  woke a thread that only sleeps p50 {delays.p50_ms:.2f} ms, "
    "p99 {delays.p99_ms:.2f} ms, max {delays.max_ms:.2f} ms late"
)
_HEAD = ("", "planted", "reported", "tolerance", "")


def format_findings(findings: Sequence[SelftestFinding]) -> str:
    """Return one line per finding, under the heading of its topic."""
    lines = list(_lines(findings))
    rows = [_HEAD, *(line for line in lines if len(line) > 1)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    text = []
    for line in ([*_HEAD], *lines):
        if len(line) == 1:
            text.append(f"\n{line[0]}")
            continue
        first, *others = line
        cells = [f"{cell:>{width}}" for cell, width in zip(others[:-1], widths[1:-1], strict=True)]
        text.append(f"  {first:<{widths[0]}}  {'  '.join(cells)}  {others[-1]}".rstrip())
    return "\n".join(text)


def format_floor(floor: Floor) -> str:
    """Return what the engine costs on this machine, with the rule of the highest honest load."""
    said = f"none of the ladder, which begins at {floor.rungs[0].offered_load_ops_per_s:.0f}/s"
    highest = floor.highest_honest_load
    if highest is not None:
        is_top = highest == floor.rungs[-1].offered_load_ops_per_s
        said = f"{'at least ' if is_top else ''}{highest:.0f}/s"
    lines = [
        "floor: the engine alone, against a server that answers at once",
        _COST.format(floor=floor),
        *(
            _LATENESS.format(rung=rung)
            for rung in floor.rungs
            if rung.offered_load_ops_per_s in SHOWN_LOADS
        ),
        f"  highest honest load      {said}",
        _RULE.format(ladder=", ".join(f"{rung.offered_load_ops_per_s:.0f}" for rung in floor.rungs)),
        _MACHINE.format(delays=floor.delays),
    ]
    return "\n".join(lines)


def conclude(findings: Sequence[SelftestFinding]) -> str:
    """Describe in a sentence what it comes to, and what to do."""
    bad = [finding for finding in findings if finding.outcome is not CheckOutcome.OK]
    topics = ", ".join(dict.fromkeys(finding.topic for finding in bad))
    match merge_outcomes(findings):
        case CheckOutcome.OK:
            return f"What was planted was reported, in all {len(findings)} checks."
        case CheckOutcome.FAILED:
            return (
                f"The engine does not report what was planted ({topics}). Trust no number from it: "
                "undo the last change to perf/load, or report this table as a defect."
            )
        case CheckOutcome.CANNOT_TELL:
            return (
                f"Cannot tell ({topics}): this machine's own delays are as large as the differences. "
                "Stop what else runs here, or give it more cores, and run the self-test again."
            )


def _lines(findings: Sequence[SelftestFinding]) -> Iterator[tuple[str, ...]]:
    for topic in dict.fromkeys(finding.topic for finding in findings):
        yield (topic,)
        for one in findings:
            if one.topic == topic:
                yield one.check, one.planted, one.reported, one.tolerance, one.outcome.value
