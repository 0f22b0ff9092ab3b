"""Sinusoidal encodings that turn their pairs of columns at wrong rates."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.mistake import Mistake


def mistaken_encoding(
    *,
    count: Callable[[Tensor], Tensor] = lambda positions: positions,
    scale: Callable[[float], float] = lambda base: base,
    default: float = 10_000.0,
    rate: Callable[[Tensor, int, float], Any] = lambda i, d, base: base ** -(2 * i / d),
    turn: Callable[[Tensor, Tensor], Tensor] = lambda positions, rate: positions * rate,
    weave: Callable[[Tensor, Tensor], Tensor] = lambda s, c: torch.stack((s, c), -1).flatten(1),
) -> Callable[..., Tensor]:
    """A sinusoidal encoding with one of its steps replaced; `rate` may give one rate or two."""

    def sinusoidal_encoding(length: int, d_model: int, *, base: float = default) -> Tensor:
        positions = count(torch.arange(length, dtype=torch.float64)).double().unsqueeze(-1)
        pair = torch.arange(d_model // 2, dtype=torch.float64)
        rates = rate(pair, d_model, scale(base))
        sine_rate, cosine_rate = rates if isinstance(rates, tuple) else (rates, rates)
        return weave(turn(positions, sine_rate).sin(), turn(positions, cosine_rate).cos())

    return sinusoidal_encoding


POSITION_RATE_MISTAKES = (
    Mistake(
        "exponent_by_column",
        "jadore801120/attention-is-all-you-need-pytorch#32",
        partial(
            mistaken_encoding,
            rate=lambda i, d, base: (base ** -(4 * i / d), base ** -((4 * i + 2) / d)),
        ),
        {
            "en": "the exponent counts columns, 2 · column / d_model, instead of pairs",
            "ru": "показатель считает столбцы, 2 · столбец / d_model, а не пары",
        },
        {
            "en": "base ** (2 * (column // 2) / d_model)",
            "ru": "base ** (2 * (column // 2) / d_model)",
        },
    ),
    Mistake(
        "cosine_exponent_shifted",
        "luhengshiwo/LLMForEverybody#106",
        partial(
            mistaken_encoding,
            rate=lambda i, d, base: (base ** -(2 * i / d), base ** -((2 * i + 1) / d)),
        ),
        {
            "en": "the cosine has its own exponent (2i + 1) / d_model, so pairs do not turn as one",
            "ru": "у косинуса свой показатель (2i + 1) / d_model, и пара не вращается как целое",
        },
        {
            "en": "one angle for both: sin(p * rate), cos(p * rate)",
            "ru": "угол на пару один: sin(p * rate), cos(p * rate)",
        },
    ),
    Mistake(
        "cosine_of_next_pair",
        "YutaroOgawa/pytorch_advanced#79",
        partial(
            mistaken_encoding,
            rate=lambda i, d, base: (base ** -(2 * i / d), base ** -(2 * (i + 1) / d)),
        ),
        {
            "en": "the cosine takes the exponent of the next pair, 2(i + 1) / d_model",
            "ru": "косинус берёт показатель следующей пары, 2(i + 1) / d_model",
        },
        {"en": "2 * i / d_model for both", "ru": "2 * i / d_model для обоих"},
    ),
    Mistake(
        "exponent_doubled",
        "a mutation of right code",
        partial(mistaken_encoding, rate=lambda i, d, base: base ** -(4 * i / d)),
        {
            "en": "the factor 2 is applied to an index that already goes in steps of 2",
            "ru": "множитель 2 применён к индексу, который и так идёт с шагом 2",
        },
        {
            "en": "arange(0, d_model, 2) / d_model, without another 2",
            "ru": "arange(0, d_model, 2) / d_model, без ещё одной двойки",
        },
    ),
    Mistake(
        "exponent_halved",
        "a mutation of right code",
        partial(mistaken_encoding, rate=lambda i, d, base: base ** -(i / d)),
        {
            "en": "the exponent is i / d_model: the slow half of the rates is never reached",
            "ru": "показатель i / d_model: до медленной половины частот дело не доходит",
        },
        {"en": "2 * i / d_model", "ru": "2 * i / d_model"},
    ),
    Mistake(
        "exponent_to_the_end",
        "hojonathanho/diffusion#15",
        partial(mistaken_encoding, rate=lambda i, d, base: base ** -(i / max(d / 2 - 1, 1))),
        {
            "en": "the exponent is i / (d_model/2 - 1), as in tensor2tensor, not as in the paper",
            "ru": "показатель i / (d_model/2 - 1), как в tensor2tensor, а не как в статье",
        },
        {"en": "i / (d_model / 2)", "ru": "i / (d_model / 2)"},
    ),
    Mistake(
        "exponent_over_d_minus_one",
        "a mutation of right code",
        partial(mistaken_encoding, rate=lambda i, d, base: base ** -(2 * i / (d - 1))),
        {
            "en": "the exponent is divided by d_model - 1",
            "ru": "показатель делится на d_model - 1",
        },
        {"en": "2 * i / d_model", "ru": "2 * i / d_model"},
    ),
    Mistake(
        "exponent_floored",
        "Kyubyong/transformer#81",
        partial(mistaken_encoding, rate=lambda i, d, base: base ** -(2 * i // d)),
        {
            "en": "whole-number division makes every exponent 0: all pairs turn alike",
            "ru": "деление нацело обнуляет все показатели: все пары вращаются одинаково",
        },
        {"en": "2 * i / d_model, not //", "ru": "2 * i / d_model, а не //"},
    ),
    Mistake(
        "log_step_floored",
        "zju3dv/LoFTR#41",
        partial(
            mistaken_encoding,
            rate=lambda i, d, base: torch.exp(2 * i * (-math.log(base) / d // 1)),
        ),
        {
            "en": "the step of the logarithm, -log(base) / d_model, is rounded down by //",
            "ru": "шаг логарифма, -log(base) / d_model, округлён вниз операцией //",
        },
        {
            "en": "exp(arange(0, d_model, 2) * (-log(base) / d_model))",
            "ru": "exp(arange(0, d_model, 2) * (-log(base) / d_model))",
        },
    ),
    Mistake(
        "log_of_another_base",
        "a mutation of right code",
        partial(
            mistaken_encoding, rate=lambda i, d, base: torch.exp(-math.log10(base) * 2 * i / d)
        ),
        {
            "en": "exp takes a decimal logarithm: base ** x is exp(x * ln(base))",
            "ru": "в exp стоит десятичный логарифм, а base ** x — это exp(x * ln(base))",
        },
        {"en": "math.log(base)", "ru": "math.log(base)"},
    ),
    Mistake(
        "rate_inverted",
        "hkproj/pytorch-transformer#2",
        partial(mistaken_encoding, rate=lambda i, d, base: base ** (2 * i / d)),
        {
            "en": "positions are multiplied by base ** (2i/d_model): later pairs turn wildly",
            "ru": "позиции умножаются на base ** (2i/d_model): дальние пары вертятся как попало",
        },
        {
            "en": "position / base ** (2 * i / d_model)",
            "ru": "position / base ** (2 * i / d_model)",
        },
    ),
    Mistake(
        "power_upside_down",
        "ivanvovk/WaveGrad#12",
        partial(mistaken_encoding, rate=lambda i, d, base: (2 * i / d) ** (1 / base)),
        {
            "en": "the index is raised to the power 1/base, not 1/base to the power of the index",
            "ru": "индекс возводится в степень 1/base, а не 1/base в степень индекса",
        },
        {"en": "(1 / base) ** (2 * i / d_model)", "ru": "(1 / base) ** (2 * i / d_model)"},
    ),
    Mistake(
        "no_power_at_all",
        "a mutation of right code",
        partial(mistaken_encoding, rate=lambda i, d, base: 1 / (base * 2 * i / d)),
        {
            "en": "base is multiplied by the exponent instead of raised to it: 0 divides pair 0",
            "ru": "base умножается на показатель, а не возводится в него: пара 0 делится на 0",
        },
        {"en": "base ** (2 * i / d_model)", "ru": "base ** (2 * i / d_model)"},
    ),
    Mistake(
        "default_base_1000",
        "maxjcohen/transformer#62",
        partial(mistaken_encoding, default=1000.0),
        {"en": "the default base is 1000", "ru": "base по умолчанию равен 1000"},
        {"en": "base=10_000.0", "ru": "base=10_000.0"},
    ),
    Mistake(
        "base_ignored",
        "a mutation of right code",
        partial(mistaken_encoding, scale=lambda base: 10_000.0),
        {"en": "base is ignored: always 10000", "ru": "base не учтён: всегда 10000"},
        {
            "en": "base ** (2 * i / d_model), not a number written out",
            "ru": "base ** (2 * i / d_model), а не число в коде",
        },
    ),
    Mistake(
        "base_always_1000",
        "maxjcohen/transformer#62",
        partial(mistaken_encoding, scale=lambda base: 1000.0),
        {"en": "base is ignored: always 1000", "ru": "base не учтён: всегда 1000"},
        {"en": "base ** (2 * i / d_model)", "ru": "base ** (2 * i / d_model)"},
    ),
    Mistake(
        "rates_in_half",
        "vllm-project/vllm#54620",
        partial(mistaken_encoding, rate=lambda i, d, base: (base ** -(2 * i / d)).half()),
        {
            "en": "the rates are rounded to float16, and the error grows with the position",
            "ru": "частоты округлены до float16, и ошибка растёт с позицией",
        },
        {
            "en": "compute angles in float64, cast last",
            "ru": "углы — в float64, приведение в конце",
        },
    ),
)
