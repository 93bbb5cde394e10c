"""The command from the file to GitHub: what it tells, what it refuses, and what it never prints."""

import dataclasses
import math
import zipfile
from collections.abc import Iterator
from pathlib import Path

import made_up_comparison as made_up
import pytest
from click.testing import CliRunner, Result
from github_server import HEAD, TOKEN, Fault, GitHub, serve

from analysis.comparing.results import (
    ComparisonFile,
    MeasureResult,
    Revision,
    read_comparisons,
    write_comparisons,
)
from perf.model.errors import GitHubError, InputError, UsageError
from reports.commands.comment import comment
from reports.pull_requests.comment import render_comment

LATER = "f" * 40
FORBIDDEN = "Resource not accessible by integration"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    with serve() as state:
        monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
        monkeypatch.delenv("KNICKPOINT_GITHUB_TOKEN", raising=False)
        monkeypatch.setenv("GITHUB_API_URL", state.url)
        yield state


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(comment, ["--repo", "example/configs", "--pr", "7", *arguments])
    assert TOKEN not in result.output + repr(result.exception)
    return result


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "comparison.json"


def give(path: Path, content: ComparisonFile) -> str:
    path.write_bytes(write_comparisons(content))
    return f"--comparison={path}"


def is_number(result: MeasureResult) -> bool:
    return result.effect is None or math.isfinite(result.effect.low)


def only_run(hub: GitHub) -> tuple[str, str, str]:
    (found,) = hub.runs.values()
    return found["status"], found["conclusion"], found["output"]["title"]


def test_from_measuring_to_the_result(hub: GitHub, path: Path) -> None:
    assert run("--start", "--sha", HEAD).exit_code == 0
    assert only_run(hub) == ("in_progress", None, "Measuring")
    assert hub.shown == []
    reported = give(path, made_up.REGRESSED)
    assert run(reported, "--sha", HEAD, "--site-url", "https://example.org/site").exit_code == 0
    status, conclusion, title = only_run(hub)
    assert (status, conclusion) == ("completed", "failure")
    assert "egressed" in title
    (shown,) = hub.shown
    assert shown.startswith("<!-- knickpoint:candidate state=regressed ")
    assert "https://example.org/site/" in shown
    assert next(iter(hub.runs.values()))["details_url"] == "https://example.org/site"
    before = list(hub.writes)
    again = run(reported, "--sha", HEAD, "--site-url", "https://example.org/site")
    assert again.exit_code == 0
    assert "no comment needs to be written" in again.stdout
    assert hub.writes == before


@pytest.mark.parametrize(
    ("content", "conclusion", "start"),
    [
        (made_up.UNCHANGED, "success", ""),
        (made_up.IMPROVED, "success", ""),
        (made_up.UNDECIDED, "neutral", "Cannot tell"),
        (made_up.INVALID, "failure", ""),
    ],
    ids=["unchanged", "improved", "undecided", "invalid"],
)
def test_each_result_has_its_conclusion(
    hub: GitHub, path: Path, content: ComparisonFile, conclusion: str, start: str
) -> None:
    assert run(give(path, content)).exit_code == 0
    assert only_run(hub)[1] == conclusion
    assert only_run(hub)[2].startswith(start)
    assert len(hub.shown) == (content is not made_up.UNCHANGED)


def test_a_failure_of_ours_says_that_it_is_ours(hub: GitHub) -> None:
    assert run("--failed", "no host\nanswered @everyone <b>", "--sha", HEAD).exit_code == 0
    status, conclusion, title = only_run(hub)
    assert (status, conclusion) == ("completed", "failure")
    assert title == "Knickpoint failed: no host answered @everyone <b>"
    assert "state=invalid" in hub.shown[0]
    assert "@everyone" not in hub.shown[0]
    assert "<b>" not in hub.shown[0]


def test_a_failure_of_ours_never_replaces_a_result(hub: GitHub, path: Path) -> None:
    run(give(path, made_up.IMPROVED), "--sha", HEAD)
    before = list(hub.writes)
    result = run("--failed", "the job ended early", "--sha", HEAD)
    assert result.exit_code == 0
    assert "the check run has a result already" in result.stdout
    assert hub.writes == before
    # Measured again: what is in progress is concluded, and the result of before stays.
    run("--start", "--sha", HEAD)
    run("--failed", "the job ended early", "--sha", HEAD)
    assert [one["conclusion"] for one in hub.runs.values()] == ["success", "failure"]
    before = list(hub.writes)
    run("--failed", "the job ended early", "--sha", HEAD)
    assert hub.writes == before


NO_COMMIT = dataclasses.replace(made_up.NOTHING, base=None, head=None)
REFUSED = {
    "another commit": (
        write_comparisons(dataclasses.replace(made_up.REGRESSED, head=made_up.BASE)),
        f"is about {made_up.BASE.sha}, not about {HEAD}",
    ),
    "no commit": (write_comparisons(NO_COMMIT), "names no commit"),
    "hostile": (b'{"<b>@everyone": 1}', "@everyone: Unexpected keyword"),
    "too large": (b" " * 20_000_001, "20000001 bytes"),
    "missing": (None, "it cannot be read: No such file or directory"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_no_check_run_waits_for_a_file_that_is_refused(hub: GitHub, path: Path, case: str) -> None:
    content, why = REFUSED[case]
    if content is not None:
        path.write_bytes(content)
    run("--start", "--sha", HEAD)
    result = run(f"--comparison={path}", "--sha", HEAD)
    assert isinstance(result.exception, UsageError | InputError)
    assert result.exception.exit_code == 2
    assert why in str(result.exception)
    status, conclusion, title = only_run(hub)
    assert (status, conclusion) == ("completed", "failure")
    assert title.startswith("Knickpoint failed: the result file was refused: ")
    assert why[:20] in title
    assert str(path.parent) not in title + hub.shown[0]
    assert "<b>" not in hub.shown[0]


def test_the_zip_of_an_artifact_is_read_and_refused_like_the_file(hub: GitHub, path: Path) -> None:
    zipped = path.with_suffix(".zip")
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("comparison.json", write_comparisons(made_up.UNCHANGED))
    run("--start", "--sha", HEAD)
    assert run(f"--artifact={zipped}", "--sha", HEAD).exit_code == 0
    assert only_run(hub)[1] == "success"
    zipped.write_bytes(b"no zip")
    hub.runs.clear()
    run("--start", "--sha", HEAD)
    assert isinstance(run(f"--artifact={zipped}", "--sha", HEAD).exception, InputError)
    assert only_run(hub)[2].endswith("refused: the artifact is no zip that can be read")


def test_a_refused_file_is_said_even_if_github_does_not_listen(hub: GitHub, path: Path) -> None:
    hub.faults.append(Fault(method="GET", path="/pulls/7", status=404, message="Not Found"))
    result = run(f"--comparison={path}", "--sha", HEAD)
    assert isinstance(result.exception, InputError)
    assert "has no such thing" in result.stderr


def test_a_file_that_names_no_commit_passes_no_check(hub: GitHub, path: Path) -> None:
    result = run(give(path, NO_COMMIT), "--always")
    assert result.exit_code == 0
    assert "no check run: the file names no commit" in result.stderr
    assert hub.runs == {}
    assert len(hub.shown) == 1


def test_a_line_end_after_the_token_does_no_harm(hub: GitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", f"{TOKEN}\n")
    assert run("--start", "--sha", HEAD).exit_code == 0
    assert only_run(hub)[0] == "in_progress"
    for wrong in ("two\nlines", "n\u00f6"):
        monkeypatch.setenv("GITHUB_TOKEN", wrong)
        result = run("--start", "--sha", HEAD)
        assert isinstance(result.exception, UsageError)
        assert "GITHUB_TOKEN is no token" in str(result.exception)
        assert wrong not in str(result.exception)


def test_by_the_word_of_the_file_alone_only_the_head_gets_a_check_run(hub: GitHub, path: Path) -> None:
    hub.head = LATER
    result = run(give(path, made_up.REGRESSED))
    assert result.exit_code == 0
    assert hub.runs == {}
    assert "only --sha allows another commit" in result.stderr
    assert "About an older commit" in hub.shown[0]
    assert run(give(path, made_up.REGRESSED), "--sha", HEAD).exit_code == 0
    assert [one["head_sha"] for one in hub.runs.values()] == [HEAD]


def test_an_abbreviated_commit_in_the_file_is_the_head(hub: GitHub, path: Path) -> None:
    short = dataclasses.replace(made_up.REGRESSED, head=Revision(ref="x", sha=HEAD[:7]))
    assert run(give(path, short)).exit_code == 0
    assert [one["head_sha"] for one in hub.runs.values()] == [HEAD]
    assert "older commit" not in hub.shown[0]


def test_the_comment_goes_out_even_if_the_check_run_is_forbidden(hub: GitHub, path: Path) -> None:
    hub.faults.append(Fault(method="GET", path="/check-runs", status=403, message=FORBIDDEN))
    result = run(give(path, made_up.REGRESSED))
    assert isinstance(result.exception, GitHubError)
    assert result.exception.exit_code == 3
    assert "`checks: write`" in str(result.exception)
    assert "posted https://" in result.stdout
    assert len(hub.shown) == 1


def test_the_check_run_is_made_even_if_the_comment_is_forbidden(hub: GitHub, path: Path) -> None:
    hub.faults.append(Fault(method="POST", path="/issues/7/comments", status=403, message=FORBIDDEN))
    result = run(give(path, made_up.REGRESSED))
    assert isinstance(result.exception, GitHubError)
    assert "`pull-requests: write`" in str(result.exception)
    assert only_run(hub)[1] == "failure"


def test_without_a_check_none_is_asked_for(hub: GitHub, path: Path) -> None:
    assert run(give(path, made_up.REGRESSED), "--no-check").exit_code == 0
    assert [one for one in hub.asked if "check" in one] == []


def test_a_dry_run_says_all_and_does_nothing(hub: GitHub, path: Path) -> None:
    run(give(path, made_up.UNDECIDED), "--no-check")
    before = list(hub.writes)
    result = run(give(path, made_up.REGRESSED), "--dry-run")
    assert result.stdout.startswith("<!-- knickpoint:candidate state=regressed ")
    assert result.stderr.splitlines()[:2] == [
        "would have posted a new comment",
        f"would have minimised comment {next(iter(hub.comments))}",
    ]
    assert "created the check run 'knickpoint / candidate' as failure:" in result.stderr
    assert hub.writes == before
    run(give(path, made_up.REGRESSED))
    assert run(give(path, made_up.REGRESSED), "--dry-run").stderr.splitlines() == [
        "would have written no comment",
        "would have left the check run as it is",
    ]


def test_without_a_token_a_dry_run_asks_nobody(
    hub: GitHub, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    result = run(give(path, made_up.UNDECIDED), "--dry-run")
    assert result.exit_code == 0
    assert result.stdout.startswith("<!-- knickpoint:candidate state=undecided ")
    assert "GitHub was not asked" in result.stderr
    assert "as neutral: Cannot tell" in result.stderr
    assert "in progress: Measuring" in run("--start", "--dry-run").stderr
    assert hub.asked == []
    assert isinstance(run(give(path, made_up.UNDECIDED)).exception, UsageError)


def test_hostile_text_reaches_github_as_it_was_made_safe(hub: GitHub, path: Path) -> None:
    # A file cannot hold the number that is none; the text of the rest stays.
    comparisons = tuple(
        dataclasses.replace(one, measures=tuple(m for m in one.measures if is_number(m)))
        for one in made_up.HOSTILE.comparisons
    )
    hostile = dataclasses.replace(made_up.HOSTILE, comparisons=comparisons)
    assert run(give(path, hostile), "--always").exit_code == 0
    (shown,) = hub.shown
    reported = render_comment(read_comparisons(path.read_bytes(), path))
    assert (
        shown.partition("\n")[2] == reported
    )  # made safe by its tests; nothing is added but the marker
    title = only_run(hub)[2]
    assert title.isprintable()
    assert len(title) <= 250


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b"{" * 100_000, b'{"schema_version": 1, "<img src=x>": 2}']
)
def test_a_file_that_is_none_is_refused_before_anything_is_reported(
    hub: GitHub, path: Path, content: bytes
) -> None:
    path.write_bytes(content)
    assert isinstance(run(f"--comparison={path}").exception, InputError)
    assert hub.asked == []


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--start", "--failed", "x"),
        ("--start", "--no-check"),
        ("--start", "--sha", "main"),
        ("--start", "--name", "x --> <b>"),
        ("--start", "--repo", "example"),
        ("--start", "--pr", "0"),
        ("--start", "--site-url", "javascript:alert(1)"),
        ("--start", "--api-url", "http://api.github.com"),
        ("--comparison", "not-there.json"),
        ("--comparison", "not-there.json", "--artifact", "not-there.zip"),
    ],
    ids=" ".join,
)
def test_wrong_use_is_refused_with_exit_code_2(hub: GitHub, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    error = result.exception
    code = error.exit_code if isinstance(error, UsageError | InputError) else result.exit_code
    assert code == 2
    assert hub.asked == []
