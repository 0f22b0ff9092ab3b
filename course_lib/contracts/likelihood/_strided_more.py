"""Losses of a long text that are right up to their last step, or count the end of it twice."""

import math
from functools import partial

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.likelihood._strided_steps import mean_of_all, mistaken_strided_nll

STRIDED_END_MISTAKES = (
    Mistake(
        "stride_tokens_of_the_last_too",
        "a mutation of right code",
        partial(
            mistaken_strided_nll,
            fresh=lambda nats, begin, done, stride: nats[-stride:] if begin else nats,
        ),
        {
            "en": "every later window counts its last stride tokens, though the last one may bring "
            "fewer new ones",
            "ru": "каждое следующее окно считает последние stride токенов, хотя в последнем новых "
            "может быть меньше",
        },
        {"en": "count the tokens after the last end", "ru": "считайте только новые токены"},
    ),
    Mistake(
        "perplexity_not_nats",
        "a mutation of right code",
        partial(
            mistaken_strided_nll, reduce=lambda parts, length: mean_of_all(parts, length).exp()
        ),
        {
            "en": "the exponential of the mean comes back: a perplexity, not nats",
            "ru": "возвращена экспонента среднего, то есть перплексия, а не наты",
        },
        {"en": "the mean itself, no exp", "ru": "само среднее, без exp"},
    ),
    Mistake(
        "strided_in_bits",
        "a mutation of right code",
        partial(
            mistaken_strided_nll,
            reduce=lambda parts, length: mean_of_all(parts, length) / math.log(2),
        ),
        {
            "en": "the result is in bits (logarithm of base 2), not in nats",
            "ru": "результат в битах (логарифм по основанию 2), а не в натах",
        },
        {"en": "no / log(2)", "ru": "без / log(2)"},
    ),
)
