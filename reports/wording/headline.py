"""An incident in one sentence of a user's: what became slower or faster, by how much, since when."""

from analysis.detection.detection import ChangePoint
from analysis.judging.incidents import Incident
from perf.model.metrics import METRICS, RESPONSE_TIME, SERVICE_TIME, THROUGHPUT, Better
from reports.wording.changes import name_beginning
from reports.wording.wording import (
    STATE_BADGES,
    heading,
    metric_words,
    number,
    percent,
    phase_words,
    quantity,
    sentence,
    series_words,
)

_SPEEDS = frozenset({THROUGHPUT.name, RESPONSE_TIME.name, SERVICE_TIME.name})
_PRODUCTS = {"cratedb": "CrateDB", "mongodb": "MongoDB", "scylladb": "ScyllaDB"}
"""Systems whose product is not merely their name with a capital."""
_PLURALS = {"read": "reads", "write": "writes"}
_WHOLE = 0.1
"""From here on a percentage needs no decimals to be understood."""


def say_headline(incident: Incident) -> str:
    """Say in one sentence what became slower or faster, how far, since when, and how sure that is."""
    lead = incident.lead
    key = lead.series.key
    product = _PRODUCTS.get(key.system, heading(key.system))
    end = f"since {name_beginning(lead)}; {STATE_BADGES[lead.state].word.lower()}"
    if key.metric not in _SPEEDS or not key.operation:
        return sentence(f"{product}: {series_words(key)} {_values(lead)}, {end}")
    what = _PLURALS.get(key.operation, f"{key.operation} operations")
    is_better = (lead.after > lead.before) is (METRICS[key.metric].better is Better.HIGHER)
    where = f"{phase_words(key.phase)}{f' on {key.host}' if key.host else ''}"
    moved = [f"{metric_words(key.metric, key.statistic)} {where} {_values(lead)}"]
    moved += [f"throughput {_values(one)}" for one in _find_throughput(incident)]
    return f"{product} {what} are {'faster' if is_better else 'slower'}: {', '.join((*moved, end))}."


def _find_throughput(incident: Incident) -> list[ChangePoint]:
    """Return the change of throughput that came with that of a time, if one did."""
    key = incident.lead.series.key
    same = [
        change
        for change in incident.changes
        if change.series.key.metric == THROUGHPUT.name != key.metric
        and (change.series.key.operation, change.series.key.phase, change.series.key.host)
        == (key.operation, key.phase, key.host)
    ]
    return same[:1]


def _values(change: ChangePoint) -> str:
    values = f"{number(change.before)} → {quantity(change.after, change.series.key.metric)}"
    return f"{values} ({_roughly(change.relative_change)})"


def _roughly(share: float) -> str:
    """Write a relative change as it is said: whole per cents from ten up."""
    text = percent(share)
    if abs(share) < _WHOLE or not text.endswith("%"):
        return text
    return f"{'+' if share > 0 else '−'}{abs(share) * 100:,.0f}{text[-2:]}"
