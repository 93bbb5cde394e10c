"""What others wrote, made fit for a message: nothing that a terminal obeys, and no megabytes. Pure."""

from collections.abc import Sequence

from pydantic import ValidationError

_SHOWN = 60
_LINE = 1000
_LISTED = 50


def printable(text: str, longest: int = _SHOWN) -> str:
    """Escape what a terminal might obey, and cut what is too long for a message."""
    shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:longest])
    return shown if len(text) <= longest else f"{shown[: longest - 1]}…"


def escape_control_characters(text: str) -> str:
    """Do so with each line of a text of several, which may be long, but no longer than people read."""
    return "\n".join(printable(line.replace("\t", " "), _LINE) for line in text.split("\n"))


def list_some(problems: Sequence[str], most: int = _LISTED) -> list[str]:
    """Return the first problems and how many there are beside them, one per line."""
    rest = len(problems) - most
    return [*problems[:most], *([f"… and {rest:,} more"] if rest > 0 else [])]


def list_faults(error: ValidationError) -> list[str]:
    """List all that is wrong with a document, one field per line, without its values."""
    return [
        f"{'.'.join(printable(str(step)) for step in fault['loc']) or 'whole file'}: {fault['msg']}"
        for fault in error.errors(include_url=False, include_input=False)
    ]


def format_duration(seconds: float) -> str:
    """Return a duration as people say it: 42 s, 3 min 05 s, 2 h 10 min."""
    whole = max(0, round(seconds))
    if whole < 60:  # noqa: PLR2004  seconds in a minute
        return f"{whole} s"
    if whole < 3600:  # noqa: PLR2004  seconds in an hour
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
