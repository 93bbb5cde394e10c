"""The parts of which the method's page is made."""

from dataclasses import dataclass

from reports.wording.wording import Badge


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A word and what it means; `badge` is how pages show it. `id` is what others link to, if they do.

    `note` is what belongs to it beside its meaning, such as a unit.
    """

    text: str
    id: str = ""
    name: str = ""
    note: str = ""
    badge: Badge | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading that other pages link to by its `id`, and what is said under it, in this order."""

    id: str
    title: str
    text: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    terms: tuple[Term, ...] = ()
    after: tuple[str, ...] = ()
