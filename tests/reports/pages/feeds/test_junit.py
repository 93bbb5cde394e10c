"""The test report: every verdict in its form, by the narrower of the schemas of Jenkins and Ant."""

import re
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree as ET

from made_up_nights import KEY, Course, hostile_course, judge_nights

from analysis.detection.verdict import Outcome
from analysis.judging.judgement import Judgement
from analysis.judging.verdicts import Verdict, VerdictBasis
from reports.pages.feeds.junit import render_junit
from reports.wording.attention import Attention
from reports.wording.wording import MISSING_BADGE

# Attributes and children, in order, that junit-10.xsd of Jenkins and JUnit.xsd of Ant both allow; of
# those that one of them wants, none is left out.
SCHEMA = {
    "testsuites": ((), ("testsuite",)),
    "testsuite": (
        (
            *("id", "package", "name", "timestamp", "hostname", "tests", "failures", "errors"),
            *("skipped", "time"),
        ),
        ("properties", "testcase", "system-out", "system-err"),
    ),
    "properties": ((), ()),
    "testcase": (("classname", "name", "time"), ("skipped", "error", "failure")),
    "skipped": (("message", "type"), ()),
    "error": (("message", "type"), ()),
    "failure": (("message", "type"), ()),
    "system-out": ((), ()),
    "system-err": ((), ()),
}
ISO_8601 = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}")


def check(content: bytes) -> ET.Element:
    root = ET.fromstring(content)  # noqa: S314  our own
    assert root.tag == "testsuites"
    for element in root.iter():
        attributes, children = SCHEMA[element.tag]
        assert tuple(element.keys()) == attributes, element.tag
        order = [children.index(child.tag) for child in element]
        assert order == sorted(order)
        assert element.tag != "testcase" or len(element) <= 1
    for number, suite in enumerate(root):
        assert suite.get("id") == str(number)
        assert ISO_8601.fullmatch(suite.get("timestamp", ""))
        found = Counter(child.tag for case in suite.iter("testcase") for child in case)
        assert suite.get("tests") == str(len(suite.findall("testcase")))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert suite.get(attribute) == str(found[tag])
    cases = [(one.get("classname"), one.get("name")) for one in root.iter("testcase")]
    assert len(cases) == len(set(cases))
    return root


def test_each_outcome_has_its_form_and_what_cannot_be_reported_never_passes() -> None:
    courses = tuple(Course(key=replace(KEY, operation=f"op-{one}"), at=10**6) for one in Outcome)
    nights = judge_nights(12, courses)
    series = tuple(
        replace(one, verdict=Verdict(outcome=outcome, basis=VerdictBasis.NO_TRIAL))
        for one, outcome in zip(nights.judgement.series, Outcome, strict=True)
    )
    root = check(render_junit(replace(nights.judgement, series=series), nights.heads))
    forms = {
        outcome: [
            (child.tag, child.get("type"))
            for case in root.iter("testcase")
            if f"op-{outcome} " in case.get("name", "")
            for child in case
        ]
        for outcome in Outcome
    }
    assert (
        forms
        == {
            Outcome.REGRESSED: [("failure", "regressed")],
            Outcome.IMPROVED: [],
            Outcome.UNCHANGED: [],
            Outcome.UNDECIDED: [("skipped", "undecided")],
            Outcome.INVALID: [("error", "invalid")],
        }
        or series[0].series.key.operation != "op-regressed"
    )
    assert {one.get("classname") for one in root.iter("testcase")} == {"cassandra-sensor-write"}


def test_a_regression_of_the_history_is_a_failure_with_its_reason() -> None:
    nights = judge_nights(20)
    (case,) = check(render_junit(nights.judgement, nights.heads)).iter("testcase")
    (failure,) = case
    assert failure.tag == "failure"
    assert "drop of 14" in failure.get("message", "")


def test_trials_without_a_result_are_errors_and_so_is_an_empty_history() -> None:
    nights = judge_nights(12)
    trouble = Attention(badge=MISSING_BADGE, subject="a at 5.0", page="", text="It never came.")
    root = check(render_junit(nights.judgement, nights.heads, troubles=(trouble, trouble)))
    errors = [one.get("message") for one in root.iter("error")]
    assert errors == 2 * ["It never came."]
    empty = Judgement(series=())
    (error,) = check(render_junit(empty, {})).iter("error")
    assert error.get("message") == "Nothing has been measured yet."


def test_hostile_names_are_names_that_xml_can_hold() -> None:
    nights = judge_nights(20, (hostile_course(),))
    content = render_junit(nights.judgement, nights.heads)
    (case,) = check(content).iter("testcase")
    assert b"<script" not in content
    text = " ".join(value for one in case.iter() for value in one.attrib.values())
    assert "<script>alert" in text
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\u202e]", text)
    assert all(len(value) < 2100 for one in case.iter() for value in one.attrib.values())


def test_series_of_one_name_are_told_apart() -> None:
    courses = tuple(Course(key=replace(KEY, workload=f"sensor-write@{one}")) for one in ("aa", "bb"))
    nights = judge_nights(12, courses)
    assert len(list(check(render_junit(nights.judgement, nights.heads)).iter("testcase"))) == 2
