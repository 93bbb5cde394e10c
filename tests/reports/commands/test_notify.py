"""From a history on disk to a channel and to issues: what is reported, what is printed, how it ends."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path

import channel_server
import pytest
from channel_server import PATH, Channel
from click.testing import CliRunner, Result
from github_server import TOKEN, GitHub
from github_server import serve as serve_github
from made_up_nights import FIRST, RELEASE

from perf.history import bundle
from perf.history.store import append_all
from perf.local.paths import DataPaths
from perf.model.errors import GitHubError, HistoryError, InputError, UsageError, WebhookError
from perf.model.results import Sample, Trial, TrialId
from reports.clients.webhook import VARIABLE, Webhook, WebhookRetries
from reports.commands import notify as notify_command
from reports.commands.notify import notify
from reports.notifications import sent_log

CONFIGS = Path(__file__).parents[3] / "configs"


@pytest.fixture(scope="module")
def measured(make_trial: Callable[..., Trial], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory with twenty nights, of which the last four are slower."""
    paths = DataPaths(tmp_path_factory.mktemp("told") / "var")
    for night in range(20):
        started = FIRST + timedelta(days=night)
        value = (4000 if night < 16 else 3440) * (1 + 0.004 * (night * 7 % 5 - 2))
        sample = Sample(
            phase="saturation", operation="write", metric="throughput", statistic="mean", value=value
        )
        trial = make_trial(
            id=TrialId(f"{started:%Y-%m-%d}-1.01"),
            night=f"{started:%Y-%m-%d}-1",
            release=RELEASE,
            started_at=started,
            finished_at=started + timedelta(minutes=5),
            samples=(sample, *(replace(sample, iteration=one) for one in (1, 2))),
        )
        bundle.seal(bundle.stage(paths, trial.id), trial, ())
    assert append_all(paths, lambda _: None).new == 20
    return paths.data


_READ = cache(notify_command._read_news)  # noqa: SLF001  reading it once is enough for all


@pytest.fixture(autouse=True)
def _reads_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify_command, "_read_news", _READ)


@pytest.fixture
def data(measured: Path) -> Iterator[Path]:
    """Yield the data directory, without what was reported before."""
    yield measured
    (measured / "told.json").unlink(missing_ok=True)


@pytest.fixture
def channel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Channel]:
    with channel_server.serve() as state:
        monkeypatch.setenv(VARIABLE, state.url)
        quick = WebhookRetries(tries=2, pause_s=0.001, spacing_s=0.0)
        monkeypatch.setattr(notify_command, "Webhook", lambda address: Webhook(address, patience=quick))
        yield state


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    with serve_github() as state:
        monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
        monkeypatch.delenv("KNICKPOINT_GITHUB_TOKEN", raising=False)
        monkeypatch.setenv("GITHUB_API_URL", state.url)
        yield state


def run(data: Path, *arguments: str) -> Result:
    result = CliRunner().invoke(notify, ["--data", str(data), "--configs", str(CONFIGS), *arguments])
    said = result.output + repr(result.exception)
    assert TOKEN not in said
    assert PATH not in said
    return result


def test_the_channel_is_reported_once(data: Path, channel: Channel) -> None:
    first = run(data, "--webhook", "--site-url", "https://example.org")
    assert first.exit_code == 0, first.output
    assert "sent to the channel: confirmed, Throughput of write at saturation, −13.8" in first.stdout
    (message,) = channel.heard
    assert message["text"].startswith("● Confirmed: Throughput of write")
    again = run(data, "--webhook")
    assert again.exit_code == 0
    assert "the channel knows all already" in again.stdout
    assert len(channel.heard) == 1
    kept = json.loads((data / "told.json").read_text())
    assert kept["format"] == 1
    assert [one["standing"] for one in kept["incidents"].values()] == ["confirmed"]
    assert not list(data.glob("*.new"))


def test_what_was_not_acknowledged_is_reported_next_time(data: Path, channel: Channel) -> None:
    channel.faults += 2 * [channel_server.Fault(status=500)]
    failed = run(data, "--webhook")
    assert isinstance(failed.exception, WebhookError)
    assert failed.exception.exit_code == 3
    assert not (data / "told.json").exists()
    assert run(data, "--webhook").exit_code == 0
    assert len(channel.heard) == 1


def test_a_dry_run_prints_what_would_be_reported_and_shows_nobody(
    data: Path, channel: Channel, hub: GitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    dry = run(data, "--webhook", "--dry-run")
    assert dry.exit_code == 0, dry.output
    assert json.loads(dry.stdout)["blocks"][0]["type"] == "header"
    assert "would have sent 1" in dry.stderr
    with_token = run(data, "--github-issues", "example/configs", "--dry-run")
    assert "would have opened an issue" in with_token.stderr
    assert hub.asked
    monkeypatch.delenv("GITHUB_TOKEN")
    hub.asked.clear()
    without = run(data, "--github-issues", "example/configs", "--dry-run")
    assert "<!-- knickpoint-incident:nightly" in without.stdout
    assert "GitHub was not asked" in without.stderr
    assert hub.asked == hub.writes == channel.heard == []
    assert not (data / "told.json").exists()


def test_issues_are_kept_and_a_failing_channel_does_not_keep_them_from_it(
    data: Path, channel: Channel, hub: GitHub
) -> None:
    channel.faults += 2 * [channel_server.Fault(status=403, text="action_prohibited")]
    both = run(data, "--webhook", "--github-issues", "example/configs")
    assert isinstance(both.exception, WebhookError)
    assert "opened https://github.com/example/configs/issues/1" in both.stdout
    again = run(data, "--github-issues", "example/configs")
    assert again.exit_code == 0
    assert "the issues say so already" in again.stdout
    assert len(hub.issues) == 1
    missing = run(data, "--github-issues", "example/none")
    assert isinstance(missing.exception, GitHubError)


def test_more_than_ten_at_once_are_one_message(
    data: Path, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    news = _READ(DataPaths(data), CONFIGS, "")
    (notice,) = news.notices
    many = [replace(notice, name=f"{one:08x}", handles=(f"{one:010x}",)) for one in range(11)]
    reported = replace(news, notices=tuple(many))
    monkeypatch.setattr(notify_command, "_read_news", lambda *_: reported)
    assert run(data, "--webhook").exit_code == 0
    (message,) = channel.heard
    assert "11 incidents with news" in message["text"]
    assert run(data, "--webhook").exit_code == 0
    assert len(channel.heard) == 1


@pytest.mark.parametrize("content", ["", "{}", '{"format": 2, "incidents": {}}', "[1]", "\0"])
def test_a_broken_ledger_shows_nobody_and_says_what_to_do(
    data: Path, channel: Channel, content: str
) -> None:
    (data / "told.json").write_text(content)
    result = run(data, "--webhook")
    assert isinstance(result.exception, InputError)
    assert "nothing was sent" in str(result.exception)
    assert channel.heard == []


def test_a_death_between_a_message_and_the_ledger_repeats_that_message_and_no_other(
    data: Path, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    news = _READ(DataPaths(data), CONFIGS, "")
    (notice,) = news.notices
    three = [replace(notice, name=f"{one:08x}", handles=(f"{one:010x}",)) for one in range(3)]
    reported = replace(news, notices=tuple(three))
    monkeypatch.setattr(notify_command, "_read_news", lambda *_: reported)
    write = sent_log.durable.atomic_write

    def die_at_the_second(path: Path, content: bytes) -> None:
        if len(channel.heard) == 2:
            raise KeyboardInterrupt
        write(path, content)

    monkeypatch.setattr(sent_log.durable, "atomic_write", die_at_the_second)
    assert run(data, "--webhook").exit_code != 0
    monkeypatch.setattr(sent_log.durable, "atomic_write", write)
    assert run(data, "--webhook").exit_code == 0
    assert len(channel.heard) == 4  # one of three twice
    assert run(data, "--webhook").exit_code == 0
    assert len(channel.heard) == 4


def test_two_at_once_do_not_both_tell(data: Path, channel: Channel) -> None:
    with sent_log.open_sent_log(data / "told.json"):
        result = run(data, "--webhook")
    assert isinstance(result.exception, UsageError)
    assert "another process is sending" in str(result.exception)
    assert channel.heard == []


def test_wrong_usage_is_said_before_anybody_is_reported(
    data: Path, channel: Channel, hub: GitHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert isinstance(run(data).exception, UsageError)
    assert isinstance(run(tmp_path, "--webhook").exception, HistoryError)
    monkeypatch.setenv("GITHUB_TOKEN", "")
    result = run(data, "--webhook", "--github-issues", "example/configs")
    assert isinstance(result.exception, UsageError)
    monkeypatch.setenv(VARIABLE, "http://example.org/services/secret")
    result = run(data, "--webhook")
    assert isinstance(result.exception, UsageError)
    assert "example.org" not in str(result.exception)
    assert run(data, "--github-issues", "no-repository").exit_code == 2
    assert channel.heard == hub.writes == []


def test_another_machine_shows_what_was_saved(
    data: Path, hub: GitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "notices.json"
    with monkeypatch.context() as without_token:
        without_token.delenv("GITHUB_TOKEN")
        assert "1 to send" in run(data, "--save", str(file)).stdout
    assert hub.asked == []
    nowhere = tmp_path / "nowhere"
    reported = run(nowhere, "--notices", str(file), "--github-issues", "example/configs")
    assert "opened https://github.com/example/configs/issues/1" in reported.stdout, reported.output
    # The same text as from the history itself, and what it holds is known there, too.
    assert "the issues say so already" in run(data, "--github-issues", "example/configs").stdout
    content = json.loads(file.read_text())
    file.write_text(json.dumps(content | {"notices": []}))
    run(nowhere, "--notices", str(file), "--github-issues", "example/configs")
    assert next(iter(hub.issues.values()))["state"] == "closed"
    assert not nowhere.exists()


@pytest.mark.parametrize("others", [("--webhook",), ("--save", "other.json")])
def test_the_channel_is_told_from_a_history_only(data: Path, others: tuple[str, ...]) -> None:
    reported = run(data, "--notices", "notices.json", *others)
    assert isinstance(reported.exception, UsageError)
