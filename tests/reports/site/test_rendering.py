"""What is made once per machine: the bundle of the charts, and compiled templates beside modules."""

import sys
from pathlib import Path

import pytest
from jinja2 import Environment

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


def test_compiled_templates_lie_where_compiled_modules_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("compiled again")

    again = rendering.jinja_environment.__wrapped__
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "kept"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    again().get_template("base.html")
    assert not (tmp_path / "kept").exists()
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    again().get_template("base.html")
    with monkeypatch.context() as patched:
        patched.setattr(Environment, "compile", refuse)
        assert again().get_template("base.html").name == "base.html"
    # Where nothing can be kept, all is compiled as before.
    (tmp_path / "file").touch()
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "file"))
    assert again().get_template("base.html").name == "base.html"
