"""`comment`, given what no honest run of `candidate` leaves: other titles, other files."""

from collections.abc import Callable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from act_runner import Done
from actions_server import Forge
from made_up_comparison import REGRESSED

from analysis.comparing.results import write_comparisons

HEAD = "0123456789abcdef0123456789abcdef01234567"
TITLE = f"candidate of pull request 7 at {HEAD}"
Report = Callable[..., Done]


@pytest.mark.slow
@pytest.mark.parametrize(
    "title",
    [
        f"{TITLE}; touch /tmp/owned",
        f"{TITLE}\nnumber=8",
        f"candidate of pull request $(id) at {HEAD}",
        "candidate of pull request 7 at main",
    ],
)
def test_a_title_that_candidate_does_not_write_is_refused(
    forge: Forge, report: Report, title: str
) -> None:
    done = report(5, HEAD, display_title=title)
    assert done.jobs == {"comment": "failure"}, done.log
    assert forge.asked == []
    assert not Path("/tmp/owned").exists()  # noqa: S108  what the first title asks for


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"path": ".github/workflows/evil.yml"},
        {"event": "pull_request"},
        {"event": "workflow_dispatch", "head_branch": "evil"},
        {"conclusion": "skipped"},
    ],
    ids=str,
)
def test_a_run_of_anything_else_is_not_looked_at(
    forge: Forge, report: Report, change: dict[str, str]
) -> None:
    done = report(5, HEAD, **change)
    assert (done.code, done.jobs) == (0, {}), done.log
    assert forge.asked == []


@pytest.mark.slow
def test_a_run_without_a_result_is_reported_as_our_failure(forge: Forge, report: Report) -> None:
    forge.head = HEAD
    done = report(5, HEAD, conclusion="cancelled")
    assert done.jobs == {"comment": "success"}, done.log
    (check,) = forge.runs.values()
    assert (check["status"], check["conclusion"]) == ("completed", "failure")
    assert check["head_sha"] == HEAD
    assert "the run ended as cancelled and left no result" in check["output"]["title"]


def make_zip(path: Path, files: dict[str, bytes]) -> None:
    path.parent.mkdir(parents=True)
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


@pytest.mark.slow
@pytest.mark.parametrize(
    "files",
    [
        {"../../comparison.json": b"{}"},
        {"comparison.json": b"{}", "comment.md": b"@everyone"},
        {"comparison.json": b""},  # it grows in the test: nobody else needs 900 MB of memory
        {"comparison.json": write_comparisons(REGRESSED)},
    ],
    ids=["a way out", "a second file", "a bomb", "about another commit"],
)
def test_a_hostile_result_is_refused_and_the_check_says_so(
    forge: Forge, report: Report, files: dict[str, bytes]
) -> None:
    forge.head = HEAD
    whole = {name: content or b" " * 900_000_000 for name, content in files.items()}
    make_zip(forge.store / "5/comparison.zip", whole)
    done = report(5, HEAD)
    assert done.jobs == {"comment": "failure"}, done.log
    assert done.steps["Report the result"] == "failure"
    assert forge.leaked == []
    (check,) = forge.runs.values()
    assert (check["head_sha"], check["conclusion"]) == (HEAD, "failure")
    assert "everyone" not in "".join(forge.shown)
    assert "regress" not in check["output"]["title"].lower()
