"""Next-token losses that are wrong in one way each, as people reported them."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.likelihood._likelihood import likelihood_mistakes, mistaken_nll


def nll_writing_labels(logits: Tensor, token_ids: Tensor, valid: Tensor | None = None) -> float:
    """Mark the padding in the caller's own token ids, with the number that the library skips."""
    if valid is not None:
        token_ids[~valid] = -100
    guesses, targets = logits[:, :-1].double(), token_ids[:, 1:]
    return F.cross_entropy(guesses.flatten(0, 1), targets.flatten(), ignore_index=-100).item()


def _nll_keeping_mask() -> Callable[..., float]:
    """A loss that keeps the first mask it is given for each shape."""
    kept = {}

    def next_token_nll(logits: Tensor, token_ids: Tensor, valid: Tensor | None = None) -> float:
        mask = kept.setdefault(token_ids.shape, valid)
        return mistaken_nll()(logits, token_ids, mask)

    return next_token_nll


NLL_MISTAKES = (
    *likelihood_mistakes(
        mistaken_nll,
        (
            *("not_shifted", "shifted_twice", "shifted_backwards", "rows_run_together"),
            *("not_shifted_end_dropped", "not_shifted_start_dropped"),
            *("last_column_lost", "second_column_lost"),
            *("wrapped_around", "end_scored_as_zero", "padding_counted", "mask_not_shifted"),
            *("last_token_dropped", "mask_inverted", "zero_is_padding", "zero_instead_of_mask"),
            "zero_guessed_padding",
            *("sum_not_mean", "mean_of_rows", "per_row_not_token", "padding_in_denominator"),
            *("first_token_in_denominator", "sign_lost", "bits_not_nats", "probability_floor"),
            *("probability_rounds_to_zero", "exp_overflows", "probability_not_log", "raw_logits"),
            *("softmax_twice", "softmax_over_positions", "softmax_over_all_positions"),
            *("softmax_over_batch", "logits_clipped", "labels_smoothed"),
        ),
    ),
    Mistake(
        "labels_written_into_ids",
        "huggingface/transformers#8619",
        lambda: nll_writing_labels,
        {
            "en": "the padding of the caller's own token_ids is overwritten with -100",
            "ru": "дополнение в переданных token_ids перезаписано числом -100",
        },
        {
            "en": "labels = token_ids.masked_fill(~valid, -100)",
            "ru": "labels = token_ids.masked_fill(~valid, -100)",
        },
    ),
    Mistake(
        "mask_remembered",
        "a mutation of right code",
        _nll_keeping_mask,
        {
            "en": "the mask of an earlier call of the same shape is used again",
            "ru": "использована маска прежнего вызова той же формы",
        },
        {"en": "read valid anew in every call", "ru": "читайте valid заново при каждом вызове"},
    ),
)
