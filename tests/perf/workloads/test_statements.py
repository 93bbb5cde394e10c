"""Values of statements: the same from the same seed, and in bounds; and what a right answer is."""

from collections import Counter
from dataclasses import replace

import pytest

from perf.model.records import Answer
from perf.model.statements import (
    ChoiceValue,
    Expected,
    IntegerValue,
    Language,
    RealValue,
    RowNumber,
    Statement,
    Statements,
    TextValue,
    TimestampValue,
    UuidValue,
    strip_quoted,
    to_positional,
)
from perf.workloads.statements import Values, check_answer

RECORDS = Statements(
    kind="statements",
    language="cql",
    schema=("CREATE TABLE t (id bigint PRIMARY KEY)",),
    rows=100,
    store="add-one",
    count="SELECT id FROM t",
    values={
        "id": RowNumber(kind="row-number"),
        "number": IntegerValue(kind="integer", least=-3, most=3),
        "fresh": IntegerValue(kind="integer", most=2**62, of="operation"),
        "text": TextValue(kind="text", bytes=20, prefix="mail-"),
        "short": TextValue(kind="text", bytes=3),
        "large": TextValue(kind="text", bytes=1_000_000),
        "real": RealValue(kind="real", least=-1.0, most=2.0),
        "skewed": IntegerValue(kind="integer", most=9, distribution="zipfian"),
        "flag": ChoiceValue(kind="choice", among=(True, 3, 0.5), distribution="zipfian"),
        "city": ChoiceValue(kind="choice", among=("Lima", "Lyon")),
        "at": TimestampValue(kind="timestamp", begin_ms=1000, step_ms=10),
        "key": UuidValue(kind="uuid"),
    },
    statements={"add-one": Statement(text="INSERT INTO t (id) VALUES (:id)", row="new")},
)
ALL_NAMES = frozenset(RECORDS.values)


def test_a_row_has_the_same_values_wherever_it_is_meant() -> None:
    one, other = Values.make(RECORDS, seed=7, run=1), Values.make(RECORDS, seed=7, run=2)
    of_rows = ALL_NAMES - {"fresh"}
    assert one.fill(of_rows, 5, 1) == other.fill(of_rows, 5, 999)
    assert one.fill(of_rows, 5, 1) != one.fill(of_rows, 6, 1)
    assert one.fill(of_rows, 5, 1) != Values.make(RECORDS, seed=8, run=1).fill(of_rows, 5, 1)


def test_an_operation_has_values_of_its_own_in_each_run() -> None:
    makes = [Values.make(RECORDS, seed=7, run=run) for run in (1, 1, 2)]
    first, again, other = ([one.fill(frozenset({"fresh"}), 5, n) for n in range(50)] for one in makes)
    assert first == again
    values = [one["fresh"] for one in (*first, *other)]
    assert len(set(values)) == 100


def test_values_are_within_what_they_are_said_to_be() -> None:
    values = Values.make(RECORDS, seed=7, run=0)
    rows = [values.fill(ALL_NAMES - {"large"}, row, row) for row in range(1000)]
    assert [one["id"] for one in rows] == list(range(1000))
    assert {one["number"] for one in rows} == set(range(-3, 4))
    assert {one["city"] for one in rows} == {"Lima", "Lyon"}
    reals = [one["real"] for one in rows if isinstance(one["real"], float)]
    assert (len(reals), -1 <= min(reals) < -0.9, 1.9 < max(reals) < 2) == (1000, True, True)
    counts = Counter(one["skewed"] for one in rows)
    # 0.99 is the exponent: the first of ten has 34 % of all, the last 3.5 %.
    assert (counts[0], counts[9]) == (pytest.approx(340, abs=50), pytest.approx(35, abs=20))
    assert set(counts) == set(range(10))
    flags = Counter(str(one["flag"]) for one in rows)
    assert flags["True"] > flags["3"] > flags["0.5"] > 0
    assert {len(str(one["text"])) for one in rows} == {25}
    assert all(str(one["text"]).startswith("mail-") and str(one["text"])[5:].isalnum() for one in rows)
    assert len({one["text"] for one in rows}) == 1000
    assert {len(str(one["short"])) for one in rows} == {3}
    assert [one["at"] for one in rows[:3]] == [1000, 1010, 1020]
    assert {one["key"].version for one in rows} == {4}  # type: ignore[union-attr]
    assert len({one["key"] for one in rows}) == 1000
    assert len(str(values.fill(frozenset({"large"}), 3, 3)["large"])) == 1_000_000


def test_values_do_not_change_from_one_version_to_the_next() -> None:
    found = Values.make(RECORDS, seed=42, run=3).fill(ALL_NAMES - {"large"}, 17, 4)
    assert {name: str(value) for name, value in found.items()} == PINNED


PINNED = {
    "at": "1170",
    "city": "Lyon",
    "flag": "True",
    "fresh": "544196670871694884",
    "id": "17",
    "key": "81ddc4df-eafe-4ead-8722-73a43526c942",
    "number": "1",
    "real": "1.5733696393580612",
    "short": "RZK",
    "skewed": "9",
    "text": "mail-5SSIWDY5A5KaJudcebfF",
}


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("SELECT a FROM t WHERE id = :id AND b=:b_2", {"id", "b_2"}),
        ("SELECT ':no' FROM t WHERE \"a:no\" = :id", {"id"}),
        ("SELECT 'it''s :no' FROM t -- :no\nWHERE id = :id /* :no\n:no */", {"id"}),
        ("SELECT a::text FROM t", set()),
    ],
)
def test_parameters_are_found_outside_of_quotes_and_comments(text: str, parameters: set[str]) -> None:
    assert find_parameters(text, "cql") == parameters


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ('{"find": "t", "filter": {"_id": ":id", "b": {"$in": [":b_2", 7]}}}', {"id", "b_2"}),
        ('{":no": 1, "a": "x:no", "b": ":", "c": "\\":no\\""}', set()),
        ('{"a": ": no", "b" : ":id" }', {"id"}),
    ],
)
def test_parameters_of_a_command_are_whole_texts(text: str, parameters: set[str]) -> None:
    assert find_parameters(text, "mongodb") == parameters


@pytest.mark.parametrize(
    ("text", "sent", "names"),
    [
        (
            "SELECT a FROM t WHERE a = :id AND b=:b_2",
            "SELECT a FROM t WHERE a = ? AND b=?",
            ["id", "b_2"],
        ),
        ("SELECT :id, a FROM t WHERE a = :id", "SELECT ?, a FROM t WHERE a = ?", ["id", "id"]),
        ("SELECT a::text, :id::bigint, a[1:2]", "SELECT a::text, ?::bigint, a[1:2]", ["id"]),
        ("INSERT INTO t (o) VALUES ({a = :id})", "INSERT INTO t (o) VALUES ({a = ?})", ["id"]),
        ("SELECT ':no', 'it''s :no', \"a:no\", :id", "SELECT ':no', 'it''s :no', \"a:no\", ?", ["id"]),
        ("SELECT 'a\\', :id, ':no'", "SELECT 'a\\', ?, ':no'", ["id"]),
        (r"SELECT e'it\'s :no', :id", r"SELECT e'it\'s :no', ?", ["id"]),
        ("SELECT $$':no$$, $a$$$ :no $a$, :id", "SELECT $$':no$$, $a$$$ :no $a$, ?", ["id"]),
        ("SELECT -- ':no\n:id /* ':no */", "SELECT -- ':no\n? /* ':no */", ["id"]),
        ("SELECT 'open :id", "SELECT 'open ?", ["id"]),
    ],
)
def test_parameters_of_sql_become_placeholders(text: str, sent: str, names: list[str]) -> None:
    assert to_positional(text) == (sent, tuple(names))
    assert find_parameters(text, "sql") == set(names)


def test_what_is_quoted_and_said_beside_is_left_out() -> None:
    text = "/* COPY */SELECT 'a;', \"b;\" -- ;\rFROM t WHERE a = :id"
    assert strip_quoted(text).split() == ["SELECT", ",", "FROM", "t", "WHERE", "a", "=", ":id"]


def find_parameters(text: str, language: Language) -> frozenset[str]:
    statements = {"add-one": Statement(text=text, row="new")}
    return replace(RECORDS, language=language, statements=statements).parameters("add-one")


LIMA = {"id": 3, "city": "Lima"}
ROWS = Expected(rows=1, columns={"id": "id", "place": "city"})


@pytest.mark.parametrize(
    ("expect", "rows", "answer"),
    [
        (None, [], Answer.COMPLETED),
        (ROWS, [(3, "Lima")], Answer.COMPLETED),
        (ROWS, [], Answer.NOT_FOUND),
        (ROWS, [(3, "Lyon")], Answer.WRONG_DATA),
        (ROWS, [(3, None)], Answer.WRONG_DATA),
        (ROWS, [(3, "Lima"), (3, "Lima")], Answer.WRONG_DATA),
        (Expected(rows="any"), [(1, "x"), (2, "y")], Answer.COMPLETED),
        (Expected(rows="any"), [], Answer.NOT_FOUND),
        (Expected(rows="none"), [], Answer.COMPLETED),
        (Expected(rows="none"), [(1, "x")], Answer.WRONG_DATA),
        (Expected(columns={"id": "id"}), [], Answer.COMPLETED),
        (Expected(columns={"id": "id"}), [(3, ""), (4, "")], Answer.WRONG_DATA),
        (Expected(applied=True), [(True,)], Answer.COMPLETED),
        (Expected(applied=True), [(False, 7)], Answer.WRONG_DATA),
        (Expected(applied=True), [], Answer.WRONG_DATA),
    ],
)
def test_an_answer_is_judged_by_what_is_expected(
    expect: Expected | None, rows: list[tuple[object, ...]], answer: Answer
) -> None:
    statement = Statement(text="SELECT id, place FROM t", row="uniform", expect=expect)
    assert check_answer(statement, ("id", "place"), LIMA, rows) is answer
