"""The made-up history with a hostile name for every name: markup, length, controls, direction."""
# ruff: noqa: ANN401  any value may hold a name

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from analysis.detection.series import Points
from perf.model.results import Trial
from reports.site.context import SiteContext

SCRIPT = "<script>alert('pwned')</script>"
NAMES = {
    "5.0.1": SCRIPT,
    "5.0.2": "9" * 10_000,
    "5.0.3": "\u202e3.0.5\u2066 💥👩🏽‍🚀 \x00\x07\x9b31m",
    "5.0": "../../../../etc/passwd%00#?&",
    "cassandra": "קסנדרה\" onmouseover='alert(1)' x=`1`",
    "cassandra-sensor-write": "</title></script><img src=x onerror=alert(1)>" + "w" * 300,
    "cassandra-sensor-read": "C:\\..\\con\u2028\u2029\r\n|pipe|`tick`[l](javascript:alert(1))",
    "sensor-write": "{{ 7 * 7 }}{% raw %}${alert(1)}=cmd|'/c calc'!A1",
    "sensor-read": "&lt;b&gt;&amp;amp; zalgo: Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!͖̬̰̙̗̿̋ͥͥ̂ͣ̐́́͜͞",
    "local-three": "\ufeff\u200b\u200f",
    "default": "constructor __proto__ toString",
    "local": "<!-- --><![CDATA[ ]]>",
    "localhost": "\x1b]8;;http://example.org\x07host\x1b]8;;\x07",
    "node-1": "n" * 2000,
    "kernel": "-->'\"><svg/onload=alert(1)>",
}


def rename(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value in which every string that is a known name is another one, at any depth."""
    if type(value) is str:
        name, at, digest = value.partition("@")
        return names.get(value) or (f"{names.get(name, name)}@{digest}" if at else value)
    if isinstance(value, Points):
        return Points.of(rename(one, names) for one in value)
    if isinstance(value, tuple | list):
        return tuple(rename(one, names) for one in value)
    if isinstance(value, Mapping):
        return {rename(key, names): rename(one, names) for key, one in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {
            field.name: rename(getattr(value, field.name), names)
            for field in dataclasses.fields(value)
            if field.init
        }
        return dataclasses.replace(value, **changed)
    return value


def make_hostile(context: SiteContext, trials: Iterable[Trial]) -> SiteContext:
    """Return a context in which releases, systems, experiments, hosts, nights, trials are named so."""
    all_trials = tuple(trials)
    nights = {trial.night: f"{SCRIPT}{trial.night}\u202e../#{trial.night}" for trial in all_trials}
    ids = {
        trial.id: f"../{place}/{SCRIPT}\u202e\x00{'x' * 300}" for place, trial in enumerate(all_trials)
    }
    names = {**NAMES, **nights, **ids}
    parts = ("heads", "digests", "archive", "judgement", "nights", "comparisons", "bisections")
    renamed = {part: rename(getattr(context, part), names) for part in parts}
    reports = rename(context.catalog.reports, names)
    catalog = dataclasses.replace(context.catalog, reports=reports)
    return dataclasses.replace(context, **renamed, catalog=catalog)
