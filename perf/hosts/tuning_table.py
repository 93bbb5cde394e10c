"""What `knickpoint host check` prints: a table for each host, and a last sentence; pure."""

from collections.abc import Iterator

from perf.design import Testbed
from perf.hosts.proof import Finding, State, describe_found, describe_wanted
from perf.hosts.readiness import Look
from perf.hosts.tuning import label

_WIDEST = 44


def describe_look(look: Look) -> Iterator[str]:
    """Give the table of one host: each setting, what is there, what is wanted, how it stands."""
    roles = " and ".join(look.machine.roles)
    yield f"{look.host} ({roles}), held to {label(look.profile)}: {_mark(look)}"
    if look.answer is None:
        yield f"  {look.problem}"
        return
    rows = [("setting", "there", "wanted", "")]
    rows += [
        (one.setting.name, describe_found(one), describe_wanted(one.setting), _judge(one))
        for one in look.findings
    ]
    widths = [min(_WIDEST, max(len(row[column]) for row in rows)) for column in range(3)]
    for *cells, last in rows:
        padded = "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
        yield f"  {padded}  {last}".rstrip()


def summarize(looks: tuple[Look, ...], testbed: Testbed) -> str:
    """Say in a line how many settings of how many hosts are as wanted."""
    findings = [finding for look in looks for finding in look.findings]
    kept = sum(finding.state is State.KEPT for finding in findings)
    excused = sum(finding.state is State.EXCUSED for finding in findings)
    text = f"testbed {testbed.name}: {kept} of {len(findings)} settings on {len(looks)} hosts as wanted"
    if excused:
        text += f", {excused} declared unavailable"
    if testbed.tuning is None:
        text += "; it has no key `tuning`, so nobody vouches for these hosts before a trial"
    return text


def _mark(look: Look) -> str:
    if look.answer is None:
        return "not reached"
    if not look.answer.marker:
        return "never tuned since it booted"
    if look.is_marked:
        return "last tuned to that"
    return f"last tuned to {look.answer.marker}"


def _judge(finding: Finding) -> str:
    if finding.state is State.EXCUSED and finding.found is not None:
        return f"declared unavailable ({finding.declared}), but it is there and differs"
    if finding.state is State.EXCUSED:
        return f"declared unavailable ({finding.declared})"
    if finding.state is State.KEPT and finding.declared is not None:
        return "as wanted, though declared unavailable: the declaration can go"
    return "as wanted" if finding.state is State.KEPT else finding.state.value.upper()
