"""What changed between the configs of two trials, by key and value: a hash says nothing."""

from collections.abc import Mapping

from pydantic import JsonValue

from analysis.judging.remeasurement import CONFIG
from analysis.orchestration.setting_words import say_settings
from perf.config.difference import find_knobs
from perf.history import bundle
from perf.model.identity import canonical, named
from perf.model.results import TrialHead
from reports.site.context import SiteContext


def name_changed_settings(before: TrialHead, after: TrialHead, context: SiteContext) -> str:
    """Name the settings that differ between two trials; empty where none is known.

    What is known at an incident comes first; else their bundles say it, or the catalog.
    """
    hashes = before.config.sha256, after.config.sha256
    if before.release.system != after.release.system or hashes[0] == hashes[1]:
        return ""
    name = f"{CONFIG}{after.config.name}"
    for one, knobs in context.settings.items():
        if one.name == name and (one.before, one.after) == hashes:
            return say_settings(knobs)
    old, new = _read(before, context), _read(after, context)
    return say_settings(find_knobs("config", old, new)) if old and new else ""


def _read(head: TrialHead, context: SiteContext) -> JsonValue:
    kept: Mapping[str, JsonValue] = (
        bundle.read_settings(context.bundles / head.id) if context.bundles else {}
    )
    configs = context.catalog.systems.get(head.release.system, {}).values()
    same = (canonical(one) for one in configs if named(one).sha256 == head.config.sha256)
    return kept.get("config") or next(same, None)
