"""Perplexities that are wrong in one way each, as people reported them."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.likelihood._likelihood import likelihood_mistakes
from course_lib.contracts.likelihood.step_mistakes import (
    costs_and_weights,
    mean_of_tokens,
)


def exp_of_mean(costs: Tensor, real: Tensor, valid: Tensor, reduce: Callable[..., Any]) -> Tensor:
    """The exponential of the mean, the last step of the right formula."""
    return reduce(costs, real, valid).exp()


def mistaken_perplexity(**steps: Callable[..., Any]) -> Callable[..., float]:
    """A perplexity with some of its steps (align, counted, cost, reduce, finish) replaced."""

    def perplexity(logits: Tensor, token_ids: Tensor, valid: Tensor | None = None) -> float:
        parts = costs_and_weights(logits, token_ids, valid, steps)
        reduce = steps.get("reduce", mean_of_tokens)
        return float(steps.get("finish", exp_of_mean)(*parts, reduce))

    return perplexity


def _mean_of_row_perplexities(
    costs: Tensor, real: Tensor, valid: Tensor, reduce: Callable[..., Any]
) -> Tensor:
    rows = zip(costs.split(1), real.split(1), valid.split(1), strict=True)
    return torch.stack([reduce(*row).exp() for row in rows if row[1].any()]).mean()


PERPLEXITY_MISTAKES = (
    Mistake(
        "mean_of_token_perplexities",
        "magenta/magenta#239",
        partial(
            mistaken_perplexity,
            finish=lambda costs, real, valid, reduce: reduce(costs.exp(), real, valid),
        ),
        {
            "en": "each token's exp is taken first and then the mean: one surprise outweighs a "
            "whole text",
            "ru": "сначала взята экспонента каждого токена, потом среднее: один неожиданный токен "
            "перевешивает весь текст",
        },
        {"en": "exp(mean(nats))", "ru": "exp(mean(nats))"},
    ),
    Mistake(
        "mean_of_row_perplexities",
        "keras-team/keras-hub#63",
        partial(mistaken_perplexity, finish=_mean_of_row_perplexities),
        {
            "en": "each row gets a perplexity of its own, and these are averaged: the result "
            "depends on the batch",
            "ru": "у каждой строки своя перплексия, и они усреднены: результат зависит от пакета",
        },
        {
            "en": "one mean over all tokens, then exp",
            "ru": "одно среднее по всем токенам, потом exp",
        },
    ),
    Mistake(
        "two_to_the_nats",
        "huggingface/evaluate#241",
        partial(mistaken_perplexity, finish=lambda *parts: 2.0 ** exp_of_mean(*parts).log()),
        {
            "en": "2 is raised to a mean that is in nats, not in bits",
            "ru": "2 возведено в степень среднего, которое в натах, а не в битах",
        },
        {"en": "exp(nats), or 2 ** bits", "ru": "2 ** биты или exp(наты)"},
    ),
    Mistake(
        "exp_to_the_bits",
        "a mutation of right code",
        partial(
            mistaken_perplexity, finish=lambda *parts: exp_of_mean(*parts) ** (1 / math.log(2))
        ),
        {
            "en": "e is raised to a mean that is in bits, not in nats",
            "ru": "e возведено в степень среднего, которое в битах, а не в натах",
        },
        {"en": "exp(nats), or 2 ** bits", "ru": "2 ** биты или exp(наты)"},
    ),
    Mistake(
        "not_exponentiated",
        "IINemo/lm-polygraph#273",
        partial(mistaken_perplexity, finish=lambda *parts: exp_of_mean(*parts).log()),
        {
            "en": "the mean nats come back as they are, without exp",
            "ru": "возвращено само среднее число нат, без exp",
        },
        {"en": "exp(mean(nats))", "ru": "exp(mean(nats))"},
    ),
    Mistake(
        "square_root",
        "SocialComplexityLab/life2vec#8",
        partial(mistaken_perplexity, finish=lambda *parts: exp_of_mean(*parts).log().sqrt()),
        {
            "en": "the square root of the loss is called perplexity",
            "ru": "перплексией назван квадратный корень из потерь",
        },
        {"en": "exp(mean(nats))", "ru": "exp(mean(nats))"},
    ),
    Mistake(
        "capped",
        "a mutation of right code",
        partial(
            mistaken_perplexity,
            finish=lambda *parts: exp_of_mean(*parts).log().clamp(max=20.0).exp(),
        ),
        {
            "en": "the loss is cut off before exp, so that every hopeless model looks the same",
            "ru": "потери обрезаны перед exp, и все безнадёжные модели выглядят одинаково",
        },
        {"en": "exp(mean(nats)), no min()", "ru": "без min: exp(mean(nats))"},
    ),
    Mistake(
        "exp_in_float32",
        "keras-team/keras#2317",
        partial(mistaken_perplexity, finish=lambda *parts: exp_of_mean(*parts).log().float().exp()),
        {
            "en": "exp is taken in float32 and is infinite beyond 88 nats",
            "ru": "exp взята в float32 и бесконечна уже после 88 нат",
        },
        {"en": "math.exp(float(mean))", "ru": "math.exp(float(mean))"},
    ),
    Mistake(
        "product_overflows",
        "a mutation of right code",
        partial(
            mistaken_perplexity,
            finish=lambda costs, real, valid, reduce: costs[real].exp().prod() ** (1 / real.sum()),
        ),
        {
            "en": "the probabilities are multiplied before the root is taken: the product of a "
            "long text is infinite or 0",
            "ru": "вероятности перемножены до извлечения корня: у длинного текста произведение "
            "бесконечно или 0",
        },
        {"en": "exp(mean(nats)): add logarithms", "ru": "exp(mean(nats)): складывайте логарифмы"},
    ),
    *likelihood_mistakes(
        mistaken_perplexity,
        (
            *("not_shifted", "shifted_twice", "shifted_backwards", "rows_run_together"),
            *("not_shifted_end_dropped", "not_shifted_start_dropped"),
            *("last_column_lost", "second_column_lost"),
            *("wrapped_around", "end_scored_as_zero", "padding_counted", "mask_not_shifted"),
            *("last_token_dropped", "mask_inverted", "zero_is_padding", "zero_instead_of_mask"),
            "zero_guessed_padding",
            *("sum_not_mean", "mean_of_rows", "per_row_not_token", "padding_in_denominator"),
            *("first_token_in_denominator", "sign_lost", "probability_floor"),
            *("exp_overflows", "probability_not_log", "raw_logits"),
            *("softmax_twice", "softmax_over_positions", "softmax_over_all_positions"),
            *("softmax_over_batch", "logits_clipped", "labels_smoothed"),
        ),
    ),
)
