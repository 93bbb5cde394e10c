"""How a new site takes the place of the old one: in one step, or file by file where that cannot be."""

import ctypes
import errno
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock, Timeout
from needs import need

from perf.local import durable
from perf.model.errors import SiteError
from reports.site.publishing import exchange
from reports.site.writing import Batch, SiteFile, batch_of, write_site

FRONT_PAGE = batch_of(SiteFile("index.html", b"front"))


def refuse_exchange(*_: object) -> None:
    """Be a system, or a file system, that has no such step."""
    raise OSError(errno.ENOSYS, "Function not implemented")


def page_of(version: str, made: list[str], name: str = "a.html") -> Batch:
    """Return a batch of one page, whose making is noted."""

    def make(paths: Collection[str]) -> Iterator[SiteFile]:
        made.extend(paths)
        yield SiteFile(name, f"{name} {version}".encode())

    return Batch({name: version}, make)


def snapshot(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def pages_of(site: Path) -> dict[str, bytes]:
    """Return all that a reader may find: without what the site remembers, and without its lock."""
    return {name: content for name, content in snapshot(site).items() if ".knickpoint" not in name}


def test_a_build_that_ended_amid_its_last_step_is_mended_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reports.site.publishing.exchange", refuse_exchange)
    site, made = tmp_path / "site", list[str]()
    write_site(site, [page_of("1", made), FRONT_PAGE])
    replace, moved = os.replace, list[object]()

    def fail_at_the_second(source: str, target: Path) -> None:
        moved.append(target)
        if len(moved) == 2:
            raise OSError(errno.EIO, "Input/output error")
        replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", fail_at_the_second)
        new = batch_of(SiteFile("b.html", b"new"), SiteFile("index.html", b"new"))
        with pytest.raises(SiteError):
            write_site(site, [page_of("2", made), new])
    assert snapshot(site)["index.html"] == b"front"
    write_site(site, [page_of("1", made), FRONT_PAGE])
    assert made == ["a.html"] * 3
    fresh = write_site(tmp_path / "fresh", [page_of("1", made), FRONT_PAGE])
    assert snapshot(site) == snapshot(fresh.parent)


def test_the_front_page_changes_after_all_it_leads_to_and_before_anything_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reports.site.publishing.exchange", refuse_exchange)
    site = tmp_path / "site"
    write_site(site, [FRONT_PAGE, batch_of(SiteFile("old.html", b"old"))])
    replace, seen = os.replace, list[tuple[str, set[str]]]()

    def note(source: str, target: Path) -> None:
        seen.append((target.name, set(snapshot(site))))
        replace(source, target)

    monkeypatch.setattr("os.replace", note)
    batches = [batch_of(SiteFile("index.html", b"new")), *(page_of("1", [], n) for n in ("a", "z"))]
    write_site(site, batches)
    assert [name for name, _ in seen][-1] == "index.html"
    assert {"a", "z", "old.html"} <= seen[-1][1]
    assert "old.html" not in snapshot(site)


@pytest.mark.parametrize("is_one_step", [True, False])
def test_what_a_killed_build_left_goes_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_one_step: bool
) -> None:
    if not is_one_step:
        monkeypatch.setattr("reports.site.publishing.exchange", refuse_exchange)
    site = tmp_path / "site"
    write_site(site, [FRONT_PAGE])
    before = snapshot(site)
    left = [site / ".new-site-killed", tmp_path / ".site.knickpoint-k1l_l3d0"]
    names = (".site.knickpoint-", ".sites.knickpoint-k1l_l3d0", ".site.knickpoint-20261122")
    others = [tmp_path / name for name in names]  # the last one is somebody's backup
    for one in (*left, *others):
        one.mkdir()
        (one / "a.html").write_text("half")
    (left[1] / ".knickpoint-site.room").touch()

    def look() -> Iterator[Batch]:
        assert not any(one.exists() for one in left)
        (room,) = (path for path in tmp_path.iterdir() if path not in (site, *others))
        assert room.name.startswith(".site.knickpoint-")
        yield FRONT_PAGE

    def look_inside() -> Iterator[Batch]:
        assert not any(one.exists() for one in left)
        assert {*tmp_path.iterdir()} == {site, *others}
        assert len([*site.glob(".new-site-*")]) == 1
        yield FRONT_PAGE

    write_site(site, look() if is_one_step else look_inside())
    assert snapshot(site) == before
    assert {path.name for path in site.iterdir() if path.is_dir()} == set()
    assert {*tmp_path.iterdir()} == {site, *others}
    assert all((one / "a.html").read_text() == "half" for one in others)


@pytest.mark.parametrize("refused", [errno.EBUSY, errno.EXDEV, errno.EPERM])
def test_a_site_that_cannot_be_exchanged_is_changed_file_by_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    """As where its directory is a mount point, which shows in nothing before."""
    site = tmp_path / "site"
    write_site(site, [FRONT_PAGE, batch_of(SiteFile("old.html", b"old"))])

    def refuse_the_site(one: Path, other: Path) -> None:
        if other == site:
            raise OSError(refused, "no")
        exchange(one, other)

    monkeypatch.setattr("reports.site.publishing.exchange", refuse_the_site)
    write_site(site, [batch_of(SiteFile("index.html", b"new"))])
    assert snapshot(site)["index.html"] == b"new"
    assert "old.html" not in snapshot(site)
    assert list(tmp_path.iterdir()) == [site]


@pytest.mark.parametrize("call", [1, 2])
def test_a_disk_that_is_full_for_the_exchange_leaves_a_whole_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """Before it, it is the old one; after it, the new one, whose build then succeeded."""
    site, calls = tmp_path / "site", 0
    write_site(site, [FRONT_PAGE, batch_of(SiteFile("old.html", b"old"))])
    before = snapshot(site)

    def fail(one: Path, other: Path) -> None:
        nonlocal calls
        calls += other == site
        if calls == call and other == site:
            raise OSError(errno.ENOSPC, "No space left on device")
        exchange(one, other)

    new = batch_of(SiteFile("index.html", b"new"))
    with monkeypatch.context() as patched:
        patched.setattr("reports.site.publishing.exchange", fail)
        if call == 1:
            with pytest.raises(SiteError, match="No space left"):
                write_site(site, [new])
            assert snapshot(site) == before
        else:
            write_site(site, [new])
    assert list(tmp_path.iterdir()) == [site]
    write_site(site, [new])
    fresh = write_site(tmp_path / "fresh", [new])
    assert snapshot(site) == snapshot(fresh.parent)


def test_who_holds_the_directory_open_goes_on_reading_and_its_rights_stay(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write_site(site, [FRONT_PAGE, batch_of(SiteFile("x/a.html", b"old"))])
    site.chmod(0o2750)
    (site / "x").chmod(0o711)
    held = os.open(site, os.O_RDONLY)
    write_site(site, [FRONT_PAGE, batch_of(SiteFile("x/a.html", b"new"), SiteFile("b.html", b"b"))])
    with open(os.open("x/a.html", os.O_RDONLY, dir_fd=held), "rb") as page:  # noqa: PTH123
        assert page.read() == b"new"
    assert {"b.html", "index.html"} <= {*os.listdir(held)}  # noqa: PTH208  of what is held
    os.close(held)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (site, site / "x")] == [0o2750, 0o711]


def test_whoever_reads_by_path_finds_one_whole_site_at_any_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, seen = tmp_path / "site", list[dict[str, bytes]]()
    write_site(site, [batch_of(*(SiteFile(f"{n}.html", b"old") for n in range(5))), FRONT_PAGE])
    for name in ("replace", "link", "unlink", "rmdir", "mkdir"):
        call = getattr(os, name)

        def look(*args: Any, call: Any = call, **more: Any) -> Any:  # noqa: ANN401  all that they take
            seen.append(pages_of(site))
            return call(*args, **more)

        monkeypatch.setattr(f"os.{name}", look)
    whole = [pages_of(site)]
    write_site(site, [batch_of(*(SiteFile(f"{n}.html", b"new") for n in range(3, 9))), FRONT_PAGE])
    whole.append(pages_of(site))
    assert len(seen) > 20
    assert [one for one in seen if one not in whole] == []


def test_a_second_report_waits_also_while_the_stand_in_is_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, tried = tmp_path / "site", list[bool]()
    write_site(site, [FRONT_PAGE])

    def acquire(one: Path, other: Path) -> None:
        exchange(one, other)
        if other == site:
            with pytest.raises(Timeout):
                FileLock(site / ".knickpoint-site.lock").acquire(timeout=0)
            tried.append(True)

    monkeypatch.setattr("reports.site.publishing.exchange", acquire)
    write_site(site, [batch_of(SiteFile("index.html", b"new"))])
    assert tried == [True, True]


@pytest.mark.slow
def test_a_site_on_a_bind_mount_of_the_same_file_system_is_written(tmp_path: Path) -> None:
    """Such a mount point shows in nothing but that no file can be moved or linked into it."""
    need(os.geteuid() == 0 and shutil.which("unshare"), "a bind mount needs root and unshare")
    site, mounted, script = tmp_path / "site", tmp_path / "mounted", tmp_path / "write.py"
    site.mkdir()
    mounted.mkdir()
    script.write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "from reports.site.writing import SiteFile, batch_of, write_site\n"
        "for page in (b'old', b'new'):\n"
        "    files = SiteFile('index.html', page), SiteFile(f'{page.decode()}.html', page)\n"
        "    write_site(Path(sys.argv[1]), [batch_of(*files)])\n"
    )
    mount = 'mount --bind "$1" "$2" && exec "$3" "$4" "$2"'
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", mount, "sh"]
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [*command, site, mounted, sys.executable, script],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    assert done.returncode == 0, done.stderr
    assert pages_of(site) == {"index.html": b"new", "new.html": b"new"}
    assert {*tmp_path.iterdir()} == {site, mounted, script}
    assert [path for path in site.iterdir() if path.is_dir()] == []


def test_new_pages_get_the_group_and_the_default_rights_of_the_site(tmp_path: Path) -> None:
    """Else a web server that reads by its group could read the old pages alone."""
    others = [group for group in os.getgroups() if group != os.getegid()]
    group = 12345 if os.geteuid() == 0 else next(iter(others), None)
    need(group is not None, "a second group is needed")
    assert group is not None
    site = tmp_path / "site"
    write_site(site, [FRONT_PAGE])
    os.chown(site, -1, group)
    site.chmod(0o2750)
    files = SiteFile("index.html", b"new"), SiteFile("x/a.html", b"new")
    write_site(site, [batch_of(*files)])
    found = [site / path for path in ("index.html", "x", "x/a.html")]
    assert [path.stat().st_gid for path in found] == [group] * 3
    assert stat.S_IMODE(site.stat().st_mode) == 0o2750


def test_where_a_site_has_no_stand_in_of_its_group_it_is_changed_file_by_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where whoever reports is no member of the group: inside of the site it is inherited."""
    site, seen = tmp_path / "site", list[list[Path]]()
    write_site(site, [FRONT_PAGE])
    site.chmod(0o2750)

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    def look() -> Iterator[Batch]:
        seen.append([*site.glob(".new-site-*")])
        yield batch_of(SiteFile("index.html", b"new"))

    with monkeypatch.context() as patched:
        patched.setattr("os.chown", refuse)
        write_site(site, look())
    assert len(seen[0]) == 1
    assert snapshot(site)["index.html"] == b"new"
    assert [*tmp_path.iterdir()] == [site]


@pytest.mark.parametrize("call", [1, 2])
def test_a_disk_that_fails_after_the_exchange_is_reported_and_the_directory_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    site, calls = tmp_path / "site", 0
    write_site(site, [FRONT_PAGE, batch_of(SiteFile("old.html", b"old"))])
    before, sync = site.stat().st_ino, durable.sync

    def fail(path: Path) -> None:
        nonlocal calls
        calls += path == tmp_path
        if path == tmp_path and calls == call:
            raise OSError(errno.EIO, "Input/output error")
        sync(path)

    new = batch_of(SiteFile("index.html", b"new"), SiteFile("b.html", b"new"))
    with monkeypatch.context() as patched:
        patched.setattr("reports.site.publishing.durable.sync", fail)
        with pytest.raises(
            SiteError, match=r"is new, but may not stay .* Input/output error\nThat disk fails"
        ):
            write_site(site, [new])
    assert pages_of(site) == {"index.html": b"new", "b.html": b"new"}
    assert site.stat().st_ino == before
    assert [*tmp_path.iterdir()] == [site]


@pytest.mark.slow
@pytest.mark.parametrize("pages", [5, 200])
def test_few_new_pages_leave_the_rest_of_the_file_system_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    """All of it holds what a measured database wrote, too; each of many alone would take too long."""
    site, synced, whole = tmp_path / "site", list[Path](), list[object]()
    sync = durable.sync
    write_site(site, [FRONT_PAGE, batch_of(*(SiteFile(f"{n}.html", b"old") for n in range(200)))])

    def note(path: Path) -> None:
        synced.append(path)
        sync(path)

    class Libc:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2

        def syncfs(self, handle: int) -> int:
            whole.append(handle)
            return 0

    monkeypatch.setattr("reports.site.publishing.durable.sync", note)
    monkeypatch.setattr("reports.site.publishing._libc", Libc)
    changed = (SiteFile(f"{n}.html", b"new" if n < pages else b"old") for n in range(200))
    write_site(site, [FRONT_PAGE, batch_of(*changed)])
    assert len(whole) == (pages > 100)
    made = {path.name for path in synced if path.suffix == ".html"}
    assert made == ({f"{n}.html" for n in range(5)} if pages == 5 else set())
