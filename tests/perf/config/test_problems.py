"""Bad configuration: each kind of mistake with the whole message that a person gets to read."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import truediv
from pathlib import Path

import pytest
from budget import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.config.catalog import load_catalog
from perf.local.document import MAX_BYTES, read_document
from perf.local.problems import Place
from perf.model.errors import ConfigError, UsageError
from perf.systems import registry
from perf.systems.contract import System

GOLDEN = Path(__file__).parents[2] / "golden" / "config_mistakes.txt"
DETECTION = """\
relevant_change: {throughput: 0.05, response_time: 0.1, service_time: 0.1, highest_load: 0.05,
  operations_per_dollar: 0.05, duration: 0.05, score: 0.05, cost: 0.05}
judged: {throughput: [mean], response_time: [p50, p99], service_time: [p99], highest_load: [estimate],
  operations_per_dollar: [mean], duration: [mean], score: [mean], cost: [mean]}
max_p_value: 0.001
max_rank_p_value: 0.001
provisional_p_value: 0.001
provisional_rank_p_value: 0.01
false_alarms_per_1000_series_nights: 1.0
window_points: 50
minimum_points: 6
confirming_points: 3
"""
TOPOLOGY = """\
name: pair
description: Two servers.
servers: 2
replication_factor: 2
"""
TESTBED = """\
name: desk
description: Two servers and a client.
testbed_class: desk
transport: local
hosts:
  - {name: one, role: server, address: 127.0.0.1}
  - {name: two, role: server, address: 127.0.0.2}
  - {name: client, role: client, address: 127.0.0.1}
client_cores: 1
needs: {memory_mb: 100, disk_mb: 100}
limits: {start_s: 5}
validity: {max_error_share: 0.0, max_miss_share: 0.0, min_achieved_share: 0.9, max_lateness_share: 0.1,
  max_client_cpu_share: 0.8, max_client_wait_share: 0.1, max_iteration_spread: 0.1,
  max_foreign_cpu_share: 0.1, max_steal_share: 0.0, max_throttled_share: 0.0, max_clock_step_ms: 5}
steadiness: {window_s: 2, tolerance: 0.1}
"""
WORKLOAD = """\
name: read
description: Reads.
owner: us
source: made up
records: {kind: sensor, devices: 4, payload_bytes: 128, latest_count: 2}
operation: read-latest
consistency: quorum
preload_rows_per_device: 3
preload_in_flight: 4
operation_timeout_s: 1
measurements:
  - name: steady
    load: {kind: open, offered_load_ops_per_s: 10, in_flight: 4}
    warmup_s: 1
    warmup_cap_s: 8
    iteration_s: 2
    iterations: 3
seed: 1
purpose: To see what is refused.
not_comparable: Anything.
"""
SYSTEM = """\
system: fake
name: default
description: Nothing to set.
"""
SUITE = """\
name: tiny
description: One experiment.
testbed: desk
experiments:
  - name: fake-read
    system: fake
    config: default
    topology: pair
    workload: read
    releases: ["1.0.0", "1.1.0"]
"""
TRIAGE = """\
entries:
  - name: slow-read
    state: acknowledged
    system: fake
    line: "1.1"
    operation: read-*
    sign: drop
    from_release: "1.0.0"
    to_release: "1.1.0"
    owner: storage
    note: Made up.
    expires: "2026-12-31"
"""
REPORT = (Path(__file__).parents[2] / "data/made-up-report.yaml").read_text()
FILES = {
    "detection.yaml": DETECTION,
    "topologies/pair.yaml": TOPOLOGY,
    "testbeds/desk.yaml": TESTBED,
    "workloads/read.yaml": WORKLOAD,
    "systems/fake/default.yaml": SYSTEM,
    "suites/tiny.yaml": SUITE,
    "triage.yaml": TRIAGE,
}

Edit = Callable[[str, str, str], None]


def write_tree(root: Path) -> None:
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a small configuration without fault as ./configs, and know two systems."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "names", lambda: ("fake", "toy"))
    write_tree(Path("configs"))
    return Path("configs")


@pytest.fixture
def edit(root: Path) -> Edit:
    """Replace a text that stands exactly once in a file."""

    def replace(name: str, old: str, new: str) -> None:
        text = (root / name).read_text()
        assert text.count(old) == 1
        (root / name).write_text(text.replace(old, new))

    return replace


def problems(root: Path) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        load_catalog(root)
    return caught.value.problems


def test_sample_without_edit_is_accepted(root: Path) -> None:
    assert load_catalog(root).suite("tiny").experiments[0].releases == ("1.0.0", "1.1.0")


W, S, T = "workloads/read.yaml", "suites/tiny.yaml", "topologies/pair.yaml"
D, C, R = "detection.yaml", "systems/fake/default.yaml", "reference/made-up.yaml"


@dataclass(frozen=True, slots=True)
class Mistake:
    """One block of the golden file."""

    name: str
    old: str
    new: str
    answer: str


def read_mistakes() -> tuple[Mistake, ...]:
    mistakes = []
    for block in GOLDEN.read_text().strip().split("\n\n")[1:]:
        name, old, new, answer = block.split("\n")
        assert (old[:2], new[:2], answer[:2]) == ("- ", "+ ", "= ")
        old, new = (text[2:].replace("\\n", "\n") for text in (old, new))
        mistakes.append(Mistake(name, old, new, answer[2:]))
    return tuple(mistakes)


def write_report(root: Path, text: str) -> None:
    (root / R).parent.mkdir(exist_ok=True)
    (root / R).write_text(text)


@pytest.mark.parametrize("mistake", read_mistakes(), ids=lambda mistake: mistake.new[:30])
def test_one_mistake_gives_one_sentence(root: Path, edit: Edit, mistake: Mistake) -> None:
    if mistake.name == R:
        write_report(root, REPORT)
    edit(mistake.name, mistake.old, mistake.new)
    assert problems(root) == (f"configs/{mistake.answer}",)


def test_problems_of_all_files_are_told_together(root: Path, edit: Edit) -> None:
    edit(T, "servers: 2", "servers: two")
    edit(W, "warmup_s: 1", "warmup: 1")
    edit(W, "seed: 1", "seed: -1")
    edit(S, "testbed: desk", "testbed: moon")
    edit(S, '"1.1.0"', "1.1")
    (root / C).write_text("system: [")
    (root / "suites/other.yml").write_text("")
    (root / D).unlink()
    with pytest.raises(ConfigError) as caught:
        load_catalog(root)
    assert str(caught.value) == (
        "7 problems in the configuration:\n"
        "  configs/suites/other.yml: nothing reads this file; put it into topologies/, testbeds/, "
        "workloads/, systems/<system>/, suites/, sources/ or reference/, with the ending .yaml\n"
        '  configs/topologies/pair.yaml:3: servers is "two", a text; write a whole number, without '
        "quotes or unit\n"
        "  configs/workloads/read.yaml:14: the key measurements[0].warmup is not known; write warmup_s "
        "instead, in seconds\n"
        "  configs/workloads/read.yaml:18: seed is -1; it must be at least 0\n"
        "  configs/systems/fake/default.yaml:1:10: not YAML: while parsing a flow node, expected the "
        "node content, but found '<stream end>'; fix the syntax at this place\n"
        "  configs/suites/tiny.yaml:10: experiments[0].releases[1] is 1.1, a number; write it in "
        'quotes: "1.1"\n'
        "  configs/detection.yaml: cannot be read (No such file or directory); check the file"
    )


@pytest.mark.parametrize(
    "address", ["192.0.2.7", "2001:db8::7", "db-1", "db-1.example.org", "4db.example"]
)
def test_remote_server_may_have_any_address_or_host_name(root: Path, edit: Edit, address: str) -> None:
    edit("testbeds/desk.yaml", "transport: local", "transport: ssh")
    edit("testbeds/desk.yaml", "127.0.0.2", f'"{address}"')
    assert load_catalog(root).testbeds["desk"].hosts[1].address == address


@pytest.mark.parametrize(
    "address", ["-db", "db-", "a..b", "db.", "db_1", "192.0.2", "1.2.3.4.5", "a" * 64]
)
def test_neither_address_nor_host_name_is_refused(root: Path, edit: Edit, address: str) -> None:
    edit("testbeds/desk.yaml", "transport: local", "transport: ssh")
    edit("testbeds/desk.yaml", "127.0.0.2", f'"{address}"')
    (problem,) = problems(root)
    assert "which is neither an IP address nor a host name" in problem


def test_local_server_may_have_any_loopback_address(root: Path, edit: Edit) -> None:
    edit("testbeds/desk.yaml", "address: 127.0.0.2", 'address: "::1"')
    assert load_catalog(root).testbeds["desk"].hosts[1].address == "::1"


def test_releases_of_a_system_without_its_driver_are_not_checked(
    root: Path, edit: Edit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> System:
        raise UsageError(f"system {name} needs a Python package")

    monkeypatch.setattr(registry, "load", refuse)
    edit(S, '"1.1.0"', '"9.9.9"')
    assert load_catalog(root).suite("tiny").experiments[0].releases == ("1.0.0", "9.9.9")


def test_release_of_a_local_build_must_be_known_too(
    root: Path, edit: Edit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNICKPOINT_RELEASE_FAKE_9_9_9", str(root))
    edit(S, '"1.1.0"', '"9.9.9"')
    (problem,) = problems(root)
    assert 'releases[1] is "9.9.9", and fake has no such release' in problem


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("kind: open", "kind: open, arrivals: poisson"),
        ("kind: open, offered_load_ops_per_s: 10", "kind: stepped, offered_loads_ops_per_s: [0.5, 20]"),
        ("warmup_cap_s: 8", "warmup_cap_s: 1"),
        ("operation: read-latest", "operation: write\nbatch_rows: 10"),
        ("name: steady", "name: steady-01"),
    ],
    ids=["poisson", "ladder", "warm-up of fixed length", "batches", "number in a name"],
)
def test_what_only_looks_like_a_mistake_is_accepted(root: Path, edit: Edit, old: str, new: str) -> None:
    edit(W, old, new)
    assert load_catalog(root).workloads["read"].measurements


def test_repeated_experiment_names_are_refused(root: Path, edit: Edit) -> None:
    experiment = SUITE[SUITE.index("  - name") :]
    edit(S, experiment, experiment + experiment)
    (problem,) = problems(root)
    assert problem == (
        'configs/suites/tiny.yaml:11: experiments[1].name is "fake-read", as in experiments[0]; '
        "give each its own"
    )


def test_two_entries_about_the_same_changes_are_refused(root: Path) -> None:
    (root / "triage.yaml").write_text(TRIAGE + TRIAGE.removeprefix("entries:\n"))
    assert problems(root) == (
        'configs/triage.yaml:13: entries[1].name is "slow-read", as in entries[0]; give each its own',
        "configs/triage.yaml:13: entries[1] is about the same changes as entries[0]; keep one of them",
    )


def test_an_address_is_given_once(root: Path) -> None:
    again = REPORT[REPORT.index("      - name: first") :].replace("first", "again")
    write_report(root, REPORT + again)
    assert problems(root) == tuple(
        f"configs/reference/made-up.yaml:34: tables[0].rows[1], {column} has the same address as "
        f"tables[0].rows[0], {column}; keep one of them"
        for column in ("median", "p99")
    )


def test_figures_are_read_and_none_need_be_there(root: Path) -> None:
    assert load_catalog(root).references == ()
    write_report(root, REPORT)
    found = load_catalog(root).references
    assert [(one.system, one.line, one.statistic, one.value) for one in found] == [
        ("fake", "1.0", "p50", 0.5),
        ("fake", "1.0", "p99", 1.5),
    ]


def test_figures_for_a_ladder_name_one_of_its_steps(root: Path, edit: Edit) -> None:
    edit(
        W, "kind: open, offered_load_ops_per_s: 10", "kind: stepped, offered_loads_ops_per_s: [10, 20]"
    )
    write_report(root, REPORT.replace("phase: steady", "phase: steady-20"))
    assert {one.phase for one in load_catalog(root).references} == {"steady-20"}
    write_report(root, REPORT)
    (problem,) = problems(root)
    assert problem == (
        "configs/reference/made-up.yaml:30: the phase of a cell of tables[0].rows[0] is steady, but "
        "the workload read has no such phase; did you mean steady-20? (known: steady-10, steady-20)"
    )


def test_without_a_triage_file_nothing_was_decided(root: Path) -> None:
    assert [entry.name for entry in load_catalog(root).triage] == ["slow-read"]
    (root / "triage.yaml").unlink()
    assert load_catalog(root).triage == ()


def test_sentinel_is_refused_the_config_of_any_suite_on_its_class_of_testbed(root: Path) -> None:
    watch = SUITE.replace("name: tiny", "name: watch").replace('["1.0.0", "1.1.0"]', '["1.1.0"]')
    sentinel = SUITE[SUITE.index("  - name") :].replace("fake-read", "old-read")
    both = watch + sentinel + "    sentinel_every_nights: 4\n"
    own = both.replace("fake-read", "other-read").replace('"1.1.0"', '"1.1.1"')
    (root / "suites/watch.yaml").write_text(own)
    (problem,) = problems(root)
    assert "suites/watch.yaml:13: experiments[1].config" in problem
    assert "as in the experiment fake-read of suite tiny" in problem
    (root / C).with_name("frozen.yaml").write_text(SYSTEM.replace("default", "frozen"))
    before, after = own.rsplit("config: default", 1)
    (root / "suites/watch.yaml").write_text(f"{before}config: frozen{after}")
    assert load_catalog(root).suite("watch").experiments[1].sentinel_every_nights == 4


def test_folder_without_system_is_refused(root: Path) -> None:
    folder = root / "systems/fke"
    folder.mkdir()
    (folder / "default.yaml").write_text(SYSTEM)
    (problem,) = problems(root)
    assert problem == (
        "configs/systems/fke/default.yaml: there is no system 'fke'; did you mean fake? "
        "(known: fake, toy)"
    )


def test_missing_directory_is_refused(tmp_path: Path) -> None:
    assert problems(tmp_path / "nowhere") == (
        f"{tmp_path}/nowhere: no such directory; give the one that holds suites/ and the rest",
    )


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"", ": the file is empty; its schema says which keys it needs"),
        (b"# only a comment", ": the file is empty; its schema says which keys it needs"),
        (b"a: 1\nb: \xff", ":2: not UTF-8 text; save the file as UTF-8"),
        (b"a: \x00", ": unacceptable character #x0000: special characters are not allowed; remove it"),
        (b"{a: " * 5000, ": nested deeper than 50 levels; flatten it"),
        (
            b"#" * (MAX_BYTES + 1),
            ": cannot be read (it has 250001 bytes, and at most 250000 are read); check the file",
        ),
    ],
    ids=["empty", "comment", "encoding", "control", "deep", "large"],
)
def test_unreadable_file_is_refused(tmp_path: Path, data: bytes, answer: str) -> None:
    path = tmp_path / "file.yaml"
    path.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        read_document(path)
    assert caught.value.problems == (f"{path}{answer}",)


@pytest.mark.parametrize("value", ["!<str> here", "!<int> 5"])
def test_a_type_that_only_has_the_name_of_a_plain_one_is_refused(tmp_path: Path, value: str) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(f"name: {value}\nsize: 5\n")
    document = read_document(path)
    assert document.tree == {"name": None, "size": 5}
    (problem,) = document.problems
    assert problem.startswith(f"{path}:1: name has the type ")


def test_nested_aliases_are_refused_without_being_expanded(tmp_path: Path) -> None:
    levels = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 40))
    path = tmp_path / "bomb.yaml"
    path.write_text(f"l0: &l0 [1]\n{levels}\n")
    document = read_document(path)
    assert len(document.problems) == 40
    assert document.problems[0] == f"{path}:1: l0 uses the anchor or alias l0; write the value out"


def test_an_anchor_on_a_key_is_refused_as_one_on_a_value_is(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("&a name: x\nlabels:\n  *a : y\n")
    document = read_document(path)
    assert document.problems == (
        f"{path}:1: name uses the anchor or alias a; write it out",
        f"{path}:3: labels.name uses the anchor or alias a; write it out",
    )
    assert document.tree == {"name": None, "labels": {"name": None}}
    assert document.unusable == {("name",), ("labels", "name")}


@pytest.mark.parametrize("way", [("size",), ("hosts", 1, "name"), ("hosts", 0, "cores"), ("name", 0)])
def test_a_place_that_is_not_written_is_reported_as_null(
    tmp_path: Path, way: tuple[str | int, ...]
) -> None:
    path = tmp_path / "one.yaml"
    path.write_text("name: here\nhosts:\n  - {name: a}\n")
    top = Place(read_document(path))
    place = reduce(truediv, way, top)
    assert place.say("and must be set").endswith(f": {place} is null, and must be set")
    assert (top / "name").say("why") == f'{path}:1: name is "here", why'


YAML_PIECES = st.sampled_from([
    "name: ", "pair", "servers: ", "\n", "  ", "- ", "[", "]", "{", "}", ": ", "? ", "<<: ", "'", '"',
    "&a ", "*a", "!!int ", "!!bool ", "!x ", "%YAML 1.1\n", "---\n", "...", "|\n", ">-\n", "#", "@",
    "\\ud800", "\\x1b", "1e999", ".nan", "9" * 5000, "0x", "2024-01-01", "~", "true", "\t", "\ufeff",
])  # fmt: skip
ANY_TEXT = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=80),
    st.lists(YAML_PIECES, max_size=25).map("".join),
    st.lists(YAML_PIECES, max_size=8).map(lambda pieces: TOPOLOGY + "".join(pieces)),
)


@pytest.mark.slow
@settings(max_examples=tries(200), deadline=None, derandomize=True)
@given(text=ANY_TEXT)
def test_arbitrary_text_is_accepted_or_refused_with_printable_sentences(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    root = tmp_path_factory.getbasetemp() / "arbitrary"
    write_tree(root)
    (root / T).write_text(text, encoding="utf-8", newline="")
    reported: tuple[str, ...] = ()
    try:
        load_catalog(root)
    except ConfigError as error:
        reported = error.problems or ("refused without a word",)
    for problem in reported:
        assert problem.startswith(str(root))
        assert problem.isprintable()


OWN = "workloads/own-index.yaml"


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        ("note: {kind: text", "notes: {kind: text", "text has :note, but records.values has none"),
        ("store: add-customer", "store: add-costumer", "records.store"),
        ("row: new", "row: latest", "statements.add-customer.row"),
        ("city: city", "city: town", "statements.find-by-email.expect.columns.city"),
        (
            "id: {kind: row-number}",
            "id: {kind: timestamp}",
            "statements.find-by-email.expect.columns.id",
        ),
        ("kind: row-number", "kind: uuid, of: operation", "find-by-email.expect.columns.id"),
        (
            "note: {kind: text, bytes: 500}",
            "note: {kind: text, bytes: 500}\n    spare: {kind: uuid}",
            "values.spare is used by no statement",
        ),
        (
            "{kind: row-number}",
            "{kind: integer, least: 9, most: 8}",
            "values.id.most is 8, but least is 9",
        ),
        ("preload: records", "", "statements.find-by-email.row"),
        ("preload: records", "preload: records\nexceeds_memory: true", "exceeds_memory"),
        ("language: cql", "language: pgsql", "language"),
        ("kind: choice, among", "kind: chioce, among", "values.city"),
        ("mix: {find-by-email", "mix: {find-by-mail", "mix.find-by-mail"),
    ],
)
def test_a_mistake_in_statements_is_named(root: Path, old: str, new: str, answer: str) -> None:
    text = (Path(__file__).parents[3] / "configs" / OWN).read_text()
    assert text.count(old) == 1
    (root / OWN).write_text(text)
    load_catalog(root)
    (root / OWN).write_text(text.replace(old, new))
    found = problems(root)
    assert all(one.startswith(f"configs/{OWN}:") for one in found), found
    assert any(answer in one for one in found), found


def test_a_statement_has_a_name_of_its_own(root: Path) -> None:
    text = (Path(__file__).parents[3] / "configs" / OWN).read_text()
    (root / OWN).write_text(text.replace("find-by-email", "read"))
    (problem,) = problems(root)
    assert "statements.read has the name of something else in results" in problem


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        ('{"create": "sessions"}', '{"create": "sessions"', "schema[0] is no JSON: Expecting"),
        ('{"count": "sessions"}', "[]", 'count is no command; write one as {"find"'),
        ('{"count": "sessions"}', "[" * 5000, "records.count is no JSON"),
        ("expect: {rows: 1}", "expect: {applied: true}", "expect.applied is true, but only conditions"),
        ("_id: id, account", "_id: di, account", "expect.columns._id"),
    ],
)
def test_a_mistake_in_commands_is_named(root: Path, old: str, new: str, answer: str) -> None:
    name = "workloads/own-documents.yaml"
    text = (Path(__file__).parents[3] / "configs" / name).read_text()
    assert text.count(old) == 1
    (root / name).write_text(text)
    load_catalog(root)
    (root / name).write_text(text.replace(old, new))
    (problem,) = problems(root)
    assert problem.startswith(f"configs/{name}:")
    assert answer in problem


CONFIGS = Path(__file__).parents[3] / "configs"
SQL = "workloads/own-sql.yaml"
COUNT = "count: SELECT id FROM customers"


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        ("expect: {rows: 4}", "expect: {applied: true}", "expect.applied is true, but only conditions"),
        ("spent: spent}", "spent: spend}", "get-customer.expect.columns.spent"),
        ("{city = :city,", "{city = :town,", "text has :town, but records.values has none"),
    ],
)
def test_a_mistake_in_sql_is_named(root: Path, old: str, new: str, answer: str) -> None:
    found = problems_of_sql(root, old, new)
    assert all(one.startswith(f"configs/{SQL}:") for one in found), found
    assert any(answer in one for one in found), found


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("COPY customers FROM 'file:///etc/passwd'", "begins with COPY customers;"),
        ("copy customers to directory '/tmp'", "begins with copy customers;"),
        (
            "CREATE FUNCTION f() RETURNS INTEGER LANGUAGE JAVASCRIPT AS ''",
            "begins with CREATE FUNCTION",
        ),
        ("CREATE FOREIGN TABLE t (id INTEGER) SERVER s", "begins with CREATE FOREIGN;"),
        ("CREATE TABLES", "begins with CREATE TABLES;"),
        ("SET GLOBAL stats.enabled = false", "begins with SET GLOBAL;"),
        ("-- SELECT 1", "begins with nothing;"),
        # A comment ends with its line, and with the first mark of its end.
        ("/* */ COPY t FROM 'f' /* */ SELECT 1", "begins with COPY t;"),
        ("\"--\\rCOPY t FROM 'f' /*\\nSELECT 1 */\"", "begins with COPY t;"),
        ("SELECT id FROM customers; DELETE FROM customers", "has several statements"),
    ],
)
def test_sql_that_reads_files_or_calls_others_is_refused(root: Path, text: str, answer: str) -> None:
    quoted = text if text.startswith('"') else f'"{text}"'
    (problem,) = problems_of_sql(root, COUNT, f"count: {quoted}")
    assert answer in problem
    assert "records.count" in problem


@pytest.mark.parametrize(
    "text",
    [
        "/* COPY */ select\tid FROM customers -- COPY",
        "SELECT id FROM customers WHERE email <> ';' ;",
        "WITH c AS (SELECT id FROM customers) SELECT id FROM c",
    ],
)
def test_sql_within_the_tables_of_the_trial_is_taken(root: Path, text: str) -> None:
    written = (CONFIGS / SQL).read_text()
    (root / SQL).write_text(written.replace(COUNT, f'count: "{text}"'))
    load_catalog(root)


def problems_of_sql(root: Path, old: str, new: str) -> tuple[str, ...]:
    text = (CONFIGS / SQL).read_text()
    assert text.count(old) == 1
    (root / SQL).write_text(text.replace(old, new))
    return problems(root)
