"""Whatever hosts and servers answer while a trial runs: it is read, or the step fails in words."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from mutations import broken_bytes, broken_documents, offer

from perf.history import bundle
from perf.history.faults import drop_faulty, find_faults
from perf.hosts.canary import run_canary
from perf.hosts.facts import read_client_facts, read_facts
from perf.hosts.remote import Completed, LocalHost, Remote
from perf.hosts.usage import read_usage
from perf.local.paths import DataPaths
from perf.model.errors import StepFailed
from perf.model.results import Sample, Trial, TrialStatus
from perf.releases.java import read_pauses_s
from perf.systems.contract import Node
from perf.systems.scylladb import system as scylladb
from perf.trial.telemetry import read_processes


@dataclass(slots=True)
class Saying(LocalHost):
    """A host that answers each command with the same text."""

    name: str = "db-1"
    text: str = ""

    def run(self, argv: Sequence[str], **_: Any) -> Completed:  # noqa: ANN401  those of run
        return Completed(0, self.text, "")


def node(remote: Remote) -> Node:
    return Node(name="db-1", index=0, address="127.0.0.1", remote=remote, work_dir="/srv/db")


READERS: dict[str, tuple[Callable[[Remote], Any], str]] = {
    "usage": (read_usage, ""),
    "facts": (read_facts, "kernel\t6.1.0\ncpu\tA CPU\n"),
    "client facts": (lambda remote: read_client_facts(remote, "python3"), '{"python": "3.12.1"}'),
    "canary": (
        lambda remote: run_canary(remote, "/tmp", "canary-before"),  # noqa: S108  nothing is run
        json.dumps({name: [1.0, 2.0] for name in ("compute", "memory", "fsync", "loopback")}),
    ),
    "processes": (lambda remote: read_processes([node(remote)]), "100\n5000 4096 8192\n"),
    "pauses": (lambda remote: read_pauses_s(remote, "gc.log"), "12.5\n"),
}


@pytest.mark.keeps("hostile-answers")
@pytest.mark.parametrize("name", READERS)
def test_what_a_host_prints_is_read_or_the_step_fails_in_words(
    name: str, effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    read, text = READERS[name]
    if name == "usage":
        text = _record(read)
    valid = text.encode()
    texts = broken_bytes(valid) | st.sampled_from([b"", b"\n" * 1000, b"\x1b[2J" * 10_000, b"9" * 9000])
    if text.startswith("{"):
        texts |= broken_documents(json.loads(text))

    def take(data: bytes) -> None:
        read(Saying(text=data.decode("utf-8", "replace")))

    figures[name] = offer(texts, take, StepFailed, effort(15, 300), "db-1", refuses=False)


def _record(read: Callable[[Remote], Any]) -> str:
    """Return what this machine prints when it is asked the same."""

    class Recording(LocalHost):
        said = ""

        def run(self, argv: Sequence[str], **options: Any) -> Completed:  # noqa: ANN401  those of run
            done = super().run(argv, **options)
            self.said = done.stdout
            return done

    here = Recording()
    read(here)
    return here.said


@pytest.mark.keeps("hostile-answers")
def test_what_a_server_says_of_its_compactions_is_a_count_or_none(
    monkeypatch: pytest.MonkeyPatch, effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    class Answering:
        status = 200
        text = b""

        def __init__(self, *_: object, **__: object) -> None:
            pass

        def request(self, *_: object) -> None:
            pass

        def getresponse(self) -> "Answering":
            return self

        def read(self, most: int) -> bytes:
            return self.text[:most]

        def close(self) -> None:
            pass

    monkeypatch.setattr(scylladb.http.client, "HTTPConnection", Answering)

    def take(data: bytes) -> None:
        Answering.text = data
        counts = scylladb._compactions(node(Saying()))  # noqa: SLF001  what one look asks
        assert all(isinstance(count, int) for count in counts)

    broken = broken_documents([1]) | broken_bytes(b"[3, 4]") | st.sampled_from([b"7", b"[1]"])
    figures["compactions"] = offer(broken, take, StepFailed, effort(20, 500))


@pytest.mark.keeps("hostile-answers")
@pytest.mark.parametrize("value", [nan, inf, -inf])
def test_a_figure_that_no_bundle_holds_fails_the_trial_and_loses_no_story(
    tmp_path: Path, make_trial: Callable[..., Trial], value: float
) -> None:
    trial = make_trial()
    sample: Sample = replace(trial.samples[0], value=value)
    kept = drop_faulty(replace(trial, samples=(sample, *trial.samples[1:])))
    assert (kept.status, kept.samples) == (TrialStatus.FAILED, ())
    assert [reason.kind for reason in kept.reasons] == ["figures-unusable"]
    assert str(value) in kept.reasons[0].text
    assert kept.counters == trial.counters
    assert not find_faults(kept)
    assert isfinite(trial.samples[0].value)
    assert drop_faulty(trial) is trial
    staged = bundle.stage(DataPaths(tmp_path), kept.id)
    assert bundle.read(bundle.seal(staged, kept, ()))[0].reasons == kept.reasons
