"""JUnit XML of the verdicts, for build servers that read test reports. Pure.

One test case per judged series: a regression is a failure, what could not be judged an error, what
cannot be judged is skipped with its reason. Only what is shown unchanged or improved passes. Trials of
the newest night that gave no result are errors of their own: they may have left no series behind.

The form is the narrower one of two schemas: that of Jenkins (junit-10.xsd of its xUnit plugin) and that
of Ant (JUnit.xsd), so that both read it.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from analysis.detection.verdict import Outcome
from analysis.judging.description import say_judgement, say_reason
from analysis.judging.judgement import JudgedSeries, Judgement
from analysis.orchestration.setting_words import NO_SETTINGS, ChangedSettings, name_settings
from perf.model.results import SeriesKey, TrialHead, TrialId
from reports.wording.attention import Attention
from reports.wording.links import series_stem
from reports.wording.markdown import line
from reports.wording.series_list import experiment_of
from reports.wording.wording import sentence, series_words

PATH = "junit.xml"
"""Relative to the root of the site."""
_TAGS = {Outcome.REGRESSED: "failure", Outcome.INVALID: "error", Outcome.UNDECIDED: "skipped"}
"""What is not here passes."""
_COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}
_SUITE = "knickpoint"
_MOST_NAME = 300
_MOST_REASON = 2000
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def render_junit(
    judgement: Judgement,
    by_id: Mapping[TrialId, TrialHead],
    *,
    troubles: Sequence[Attention] = (),
    measured_at: datetime | None = None,
    settings: ChangedSettings = NO_SETTINGS,
) -> bytes:
    """Write the report: a test suite for each experiment.

    `troubles` are the trials of the newest night without a result, `measured_at` when anything was
    measured last: a report says the same whenever it is made. `settings` are those that changed.
    """
    suites: defaultdict[str, list[ET.Element]] = defaultdict(list)
    in_words = name_settings(settings)
    for judged, name in zip(judgement.series, _name_all(judgement.series), strict=True):
        experiment = line(experiment_of(judged, by_id), _MOST_NAME)
        verdict = judged.verdict
        tag, said = _TAGS.get(verdict.outcome, ""), sentence(say_reason(judged, in_words))
        suites[experiment].append(_case(experiment, name, tag, verdict.outcome, said))
    for number, trouble in enumerate(troubles, start=1):
        name = line(f"Trial {number} of the newest night: {trouble.subject}", _MOST_NAME)
        suites[_SUITE].append(_case(_SUITE, name, "error", trouble.badge.word, trouble.text))
    if not judgement.series:
        reason = sentence(say_judgement(judgement))
        suites[_SUITE].append(_case(_SUITE, "Something was judged", "error", Outcome.INVALID, reason))
    root = ET.Element("testsuites")
    for number, (name, cases) in enumerate(sorted(suites.items())):
        root.append(_suite(number, name, cases, measured_at or _NEVER))
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _name_all(series: Sequence[JudgedSeries]) -> Sequence[str]:
    """Name each series; those that would be named alike by a hash, too."""
    names = [_name(one.series.key) for one in series]
    repeated = {name for name, number in Counter(names).items() if number > 1}
    return [
        f"{name} [{series_stem(one.series.key)[-8:]}]" if name in repeated else name
        for name, one in zip(names, series, strict=True)
    ]


def _name(key: SeriesKey) -> str:
    what = series_words(key)
    return line(
        f"{what} ({key.system} {key.line}, {key.topology}, {key.config},"
        f" {key.workload_name}, {key.engine})",
        _MOST_NAME,
    )


def _case(classname: str, name: str, tag: str, kind: str, reason: str) -> ET.Element:
    case = ET.Element("testcase", {"classname": classname, "name": name, "time": "0"})
    if tag:
        reported = {"message": line(reason, _MOST_REASON), "type": kind}
        ET.SubElement(case, tag, reported)
    return case


def _suite(number: int, name: str, cases: Sequence[ET.Element], measured_at: datetime) -> ET.Element:
    found = Counter(child.tag for case in cases for child in case)
    suite = ET.Element(
        "testsuite",
        {
            "id": str(number),
            "package": _SUITE,
            "name": name,
            "timestamp": measured_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
            "hostname": "localhost",  # Ant wants one; hosts are named by the trials of a series
            "tests": str(len(cases)),
            **{attribute: str(found[tag]) for tag, attribute in _COUNTED.items()},
            "time": "0",
        },
    )
    ET.SubElement(suite, "properties")
    suite.extend(cases)
    ET.SubElement(suite, "system-out")
    ET.SubElement(suite, "system-err")
    return suite
