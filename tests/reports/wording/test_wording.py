"""Every rounding and phrase that pages use, at its edges."""

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest

from perf.model.metrics import DIAGNOSTICS, METRICS, Metric
from perf.model.results import TrialStatus
from reports.wording import wording
from reports.wording.measures import ends_words

NBSP = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.001234, "0.00123"),
        (0.5, "0.500"),
        (4.368, "4.37"),
        (9.999, "10.00"),
        (43.68, "43.7"),
        (436.8, "437"),
        (999.4, "999"),
        (999.6, "1,000"),
        (1234.5, "1,234"),
        (-2.5, "−2.50"),
        (math.nan, "not a number"),
        (math.inf, "not a number"),
    ],
)
def test_numbers_keep_three_significant_digits(value: float, text: str) -> None:
    assert wording.number(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.1234, f"+12.3{NBSP}%"),
        (-0.1234, f"−12.3{NBSP}%"),
        (0.0004, f"±0.0{NBSP}%"),
        (-0.0004, f"±0.0{NBSP}%"),
        (12.5, f"+1,250.0{NBSP}%"),
        (math.inf, "from zero"),
    ],
)
def test_relative_changes_have_a_sign_and_one_decimal(share: float, text: str) -> None:
    assert wording.percent(share) == text


def test_nothing_falls_by_more_than_all_of_it() -> None:
    assert ends_words(-1.44, 0.293) == f"−100.0{NBSP}% to +29.3{NBSP}%"
    assert ends_words(-math.inf, math.inf) == f"−100.0{NBSP}% to no bound"


def test_quantities_carry_the_unit_of_their_metric() -> None:
    assert wording.quantity(4181.3, "throughput") == f"4,181{NBSP}ops/s"
    assert wording.quantity(7.931, "response_time") == f"7.93{NBSP}ms"
    assert wording.quantity(7.931, "from_the_future") == "7.93"
    assert wording.quantity(163.44, "client_cpu") == f"163{NBSP}µs/op"
    assert wording.quantity(3.042, "write_amplification") == f"3.04{NBSP}bytes/byte"
    assert wording.quantity(0.0421, "gc_pause") == f"0.0421{NBSP}ms/s"
    assert wording.quantity(0, "pending_compactions") == f"0{NBSP}tasks"
    assert wording.quantity(81_230.4, "canary_memory") == f"81,230{NBSP}MB/s"


@pytest.mark.parametrize("metric", [*METRICS.values(), *DIAGNOSTICS.values()], ids=lambda m: m.name)
def test_each_metric_has_words_a_unit_a_direction_and_a_definition(metric: Metric) -> None:
    assert "_" not in wording.metric_name(metric.name)
    assert wording.unit_words(metric.name) == metric.unit
    assert wording.direction_words(metric.name) == f"{metric.better} is better"
    assert wording.definition_words(metric.name) == metric.description


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(0), "0 seconds"),
        (timedelta(seconds=1), "1 second"),
        (timedelta(seconds=119), "119 seconds"),
        (timedelta(minutes=119), "119 minutes"),
        (timedelta(hours=47, minutes=59), "47 hours"),
        (timedelta(days=3, hours=23), "3 days"),
        (timedelta(seconds=-5), "0 seconds"),
    ],
)
def test_durations_use_the_largest_unit_that_fits_twice(length: timedelta, text: str) -> None:
    assert wording.duration(length) == text


def test_moments_are_in_utc() -> None:
    berlin = datetime(2026, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=1)))
    expected = wording.Moment(
        iso="2026-03-01T00:30:00+00:00", text="2026-03-01 00:30 UTC", day="2026-03-01"
    )
    assert wording.moment(berlin) == expected
    assert wording.moment(datetime(2026, 3, 1, 0, 30, tzinfo=UTC)) == expected


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("node 2 did not start. Its log: …", "node 2 did not start."),
        ("release 5.0.4 cannot be had", "release 5.0.4 cannot be had"),
        ("one line\nand another", "one line"),
        ("  ", "no reason was recorded"),
    ],
)
def test_the_first_sentence_of_a_reason_stands_for_it(text: str, first: str) -> None:
    assert wording.first_sentence(text) == first


def test_percentages_of_recorded_reasons_are_written_as_all_others() -> None:
    said = wording.first_sentence("used 47.6%; the limit is 25 %, see a%20b. More.")
    assert said == "used 47.6\N{NO-BREAK SPACE}%; the limit is 25\N{NO-BREAK SPACE}%, see a%20b."
    assert wording.sentence("all of 100 % (5%)") == (
        "All of 100\N{NO-BREAK SPACE}% (5\N{NO-BREAK SPACE}%)."
    )


def test_series_are_named_in_the_words_of_the_glossary() -> None:
    assert wording.metric_words("response_time", "p99.9") == "p99.9 response time"
    assert wording.metric_words("throughput", "mean") == "throughput"
    assert wording.metric_words("service_time", "mean") == "mean service time"
    assert wording.metric_words("send_lateness", "mean") == "mean send lateness"
    assert wording.metric_words("server_cpu", "mean") == "server CPU"
    assert wording.metric_words("compaction_debt", "last") == "compaction debt"
    assert wording.metric_words("highest_load", "estimate") == "highest load"
    assert wording.metric_words("highest_load", "lower") == "lower bound of highest load"
    assert wording.metric_words("from_the_future", "mean") == "mean from_the_future"
    assert wording.phase_words("canary-before") == "before the trial"
    assert wording.phase_words("steady") == "at steady load"
    assert wording.phase_words("burst") == "in phase burst"
    assert wording.direction_words("service_time") == "lower is better"
    assert wording.heading("throughput of write") == "Throughput of write"
    assert wording.heading("p99 response time") == "p99 response time"


def test_counts_sizes_and_spreads_agree_with_their_nouns() -> None:
    assert wording.count(1, "trial") == "1 trial"
    assert wording.count(1200, "trial") == "1,200 trials"
    assert wording.size(1) == "1 byte"
    assert wording.size(2345) == "2.3 kB"
    assert wording.size(2_345_000) == "2.3 MB"
    assert wording.share(0.4761) == f"47.6{NBSP}%"
    assert wording.spread(()) == "–"
    assert wording.spread((5.0,)) == "1 iteration"
    assert wording.spread((5.0, 4.0)) == "4.00 to 5.00 in 2 iterations"


def test_the_caveat_of_an_unknown_testbed_is_doubt_not_silence() -> None:
    caveats = {"local": "Shared cores.", "rack": ""}
    assert wording.caveat_words("local", caveats) == "Shared cores."
    assert wording.caveat_words("rack", caveats) == ""
    assert "compare these numbers only with themselves" in wording.caveat_words("gone", caveats)


def test_no_state_is_reported_by_colour_alone() -> None:
    for badges in (
        wording.OUTCOME_BADGES,
        wording.STATUS_BADGES,
        wording.STATE_BADGES,
        wording.STEP_BADGES,
    ):
        words = [(badge.symbol, badge.word) for badge in badges.values()]
        assert all(symbol and word for symbol, word in words)
        assert len(set(words)) == len(words)
    assert set(wording.STATUS_BADGES) == set(TrialStatus)


@pytest.mark.parametrize(
    ("night", "name"),
    [
        ("2026-11-21-14", "21 Nov 2026 #14"),
        ("2026-03-01-rack-2-1", "1 Mar 2026 rack-2 #1"),
        ("2026-13-01-1", "2026-13-01-1"),
        ("by hand", "by hand"),
    ],
)
def test_a_night_is_named_by_its_day(night: str, name: str) -> None:
    assert wording.night_name(night).replace(NBSP, " ") == name
    assert " " not in wording.night_name(night) or name == night
