"""How a night is named for people: on the terminal as on the pages. Its id stays in data and links."""

import re
from datetime import date
from functools import lru_cache

_NIGHT = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:-(.+))?-(\d+)")
"""The id of a night: its day, the lab in a shared history, and its number on that day."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NO_BREAK = "\N{NO-BREAK SPACE}"


@lru_cache(maxsize=10_000)
def night_name(night: str) -> str:
    """Name a night by its day, 21 Nov 2026 #14, never broken; another name stays as it is."""
    found = _NIGHT.fullmatch(night)
    if found is None:
        return night
    year, month, day, lab, number = found.groups()
    if not 1 <= int(month) <= len(_MONTHS):
        return night
    parts = (str(int(day)), _MONTHS[int(month) - 1], year, lab, f"#{number}")
    return _NO_BREAK.join(filter(None, parts))


def name_both(first: str, last: str) -> tuple[str, str]:
    """Name two nights, the second by its number alone where both are of one day."""
    one, other = night_name(first), night_name(last)
    day, _, number = other.rpartition("#")
    is_same_day = bool(day) and one.startswith(f"{day}#")
    return one, f"#{number}" if is_same_day else other


def night_span(first: str, last: str, joint: str) -> str:
    """Name two nights, of one day with the day once: 21 Nov 2026 #14 to #19."""
    return f" {joint} ".join(name_both(first, last))


def day_name(day: date) -> str:
    """Name a day: 21 Nov 2026, never broken."""
    return _NO_BREAK.join((str(day.day), _MONTHS[day.month - 1], str(day.year)))
