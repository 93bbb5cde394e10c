"""What a stranger's job, a comment or an earlier run left to be read: taken as it is, or refused."""

import json
import re
import struct
import warnings
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_bisection import RECORD
from made_up_comparison import ATTRIBUTED, REGRESSED_RESULT
from made_up_nights import judge_nights
from mutations import (
    NO_FILES,
    broken_bytes,
    broken_documents,
    is_well_told,
    offer,
    put_in_place,
    run_bounded,
    within,
)

from analysis.bisecting.description import describe_bisection
from analysis.bisecting.record import BISECTION, read_bisection, write_bisection
from analysis.comparing.results import (
    MOST_BYTES,
    read_comparisons,
    read_result,
    write_comparisons,
    write_result,
)
from analysis.orchestration.bisecting import read_bisections
from analysis.orchestration.comparing import read_results
from perf.jobs.interleaving import RESULT
from perf.local.paths import DataPaths
from perf.model.errors import InputError
from reports.commands.answer import _read_event
from reports.notifications.issue_plan import render_issue
from reports.notifications.notifications_file import read_notifications, write_notifications
from reports.notifications.sent_log import SentLog
from reports.pull_requests.artifact import MEMBER, read_artifact
from reports.pull_requests.asking import Limits, read_asked
from reports.pull_requests.comment import render_comment
from reports.pull_requests.posting import find_findings
from reports.wording.summary import headline

KNOWN = frozenset({"0123456789", "abcdef0123"})
COMPARISON = write_comparisons(ATTRIBUTED)
EVENT: dict[str, Any] = {
    "action": "created",
    "issue": {"number": 7, "state": "open", "pull_request": {"url": "https://x"}},
    "comment": {"id": 31, "body": "/knickpoint measure", "user": {"login": "alice", "type": "User"}},
    "repository": {"full_name": "example/configs"},
}
TOLD = {
    "format": 1,
    "incidents": {
        "3f9a1c20": {"standing": "confirmed", "title": "p99 rose", "handles": ["0123456789"]}
    },
}


def take_comparison(path: Path) -> None:
    """Read what the comment is made of, and make it."""
    found = read_comparisons(path.read_bytes(), path)
    reported = render_comment(found, site_url="https://example.org/site/")
    assert len(reported.encode()) < 65_536, "more than a comment may have"
    assert headline(found)
    find_findings(found)
    assert read_comparisons(write_comparisons(found), path) == found


def take_notices(path: Path) -> None:
    for notice in read_notifications(path).notices:
        assert len(render_issue(notice, scope="nightly").encode()) < 65_536


def take_bisection(path: Path) -> None:
    """Read a bisection and ask it all that a resumed one and its page ask."""
    found = read_bisection(path.read_bytes(), path)
    assert found.good != found.bad or found.releases
    found.next_step(10)
    assert found.reused + len(found.measured) >= 0
    assert found.minutes == found.minutes
    list(describe_bisection(found))
    assert read_bisection(write_bisection(found), path) == found


def take_result(path: Path) -> None:
    found = read_result(path.read_bytes(), path)
    assert read_result(write_result(found), path) == found


def take_sent_log(path: Path) -> None:
    assert SentLog(path).sent is not None


READERS: dict[str, tuple[bytes, Callable[[Path], None]]] = {
    "comparison": (COMPARISON, take_comparison),
    "notices": (write_notifications(judge_nights(20).notices[:2], KNOWN), take_notices),
    "bisection": (write_bisection(RECORD), take_bisection),
    "result": (write_result(REGRESSED_RESULT), take_result),
    "event": (json.dumps(EVENT).encode(), lambda path: (_read_event(path), None)[1]),
    "sent log": (json.dumps(TOLD).encode(), take_sent_log),
}


@pytest.mark.keeps("hostile-artifacts")
@pytest.mark.parametrize("name", sorted(READERS))
def test_what_was_left_to_be_read_is_taken_as_it_is_or_refused(
    name: str,
    tmp_path_factory: pytest.TempPathFactory,
    effort: Callable[[int, int], int],
    figures: dict[str, object],
) -> None:
    sound, take = READERS[name]
    path = tmp_path_factory.mktemp("left") / "file.json"

    def read(content: bytes) -> None:
        path.write_bytes(content)
        take(path)

    broken = broken_documents(json.loads(sound)) | broken_bytes(sound)
    figures[name] = offer(broken, read, InputError, effort(15, 400), path, examples=[sound])


LOADERS: dict[str, Callable[[Path], object]] = {
    "artifact": read_artifact,
    "notices": read_notifications,
    "event": _read_event,
    "sent log": SentLog,
    "results": lambda path: read_results(DataPaths(path.parents[2])),
    "bisections": lambda path: read_bisections(DataPaths(path.parents[2])),
}
NAMES = {"results": f"comparisons/a/{RESULT}", "bisections": f"bisections/a/{BISECTION}"}


@pytest.mark.keeps("hostile-artifacts")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in sorted(LOADERS)
        for kind in NO_FILES
        # A link to nothing is as good as no file where one need not be.
        if not (kind in {"dangling", "loop"} and name in NAMES)
        and (name, kind) != ("sent log", "dangling")
    ],
)
def test_what_is_no_file_is_refused_at_once(name: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / NAMES.get(name, "a/b/file")
    path.parent.mkdir(parents=True)
    put_in_place(path, kind)
    with within(20), pytest.raises(InputError) as caught:
        LOADERS[name](path)
    assert is_well_told(caught.value, path)


def pack(members: list[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that is there twice
        with zipfile.ZipFile(buffer, "w", method) as archive:
            for name, content in members:
                archive.writestr(name, content)
    return buffer.getvalue()


@st.composite
def hostile_zips(draw: st.DrawFn) -> bytes:
    """Return a zip of odd members, whose central directory lies in up to three of its fields."""
    odd = (f"./{MEMBER}", f"/{MEMBER}", f"../{MEMBER}", f"a\\{MEMBER}", "a/", "\x1b[2J", "é")
    names = st.sampled_from([MEMBER, MEMBER, *odd])
    contents = st.sampled_from([b"", b"{}", COMPARISON, b"\0" * 100_000, pack([(MEMBER, b"{}")])])
    members = draw(st.lists(st.tuples(names, contents), min_size=1, max_size=20))
    method = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2]))
    raw = bytearray(pack(members, method))
    starts = [at for at in range(len(raw)) if raw[at : at + 4] == b"PK\x01\x02"]
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.sampled_from(starts))
        fields = [(8, "H"), (10, "H"), (16, "I"), (20, "I"), (24, "I"), (28, "H"), (42, "I")]
        place, form = draw(st.sampled_from(fields))
        value = draw(st.sampled_from([0, 1, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**20]))
        struct.pack_into(f"<{form}", raw, start + place, value & (2 ** (8 * struct.calcsize(form)) - 1))
    return bytes(raw)


@pytest.mark.keeps("hostile-artifacts")
def test_a_hostile_zip_gives_our_one_member_or_is_refused(
    tmp_path: Path, effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    path = tmp_path / "artifact.zip"

    def read(zipped: bytes) -> None:
        path.write_bytes(zipped)
        assert len(read_artifact(path)) <= MOST_BYTES

    broken = hostile_zips() | broken_bytes(pack([(MEMBER, COMPARISON)]))
    figures["zips"] = offer(broken, read, InputError, effort(40, 800), path)
    assert [one.name for one in tmp_path.iterdir()] == ["artifact.zip"]


@pytest.mark.keeps("hostile-artifacts")
def test_no_comment_makes_anything_but_names_and_numbers(effort: Callable[[int, int], int]) -> None:
    plain = (
        "/knickpoint measure bisect help --suite --minutes --attribute --metric --experiment cassandra"
    )
    odd = "5.0.2..5.0.9 3f9a1c20 99999 ٣ -1 `id` $(id) --suite=a;b ::set-output:: @everyone"
    words = st.sampled_from(
        [*plain.split(), *odd.split(), "\x00", "\x1b[2J", "\u202e", "${{ secrets.X }}"]
    )
    bodies = st.lists(words | st.text(max_size=20), max_size=12).map(" ".join)

    @settings(max_examples=effort(50, 1500), database=None)
    @given(body=bodies.map(lambda body: f"/knickpoint {body}"))
    def ask(body: str) -> None:
        asked = read_asked(body, Limits(measure=240, bisect=480))
        for value in getattr(asked, "inputs", {}).values():
            assert value.isascii()
            assert re.fullmatch(r"[A-Za-z0-9./_-]*", value)

    ask()


_TAKE = """
import sys
from pathlib import Path
from analysis.comparing.results import MOST_BYTES, read_comparisons
from perf.model.errors import InputError
head, part, tail = sys.argv[1:]
content = (head + part * ((MOST_BYTES - len(head + tail)) // len(part)) + tail).encode()
try:
    read_comparisons(content, Path("file"))
except InputError as error:
    print("refused", str(error)[:300])
"""


@pytest.mark.slow
@pytest.mark.keeps("hostile-artifacts")
@pytest.mark.parametrize(
    ("head", "part", "tail"),
    [('{"changes":[1', ",[]", "]}"), ("[" * 100, "[", ""), ('{"a":1', ',"a":1', "}"), ("", "9", "")],
)
def test_the_largest_comparison_fits_into_three_gigabytes(head: str, part: str, tail: str) -> None:
    ended = run_bounded(_TAKE, head, part, tail, memory_mb=3 * 1024, seconds=200)
    assert ended.stdout.startswith("refused"), ended.stderr[-2000:]
