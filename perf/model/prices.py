"""Where prices come from: what hosts cost is told with its source and its day, or not believed."""

from dataclasses import dataclass
from datetime import date

from perf.model.scalars import STRICT, Text


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSource:
    """Where the prices of a testbed's hosts come from, and on which day they held."""

    __pydantic_config__ = STRICT
    date: date
    source: Text

    @property
    def text(self) -> str:
        """Write it as a fact of a trial."""
        return f"{self.date.isoformat()}, {self.source}"
