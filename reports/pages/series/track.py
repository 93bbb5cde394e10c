"""Tracks: what the series of one experiment on one release line share: its trials, in order.

Trials that did not complete and planned ones without a result are part of it, so that a chart can show
where a point should be. What else changed from one trial to the next is marked.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import TypeAlias

from analysis.judging.drift import is_canary
from analysis.judging.explanations import Explanation
from analysis.judging.judgement import JudgedSeries
from analysis.orchestration.setting_words import (
    NO_SETTINGS,
    ChangedSettings,
    setting_name,
    setting_values,
)
from perf.model.nights import Night
from perf.model.results import Move, Purpose, SeriesKey, TrialHead, TrialId, TrialStatus
from reports.wording import links
from reports.wording.wording import (
    MISSING_BADGE,
    NOTHING,
    STATUS_BADGES,
    Badge,
    first_sentence,
    heading,
    night_name,
    phase_words,
    series_words,
)

TrackKey: TypeAlias = tuple[str, str, str, str, str, str, str]
"""System, line, topology, testbed class, config, workload and load engine."""
_OF_A_LINE = (Purpose.SCHEDULED, Purpose.IMPORTED, Purpose.SENTINEL)
_FEWEST_MOVES = 3
_FLICKERING_SHARE = 0.1
"""What differs more often than this from one trial to the next explains nothing and hides the rest."""
_MOST_SETTINGS = 5
"""Of one change in a list of what moved; the page of its incident has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A place on the axis of a track: a trial that was measured, or one that was planned.

    `why` says why there is no point, with `badge`; both are empty where the trial completed.
    """

    trial: TrialId
    release: str
    ordinal: int
    night: str
    started_at: datetime
    is_imported: bool = False
    badge: Badge | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """The trials of one experiment on one line by release and then time; its series, canaries last."""

    key: TrackKey
    slots: tuple[Slot, ...]
    series: tuple[SeriesKey, ...]

    @property
    def stem(self) -> str:
        """Return the name of its data."""
        return links.track_stem(self.key)

    @property
    def in_time(self) -> tuple[Slot, ...]:
        """Return its trials in the order of time."""
        return tuple(sorted(self.slots, key=attrgetter("started_at", "trial")))


def track_of(key: SeriesKey) -> TrackKey:
    """Return the key of the track that a series is on."""
    return (
        *(key.system, key.line, key.topology, key.testbed_class),
        *(key.config, key.workload, key.engine),
    )


def find_tracks(
    judged: Iterable[JudgedSeries], heads: Mapping[TrialId, TrialHead], nights: Sequence[Night]
) -> Mapping[TrackKey, Track]:
    """Return all tracks of a history by key."""
    series: defaultdict[TrackKey, list[SeriesKey]] = defaultdict(list)
    trials: defaultdict[TrackKey, set[TrialId]] = defaultdict(set)
    for one in judged:
        key = track_of(one.series.key)
        series[key].append(one.series.key)
        trials[key].update(one.series.points.trials)
    homes: dict[tuple[str, str], TrialHead] = {}
    for head in heads.values():
        homes[head.experiment, head.release.version] = head
        if head.status is not TrialStatus.COMPLETED and head.purpose in _OF_A_LINE:
            trials[_track_of_head(head)].add(head.id)
    missing: defaultdict[TrackKey, list[Slot]] = defaultdict(list)
    for key, slot in _find_missing(nights, heads, homes):
        missing[key].append(slot)
    return {
        key: Track(
            key=key,
            slots=tuple(
                sorted((*(_slot(heads[trial]) for trial in trials[key]), *missing[key]), key=_position)
            ),
            series=tuple(sorted(keys, key=lambda one: (is_canary(one), one))),
        )
        for key, keys in series.items()
    }


def _find_missing(
    nights: Sequence[Night],
    heads: Mapping[TrialId, TrialHead],
    homes: Mapping[tuple[str, str], TrialHead],
) -> Iterable[tuple[TrackKey, Slot]]:
    """Yield planned trials without a result, on the track of others of their experiment and release."""
    for night in nights:
        for planned in night.trials:
            home = homes.get((planned.experiment, planned.version))
            if TrialId(planned.id) in heads or home is None:
                continue
            yield (
                _track_of_head(home),
                Slot(
                    trial=TrialId(planned.id),
                    release=planned.version,
                    ordinal=home.release.ordinal,
                    night=night.id,
                    started_at=night.started_at,
                    badge=MISSING_BADGE,
                    why="planned, and no result is there",
                ),
            )


def _track_of_head(head: TrialHead) -> TrackKey:
    # A sentinel's line is its release: see analysis.judging.drift.
    is_sentinel = head.purpose is Purpose.SENTINEL
    return (
        head.release.system,
        head.release.version if is_sentinel else head.release.line,
        *(head.topology.name, head.testbed_class, head.config.name),
        f"{head.workload.name}@{head.workload.sha256}",
        head.engine,
    )


def _slot(head: TrialHead) -> Slot:
    is_usable = head.status is TrialStatus.COMPLETED
    return Slot(
        trial=head.id,
        release=head.release.version,
        ordinal=head.release.ordinal,
        night=head.night,
        started_at=head.started_at,
        is_imported=head.purpose is Purpose.IMPORTED,
        badge=None if is_usable else STATUS_BADGES[head.status],
        why=""
        if is_usable
        else "; ".join(first_sentence(reason.text).rstrip(".") for reason in head.reasons),
    )


_position = attrgetter("ordinal", "started_at", "trial")
"""The sort key of a slot on the axis of its track."""


def track_data(
    track: Track,
    moves: Sequence[Move],
    moves_in_time: Sequence[Move],
    settings: ChangedSettings = NO_SETTINGS,
    old_trials: Collection[TrialId] = (),
) -> dict[str, object]:
    """Return a track as columns: what all charts of its series share.

    `moves` are from slot to slot, `moves_in_time` from trial to trial in the order of time; `settings`
    are those behind moves whose hashes would say nothing; `old_trials` are trials without a page.
    """
    slots = track.slots
    releases = list(dict.fromkeys(slot.release for slot in slots))
    nights = sorted({slot.night for slot in slots})
    release_at = {name: place for place, name in enumerate(releases)}
    night_at = {name: place for place, name in enumerate(nights)}
    place_of = {slot.trial: place for place, slot in enumerate(slots)}
    in_time = track.in_time
    return {
        "line": track.key[1],
        "releases": releases,
        "nights": nights,
        "nightNames": [*map(night_name, nights)],
        "trial": [slot.trial for slot in slots],
        "release": [release_at[slot.release] for slot in slots],
        "night": [night_at[slot.night] for slot in slots],
        "started": [round(slot.started_at.timestamp()) for slot in slots],
        "imported": [place for place, slot in enumerate(slots) if slot.is_imported],
        "unusable": [
            [place, slot.badge.kind, slot.badge.symbol, slot.badge.word, slot.why]
            for place, slot in enumerate(slots)
            if slot.badge
        ],
        "pages": _unusual_pages(slots),
        "whole": _list_whole_nights(slots, old_trials, night_at),
        "moves": _view_moves(moves, slots, [*range(len(slots))], settings),
        "movesInTime": _view_moves(
            moves_in_time, in_time, [place_of[slot.trial] for slot in in_time], settings
        ),
        "series": [
            [heading(series_words(key)), links.series_stem(key), heading(phase_words(key.phase))]
            for key in track.series
        ],
    }


def _unusual_pages(slots: Sequence[Slot]) -> dict[int, str]:
    """Return the pages of trials whose ids are no file names, and none of trials that never were."""
    pages = (
        (place, slot, "" if slot.badge is MISSING_BADGE else links.trial_page(slot.trial))
        for place, slot in enumerate(slots)
    )
    return {place: page for place, slot, page in pages if page != f"trials/{slot.trial}.html"}


def _list_whole_nights(
    slots: Sequence[Slot], old_trials: Collection[TrialId], night_at: Mapping[str, int]
) -> list[int] | None:
    """Return the nights whose trials have pages of their own, few of many; None where all have."""
    old = {slot.night for slot in slots if slot.trial in old_trials}
    return sorted(place for night, place in night_at.items() if night not in old) if old else None


def _view_moves(
    moves: Sequence[Move], order: Sequence[Slot], places: Sequence[int], settings: ChangedSettings
) -> list[tuple[int, str, str, str]]:
    """Give place, name, before and after of what moved; `places` are the slots of the trials in order.

    The artifact of another release is what is being measured, so it is left out; so is what flickers.
    """
    often = Counter(move.name for move in moves)
    limit = max(_FEWEST_MOVES, _FLICKERING_SHARE * len(order))
    return [
        (places[move.place], name, before or NOTHING, after or NOTHING)
        for move in moves
        for name, before, after in _name_move(move, settings)
        if often[move.name] <= limit
        and (move.name != "artifact" or order[move.place - 1].release == order[move.place].release)
    ]


def _name_move(move: Move, settings: ChangedSettings) -> Iterator[tuple[str, str, str]]:
    """Yield what moved with both values: a configuration by its settings where they are known."""
    moved = Explanation(name=move.name, before=move.before, after=move.after)
    knobs = settings.get(moved, ())
    if not knobs:
        yield move.name, move.before, move.after
    for knob in knobs[:_MOST_SETTINGS]:
        yield f"{move.name}, {setting_name(knob)}", *setting_values(knob)
