"""Stacks of a profile: the same frames in each process and release, and whose cost a stack is. Pure."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeAlias

UNSEEN = ("not seen by the profiler",)
"""The stack of CPU time that the kernel counted and no sample met."""
RUNTIME = "the JVM: "
"""How the names of what the runtime does by itself begin: its compiler and collector come in bursts."""
THREAD = "thread "
"""How the outermost frame begins of a server that is no JVM: the name of its thread follows."""
_FOREIGN = ("java.", "javax.", "jdk.", "sun.", "com.sun.")
"""Packages of the language."""
_MODE = re.compile(r"_\[[a-z0-9]\]$")
"""How async-profiler ends the name of a frame of Java (compiled, inlined …), and of the kernel (k)."""
_FOLDED = (
    (re.compile(r"\$\$Lambda[^.;]*"), "$$Lambda"),
    (re.compile(r"lambda\$([^.;$]+)\$\d+"), r"lambda$\1"),
    (re.compile(r"((?:Method|Constructor)Accessor)\d+"), r"\1"),
    (re.compile(r".*/([^/;]+\.so)\S*(?: \(deleted\))?$"), r"\1"),
)
"""Numbers that are others in each process, so that frames match."""

Stacks: TypeAlias = Mapping[tuple[str, ...], float]
"""What each stack cost, from the outermost frame on."""


def read_stacks(text: str, kind: str) -> Stacks:
    """Return the stacks of a file of collapsed ones, with frames that match between processes.

    Lambdas, accessors and the copies of native libraries lose their numbers; how a frame was compiled
    is dropped, too. What is allocated stands last, as `new` and its type. A line that is none is left
    out.
    """
    stacks: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for line in text.splitlines():
        stack, _, total = line.rpartition(" ")
        if stack and total.isdigit():
            frames = tuple(map(_fold, stack.split(";")))
            if kind == "alloc":
                frames = (*frames[:-1], f"new {frames[-1].removesuffix('()')}")
            stacks[frames] += int(total)
    return stacks


def _fold(frame: str) -> str:
    """Return a frame without numbers that change; one of Java ends with `()` from here on."""
    mode = _MODE.search(frame)
    is_java = mode is not None and mode[0] != "_[k]"
    name = _MODE.sub("", frame)
    for pattern, instead in _FOLDED:
        name = pattern.sub(instead, name)
    return f"{name}()" if is_java and "." in name else name


def _is_own(frame: str) -> bool:
    return frame.endswith("()") and not frame.startswith(_FOREIGN)


def own_frames(stack: Sequence[str]) -> tuple[str, ...]:
    """Return the frames of the database's code; of a stack without any, what it is of the runtime."""
    if own := tuple(frame for frame in stack if _is_own(frame)):
        return own
    if stack == UNSEEN or stack[0].startswith(THREAD):
        return (stack[0],)
    told = ";".join(stack)
    if "Compile" in told:
        return (f"{RUNTIME}compiler",)
    if any(word in told for word in ("G1", "GC", "Gang", "Shenandoah", "ZDriver", "Parallel")):
        return (f"{RUNTIME}garbage collector",)
    java = [frame for frame in stack if frame.endswith("()")]
    return (java[-1],) if java else (f"{RUNTIME}other",)


def own_costs(stacks: Stacks) -> Mapping[str, float]:
    """Return what each method cost without what it calls of the database's code, in the stacks' unit.

    Each stack is counted once, so they add up to all that was seen.
    """
    found: defaultdict[str, float] = defaultdict(float)
    for stack, cost in stacks.items():
        found[own_frames(stack)[-1]] += cost
    return found


def short_name(frame: str) -> str:
    """Return class and method, `CommitLog.add`; anything else is short as it is."""
    return ".".join(frame.removesuffix("()").rsplit(".", 2)[-2:]) if frame.endswith("()") else frame


def package_of(frame: str) -> str:
    """Return the package of a method, `org.apache.cassandra.db`; anything else is one by itself."""
    return frame.rsplit(".", 2)[0] if frame.endswith("()") and frame.count(".") > 1 else frame
