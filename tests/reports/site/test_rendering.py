"""What is made once per machine, the bundle of the charts, and what never is: compiled templates."""

from pathlib import Path

import pytest

from reports.site import rendering


def test_the_charts_script_is_bundled_once_and_without_a_cache_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = []

    def bundle(snippet: str) -> str:
        bundled.append(snippet)
        return "vega()"

    monkeypatch.setattr("vl_convert.javascript_bundle", bundle)
    monkeypatch.setenv("KNICKPOINT_CACHE", str(tmp_path / "cache"))
    again = rendering.bundle_charts.__wrapped__
    assert [again(), again()] == [b"vega()"] * 2
    assert len(bundled) == 1
    (tmp_path / "file").touch()
    monkeypatch.setenv("KNICKPOINT_CACHE", str(tmp_path / "file"))
    assert [again(), again()] == [b"vega()"] * 2
    assert len(bundled) == 3


def test_no_code_of_templates_is_taken_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNICKPOINT_CACHE", str(tmp_path))
    rendering.jinja_environment.__wrapped__().get_template("base.html")
    assert list(tmp_path.iterdir()) == []
