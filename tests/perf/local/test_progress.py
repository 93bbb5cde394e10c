import io

import pytest

from perf.local.progress import Progress
from perf.model.shown import format_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (-3, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (185, "3 min 05 s"),
        (7800, "2 h 10 min"),
    ],
)
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_each_line_says_what_how_long_and_how_long_still() -> None:
    now = [100.0]
    stream = io.StringIO()
    progress = Progress(stream, clock=lambda: now[0])
    progress.report("node-1: start")
    now[0] += 10
    progress.expect(200)
    progress.report("node-2: start\nits log")
    now[0] += 300
    progress.report("node-3: start")
    lines = [" ".join(line.split()) for line in stream.getvalue().splitlines()]
    assert lines == [
        "node-1: start [0 s]",
        "node-2: start [10 s, about 3 min 20 s left]",
        "its log",
        "node-3: start [5 min 10 s, nearly done]",
    ]


def test_a_long_step_is_reported_sometimes() -> None:
    now = [0.0]
    stream = io.StringIO()
    progress = Progress(stream, clock=lambda: now[0])
    for _ in range(21):
        now[0] += 1
        progress.report_sometimes("still loading")
    assert stream.getvalue().count("still loading") == 2
