"""The sticky comment and the check run, decided without GitHub."""

import dataclasses

import made_up_comparison as made_up
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.comparing.results import ComparisonFile
from analysis.detection.verdict import Outcome
from perf.model.results import TrialStatus
from reports.pull_requests.comment import render_comment
from reports.pull_requests.posting import (
    Check,
    CheckUpdate,
    Create,
    Edit,
    Existing,
    ExistingRun,
    Message,
    Minimise,
    Post,
    conclude_check,
    find_findings,
    find_own,
    has_result,
    plan_check,
    plan_comment,
    start_check,
)
from reports.wording.markdown import MARKED_NAME

HEAD = made_up.HEAD.sha
LATER = "f" * 40
US = "github-actions[bot]"


def message(
    outcome: Outcome,
    text: str = "",
    *,
    sha: str = HEAD,
    head: str = HEAD,
    findings: tuple[str, ...] = (),
) -> Message:
    return Message(
        name="candidate",
        outcome=outcome,
        sha=sha,
        head=head,
        text=text or f"It {outcome}.",
        findings=findings,
    )


def written(reported: Message, number: int = 1, author: str = US, **changes: bool) -> Existing:
    return Existing(id=number, author=author, body=reported.body, **changes)


@pytest.mark.parametrize(
    ("before", "after", "is_mailed"),
    [
        ("unchanged", "undecided", True),
        ("unchanged", "invalid", True),
        ("improved", "regressed", True),
        ("undecided", "invalid", True),
        ("undecided", "regressed", True),
        ("invalid", "regressed", True),
        ("regressed", "unchanged", False),
        ("invalid", "undecided", False),
        ("undecided", "improved", False),
        ("unchanged", "improved", False),
        ("improved", "unchanged", False),
        *((same.value, same.value, False) for same in Outcome),
    ],
)
def test_only_a_worse_state_is_a_new_comment(before: str, after: str, is_mailed: bool) -> None:  # noqa: FBT001
    old = written(message(Outcome(before)), 5)
    new = message(Outcome(after), "It is news.")
    mailed = (Post(body=new.body), Minimise(id=5))
    assert plan_comment([old], new) == (mailed if is_mailed else (Edit(id=5, body=new.body),))


def test_what_nobody_could_judge_leaves_the_finding_visible() -> None:
    finding = written(message(Outcome.REGRESSED), 5)
    unknown, other = message(Outcome.INVALID), message(Outcome.INVALID, "Another error.")
    assert plan_comment([finding], unknown) == (Post(body=unknown.body),)
    own = [written(message(Outcome.REGRESSED), 4), finding, written(unknown, 6)]
    assert plan_comment(own, unknown) == (Minimise(id=4),)
    assert plan_comment(own, other) == (Edit(id=6, body=other.body), Minimise(id=4))
    late = message(Outcome.REGRESSED, sha="a" * 40)
    assert plan_comment(own[1:], late) == ()
    judged = message(Outcome.UNCHANGED)
    assert plan_comment(own[1:], judged) == (Edit(id=6, body=judged.body), Minimise(id=5))
    again = message(Outcome.REGRESSED, "Still.")
    assert plan_comment(own[1:], again) == (Post(body=again.body), Minimise(id=5), Minimise(id=6))


def test_a_head_that_does_not_run_is_as_bad_as_a_regression() -> None:
    broken = message(Outcome.INVALID, findings=("suite one does not run",))
    regressed = message(Outcome.REGRESSED, findings=("suite one",))
    for before in (regressed, message(Outcome.UNCHANGED), message(Outcome.INVALID)):
        assert plan_comment([written(before)], broken) == (Post(body=broken.body), Minimise(id=1))
    assert plan_comment([written(broken)], regressed)[0] == Post(body=regressed.body)
    still = dataclasses.replace(broken, text="It fails with another text.")
    assert plan_comment([written(broken)], still) == (Edit(id=1, body=still.body),)
    unknown = message(Outcome.INVALID)
    assert plan_comment([written(broken)], unknown) == (Post(body=unknown.body),)


@pytest.mark.parametrize(
    ("before", "after", "is_mailed"),
    [
        (("a", "b"), ("a", "c"), True),
        (("a",), ("a", "b"), True),
        (("a", "b"), ("b", "a"), False),
        (("a", "b"), ("b",), False),
        (tuple(map(str, range(500))), tuple(map(str, range(1, 501))), True),
        (tuple(map(str, range(500))), tuple(map(str, reversed(range(500)))), False),
    ],
)
def test_a_finding_that_was_not_reported_yet_is_a_new_comment(
    before: tuple[str, ...],
    after: tuple[str, ...],
    is_mailed: bool,  # noqa: FBT001
) -> None:
    old = written(message(Outcome.REGRESSED, findings=before), 5)
    new = message(Outcome.REGRESSED, "Of the next commit.", findings=after)
    mailed = (Post(body=new.body), Minimise(id=5))
    assert plan_comment([old], new) == (mailed if is_mailed else (Edit(id=5, body=new.body),))
    assert len(new.body.partition("\n")[0]) < 4000


def test_findings_are_regressed_measures_and_what_does_not_run() -> None:
    name = "pull-request put-get-single"
    assert find_findings(made_up.REGRESSED) == (
        name,
        f"{name} {made_up.P99}",
        f"{name} {made_up.RATE}",
    )
    assert find_findings(made_up.FAILED) == (f"{name} does not run",)
    (failed,) = made_up.FAILED.comparisons
    both = tuple(dataclasses.replace(one, status=TrialStatus.FAILED) for one in failed.trials)
    neither = dataclasses.replace(failed, trials=both)  # the hosts may be at fault
    assert find_findings(dataclasses.replace(made_up.FAILED, comparisons=(neither,))) == ()
    for calm in (made_up.INVALID, made_up.PROBLEMS, made_up.UNDECIDED, made_up.IMPROVED):
        assert find_findings(calm) == ()


def test_what_somebody_minimised_is_not_edited() -> None:
    hidden = written(message(Outcome.REGRESSED), 5, is_minimised=True)
    new, calm = message(Outcome.REGRESSED, "Of the next commit."), message(Outcome.UNCHANGED)
    assert plan_comment([hidden], new) == (Post(body=new.body),)
    assert plan_comment([hidden], calm) == ()
    assert plan_comment([hidden], message(Outcome.REGRESSED)) == ()


@pytest.mark.parametrize("outcome", Outcome)
def test_first_comment_is_written_unless_nothing_changed(outcome: Outcome) -> None:
    reported = message(outcome)
    is_silent = outcome is Outcome.UNCHANGED
    assert plan_comment([], reported) == (() if is_silent else (Post(body=reported.body),))
    assert plan_comment([], reported, always=True) == (Post(body=reported.body),)


def test_no_change_now_still_replaces_the_regression_of_before() -> None:
    reported = message(Outcome.UNCHANGED)
    assert plan_comment([written(message(Outcome.REGRESSED))], reported) == (
        Edit(id=1, body=reported.body),
    )


@pytest.mark.parametrize("outcome", Outcome)
def test_reported_again_changes_nothing(outcome: Outcome) -> None:
    reported = message(outcome)
    assert plan_comment([written(reported)], reported, always=True) == ()


def test_of_several_the_newest_is_kept_and_the_others_are_minimised_once() -> None:
    reported = message(Outcome.REGRESSED)
    own = [
        written(message(Outcome.UNDECIDED), 1, is_minimised=True),
        written(message(Outcome.REGRESSED, "of another run"), 2),
        written(reported, 3),
    ]
    assert plan_comment(own, reported) == (Minimise(id=2),)
    better = message(Outcome.UNCHANGED)
    assert plan_comment(own, better) == (Edit(id=3, body=better.body), Minimise(id=2))


def test_result_about_an_older_commit_says_so_and_never_replaces_one_about_the_head() -> None:
    late = message(Outcome.REGRESSED, sha=HEAD, head=LATER)
    assert "About an older commit" in late.body.splitlines()[1]
    assert plan_comment([], late) == (Post(body=late.body),)
    of_head = written(message(Outcome.UNCHANGED, sha=LATER, head=LATER))
    assert plan_comment([of_head], late) == ()
    of_before = written(message(Outcome.UNCHANGED, sha="a" * 40, head="a" * 40))
    assert plan_comment([of_before], late)[0] == Post(body=late.body)


def test_comment_is_ours_only_with_marker_name_and_author() -> None:
    reported = message(Outcome.REGRESSED)
    ours = written(reported, 3)
    others = [
        written(reported, 1, author="mallory"),
        written(reported, 2, author="github-actions"),
        written(dataclasses.replace(reported, name="nightly"), 4),
        Existing(id=5, author=US, body=f"Look at this:\n{reported.body}"),
        Existing(id=6, author=US, body=reported.body.replace("state=regressed", "state=regressed x")),
        Existing(id=7, author=US, body=reported.body.replace("-->", "--> is the marker", 1)),
        Existing(id=9, author=US, body=""),
    ]
    newer = written(reported, 10)
    assert find_own([newer, ours, *others], "candidate", US) == (ours, newer)


@given(st.text(max_size=60))
def test_no_name_ends_the_marker(text: str) -> None:
    if MARKED_NAME.fullmatch(text):
        marker = dataclasses.replace(message(Outcome.REGRESSED), name=text).body.partition("\n")[0]
        assert marker.count("-->") == 1
        assert marker.endswith(" -->")


CONCLUSIONS = {
    "regressed": (made_up.REGRESSED, "failure", ""),
    "improved": (made_up.IMPROVED, "success", ""),
    "unchanged": (made_up.UNCHANGED, "success", ""),
    "nothing differed": (made_up.NOTHING, "success", ""),
    "undecided": (made_up.UNDECIDED, "neutral", "Cannot tell"),
    "invalid": (made_up.INVALID, "failure", ""),
    "failed": (
        dataclasses.replace(made_up.NOTHING, problems=("no  host\nanswered",)),
        "failure",
        "Knickpoint failed: no host answered",
    ),
    "failed in part": (
        dataclasses.replace(made_up.FAILED, problems=("another host did not answer",)),
        "failure",
        "Does not run",
    ),
}


@pytest.mark.parametrize("situation", CONCLUSIONS)
def test_check_says_what_it_came_to_in_its_title(situation: str) -> None:
    content, conclusion, title = CONCLUSIONS[situation]
    reported = message(content.outcome, render_comment(content))
    check = conclude_check(content, reported, "https://example.org/page")
    assert check.conclusion == conclusion
    assert check.title.startswith(title)
    assert check.title
    assert len(check.title) <= 250
    assert "\n" not in check.title


@pytest.mark.parametrize("content", made_up.SITUATIONS.values(), ids=made_up.SITUATIONS)
def test_all_that_can_be_said_fits(content: ComparisonFile) -> None:
    text = render_comment(content, site_url="https://e.org")
    reported = message(content.outcome, text, head=LATER, findings=find_findings(content))
    check = conclude_check(content, reported)
    assert len(reported.body) < 65_536
    assert len(check.summary) <= 65_535
    assert len(check.title) <= 250


def as_run(check: Check, number: int = 1, **changes: str) -> ExistingRun:
    run = ExistingRun(
        id=number,
        external_id=check.external_id,
        conclusion=check.conclusion,
        title=check.title,
        summary=check.summary,
        page_url=check.page_url,
    )
    return dataclasses.replace(run, **changes)


def test_check_run_is_created_once_then_updated_and_then_left_alone() -> None:
    start = start_check("candidate", HEAD)
    done = dataclasses.replace(start, conclusion="failure", title="Worse", summary="Much.")
    assert plan_check([], start) == Create()
    assert plan_check([as_run(start)], start) is None
    assert plan_check([as_run(start)], done) == CheckUpdate(1)
    assert plan_check([as_run(done)], done) is None
    assert plan_check([as_run(done)], dataclasses.replace(done, conclusion="neutral")) == CheckUpdate(1)
    assert plan_check([], done) == Create()
    elsewhere = as_run(done, page_url="https://github.com/example/configs/runs/1")
    assert plan_check([elsewhere], done) is None
    assert plan_check([elsewhere], dataclasses.replace(done, page_url="https://e.org")) == CheckUpdate(
        1
    )
    # Measured again: the finished run stays as it is, and the newer one is completed.
    assert plan_check([as_run(done)], start) == Create()
    assert plan_check([as_run(start, 2), as_run(done, 1)], done) == CheckUpdate(2)


def test_a_last_resort_only_concludes_what_is_in_progress() -> None:
    start = start_check("candidate", HEAD)
    done = dataclasses.replace(start, conclusion="success", title="Fine", summary="All.")
    failed = dataclasses.replace(done, conclusion="failure", title="We failed", is_last_resort=True)
    assert plan_check([], failed) == Create()
    assert plan_check([as_run(start)], failed) == CheckUpdate(1)
    assert plan_check([as_run(done)], failed) is None
    assert plan_check([as_run(done), as_run(start, 2)], failed) == CheckUpdate(2)
    assert has_result([as_run(done)], failed)
    for runs in ([], [as_run(start)], [as_run(failed)]):
        assert not has_result(runs, failed)
    assert not has_result([as_run(done)], dataclasses.replace(failed, is_last_resort=False))


def test_check_run_of_somebody_else_is_left_alone() -> None:
    start = start_check("candidate", HEAD)
    assert plan_check([as_run(start, external_id="")], start) == Create()
    assert plan_check([as_run(start, external_id="knickpoint:nightly")], start) == Create()
