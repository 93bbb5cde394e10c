"""The way around the site: what stands at the head of every page."""

from dataclasses import dataclass

from reports.view.links import NIGHTS_PAGE, SERIES_PAGE, TESTBED_PAGE


@dataclass(frozen=True, slots=True)
class Entry:
    """A main page: path, name, the key behind `g` that leads there, the folders of its details."""

    page: str
    name: str
    key: str
    folders: tuple[str, ...] = ()

    def holds(self, path: str) -> bool:
        """Whether the page at `path` is a detail of this one."""
        return path.startswith(tuple(f"{folder}/" for folder in self.folders))


NAVIGATION = (
    Entry("index.html", "Tonight", "t"),
    Entry(NIGHTS_PAGE, "Nights", "n", ("night", "trials")),
    Entry(SERIES_PAGE, "Series", "s", ("series", "experiments")),
    Entry("releases.html", "Releases", "r", ("releases",)),
    Entry("compare.html", "Compare", "c", ("comparison", "reproductions")),
    Entry("incidents.html", "Incidents", "i", ("incidents", "bisection")),
    Entry(TESTBED_PAGE, "Testbed", "b"),
    Entry("method.html", "Method", "m"),
)
