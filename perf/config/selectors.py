"""Selectors: which releases a suite measures, said by rule instead of by version.

    5.0.9                       this one
    newest                      the newest release of the newest line
    newest 3                    the three newest of that line
    5.0: newest, 5.0: newest 2  of this line
    previous line: newest       of the line before the newest
    5.0: each minor             all of this line
    >=5.0.4 <6                  all within
    pinned [4.0.19, 5.0.0]      these
    commits: newest 2 per day   of builds of commits, the newest of the newest day
    running                     what an attached cluster runs, which is asked as a night begins

Previews (rc, beta, alpha) are measured where they are named; no rule chooses them. Pure.
"""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from perf.config.checks.files import ConfigFile
from perf.local.problems import suggest_few
from perf.model.design import Suite
from perf.model.results import Release
from perf.model.scalars import RUNNING, is_version
from perf.model.sources import DEV
from perf.releases.versions import line_order, read_version


def resolve_suite(
    entry: ConfigFile[Suite],
    known: Mapping[str, Sequence[Release]],
    offering: Container[str],
    problems: list[str],
) -> ConfigFile[Suite]:
    """Return a suite that lists the versions which its selectors choose, each once.

    A version that there is not, and what is listed twice, is added to the problems. A rule that chooses
    nothing stays as it is, since a source may offer something on another day; and so do all selectors
    where a system cannot be loaded, and versions that a source of a system in `offering` may have.
    """
    suite = entry.value
    if suite is None:
        return entry
    experiments = []
    for index, experiment in enumerate(suite.experiments):
        releases, at = known.get(experiment.system), entry.top / "experiments" / index / "releases"
        chosen: dict[str, None] = {}
        for place, selector in enumerate(experiment.releases):
            if selector in experiment.releases[:place]:
                problems.append((at / place).say("for the second time; list each release once"))
            if releases is None:
                chosen[selector] = None
                continue
            found = select(selector, releases)
            chosen.update(dict.fromkeys([one.version for one in found] or [selector]))
            if not found and is_version(selector) and experiment.system not in offering:
                versions = [one.version for one in releases]
                hint = suggest_few(selector, versions, f"see `knickpoint releases {experiment.system}`")
                problems.append(
                    (at / place).say(f"and {experiment.system} has no such release; {hint}")
                )
        experiments.append(replace(experiment, releases=tuple(chosen)))
    return ConfigFile(entry.document, replace(suite, experiments=tuple(experiments)))


def select(selector: str, releases: Iterable[Release]) -> tuple[Release, ...]:
    """Return the releases that a selector chooses among those of a system, by line and place.

    None where it chooses nothing: a version that there is not, a line without a release.
    """
    ordered = in_order(releases)
    if selector == RUNNING:
        return ()
    if is_version(selector):
        return tuple(one for one in ordered if one.version == selector)
    if selector.startswith("pinned ["):
        wanted = {one.strip() for one in selector.removeprefix("pinned [").rstrip("]").split(",")}
        return tuple(one for one in ordered if one.version in wanted)
    if selector[0] in "<>":
        return tuple(one for one in _plain(ordered) if _is_within(one, selector.split()))
    scope, _, rule = selector.rpartition(": ")
    if scope == "commits":
        return _newest_commits([one for one in ordered if one.line.endswith(DEV)], rule)
    plain = _plain(ordered)
    lines = list(dict.fromkeys(one.line for one in plain))
    if scope == "previous line":
        lines = lines[-2:-1]
    elif scope:
        lines = [scope] if scope in lines else []
    else:
        lines = lines[-1:]
    among = [one for one in plain if one.line in lines]
    return tuple(among if rule == "each minor" else among[-_count(rule) :])


def in_order(releases: Iterable[Release]) -> list[Release]:
    """Return releases by line and place; builds of commits come last."""
    return sorted(releases, key=lambda one: (line_order(one.line), one.line, one.ordinal))


def _plain(releases: Sequence[Release]) -> list[Release]:
    return [one for one in releases if one.ordinal >= 0 and not one.line.endswith(DEV)]


def _count(rule: str) -> int:
    found = re.search(r"[0-9]+", rule)
    return int(found[0]) if found else 1


def _is_within(release: Release, bounds: Sequence[str]) -> bool:
    version = read_version(release.version)
    for bound in bounds:
        limit = read_version(bound.lstrip("<>="))
        if version is None or limit is None:
            return False
        holds = version >= limit if bound[0] == ">" else version <= limit
        if not holds or (version == limit and "=" not in bound):
            return False
    return True


def _newest_commits(builds: Sequence[Release], rule: str) -> tuple[Release, ...]:
    if not builds:
        return ()
    if rule.endswith("per day"):
        days = [datetime.fromtimestamp(one.ordinal, UTC).date() for one in builds]
        builds = [one for one, day in zip(builds, days, strict=True) if day == max(days)]
    return tuple(builds[-_count(rule) :])
