"""Log-likelihoods of a text that are wrong in one way each, as people reported them."""

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
)


def minus_the_sum(costs: Tensor) -> Tensor:
    """The sum of the log-probabilities, the last step of the right formula."""
    return -costs.sum()


def mistaken_log_likelihood(**steps: Callable[..., Any]) -> Callable[..., float]:
    """A log-likelihood with some of its steps (align, cost, total) replaced."""

    def exact_log_likelihood(logits: Tensor, token_ids: Tensor) -> float:
        costs, _, _ = costs_and_weights(logits[None], token_ids[None], None, steps)
        return float(steps.get("total", minus_the_sum)(costs.flatten()))

    return exact_log_likelihood


def _first_token_too(logits: Tensor, token_ids: Tensor, real: Tensor) -> tuple[Tensor, ...]:
    """All tokens, the first one by logits that know nothing."""
    before = torch.cat([torch.zeros_like(logits[:, :1]), logits[:, :-1]], dim=1)
    return before, token_ids, real


def _first_prediction_lost(logits: Tensor, token_ids: Tensor, real: Tensor) -> tuple[Tensor, ...]:
    return logits[:, 1:-1], token_ids[:, 2:], real[:, 2:]


def _last_prediction_lost(logits: Tensor, token_ids: Tensor, real: Tensor) -> tuple[Tensor, ...]:
    return logits[:, :-2], token_ids[:, 1:-1], real[:, 1:-1]


LOG_LIKELIHOOD_MISTAKES = (
    *likelihood_mistakes(
        mistaken_log_likelihood,
        (
            *("not_shifted", "shifted_twice", "shifted_backwards", "wrapped_around"),
            *("not_shifted_end_dropped", "not_shifted_start_dropped"),
            *("end_scored_as_zero", "probability_floor", "probability_rounds_to_zero"),
            *("exp_overflows", "probability_not_log", "raw_logits", "softmax_twice"),
            *(
                "softmax_over_positions",
                "softmax_over_all_positions",
                "logits_clipped",
                "labels_smoothed",
            ),
        ),
    ),
    Mistake(
        "mean_not_sum",
        "a mutation of right code",
        partial(mistaken_log_likelihood, total=lambda costs: -costs.mean()),
        {
            "en": "the log-probabilities are averaged, while the likelihood of a text is a product",
            "ru": "логарифмы вероятностей усреднены, а правдоподобие текста — произведение",
        },
        {"en": "log_probs.sum()", "ru": "log_probs.sum()"},
    ),
    Mistake(
        "divided_by_length",
        "a mutation of right code",
        partial(mistaken_log_likelihood, total=lambda costs: -costs.sum() / (len(costs) + 1)),
        {
            "en": "the sum is divided by the number of tokens T",
            "ru": "сумма разделена на число токенов T",
        },
        {"en": "log_probs.sum()", "ru": "log_probs.sum()"},
    ),
    Mistake(
        "sign_flipped",
        "a mutation of right code",
        partial(mistaken_log_likelihood, total=lambda costs: costs.sum()),
        {
            "en": "the loss comes back: a log-likelihood is never above 0",
            "ru": "возвращены потери, а логарифмическое правдоподобие не бывает больше 0",
        },
        {"en": "+ log p, no minus", "ru": "+ log p, без минуса"},
    ),
    Mistake(
        "first_token_scored",
        "NVIDIA/FasterTransformer#274",
        partial(mistaken_log_likelihood, align=_first_token_too),
        {
            "en": "the first token is scored too, although nothing predicts it",
            "ru": "учтён и первый токен, хотя его ничто не предсказывает",
        },
        {"en": "sum over t >= 1", "ru": "сумма по t >= 1"},
    ),
    Mistake(
        "second_token_lost",
        "nlp-with-transformers/notebooks#67",
        partial(mistaken_log_likelihood, align=_first_prediction_lost),
        {
            "en": "the first prediction is dropped: token 1 is not scored",
            "ru": "первое предсказание отброшено: токен 1 не учтён",
        },
        {"en": "sum over t >= 1", "ru": "сумма по t >= 1"},
    ),
    Mistake(
        "last_token_lost",
        "a mutation of right code",
        partial(mistaken_log_likelihood, align=_last_prediction_lost),
        {"en": "the last token is not scored", "ru": "последний токен не учтён"},
        {"en": "token_ids[1:], to the end", "ru": "token_ids[1:] до конца"},
    ),
    Mistake(
        "log_of_product",
        "a mutation of right code",
        partial(mistaken_log_likelihood, total=lambda costs: (-costs).exp().prod().log()),
        {
            "en": "the probabilities are multiplied first, and the product rounds to 0",
            "ru": "сначала перемножены вероятности, и произведение округляется до 0",
        },
        {"en": "sum the logarithms", "ru": "складывайте логарифмы"},
    ),
    Mistake(
        "summed_in_float32",
        "a mutation of right code",
        partial(mistaken_log_likelihood, total=lambda costs: -costs.float().sum()),
        {
            "en": "float64 logits are summed in float32: a long text loses its last digits",
            "ru": "логиты float64 сложены в float32: длинный текст теряет последние цифры",
        },
        {"en": "stay in float64 to the end", "ru": "оставайтесь в float64 до конца"},
    ),
    Mistake(
        "in_bits",
        "a mutation of right code",
        partial(mistaken_log_likelihood, total=lambda costs: -costs.sum() / math.log(2)),
        {
            "en": "the logarithm has base 2",
            "ru": "взят логарифм по основанию 2",
        },
        {"en": "the natural logarithm", "ru": "натуральный логарифм"},
    ),
    Mistake(
        "probability_returned",
        "a mutation of right code",
        partial(mistaken_log_likelihood, total=lambda costs: (-costs.sum()).exp()),
        {
            "en": "the likelihood itself comes back, not its logarithm",
            "ru": "возвращено само правдоподобие, а не его логарифм",
        },
        {"en": "no exp at the end", "ru": "без exp в конце"},
    ),
)
