"""When each operation should start, as pure functions. Waiting and sending belong to `loops`.

Other arrival patterns (Poisson, steps) belong here too.
"""

from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformArrivals:
    """Operations evenly spaced over all engines together.

    Operation `n` of the whole load starts `n / offered_load` seconds after the first phase begins;
    engine `engine_index` of `engine_count` takes the numbers engine_index + k · engine_count.
    """

    offered_load_ops_per_s: float
    engine_index: int
    engine_count: int

    def intended_start_s(self, number: int) -> float:
        """Give the intended start of operation `number`, in seconds from the first phase's start."""
        return number / self.offered_load_ops_per_s

    def count_before(self, time_s: float) -> int:
        """Count this engine's operations whose intended start lies before `time_s`."""
        shares = (time_s * self.offered_load_ops_per_s - self.engine_index) / self.engine_count
        count = max(0, ceil(shares))
        # The product above may round across an integer; the division in intended_start_s decides.
        while count and self._start_s(count - 1) >= time_s:
            count -= 1
        while self._start_s(count) < time_s:
            count += 1
        return count

    def _start_s(self, place: int) -> float:
        return self.intended_start_s(self.engine_index + place * self.engine_count)
