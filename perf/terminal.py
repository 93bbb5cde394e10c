"""What is written to a terminal: names that others chose are shown there, never obeyed.

A name may hold the sequences by which a program moves the cursor, sets the title or answers in the
user's place. Where output goes to a file or a pipe it is data, and stays as it is.
"""

import io
import sys
import unicodedata

_OBEYED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of controls, formats such as changes of direction, and ends of lines."""
_LAYOUT = "\n\t"


class Tamed(io.TextIOWrapper):
    """Writes text as it is, but for what a terminal would obey: that is written as an escape."""

    def write(self, text: str) -> int:
        """Write the text; give how many characters it has."""
        super().write(escape(text))
        return len(text)


def escape(text: str) -> str:
    """Spell what a terminal would obey as Python spells it in ASCII; lines and tabs stay."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(
        ascii(one)[1:-1] if unicodedata.category(one) in _OBEYED and one not in _LAYOUT else one
        for one in text
    )


def tame_terminal() -> None:
    """Let all that this process writes to a terminal pass through `escape`, for as long as it lives."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and stream.isatty():
            tamed = Tamed(
                stream.buffer, encoding=stream.encoding, errors="backslashreplace", line_buffering=True
            )
            setattr(sys, name, tamed)
