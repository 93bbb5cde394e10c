"""The page of the method: what each number means, how it came about, what is not known.

Its prose is in its template. Quantities, rules and badges are taken from where they are used, so that
none of it can go stale.
"""

from collections.abc import Collection, Iterator

from perf.config.catalog import Catalog
from perf.model.metrics import (
    CANARY_CPU,
    CANARY_FSYNC,
    CANARY_LOOPBACK,
    CANARY_MEMORY,
    DIAGNOSTICS,
    METRICS,
    OPERATIONS_PER_DOLLAR,
)
from reports.pages.trial.validity import RULES
from reports.site.context import SiteContext
from reports.site.rendering import render
from reports.site.writing import Batch, SiteFile
from reports.wording import links, wording

_CANARIES = (CANARY_CPU, CANARY_MEMORY, CANARY_FSYNC, CANARY_LOOPBACK)


def batches(context: SiteContext) -> Iterator[Batch]:
    """Yield the page of the method."""
    used = {head.testbed.name for head in context.heads.values()}
    yield Batch({links.METHOD_PAGE: ""}, lambda _: [render_method(context.catalog, used)])


def render_method(catalog: Catalog, used: Collection[str] = ()) -> SiteFile:
    """Return the page that says what the numbers on all pages mean, by the rules of a configuration.

    Of testbeds it has the limits of those that are `used`; of all, if none of them is.
    """
    testbeds = {name: one for name, one in catalog.testbeds.items() if name in used}
    return render(
        "method.html",
        links.METHOD_PAGE,
        testbeds=testbeds or catalog.testbeds,
        rules=catalog.detection,
        metrics=METRICS.values(),
        diagnostics=[one for one in DIAGNOSTICS.values() if one not in _CANARIES],
        canaries=_CANARIES,
        validity_rules=RULES,
        price=OPERATIONS_PER_DOLLAR,
        words=wording,
    )
