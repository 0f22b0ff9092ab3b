"""Log-likelihoods of a text that are wrong in one way each, as people reported them."""

import math
from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from course_lib.contracts.engine.mistake import mistakes, remade
from course_lib.contracts.likelihood.nll_mistakes import NLL_MISTAKES, mistaken_nll


def mistaken_log_likelihood(
    *, total: Callable[[Tensor], Tensor] = lambda nats: -nats.sum(), **steps: Callable[..., Any]
) -> Callable[..., float]:
    """A log-likelihood with some of its steps replaced: a loss of one row, but for the last one."""
    loss = mistaken_nll(finish=lambda nats, *rest: total(nats.flatten()), **steps)
    return lambda logits, token_ids: loss(logits[None], token_ids[None])


_SHARED = (
    *("not_shifted", "shifted_twice", "shifted_backwards", "wrapped_around"),
    *("not_shifted_end_dropped", "not_shifted_start_dropped", "end_scored_as_zero"),
    *("probability_floor", "probability_rounds_to_zero", "exp_overflows", "probability_not_log"),
    *("raw_logits", "softmax_twice", "softmax_over_positions", "softmax_over_all_positions"),
    *("logits_clipped", "labels_smoothed"),
)

# fmt: off
LOG_LIKELIHOOD_MISTAKES = remade(
    mistaken_log_likelihood, map({each.name: each for each in NLL_MISTAKES}.__getitem__, _SHARED)
) + mistakes(
    mistaken_log_likelihood,
    mean_not_sum=("",
        "the log-probabilities are averaged, while the likelihood of a text is a product | "
        "логарифмы вероятностей усреднены, а правдоподобие текста — произведение",
        "log_probs.sum()", {"total": lambda nats: -nats.mean()}),
    divided_by_length=("",
        "the sum is divided by the number of tokens T | сумма разделена на число токенов T",
        "log_probs.sum()", {"total": lambda nats: -nats.sum() / (len(nats) + 1)}),
    sign_flipped=("", "the loss comes back: a log-likelihood is never above 0 | "
        "возвращены потери, а логарифмическое правдоподобие не бывает больше 0",
        "+ log p, no minus | + log p, без минуса", {"total": lambda nats: nats.sum()}),
    first_token_scored=("NVIDIA/FasterTransformer#274",
        "the first token is scored too, although nothing predicts it | "
        "учтён и первый токен, хотя его ничто не предсказывает",
        "sum over t >= 1 | сумма по t >= 1",
        {"align": lambda x, ids, real: (F.pad(x[:, :-1], (0, 0, 1, 0)), ids, real)}),
    second_token_lost=("nlp-with-transformers/notebooks#67",
        "the first prediction is dropped: token 1 is not scored | "
        "первое предсказание отброшено: токен 1 не учтён", "sum over t >= 1 | сумма по t >= 1",
        {"align": lambda x, ids, real: (x[:, 1:-1], ids[:, 2:], real[:, 2:])}),
    last_token_lost=("", "the last token is not scored | последний токен не учтён",
        "token_ids[1:], to the end | token_ids[1:] до конца",
        {"align": lambda x, ids, real: (x[:, :-2], ids[:, 1:-1], real[:, 1:-1])}),
    log_of_product=("", "the probabilities are multiplied first, and the product rounds to 0 | "
        "сначала перемножены вероятности, и произведение округляется до 0",
        "sum the logarithms | складывайте логарифмы",
        {"total": lambda nats: (-nats).exp().prod().log()}),
    summed_in_float32=("",
        "float64 logits are summed in float32: a long text loses its last digits | "
        "логиты float64 сложены в float32: длинный текст теряет последние цифры",
        "stay in float64 to the end | оставайтесь в float64 до конца",
        {"total": lambda nats: -nats.float().sum()}),
    in_bits=("", "the logarithm has base 2 | взят логарифм по основанию 2",
        "the natural logarithm | натуральный логарифм",
        {"total": lambda nats: -nats.sum() / math.log(2)}),
    probability_returned=("", "the likelihood itself comes back, not its logarithm | "
        "возвращено само правдоподобие, а не его логарифм", "no exp at the end | без exp в конце",
        {"total": lambda nats: (-nats.sum()).exp()}),
)
# fmt: on
