"""What is known of the hosts of a testbed: each fact of the newest trial, and since when it is so."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from perf.history.observed import ALWAYS_NEW
from perf.model.facts import FOLLOW_THE_RELEASE
from perf.model.results import Move, Trial, TrialHead, TrialId

_VERSION = "version:"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFact:
    """A fact of a host, what it was before, and the first trial with it; None where it never moved.

    Where its last move led to another value, this one `is_of_another`: since when it is so is not
    known. Of what `follows_release` the trials of one kind are reported. `changes` counts its moves.
    """

    host: str
    name: str
    value: str
    before: str
    first: TrialHead | None
    is_of_another: bool
    follows_release: bool
    changes: int

    @property
    def has_changed(self) -> bool:
        """Return whether it is known ever to have been another."""
        return bool(self.changes)


def list_kind(newest: Trial, heads: Mapping[TrialId, TrialHead]) -> tuple[TrialId, ...]:
    """Return the trials of the experiment, config and release line of a trial, in their order."""
    kind = _kind(newest)
    return tuple(one for one, head in heads.items() if _kind(head) == kind)


def _kind(trial: Trial | TrialHead) -> tuple[str, str, str]:
    return trial.experiment, trial.config.name, trial.release.line


def join_moves(
    of_all: Iterable[Move],
    order: Sequence[TrialId],
    of_kind: Iterable[Move],
    kind: Sequence[TrialId],
) -> tuple[Move, ...]:
    """Return what moved in all trials of a testbed, of some facts only what moved in those of a kind.

    Releases that take turns bring their own Java and their own tuning: from one trial to the next it is
    another, and yet it never changed. `kind` is part of `order`; places are those in `order`.
    """
    places = {trial: place for place, trial in enumerate(order)}
    return (
        *(one for one in of_all if not _follows_release(one.name)),
        *(replace(one, place=places[kind[one.place]]) for one in of_kind if _follows_release(one.name)),
    )


def _follows_release(name: str) -> bool:
    """Return whether a fact, or a move of it, is one that each release brings along."""
    return name.startswith(_VERSION) or name.partition(" of ")[0] in FOLLOW_THE_RELEASE


def list_facts(
    newest: Trial | None,
    moves: Iterable[Move],
    order: Sequence[TrialId],
    heads: Mapping[TrialId, TrialHead],
) -> list[HostFact]:
    """Return the facts of the newest trial, those that changed last first.

    `moves` are what changed from one trial to the next, by place in `order`, the trials of the testbed
    by start. What differs in each trial by its nature is left out.
    """
    by_name: dict[str, list[Move]] = {}
    for one in sorted(moves, key=lambda move: move.place):
        by_name.setdefault(one.name, []).append(one)
    found = []
    for fact in newest.environment_before if newest else ():
        if fact.name in ALWAYS_NEW:
            continue
        own = by_name.get(f"{fact.name} of {fact.host}" if fact.host else fact.name, [])
        # Another trial may have read it since, as another system's: then this is not its last change.
        move = own[-1] if own and own[-1].after == fact.value else None
        row = HostFact(
            host=fact.host,
            name=fact.name.removeprefix(_VERSION),
            value=fact.value,
            before=move.before if move else "",
            first=heads[order[move.place]] if move else None,
            is_of_another=bool(own) and move is None,
            follows_release=_follows_release(fact.name),
            changes=len(own),
        )
        found.append((-move.place if move else 1, row))
    return [row for _, row in sorted(found, key=lambda item: item[0])]
