"""Models with a cache, right and wrong, that a contract of the learner is held to."""

from functools import partial
from typing import Any

import numpy as np

from course_lib.contracts.cache.mistakes import CACHE_MISTAKES
from course_lib.contracts.cache.tiny_decoder import TinyDecoder
from course_lib.mistakes.panel import Panel


class _CacheFullError(Exception):
    """A refusal that is no ValueError: the contract asks for an exception."""


def _refuse_by_another_name(decoder: TinyDecoder, ids: list[int], *_: Any) -> list[int]:
    if len(ids) > decoder.context_length:
        raise _CacheFullError("no")
    return ids


def _in_single_precision(decoder: TinyDecoder, rows: np.ndarray) -> np.ndarray:
    return rows.astype(np.float32)


CACHE_PANEL = Panel(
    {
        "a model of two layers | модель из двух слоёв": TinyDecoder,
        "one with other weights | модель с другими весами": partial(TinyDecoder, seed=7),
        "with another vocabulary and context | с другим словарём и контекстом":
            partial(TinyDecoder, vocab_size=5, context_length=16),
        "of one layer | из одного слоя": partial(TinyDecoder, n_layers=1),
        "with logits in single precision | с логитами одинарной точности":
            partial(TinyDecoder, finish=_in_single_precision, finish_full=_in_single_precision),
        "with an error class of its own | с собственным классом ошибки":
            partial(TinyDecoder, admit=_refuse_by_another_name, admit_full=_refuse_by_another_name),
    },
    CACHE_MISTAKES,
)  # fmt: skip
score_contract = CACHE_PANEL.score
