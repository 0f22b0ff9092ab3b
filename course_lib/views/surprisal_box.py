"""Type a sentence, and see which of its words surprise a model."""

from collections.abc import Callable, Mapping, Sequence


def view_surprisal_box(
    score: Callable[[str], tuple[Sequence[str], Sequence[float]]],
    unknown: Callable[[str], Mapping[str, Sequence[str]]],
    *,
    sentences: Sequence[str],
    words: Mapping[str, str],
) -> None:
    """Show the surprisal of every token; live, of any sentence that the reader types.

    Args:    score: sentence -> (its tokens, their surprisals), in the unit of words["y_label"];
             a token that cannot come has infinity
             unknown: sentence -> {word that the model does not know: known words like it};
             `unknown_words` makes such a dict
             sentences: to choose from, the first is shown first; at most 24
             words: sentence, examples, title (fields total, mean, count), y_label,
             alt (sentence, dearest, cost, costs, total, mean), and what is said of a sentence that
             cannot be scored: unknown (words), near (word, near), blank, long (count, most)
    Raises:  ValueError for words that are missing or unknown, or given sentences not understood
    """
    raise NotImplementedError
