"""Perplexities that are wrong in one way each, as people reported them."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.mistake import mistakes, remade
from course_lib.contracts.likelihood.nll_mistakes import NLL_MISTAKES, mistaken_nll


def exp_of_mean(nats: Tensor, real: Tensor, valid: Tensor, reduce: Callable[..., Any]) -> Tensor:
    """The exponential of the mean, the last step of the right formula."""
    return reduce(nats, real, valid).exp()


def mistaken_perplexity(
    *, finish: Callable[..., Tensor] = exp_of_mean, **steps: Callable[..., Any]
) -> Callable[..., float]:
    """A perplexity with some of its steps replaced: a loss, but for the last one."""
    return mistaken_nll(finish=finish, **steps)


def _mean_of_row_perplexities(
    nats: Tensor, real: Tensor, valid: Tensor, reduce: Callable[..., Any]
) -> Tensor:
    rows = zip(nats.split(1), real.split(1), valid.split(1), strict=True)
    return torch.stack([reduce(*row).exp() for row in rows if row[1].any()]).mean()


# fmt: off
PERPLEXITY_MISTAKES = mistakes(
    mistaken_perplexity,
    mean_of_token_perplexities=("magenta/magenta#239",
        "each token's exp is taken first and then the mean: one surprise outweighs a whole text | "
        "сначала взята экспонента каждого токена, потом среднее: один неожиданный токен "
        "перевешивает весь текст", "exp(mean(nats))",
        {"finish": lambda nats, real, valid, reduce: reduce(nats.exp() * real, real, valid)}),
    mean_of_row_perplexities=("keras-team/keras-hub#63",
        "each row gets a perplexity of its own, and these are averaged: the result depends on the "
        "batch | у каждой строки своя перплексия, и они усреднены: результат зависит от батча",
        "one mean over all tokens, then exp | одно среднее по всем токенам, потом exp",
        {"finish": _mean_of_row_perplexities}),
    two_to_the_nats=("huggingface/evaluate#241",
        "2 is raised to a mean that is in nats, not in bits | "
        "2 возведено в степень среднего, которое в натах, а не в битах",
        "exp(nats), or 2 ** bits | 2 ** биты или exp(наты)",
        {"finish": lambda *parts: 2.0 ** exp_of_mean(*parts).log()}),
    exp_to_the_bits=("", "e is raised to a mean that is in bits, not in nats | "
        "e возведено в степень среднего, которое в битах, а не в натах",
        "exp(nats), or 2 ** bits | 2 ** биты или exp(наты)",
        {"finish": lambda *parts: exp_of_mean(*parts) ** (1 / math.log(2))}),
    not_exponentiated=("IINemo/lm-polygraph#273",
        "the mean nats come back as they are, without exp | "
        "возвращено само среднее число нат, без exp",
        "exp(mean(nats))", {"finish": lambda *parts: exp_of_mean(*parts).log()}),
    square_root=("SocialComplexityLab/life2vec#8",
        "the square root of the loss is called perplexity | "
        "перплексией назван квадратный корень из потерь",
        "exp(mean(nats))", {"finish": lambda *parts: exp_of_mean(*parts).log().sqrt()}),
    capped=("", "the loss is cut off before exp, so that every hopeless model looks the same | "
        "потери обрезаны перед exp, и все безнадёжные модели выглядят одинаково",
        "exp(mean(nats)), no min() | без min: exp(mean(nats))",
        {"finish": lambda *parts: exp_of_mean(*parts).log().clamp(max=20.0).exp()}),
    exp_in_float32=("keras-team/keras#2317",
        "exp is taken in float32 and is infinite beyond 88 nats | "
        "exp взята в float32 и бесконечна уже после 88 нат", "math.exp(float(mean))",
        {"finish": lambda *parts: exp_of_mean(*parts).log().float().exp()}),
    product_overflows=("",
        "the probabilities are multiplied before the root is taken: the product of a long text is "
        "infinite or 0 | "
        "вероятности перемножены до извлечения корня: у длинного текста произведение бесконечно "
        "или 0", "exp(mean(nats)): add logarithms | exp(mean(nats)): складывайте логарифмы",
        {"finish": lambda nats, real, valid, reduce: nats[real].exp().prod() ** (1 / real.sum())}),
) + remade(
    mistaken_perplexity,
    (each for each in NLL_MISTAKES
     if each.name not in ("bits_not_nats", "probability_rounds_to_zero")),
)
# fmt: on
