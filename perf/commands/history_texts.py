"""Answers of the history as text: cells aligned to columns, one row per line."""

from collections.abc import Iterable, Sequence

import click

TRIALS = """
    SELECT night, system || ' ' || version AS release, experiment, status,
           coalesce((SELECT string_agg(text, '; ' ORDER BY position) FROM reasons
                     WHERE reasons.trial_id = trials.trial_id), '') AS reason,
           trial_id AS trial
    FROM trials ORDER BY started_at, trial_id
"""


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print an answer, and how many rows it has."""
    for line in align([columns, *rows]):
        click.echo(line)
    click.echo("(1 row)" if len(rows) == 1 else f"({len(rows)} rows)")


def align(rows: Iterable[Sequence[object]]) -> list[str]:
    """Align cells to columns, one row per line; the last column is as wide as it likes."""
    cells = [[_plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]


def _plain(value: object) -> str:
    """Return a cell's text on one line, without control characters that a log may have brought in."""
    text = "" if value is None else str(value)
    return "".join(character if character.isprintable() else " " for character in text)
