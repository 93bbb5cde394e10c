"""A load generator of one's own: how it is run on the client host, and how its figures are read.

`engine: command` of a workload runs it in place of Knickpoint's own engines, for the measured phases;
tables and preload stay Knickpoint's.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from annotated_types import MaxLen, MinLen
from pydantic import StringConstraints

from perf.model.scalars import STRICT, Text

Argument: TypeAlias = Annotated[str, MaxLen(10_000)]
Command: TypeAlias = Annotated[tuple[Argument, ...], MinLen(1), MaxLen(1000)]
FileName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
# In two pairs of braces it is text, in one pair of them.
_PLACEHOLDER = re.compile(r"\{(?:\{(?P<text>[a-z_]+)\}|(?P<name>[a-z_]+))\}")

OF_EVERY_RUN = frozenset(
    {"addresses", "address", "port", "consistency", "seed", "directory", "username", "password_file"}
)
"""What stands for `{name}` in any command: where the servers are, and what the workload says."""
OF_A_LOAD = OF_EVERY_RUN | {"seconds", "in_flight", "output"}
"""The same in a command that offers load."""
OF_AN_OPEN_LOOP = OF_A_LOAD | {"rate"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A load generator of one's own. It runs once for each warm-up and for each iteration.

    Arguments may hold `{addresses}` (with commas between), `{address}` (the first), `{port}`,
    `{consistency}`, `{seed}`, `{directory}` (where `files` are, and where it is started), `{username}`
    and `{password_file}` (of `access`); those of a load also `{seconds}`, `{in_flight}`, `{output}`
    (a file for its figures; without it, they are what it prints) and in an open loop `{rate}`, the
    operations per second.
    """

    __pydantic_config__ = STRICT
    prepare: Annotated[tuple[Command, ...], MaxLen(100)] = ()
    """Commands that are run once, one after the other, after the preload."""
    run: Command
    """The program and its arguments."""
    closed: tuple[Argument, ...] = ()
    """Further arguments in a closed loop."""
    open: tuple[Argument, ...] = ()
    """Further arguments in an open loop."""
    files: Annotated[Mapping[FileName, str], MaxLen(100)] = field(default_factory=dict)
    """Files that it reads, by name, with their text: scripts, properties."""
    figures: Literal["cassandra-stress", "hdr", "latte", "ycsb"]
    """What its figures are written in."""
    times: Literal["response_time", "service_time"] | None = None
    """From where its times count; absent: as the format says."""
    unit: Literal["ns", "us", "ms"] | None = None
    """The unit of a HdrHistogram log; absent: as the log says."""
    made_of: Annotated[tuple[Text, ...], MaxLen(100)] = ()
    """Further programs and files on the client host whose SHA-256 belongs to each trial: jars."""

    def command(self, *, is_open: bool) -> tuple[Argument, ...]:
        """Return the command of a load, with its placeholders."""
        return (*self.run, *(self.open if is_open else self.closed))

    @property
    def asks_password(self) -> bool:
        """Return whether any of its commands is given the file of the password."""
        commands = (*self.prepare, self.run, self.closed, self.open)
        return any("{password_file}" in argument for command in commands for argument in command)

    @property
    def parts(self) -> tuple[str, ...]:
        """What must be there on a client host: each program once, then what else it is made of."""
        programs = (command[0] for command in (self.run, *self.prepare))
        return tuple(dict.fromkeys((*programs, *self.made_of)))


def placeholders(argument: Argument) -> Iterator[str]:
    """Yield the names of the placeholders in an argument; other braces are text."""
    yield from (found["name"] for found in _PLACEHOLDER.finditer(argument) if found["name"])


def fill(command: Command, values: Mapping[str, str]) -> tuple[str, ...]:
    """Return a command with its placeholders filled in; KeyError where one has no value."""

    def replace(found: re.Match[str]) -> str:
        return f"{{{found['text']}}}" if found["text"] else values[found["name"]]

    return tuple(_PLACEHOLDER.sub(replace, argument) for argument in command)
