"""What a season must have come to: all that was planted found, told once, nothing lost, nothing left.

Each check gives sentences: what is wrong, none if all is well; and figures for the table of promises.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Any

import season
from season import Planted
from season_run import Seen

from perf.history import bundle
from perf.history.store import open_history, rebuild
from perf.jobs.night import find_missing, read_nights
from perf.model.nights import Night
from perf.model.results import TrialStatus

Run = dict[str, Any]
NEAR = 3
"""A change may be placed so many nights beside where it was planted: its place is an interval, too."""
STATED_PER_1000 = 1.2
"""`false_alarms_per_1000_series_nights` of configs/detection.yaml."""
MOST_HELD_MB = 60.0
"""What a process of many nights may hold beyond one of a single night over the same data: caches, and
what the allocator keeps. What each night left would be far more after a hundred of them."""
KILLED = -9
_OPEN_FILES = 6
"""Pools of threads and of DuckDB that begin late hold a few."""
_NIGHT = re.compile(r"(?:cmp-|bis-)?(\d{4}-\d{2}-\d{2})-1")
_STAY = {
    *("run", "told.json", "told.json.lock", "measuring.lock", "measuring.pid", "history.duckdb.lock"),
    *("answer.json", "known-nights.json", "observations.npz", "readings.json", "site-stamp.json"),
}
"""What is not meant to grow in files: what is written over, and the working directory."""
_ENDS = {
    "crash": TrialStatus.FAILED,
    "never-ready": TrialStatus.FAILED,
    "die": TrialStatus.INVALID,
}


def night_of(trial: str) -> int:
    """Return the number of the night in which a trial was measured."""
    found = _NIGHT.match(trial)
    assert found, trial
    day = datetime.fromisoformat(f"{found[1]}T00:00+00:00")
    return (day.date() - season.FIRST.date()).days


def check_planted(seen: Seen) -> tuple[list[str], dict[str, object]]:
    """Was each planted change found? Says after how many nights it was first told, and confirmed."""
    wrong, delays = [], {}
    for planted in season.CHANGES:
        if planted.night > seen.nights - 6:
            continue
        nights = {
            state: [run["night"] for run in seen.runs if _finds(run, planted, state)]
            for state in ("provisional", "confirmed")
        }
        reported = [*nights["provisional"], *nights["confirmed"]]
        name = f"{planted.where} at night {planted.night}"
        if not nights["confirmed"]:
            wrong.append(f"{name} was never confirmed (provisional in nights {nights['provisional']})")
            continue
        delays[name] = (min(reported) - planted.night, min(nights["confirmed"]) - planted.night)
    steps = [delay for name, delay in delays.items()]
    return wrong, {
        "planted and found": f"{len(delays)} of {len(delays) + len(wrong)}",
        "nights until told, until confirmed": "; ".join(
            f"{name}: {first}, {sure}" for name, (first, sure) in delays.items()
        ),
        "median nights until confirmed": median(sure for _, sure in steps) if steps else "–",
    }


def _finds(run: Run, planted: Planted, state: str) -> bool:
    return any(
        _is_of(change, planted) and change["state"] == state for change in run.get("changes", ())
    )


def _is_of(change: dict[str, Any], planted: Planted) -> bool:
    """Return whether a change may be the planted one: its place, its metric and its direction."""
    begin, end = night_of(change["after"]), night_of(change["until"])
    last = planted.night + planted.drifts_for + NEAR
    is_there = planted.night - NEAR <= end and begin <= last
    is_up = (change["metric"] == "throughput") == (planted.speed > 1)
    is_tail = change["statistic"] == "p99" or not planted.tail_only
    return (
        is_there
        and is_tail
        and is_up == (change["change"] > 0)
        and change["metric"] in (*planted.metrics, "service_time")
    )


def check_false_alarms(seen: Seen) -> tuple[list[str], dict[str, object]]:
    """How many confirmed changes, by series and place, were none? Does the stated rate allow them?"""
    false: dict[tuple[str, str, int], str] = {}
    asked = 0
    for run in seen.runs:
        asked += run.get("series", 0)
        for change in run.get("changes", ()):
            if any(_is_of(change, planted) for planted in season.CHANGES):
                continue
            key = (change["metric"], change["statistic"], night_of(change["until"]))
            if change["state"] == "confirmed":
                false[key] = f"{' '.join(key[:2])} at night {key[2]}: {change['change']:+.1%}, {change}"
    places: list[tuple[str, str, int]] = []
    for key in sorted(false):
        if not any(key[:2] == one[:2] and abs(key[2] - one[2]) <= NEAR for one in places):
            places.append(key)
    expected = asked * STATED_PER_1000 / 1000
    # Twice the standard deviation of a Poisson number beyond what is expected.
    limit = expected + 2 * max(expected, 1.0) ** 0.5
    wrong = [f"a change that is none: {false[key]}" for key in places] if len(places) > limit else []
    return wrong, {
        "false alarms": f"{len(places)} in {asked} series-nights; {expected:.1f} stated",
        "where": ", ".join(f"{metric} {statistic} at {night}" for metric, statistic, night in places)
        or "–",
    }


def check_told(seen: Seen) -> tuple[list[str], dict[str, object]]:
    """Was each incident told, and nothing of it twice?"""
    groups: list[tuple[set[str], list[str]]] = []
    for event in (event for run in seen.runs for event in run.get("events", ())):
        handles = {event["name"], *event["handles"]}
        mine = [group for group in groups if group[0] & handles]
        rest = [group for group in groups if not group[0] & handles]
        names = handles.union(*(group[0] for group in mine))
        groups = [*rest, (names, [*(kind for group in mine for kind in group[1]), event["kind"]])]
    wrong = [
        f"told twice: {kinds} of {min(names)}"
        for names, kinds in groups
        if any(kind == after for kind, after in pairwise(kinds))
    ]
    # An incident whose lead changes gets another name; the sent_log follows it.
    sent_log = seen.paths.sent_log
    reported = json.loads(sent_log.read_text())["incidents"] if sent_log.exists() else {}
    last = next(run for run in reversed(seen.runs) if run.get("notified") == 0)
    wrong += [f"never told: {name}" for name in last["news"] if name not in reported]
    kinds = Counter(kind for _, reported_kinds in groups for kind in reported_kinds)
    return wrong, {
        "incidents told": len(groups),
        "events": ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())),
        "told again after they were withdrawn": sum(
            "withdrawn" in reported_kinds[:-1] for _, reported_kinds in groups
        ),
        "messages that the channel took": seen.messages,
    }


def check_history(seen: Seen) -> tuple[list[str], dict[str, object]]:
    """Is the history that of the bundles, and is each planned trial there, ended as planted?"""
    paths = seen.paths
    found = bundle.find(paths)
    with open_history(paths.history, read_only=True) as history:
        kept, digest = {one.id for one in history.heads()}, history.tables_digest()
    wrong = [f"only in one of bundles and history: {name}" for name in kept ^ {p.name for p in found}]
    again = seen.into / "again.duckdb"
    if rebuild(again, found, lambda _: None).bad:
        wrong.append("a bundle was refused as the history was rebuilt")
    with open_history(again, read_only=True) as history:
        if history.tables_digest() != digest:
            wrong.append("a rebuilt history differs from the one that grew")
    nights = read_nights(paths)
    for night in nights:
        fault, _, rest = season.fault_of(night_of(night.id)).partition(",")
        missing = find_missing(night, paths)
        if missing and (rest or not fault.startswith("kill")):
            wrong.append(f"night {night.id} ({fault or 'calm'}) lacks {[one.id for one in missing]}")
        wrong += _check_ends(seen, night, fault)
    return wrong, {"nights": len(nights), "trials": len(found), "in the history": len(kept)}


def _check_ends(seen: Seen, night: Night, fault: str) -> Iterator[str]:
    for planned in night.trials:
        path = seen.paths.trials / planned.id
        if path.is_dir():
            trial = bundle.read(path)[0]
            if {reason.kind for reason in trial.reasons} == {"host-drifted"}:
                continue  # somebody else changed this machine meanwhile
            status = trial.status
            wanted = TrialStatus.COMPLETED if planned.experiment == "watch" else _ENDS.get(fault)
            if status is not (wanted or TrialStatus.COMPLETED):
                yield f"{planned.id} ({fault or 'calm'}) is {status}"


def check_ends_of_runs(seen: Seen) -> tuple[list[str], dict[str, object]]:
    """Did each run end as its fault says, with a sentence where it failed, and none with a defect?"""
    wrong = []
    ends = defaultdict(list)
    for run in seen.runs:
        fault, _, _ = season.fault_of(run["night"]).partition(",")
        is_again = run["night"] in [one["night"] for one in seen.runs[: seen.runs.index(run)]]
        word = "resumed" if is_again else fault.partition(" ")[0] or "calm"
        ends[word].append(run["code"])
        if run["code"] not in _CODES[word]:
            wrong.append(f"night {run['night']} ({word}) ended with {run['code']}")
    reported = ", ".join(f"{word} {dict(Counter(codes))}" for word, codes in sorted(ends.items()))
    return wrong, {"exit codes by kind of night": reported}


_CODES: dict[str, set[int]] = {
    # 1: a regression that is confirmed since some nights.
    "calm": {0, 1},
    "resumed": {0, 1},
    "crash": {1, 3},
    "die": {1, 3},
    "never-ready": {1, 3},
    "ignore-stop": {0, 1},
    "channel-down": {0, 1},
    "kill": {KILLED},
    "interrupt": {130},
    "disk-full": {3},
    "fill": {3},
}


def check_leaks(seen: Seen) -> tuple[list[str], dict[str, object]]:
    """Does anything grow that is not meant to: processes, open files, threads, memory, files?"""
    wrong: list[str] = []
    shared = [run for run in seen.runs if not run["is_alone"] and "rss_mb" in run]
    for what in ("files", "threads"):
        early = max(run[what] for run in shared[:10])
        late = max(run[what] for run in shared[-10:])
        if late > early + _OPEN_FILES:
            wrong.append(f"open {what} of the process of many nights: {early}, later {late}")
    alone = [run for run in seen.runs if run["is_alone"] and run["code"] in {0, 1}]
    beyond_mb = shared[-1]["rss_mb"] - alone[-1]["rss_mb"]
    if beyond_mb > MOST_HELD_MB:
        wrong.append(f"the process of many nights holds {beyond_mb:.0f} MB more than one of a night")
    for run in seen.runs:
        if run["code"] != KILLED and (run["left"] or run.get("children")):
            wrong.append(f"night {run['night']} left processes: {run['left']}")
        if run["code"] != KILLED and run["tmp"]:
            wrong.append(f"night {run['night']} left files: {run['tmp']}")
    first, last = shared[min(5, len(shared) - 1)]["parts"], seen.runs[-1]["parts"]
    wrong += [
        f"{name} grew from {first.get(name)} to {last[name]}"
        for name in _STAY & last.keys()
        if last[name][1] > first.get(name, (0, 2))[1] + _OPEN_FILES
    ]
    known = {*_STAY, "nights", "trials", "site", "history.duckdb", "comparisons", "bisections"}
    wrong += [f"in the data directory: {name}" for name in last if name not in known]
    return wrong, {
        "nights in one process": len(shared),
        "its memory, first and last (MB)": f"{shared[0]['rss_mb']:.0f}, {shared[-1]['rss_mb']:.0f}",
        "that of a night by itself, at the end": f"{alone[-1]['rss_mb']:.0f}",
        "its open files, first and last": f"{shared[0]['files']}, {shared[-1]['files']}",
        "its threads, first and last": f"{shared[0]['threads']}, {shared[-1]['threads']}",
        "sizes at the end (KB, files)": json.dumps(
            {name: part for name, part in last.items() if part[0] or name not in _STAY}
        ),
        "marks of nights that were never resumed": len(seen.runs[-1]["untold"]),
    }


CHECKS = (
    check_planted,
    check_false_alarms,
    check_told,
    check_history,
    check_ends_of_runs,
    check_leaks,
)


def check_all(seen: Seen) -> tuple[list[str], dict[str, object]]:
    """Do all checks: what is wrong, and the figures."""
    wrong: list[str] = []
    figures: dict[str, object] = {}
    for check in CHECKS:
        found, reported = check(seen)
        wrong += found
        figures |= reported
    return wrong, figures
