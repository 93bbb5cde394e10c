"""Alerts: changes followed from night to night, while new points move, confirm or refute them. Pure."""

from dataclasses import dataclass

from analysis.detection import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A change as one night saw it; it lies from `earliest` to `latest`."""

    index: int
    earliest: int
    latest: int
    rises: bool
    relative_change: float
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One change over all nights, its place as the last night that saw it put it.

    `state` is the strongest that it reached. The other fields are numbers of nights: the first on which
    it was provisional and confirmed, and the one since which it is no longer seen (None while it stands).
    """

    index: int
    earliest: int
    latest: int
    rises: bool
    relative_change: float
    state: State
    provisional_at: int | None
    confirmed_at: int | None
    withdrawn_at: int | None

    @property
    def told_at(self) -> int | None:
        """Give the night on which it reached `state`."""
        return self.confirmed_at if self.state is State.CONFIRMED else self.provisional_at
