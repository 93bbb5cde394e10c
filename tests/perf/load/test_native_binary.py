"""Which build is taken for that of these sources, and how it is made; a stand-in for cargo builds."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from needs import need_native

from perf.load import native_binary, native_build
from perf.load.native_binary import ENGINE, NULL_SERVER, SETTING, find_native, source_digest
from perf.model.errors import HostUnfit, UsageError

Report = Callable[[str], None]
_CARGO = """\
#!/bin/sh
echo "$@" >>{log}
case $1 in
--version) echo "cargo {version} (0123456789 2026-01-01)" ;;
fetch) test -e {log}.online || exit 101 ;;
build)
  for target; do :; done
  mkdir -p "$target/release"
  for program in knickload knicknull; do
    cat {sources}/src/main.rs >"$target/release/$program"
    chmod 755 "$target/release/$program"
  done
  {then}
  ;;
esac
"""


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return sources of a toy engine, and a cache of its own."""
    root = tmp_path / "native"
    (root / "src/null").mkdir(parents=True)
    (root / "Cargo.toml").write_text('[package]\nname = "knickload"\nrust-version = "1.88"\n')
    (root / "Cargo.lock").write_text("version = 4\n")
    (root / "src/main.rs").write_text("first")
    (root / "src/null/main.rs").write_text("null")
    monkeypatch.setattr(native_binary, "SOURCES", root)
    monkeypatch.setattr(native_build, "SOURCES", root)
    monkeypatch.setenv("KNICKPOINT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(SETTING, raising=False)
    return root


@pytest.fixture
def cargo(sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Give `cargo(version="1.95.0", then="")`: put a stand-in into PATH; give the log of its calls."""
    log = tmp_path / "cargo.log"
    (tmp_path / "cargo.log.online").touch()

    def make(version: str = "1.95.0", then: str = "") -> Path:
        programs = tmp_path / "bin"
        programs.mkdir()
        texts = {
            "cargo": _CARGO.format(log=log, version=version, sources=sources, then=then),
            "rustc": "#!/bin/sh\necho some-host\n",
            "cc": "#!/bin/sh\n",
        }
        for name, text in texts.items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        return log

    return make


def build(reported: list[str] | None = None) -> Path:
    return native_build.build((reported if reported is not None else []).append, lambda _: None)


@pytest.mark.usefixtures("sources")
def test_what_is_not_built_is_reported_with_what_next() -> None:
    with pytest.raises(
        UsageError, match=r"not built from these sources: .* is not there; say: make nat"
    ):
        find_native()


@pytest.mark.usefixtures("sources")
def test_what_was_installed_says_how_it_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_binary, "__file__", str(tmp_path / "lib/perf/load/native_binary.py"))
    with pytest.raises(UsageError, match=rf"say: {sys.executable} -m perf\.load\.native_build"):
        find_native()


@pytest.mark.usefixtures("sources")
def test_a_named_program_is_taken_and_others_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "elsewhere"
    monkeypatch.setenv(SETTING, str(program))
    with pytest.raises(
        UsageError, match=f"KNICKPOINT_NATIVE is {program}, but {program} is no program"
    ):
        find_native()
    program.touch()
    with pytest.raises(UsageError, match="is no program"):
        find_native()
    program.chmod(0o755)
    assert find_native() == program
    with pytest.raises(UsageError, match="knicknull is no program"):
        find_native(NULL_SERVER)
    shutil.copy(program, tmp_path / NULL_SERVER)
    assert find_native(NULL_SERVER) == tmp_path / NULL_SERVER


def test_what_was_built_is_found_and_not_built_again(cargo: Callable[..., Path]) -> None:
    log, reported = cargo(), list[str]()
    directory = build(reported)
    assert find_native() == directory / ENGINE
    assert find_native(NULL_SERVER) == directory / NULL_SERVER
    assert [line.split()[0] for line in reported] == ["building", "built"]
    calls = log.read_text()
    assert "--release --locked --offline" in calls
    assert build(reported) == directory
    assert log.read_text() == calls
    assert len(reported) == 2


@pytest.mark.parametrize("file", ["Cargo.toml", "Cargo.lock", "src/main.rs", "src/null/main.rs"])
def test_a_build_of_other_sources_is_never_taken(
    sources: Path, cargo: Callable[..., Path], file: str
) -> None:
    cargo()
    old = build()
    changed = sources / file
    age = changed.stat()
    changed.write_text(changed.read_text() + "\n")
    os.utime(changed, ns=(age.st_atime_ns, age.st_mtime_ns))
    with pytest.raises(UsageError, match="not built from these sources"):
        find_native()
    assert build() != old
    assert find_native().parent != old
    assert (old / ENGINE).is_file()


def test_a_file_more_and_a_file_renamed_are_other_sources(sources: Path) -> None:
    digests = {source_digest(sources)}
    (sources / "src/more.rs").touch()
    digests.add(source_digest(sources))
    (sources / "src/more.rs").rename(sources / "src/mere.rs")
    digests.add(source_digest(sources))
    (sources / "README").touch()
    digests.add(source_digest(sources))
    assert len(digests) == 3


def test_sources_that_change_meanwhile_are_not_kept(sources: Path, cargo: Callable[..., Path]) -> None:
    cargo(then=f"echo second >{sources}/src/main.rs")
    with pytest.raises(HostUnfit, match="changed while they were built"):
        build()
    with pytest.raises(UsageError):
        find_native()


def test_a_toolchain_that_is_too_old_is_reported(cargo: Callable[..., Path]) -> None:
    cargo(version="1.87.1")
    with pytest.raises(
        HostUnfit, match=r"needs Rust 1\.88 or newer, and this is cargo 1\.87\.1 .*rustup"
    ):
        build()


def test_an_absent_toolchain_is_reported(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(sources))
    with pytest.raises(HostUnfit, match=r"needs Rust 1\.88 or newer, and there is no cargo in PATH"):
        build()


def test_downloads_are_tried_again_and_a_build_is_not(
    cargo: Callable[..., Path], tmp_path: Path
) -> None:
    online, reported, pauses = tmp_path / "cargo.log.online", list[str](), list[float]()
    online.unlink()
    log = cargo(then="exit 7")
    with pytest.raises(HostUnfit, match="cannot be fetched; cargo says above why"):
        native_build.build(reported.append, pauses.append)
    assert pauses == [5.0, 20.0, 60.0]
    assert [line for line in reported if "again in" in line] == [
        f"the crates cannot be fetched; again in {pause} s" for pause in (5, 20, 60)
    ]
    with pytest.raises(HostUnfit, match="cargo build ended with exit code 7"):
        native_build.build(reported.append, lambda _: online.touch())
    assert sum(line.startswith("build ") for line in log.read_text().splitlines()) == 1


def test_the_command_says_where_it_is_and_what_it_is(
    cargo: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    cargo()
    assert native_build.main() == 0
    path = find_native()
    assert f"{path}: sha256 {native_binary.sha256_of(path)}" in capsys.readouterr().out


def test_where_it_is_can_be_asked_for_by_what_installs_it(
    cargo: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    cargo()
    assert native_binary.main() == 2
    assert "say: make native" in capsys.readouterr().err
    directory = build()
    capsys.readouterr()
    assert native_binary.main() == 0
    assert capsys.readouterr().out == f"{directory / ENGINE}\n"


def test_the_command_says_what_is_missing(
    sources: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(sources))
    assert native_build.main() == 3
    assert "no cargo in PATH" in capsys.readouterr().err


def test_the_programs_of_this_tree_run() -> None:
    for program in (ENGINE, NULL_SERVER):
        assert os.access(need_native(program), os.X_OK)
