"""Links to trials lead to where they are shown: on pages of their own, or in places on those of nights.

Every page names a trial by the address that its own page has. Where the trial is old, the link is
led on when the page is made: so no kind of page can forget it.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from perf.model.results import TrialId
from reports.site.writing import Batch, LazyBatches, SiteFile
from reports.wording.links import trial_page

_LINK = re.compile(rb"""trials/(?<=["'/]trials/)[^"'#/<>\s]+\.html(?=["'])""")
"""An address of the page of a trial, in HTML and in data. What is in front of it is asked once it was
found: a pattern that begins with fixed letters is found faster."""
_LINKING = (".html", ".js")


def lead_links(text: bytes, places: Mapping[bytes, bytes]) -> bytes:
    """Lead the links to old trials to where these are shown; `places` by address."""
    if b"trials/" not in text:
        return text
    return _LINK.sub(lambda link: places.get(link[0], link[0]), text)


def lead_all(
    batches: Iterable[Batch | LazyBatches], old_trials: Mapping[TrialId, str]
) -> Iterator[Batch | LazyBatches]:
    """Lead all links of the pages and data of a site to where the trials are shown."""
    places = {trial_page(trial).encode(): place.encode() for trial, place in old_trials.items()}
    if not places:
        yield from batches
        return
    for one in batches:
        if isinstance(one, LazyBatches):
            yield LazyBatches(one.files, partial(_lead_parts, one, places))
        else:
            yield _lead(one, places)


def _lead_parts(lazy: LazyBatches, places: Mapping[bytes, bytes]) -> Iterator[Batch]:
    return (_lead(one, places) for one in lazy.batches())


def _lead(batch: Batch, places: Mapping[bytes, bytes]) -> Batch:
    def make(paths: Collection[str]) -> Iterator[SiteFile]:
        for file in batch.make(paths):
            is_linking = file.path.endswith(_LINKING)
            yield replace(file, content=lead_links(file.content, places)) if is_linking else file

    return replace(batch, make=make)
