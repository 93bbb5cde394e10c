"""The way around the site: what stands at the head of every page."""

from dataclasses import dataclass

from reports.wording.links import NIGHTS_PAGE, SERIES_PAGE, TESTBED_PAGE


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
    NavigationEntry("index.html", "Tonight", "t"),
    NavigationEntry(NIGHTS_PAGE, "Nights", "n", ("night", "trials")),
    NavigationEntry(SERIES_PAGE, "Series", "s", ("series", "experiments")),
    NavigationEntry("releases.html", "Releases", "r", ("releases",)),
    NavigationEntry("compare.html", "Compare", "c", ("comparison", "reproductions")),
    NavigationEntry("incidents.html", "Incidents", "i", ("incidents", "bisection")),
    NavigationEntry(TESTBED_PAGE, "Testbed", "b"),
    NavigationEntry("method.html", "Method", "m"),
)
