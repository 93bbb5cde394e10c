"""The scripts of the workflows, run as a runner runs them: exit codes, hostile texts, what is kept."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from actions_server import Forge, serve_forge
from github_server import TOKEN
from job_place import ROOT, Place, find_script

HEAD = "0123456789abcdef0123456789abcdef01234567"
HOSTILE = [
    "$(touch owned)",
    "`touch owned`",
    '"; touch owned; "',
    "'; touch owned; '",
    "x\ny=$(touch owned)",
    "-x",
    "--help",
    "a\n::error::x",
]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[Forge]:
    store = tmp_path / "store"
    store.mkdir()
    with serve_forge(Forge(store=store)) as forge:
        yield forge


TOLD = "one: completed\n\nVerdict: Cannot tell yet: of 2 series, 2 undecided\nSite:    index.html\n"


@pytest.mark.parametrize(
    ("code", "printed", "headline", "is_kept"),
    [
        (0, TOLD, "## Cannot tell yet: of 2 series, 2 undecided", True),
        (1, TOLD, "## A regression is confirmed", True),
        (2, "", "## Not measured: wrong usage or configuration; the log says which", False),
        (3, TOLD, "## Not everything could be measured; the log says why", True),
        (3, "", "## Not everything could be measured; the log says why", False),
        (70, "", "## Knickpoint itself failed with exit code 70; the log says how", False),
    ],
)
def test_nightly_passes_the_exit_code_on_and_says_what_it_means(
    place: Place, code: int, printed: str, headline: str, *, is_kept: bool
) -> None:
    place.answer(printed, code)
    nights = place.data / "nights"
    nights.mkdir()
    for age, night in enumerate(("2026-03-02-1", "2026-03-01-2")):
        (nights / f"{night}.json").touch()
        os.utime(nights / f"{night}.json", (1_800_000_000 - age, 1_800_000_000 - age))
    done = place.run(find_script("nightly", "night", "night"), SUITE="odd name; exit 0", SITE_URL="")
    assert done.returncode == code
    wanted = ["--suite", "odd name; exit 0", "--configs", "configs", "--data", str(place.data)]
    assert place.arguments == ["nightly", *wanted, "--site-url", ""]
    assert place.summary[0] == headline
    assert place.summary[2:] == [f"    {line}" for line in printed.splitlines()]
    assert ("::error" in done.stdout) == (code != 0)
    kept = {"data": str(place.data), "configs": "configs", "night": "2026-03-02-1"}
    assert place.output == (kept if is_kept else {})


@pytest.mark.parametrize("line", ["\n", "é" * 70 + "\n"], ids=["empty lines", "long lines"])
def test_a_summary_stays_below_what_github_shows(place: Place, line: str) -> None:
    (place.temporary / "printed").write_text(line * 100_000)
    script = '.github/scripts/summarize "$HEADLINE" "$RUNNER_TEMP/printed"'
    assert place.run(script, HEADLINE="$(touch owned)").returncode == 0
    summary = place.temporary / "summary"
    assert summary.stat().st_size < (1024 - 900) * 1024
    text = summary.read_text(errors="replace")
    assert text.startswith("## $(touch owned)\n")
    assert text.endswith("Cut here: the log has the rest.\n")


@pytest.mark.parametrize("text", HOSTILE)
def test_bisect_takes_each_input_as_one_value(place: Place, text: str) -> None:
    names = ("INCIDENT", "SYSTEM", "SPAN", "EXPERIMENT", "METRIC", "SUITE")
    done = place.run(
        find_script("bisect", "bisect", "bisect"), **dict.fromkeys(names, text), MINUTES="60"
    )
    assert done.returncode == 0, done.stderr
    assert place.arguments[-3:] == ["--", text, text]
    assert {f"--{one}={text}" for one in ("change", "experiment", "metric", "suite")} <= set(
        place.arguments
    )
    assert not place.is_owned


@pytest.mark.parametrize(
    ("code", "said"), [(1, "A release made it worse"), (3, "Not decided, or not measured")]
)
def test_bisect_leaves_out_what_is_not_given(place: Place, code: int, said: str) -> None:
    place.answer("found\n", code)
    empty = dict.fromkeys(("SYSTEM", "SPAN", "EXPERIMENT", "METRIC", "SUITE"), "")
    done = place.run(
        find_script("bisect", "bisect", "bisect"), INCIDENT="3f9a1c20", MINUTES="60", **empty
    )
    assert done.returncode == code
    file = str(place.temporary / "bisection.json")
    data = str(place.data)
    assert place.arguments == [
        *("bisect", "--minutes=60", "--output", file, "--data", data),
        *("--configs", "configs", "--change=3f9a1c20", "--"),
    ]
    assert said in place.summary[0]


MEASURED = {
    "NUMBER": "7",
    "TESTBED": "local",
    "SUITE": "",
    "MINUTES": "240",
    "SITE_URL": "",
    "ATTRIBUTE": "",
}


def make_repository(place: Place) -> None:
    for command in (
        "git init --quiet --initial-branch main .",
        "git -c user.name=t -c user.email=t@example.org commit --quiet --allow-empty -m begin",
    ):
        assert place.run(command).returncode == 0


@pytest.mark.parametrize("code", [0, 1, 2, 3, 70])
def test_candidate_hands_over_the_result_of_this_run_only(place: Place, code: int) -> None:
    make_repository(place)
    output = place.data / "candidate/pull-7"
    output.mkdir(parents=True)
    (output / "comparison.json").write_text("old")
    os.utime(output / "comparison.json", (1_700_000_000, 1_700_000_000))
    script = find_script("candidate", "measure", "measure")
    place.answer("verdict\n", code)
    assert place.run(script, **MEASURED).returncode == code
    assert place.output == {}
    place.answer("verdict\n", code, leaves=str(output))
    done = place.run(script, **MEASURED | {"SUITE": "$(touch owned)", "ATTRIBUTE": "true"})
    assert done.returncode == code
    assert Path(place.output["result"]).read_text() == "{}\n"
    assert place.arguments == [
        *("candidate", "--base", "refs/remotes/origin/main", "--head", "refs/knickpoint/head"),
        "--testbed=local",
        *("--minutes=240", "--site-url=", "--data", str(place.data), "--output", str(output)),
        *("--suite=$(touch owned)", "--attribute"),
    ]
    assert not place.is_owned


@pytest.mark.parametrize(
    ("workflow", "job", "step"),
    [
        ("candidate", "measure", "measure"),
        ("nightly", "night", "night"),
        ("bisect", "bisect", "bisect"),
        ("build", "measure", "measure"),
    ],
)
def test_what_a_head_or_a_server_makes_knickpoint_print_is_no_command_of_the_runner(
    place: Place, workflow: str, job: str, step: str
) -> None:
    make_repository(place)
    place.answer("::error::x\n::set-output name=result::/etc/passwd\n", 0)
    names = ("INCIDENT", "SYSTEM", "SPAN", "EXPERIMENT", "METRIC", "COMMIT", "AGAINST")
    inputs = dict.fromkeys(names, "")
    done = place.run(find_script(workflow, job, step), **MEASURED, **inputs)
    first, *printed, last = done.stdout.splitlines()
    assert first.startswith("::stop-commands::")
    secret = first.removeprefix("::stop-commands::")
    assert len(secret) == 32
    assert last == f"::{secret}::"
    assert printed == ["::error::x", "::set-output name=result::/etc/passwd"]


@pytest.fixture
def head(place: Place, tmp_path: Path) -> Callable[..., str]:
    """Return `head(branch=…)`: a commit at the head of pull request 7 of an origin, and its hash."""
    make_repository(place)
    git = "git -c user.name=t -c user.email=t@example.org"
    for command in (
        f"git clone --quiet --bare . {tmp_path}/origin",
        f"git remote add origin {tmp_path}/origin",
    ):
        assert place.run(command).returncode == 0

    def make(*, branch: str = "") -> str:
        done = place.run(
            f"echo more >>file; git add file; {git} commit --quiet -m change && git rev-parse HEAD\n"
            f"git push --quiet --force origin HEAD:refs/pull/7/head {branch and f'HEAD:{branch}'}\n"
            "git reset --quiet --hard HEAD~1; echo other >>file"
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return make


FETCH = {"NUMBER": "7", "TOKEN": "t", "ENVIRONMENT": "lab"}


def fetch(place: Place, **values: str) -> tuple[int, str]:
    done = place.run(find_script("candidate", "measure", "Fetch the head"), **FETCH | values)
    return done.returncode, done.stdout


def test_the_head_is_fetched_and_not_checked_out(place: Place, head: Callable[..., str]) -> None:
    sha = head(branch="refs/heads/mine")
    before = place.run("git rev-parse HEAD && git status --short").stdout
    assert fetch(place, HEAD_SHA=sha) == (0, "")
    assert place.run("git rev-parse refs/knickpoint/head").stdout.strip() == sha
    assert place.run("git rev-parse HEAD && git status --short").stdout == before
    assert "extraheader" not in place.run("git config --list").stdout


def test_a_push_after_the_approval_is_not_measured(place: Place, head: Callable[..., str]) -> None:
    approved = head()
    head()
    code, said = fetch(place, HEAD_SHA=approved, ENVIRONMENT="lab-strangers")
    assert code == 3
    assert "moved on" in said


def test_what_is_on_no_branch_needs_a_reviewer(place: Place, head: Callable[..., str]) -> None:
    sha = head()
    assert fetch(place, HEAD_SHA=sha, ENVIRONMENT="lab-strangers")[0] == 0
    for environment in ("lab", "", "other"):
        code, said = fetch(place, HEAD_SHA=sha, ENVIRONMENT=environment)
        assert code == 2
        assert "a reviewer has to approve it" in said


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ("perf/config/looser", 3),
        ("perf/systems/cassandra/settings.yaml", 3),
        ("analysis/judging/looser", 3),
        ("analysis/orchestration/looser", 3),
        ("infra/roles/runner/allowed", 3),
        ("requirements/measure.txt", 3),
        ("configs/rules/other", 0),
    ],
)
def test_a_run_that_waited_is_refused_once_main_checks_otherwise(
    place: Place, head: Callable[..., str], tmp_path: Path, changed: str, code: int
) -> None:
    sha = head(branch="refs/heads/mine")
    assert fetch(place, HEAD_SHA=sha)[0] == 0
    git = "git -c user.name=t -c user.email=t@example.org"
    done = place.run(
        f"git clone --quiet --branch main {tmp_path}/origin {tmp_path}/later && cd {tmp_path}/later"
        f" && mkdir -p $(dirname {changed}) && touch {changed} && git add {changed}"
        f" && {git} commit --quiet -m later && git push --quiet origin HEAD:main"
    )
    assert done.returncode == 0, done.stderr
    found, said = fetch(place, HEAD_SHA=sha)
    assert found == code
    assert ("start a new run" in said) is (code == 3)
    # The rules of configs/ need no new run: base is what was fetched, not what was checked out.
    base = place.run("git cat-file -e refs/remotes/origin/main:configs/rules/other")
    assert (base.returncode == 0) is (code == 0)


def test_a_repository_that_calls_is_the_one_of_base_and_head(
    place: Place, head: Callable[..., str], tmp_path: Path
) -> None:
    sha = head(branch="refs/heads/mine")
    done = place.run(f"git clone --quiet --branch main {tmp_path}/origin caller && rm -rf .git")
    assert done.returncode == 0, done.stderr
    assert fetch(place, HEAD_SHA=sha) == (0, "")
    assert place.run("git -C caller rev-parse refs/knickpoint/head").stdout.strip() == sha
    assert place.run(find_script("candidate", "measure", "measure"), **MEASURED).returncode == 0
    assert (place.root / "caller/arguments").exists()
    # It calls another version of Knickpoint by now, so this run would check as it was before.
    git = "git -c user.name=t -c user.email=t@example.org"
    done = place.run(
        f"git clone --quiet --branch main {tmp_path}/origin later && cd later && mkdir .github"
        f" && touch .github/other && git add .github && {git} commit --quiet -m later"
        " && git push --quiet origin HEAD:main"
    )
    assert done.returncode == 0, done.stderr
    code, said = fetch(place, HEAD_SHA=sha)
    assert code == 3
    assert "start a new run" in said


def test_no_other_text_is_a_number_or_a_commit(place: Place, head: Callable[..., str]) -> None:
    sha = head(branch="refs/heads/mine")
    for text in (*HOSTILE, "", "main", HEAD[:39], f"{HEAD}\n{HEAD}", HEAD.upper()):
        assert fetch(place, HEAD_SHA=text)[0] == 2, text
        assert fetch(place, HEAD_SHA=sha, NUMBER=text)[0] == 2, text
        assert not place.is_owned, text


REVIEWERS = [{"type": "required_reviewers", "reviewers": [{"type": "User"}]}]


@pytest.mark.parametrize(
    ("environment", "rules", "code"),
    [
        ("lab", None, 0),
        ("lab-strangers", REVIEWERS, 0),
        ("lab-strangers", [], 2),
        ("lab-strangers", [{"type": "wait_timer", "wait_timer": 1}], 2),
        ("lab-strangers", [{"type": "required_reviewers", "reviewers": []}], 2),
    ],
)
def test_an_environment_without_reviewers_admits_no_stranger(
    place: Place, forge: Forge, environment: str, rules: list[dict[str, Any]] | None, code: int
) -> None:
    if rules is not None:
        forge.environments[environment] = rules
    done = place.run(
        find_script("candidate", "admit", "admit"),
        ENVIRONMENT=environment,
        TOKEN=TOKEN,
        GITHUB_API_URL=forge.url,
    )
    assert done.returncode == code, done.stderr
    assert place.output == {"environment": environment}
    assert TOKEN not in done.stdout + done.stderr


def test_where_github_does_not_answer_no_stranger_is_admitted(place: Place, forge: Forge) -> None:
    done = place.run(
        find_script("candidate", "admit", "admit"),
        ENVIRONMENT="lab-strangers",
        TOKEN="wrong",  # noqa: S106  it is to be refused
        GITHUB_API_URL=forge.url,
    )
    assert done.returncode != 0


TITLE = f"candidate of pull request 7 at {HEAD}"


@pytest.mark.parametrize(
    ("title", "is_ours"),
    [
        (TITLE, True),
        *((one, False) for one in HOSTILE),
        *((f"{TITLE}{one}", False) for one in (" ", "\n", "0", "\nnumber=1", "$(touch owned)")),
        *((f"{one}{TITLE}", False) for one in (" ", "\n", "x\n")),
        (TITLE.replace(" 7 ", " 07 "), False),
        (TITLE.replace(" 7 ", " -7 "), False),
        (TITLE.replace(" 7 ", " 7\nnumber=8 "), False),
        (TITLE.upper(), False),
        ("candidate of pull request  at ", False),
    ],
)
def test_comment_believes_a_title_of_one_form_only(place: Place, title: str, *, is_ours: bool) -> None:
    done = place.run(find_script("comment", "comment", "about"), TITLE=title)
    assert done.returncode == (0 if is_ours else 2)
    assert place.output == ({"number": "7", "sha": HEAD} if is_ours else {})
    assert title not in done.stdout
    assert not place.is_owned


@pytest.mark.parametrize(
    ("head", "token", "is_reported"),
    [(HEAD, TOKEN, True), (40 * "e", TOKEN, False), (40 * "e", "wrong", True)],
    ids=["the head", "pushed over", "GitHub does not say"],
)
def test_comment_says_that_there_is_no_result_unless_the_commit_was_pushed_over(
    place: Place, forge: Forge, head: str, token: str, *, is_reported: bool
) -> None:
    forge.head = head
    done = place.run(
        find_script("comment", "comment", "Say so"),
        GITHUB_API_URL=forge.url,
        GITHUB_TOKEN=token,
        NUMBER="7",
        HEAD_SHA=HEAD,
        CONCLUSION="cancelled",
        RUN_ID="5",
    )
    assert done.returncode == 0, done.stderr
    assert (place.root / "arguments").exists() is is_reported
    if is_reported:
        assert place.arguments[:2] == ["comment", "--failed"]
        assert place.arguments[2].startswith(
            "the run ended as cancelled and left no result; why: https"
        )
        assert place.arguments[2].endswith("github.com/example/configs/actions/runs/5")
        assert place.arguments[3:] == ["--repo", "example/configs", "--pr", "7", "--sha", HEAD]


@pytest.mark.parametrize("is_shared", [False, True])
def test_the_packages_of_a_shared_history_are_there_where_one_is(
    place: Place, *, is_shared: bool
) -> None:
    (place.root / "Makefile").write_text("setup:\n\ttouch made\n")
    python = place.root / ".venv/bin/python"
    python.write_text('#!/bin/sh\ntest -e made && echo "$@" >asked\n')
    python.chmod(0o755)
    if is_shared:
        (place.data / "history.yaml").touch()
    assert place.run(".github/scripts/prepare").returncode == 0
    assert (place.root / "made").exists()
    assert (place.root / "asked").exists() == is_shared
    if is_shared:
        said = (place.root / "asked").read_text()
        assert said.endswith("--require-hashes -r requirements/lake.lock\n")


def stand_in(place: Place, name: str, text: str) -> str:
    """Return a PATH on which this program comes first."""
    program = place.root / "bin" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/bash\n{text}\n")
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


@pytest.mark.parametrize("code", [0, 1])
def test_ci_runs_as_root_and_gives_its_files_back(place: Place, code: int) -> None:
    path = stand_in(place, "sudo", 'echo "$@" >>asked\n[ "$1" = chown ] || "${@:2}"')
    (place.root / ".ci").mkdir()
    (place.root / ".ci/run").write_text(
        f'echo "as=${{SUDO_UID-none}} home=$HOME" >>asked\nexit {code}\n'
    )
    script = find_script("ci", "check", "Run all checks")
    assert place.run(script, PATH=path, SUDO_UID="1001").returncode == code
    first, run, said, last = (place.root / "asked").read_text().splitlines()
    cache = place.temporary / ".cache"
    assert first == f"chown -R root:root . {cache}"
    assert run.startswith("--preserve-env env -u SUDO_COMMAND ")
    assert f" PATH={path} CARGO_HOME={cache}/cargo " in run
    assert said == f"as=none home={place.temporary}"
    assert last == f"chown -R {os.getuid()}:{os.getgid()} . {cache}"


def test_all_checks_say_that_they_need_root(place: Place) -> None:
    path = stand_in(place, "id", "echo 1000")
    done = place.run(f"bash {ROOT}/.ci/run", PATH=path)
    assert (done.returncode, done.stdout) == (2, "")
    assert ".ci/run needs root" in done.stderr


BUILT = {
    "head_sha": HEAD,
    "head_branch": "topic/1",
    "head_repository": {"owner": {"login": "stranger"}},
}


def admit_build(place: Place, forge: Forge, **changes: str) -> subprocess.CompletedProcess[str]:
    values = {"RUN": "5", "COMMIT": HEAD, "TOKEN": TOKEN, "GITHUB_API_URL": forge.url, **changes}
    return place.run(find_script("build", "admit", "admit"), **values)


def test_a_build_that_was_approved_is_of_the_pull_request_that_github_names(
    place: Place, forge: Forge
) -> None:
    forge.environments["lab-strangers"], forge.head, forge.built = REVIEWERS, HEAD, BUILT
    done = admit_build(place, forge)
    assert done.returncode == 0, done.stdout + done.stderr
    assert place.output == {"pull": "7"}
    assert TOKEN not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("rules", "built", "head"),
    [
        (None, {}, HEAD),
        ([], {}, HEAD),
        ([{"type": "wait_timer", "wait_timer": 1}], {}, HEAD),
        ([{"type": "required_reviewers", "reviewers": []}], {}, HEAD),
        (REVIEWERS, {"head_sha": 40 * "e"}, HEAD),
        (REVIEWERS, {"head_repository": None}, HEAD),
        (REVIEWERS, {"head_branch": None}, HEAD),
        (REVIEWERS, {"head_branch": "other&head=stranger:topic/1"}, HEAD),
        (REVIEWERS, {}, 40 * "e"),
    ],
    ids=str,
)
def test_no_other_build_is_admitted(
    place: Place, forge: Forge, rules: list[dict[str, Any]] | None, built: dict[str, Any], head: str
) -> None:
    if rules is not None:
        forge.environments["lab-strangers"] = rules
    forge.head, forge.built = head, {**BUILT, **built}
    assert admit_build(place, forge).returncode == 2
    assert place.output == {}


@pytest.mark.parametrize("text", [*HOSTILE, "", "0", "main"])
def test_no_other_text_is_a_build(place: Place, forge: Forge, text: str) -> None:
    forge.environments["lab-strangers"], forge.head, forge.built = REVIEWERS, HEAD, BUILT
    assert admit_build(place, forge, RUN=text).returncode == 2
    assert admit_build(place, forge, COMMIT=text).returncode == 2
    named = {"RUN": "5", "TOKEN": TOKEN, "GITHUB_API_URL": forge.url}
    fetched = place.run(find_script("build", "admit", "Fetch the build"), ARTIFACT=text, **named)
    assert fetched.returncode != 0
    assert not place.is_owned


@pytest.mark.parametrize(
    ("files", "code"),
    [({"target/../x.tar.gz": b"a build"}, 0), ({}, 2), ({"a.tar": b"", "b.tar": b""}, 2)],
    ids=["one", "none", "two"],
)
def test_the_one_archive_of_an_artifact_is_handed_over(
    place: Place, forge: Forge, files: dict[str, bytes], code: int
) -> None:
    kept = forge.store / "5/build.zip"
    kept.parent.mkdir()
    with ZipFile(kept, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    named = {"RUN": "5", "ARTIFACT": "build", "TOKEN": TOKEN, "GITHUB_API_URL": forge.url}
    done = place.run(find_script("build", "admit", "Fetch the build"), **named)
    assert done.returncode == code, done.stdout + done.stderr
    handed = place.temporary / "build.tar"
    assert (handed.read_bytes() if handed.exists() else None) == (b"a build" if code == 0 else None)
    assert forge.leaked == []


@pytest.mark.parametrize("code", [0, 1, 2, 3, 70])
def test_a_build_is_measured_with_each_input_as_one_value(place: Place, code: int) -> None:
    output = place.temporary / "candidate"
    hostile = "$(touch owned)"
    names = ("COMMIT", "AGAINST", "SUITE", "MINUTES", "TESTBED", "SITE_URL")
    script = find_script("build", "measure", "measure")
    place.answer("::error::x\n", code)
    assert place.run(script, **dict.fromkeys(names, hostile)).returncode == code
    assert place.output == {}
    place.answer("::error::x\n", code, leaves=str(output))
    done = place.run(script, **dict.fromkeys(names, hostile))
    assert done.returncode == code
    assert place.output == {"result": str(output / "comparison.json")}
    assert place.arguments == [
        *("candidate", "--build=build.tar", f"--against={hostile}", f"--commit={hostile}"),
        *(
            f"--suite={hostile}",
            f"--testbed={hostile}",
            f"--minutes={hostile}",
            f"--site-url={hostile}",
        ),
        *("--data", str(place.data), "--output", str(output)),
    ]
    first, printed, last, *_ = done.stdout.splitlines()
    assert (printed, last) == ("::error::x", f"::{first.removeprefix('::stop-commands::')}::")
    assert not place.is_owned
