"""`knickpoint conformance` runs no release that is another one than was used first."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from perf.commands.conformance import conformance
from perf.model.errors import ReleaseError
from perf.model.results import Artifact, Source
from perf.releases import artifacts
from perf.releases.asking import pin


def test_a_release_that_was_changed_in_the_cache_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = Artifact(source=Source.MAVEN, sha256="b" * 64, location=str(tmp_path))
    monkeypatch.setattr(artifacts, "fetch", lambda *_, **__: changed)
    pin(tmp_path / "var" / "releases.json", "cassandra 5.0.9 maven", "a" * 64)
    arguments = [
        "cassandra",
        "--release",
        "5.0.9",
        "--testbed",
        "local",
        "--data",
        str(tmp_path / "var"),
    ]
    ended = CliRunner().invoke(conformance, arguments)
    assert isinstance(ended.exception, ReleaseError)
    assert f"its checksum was {'a' * 64}" in str(ended.exception)
