"""What a judgement is made from, told without reading it; no detector is loaded, which takes long."""

from datetime import date
from hashlib import sha256

from perf.config.catalog import Catalog
from perf.history.store import describe_state
from perf.local import standing
from perf.local.paths import DataPaths


def describe_inputs(paths: DataPaths, catalog: Catalog, today: date) -> str:
    """Digest all that a judgement is made from, without reading the history.

    Equal digests, equal judgements. Ask before the history is opened: then the digest is that of what
    is read, or of a state that never comes back. Empty where there is no history, or none in reach.
    """
    state = describe_state(paths.history)
    if not state:
        return ""
    parts = (
        standing.describe_code("perf", "analysis"),
        state,
        standing.describe_folder(paths.comparisons),
        repr(catalog),
        today.isoformat(),
    )
    return sha256("\0".join(parts).encode()).hexdigest()
