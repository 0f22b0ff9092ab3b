"""The roofline: work waits for memory or for arithmetic, whichever takes longer."""

import math
import numbers
from dataclasses import dataclass


@dataclass(frozen=True)
class Roofline:
    """A machine as two numbers.

    Args:    bandwidth: of reading memory, in GB/s; peak: of arithmetic, in GFLOP/s
    Raises:  ValueError for a number that is not above 0 and finite
    Source:  Williams, Waterman and Patterson 2009
    """

    bandwidth: float
    peak: float

    def __post_init__(self) -> None:
        _check_amounts(bandwidth=self.bandwidth, peak=self.peak)

    @property
    def balance(self) -> float:
        """Return the intensity, in FLOP/byte, at which reading and arithmetic take equally long."""
        return self.peak / self.bandwidth

    def attainable(self, intensity: float) -> float:
        """Return the GFLOP/s that work of this intensity (FLOP/byte) can reach.

        min(peak, intensity · bandwidth)
        """
        _check_amounts(intensity=intensity)
        return min(self.peak, intensity * self.bandwidth)

    def least_seconds(self, flops: float, moved_bytes: float) -> float:
        """Return the seconds that work takes at least: the longer of arithmetic and reading."""
        _check_amounts(flops=flops, moved_bytes=moved_bytes)
        return max(flops / self.peak, moved_bytes / self.bandwidth) / 1e9


def balance_batch(
    machine: Roofline, row_flops: float, weight_bytes: float, row_cache_bytes: float = 0.0
) -> float:
    """Return the batch from which a decode step is no longer bound by memory.

        B · row_flops / peak = (weight_bytes + B · row_cache_bytes) / bandwidth

    Every text of the batch brings its own operations and its own cache to read; the weights are
    read once for all. If a text's cache takes longer than its arithmetic, no batch suffices: inf.

    Args:    row_flops, row_cache_bytes: of one text in one step
    """
    _check_amounts(row_flops=row_flops, weight_bytes=weight_bytes)
    if row_cache_bytes != 0:
        _check_amounts(row_cache_bytes=row_cache_bytes)
    spare = row_flops / machine.peak - row_cache_bytes / machine.bandwidth  # time of a text
    return weight_bytes / machine.bandwidth / spare if spare > 0 else math.inf


def _check_amounts(**amounts: float) -> None:
    for name, amount in amounts.items():
        if not isinstance(amount, numbers.Real) or isinstance(amount, bool):
            raise TypeError(f"{name} must be a number, got {type(amount).__name__}")
        if not (amount > 0 and math.isfinite(amount)):
            raise ValueError(f"{name} must be above 0 and finite, got {amount}")
