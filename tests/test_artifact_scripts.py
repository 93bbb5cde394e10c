"""What workflows take over from runs: fetched with limits, unpacked after a look at every entry."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from actions_server import Forge, serve_forge
from github_server import TOKEN
from job_place import Place, find_script


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[Forge]:
    store = tmp_path / "store"
    store.mkdir()
    with serve_forge(Forge(store=store)) as forge:
        yield forge


def keep(forge: Forge, run: int, name: str, content: bytes) -> None:
    (forge.store / str(run)).mkdir(exist_ok=True)
    with zipfile.ZipFile(forge.store / f"{run}/{name}.zip", "w") as archive:
        archive.writestr("comparison.json", content)


def fetch_artifact(place: Place, forge: Forge, *arguments: str) -> int:
    script = f".github/scripts/fetch-artifact {' '.join(arguments)}"
    done = place.run(script, TOKEN=TOKEN, GITHUB_API_URL=forge.url)
    assert TOKEN not in done.stdout + done.stderr
    return done.returncode


def test_an_artifact_is_fetched_as_it_is_and_the_token_goes_to_github_alone(
    place: Place, forge: Forge
) -> None:
    keep(forge, 5, "comparison", b"{}")
    keep(forge, 5, "other", b"other")
    assert fetch_artifact(place, forge, "5", "comparison", "8000", "result.zip") == 0
    assert (place.root / "result.zip").read_bytes() == (forge.store / "5/comparison.zip").read_bytes()
    assert forge.leaked == []


@pytest.mark.parametrize(
    ("run", "name", "most", "code"),
    [("6", "comparison", "8000", 4), ("5", "none", "8000", 4), ("5", "comparison", "100", 3)]
    + [(one, "comparison", "8000", 3) for one in ("0", "-1", "x", "'5 6'", "../5", "''")],
)
def test_what_is_not_there_or_too_large_is_not_fetched(
    place: Place, forge: Forge, run: str, name: str, most: str, code: int
) -> None:
    keep(forge, 5, "comparison", b"{}")
    assert fetch_artifact(place, forge, run, name, most, "result.zip") == code
    assert not (place.root / "result.zip").exists()


@pytest.mark.parametrize(("fetched", "ends"), [(0, 0), (4, 0), (3, 3)])
def test_publish_and_comment_go_on_only_with_a_file(place: Place, fetched: int, ends: int) -> None:
    scripts = place.root / ".github"
    scripts.unlink()
    (scripts / "scripts").mkdir(parents=True)
    fake = scripts / "scripts/fetch-artifact"
    fake.write_text(f'#!/bin/sh\ntouch "$4"\nexit {fetched}\n')
    fake.chmod(0o755)
    (scripts / "scripts/unpack_site.py").write_text("")
    for flow, job, step, output in (
        ("comment", "comment", "fetch", "file"),
        ("publish", "take", "take", "site"),
    ):
        done = place.run(find_script(flow, job, step), TOKEN="t", RUN_ID="5")  # noqa: S106
        assert done.returncode == ends
        assert (output in place.output) == (fetched == 0)


def unpack(place: Place, entries: dict[str, bytes], **attributes: int) -> tuple[int, str]:
    with zipfile.ZipFile(place.root / "site.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = attributes.get(name.partition(".")[0], 0o100644) << 16
            archive.writestr(entry, content)
    done = place.run("python3 .github/scripts/unpack_site.py site.zip site")
    return done.returncode, done.stdout


SITE = {"index.html": b"<p>", "series/a-1.html": b"<p>", "data/export/points/x.parquet": b"p"}


def test_a_site_is_unpacked(place: Place) -> None:
    assert unpack(place, SITE) == (0, "")
    found = {
        str(one.relative_to(place.root / "site")): one.read_bytes()
        for one in (place.root / "site").rglob("*")
        if one.is_file()
    }
    assert found == SITE


@pytest.mark.parametrize(
    ("more", "attributes", "said"),
    [
        ({"../evil.html": b""}, {}, "a name that no file of a site has"),
        ({"/etc/cron.d/evil.html": b""}, {}, "a name that no file of a site has"),
        ({"a\n::add-mask::x.html": b""}, {}, "a name that no file of a site has"),
        ({".nojekyll": b""}, {}, "a name that no file of a site has"),
        ({"INDEX.html": b""}, {}, "two entries of one name"),
        ({"CNAME": b"evil.example"}, {}, "a kind of file that no site has"),
        ({"run.sh": b""}, {}, "a kind of file that no site has"),
        ({"link.html": b"/etc/passwd"}, {"link": 0o120777}, "no plain file"),
        ({"series/a-1.html/b.html": b""}, {}, "it cannot be unpacked"),
    ],
    ids=str,
)
def test_a_site_is_refused_as_a_whole(
    place: Place, more: dict[str, bytes], attributes: dict[str, int], said: str
) -> None:
    code, printed = unpack(place, SITE | more, **attributes)
    assert code == 2
    assert said in printed
    assert all(line.startswith("::error title=") for line in printed.splitlines())
    if "unpacked" not in said:
        assert not (place.root / "site").exists()


def test_a_bomb_and_a_file_without_a_front_page_are_refused(place: Place) -> None:
    script = (
        "import sys; sys.path.insert(0, '.github/scripts'); import unpack_site as script\n"
        "script.MOST_BYTES, script.MOST_FILES = {}; sys.argv[1:] = 'site.zip', 'site'\n"
        "sys.exit(script.main())"
    )
    unpack(place, SITE | {"more.js": bytes(1000)})
    for limits, said in (("1000, 4", "1,007 bytes, at most"), ("1100, 3", "4 entries, at most")):
        done = place.run('python3 -B -c "$SCRIPT"', SCRIPT=script.format(limits))
        assert (done.returncode, said in done.stdout) == (2, True), done
    assert "no index.html" in unpack(place, {"a.html": b""})[1]
    (place.root / "site.zip").write_bytes(json.dumps({}).encode())
    assert place.run("python3 .github/scripts/unpack_site.py site.zip site").returncode == 2


@pytest.mark.parametrize(
    ("limits", "is_near"), [("1439, 100", False), ("1438, 100", True), ("9999, 5", True)]
)
def test_a_site_near_its_limits_is_published_and_says_so(
    place: Place, limits: str, *, is_near: bool
) -> None:
    script = (
        "import sys; sys.path.insert(0, '.github/scripts'); import unpack_site as script\n"
        f"script.MOST_BYTES, script.MOST_FILES = {limits}; sys.argv[1:] = 'site.zip', 'site'\n"
        "sys.exit(script.main())"
    )
    unpack(place, SITE | {"more.js": bytes(1000)})
    done = place.run('python3 -B -c "$SCRIPT"', SCRIPT=script)
    assert done.returncode == 0
    assert done.stdout.startswith("::warning title=The site is near its limits::4 files") == is_near
    assert bool(done.stdout) == is_near


def test_a_site_that_was_damaged_on_its_way_is_refused(place: Place) -> None:
    with zipfile.ZipFile(place.root / "site.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("index.html", bytes(1000))
    whole = bytearray((place.root / "site.zip").read_bytes())
    whole[30 + len("index.html")] = 0xFF  # a kind of block that deflate does not have
    (place.root / "site.zip").write_bytes(whole)
    done = place.run("python3 .github/scripts/unpack_site.py site.zip site")
    assert (done.returncode, "it cannot be unpacked: Error -3" in done.stdout) == (2, True), done
