"""What years of nights cost in a lake beside a file: append, judge, ask, upgrade, roll up.

    python tests/benchmarks/scale/lake.py FOLDER [YEARSxSERIES [HISTORY]]

The catalog is a PostgreSQL with its usual care (fsync on), the rows are in an S3 that is moto, so its
time is Python's; both on this machine. A history is made up in FOLDER as `years.py` does (10x1000), or
HISTORY is copied, which was made so, and moved into the lake by `history migrate`'s own function. Then
the same further nights are appended and judged in both, in turns, each in a process of its own. At the
end the lake is made to be of schema 1 and is upgraded, and the histograms of its oldest four nights
that have some per second are rolled up, its past is given up, and all is held against the file.
"""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/benchmarks/site"), str(ROOT / "tests/peers")]

import duckdb  # noqa: E402  found by the lines above
import years  # noqa: E402
from lake_of_labs import LakeOfLabs, make_lake  # noqa: E402
from large_history import Size  # noqa: E402
from night import most_mb  # noqa: E402
from postgres_server import PASSWORD, find_programs, serving  # noqa: E402
from s3_server import BUCKET, KEYS, list_sizes, serving_s3  # noqa: E402
from years import say  # noqa: E402

from perf.history import retention  # noqa: E402
from perf.history.place import LakePlace, read_place  # noqa: E402
from perf.history.storage import lake, migration  # noqa: E402
from perf.history.store import open_history  # noqa: E402
from perf.history.tables import Tables  # noqa: E402
from perf.local.paths import DataPaths  # noqa: E402

NIGHTS = 3
ROLLED_UP_NIGHTS = 4
OLD_SCHEMA = """
    BEGIN; ALTER TABLE samples DROP COLUMN host; DROP TABLE load_steps; DROP TABLE remarks;
    DROP TABLE rolled_up; UPDATE meta SET schema_version = 1; COMMIT
"""


def main(folder: str, size: str = "10x1000", history: str = "") -> None:
    """Print all figures."""
    programs = find_programs()
    assert programs is not None, "install postgresql"
    os.environ.update(KEYS, PGPASSWORD=PASSWORD)
    number, series = map(int, size.split("x"))
    of = Size(series, number * years.NIGHTS_A_YEAR)
    alone, shared = (DataPaths(Path(folder) / name) for name in ("alone", "shared"))
    if history:
        alone.data.mkdir(parents=True)
        shutil.copy(history, alone.history)
    else:
        years.make_up(alone, of)
    with serving(programs, is_careful=True) as server, serving_s3() as endpoint:
        s3 = f's3: {{endpoint: "{endpoint}", region: us-east-1, url_style: path, use_ssl: false}}'
        labs = make_lake(server, f"s3://{BUCKET}/knickpoint/", s3)
        place = read_place(labs.join(shared).history)
        assert place is not None
        with lap("migrate to the lake"):
            migration.copy_to_lake(alone.history, place)
        say(describe(labs))
        measure_nights(alone, shared, of)
        for paths in (alone, shared):
            say(f"  {paths.data.name}")
            years.ask(paths, of)
        say(describe(labs))
        measure_upgrade(place, shared)
        measure_retention(place)
        say(describe(labs))
        compare(alone, place)


def measure_nights(alone: DataPaths, shared: DataPaths, of: Size) -> None:
    """Append and judge further nights in both, then judge again."""
    for paths in (alone, shared):
        years.show(f"{paths.data.name}: first judgement", [years.report(paths, of.nights, "no-site")])
        shutil.copy(alone.readings, shared.readings)  # what was searched is known by its values
    rounds: dict[DataPaths, list[dict[str, float]]] = {alone: [], shared: []}
    for _ in range(NIGHTS):
        of = replace(of, nights=of.nights + 1)
        years.seal_night(alone, of, of.experiments)
        copy_new(alone.trials, shared.trials)
        for paths, found in rounds.items():
            found.append(years.report(paths, of.nights, "no-site"))
    for paths, found in rounds.items():
        years.show(f"{paths.data.name}: one more night of all series", found)
        again = [years.report(paths, of.nights, "no-site")]
        years.show(f"{paths.data.name}: the same again, nothing new", again)


def copy_new(source: Path, target: Path) -> None:
    """Copy the bundles that the other side lacks; a link to one would be refused."""
    target.mkdir(exist_ok=True)
    there = {one.name for one in target.iterdir()}
    for one in source.iterdir():
        if one.name not in there:
            shutil.copytree(one, target / one.name)


def measure_upgrade(place: LakePlace, shared: DataPaths) -> None:
    """Make the lake to be of the first schema, and open it to write."""
    with closing(duckdb.connect(":memory:", config=lake.CONFIG)) as connection:
        lake.prepare(connection, place)
        lake.attach(connection, place, read_only=False)
        connection.execute(OLD_SCHEMA)
    with lap("upgrade from schema 1, opening and closing included"), open_history(shared.history):
        pass


def measure_retention(place: LakePlace) -> None:
    """Roll up the oldest nights that have histograms, and give the past up."""
    storage = lake.LakeStorage(place, read_only=False)
    nights = storage.tables.rows(
        "SELECT DISTINCT night FROM histograms JOIN trials USING (trial_id) ORDER BY ALL LIMIT ?",
        [ROLLED_UP_NIGHTS + 1],
    )
    before = datetime.fromisoformat(nights[-1]["night"][:10]).replace(tzinfo=UTC)
    with lap("find what is old"):
        old = retention.find_old(storage.tables, before)
    with lap("roll up"):
        say(f"  {retention.roll_up_lake(storage, old, lambda _: None)}")
    with lap("merge, forget snapshots, delete files"):
        say(f"  all files deleted: {storage.give_up_past()}")
    storage.close(is_fine=True)


def compare(alone: DataPaths, place: LakePlace) -> None:
    """Print which tables hold what those of the file do."""
    with lap("fingerprint of the file"), duckdb.connect(alone.history, read_only=True) as connection:
        wanted = Tables(connection, nullcontext).fingerprint("history")
    storage = lake.LakeStorage(place, read_only=True)
    with lap("fingerprint of the lake"):
        found = storage.tables.fingerprint(lake.NAME)
    storage.close(is_fine=True)
    for table, of_table in found.items():
        rows = f"{of_table[0]} rows, {wanted[table][0]} in the file"
        say(f"    {table}: {'equal' if of_table == wanted[table] else rows}")


def describe(labs: LakeOfLabs) -> str:
    """Describe how large the lake is."""
    sizes = list_sizes()
    with labs.connect() as session:
        row = session.execute("SELECT pg_database_size(current_database())").fetchone()
    catalog = row[0] if row else 0
    return (
        f"  {len(sizes)} objects of {sum(sizes.values()) / 1e6:.1f} MB, catalog {catalog / 1e6:.1f} MB"
    )


@contextmanager
def lap(what: str) -> Iterator[None]:
    """Print how long it took; the servers are not in it but for the S3, which is in this process."""
    began_s, cpu_s = time.monotonic(), time.process_time()
    yield
    say(
        f"  {what}, n = 1: {time.monotonic() - began_s:.1f} s, CPU {time.process_time() - cpu_s:.1f} s,"
        f" at most {most_mb():.0f} MB so far"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
