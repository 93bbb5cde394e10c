"""Pages: views become HTML by the templates of this package, and the files that pages need.

Everything is escaped, and a name that a template misspells is an error.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined

from reports.charts import draw_series, to_script
from reports.step_chart import draw_steps
from reports.view.bisection import BisectionView
from reports.view.comparison import ComparisonView
from reports.view.incident import IncidentView
from reports.view.index import IndexView
from reports.view.series import SeriesView
from reports.view.testbed import TestbedView
from reports.view.trial import TrialView
from reports.view.wording import Moment

_STATIC = ("icon.svg", "site.js", "style.css")
# The bundle's other names (vega, vegaLite) are not needed by static/site.js.
_SNIPPET = "window.vegaEmbed = vegaEmbed;"


@dataclass(frozen=True, slots=True)
class SiteFile:
    """One file of the site; `path` is relative to its root, with forward slashes."""

    path: str
    content: bytes


def render_site(
    index: IndexView,
    testbed: TestbedView,
    incidents: Iterable[IncidentView],
    series: Iterable[SeriesView],
    trials: Iterable[TrialView],
    *,
    bisections: Iterable[BisectionView] = (),
    comparisons: Iterable[ComparisonView] = (),
) -> Iterator[SiteFile]:
    """Give every file of a site, one by one."""
    built = index.built
    yield _render("index.html", "index.html", root="", page=index, built=built)
    yield _render("testbed.html", testbed.page, root="", page=testbed, built=built)
    for incident in incidents:
        yield _render("incident.html", incident.page, root="../", page=incident, built=built)
    for one in series:
        yield _render("series.html", one.page, root="../", page=one, built=built)
        yield SiteFile(one.data, to_script(draw_series(one, "../")).encode())
    for trial in trials:
        yield _render("trial.html", trial.page, root="../", page=trial, built=built)
        if trial.data:
            yield SiteFile(trial.data, to_script(draw_steps(trial.steps)).encode())
    for bisection in bisections:
        yield render_bisection(bisection, built)
    for comparison in comparisons:
        yield render_comparison(comparison, built)
    for name in _STATIC:
        yield SiteFile(f"static/{name}", (files("reports") / "static" / name).read_bytes())
    yield SiteFile("static/vega.js", _bundle_scripts())


def render_comparison(comparison: ComparisonView, built: Moment) -> SiteFile:
    """Give the page of a comparison."""
    return _render("comparison.html", comparison.page, root="../", page=comparison, built=built)


def render_bisection(bisection: BisectionView, built: Moment) -> SiteFile:
    """Give the page of a bisection."""
    return _render("bisection.html", bisection.page, root="../", page=bisection, built=built)


def _render(template: str, path: str, **values: object) -> SiteFile:
    return SiteFile(path, _environment().get_template(template).render(values).encode())


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def _bundle_scripts() -> bytes:
    """Bundle Vega, Vega-Lite and Vega-Embed into one classic script (takes about two seconds)."""
    bundle: str = vl_convert.javascript_bundle(_SNIPPET)
    return bundle.encode()
