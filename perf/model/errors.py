"""Every error that Knickpoint raises on purpose, as one tree.

KnickpointError                      a sentence for a person: what, where, what next
├── ConfigError                      files under configs/ are wrong; carries all problems at once
├── UsageError                       the command line asks for something that does not exist
├── InputError                       a file given to a command is wrong; carries all problems at once
├── HistoryError                     the history file is locked, corrupt or from another version
├── BundleError                      a trial bundle is truncated or foreign
├── ReleaseError                     a release could not be found, fetched or verified
├── SiteError                        the site could not be made: no rights, no room, no such place
├── GitHubError                      GitHub refuses, or cannot be reached
├── WebhookError                     a chat channel does not take a message, or cannot be reached
└── MeasureError                     a trial, or the whole night, cannot be measured
    ├── HostUnfit                    this host lacks memory, disk, a free port or a program
    └── StepFailed                   a step of a trial failed on a node; carries node, step, log tail
        ├── NotReady                 `check`: the cluster does not serve (yet); the harness polls
        ├── AccessError              an account or a certificate: a secret cannot be had, or is wrong
        │   └── AccountRefused       a server does not let a client in
        ├── Unreachable              the way to a host was lost; nothing is known of what runs there
        └── TimedOut                 a step passed its time limit

The command line prints the sentence and exits with `exit_code` (0 fine, 1 regression found, 2 wrong
usage or configuration, 3 could not measure). Anything else that escapes is a defect of ours.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from perf.model.shown import escape_control_characters


class KnickpointError(Exception):
    """A fault that a person can act on; its text says what, where and what next."""

    exit_code: ClassVar[int] = 3


class ConfigError(KnickpointError):
    """Configuration files are wrong; `problems` holds one sentence each, all found at once."""

    exit_code = 2
    _MOST_SHOWN: ClassVar[int] = 150

    def __init__(self, problems: Sequence[str]) -> None:
        """Join the problems into one readable message; of very many, the first ones and their count."""
        self.problems = tuple(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        shown = [f"  {problem}" for problem in self.problems[: self._MOST_SHOWN]]
        if len(self.problems) > self._MOST_SHOWN:
            shown.append(f"  … and {len(self.problems) - self._MOST_SHOWN} more")
        super().__init__("\n".join((f"{count} in the configuration:", *shown)))


class UsageError(KnickpointError):
    """The command line names something that does not exist or does not fit together."""

    exit_code = 2


class InputError(KnickpointError):
    """A file given to a command is wrong; `problems` holds one sentence each, all found at once."""

    exit_code = 2
    _MOST_SHOWN: ClassVar[int] = 50

    def __init__(self, path: Path, problems: Sequence[str]) -> None:
        """Join the problems into one readable message; of very many, the first ones and their count."""
        self.problems = tuple(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems):,} problems"
        shown = [f"  {problem}" for problem in self.problems[: self._MOST_SHOWN]]
        if len(self.problems) > self._MOST_SHOWN:
            shown.append(f"  … and {len(self.problems) - self._MOST_SHOWN:,} more")
        super().__init__("\n".join((f"{count} in {path}:", *shown)))


class HistoryError(KnickpointError):
    """The history file cannot be used; the bundles can always rebuild it."""


class DamagedHistory(HistoryError):  # noqa: N818  a claim about the file
    """The history file is there, and is none any more; only a rebuild repairs that."""


class BundleError(KnickpointError):
    """A trial bundle is truncated, foreign or of an unknown schema version."""


class ReleaseError(KnickpointError):
    """A release is unknown, cannot be fetched, or does not match its checksum."""


class SiteError(KnickpointError):
    """The site could not be made; the one that was there is still there."""


class GitHubError(KnickpointError):
    """GitHub refuses, or cannot be reached; its text says which permission or name to check."""


class WebhookError(KnickpointError):
    """A webhook does not take a message; its text never holds the address, which is a secret."""


class MeasureError(KnickpointError):
    """A trial, or everything, could not be measured."""


class HostUnfit(MeasureError):  # noqa: N818  a claim about the host, not "HostUnfitError"
    """The host cannot carry the trial: memory, disk, ports or programs are missing."""


class StepFailed(MeasureError):  # noqa: N818  reads as what happened
    """One step of a trial failed; the log tail, if any, is part of the message."""

    def __init__(self, step: str, node: str, why: str, log_tail: str = "") -> None:
        """Say which step failed on which node and why; append the node's last log lines.

        Both may hold what a server or a host printed: nothing of it drives a terminal.
        """
        self.step, self.node, self.why, self.log_tail = (
            step,
            node,
            escape_control_characters(why),
            escape_control_characters(log_tail),
        )
        super().__init__(self.sentence)

    def add_when(self, when: str) -> None:
        """Add to the sentence when it happened."""
        self.why = f"{self.why} ({when})"

    def __str__(self) -> str:
        """Write the sentence, and the tail of the log below it."""
        tail = (
            f"\n--- last lines of its log ---\n{self.log_tail.rstrip()}"
            if self.log_tail.strip()
            else ""
        )
        return f"{self.sentence}{tail}"

    @property
    def sentence(self) -> str:
        """What failed where, in one line, without the log."""
        return f"{self.step} failed on {self.node}: {self.why}"


class NotReady(StepFailed):
    """The cluster does not serve yet; the harness asks again until the step's time limit."""


class AccessError(StepFailed):
    """An account or a certificate is wrong, here or on a server; the text never holds a secret."""

    def __init__(self, where: str, why: str) -> None:
        """Say on which side, and what to do about it."""
        super().__init__("access", where, why)


class AccountRefused(AccessError):  # noqa: N818  reads as what happened
    """A server does not let a client in, by its account; a fresh one may do so a little later."""


class Unreachable(StepFailed):
    """A host cannot be reached, or the connection to it was lost; it may do anything meanwhile."""


class TimedOut(StepFailed):
    """A step did not finish within its time limit."""
