"""The YCSB core workload: records of some fields of text under the keys that YCSB would give them.

Source: YCSB core 0.17.0, site.ycsb.workloads.CoreWorkload. Key number n is called "user" and then n
itself or its hash, padded with zeros. A field is `field_length` ASCII characters.

What differs is what stands in a field. YCSB fills it with random characters that nobody can verify, or
(dataintegrity) with one value for ever. Here a field says by itself which of its versions it is, in its
first four characters; the others are a function of seed, key, field and version: a slice of a pool that
SHAKE-128 (FIPS 202) draws from the seed, from where SplitMix64 points. So whoever reads a field of any
record knows whether a client of such a trial may have written it there, without knowing which update
was the last. A corrupted or foreign field is taken for genuine once in four million; one that is out of
date is genuine. Records are inserted as version 0; operation number n writes version n + 1, modulo 2²⁴.

The characters are those of base64, 6 bits each; YCSB's have 5 to 6½. To make or to judge a record of
1 KB takes about 10 µs.
"""

import base64
import hashlib
import re
import threading
from collections.abc import Sequence
from functools import lru_cache

from perf.model.records import Answer, Values, Ycsb
from perf.workloads.keys import Chooser, hash_number
from perf.workloads.splitmix import GAMMA, MASK, mix, stream, word

INSERTED = 0
"""The version of all fields of a new record."""

_PREFIX = "user"
_KEY = re.compile(r"user([0-9]+)", re.ASCII)
_VERSION_BYTES = 4
_VERSIONS: int = 64**_VERSION_BYTES
# Slices of a pool of this size rarely overlap within one compression block of a database.
_PLACES = 4 << 20
_PLACE_SHIFT = 64 - 22
_DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_PAIRS = tuple(bytes((high, low)) for high in _DIGITS for low in _DIGITS)

# Counters of different purposes never meet; each run of engines has its own of each.
_FIELD_STREAM = 40
_CHOICE_STREAM, _CHANGED_STREAM, _LENGTH_STREAM, _STREAMS_PER_RUN = 41, 42, 43, 3


def key_name(records: Ycsb, number: int) -> str:
    """Return the key of record number `number`, as CoreWorkload.buildKeyName does."""
    shown = number if records.insert_order == "ordered" else hash_number(number)
    return f"{_PREFIX}{shown:0{records.zero_padding}d}"


def make_record(records: Ycsb, seed: int, key: str, version: int = INSERTED) -> list[bytes]:
    """Compute the values of all fields of a version of a record."""
    head, rest = _write_version(version), records.field_length - _VERSION_BYTES
    state, pool, shown = _record_state(seed, key), _pool(seed, rest), int.from_bytes(head, "big")
    begins = [_find_rest(state, field, shown) for field in range(records.field_count)]
    return [head + pool[begin : begin + rest] for begin in begins]


def make_field(records: Ycsb, seed: int, key: str, field: int, version: int) -> bytes:
    """Compute the value of one field, by number, in a version."""
    head, rest = _write_version(version), records.field_length - _VERSION_BYTES
    begin = _find_rest(_record_state(seed, key), field, int.from_bytes(head, "big"))
    return head + _pool(seed, rest)[begin : begin + rest]


def updated_version(number: int) -> int:
    """Return the version that operation `number` writes: never that of a new record, until it wraps."""
    return number + 1


def check_record(records: Ycsb, seed: int, key: str, values: Values | None) -> Answer:
    """Judge the values that were read under a key.

    NOT_FOUND: there is no record. WRONG_DATA: fields are missing or too many, or one has another length
    or contents than any version of it.
    """
    if values is None:
        return Answer.NOT_FOUND
    if len(values) != records.field_count:
        return Answer.WRONG_DATA
    length, rest = records.field_length, records.field_length - _VERSION_BYTES
    state, pool = _record_state(seed, key), _pool(seed, rest)
    for field, value in enumerate(values):
        begin = _find_rest(state, field, int.from_bytes(value[:_VERSION_BYTES], "big"))
        if len(value) != length or value[_VERSION_BYTES:] != pool[begin : begin + rest]:
            return Answer.WRONG_DATA
    return Answer.COMPLETED


def check_scan(
    records: Ycsb, seed: int, first_key: str, count: int, answer: Sequence[tuple[str, Values]]
) -> Answer:
    """Judge the records that a scan gave from a key on.

    NOT_FOUND: the first key is not there. WRONG_DATA: it is not the first of them; more than `count`;
    a key twice, or of a form that this workload never gives; a record that `check_record` finds wrong.
    Which keys follow is the system's own order, and fewer than `count` are all there are at its end;
    see `Ends` for whether it can have been there.
    """
    keys = [key for key, _ in answer]
    if first_key not in keys:
        return Answer.NOT_FOUND
    if keys[0] != first_key or len(keys) > count or len(set(keys)) < len(keys):
        return Answer.WRONG_DATA
    for key, values in answer:
        if not _is_key(records, key):
            return Answer.WRONG_DATA
        if check_record(records, seed, key, values) is not Answer.COMPLETED:
            return Answer.WRONG_DATA
    return Answer.COMPLETED


class Ends:
    """Which scans gave fewer records than they asked for: at the end of the order, few can.

    In whatever order, one record at most has none after it, two have one at most, and so on; and
    inserts only add to those after a record. So of the records that are there all the time, at most n
    begin a scan that ends after n records or earlier. Several scans from one record count once. Which
    of the contradicting scans lacked records is not known; the last is reported.
    """

    def __init__(self) -> None:
        """Begin without any."""
        self._least: dict[str, int] = {}
        self._lock = threading.Lock()

    def can_be(self, first_key: str, came: int) -> bool:
        """Return whether a scan from a record that was always there can have ended after `came`."""
        with self._lock:
            before = self._least.get(first_key, came)
            least = {**self._least, first_key: min(before, came)}
            if any(ends < place for place, ends in enumerate(sorted(least.values()), start=1)):
                return False
            self._least = least
            return True


def choose_record(chooser: Chooser, seed: int, run: int, number: int, known: int) -> int:
    """Choose the record that operation `number` of a run of engines is about; see `Chooser`."""
    return chooser.choose(_stream(seed, run, _CHOICE_STREAM), number, known)


def choose_field(records: Ycsb, seed: int, run: int, number: int) -> int:
    """Choose the field that operation `number` changes; uniform."""
    return word(_stream(seed, run, _CHANGED_STREAM), number) * records.field_count >> 64


def choose_length(records: Ycsb, seed: int, run: int, number: int) -> int:
    """Choose how many records scan `number` asks for; uniform from 1 on."""
    return 1 + (word(_stream(seed, run, _LENGTH_STREAM), number) * records.max_scan_length >> 64)


def _is_key(records: Ycsb, key: str) -> bool:
    digits = _KEY.fullmatch(key)
    return digits is not None and key == f"{_PREFIX}{int(digits[1]):0{records.zero_padding}d}"


def _write_version(version: int) -> bytes:
    high, low = divmod(version % _VERSIONS, len(_PAIRS))
    return _PAIRS[high] + _PAIRS[low]


def _record_state(seed: int, key: str) -> int:
    # The number in the key, and not the record's own, which nobody can tell from its hash.
    return mix((stream(seed, _FIELD_STREAM) + int(key[len(_PREFIX) :]) * GAMMA) & MASK)


def _find_rest(state: int, field: int, shown: int) -> int:
    """Return where in the pool the rest of a field begins; `shown` are the bytes of its version."""
    return mix(state ^ (field << 8 * _VERSION_BYTES | shown)) >> _PLACE_SHIFT


def _stream(seed: int, run: int, purpose: int) -> int:
    return stream(seed, purpose + run * _STREAMS_PER_RUN)


@lru_cache(maxsize=2)
def _pool(seed: int, rest: int) -> bytes:
    drawn = hashlib.shake_128(b"knickpoint ycsb fields %d" % seed).digest(_PLACES // 4 * 3)
    pool: bytes = base64.b64encode(drawn)
    return pool + pool[:rest]  # so that a slice may begin anywhere
