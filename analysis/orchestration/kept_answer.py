"""What `detect` said last of a history: while nothing is new, it is said again and nothing is judged.

It is kept in a file of the data directory. Nothing in it could not be made again: if anything is wrong
with it, it is as if it were not there. An edge: it reads and writes that file.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path

from pydantic import TypeAdapter

from analysis.detection.verdict import Outcome
from analysis.judging.description import describe
from analysis.orchestration.inputs import describe_inputs
from analysis.orchestration.judging import judge_history
from analysis.orchestration.settings import read_named_settings
from perf.config.catalog import Catalog
from perf.local import durable, standing
from perf.local.paths import DataPaths
from perf.local.plain_files import read_plain
from perf.model.scalars import STRICT

MOST_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was said of a history, line by line, and what it came to; `made_from` digests what of."""

    __pydantic_config__ = STRICT
    made_from: str
    outcome: Outcome
    lines: tuple[str, ...]


_FORM = TypeAdapter(Answer)


def answer_for(paths: DataPaths, catalog: Catalog, today: date) -> Answer:
    """Return the answer for a history: that of the last time, or a new one if anything is new.

    Raises:
        HistoryError: the history cannot be read, or holds values that no trial can have measured.
        InputError: the result of a comparison is not one.

    """
    made_from = _describe_all(paths, catalog, today)
    if kept := _read(paths.answer, made_from):
        return kept
    judgement = judge_history(paths, catalog, today)
    said = describe(judgement, read_named_settings(judgement.incidents, catalog, paths))
    answer = Answer(made_from=made_from, outcome=judgement.outcome, lines=tuple(said))
    # What was appended meanwhile may be in it or not.
    if made_from and made_from == _describe_all(paths, catalog, today):
        with suppress(OSError):
            durable.atomic_write(paths.answer, _FORM.dump_json(answer))
    return answer


def _describe_all(paths: DataPaths, catalog: Catalog, today: date) -> str:
    """Digest what an answer is made from; the bundles tell what was changed in a configuration."""
    inputs = describe_inputs(paths, catalog, today)
    parts = f"{inputs} {standing.describe_names(paths.trials)}"
    return sha256(parts.encode()).hexdigest() if inputs else ""


def _read(path: Path, made_from: str) -> Answer | None:
    with suppress(OSError, ValueError):
        kept = _FORM.validate_json(read_plain(path, MOST_BYTES))
        if made_from and kept.made_from == made_from:
            return kept
    return None
