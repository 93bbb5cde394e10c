"""The workflows keep their promises, as far as that shows without GitHub."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import events
import pytest
from expressions import evaluate, fill
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
USES = re.compile(r"uses: ([\w.-]+/[\w./-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)$")
WRITES = {
    ("build", "begin"): {"checks", "pull-requests"},
    ("build", "report"): {"checks", "pull-requests"},
    ("command", "answer"): {"actions", "issues", "pull-requests"},
    ("comment", "comment"): {"checks", "pull-requests"},
    ("nightly", "notify"): {"issues"},
    ("publish", "deploy"): {"id-token", "pages"},
    ("watchdog", "look"): {"issues"},
}
"""All that any job may write."""
OWN_HOSTS = {("build", "measure"), ("bisect", "bisect"), ("candidate", "measure"), ("nightly", "night")}
HEAD = "0123456789abcdef0123456789abcdef01234567"
THIS = "example/configs"


def read(path: Path) -> Any:  # noqa: ANN401  YAML is any tree; each test looks at its own branch
    """Parse a workflow as YAML 1.2, in which `on` is no boolean."""
    return YAML(typ="safe", pure=True).load(path.read_text())


FLOWS = {path.stem: read(path) for path in WORKFLOWS}
JOBS = {(flow, name): job for flow, content in FLOWS.items() for name, job in content["jobs"].items()}
CALLS = {place: job for place, job in JOBS.items() if "uses" in job}
RUNS = {place: job for place, job in JOBS.items() if place not in CALLS}
each_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
each_job = pytest.mark.parametrize("place", sorted(RUNS), ids="-".join)


def contexts(event: dict[str, Any], *, ref: str = "refs/heads/main", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Give what an expression can look at; `more` are further contexts, `on` the name of the event."""
    repository = event.pop("repository", events.REPOSITORY)
    github = {
        "event": {**event, "repository": repository},
        "event_name": more.pop("on", ""),
        "repository": THIS,
        "ref": ref,
        "ref_name": ref.removeprefix("refs/heads/"),
        "token": "t",
    }
    return {"github": github, "inputs": None, **more}


def steps_of(job: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    """Return the steps of a job that use an action."""
    return (step for step in job["steps"] if "uses" in step)


@each_workflow
def test_may_only_read_by_default(path: Path) -> None:
    assert read(path)["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("place", sorted(JOBS), ids="-".join)
def test_writes_what_is_listed_and_says_why(place: tuple[str, str]) -> None:
    granted = JOBS[place].get("permissions", {})
    assert {scope for scope, level in granted.items() if level != "read"} == WRITES.get(place, set())
    text = (ROOT / f".github/workflows/{place[0]}.yml").read_text()
    for scope, level in granted.items():
        assert re.search(rf"^ {{6}}{scope}: {level} # to \w", text, re.MULTILINE), scope


def test_each_action_is_one_commit_everywhere_and_names_its_version() -> None:
    lines = [line.strip() for path in WORKFLOWS for line in path.read_text().splitlines()]
    uses = [line.removeprefix("- ") for line in lines if "uses:" in line and "/comment.yml" not in line]
    assert [line for line in uses if not USES.fullmatch(line)] == []
    pins = {found.groups() for line in uses if (found := USES.fullmatch(line))}
    assert len({action for action, *_ in pins}) == len(pins)
    assert {action.partition("/")[0] for action, *_ in pins} == {"actions"}


@each_job
def test_is_limited_in_time_and_has_no_expression_in_a_script(place: tuple[str, str]) -> None:
    job = JOBS[place]
    assert 0 < job["timeout-minutes"] <= 600
    assert [step["run"] for step in job["steps"] if "${{" in step.get("run", "")] == []
    if any("run" in step for step in job["steps"]) and place[0] != "ci":
        assert job["defaults"]["run"]["shell"] == "bash"  # with pipefail


@each_workflow
def test_is_a_row_of_the_readme(path: Path) -> None:
    assert f"| [{path.stem}](workflows/{path.name}) |" in (ROOT / ".github/README.md").read_text()


@each_job
def test_checks_out_the_own_default_branch_and_keeps_no_token(place: tuple[str, str]) -> None:
    for step in steps_of(JOBS[place]):
        if step["uses"].startswith("actions/checkout@"):
            given = dict(step["with"])
            assert given.pop("persist-credentials") is False
            # What another repository calls is checked out as it was called, and not that repository.
            called = {"repository": "${{ job.workflow_repository }}", "ref": "${{ job.workflow_sha }}"}
            own = {key: one for key, one in given.items() if key != "fetch-depth"}
            if own.pop("path", "") == "caller":  # its configuration, beside our code
                assert place in OWN_HOSTS
                assert own == {}
            else:
                assert own == (called if "workflow_call" in FLOWS[place[0]]["on"] else {})


def test_no_cache_is_shared_with_jobs_that_may_write_or_measure() -> None:
    caching = {
        place
        for place, job in RUNS.items()
        for step in steps_of(job)
        if step["uses"].startswith("actions/cache@") or "cache" in step.get("with", {})
    }
    assert caching == {("ci", "check")}


def test_only_the_channel_has_a_secret_and_a_token_is_given_to_single_steps() -> None:
    text = "".join(path.read_text() for path in WORKFLOWS)
    assert re.findall(r"secrets\.\w+", text) == ["secrets.KNICKPOINT_WEBHOOK_URL"]
    for (flow, _), job in JOBS.items():
        assert "env" not in FLOWS[flow]
        assert "env" not in job
        assert "secrets" not in job
        assert [one for one in job.get("steps", []) if "github.token" in f"{one.get('with')}"] == []


@each_job
def test_no_pull_request_or_comment_starts_code_of_its_own_on_our_hosts(place: tuple[str, str]) -> None:
    job, started_by = JOBS[place], set(FLOWS[place[0]]["on"])
    assert ("self-hosted" in job["runs-on"]) == (place in OWN_HOSTS)
    if place not in OWN_HOSTS:
        assert job["runs-on"] == "ubuntu-24.04"
        return
    assert started_by <= {"schedule", "workflow_dispatch", "pull_request_target", "workflow_call"}
    assert "permissions" not in job  # so it may read, and nothing else
    assert job["concurrency"] == {
        "group": "testbed-knickpoint",
        "cancel-in-progress": False,
        "queue": "max",
    }
    fork = {"full_name": "stranger/configs", "fork": True}
    assert evaluate(job["if"], contexts({}))
    assert not evaluate(job["if"], contexts({}, ref="refs/heads/other"))
    assert not evaluate(job["if"], contexts({"repository": fork}))


ALLOWED = ROOT / "infra/roles/runner/files/job-allowed.sh"


@pytest.mark.parametrize(
    ("changes", "may_run"),
    [
        *(({"FLOW": f"{one}.yml@refs/heads/main"}, True) for one in ("bisect", "candidate", "nightly")),
        ({"EVENT_NAME": "schedule"}, True),
        ({"EVENT_NAME": "pull_request_target"}, True),
        ({"EVENT_NAME": "pull_request"}, False),
        ({"EVENT_NAME": "push"}, False),
        ({"FLOW": "nightly.yml@refs/heads/mine"}, False),
        ({"FLOW": "nightly.yml@refs/pull/7/merge"}, False),
        ({"FLOW": "evil.yml@refs/heads/main"}, False),
        ({"FLOW": "x/nightly.yml@refs/heads/main"}, False),
        ({"REPOSITORY": "stranger/configs"}, False),
        ({"REPOSITORY": ""}, False),
        ({"ATTEMPT": "2"}, True),
        ({"FLOW": "candidate.yml@refs/heads/main", "ATTEMPT": "2"}, False),
        ({"FLOW": "candidate.yml@refs/heads/main", "ATTEMPT": ""}, False),
    ],
    ids=str,
)
def test_a_host_turns_away_what_a_label_lets_in(changes: dict[str, str], *, may_run: bool) -> None:
    about = {"EVENT_NAME": "workflow_dispatch", "FLOW": "nightly.yml@refs/heads/main", **changes}
    known = {
        "GITHUB_EVENT_NAME": about["EVENT_NAME"],
        "GITHUB_REPOSITORY": about.get("REPOSITORY", THIS),
        "GITHUB_WORKFLOW_REF": f"{THIS}/.github/workflows/{about['FLOW']}",
        "GITHUB_RUN_ATTEMPT": about.get("ATTEMPT", "1"),
    }
    done = subprocess.run(["sh", ALLOWED], env=known, capture_output=True, text=True, check=False)
    assert done.returncode == (0 if may_run else 1)
    assert ("::error" in done.stdout) != may_run


@pytest.mark.parametrize(
    ("changes", "may_run"),
    [
        ({}, True),
        ({"GITHUB_EVENT_NAME": "workflow_dispatch"}, True),
        ({"GITHUB_EVENT_NAME": "pull_request"}, False),
        ({"GITHUB_RUN_ATTEMPT": "2"}, False),
        ({"GITHUB_WORKFLOW_REF": "example/db/.github/workflows/perf.yml@refs/pull/7/merge"}, False),
        ({"GITHUB_WORKFLOW_REF": "example/db/.github/workflows/other.yml@refs/heads/trunk"}, False),
        ({"GITHUB_WORKFLOW_REF": "example/db/.github/workflows/perf"}, False),
        ({"GITHUB_WORKFLOW_REF": ""}, False),
    ],
    ids=str,
)
def test_a_host_takes_a_database_that_its_owner_names(
    tmp_path: Path, changes: dict[str, str], *, may_run: bool
) -> None:
    callers = tmp_path / "callers"
    script = ALLOWED.read_text().replace("/etc/knickpoint-runner/callers", str(callers))
    known = {
        "GITHUB_EVENT_NAME": "workflow_run",
        "GITHUB_REPOSITORY": "example/db",
        "GITHUB_WORKFLOW_REF": "example/db/.github/workflows/perf.yml@refs/heads/trunk",
        "GITHUB_RUN_ATTEMPT": "1",
        **changes,
    }

    def ask() -> int:
        return subprocess.run(
            ["sh", "-c", script], env=known, capture_output=True, check=False
        ).returncode

    assert ask() == 1
    callers.write_text("\nexample/db/.github/workflows/perf.yml@refs/heads/trunk\n")
    assert ask() == (0 if may_run else 1)


def test_a_host_asks_that_before_each_job() -> None:
    files = ALLOWED.parent
    started = (files / "job-started.sh").read_text()
    assert (
        f'if [ "${{1:-}}" != completed ]; then /usr/local/lib/knickpoint/{ALLOWED.name}; fi' in started
    )
    assert "job-started.sh completed\n" in (files / "job-completed.sh").read_text()
    assert ALLOWED.name in (files.parent / "tasks/service.yaml").read_text()


def test_a_queue_is_what_github_knows() -> None:
    # actionlint does not know it yet, so .github/actionlint.yaml lets it pass.
    for place in [*FLOWS.values(), *JOBS.values()]:
        concurrency = place.get("concurrency", {})
        assert concurrency.keys() <= {"group", "cancel-in-progress", "queue"}
        assert concurrency.get("queue", "max") == "max"
        assert not (concurrency.get("cancel-in-progress") and "queue" in concurrency)


BRANCH = events.pull_request_target(HEAD, HEAD)
STRANGER = events.pull_request_target(HEAD, HEAD, is_fork=True)
GONE = {**STRANGER, "pull_request": {**STRANGER["pull_request"], "head": {"sha": HEAD, "repo": None}}}
DISPATCH = {"pull": "7", "sha": HEAD}


@pytest.mark.parametrize(
    ("on", "event", "inputs", "environment"),
    [
        ("pull_request_target", BRANCH, None, "lab"),
        ("pull_request_target", STRANGER, None, "lab-strangers"),
        ("pull_request_target", GONE, None, "lab-strangers"),
        ("workflow_dispatch", {}, {**DISPATCH, "stranger": False}, "lab"),
        ("workflow_dispatch", {}, {**DISPATCH, "stranger": True}, "lab-strangers"),
        ("issue_comment", BRANCH, None, "lab-strangers"),
    ],
)
def test_strangers_wait_for_a_reviewer(
    on: str, event: dict[str, Any], inputs: dict[str, Any] | None, environment: str
) -> None:
    job = JOBS["candidate", "admit"]
    known = contexts(dict(event), on=on, inputs=inputs)
    assert evaluate(job["environment"], known) == environment
    # The script looks at the same: it does not see in which environment it runs.
    assert job["steps"][0]["env"]["ENVIRONMENT"] == job["environment"]
    assert JOBS["candidate", "measure"]["needs"] == "admit"
    title = fill(FLOWS["candidate"]["run-name"], known)
    assert title == f"candidate of pull request 7 at {HEAD}"
    for step in JOBS["candidate", "measure"]["steps"]:
        if "HEAD_SHA" in step.get("env", {}):
            assert fill(step["env"]["HEAD_SHA"], known) == HEAD
            assert fill(step["env"]["NUMBER"], known) == "7"


def test_each_build_waits_for_a_reviewer_and_is_reported_by_comment() -> None:
    admit, measure = JOBS["build", "admit"], JOBS["build", "measure"]
    assert admit["environment"] == "lab-strangers"
    assert measure["needs"] == "admit"
    assert [job["uses"] for job in CALLS.values()] == 2 * ["./.github/workflows/comment.yml"]
    known = contexts({}, inputs={"commit": HEAD}, needs={"admit": {"outputs": {"pull": "7"}}})
    for name, action in (("begin", "in_progress"), ("report", "completed")):
        given = CALLS["build", name]["with"]
        assert fill(given["title"], known) == f"candidate of pull request 7 at {HEAD}"
        assert given["action"] == action
        called = {**contexts(events.workflow_run(5, "ci of somebody")), "inputs": {**given}}
        about, *_ = JOBS["comment", "comment"]["steps"]
        assert evaluate(JOBS["comment", "comment"]["if"], called)
        assert fill(about["env"]["TITLE"], called) == given["title"]


def test_a_draft_is_not_measured() -> None:
    draft = {**BRANCH, "pull_request": {**BRANCH["pull_request"], "draft": True}}
    condition = JOBS["candidate", "admit"]["if"]
    assert evaluate(condition, contexts(dict(BRANCH)))
    assert not evaluate(condition, contexts(draft))


OTHER = {"full_name": "stranger/configs", "fork": True}


@pytest.mark.parametrize(
    ("changes", "is_reported"),
    [
        ({}, True),
        ({"event": "workflow_dispatch"}, True),
        ({"head_branch": "whatever"}, True),  # what a pull request calls its branch
        ({"head_repository": OTHER}, True),
        ({"event": "workflow_dispatch", "head_branch": "mine"}, False),
        ({"event": "workflow_dispatch", "head_repository": OTHER}, False),
        ({"event": "pull_request"}, False),
        ({"event": "push"}, False),
        ({"path": ".github/workflows/evil.yml"}, False),
        ({"path": "dynamic/candidate.yml"}, False),
        ({"conclusion": "skipped"}, False),
        ({"run_attempt": 2}, False),  # hosts turn it away: its result is that of the first
    ],
    ids=str,
)
def test_only_a_run_of_our_candidate_is_reported(changes: dict[str, Any], *, is_reported: bool) -> None:
    event = events.workflow_run(1, "title", **changes)
    assert evaluate(JOBS["comment", "comment"]["if"], contexts(event)) is is_reported


@pytest.mark.parametrize(
    ("changes", "is_taken"),
    [
        ({}, True),
        ({"event": "workflow_dispatch"}, True),
        ({"conclusion": "failure"}, True),  # a regression is reported, too
        ({"event": "pull_request"}, False),
        ({"event": "workflow_dispatch", "head_branch": "mine"}, False),
        ({"head_repository": OTHER}, False),
        ({"path": ".github/workflows/candidate.yml"}, False),
    ],
    ids=str,
)
def test_only_a_night_of_ours_is_published(changes: dict[str, Any], *, is_taken: bool) -> None:
    night = {"event": "schedule", "path": ".github/workflows/nightly.yml", **changes}
    event = events.workflow_run(1, "title", **night)
    assert evaluate(JOBS["publish", "take"]["if"], contexts(event)) is is_taken
    assert "if" in JOBS["publish", "deploy"]
    assert JOBS["publish", "deploy"]["needs"] == "take"


@pytest.mark.parametrize(
    ("body", "is_pull", "is_read"),
    [("/knickpoint measure", True, True), ("/knickpoint help", False, False), ("hello", True, False)],
)
def test_only_a_command_on_a_pull_request_starts_a_machine(
    body: str, *, is_pull: bool, is_read: bool
) -> None:
    event = events.issue_comment(body, 1, login="alice", is_pull=is_pull)
    assert bool(evaluate(JOBS["command", "answer"]["if"], contexts(event))) is is_read


def test_comments_of_others_push_no_command_out_of_the_queue() -> None:
    group = FLOWS["command"]["concurrency"]["group"]
    alice, mallory, again = (
        fill(group, contexts(events.issue_comment("/knickpoint help", number, login=login)))
        for number, login in enumerate(("alice", "mallory", "alice"), start=1)
    )
    assert alice == again != mallory


def test_what_a_comment_starts_takes_these_inputs() -> None:
    inputs = FLOWS["candidate"]["on"]["workflow_dispatch"]["inputs"]
    assert {"pull", "sha", "stranger", "suite", "minutes", "attribute"} == inputs.keys()
    assert {name for name, one in inputs.items() if one.get("required")} == {"pull", "sha"}
    assert inputs["stranger"]["default"] is True
    inputs = FLOWS["bisect"]["on"]["workflow_dispatch"]["inputs"]
    named = {"incident", "system", "span", "experiment", "metric", "suite", "minutes"}
    assert named == inputs.keys()


OF_NO_JOB = {"lab", "lab-two-clients", "own-programs", "attached"}
"""The hosts of the lab are made by root, which no job on a testbed is; nor is another program, or a
cluster that runs already, there by itself."""


def test_nightly_offers_the_suites_that_exist() -> None:
    choice = FLOWS["nightly"]["on"]["workflow_dispatch"]["inputs"]["suite"]
    suites = {path.stem for path in (ROOT / "configs/suites").glob("*.yaml")}
    assert set(choice["options"]) == suites - OF_NO_JOB | {"as scheduled"}
    assert choice["default"] == "as scheduled"


@pytest.mark.parametrize(
    ("chosen", "variable", "suite"),
    [
        (None, None, "nightly"),
        (None, "rack", "rack"),
        ("as scheduled", None, "nightly"),
        ("as scheduled", "rack", "rack"),
        ("single", "rack", "single"),
    ],
)
def test_a_night_by_hand_measures_what_the_schedule_would_unless_told_otherwise(
    chosen: str | None, variable: str | None, suite: str
) -> None:
    (text,) = (
        one["env"]["SUITE"] for one in JOBS["nightly", "night"]["steps"] if one.get("id") == "night"
    )
    given = {**contexts({}), "inputs": {"suite": chosen}, "vars": {"KNICKPOINT_SUITE": variable}}
    assert fill(text, given) == suite


def test_jobs_on_a_testbed_have_what_a_shared_history_needs() -> None:
    for place in sorted(OWN_HOSTS):
        runs = [one.get("run") for one in JOBS[place]["steps"]]
        assert ".github/scripts/prepare" in runs, place
        assert "make setup" not in runs


def test_security_names_tests_that_exist() -> None:
    text = (ROOT / "docs/security.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert len(named) > 30
    missing = [
        name
        for file, name in named
        if not re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE)
    ]
    assert missing == []
