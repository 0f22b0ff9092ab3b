"""Step through a generation, and see which keys and values are written, read and stored."""

from collections.abc import Mapping, Sequence


def view_cache_steps(
    token_labels: Sequence[str],
    *,
    prompt_tokens: int,
    memory_per_token: float,
    words: Mapping[str, str],
) -> None:
    """Show the cache after the prefill and each decode step, or what is done without a cache.

    Step 0 reads the prompt. Each later step reads one new token; the last token is never read.

    Args:    token_labels: the prompt, then the new tokens, at most 12 of them; all at most 16
             memory_per_token: of one position's keys and values in all layers, in words["unit"]
             words: step, prefill, decode (field step), cache, with, without, keys, values,
             written, read, unused, title (stored, memory, unit), unit, computed (count),
             alt (step, cache, token, written, read, stored, memory, unit)
    Raises:  ValueError for words that are missing or unknown, or no new token
    """
    raise NotImplementedError
