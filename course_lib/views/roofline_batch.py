"""Slide the batch along the roofline, and see what binds a decode step: memory or arithmetic."""

from collections.abc import Callable, Mapping, Sequence


def view_roofline_batch(
    work: Callable[[int, int], tuple[float, float]],
    *,
    bandwidth: float,
    peak: float,
    batches: Sequence[int],
    lengths: Sequence[int],
    words: Mapping[str, str],
) -> None:
    """Show where a decode step of this batch lands, and where the other batches do.

    Args:    work: (batch, length) -> (FLOP, bytes) of one step, one new token for each text;
             length: the positions that each new token reads
             bandwidth, peak: of the machine, in GB/s and GFLOP/s
             batches, lengths: what the controls offer, the first of each shown first; at most 24
             words: batch, length, title, x_label, y_label, roof, balance, others, now, by_memory,
             by_arithmetic, verdict (fields bound, rate, tokens),
             alt (batch, length, intensity, rate, peak, bound, tokens)
    Raises:  ValueError for words that are missing or unknown, or an amount that is not above 0
    """
    raise NotImplementedError
