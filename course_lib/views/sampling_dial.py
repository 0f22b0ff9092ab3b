"""Turn temperature, top-k and top-p, and see what is left of one distribution."""

from collections.abc import Callable, Mapping, Sequence


def view_sampling_dial(
    distribution: Callable[[float, int | None, float | None], Sequence[float]],
    *,
    token_labels: Sequence[str],
    words: Mapping[str, str],
) -> None:
    """Show the probabilities under the settings chosen, over those of the model itself.

    Args:    distribution: (temperature, top_k, top_p) -> probabilities; None switches a filter off
             token_labels: one a token, in the order of the probabilities; at most 12
             words: temperature, top_k, top_p, off, title (fields kept, total), x_label, before,
             after, removed, alt (temperature, top_k, top_p, kept, total, probs)
    Raises:  ValueError for words that are missing or unknown, or probabilities of another length
    """
    raise NotImplementedError
