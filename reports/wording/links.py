"""Where each page lies, relative to the root of the site. Names are safe for any file system.

None differs from another by the size of its letters alone, and none is that of a device of Windows.
"""

import dataclasses
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from urllib.parse import quote

from perf.model.results import SeriesKey, TrialId

TESTBED_PAGE = "testbed.html"
METHOD_PAGE = "method.html"
PULL_REQUESTS_ANCHOR = "pull-requests"
"""On the method page: what to do after a comment on a pull request."""
NIGHTS_PAGE = "nights.html"
SERIES_PAGE = "series.html"
INCIDENTS_PAGE = "incidents.html"
TROUBLES_PAGE = "troubles.html"
COMPARISONS_PAGE = "comparisons.html"
BISECTIONS_PAGE = "bisections.html"
RELEASES_PAGE = "releases.html"
COMPARE_PAGE = "compare.html"
_SAFE = re.compile(r"(?!(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$))[a-z0-9][a-z0-9._+@-]{0,199}")
_LONGEST_SLUG = 90
_HASH_DIGITS = 8


@cache
def series_stem(key: SeriesKey) -> str:
    """Return a readable file stem that is unique to the key: the slug may collide, the hash tells."""
    # No host adds nothing, so that such pages keep the addresses that they always had.
    identity = "\0".join(str(part) for part in dataclasses.astuple(key)).removesuffix("\0")
    readable = (key.system, key.topology, key.workload_name, key.phase)
    return _stem(" ".join((*readable, key.operation, key.metric, key.statistic, key.host)), identity)


def file_stem(name: str) -> str:
    """Return the stem of a file: the name, or a slug with a hash if that is no file name."""
    return name if _SAFE.fullmatch(name) else _stem(name, name)


def _page_in(folder: str, name: str) -> str:
    return f"{folder}/{file_stem(name)}.html"


# Each takes the name or the id of what its pages tell of.
bisection_page = partial(_page_in, "bisection")
comparison_page = partial(_page_in, "comparison")
incident_page = partial(_page_in, "incidents")
night_page = partial(_page_in, "night")
profile_page = partial(_page_in, "profiles")
reproduction_page = partial(_page_in, "reproductions")
trial_page = partial(_page_in, "trials")


def series_page(key: SeriesKey) -> str:
    """Return the path of a series page."""
    return f"series/{series_stem(key)}.html"


def series_search(*texts: str) -> str:
    """Return the address of the list of series that shows those with all words of the texts."""
    return f"{SERIES_PAGE}#find={quote(' '.join(texts), safe='')}"


def track_stem(parts: Sequence[str]) -> str:
    """Return the name of the data that series of one experiment on one release line share."""
    system, line, topology, _, _, workload, _ = parts
    readable = ("track", system, line, topology, workload.partition("@")[0])
    return _stem(" ".join(readable), "\0".join(parts))


def release_page(system: str, version: str) -> str:
    """Return the path of the page of a release."""
    identity = f"{system}\0{version}"
    return f"releases/{_stem(f'{system} {version}', identity)}.html"


def times_data(trial: TrialId) -> str:
    """Return the name of the data with a trial's response times and diagnostics."""
    return _stem(f"times {trial}", trial)


def variant_data(variant: str) -> str:
    """Return the name of the data of a variant, by its id."""
    return f"variant-{variant}"


def experiment_anchor(name: str, shape: str) -> str:
    """Return the anchor of the series of an experiment that have `shape` in common."""
    return f"experiment-{_stem(name, name + shape)}"


def testbed_page(name: str) -> str:
    """Return the path of the page of a testbed; without a name, of the one that is about all."""
    return f"testbed-{_stem(name, name)}.html" if name else TESTBED_PAGE


def trial_data(trial: TrialId) -> str:
    """Return the name of the data of a trial page's chart."""
    return _stem(f"trial {trial}", trial)


def data_path(name: str) -> str:
    """Return the path of the script that carries data of a name."""
    return f"data/{name}.js"


def _stem(text: str, identity: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:_LONGEST_SLUG].strip("-")
    digest = hashlib.sha256(identity.encode()).hexdigest()[:_HASH_DIGITS]
    return f"{slug}-{digest}" if slug else digest


def in_file(path: str, fragment: str = "") -> str:
    """Return the address of a page in a report of one file; a fragment with "=" is its own view."""
    if "=" in fragment:
        return f"#page={quote(path)}&{fragment}"
    return f"#page={quote(path)}" + (f"&at={quote(fragment)}" if fragment else "")


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """A main page: path, name, the key behind `g` that leads there, the folders of its details."""

    page: str
    name: str
    key: str
    folders: tuple[str, ...] = ()

    def holds(self, path: str) -> bool:
        """Whether the page at `path` is a detail of this one."""
        return path.startswith(tuple(f"{folder}/" for folder in self.folders))


NAVIGATION = (
    NavigationEntry("index.html", "Overview", "t"),
    NavigationEntry(NIGHTS_PAGE, "Nights", "n", ("night", "trials")),
    NavigationEntry(SERIES_PAGE, "Series", "s", ("series", "experiments")),
    NavigationEntry("releases.html", "Releases", "r", ("releases",)),
    NavigationEntry("compare.html", "Compare", "c", ("comparison", "reproductions")),
    NavigationEntry("incidents.html", "Incidents", "i", ("incidents", "bisection")),
    NavigationEntry(TESTBED_PAGE, "Testbed", "b"),
    NavigationEntry("method.html", "Method", "m"),
)
