"""Next-token losses that are wrong in one way each, as people reported them."""

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from course_lib.contracts.engine.mistake import mistakes
from course_lib.contracts.likelihood.step_mistakes import (
    STEP_MISTAKES,
    costs_and_weights,
    mean_of_tokens,
)


def mistaken_nll(**steps: Callable[..., Any]) -> Callable[..., float]:
    """A next-token loss with some of its steps (align, counted, cost, reduce) replaced."""

    def next_token_nll(logits: Tensor, token_ids: Tensor, valid: Tensor | None = None) -> float:
        reduce = steps.get("reduce", mean_of_tokens)
        return reduce(*costs_and_weights(logits, token_ids, valid, steps)).item()

    return next_token_nll


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


# fmt: off
NLL_MISTAKES = mistakes(
    mistaken_nll,
    **STEP_MISTAKES,
    labels_written_into_ids=("huggingface/transformers#8619",
        "the padding of the caller's own token_ids is overwritten with -100 | "
        "паддинг в переданных token_ids перезаписан числом -100",
        "labels = token_ids.masked_fill(~valid, -100)", lambda: nll_writing_labels),
    mask_remembered=("",
        "the mask of an earlier call of the same shape is used again | "
        "использована маска прежнего вызова той же формы",
        "read valid anew in every call | читайте valid заново при каждом вызове",
        _nll_keeping_mask),
)
# fmt: on
