"""Versions: the line that a version belongs to, and its place there, by the rules of PEP 440.

    5.0.9        line 5.0, place 9           3.10         line 3.10, place 0
    5.0-rc1      line 5.0, place -999        2025.4.2     line 2025.4, place 2
    4.0-alpha3   line 4.0, place -2997       20241003     line 0, place 20241003
    2.1.8.1      line 2.1.8, place 1

A release is measured in the order of its line: previews lie before the first release of their line.
The packaged lists number their releases in the same way, so that a release has one place, whether it
was packaged or found.
"""

from packaging.version import InvalidVersion, Version

_PREVIEWS = {"a": -3000, "b": -2000, "rc": -1000}
"""Where the first alpha, beta and release candidate of a line stand; a thousand of each fit."""
_MOST_PREVIEWS = 999
_PATCHED = 3
"""Numbers of a version whose last is its patch; one with fewer is the first of its line."""


def place_version(text: str) -> tuple[str, int] | None:
    """Return the line of a version and its place there; None of what is no version or has no place.

    Without a place are development and post-releases, and previews of anything but a line's first.
    """
    version = read_version(text)
    if version is None or version.is_devrelease or version.post is not None or version.epoch:
        return None
    numbers = version.release
    if len(numbers) == 1:
        line, place = "0", numbers[0]
    elif len(numbers) < _PATCHED:
        line, place = ".".join(map(str, numbers)), 0
    else:
        line, place = ".".join(map(str, numbers[:-1])), numbers[-1]
    if version.pre is None:
        return line, place
    kind, number = version.pre
    return None if place or number > _MOST_PREVIEWS else (line, _PREVIEWS[kind] + number)


def read_version(text: str) -> Version | None:
    """Return a version, or None where it is none; `5.4.0~rc1`, as packages write it, is `5.4.0rc1`."""
    try:
        return Version(text.replace("~", ""))
    except InvalidVersion:
        return None


def line_order(line: str) -> tuple[int, ...]:
    """Return what lines are ordered by; one that is no number, as `dev`, comes behind all that are."""
    parts = line.split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else (1 << 62,)
