"""A release of a few files, as `perf.releases.artifacts` would have fetched it."""

import hashlib
from pathlib import Path

from perf.model.results import Artifact, Source
from perf.releases.artifacts import SUMS


def artifact_of(directory: Path, source: Source = Source.ARCHIVE) -> Artifact:
    """Write down the sums of all files in a directory; return the artifact that it is then."""
    files = (path for path in sorted(directory.rglob("*")) if path.is_file() and path.name != SUMS)
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(directory)}\n"
        for path in files
    ]
    (directory / SUMS).write_text("".join(lines))
    sha256 = hashlib.sha256("".join(lines).encode()).hexdigest()
    return Artifact(source=source, sha256=sha256, location=str(directory))
