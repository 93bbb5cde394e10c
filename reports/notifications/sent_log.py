"""The sent log: what a chat channel was sent of each incident, in `<data>/told.json`. An edge.

It is written after each message that was acknowledged, aside and then put in place, so it is whole or
as it was. A process that dies between the acknowledgement and the file repeats that one message.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError

from perf.local import durable
from perf.local.plain_files import read_json
from perf.model.errors import InputError, UsageError
from perf.model.scalars import STRICT
from perf.model.shown import printable
from reports.notifications.events import ReportedIncident, SentLogUpdate

_MOST_BYTES = 32 * 1024**2
_ADVICE = (
    "nothing was sent; put a copy of the file back, or remove it: then all that is open is sent again"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SentLogFile:
    __pydantic_config__ = STRICT
    format: Literal[1]
    incidents: Mapping[str, ReportedIncident]


_FILE = TypeAdapter(_SentLogFile)


class SentLog:
    """What was reported, by the name of the incident. Only inside of `open_sent_log`."""

    def __init__(self, path: Path) -> None:
        """Read it.

        Raises:
            InputError: the file is none of ours, or cannot be read: what was reported is not known.

        """
        self._path = path
        self._sent = _read(path)

    @property
    def sent(self) -> Mapping[str, ReportedIncident]:
        """What was sent so far."""
        return self._sent

    def write(self, *updates: SentLogUpdate) -> None:
        """Write down what was reported now; nothing is written where nothing changes."""
        sent = dict(self._sent)
        for update in updates:
            sent.pop(update.before, None)
            sent[update.name] = update.sent
        if sent != self._sent:
            _write(self._path, sent)
            self._sent = sent


@contextmanager
def open_sent_log(path: Path) -> Iterator[SentLog]:
    """Read the sent log, for this process alone until the block ends.

    Raises:
        InputError: the file is none of ours, or cannot be read.
        UsageError: another process is sending.

    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(path.with_name(f"{path.name}.lock")).acquire(timeout=0):
            yield SentLog(path)
    except Timeout as error:
        raise UsageError(
            f"another process is sending from {path.parent}; wait until it ends"
        ) from error


def _read(path: Path) -> Mapping[str, ReportedIncident]:
    try:
        return _FILE.validate_json(read_json(path, _MOST_BYTES)).incidents
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(path, [f"it cannot be read: {error.strerror}; {_ADVICE}"]) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = printable(".".join(map(str, first["loc"]))) or "the file"
        raise InputError(path, [f"{where}: {first['msg']}; {_ADVICE}"]) from error


def _write(path: Path, sent: Mapping[str, ReportedIncident]) -> None:
    content = _FILE.dump_json(_SentLogFile(format=1, incidents=dict(sorted(sent.items()))), indent=1)
    durable.atomic_write(path, content + b"\n")
