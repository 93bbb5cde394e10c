"""Our choosers and keys against YCSB core itself, of Maven Central.

Exact: hashes, key names, zeta and eta, where a rank falls, and, as the seed of YCSB's own numbers is
planted, every single rank that it draws. By counts: what `choose` gives with our own random numbers
against what CoreWorkload.nextKeynum gives with its own.

Both draw from planted seeds, so these tests never fail by chance. What they are worth: over 400 pairs
of other seeds, 100 of each distribution, `differ` called none of our own pairs of samples different;
of the WRONG choosers below it found six in 50 pairs of 50, theta 0.98 in 48 and the hot set's fewer
operations in 49.
"""

import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from java_libraries import compile_peer, fetch_jars
from scipy import stats

from perf.model.records import Ycsb
from perf.releases.java import find_java
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
    make_chooser,
    zeta,
)
from perf.workloads.ycsb import choose_length, choose_record, key_name

pytestmark = pytest.mark.real

Ask = Callable[[str], list[str]]

JARS = ("site.ycsb:core:0.17.0", "org.eclipse.jdt:ecj:3.33.0")
PROGRAM = Path(__file__).parents[2] / "peers" / "YcsbDraws.java"
NUMBERS = (0, 1, 5, 255, 256, 1000, 123_456_789, 2**31, 10**10 - 1, 10**10)
DRAWS = 40_000
LEVEL = 0.001
RECORDS, INSERTED, SHARE = 2000, 300, 0.2
SEED = 7


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Return `ask(question)`: the words of YCSB's answer; see the program."""
    java = find_java((17, 11), report=print).path
    classes = compile_peer(java, PROGRAM, fetch_jars("ycsb-core", JARS))
    command = [java, "-XX:TieredStopAtLevel=1", "-cp", classes, "YcsbDraws"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        questions, answers = process.stdin, process.stdout

        def ask(question: str) -> list[str]:
            questions.write(question + "\n")
            answer = answers.readline().split()
            assert answer, f"YCSB did not answer {question}"
            return answer

        try:
            yield ask
        finally:
            process.kill()


def records(distribution: str, **changes: object) -> Ycsb:
    made = Ycsb(kind="ycsb", record_count=RECORDS, request_distribution=distribution)  # type: ignore[arg-type]
    return replace(made, **changes)  # type: ignore[arg-type]


def settings(distribution: str) -> str:
    """Return the workload of `records` as YCSB's properties."""
    counts = f"recordcount={RECORDS} operationcount={RECORDS} insertproportion={SHARE}"
    return f"requestdistribution={distribution} {counts}"


def choose(chooser: Chooser, seed: int = SEED, known: int = RECORDS + INSERTED) -> list[int]:
    return [choose_record(chooser, seed, 0, number, known) for number in range(DRAWS)]


def differ(ours: Sequence[int], theirs: Sequence[int]) -> bool:
    """Return whether two samples of one size differ at LEVEL, looked at in three ways.

    Chi-square on the counts of the forty values most often drawn by both together, and of forty equal
    parts of the others; chi-square on how often the forty most frequent of each were drawn, whichever
    they are; Kolmogorov and Smirnov on the values, which with so many ties errs towards alike.
    """
    ways = (
        _compare_values(ours, theirs),
        _compare_ranks(ours, theirs),
        float(stats.ks_2samp(ours, theirs, method="asymp").pvalue),
    )
    return min(ways) < LEVEL / len(ways)


def _compare_values(ours: Sequence[int], theirs: Sequence[int]) -> float:
    frequent = [value for value, _ in Counter([*ours, *theirs]).most_common(40)]
    cells = {value: place for place, value in enumerate(frequent)}
    width = (max(*ours, *theirs) + 1) / 40
    counts = np.zeros((2, 80))
    for side, sample in enumerate((ours, theirs)):
        for value in sample:
            counts[side, cells.get(value, 40 + int(value / width))] += 1
    return float(stats.chi2_contingency(counts[:, counts.sum(axis=0) >= 10]).pvalue)


def _compare_ranks(ours: Sequence[int], theirs: Sequence[int]) -> float:
    """Compare the shares of the forty most frequent values of each sample, whichever they are."""
    tops = [sum(count for _, count in Counter(sample).most_common(40)) for sample in (ours, theirs)]
    rests = [len(sample) - top for sample, top in zip((ours, theirs), tops, strict=True)]
    return float(stats.chi2_contingency([tops, rests]).pvalue)


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_are_hashed_as_ycsb_does(ask: Ask, number: int) -> None:
    assert [str(hash_number(number))] == ask(f"hash {number}")


@pytest.mark.parametrize("order", ["hashed", "ordered"])
@pytest.mark.parametrize("padding", [1, 12, 24])
def test_keys_have_the_names_that_ycsb_gives(ask: Ask, order: str, padding: int) -> None:
    shape = records("uniform", insert_order=order, zero_padding=padding)
    for number in NUMBERS:
        assert [key_name(shape, number)] == ask(f"key {order} {padding} {number}")


@pytest.mark.parametrize("items", [10, 1000, 1_000_000])
def test_zeta_is_that_of_ycsb(ask: Ask, items: int) -> None:
    assert zeta(items) == pytest.approx(float(ask(f"constants {items}")[0]), rel=1e-12)


def test_the_scrambled_zipfian_has_the_constants_of_ycsb(ask: Ask) -> None:
    theirs, eta, alpha = map(float, ask("scrambled-constants"))
    assert theirs == SCRAMBLED_ZETA == pytest.approx(zeta(SCRAMBLED_RANKS - 1), rel=1e-11)
    # What its formula makes of a float between the first ranks and the end.
    exact = int(SCRAMBLED_RANKS * (eta * 0.7 - eta + 1) ** alpha)
    assert Zipfian(SCRAMBLED_RANKS, SCRAMBLED_ZETA).rank(0.7) == pytest.approx(exact, rel=1e-9)


def test_a_rank_falls_on_the_record_on_which_it_falls_in_ycsb(ask: Ask) -> None:
    chooser = make_chooser(records("zipfian"), stored=RECORDS, insert_share=SHARE, engine_count=1)
    assert isinstance(chooser, ScrambledZipfian)
    for rank in NUMBERS:
        assert [str(chooser.place(rank))] == ask(f"place {rank} {settings('zipfian')}")


def test_every_rank_is_that_which_ycsb_draws_from_the_same_float(ask: Ask) -> None:
    theirs = [int(one) for one in ask(f"ranks {SEED} 5000 {RECORDS}")]
    ranks = Zipfian(RECORDS, zeta(RECORDS))
    assert [ranks.rank(float(unit)) for unit in ask(f"floats {SEED} 5000")] == theirs


def test_latest_is_that_which_ycsb_draws_from_the_same_float(ask: Ask) -> None:
    theirs = [int(one) for one in ask(f"keys {SEED} 5000 {INSERTED} {settings('latest')}")]
    last, ranks = RECORDS + INSERTED - 1, Zipfian(RECORDS - 1, zeta(RECORDS - 1))
    units = map(float, ask(f"floats {SEED} 5000"))
    assert [last - ranks.rank(unit, last, zeta(last)) for unit in units] == theirs


def test_the_scrambled_zipfian_draws_again_when_ycsb_does(ask: Ask) -> None:
    theirs = [int(one) for one in ask(f"keys {SEED} 5000 {INSERTED} {settings('zipfian')}")]
    chooser = make_chooser(records("zipfian"), stored=RECORDS, insert_share=SHARE, engine_count=1)
    assert isinstance(chooser, ScrambledZipfian)
    units = map(float, ask(f"floats {SEED} 10000"))
    drawn = (chooser.place(chooser.ranks.rank(unit)) for unit in units)
    known = [index for index in drawn if index < RECORDS + INSERTED]
    assert len(known) >= len(theirs)
    assert known[: len(theirs)] == theirs


@pytest.mark.parametrize("distribution", ["hotspot", "latest", "uniform", "zipfian"])
def test_records_are_chosen_as_often_as_by_ycsb(ask: Ask, distribution: str) -> None:
    theirs = [int(one) for one in ask(f"keys {SEED} {DRAWS} {INSERTED} {settings(distribution)}")]
    shape = records(distribution)
    chooser = make_chooser(shape, stored=RECORDS, insert_share=SHARE, engine_count=1)
    assert not differ(choose(chooser), theirs)


def test_scans_are_as_long_as_those_of_ycsb(ask: Ask) -> None:
    theirs = [int(one) for one in ask(f"lengths {SEED} {DRAWS} maxscanlength=100")]
    shape = records("uniform", max_scan_length=100)
    assert not differ([choose_length(shape, SEED, 0, number) for number in range(DRAWS)], theirs)


class _Unscrambled(ScrambledZipfian):
    def place(self, rank: int) -> int:
        return rank % (self.records + self.widened + 1)


_FLATTER = Zipfian(SCRAMBLED_RANKS, zeta(SCRAMBLED_RANKS, 0.98), 0.98)
_WIDENED = int(RECORDS * SHARE * 2)
WRONG: dict[str, tuple[str, Chooser]] = {
    "hotspot, a larger hot set": ("hotspot", Hotspot(RECORDS, 0.22, 0.8)),
    "hotspot, fewer operations in it": ("hotspot", Hotspot(RECORDS, 0.2, 0.78)),
    "latest, of what was there at first": ("latest", Latest(RECORDS + INSERTED)),
    "latest, unskewed": ("latest", Uniform(RECORDS + INSERTED)),
    "uniform, over one part too many": ("uniform", Uniform(RECORDS + INSERTED)),
    "zipfian, no wider than what is stored": ("zipfian", ScrambledZipfian(RECORDS)),
    "zipfian, of theta 0.98": ("zipfian", ScrambledZipfian(RECORDS, _WIDENED, _FLATTER)),
    "zipfian, unscrambled": ("zipfian", _Unscrambled(RECORDS, _WIDENED)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(WRONG))
def test_the_comparison_finds_a_wrong_chooser(ask: Ask, name: str) -> None:
    distribution, chooser = WRONG[name]
    theirs = [int(one) for one in ask(f"keys {SEED} {DRAWS} {INSERTED} {settings(distribution)}")]
    assert differ(choose(chooser), theirs)
