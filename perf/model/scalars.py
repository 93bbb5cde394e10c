"""The plain values of configuration files, each with the bounds that every file keeps to."""

import re
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Gt, Le, MinLen
from pydantic import AllowInfNan, ConfigDict, StringConstraints

STRICT = ConfigDict(strict=True, extra="forbid")

SAFE_ID = r"[A-Za-z0-9][A-Za-z0-9._+@-]{0,199}"
"""What the id of a trial may be: it names a directory."""
SafeId: TypeAlias = Annotated[str, StringConstraints(pattern=f"^{SAFE_ID}$")]
"""Names files and directories."""
Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
VERSION = r"[0-9]+(\.[0-9A-Za-z]+)*(-[0-9A-Za-z]+)*"


def is_version(text: str) -> bool:
    """Return whether a selector of releases names one of them."""
    return re.fullmatch(VERSION, text) is not None


Version: TypeAlias = Annotated[str, StringConstraints(pattern=f"^{VERSION}$")]
RUNNING = "running"
"""The selector of what an attached cluster runs."""
_NEWEST = "newest( [1-9][0-9]{0,2})?"
_LINE = r"[0-9]+(\.[0-9]+)*"
Selector: TypeAlias = Annotated[
    str,
    StringConstraints(
        pattern=f"^({VERSION}|(({_LINE}|previous line): )?{_NEWEST}|{_LINE}: each minor"
        f"|[<>]=?{VERSION}( [<>]=?{VERSION})?|pinned \\[{VERSION}(, ?{VERSION})*\\]"
        f"|commits: {_NEWEST}( per day)?|{RUNNING})$"
    ),
]
"""Which releases are measured; `perf.config.selectors` says what each form means."""
Text: TypeAlias = Annotated[str, MinLen(1)]
AbsolutePath: TypeAlias = Annotated[str, StringConstraints(pattern=r"^/")]
Positive: TypeAlias = Annotated[int, Gt(0)]
Count: TypeAlias = Annotated[int, Ge(0)]
Finite: TypeAlias = Annotated[float, AllowInfNan(False)]  # noqa: FBT003  pydantic's own form
PositiveFloat: TypeAlias = Annotated[float, Gt(0)]
SettingName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*$")]
Statistic: TypeAlias = Literal["mean", "p50", "p90", "p95", "p99", "p99.5", "p99.9", "max", "estimate"]
Share: TypeAlias = Annotated[float, Ge(0), Le(1)]
# Far above what any client of this program can offer, and low enough that a slip of a few zeros is
# told before a night instead of by a client out of memory.
OfferedLoad: TypeAlias = Annotated[float, Gt(0), Le(1_000_000)]
# The same for a price: no host costs more in an hour.
Price: TypeAlias = Annotated[float, Gt(0), Le(100_000)]
# And for what is stored: a hundred times the largest that anybody has published, 64-bit numbers hold it
# all, and no client holds a table of it in memory.
RecordCount: TypeAlias = Annotated[int, Gt(0), Le(1_000_000_000_000)]
# And of what it does hold one, of some hundred bytes for each: devices, hosts.
Sources: TypeAlias = Annotated[int, Gt(0), Le(10_000_000)]
# Far above any published row, and what the pools that rows are cut from can give.
RowBytes: TypeAlias = Annotated[int, Gt(0), Le(1_000_000)]
# What one answer may hold in rows, or one row in fields.
Several: TypeAlias = Annotated[int, Gt(0), Le(100_000)]
# A hundred years, in seconds: more is meant as milliseconds.
Span: TypeAlias = Annotated[int, Gt(0), Le(3_155_760_000)]
InFlight: TypeAlias = Annotated[int, Gt(0), Le(100_000)]
