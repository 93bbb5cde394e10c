"""Find what a changed configuration holds: in the bundles of the trials, else in the catalog."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from analysis.judging.description import SettingsInWords
from analysis.judging.explanations import Explanation
from analysis.judging.incidents import Incident
from analysis.judging.remeasurement import CONFIG
from analysis.orchestration.setting_words import (
    ChangedSettings,
    Settings,
    find_changed,
    name_settings,
)
from perf.config.catalog import Catalog
from perf.config.difference import Knob
from perf.history import bundle
from perf.history.store import open_history
from perf.local.paths import DataPaths
from perf.model.identity import canonical, named
from perf.model.results import TrialHead, TrialId


def find_changed_settings(
    incidents: Iterable[Incident],
    heads: Mapping[TrialId, TrialHead],
    catalog: Catalog,
    bundles: Path,
) -> ChangedSettings:
    """Return the settings behind each explanation of incidents, where both contents are known.

    `bundles` is the directory of the trial bundles. Of a config the trials beside the change must have
    the contents that are said to have changed.
    """
    found: dict[Explanation, tuple[Knob, ...]] = {}
    for incident in incidents:
        lead = incident.lead
        ends = heads[lead.last_before.trial], heads[lead.first_after.trial]
        hashes = ends[0].config.sha256, ends[1].config.sha256
        asked = [
            one
            for one in incident.explanations
            if not one.name.startswith(CONFIG) or (one.before, one.after) == hashes
        ]
        if asked:
            settings = _read(ends[0], catalog, bundles), _read(ends[1], catalog, bundles)
            found.update((one, knobs) for one in asked if (knobs := find_changed(one, settings)))
    return found


def read_named_settings(
    incidents: Sequence[Incident], catalog: Catalog, paths: DataPaths
) -> SettingsInWords:
    """Name the settings behind each explanation of incidents of the history in a data directory.

    Raises:
        HistoryError: the history cannot be read.

    """
    if not any(one.explanations for one in incidents):
        return {}
    with open_history(paths.history, read_only=True) as history:
        heads = {head.id: head for head in history.heads()}
    return name_settings(find_changed_settings(incidents, heads, catalog, paths.trials))


def _read(head: TrialHead, catalog: Catalog, bundles: Path) -> Settings:
    """Return what its bundle kept; else a config of the same content, whatever its name is now."""
    kept = bundle.read_settings(bundles / head.id)
    configs = catalog.systems.get(head.release.system, {}).values()
    same = (one for one in configs if named(one).sha256 == head.config.sha256)
    return kept or next(({"config": canonical(one)} for one in same), {})
