"""How valid input is broken, for the tests of everything that reads what others wrote.

- `broken_bytes(valid)`: bytes cut, flipped, doubled, joined, in another encoding.
- `broken_documents(tree)`: JSON whose tree had keys removed, doubled, renamed, retyped, made extreme;
  with `for_yaml=True` also what only YAML has: anchors, aliases, merge keys, tags.
- `offer(broken, take, refusal)`: gives such input to what takes it, or refuses it in words.
- `put_in_place(path, kind)`: something that is no plain file, or a huge one; kinds are `NO_FILES`.
- `is_well_told(error, path)`: what an error must be to help a person.
- `run_bounded(code, *arguments)`: Python code in a process with so much memory and so much time.
- `within(seconds)`: ends what hangs in this process.

All is drawn by hypothesis from its seed: the same in every run.
"""

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from hypothesis import example, given, settings
from hypothesis import strategies as st

from perf.model.errors import KnickpointError

Tree: TypeAlias = Any
"""What JSON holds, `Raw` and `Pairs`."""

ROOT = Path(__file__).parents[2]
LONGEST_LINE = 2000
"""Characters of a line of an error: no value of megabytes is echoed."""
MOST_LINES = 200
HUGE = 10 * 1024**3
"""Bytes of a sparse file that nobody may read into memory."""
_DEEP = 20_000


@dataclass(frozen=True)
class Raw:
    """Text that stands in a document as it is."""

    text: str


@dataclass(frozen=True)
class Pairs:
    """A mapping that may have a key twice."""

    items: tuple[tuple[str, Any], ...]


_NUMBERS = "NaN Infinity -Infinity 1e999 -1e999 0x1F 1_000 01 +1 .5 1."
_WORDS = (
    "../../../etc/passwd /etc/passwd a/../b . .. ~ -rf --help $(id) `id` %s%n{0}{x} @everyone "
    "::error::x NaN null true 1e5 <script>alert(1)</script>"
)
# What a number, a text or anything else is replaced by.
EXTREMES: tuple[Any, ...] = (
    *(0, -1, 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 0.1, -0.0, 1e308, 5e-324),
    *map(Raw, _NUMBERS.split()),
    *map(Raw, ("1" + "0" * 400, "9" * 5000, '"\\ud800"', '"\\u0000"')),
    *(None, True, False, "", " ", "\x00", "\x1b[31mred\x1b[0m", "\r\n", "\u202eevil", "\ufeff"),
    *("é" * 50,),
    *_WORDS.split(),
    *("; id", "'; DROP TABLE trials; --", "a" * 300, "x" * 100_000),
    *([], {}, [[]], [None], {"": None}, [1, "1", None, {}], {"schema_version": 2}, {"kind": "sensor"}),
    *("9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2026-02-30", "2026-03-01T02:00:00+23:59"),
    *(Raw("[" * _DEEP), Raw("[" * _DEEP + "]" * _DEEP), Raw('{"a":' * 1000 + "1" + "}" * 1000)),
)
_YAML = """\
&a [*a] ; *nothing ; &a {<<: *a} ; {<<: {name: x}} ; {<<: [1]} ; &a 1 ; {? [a] : 1} ; !x 1 ; !!set {a}
!!python/object/apply:os.system ['id'] ; !!python/name:os.system ; !!binary aGk= ; !!omap [a: 1]
!!timestamp 2026-01-01 ; 2026-01-01 ; 0o17 ; 0b1 ; .inf ; .nan ; -.inf ; 1:30 ; ~ ; yes ; 0x
!!int x ; !!float x ; !!bool x ; !!null x ; '\\x1b' ; "\\x1b[2J" ; "\\U00110000"
@x ; %x ; - x ; {a: 1,, }
"""
OF_YAML = (*map(Raw, re.split(r" ; |\n", _YAML.strip())), Raw("|\n  x"), Raw(">-\n  x"))

NO_FILES = ("fifo", "socket", "directory", "dangling", "loop", "device", "zero", "huge")
"""What may stand where a file is meant; see `put_in_place`."""


def dump(node: Tree) -> str:
    """Write a tree as JSON, with what only `Raw` and `Pairs` can say."""
    if isinstance(node, Raw):
        return node.text
    if isinstance(node, Pairs):
        return "{" + ", ".join(f"{json.dumps(key)}: {dump(value)}" for key, value in node.items) + "}"
    if isinstance(node, dict):
        return dump(Pairs(tuple(node.items())))
    if isinstance(node, list | tuple):
        return "[" + ", ".join(map(dump, node)) + "]"
    return json.dumps(node)


def list_places(node: Tree, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the ways to all values of a tree, the whole first."""
    inner = (
        node.items() if isinstance(node, dict) else enumerate(node if isinstance(node, list) else ())
    )
    return [here, *(place for key, value in inner for place in list_places(value, (*here, key)))]


def _change(node: Tree, place: Sequence[Any], act: str, value: Tree) -> Tree:
    """Return a copy of a tree in which one place is changed; one that is gone changes nothing."""
    if not place:
        return {"wrap": [node], "hide": {"x": node}}.get(act, value)
    key, *rest = place
    is_inside = bool(rest) or act in {"replace", "wrap", "hide"}
    if isinstance(node, dict) and key in node:
        if is_inside:
            return {**node, key: _change(node[key], rest, act, value)}
        return _change_key(node, key, act, value)
    if isinstance(node, list) and isinstance(key, int) and key < len(node):
        before, one, after = node[:key], node[key], node[key + 1 :]
        if is_inside:
            return [*before, _change(one, rest, act, value), *after]
        again = {"double": 2, "contradict": 50}.get(act, 0)
        return [*before, *[one] * again, *after]
    return node


def _change_key(node: dict[str, Tree], key: str, act: str, value: Tree) -> Tree:
    match act:
        case "remove":
            return {name: inner for name, inner in node.items() if name != key}
        case "rename":
            return {(f"{name}x" if name == key else name): inner for name, inner in node.items()}
        case _:
            again = value if act == "contradict" else node[key]
            return Pairs((*node.items(), (key, again)))


@st.composite
def broken_documents(draw: st.DrawFn, tree: Tree, *, for_yaml: bool = False) -> bytes:
    """Return a JSON document that differs from a tree in one to four places."""
    acts = ("replace", "replace", "replace", "remove", "rename", "double", "contradict", "wrap", "hide")
    values = EXTREMES + (OF_YAML if for_yaml else ())
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.sampled_from(list_places(tree)))
        tree = _change(tree, place, draw(st.sampled_from(acts)), draw(st.sampled_from(values)))
    return dump(tree).encode("utf-8", "surrogatepass")


@st.composite
def broken_bytes(draw: st.DrawFn, valid: bytes) -> bytes:
    """Give bytes that differ from valid ones by one to three accidents, or are in another encoding."""
    data = valid
    for _ in range(draw(st.integers(1, 3))):
        begin, end = sorted(draw(st.tuples(*[st.integers(0, len(data))] * 2)))
        act = draw(
            st.sampled_from(["cut", "drop", "double", "flip", "noise", "move", "lines", "encode"])
        )
        match act:
            case "cut":
                data = data[:end]
            case "drop":
                data = data[:begin] + data[end:]
            case "double":
                data = data[:end] + data[begin:]
            case "flip" if begin < len(data):
                data = (
                    data[:begin]
                    + bytes([data[begin] ^ 1 << draw(st.integers(0, 7))])
                    + data[begin + 1 :]
                )
            case "noise":
                data = (
                    data[:begin] + draw(st.binary(max_size=20) | st.sampled_from(_NOISE)) + data[begin:]
                )
            case "move":
                data = data[end:] + data[:begin]
            case "lines":
                data = data.replace(
                    b"\n", draw(st.sampled_from([b"\r\n", b"\r", b"", b"\n\n", b"\x85"]))
                )
            case _:
                data = _recode(data, draw(st.sampled_from(_ENCODINGS)))
    return data


_ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "cp037", "utf-7")
_NOISE = (
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\x1b[2J", b"\xed\xa0\x80", b"\xc0\xaf", b"\n", b'"'),
    b"9" * 400,
)


def _recode(data: bytes, encoding: str) -> bytes:
    return data.decode("utf-8", "replace").encode(encoding, "replace")


def put_in_place(path: Path, kind: str) -> None:
    """Put something of a kind of `NO_FILES` where a file is meant; what was there is removed."""
    path.unlink(missing_ok=True)
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "socket":
            # A path of more than about 100 bytes is too long for a socket, from elsewhere.
            with socket.socket(socket.AF_UNIX) as listening:
                here = os.open(path.parent, os.O_RDONLY)
                try:
                    listening.bind(f"/proc/self/fd/{here}/{path.name}")
                finally:
                    os.close(here)
        case "directory":
            path.mkdir()
        case "dangling":
            path.symlink_to("nowhere")
        case "loop":
            path.symlink_to(path.name)
        case "device":
            path.symlink_to("/dev/zero")
        case "zero":
            path.touch()
        case _:
            with path.open("wb") as file:
                file.truncate(HUGE)


def is_well_told(error: BaseException, *names: object) -> bool:
    """Return whether an error is one of ours, names these, is bounded, and is safe for a terminal.

    Lines may end with a newline only; what is in them is printable.
    """
    text = str(error)
    lines = text.split("\n")
    assert isinstance(error, KnickpointError), repr(error)[:500]
    assert all(str(name) in text for name in names), (names, text[:500])
    assert len(lines) <= MOST_LINES, (len(lines), text[:500])
    assert max(map(len, lines)) <= LONGEST_LINE, text[:500]
    assert all(line.replace("\t", " ").isprintable() for line in lines), ascii(text[:1000])
    assert not re.search(r"Traceback|pydantic\.dev|object at 0x", text), text[:500]
    return True


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """End a hang in this process's main thread with a TimeoutError."""

    def end(*_: object) -> None:
        raise TimeoutError(f"not done within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def offer(
    broken: st.SearchStrategy[Any],
    take: Callable[[Any], object],
    refusal: type[KnickpointError],
    tries: int,
    *names: object,
    examples: Sequence[Any] = (),
    seconds: float = 60.0,
    refuses: bool = True,
) -> str:
    """Offer broken input so often; say how much of it was taken, and how much refused.

    `take` holds what it takes to what is promised; what it raises as a refusal must name these names.
    """
    counts = {"taken": 0, "refused": 0}

    @settings(max_examples=tries, deadline=None, derandomize=True, database=None)
    @given(data=broken)
    def run(data: Any) -> None:  # noqa: ANN401  what the strategy gives
        try:
            with within(seconds):
                take(data)
        except refusal as error:
            reported: KnickpointError | None = error
        else:
            reported = None
        counts["refused" if reported else "taken"] += 1
        assert reported is None or is_well_told(reported, *names)

    for one in examples:
        run = example(data=one)(run)
    run()
    assert counts["refused"] or not refuses
    return f"{counts['taken']} taken, {counts['refused']} refused"


def run_bounded(
    code: str, *arguments: object, memory_mb: int = 1024, seconds: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process with so much address space; it sees `sys.argv[1:]`.

    Raises:
        subprocess.TimeoutExpired: it hangs.

    """

    def bind() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_mb * 1024**2,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        # Each thread of OpenBLAS asks for address space of its own.
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=bind,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
