"""What a comment asks for: only what has the shape of our own words goes on, all else is shown."""

import re
from pathlib import Path

import cmarkgfm
import pytest
from budget import tries
from cmarkgfm.cmark import Options
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from reports.pull_requests.asking import (
    USAGE,
    Help,
    Limits,
    Mistake,
    Start,
    read_asked,
    say_failed,
    say_refused,
    say_started,
    say_usage,
)

WORKFLOWS = Path(__file__).parents[3] / ".github/workflows"
LIMITS = Limits(measure=240, bisect=480)
WORDS = (
    *("/knickpoint", "measure", "bisect", "help", "--suite", "--minutes", "--experiment", "--metric"),
    *("nightly", "30", "3f9a1c20", "cassandra", "5.0.2..5.0.9", "steady/write/response_time/p99"),
    *("--suite=nightly", "-", "--", "=", "..", "$(id)", "`id`", "${{ secrets.X }}", "@all", "\n", "'"),
)
VALUE = re.compile(r"[a-z0-9]+([._/-]{1,2}[0-9A-Za-z]+)*")


def render(text: str) -> str:
    return cmarkgfm.github_flavored_markdown_to_html(text, Options.CMARK_OPT_UNSAFE)


def ask(body: str) -> object:
    return read_asked(body, LIMITS)


@pytest.mark.parametrize(
    ("body", "workflow", "inputs"),
    [
        ("/knickpoint measure", "candidate.yml", {"minutes": "240"}),
        (
            "/knickpoint measure --minutes 30 --suite=nightly\r\nplease",
            "candidate.yml",
            {"minutes": "30", "suite": "nightly"},
        ),
        ("/knickpoint bisect 3f9a1c20", "bisect.yml", {"incident": "3f9a1c20", "minutes": "480"}),
        ("/knickpoint measure --attribute", "candidate.yml", {"minutes": "240", "attribute": "true"}),
        (
            "/knickpoint bisect --suite one cassandra 5.0-rc1..5.0.9 --experiment=e-1 --metric p/w/r/p",
            "bisect.yml",
            {
                "system": "cassandra",
                "span": "5.0-rc1..5.0.9",
                "experiment": "e-1",
                "metric": "p/w/r/p",
                "minutes": "480",
                "suite": "one",
            },
        ),
    ],
)
def test_what_is_asked_becomes_inputs(body: str, workflow: str, inputs: dict[str, str]) -> None:
    asked = ask(body)
    assert isinstance(asked, Start)
    assert (asked.workflow, asked.inputs) == (workflow, inputs)
    assert f"{inputs['minutes']} minutes" in asked.what


@pytest.mark.parametrize("workflow", ["bisect.yml", "candidate.yml"])
def test_the_workflows_take_these_inputs(workflow: str) -> None:
    text = (WORKFLOWS / workflow).read_text()
    declared = YAML(typ="safe", pure=True).load(text)["on"]["workflow_dispatch"]["inputs"]
    sent = {"minutes", "suite"}
    of_pull = {"pull", "sha", "stranger"} if workflow == "candidate.yml" else set()
    of_bisect = {"incident", "system", "span", "experiment", "metric"}
    sent |= {"attribute", *of_pull} if workflow == "candidate.yml" else of_bisect
    assert sent == set(declared)
    required = {name for name, one in declared.items() if one.get("required")}
    assert required <= of_pull


@pytest.mark.parametrize(
    "body",
    [
        "",
        "\n/knickpoint measure",
        " /knickpoint measure",
        "/knickpoints",
        "see /knickpoint measure",
        "x",
    ],
)
def test_what_is_not_meant_for_us_is_nothing(body: str) -> None:
    assert ask(body) is None


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("mesure", "none of measure"),
        ("measure now", "takes options only"),
        ("measure --suite", "no name"),
        ("measure --suite ../x", "no name"),
        ("measure --suite Nightly", "no name"),
        ("measure --minutes 0", "no whole number"),
        ("measure --minutes ٣", "no whole number"),
        ("measure --minutes 241", "at most 240"),
        ("measure --minutes 1 --minutes 2", "given twice"),
        ("measure --suite=a --base=x", "no option here"),
        ("bisect", "takes an incident"),
        ("bisect 3f9a1c2", "no incident"),
        ("bisect 3f9a1c20 --metric throughput", "takes an incident"),
        ("bisect cassandra 5.0.2..5.0.9", "takes an incident"),
        ("bisect cassandra 5.0.2 --experiment e --metric m", "no range"),
        ("bisect cassandra 5.0.2..$(id) --experiment e --metric m", "no range"),
        ("bisect cassandra 5.0.2..5.0.9 --experiment e --metric ../../m/n/o", "is not METRIC"),
        ("x" * 400, "at most 300"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_starts(rest: str, why: str) -> None:
    asked = ask(f"/knickpoint {rest}")
    assert isinstance(asked, Mistake)
    assert why in asked.why
    assert USAGE in say_usage(asked.why)


@settings(max_examples=tries(300), derandomize=True)
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=12)), max_size=9))
def test_no_comment_puts_anything_but_names_and_numbers_into_an_input(words: list[str]) -> None:
    body = " ".join(["/knickpoint", *words])
    asked = ask(body)
    assert asked is not None or body.split()[:1] != ["/knickpoint"]
    if isinstance(asked, Start):
        assert all(VALUE.fullmatch(value) for value in asked.inputs.values()), asked.inputs
    elif isinstance(asked, Mistake):
        page = render(say_usage(asked.why))
        assert re.findall(r"<(?!/?(?:p|code|pre|br)\b)", page) == []
    else:
        assert asked is None or isinstance(asked, Help)


HOSTILE = "[x](https://evil.example) <img src=x> @admin #1 ![y](z)"


def test_no_text_of_others_becomes_a_link_or_a_mention() -> None:
    mistake = ask(f"/knickpoint {HOSTILE.replace(' ', '_')}")
    assert isinstance(mistake, Mistake)
    start = ask("/knickpoint measure")
    assert isinstance(start, Start)
    for text in (say_usage(mistake.why), say_refused("someone"), say_failed(start, HOSTILE)):
        page = render(text)
        assert "<a " not in page
        assert "<img" not in page
        outside = re.sub(r"<(code|pre)\b.*?</\1>", "", page, flags=re.DOTALL)
        assert not re.search(r"@\w", outside)


def test_the_answer_links_the_run_or_all_runs() -> None:
    start = ask("/knickpoint bisect 3f9a1c20")
    assert isinstance(start, Start)
    assert "(https://h/runs/1)" in say_started(start, "https://h/runs", "https://h/runs/1")
    assert "[the runs of bisect.yml](https://h/runs)" in say_started(start, "https://h/runs", "")
