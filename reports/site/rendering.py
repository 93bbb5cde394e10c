"""Views become HTML by the templates beside the pages, data become scripts, sources become bundles.

Everything is escaped, and a name that a template misspells is an error.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from itertools import chain
from pathlib import Path
from shlex import quote

import vl_convert
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic_core import to_json

from analysis.bisecting.description import answer
from analysis.comparing.description import describe_code
from analysis.orchestration.setting_words import setting_name, setting_values
from perf.local import durable
from perf.local.paths import cache_dir
from perf.model.stacks import package_of, short_name
from reports.site.svg import course, trend
from reports.site.writing import Batch, SiteFile
from reports.wording import links
from reports.wording.attention import first_reason
from reports.wording.changes import (
    evidence_words,
    name_beginning,
    name_gap,
    name_incident,
    name_night,
    name_watch,
    view_change_briefly,
)
from reports.wording.links import NAVIGATION, data_path, in_file
from reports.wording.measures import change_words, ends_words
from reports.wording.sensitivity import view_sensitivity
from reports.wording.wording import (
    OUTCOME_BADGES,
    STATE_BADGES,
    STATUS_BADGES,
    STEP_BADGES,
    at_least,
    count,
    definition_words,
    direction_arrow,
    direction_words,
    duration,
    heading,
    interval,
    metric_name,
    metric_words,
    moment,
    named,
    night_name,
    number,
    percent,
    phase_words,
    plain_percent,
    probability,
    quantity,
    sentence,
    series_words,
    share,
    size,
    space_percent,
    spread,
    unit_words,
)

# The bundle's other names (vega, vegaLite) are not needed by our scripts.
_SNIPPET = "window.vegaEmbed = vegaEmbed;"
# Controls, which HTML forbids; overrides and isolates of the writing direction; halves of pairs.
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_SHARED, _PAGES = Path(str(files("reports.site"))), Path(str(files("reports"))) / "pages"
_FIRST_SCRIPT, _FIRST_STYLE = "core.js", "base.css"
_FILTERS = {
    "answer": answer,
    "at_least": at_least,
    "bisection_page": links.bisection_page,
    "count": count,
    "course": course,
    "change_briefly": view_change_briefly,
    "change_words": change_words,
    "comparison_page": links.comparison_page,
    "definition_words": definition_words,
    "direction_arrow": direction_arrow,
    "direction_words": direction_words,
    "duration": duration,
    "ends_words": ends_words,
    "evidence_words": evidence_words,
    "file_size": size,
    "file_stem": links.file_stem,
    "first_reason": first_reason,
    "heading": heading,
    "in_file": in_file,
    "incident_page": links.incident_page,
    "night_name": night_name,
    "night_page": links.night_page,
    "metric_name": metric_name,
    "interval": interval,
    "metric_words": lambda key: metric_words(key.metric, key.statistic),
    "moment": moment,
    "name_beginning": name_beginning,
    "name_gap": name_gap,
    "name_incident": name_incident,
    "name_night": name_night,
    "name_watch": name_watch,
    "named": named,
    "number": number,
    "package_of": package_of,
    "outcome_badge": OUTCOME_BADGES.__getitem__,
    "percent": percent,
    "phase_words": phase_words,
    "plain_percent": plain_percent,
    "profile_page": links.profile_page,
    "probability": probability,
    "quantity": quantity,
    "release_page": links.release_page,
    "reproduction_page": links.reproduction_page,
    "describe_code": describe_code,
    "sensitivity": view_sensitivity,
    "sentence": sentence,
    "series_page": links.series_page,
    "series_stem": links.series_stem,
    "series_words": series_words,
    "setting_name": setting_name,
    "setting_values": setting_values,
    "share": share,
    "short_name": short_name,
    "shell_quote": quote,
    "space_percent": space_percent,
    "spread": spread,
    "state_badge": STATE_BADGES.__getitem__,
    "status_badge": STATUS_BADGES.__getitem__,
    "step_badge": STEP_BADGES.__getitem__,
    "testbed_page": links.testbed_page,
    "trend": trend,
    "trial_page": links.trial_page,
    "unit_words": unit_words,
}
"""How templates write values; the words themselves are those of `reports.wording`."""


def render(template: str, path: str, **values: object) -> SiteFile:
    """Render a template as the page at `path`; `root` leads from there to the root of the site."""
    root = "../" * path.count("/")
    shared = {"root": root, "path": path, "navigation": NAVIGATION}
    text = jinja_environment().get_template(template).render(**shared, **values)
    return SiteFile(path, _mark_unprintable(text).encode())


def to_script(name: str, value: object, *, of: str = "") -> SiteFile:
    """Wrap data as a script, since a page opened from a file cannot fetch JSON.

    `name` is what pages load it by: `knickpoint.load(name)`; `of` is the page that it comes and goes
    with, if its batch does not name it. Floats that are not finite are refused.
    """
    text = f"knickpoint.receive({json.dumps(name)},{_mark_unprintable(_write_json(value))});\n"
    return SiteFile(data_path(name), text.encode(), of)


def _write_json(value: object) -> str:
    """Write JSON by what takes a seventh of the time of `json`, which has the word in all doubt."""
    with suppress(ValueError):  # a half of a pair
        content = to_json(value)
        if b"NaN" not in content and b"Infinity" not in content:
            return content.decode()
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _mark_unprintable(text: str) -> str:
    """Show a sign in place of each character that no page may hold, or that turns the text about it."""
    # Searching takes twice as long as asking whether there is anything to find.
    if text.replace("\n", "").replace("\N{NO-BREAK SPACE}", "").isprintable():
        return text
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def static_batch() -> Batch:
    """Return the script, the style sheet and the icon of a site, which change with the code alone."""
    paths = ("static/icon.svg", "static/style.css", "static/knickpoint.js")
    return Batch(
        dict.fromkeys(paths, f"vl-convert {version('vl-convert-python')}"), lambda _: static_files()
    )


def static_files() -> Iterator[SiteFile]:
    """Yield the files of `static_batch`."""
    yield SiteFile("static/icon.svg", (_SHARED / "static" / "icon.svg").read_bytes())
    yield SiteFile("static/style.css", _join(".css", _FIRST_STYLE))
    yield SiteFile("static/knickpoint.js", bundle_charts() + b"\n" + _join(".js", _FIRST_SCRIPT))


@cache
def bundle_charts() -> bytes:
    """Return Vega, Vega-Lite and Vega-Embed as one classic script; the cache keeps it.

    To bundle them takes one to two seconds, a fifth of a first site of 500 series.
    """
    of = f"{version('vl-convert-python')}\n{_SNIPPET}"
    kept = cache_dir() / "scripts" / f"{_digest(of)}.js"
    with suppress(OSError):
        return kept.read_bytes()
    bundle: str = vl_convert.javascript_bundle(_SNIPPET)
    with suppress(OSError):  # without a cache it is made again, no more
        durable.atomic_write(kept, bundle.encode())
    return bundle.encode()


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


@cache
def _join(suffix: str, first: str) -> bytes:
    """Join the sources with that suffix: `first`, the other shared ones, those of the pages."""
    shared, *pages = (
        sorted(folder.glob(f"*{suffix}"), key=lambda one: (one.name != first, one.name))
        for folder in (
            _SHARED / "static",
            *sorted(path.parent for path in _PAGES.glob("*/page.py")),
        )
    )
    return b"\n".join(one.read_bytes() for one in (*shared, *chain.from_iterable(pages)))


@cache
def jinja_environment() -> Environment:
    """Return what renders the templates of all pages."""
    # Compiled templates are code, and whoever may write the cache could plant it: none is kept there.
    environment = Environment(
        loader=FileSystemLoader([_SHARED / "templates", *sorted(_PAGES.glob("*/"))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(_FILTERS)
    return environment
