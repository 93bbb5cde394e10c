"""Text that nobody vouches for, made safe inside a Markdown comment.

Two layers read a comment on GitHub. The Markdown parser (GitHub Flavored Markdown) makes markup, raw
HTML and links of addresses; entities and backslashes stop it. A filter then reads the rendered text and
turns @names, #numbers, GH-numbers, commit hashes and :emoji: into links and pictures; no entity stops
that, a zero-width space does. It leaves code alone.
"""

import html
import re
import unicodedata

_BREAK = "&#8203;"
"""A zero-width space: nothing to see, and no longer one word. Written so that a reviewer sees it."""
_CUT = " …"
_MARKUP = re.compile(r"([\\`*_\[\]|~$])")
_START = re.compile(r"^(\d*)((?<=\d)[.)](?=\s|$)|(?<!\d)(?:#+(?=\s|$)|[+\-=](?=[\s\-=]|$)))")
"""What begins a list, a heading or a rule, or underlines one, at the start of a line."""
_REFERENCES = re.compile(
    r"(?P<after>@|\#(?=\w)|\$)"  # a mention or an address, the number of an issue, a formula
    r"|(?P<scheme>:)(?=//)"  # an address; the browser would follow it
    r"|(?P<emoji>:)(?=[\w+-]+:)"
    r"|(?P<www>www)(?=\.)"
    r"|(?P<issue>gh-)(?=\d)"
    r"|(?P<hash>[0-9a-f]{6})(?=[0-9a-f])",  # seven digits may name a commit
    re.IGNORECASE,
)
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Controls, formats (direction, zero width), halves of pairs, private and unassigned, separators."""


MARKED_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,49}")
"""What a name may be: it stands in an HTML comment, and must not be able to end it."""


def first_line(body: str) -> str:
    """Return the line in which a hidden marker stands."""
    return body.partition("\n")[0].strip()


def clean(text: str, most: int = 0) -> str:
    """Return one line of what can be seen, in one direction; cut after `most` characters, if given."""
    spaced = re.sub(r"\s", " ", text)
    seen = " ".join(drop_invisible(spaced).split())
    return f"{seen[:most].rstrip()}{_CUT}" if most and len(seen) > most else seen


def line(text: str, most: int) -> str:
    """Return one line that XML can hold, too, and that is never empty."""
    return clean(text, most) or "–"


def escape(text: str, most: int = 0) -> str:
    """Write text to show as it is, anywhere in a line or a cell: no markup, HTML, link or mention."""
    parted = _REFERENCES.sub(r"\g<0>\0", clean(text, most))
    marked = _MARKUP.sub(r"\\\1", html.escape(parted, quote=False))
    return _START.sub(r"\1\\\2", marked).replace("\0", _BREAK)


def code(text: str, most: int = 0) -> str:
    """Write text as inline code, as it is; in a table, too.

    With back-ticks or pipes in it, it is marked by its element: what escapes them in a cell is shown
    outside of one.
    """
    shown = clean(text, most)
    if not shown:
        return ""
    if "`" in shown or "|" in shown:
        return f"<code>{escape(shown).replace(f'{chr(92)}|', '&#124;')}</code>"
    return f"`{shown}`"


def block(text: str) -> str:
    """Write lines as a block of code; its fence is longer than any run of back-ticks inside."""
    lines = [drop_invisible(line) for line in text.splitlines()]
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join((f"{fence}text", *lines, fence))


def drop_invisible(line: str) -> str:
    """Drop what cannot be seen of a line; spaces stay."""
    return "".join(one for one in line if unicodedata.category(one) not in _INVISIBLE)
