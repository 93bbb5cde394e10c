"""One experiment as one HTML file: the pages of the site inside of it, one shown at a time."""

import hashlib
import html
import os
import re
import tempfile
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from glob import escape
from importlib.resources import files
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from markupsafe import Markup

from analysis.detection.series import Series
from analysis.judging.echoes import without_echoes
from perf.local import disk
from perf.model.errors import SiteError, UsageError
from reports.pages.front.experiments import view_experiments
from reports.pages.incident import page as incidents
from reports.pages.method import page as method
from reports.pages.series import page as series
from reports.pages.trial import page as trials
from reports.site.context import SiteContext
from reports.site.rendering import render, static_files
from reports.site.writing import Batch, LazyBatches, SiteFile, flatten
from reports.wording.attention import view_incidents
from reports.wording.links import in_file, incident_page
from reports.wording.series_list import ExperimentGroup, group_series
from reports.wording.wording import (
    WATCH_BADGE,
    Badge,
    count,
    moment,
    sentence,
)

_GENERATOR = "knickpoint report --single-file"
_TAG = f'<meta name="generator" content="{_GENERATOR}">'
"""What its files are known by, near their beginning."""
_NEAR = 4096
_WITH_CURVES = 20
"""Trials that bring their curves along: a file for a mail stays small."""
_LINK = re.compile(
    r'<a\b(?P<before>[^>]*?)\shref="(?P<href>[^"]*)"(?P<after>[^>]*)>(?P<text>.*?)</a>', re.DOTALL
)
_MAIN = re.compile(r'<main id="main">(.*)</main>', re.DOTALL)
_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
_DATA = re.compile(r"^knickpoint\.receive\((.*)\);$", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """A page of the site, to be carried: its path, title and main part."""

    path: str
    title: str
    main: Markup


def write_single_file(context: SiteContext, experiment: str, target: Path) -> None:
    """Write all that is known of an experiment as one HTML file, in one step.

    Raises:
        SiteError: the operating system refuses.
        UsageError: there is no such experiment, or `target` is another file than one of these.

    """
    check_target_file(target)
    content = render_single_file(context, experiment)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".new-{target.name}-"
        for left in target.parent.glob(f"{escape(prefix)}*.html"):  # by a report that was killed
            left.unlink()
        handle, aside = tempfile.mkstemp(prefix=prefix, suffix=".html", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            Path(aside).chmod(0o644)
            Path(aside).replace(target)
        finally:
            Path(aside).unlink(missing_ok=True)
    except OSError as error:
        raise SiteError(
            f"{target} cannot be written: {disk.explain(error)}; or choose another place with --output"
        ) from error


def check_target_file(target: Path) -> None:
    """Refuse a directory, and a file that no earlier report wrote.

    Raises:
        UsageError: it is one of these.

    """
    if target.is_dir():
        raise UsageError(
            f"{target} is a directory, and --single-file writes one file; name it, "
            f"for example: --output {target / 'experiment.html'}"
        )
    if target.exists() and not _is_ours(target):
        raise UsageError(
            f"{target} is a file that Knickpoint did not write; give --output a new name, or remove it"
        )


def _is_ours(target: Path) -> bool:
    """Describe by the whole tag: the words alone stand in any text that explains the command."""
    if not target.is_file():  # a pipe would be waited for
        return False
    with target.open("rb") as file:
        beginning = file.read(_NEAR)
    return beginning.startswith(b"<!doctype html>") and _TAG.encode() in beginning


def render_single_file(context: SiteContext, experiment: str) -> bytes:
    """Return the file of an experiment.

    Raises:
        UsageError: no trial of such an experiment is in the history.

    """
    known = sorted({head.experiment for head in context.heads.values()})
    if experiment not in known:
        raise UsageError(
            f"no experiment {experiment!r} was ever measured; "
            + (f"there is: {', '.join(known)}" if known else "the history is empty")
        )
    part = _narrow(context, experiment)
    keys = {one.series.key for one in part.judgement.series}
    reported = [
        one
        for one in context.judgement.incidents
        if keys & {change.series.key for change in one.changes}
    ]
    made = [
        *_make_all(series.batches(part)),
        *_make_all(trials.batches(part, _WITH_CURVES)),
        *_make_all(method.batches(part)),
        *_pick(incidents.batches(context), {incident_page(one.name) for one in reported}),
    ]
    groups = group_series(part.judgement.series, part.heads)
    counted = group_series(without_echoes(part.judgement.series), part.heads)
    pages = [file for file in made if file.path.endswith(".html")]
    paths = {file.path for file in pages}
    carried = [_carry(file, paths) for file in sorted(pages, key=lambda file: file.path)]
    scripts = tuple(map(_for_inside, _scripts(file for file in made if file.path.endswith(".js"))))
    style = _for_inside(_static()["static/style.css"])
    return render(
        "single_file.html",
        f"{experiment}.html",
        experiment=experiment,
        generator=Markup(_TAG),  # noqa: S704  our own
        style_hash=_hash(style),
        script_hashes=Markup(" ").join(Markup("'{}'").format(_hash(script)) for script in scripts),
        style=style,
        scripts=scripts,
        pages=carried,
        verdict=_find_verdict(counted, experiment),
        summary=_summarize(part, counted, count(len(reported), "incident")),
        newest=moment(max(head.finished_at for head in part.heads.values())),
        built=moment(context.now),
        caveats=sorted({context.caveats.get(one.testbed.name, "") for one in part.heads.values()}),
        series=[judged for group in groups for judged in group.series],
        incidents=[
            (f"{one.subject}: {one.text}", one.page)
            for one in view_incidents(reported, context.heads, context.settings)
        ],
        trials=sorted(part.heads.values(), key=lambda head: (head.started_at, head.id), reverse=True),
    ).content


def _find_verdict(groups: Sequence[ExperimentGroup], experiment: str) -> Badge:
    """Return the worst verdict of its series in a word."""
    named = [group for group in groups if group.name == experiment]
    (line,) = view_experiments(named, {}, ()) or (None,)
    return line.verdict if line else WATCH_BADGE


def _summarize(part: SiteContext, groups: Sequence[ExperimentGroup], incidents: str) -> str:
    """Describe what its series came to, and on how much that rests."""
    reported = ", ".join(line.counts for line in view_experiments(groups, {}, ()))
    series = count(sum(len(one.series) for one in groups), "series", "series")
    verdict = f"of {series}, {reported}" if reported else "none of its series is judged"
    return sentence(f"{verdict}; {incidents}, {count(len(part.heads), 'trial')}")


def _narrow(context: SiteContext, experiment: str) -> SiteContext:
    """Return a context of one experiment alone, whose incidents are still those of all."""
    heads = {one: head for one, head in context.heads.items() if head.experiment == experiment}
    # A series without a point has no trial that tells, but its key says what was to be measured.
    measured = {
        (
            head.release.system,
            head.topology.name,
            head.config.name,
            f"{head.workload.name}@{head.workload.sha256}",
        )
        for head in heads.values()
    }

    def is_part(series: Series) -> bool:
        key = series.key
        if series.points:
            return series.points[-1].trial in heads
        return (key.system, key.topology, key.config, key.workload) in measured

    judged = tuple(one for one in context.judgement.series if is_part(one.series))
    judgement = replace(context.judgement, series=judged, watched=())
    # A file holds all of its trials, however old: no page of a night is in it.
    return replace(context, heads=heads, judgement=judgement, bundles=None, old_trials={})


def _make_all(batches: Iterable[Batch | LazyBatches]) -> Iterator[SiteFile]:
    for batch in flatten(batches):
        yield from batch.make(batch.versions)


def _pick(batches: Iterable[Batch | LazyBatches], paths: Collection[str]) -> Iterator[SiteFile]:
    for batch in flatten(batches):
        if wanted := paths & batch.versions.keys():
            yield from (file for file in batch.make(wanted) if file.path in wanted)


def _carry(file: SiteFile, paths: Collection[str]) -> _Page:
    """Take the main part of a page; links that would leave the file become text."""
    text = file.content.decode()
    main, title = _MAIN.search(text), _TITLE.search(text)
    if main is None or title is None:
        raise ValueError(f"{file.path} is not a page of this site")

    def turn(link: re.Match[str]) -> str:
        path, _, fragment = html.unescape(link["href"]).partition("#")
        place = os.path.normpath(PurePosixPath(file.path).parent / unquote(path)) if path else file.path
        if link["href"].startswith("https://"):
            return link[0]
        if place not in paths:
            return f"<span{link['before']}{link['after']}>{link['text']}</span>"
        href = html.escape(in_file(place, fragment))
        return f'<a{link["before"]} href="{href}"{link["after"]}>{link["text"]}</a>'

    return _Page(
        path=file.path,
        title=html.unescape(title[1]),
        main=Markup(_LINK.sub(turn, main[1])),  # noqa: S704  rendered by our own templates
    )


def _scripts(data: Iterable[SiteFile]) -> Iterator[str]:
    """Yield the scripts in their order: which page is shown, the data of all pages, what uses both."""
    yield (files("reports.pages.single_file") / "single_file.js").read_text(encoding="utf-8")
    carried = []
    for file in data:
        call = _DATA.match(file.content.decode().strip())
        if call is None:
            raise ValueError(f"{file.path} carries no data")
        carried.append(f"[{call[1]}]")
    # In JSON "<" stands in texts only, and no text may end the script.
    yield f"window.knickpointCarried = [{','.join(carried)}];".replace("<", "\\u003c")
    yield _static()["static/knickpoint.js"]


def _static() -> Mapping[str, str]:
    return {file.path: file.content.decode() for file in static_files()}


def _for_inside(text: str) -> Markup:
    """Keep a script or a style sheet from ending its element."""
    safe = (
        text.replace("</script", "<\\/script").replace("<!--", "<\\!--").replace("</style", "<\\/style")
    )
    return Markup(safe)  # noqa: S704  our own files, and data whose every "<" is escaped


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
