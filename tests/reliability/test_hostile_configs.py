"""Whatever stands in configs/ or history.yaml: it is used, or all that is wrong is reported."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import strategies as st
from mutations import (
    NO_FILES,
    ROOT,
    broken_bytes,
    broken_documents,
    is_well_told,
    offer,
    put_in_place,
    run_bounded,
    within,
)
from ruamel.yaml import YAML

from perf.config.catalog import load_catalog
from perf.config.triage_file import add_entries
from perf.history.place import read_place
from perf.jobs.night import open_night, read_nights
from perf.local.document import MAX_BYTES
from perf.local.paths import DataPaths
from perf.model.errors import BundleError, ConfigError
from perf.model.nights import Night, PlannedTrial
from perf.model.rules import TriageEntry

LONGEST_S = 60.0
TRIAGE = """\
entries:
  - name: slow-write
    state: acknowledged
    system: fake
    line: "1.0"
    operation: write
    sign: drop
    from_release: "1.0.0"
    to_release: "1.0.1"
    owner: storage
    note: Made up.
    expires: "2036-12-31"
"""
PLACE = """\
history: "ducklake:postgres:host=db dbname=x"
data_path: s3://bucket/x/
lab: rack-a
s3: {endpoint: "storage.example.org:9000", url_style: path}
"""
SHIPPED = (
    *(
        "workloads/ycsb-soak.yaml",
        "workloads/devops.yaml",
        "workloads/put-get.yaml",
        "testbeds/lab.yaml",
    ),
    *("systems/cassandra/rack-ucs.yaml", "topologies/three-nodes.yaml", "systems/mongodb/default.yaml"),
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a configuration with a file of each kind."""
    root = tmp_path_factory.mktemp("configs")
    shutil.copytree(ROOT / "tests/data/configs", root, dirs_exist_ok=True)
    (root / "triage.yaml").write_text(TRIAGE, encoding="utf-8")
    for name in SHIPPED:
        if (ROOT / "configs" / name).exists():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / "configs" / name, root / name)
    assert load_catalog(root).triage
    return root


def reported_one_by_one(read: Callable[[], object]) -> None:
    """Read; of what is refused raise the first problem, for each is a message of its own."""
    try:
        read()
    except ConfigError as error:
        reported = error
    else:
        return
    assert reported.problems
    # A problem for each of a hundred values is more than a message elsewhere has.
    assert all(is_well_told(ConfigError([problem])) for problem in reported.problems)
    raise ConfigError(reported.problems[:1])


@pytest.mark.keeps("hostile-configs")
def test_a_broken_file_is_used_or_all_that_is_wrong_is_reported(
    root: Path, effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    yaml = YAML(typ="safe", pure=True)
    texts = {path: path.read_bytes() for path in sorted(root.rglob("*.yaml"))}
    broken = st.one_of([
        st.tuples(
            st.just(path), broken_documents(yaml.load(text), for_yaml=True) | broken_bytes(text)
        )
        for path, text in texts.items()
    ])  # fmt: skip

    def take(broken: tuple[Path, bytes]) -> None:
        path, data = broken
        path.write_bytes(data)
        try:
            reported_one_by_one(lambda: load_catalog(root))
        finally:
            path.write_bytes(texts[path])

    figures["broken configuration files"] = offer(broken, take, ConfigError, effort(15, 400), root)


@pytest.mark.keeps("hostile-configs")
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_is_reported_and_never_waited_for(
    root: Path, tmp_path: Path, kind: str
) -> None:
    own = tmp_path / "configs"
    shutil.copytree(root, own)
    names = ["triage.yaml", "workloads/more.yaml", "suites/more.yaml", "systems/fake/more.yaml"]
    for name in names:
        (own / name).unlink(missing_ok=True)
        put_in_place(own / name, kind)
    put_in_place(tmp_path / "history.yaml", kind)
    with within(LONGEST_S), pytest.raises(ConfigError) as caught:
        load_catalog(own)
    assert is_well_told(caught.value, *(own / name for name in names))
    try:
        with within(LONGEST_S):
            assert read_place(tmp_path / "history.duckdb") is None
    except ConfigError as error:
        reported = error
        assert is_well_told(reported, tmp_path / "history.yaml")
    else:
        raise AssertionError("a history of several labs is not to be taken for none")


@pytest.mark.slow
@pytest.mark.keeps("hostile-configs")
def test_bombs_are_refused_in_little_memory(
    tmp_path: Path, effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    size = effort(2000, MAX_BYTES)
    numbers = range(size)
    laughs = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 40))
    bombs = {
        "laughs": f"l0: &l0 [1]\n{laughs}\n",
        "deep": "a: " + "[" * size,
        "deep block": "\n".join(" " * n + "a:" for n in range(700)),
        "merges": "a: &a {x: 1}\n" + "".join(f"b{n}: {{<<: *a}}\n" for n in numbers),
        "keys": "".join(f"k{n}: {n}\n" for n in numbers),
        "one key": '"' + "x" * (size - 9) + '": 1\n',
        "digits": "a: " + "9" * size,
        "exponent": "a: 1e" + "9" * size,
        "text": "name: " + "x" * size,
        "anchors": "".join(f"- &a{n} 1\n" for n in numbers),
        "comments": "#\n" * size,
        "quotes": '"' + "\\n" * (size // 2 - 9) + '": 1',
        "tags": "a: !" + "t" * (size - 9) + " 1\n",
        "sexagesimal": "a: " + "1:" * size,
        "question": "? " * size,
        "dashes": "- " * size,
    }
    for name, text in bombs.items():
        (tmp_path / f"{name}.yaml").write_text(text[:size], encoding="utf-8")
    code = """
import resource, sys, time
from pathlib import Path
from perf.local.document import read_document
from perf.model.errors import ConfigError
for path in sorted(Path(sys.argv[1]).glob("*.yaml")):
    began = time.monotonic()
    try:
        said = "\\n".join(read_document(path).problems)
    except ConfigError as error:
        said = str(error)
    print(path.stem, max(map(len, said.split("\\n"))), f"{time.monotonic() - began:.0f}")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
    done = run_bounded(code, tmp_path, memory_mb=1024, seconds=280)
    assert done.returncode == 0, done.stderr[-2000:]
    *lines, peak_mb = done.stdout.splitlines()
    assert len(lines) == len(bombs), done.stdout
    for line in lines:
        assert int(line.split()[-2]) < 2000, line
    figures["the worst configurations"] = f"{len(bombs)}, {peak_mb} MB"


@pytest.mark.keeps("hostile-configs")
def test_a_broken_place_of_a_history_is_never_taken_for_another(
    tmp_path: Path, effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    path = tmp_path / "history.yaml"
    path.write_text(PLACE, encoding="utf-8")
    assert read_place(tmp_path / "history.duckdb") is not None
    tree = YAML(typ="safe", pure=True).load(PLACE)

    def take(data: bytes) -> None:
        path.write_bytes(data)
        place = read_place(tmp_path / "history.duckdb")
        assert place is not None  # None would mean the file beside it
        assert place.lab.isascii()

    broken = broken_documents(tree, for_yaml=True) | broken_bytes(PLACE.encode())
    figures["broken history.yaml"] = offer(broken, take, ConfigError, effort(25, 600), path)


@pytest.mark.keeps("hostile-configs")
def test_no_entry_is_added_to_a_broken_triage_file(
    tmp_path: Path, effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    path = tmp_path / "triage.yaml"
    entry = TriageEntry(
        name="another",
        state="fixed",
        system="fake",
        line="1.0",
        sign="drop",
        from_release="1.0.1",
        to_release="1.0.2",
        fixed_in="1.0.3",
        owner="storage",
        note="Made up.",
    )
    tree = YAML(typ="safe", pure=True).load(TRIAGE)

    def take(data: bytes) -> None:
        path.write_bytes(data)
        try:
            reported_one_by_one(lambda: add_entries(path, [entry]))
        except ConfigError:
            assert path.read_bytes() == data
            assert [one.name for one in tmp_path.iterdir()] == [path.name]
            raise
        assert "another" in path.read_text(encoding="utf-8")

    broken = broken_documents(tree, for_yaml=True) | broken_bytes(TRIAGE.encode())
    figures["broken triage files"] = offer(broken, take, ConfigError, effort(10, 400))


@pytest.mark.keeps("hostile-plans")
def test_a_broken_plan_of_a_night_is_refused_and_leads_nowhere_else(
    root: Path, tmp_path: Path, effort: Callable[[int, int], int], figures: dict[str, object]
) -> None:
    catalog = load_catalog(root)
    suite, now = catalog.suite("fake-night"), datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
    paths = DataPaths(tmp_path / "var")
    night, _ = open_night(paths, catalog, suite, now, is_to_be_reported=True)
    path = paths.nights / f"{night.id}.json"
    data = path.read_bytes()
    before = {one.name for one in paths.nights.iterdir()}

    def take(data: bytes) -> None:
        path.write_bytes(data)
        try:
            found, _ = open_night(paths, catalog, suite, now, is_to_be_reported=True)
        except BundleError:
            assert {one.name for one in paths.nights.iterdir()} == before
            assert {one.name for one in tmp_path.iterdir()} <= {"var"}
            raise
        assert isinstance(found, Night)
        assert all(isinstance(one, PlannedTrial) and "/" not in one.id for one in found.trials)
        for one in {one.name for one in paths.nights.iterdir()} - before:
            assert one.startswith("2026-03-01-")
            (paths.nights / one).unlink()

    broken = broken_documents(json.loads(data)) | broken_bytes(data)
    figures["broken plans"] = offer(broken, take, BundleError, effort(25, 2000), path)


@pytest.mark.keeps("hostile-plans")
@pytest.mark.parametrize("kind", NO_FILES)
def test_a_plan_that_is_no_file_is_reported(tmp_path: Path, kind: str) -> None:
    paths = DataPaths(tmp_path)
    paths.nights.mkdir()
    put_in_place(paths.nights / "2026-03-01-1.json", kind)
    with within(LONGEST_S), pytest.raises(BundleError) as caught:
        read_nights(paths)
    assert is_well_told(caught.value, "2026-03-01-1.json", "move it away")
