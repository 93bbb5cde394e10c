"""The Maven that is fetched where a host has none."""

from pathlib import Path

import pytest

from perf.hosts.remote import LocalHost
from perf.releases import maven
from perf.releases.java import digest_files


@pytest.mark.parametrize("name", ["bin/mvn", "lib/added.jar"])
def test_a_maven_that_was_changed_in_the_cache_is_unpacked_again_before_it_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def unpack(home: Path) -> None:
        (home / "bin").mkdir(parents=True)
        (home / "lib").mkdir()
        (home / "bin" / "mvn").write_text("#!/bin/sh\n")

    unpack(tmp_path / "pinned")
    digest = digest_files(LocalHost(), str(tmp_path / "pinned"))
    monkeypatch.setattr(maven, "_MAVEN_FILES", digest)
    monkeypatch.setattr(maven, "_unpack_maven", unpack)
    monkeypatch.setenv("KNICKPOINT_CACHE", str(tmp_path / "cache"))
    home = maven.fetch_maven(print).parents[1]
    (home / name).write_text("#!/bin/sh\ntouch owned\n")
    assert maven.fetch_maven(print) == home / "bin" / "mvn"
    assert digest_files(LocalHost(), str(home)) == digest
