from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perf.model.records import Operation, Ycsb
from perf.workloads.keys import (
    SCRAMBLED_RANKS,
    SCRAMBLED_ZETA,
    Chooser,
    Hotspot,
    Latest,
    ScrambledZipfian,
    Uniform,
    Zipfian,
    hash_number,
    insert_share,
    make_chooser,
    zeta,
)

STREAM = 99
DRAWS = 4000
CHOOSERS: dict[str, Chooser] = {
    "hotspot": Hotspot(100, 0.2, 0.8),
    "latest": Latest(100),
    "uniform": Uniform(100),
    "zipfian": ScrambledZipfian(100),
    "zipfian, widened": ScrambledZipfian(100, 40),
}


def draw(chooser: Chooser, known: int = 100) -> list[int]:
    return [chooser.choose(STREAM, number, known) for number in range(DRAWS)]


def test_a_number_is_hashed_like_the_first_keys_of_any_ycsb_load() -> None:
    assert hash_number(0) == 6284781860667377211
    assert hash_number(1) == 8517097267634966620


@given(st.integers(0, 2**63 - 1))
def test_a_hash_has_no_sign(number: int) -> None:
    assert 0 <= hash_number(number) <= 2**63


@pytest.mark.parametrize("items", [1, 2, 63, 64, 65, 1000, 50_000])
@pytest.mark.parametrize("theta", [0.5, 0.99])
def test_zeta_is_the_sum_that_it_stands_for(items: int, theta: float) -> None:
    assert zeta(items, theta) == pytest.approx(sum(r**-theta for r in range(1, items + 1)), rel=1e-13)


def test_zeta_of_the_scrambled_ranks_is_what_ycsb_has_precomputed() -> None:
    assert zeta(SCRAMBLED_RANKS - 1) == pytest.approx(SCRAMBLED_ZETA, rel=1e-11)


@settings(deadline=None)
@given(st.floats(0, 1, exclude_max=True), st.integers(1, 10**10))
@example(1 - 2**-53, 3)
@example(1 - 2**-53, 10**10)
def test_a_rank_is_one_of_them(unit: float, items: int) -> None:
    assert 0 <= Zipfian(items, zeta(items)).rank(unit) < items


def test_ranks_are_as_frequent_as_zipf_says() -> None:
    items = 1000
    ranks, total = Zipfian(items, zeta(items)), zeta(items)
    counts = Counter(ranks.rank((number + 0.5) / 50_000) for number in range(50_000))
    for rank in (0, 1):  # exact; the others are as near as the formula of Gray et al. comes
        assert counts[rank] / 50_000 == pytest.approx((rank + 1) ** -0.99 / total, rel=0.001)
    assert sum(counts[rank] for rank in range(2, 100)) / 50_000 == pytest.approx(
        (zeta(100) - zeta(2)) / total, rel=0.05
    )


@pytest.mark.parametrize("name", sorted(CHOOSERS))
def test_a_choice_depends_on_stream_number_and_what_is_known_alone(name: str) -> None:
    chooser = CHOOSERS[name]
    backwards = [chooser.choose(STREAM, number, 100) for number in reversed(range(DRAWS))]
    assert draw(chooser) == backwards[::-1]
    assert draw(chooser) != [chooser.choose(STREAM + 1, number, 100) for number in range(DRAWS)]


@pytest.mark.parametrize("known", [100, 101, 130, 1000])
@pytest.mark.parametrize("name", sorted(CHOOSERS))
def test_only_a_known_record_is_chosen(name: str, known: int) -> None:
    assert all(0 <= index < known for index in draw(CHOOSERS[name], known))


@pytest.mark.parametrize("records", [1, 2, 3])
@pytest.mark.parametrize("distribution", ["hotspot", "latest", "uniform", "zipfian"])
def test_few_records_are_enough(distribution: str, records: int) -> None:
    shape = Ycsb(kind="ycsb", record_count=records, request_distribution=distribution)  # type: ignore[arg-type]
    chooser = make_chooser(shape, stored=records, insert_share=0.5, engine_count=1)
    for known in (records, records + 1, records + 50):
        assert all(0 <= chooser.choose(STREAM, number, known) < known for number in range(500))


def test_a_hotspot_gets_its_share_of_operations() -> None:
    counts = Counter(draw(CHOOSERS["hotspot"]))
    inside = sum(counts[index] for index in range(20))
    assert inside / DRAWS == pytest.approx(0.8, abs=0.03)
    assert min(counts[index] for index in range(20)) > 100
    assert max(counts[index] for index in range(20, 100)) < 50


def test_uniform_leaves_out_what_was_inserted_later() -> None:
    counts = Counter(draw(Uniform(100), known=200))
    assert set(counts) == set(range(100))
    assert max(counts.values()) < 80


def test_the_latest_record_is_the_likeliest_and_moves() -> None:
    for known in (100, 150):
        counts = Counter(draw(CHOOSERS["latest"], known))
        assert counts.most_common(1)[0][0] == known - 1
        assert counts[known - 1] > 1.5 * counts[known - 2] > 1.5 * counts[known - 6]
        assert 0 not in counts  # the very first record never is, as in YCSB


def test_scrambling_strews_the_likeliest_records() -> None:
    chooser = ScrambledZipfian(100)
    frequent = [index for index, _ in Counter(draw(chooser)).most_common(5)]
    assert frequent[:2] == [chooser.place(0), chooser.place(1)]
    assert max(frequent) - min(frequent) > 10


def test_inserts_do_not_change_which_records_are_likeliest() -> None:
    chooser = ScrambledZipfian(100, 40)
    before, after = Counter(draw(chooser, 100)), Counter(draw(chooser, 120))
    assert before.most_common(1)[0][0] == after.most_common(1)[0][0]
    assert any(index >= 100 for index in after)


def test_the_key_range_is_widened_by_twice_the_inserts_to_be_expected() -> None:
    shape = Ycsb(kind="ycsb", record_count=1000, request_distribution="zipfian")
    asked = {"stored": 1000, "insert_share": 0.05, "engine_count": 1}
    assert make_chooser(shape, **asked) == ScrambledZipfian(1000, 100)  # type: ignore[arg-type]
    assert make_chooser(shape, stored=1000, insert_share=0.05, engine_count=4) == ScrambledZipfian(
        1000, 25
    )
    longer = Ycsb(
        kind="ycsb", record_count=1000, request_distribution="zipfian", operation_count=50_000
    )
    assert make_chooser(longer, **asked) == ScrambledZipfian(1000, 5000)  # type: ignore[arg-type]


def test_the_share_of_inserts_is_of_all_weights() -> None:
    assert insert_share({Operation.INSERT: 9.0, Operation.READ: 1.0}) == 0.9
    assert insert_share({Operation.READ: 1.0}) == 0.0
