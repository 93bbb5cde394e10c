"""The place of a trial on a cluster that somebody else runs: one keyspace, marked with its owner.

The owner is in the comment of a table, so that mark and table come in one step. A process that is
killed between keyspace and mark leaves an empty keyspace that nobody dares to drop: a person must. If
the mark is refused, the keyspace is dropped again.
"""

from typing import Any

from perf.model.errors import KnickpointError, StepFailed
from perf.model.shown import printable
from perf.systems.contract import Target
from perf.systems.cql.client import KEYSPACE, SLOW_S, create_keyspace, open_driver

_MARK = "made_by_knickpoint"
_BEGIN = "made by Knickpoint for "
_KEYSPACES = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = %s"
_COMMENT = "SELECT comment FROM system_schema.tables WHERE keyspace_name = %s AND table_name = %s"


class CqlPlace:
    """How systems on CQL are attached to."""

    def make_place(self, target: Target, owner: str) -> None:
        """Make the keyspace anew, dropping one that the same owner left.

        Raises:
            StepFailed: it is there and is not the owner's, or the account may not make one.

        """

        def make(session: Any) -> None:  # noqa: ANN401  the driver is untyped
            if session.execute(_KEYSPACES, (KEYSPACE,)).one():
                _refuse_others(_read_mark(session), target, owner)
                session.execute(f"DROP KEYSPACE {KEYSPACE}", timeout=SLOW_S)
            # It fails if somebody else made one meanwhile, so what is made is ours.
            session.execute(create_keyspace(target, unless=""), timeout=SLOW_S)
            comment = f"{_BEGIN}{owner}".replace("'", "''")
            mark = f"CREATE TABLE {KEYSPACE}.{_MARK} (id int PRIMARY KEY) WITH comment = '{comment}'"
            try:
                session.execute(mark, timeout=SLOW_S)
            except BaseException:
                session.execute(f"DROP KEYSPACE {KEYSPACE}", timeout=SLOW_S)
                raise

        _ask(target, make)

    def drop_place(self, target: Target, owner: str) -> None:
        """Drop the keyspace if it is the owner's; leave another one alone.

        Raises:
            StepFailed: it could not be dropped.

        """

        def drop(session: Any) -> None:  # noqa: ANN401  the driver is untyped
            if _is_of(_read_mark(session), owner):
                session.execute(f"DROP KEYSPACE {KEYSPACE}", timeout=SLOW_S)

        _ask(target, drop)


def _ask(target: Target, do: Any) -> None:  # noqa: ANN401  takes a session of the driver
    try:
        with open_driver(target) as session:
            do(session)
    except KnickpointError:
        raise
    except Exception as error:  # a driver may raise anything
        why = f"keyspace {KEYSPACE}: {type(error).__name__}: {printable(str(error), 400)}"
        raise StepFailed("attach", target.addresses[0], why) from error


def _read_mark(session: Any) -> str:  # noqa: ANN401  the driver is untyped
    mark = session.execute(_COMMENT, (KEYSPACE, _MARK)).one()
    return mark[0] if mark else ""


def _is_of(mark: str, owner: str) -> bool:
    """Return whether a mark is an owner's: by its first word, which is an id of its own."""
    words = mark.removeprefix(_BEGIN).split()
    return mark.startswith(_BEGIN) and words[:1] == owner.split()[:1]


def _refuse_others(mark: str, target: Target, owner: str) -> None:
    if _is_of(mark, owner):
        return
    whose = f"it is {printable(mark)}" if mark.startswith(_BEGIN) else "it bears no mark"
    why = (
        f"there is a keyspace {KEYSPACE}, and {whose}; it is not touched. If nobody needs it and "
        f"nothing measures there, drop it by hand: DROP KEYSPACE {KEYSPACE}"
    )
    raise StepFailed("attach", target.addresses[0], why)
