"""What counts as a difference between two configurations, and by which knobs."""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.config.catalog import load_catalog
from perf.config.difference import ConfigDifference, compare_catalogs, find_knobs, leave_out
from perf.model.design import SystemConfig
from perf.model.errors import UsageError
from perf.model.identity import content_hash

CONFIGS = Path(__file__).parents[2] / "data" / "configs"
FAKE = "systems/fake/default.yaml"
NIGHT = "suites/fake-night.yaml"
Edit = Callable[..., None]
Compare = Callable[..., ConfigDifference]


@pytest.fixture
def head(tmp_path: Path) -> Path:
    shutil.copytree(CONFIGS, tmp_path / "configs")
    return tmp_path / "configs"


@pytest.fixture
def edit(head: Path) -> Edit:
    def edit(path: str, old: str, new: str) -> None:
        text = (head / path).read_text()
        assert old in text
        (head / path).write_text(text.replace(old, new))

    return edit


@pytest.fixture
def compare(head: Path) -> Compare:
    """Return `compare()`: what the edited configuration differs in from the tests' own."""

    def compare(base: Path = CONFIGS, **options: object) -> ConfigDifference:
        options = {"testbed": "loop", **options}
        return compare_catalogs(load_catalog(base), load_catalog(head), **options)  # type: ignore[arg-type]

    return compare


def listed(found: ConfigDifference) -> dict[str, str]:
    return {one.experiment: one.why_not for one in found.touched}


def test_equal_configurations_differ_in_nothing(compare: Compare) -> None:
    assert compare() == ConfigDifference(touched=(), total=3)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (FAKE, "settings:", "# a comment\nsettings:"),
        (FAKE, "No planted fault.", "In other words."),
        (FAKE, "name: default\n", ""),  # and put back below: another order of keys
        ("workloads/blink.yaml", "warmup_s: 0.2,", "warmup_s: 2e-1,"),
        ("workloads/blink.yaml", "devices: 20,", "devices: 0x14,"),
        ("testbeds/loop.yaml", "caveat: The", "caveat: Still, the"),
    ],
)
def test_what_cannot_move_a_number_changes_nothing(
    head: Path, edit: Edit, compare: Compare, path: str, old: str, new: str
) -> None:
    edit(path, old, new)
    if not new:
        (head / path).write_text((head / path).read_text() + "\n" + old)
    assert compare() == ConfigDifference(touched=(), total=3)


def test_a_rename_changes_nothing(head: Path, edit: Edit, compare: Compare) -> None:
    (head / FAKE).rename(head / "systems/fake/usual.yaml")
    edit("systems/fake/usual.yaml", "name: default", "name: usual")
    for suite in (NIGHT, "suites/fake-short.yaml"):
        edit(suite, "config: default", "config: usual")
    edit(NIGHT, "name: fake-write", "name: writing")
    (head / NIGHT).rename(head / "suites/other-night.yaml")
    edit("suites/other-night.yaml", "name: fake-night", "name: other-night")
    assert compare() == ConfigDifference(touched=(), total=3)


def test_an_experiment_that_moves_to_another_suite_is_the_same(edit: Edit, compare: Compare) -> None:
    moved = '  - {name: fake-write, system: fake, config: default, topology: three, workload: tiny-write, releases: ["1.0.0", "1.0.1"]}\n'  # noqa: E501  a line of a suite
    edit(NIGHT, moved, "")
    edit("suites/fake-short.yaml", "experiments:\n", f"experiments:\n{moved}")
    assert compare().touched == ()
    assert compare(suites=("fake-short",)) == ConfigDifference(touched=(), total=2)


def test_an_edit_of_a_shared_default_lists_all_that_it_touches(edit: Edit, compare: Compare) -> None:
    edit(FAKE, "service_time_ms: 1", "service_time_ms: 2")
    found = compare()
    assert listed(found) == {"fake-write": "", "fake-read": "", "fake-blink": ""}
    for one in found.touched:
        (knob,) = one.knobs
        assert knob.path == "systems/fake/default: settings.service_time_ms"
        assert (knob.before, knob.after) == ("1", "2")
        assert one.base is not None
        assert one.head is not None
        assert one.head.config.settings == {"service_time_ms": 2}
    assert listed(compare(suites=("fake-short",))) == {"fake-blink": ""}


def test_several_knobs_are_named_with_both_values(edit: Edit, compare: Compare) -> None:
    settings = "{service_time_ms: 2, cache: {size: 64, kinds: [a, b]}}\nheap_mb: 512"
    edit(FAKE, "{service_time_ms: 1}", settings)
    found = compare(suites=("fake-short",)).touched[0].knobs
    assert [(knob.path.partition(": ")[2], knob.before, knob.after) for knob in found] == [
        ("heap_mb", "", "512"),
        ("settings.cache.kinds", "", '["a", "b"]'),
        ("settings.cache.size", "", "64"),
        ("settings.service_time_ms", "1", "2"),
    ]


def test_a_rename_does_not_hide_a_changed_knob(edit: Edit, compare: Compare) -> None:
    edit("suites/fake-short.yaml", "name: fake-blink", "name: wink")
    edit(FAKE, "service_time_ms: 1", "service_time_ms: 2")
    (one,) = compare(suites=("fake-short",)).touched
    assert (one.experiment, one.why_not, len(one.knobs)) == ("wink", "", 1)


def test_another_list_of_releases_changes_nothing_and_is_reported(edit: Edit, compare: Compare) -> None:
    edit("suites/fake-short.yaml", '["1.0.0", "1.0.1"]', '["1.0.0", "1.1.1"]')
    found = compare()
    assert found.touched == ()
    (note,) = found.notes
    assert "fake-blink of suite fake-short" in note


def test_rules_measure_nothing_and_are_reported(head: Path, edit: Edit, compare: Compare) -> None:
    edit("detection.yaml", "max_p_value: 0.0002", "max_p_value: 0.0003")
    (head / "triage.yaml").write_text("entries: []\n")
    assert compare().touched == ()
    assert [note.split()[0] for note in compare().notes] == ["detection.yaml"]


def test_published_figures_measure_nothing_and_are_reported(head: Path, compare: Compare) -> None:
    (head / "reference").mkdir()
    subject = "{name: s, title: S, system: fake, setup: None.}"
    place = "{subject: s, workload: blink, phase: saturation, operation: write, statistic: mean}"
    column = "{name: c, title: C, at: {metric: throughput}}"
    row = "{name: r, title: R, values: [1]}"
    (head / "reference/made-up.yaml").write_text(
        "{name: made-up, title: T, authors: [A], publisher: P, url: https://example.org, published: u,"
        " retrieved: u, suite: fake-short, suites: [fake-short], hardware: H, client: C,"
        f" not_compared: [N], subjects: [{subject}], tables: [{{name: t, title: T,"
        f" at: {place}, columns: [{column}], rows: [{row}]}}]}}\n"
    )
    assert compare().touched == ()
    assert [note.split()[0] for note in compare().notes] == ["reference/"]


@pytest.mark.parametrize(
    ("path", "old", "new", "reason"),
    [
        (
            "workloads/blink.yaml",
            "iteration_s: 0.4",
            "iteration_s: 0.5",
            "its workload blink (measurements.saturation.iteration_s) differs",
        ),
        (
            "workloads/blink.yaml",
            "operation: write",
            'engine: command\nprogram: {run: ["{in_flight}{seconds}"], open: ["{rate}"], figures: hdr}',
            "its workload blink (engine, ",
        ),
        ("topologies/three.yaml", "factor: 3", "factor: 2", "its topology three (replication_factor)"),
        (
            "testbeds/loop.yaml",
            "disk_mb: 10",
            "disk_mb: 11",
            "its testbed loop (needs.disk_mb) differs",
        ),
    ],
)
def test_what_measures_something_else_is_listed_with_the_reason(
    edit: Edit, compare: Compare, path: str, old: str, new: str, reason: str
) -> None:
    edit(path, old, new)
    assert reason in listed(compare(suites=("fake-short",)))["fake-blink"]


@pytest.mark.slow
def test_what_is_proposed_uses_no_secret(tmp_path: Path) -> None:
    configs = CONFIGS.parents[2] / "configs"
    head = Path(shutil.copytree(configs, tmp_path / "real"))
    with (head / "systems/cassandra/default.yaml").open("a") as file:
        file.write("access: {username: cassandra, password_env: KNICKPOINT_PASSWORD_OF_OTHERS}\n")
    found = compare_catalogs(load_catalog(configs), load_catalog(head), testbed="local")
    here = [one for one in found.touched if one.head and one.head.testbed.name == "local"]
    assert here
    assert all("(access): no secret is used by what is only proposed" in one.why_not for one in here)


def test_a_variant_that_is_scaled_down_is_reported_by_its_own_file(
    head: Path, edit: Edit, compare: Compare, tmp_path: Path
) -> None:
    floors = "{records: 4, operations: 4, in_flight: 1, offered_load_ops_per_s: 5, seconds: 0.2}"
    more = f"seed: 7\nfloors: {floors}\nvariants:\n  long: {{description: longer, batch_rows: 2}}\n"
    edit("workloads/blink.yaml", "seed: 7\n", more)
    edit("suites/fake-short.yaml", "workload: blink", "workload: blink-long")
    edit("suites/fake-short.yaml", "testbed: loop", "testbed: loop\nscaled_down_by: 2")
    base = tmp_path / "base"
    shutil.copytree(head, base)
    edit("workloads/blink.yaml", "batch_rows: 2", "batch_rows: 4")
    (one,) = compare(base).touched
    assert [knob.path for knob in one.knobs] == ["workloads/blink: batch_rows"]
    assert "its workload blink-long-by-2 of workloads/blink.yaml (batch_rows) differs" in one.why_not


def test_new_and_removed_experiments_are_listed(head: Path, edit: Edit, compare: Compare) -> None:
    text = (head / FAKE).read_text().replace("name: default", "name: quick").replace("1}", "9}")
    (head / "systems/fake/quick.yaml").write_text(text)
    edit("suites/fake-short.yaml", "config: default", "config: quick")
    edit("suites/fake-short.yaml", "workload: blink", "workload: tiny-read")
    edit("suites/fake-short.yaml", "name: fake-blink", "name: glance")
    found = compare()
    assert listed(found) == {
        "glance": "new at head: base has nothing to compare it with",
        "fake-blink": "removed at head",
    }
    assert found.total == 3


def test_what_runs_on_another_testbed_is_listed_not_measured(
    head: Path, edit: Edit, compare: Compare
) -> None:
    other = (CONFIGS / "testbeds/loop.yaml").read_text().replace("name: loop", "name: rack", 1)
    (head / "testbeds/rack.yaml").write_text(other)
    edit(FAKE, "service_time_ms: 1", "service_time_ms: 2")
    found = listed(compare(testbed="rack"))
    assert found["fake-blink"].startswith("it runs on testbed loop, not on rack")


def test_what_does_not_exist_is_refused(compare: Compare) -> None:
    with pytest.raises(UsageError, match="no suite 'fake-shrt'; did you mean fake-short"):
        compare(suites=("fake-shrt",))
    with pytest.raises(UsageError, match="no testbed 'local' at head"):
        compare(testbed="local")


SETTINGS = st.recursive(
    st.integers(0, 2) | st.booleans() | st.just([]),
    lambda inner: st.dictionaries(st.sampled_from(["a", "b", "c.d"]), inner, max_size=3),
    max_leaves=6,
)
CONFIG = st.builds(
    lambda settings, heap_mb, options: SystemConfig(
        system="fake",
        name="default",
        description="made up",
        settings=settings if isinstance(settings, dict) else {"a": settings},
        heap_mb=heap_mb,
        jvm_options=options,
    ),
    SETTINGS,
    st.none() | st.integers(1, 2),
    st.sampled_from([(), ("-Xa",), ("-Xa", "-Xb")]),
)


@given(CONFIG, CONFIG)
def test_knobs_are_there_exactly_if_the_content_differs_and_lead_back(
    base: SystemConfig, head: SystemConfig
) -> None:
    knobs = find_knobs("systems/fake/default", base, head)
    assert bool(knobs) == (content_hash(base) != content_hash(head))
    assert len({knob.path for knob in knobs}) == len(knobs)
    without = head
    for knob in knobs:
        without = leave_out(knob, without, base)
    assert content_hash(without) == content_hash(base)


def test_leaving_one_knob_out_leaves_the_others() -> None:
    base = SystemConfig(system="fake", name="n", description="d", settings={"a": {"x": 1}}, heap_mb=1)
    head = replace(base, settings={"a": {"x": 2, "y": 3}}, heap_mb=2)
    left = {
        knob.path.partition(": ")[2]: leave_out(knob, head, base)
        for knob in find_knobs("f", base, head)
    }
    assert left["heap_mb"] == replace(head, heap_mb=1)
    assert left["settings.a.x"].settings == {"a": {"x": 1, "y": 3}}
    assert left["settings.a.y"].settings == {"a": {"x": 2}}


def test_a_change_that_touches_more_experiments_than_are_listed_is_refused(
    head: Path, compare: Compare
) -> None:
    line = '  - {{name: {0}-{1}, system: fake, config: {0}, topology: three, workload: tiny-write, releases: ["1.0.0"]}}\n'  # noqa: E501  a line of a suite
    base = head.parent / "base"
    shutil.copytree(head, base)
    # Each is gone at head, and head has as many others.
    for root, name, count in ((base, "old", 300), (head, "new", 201)):
        config = (root / FAKE).read_text().replace("default", name).replace("_ms: 1", f"_ms: {count}")
        (root / FAKE).with_name(f"{name}.yaml").write_text(config)
        lines = "".join(line.format(name, number) for number in range(count))
        (root / NIGHT).write_text(f"{(root / NIGHT).read_text()}{lines}")
    said = "^501 experiments differ, and at most 500 are listed; .*--suite, .*`knickpoint compare`"
    with pytest.raises(UsageError, match=said):
        compare(base)


def test_a_file_of_thousands_of_differences_names_some_of_them(edit: Edit, compare: Compare) -> None:
    hosts = "".join(
        f"  - {{name: more-{number}, address: 127.0.1.{number}, role: server}}\n"
        for number in range(25)
    )
    edit("testbeds/loop.yaml", "client_cores: 1\n", f"{hosts}client_cores: 1\n")
    for reason in listed(compare()).values():
        assert re.search(r"testbed loop \(hosts\.more-0\.address, .* and [0-9]+ more\) differs", reason)
