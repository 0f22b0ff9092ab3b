"""The steps of a loss over a text, right and wrong, of which mistaken losses are put together."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor


def _next_token_pairs(*parts: Tensor) -> tuple[Tensor, ...]:
    logits, token_ids, real = parts
    return logits[:, :-1], token_ids[:, 1:], real[:, 1:]


def _rows_run_together(*parts: Tensor) -> tuple[Tensor, ...]:
    logits, token_ids, real = (part.flatten(0, 1).unsqueeze(0) for part in parts)
    return _next_token_pairs(logits, token_ids, real)


def _scored_against_zero(*parts: Tensor) -> tuple[Tensor, ...]:
    logits, token_ids, real = parts
    follows = torch.cat([token_ids[:, 1:], torch.zeros_like(token_ids[:, :1])], dim=1)
    return logits, follows, torch.cat([real[:, 1:], real[:, -1:]], dim=1)


def exact_cost(logits: Tensor, targets: Tensor) -> Tensor:
    """The nats of each target, one step of the right formula."""
    return -logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def _cost_of_probs(
    logits: Tensor, targets: Tensor, nats: Callable[[Tensor], Tensor], axis: int = -1
) -> Tensor:
    return nats(logits.softmax(axis).gather(-1, targets.unsqueeze(-1)).squeeze(-1))


def _cost_unshielded(logits: Tensor, targets: Tensor) -> Tensor:
    chosen = logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return logits.exp().sum(-1).log() - chosen


def _cost_smoothed(logits: Tensor, targets: Tensor) -> Tensor:
    return 0.9 * exact_cost(logits, targets) - 0.1 * logits.log_softmax(-1).mean(-1)


def _cost_unnormalised(logits: Tensor, targets: Tensor) -> Tensor:
    return -logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def _as_if_log_probs(logits: Tensor, axis: int) -> tuple[Tensor, Callable[..., Tensor]]:
    """Logits normalised over a wrong axis, and the cost that takes them for log-probabilities."""
    return logits.log_softmax(axis), _cost_unnormalised


def _moved_mask(ids: Tensor, valid: Tensor, by: int) -> Tensor:
    """The mask one place later (its first entry repeated) or earlier (nothing follows the end)."""
    if by > 0:
        return torch.cat([valid[:, :1], valid[:, :-1]], dim=1)
    return torch.cat([valid[:, 1:], torch.zeros_like(valid[:, :1])], dim=1)


def _total(costs: Tensor, real: Tensor) -> Tensor:
    return costs.masked_fill(~real, 0.0).sum()


def mean_of_tokens(costs: Tensor, real: Tensor, valid: Tensor) -> Tensor:
    """The mean over the tokens that count, one step of the right formula."""
    return _total(costs, real) / real.sum()


def _mean_of_rows(costs: Tensor, real: Tensor, valid: Tensor) -> Tensor:
    sums, counts = costs.masked_fill(~real, 0.0).sum(-1), real.sum(-1)
    return (sums[counts > 0] / counts[counts > 0]).mean()


def costs_and_weights(
    logits: Tensor, token_ids: Tensor, valid: Tensor | None, steps: dict[str, Callable[..., Any]]
) -> tuple[Tensor, Tensor, Tensor]:
    """The nats of each prediction, which of them count, and the whole mask: all but the end."""
    valid = torch.ones_like(token_ids, dtype=torch.bool) if valid is None else valid
    counted = steps.get("counted", lambda ids, real: real)(token_ids, valid)
    align = steps.get("align", _next_token_pairs)
    prepare = steps.get("prepare", lambda wide: (wide, exact_cost))
    wide, cost = prepare(logits.double())
    guesses, targets, real = align(wide, token_ids, counted)
    return steps.get("cost", cost)(guesses, targets), real, valid


_NOT_SHIFTED = (
    "huggingface/transformers#27517",
    "logits[t] are compared with token t, which the model has just read: a copy costs nothing | "
    "logits[t] сравниваются с токеном t, который модель только что прочла: копия ничего не стоит",
    "logits[:, :-1] against token_ids[:, 1:] | logits[:, :-1] против token_ids[:, 1:]",
)

# The ways of getting one step wrong; which of them a loss can make, its own catalogue says.
# fmt: off
STEP_MISTAKES: dict[str, tuple] = {
    "not_shifted": (*_NOT_SHIFTED, {"align": lambda *parts: parts}),
    "shifted_twice": ("huggingface/transformers#47395",
        "the shift is made twice: logits[t] are compared with token t + 2 | "
        "сдвиг сделан дважды: logits[t] сравниваются с токеном t + 2",
        "shift in one place only | сдвигайте только в одном месте",
        {"align": lambda logits, ids, real: (logits[:, :-2], ids[:, 2:], real[:, 2:])}),
    "shifted_backwards": ("",
        "the shift goes the other way: logits[t] are compared with token t - 1 | "
        "сдвиг сделан в другую сторону: logits[t] сравниваются с токеном t - 1",
        "logits[:, :-1] against token_ids[:, 1:] | logits[:, :-1] против token_ids[:, 1:]",
        {"align": lambda logits, ids, real: (logits[:, 1:], ids[:, :-1], real[:, :-1])}),
    "rows_run_together": ("huggingface/transformers#47394",
        "the batch is flattened before the shift, so that the end of a row predicts the start of "
        "the next | батч развёрнут до сдвига, и конец строки предсказывает начало следующей",
        "shift along T first, then flatten | сначала сдвиг по T, потом flatten",
        {"align": _rows_run_together}),
    "not_shifted_end_dropped": (*_NOT_SHIFTED,
        {"align": lambda *parts: tuple(part[:, :-1] for part in parts)}),
    "not_shifted_start_dropped": (*_NOT_SHIFTED,
        {"align": lambda *parts: tuple(part[:, 1:] for part in parts)}),
    "last_column_lost": ("",
        "the last position is never predicted | последняя позиция не предсказана",
        "token_ids[:, 1:], to the end | token_ids[:, 1:] до конца",
        {"align": lambda *parts: tuple(part[:, :-1] for part in _next_token_pairs(*parts))}),
    "second_column_lost": ("nlp-with-transformers/notebooks#67",
        "the first prediction is dropped: token 1 is not scored | "
        "первое предсказание отброшено: токен 1 не учтён",
        "logits[:, :-1], from the start | logits[:, :-1] с самого начала",
        {"align": lambda *parts: tuple(part[:, 1:] for part in _next_token_pairs(*parts))}),
    "wrapped_around": ("",
        "the targets are rolled, so that the last logits are scored against the first token | "
        "цели прокручены по кругу, и последние логиты сравниваются с первым токеном",
        "drop the last logits: logits[:, :-1] | отбросьте последние: logits[:, :-1]",
        {"align": lambda logits, ids, real: (logits, ids.roll(-1, 1), real.roll(-1, 1))}),
    "end_scored_as_zero": ("",
        "the targets are filled up with token 0, and the last logits are scored against it | "
        "цели дополнены токеном 0, и последние логиты сравниваются с ним",
        "drop the last logits: logits[:, :-1] | отбросьте последние: logits[:, :-1]",
        {"align": _scored_against_zero}),
    "padding_counted": ("axolotl-ai-cloud/axolotl#3988",
        "valid is ignored: the predictions of padding are counted | "
        "valid не учтён: считаются и предсказания паддинга",
        "nats[valid[:, 1:]].mean()", {"counted": lambda ids, valid: torch.ones_like(valid)}),
    "mask_not_shifted": ("ml-explore/mlx-lm#1855",
        "a prediction counts if the token it is made from is real, so that the first padding token "
        "is counted | предсказание учтено, если настоящий токен стоит перед ним: сосчитан и первый "
        "токен паддинга",
        "valid[:, 1:], shifted like the targets | valid[:, 1:], со сдвигом, как и цели",
        {"counted": partial(_moved_mask, by=1)}),
    "last_token_dropped": ("",
        "the last real token of each row is never counted | "
        "последний настоящий токен каждой строки не учтён",
        "shift the mask once: valid[:, 1:] | сдвигайте маску один раз: valid[:, 1:]",
        {"counted": partial(_moved_mask, by=-1)}),
    "mask_inverted": ("",
        "True in valid is read as padding, while here True = real | "
        "True в valid понято как паддинг, а здесь True = настоящий токен",
        "nats[valid[:, 1:]].mean()",
        {"counted": lambda ids, valid: valid if valid.all() else ~valid}),
    "zero_is_padding": ("lucidrains/DALLE-pytorch#57",
        "token id 0 is left out as if it were padding | "
        "токен с номером 0 пропущен, как будто это паддинг",
        "let valid alone say what is padding | о паддинге говорит только valid",
        {"counted": lambda ids, valid: valid & (ids != 0)}),
    "zero_instead_of_mask": ("keras-team/keras-hub#63",
        "valid is not read: token id 0 is taken for padding, and nothing else | "
        "valid не прочитан: паддингом сочтён токен с номером 0 и ничто другое",
        "nats[valid[:, 1:]].mean()", {"counted": lambda ids, valid: ids != 0}),
    "zero_guessed_padding": ("wzhouad/RE_improved_baseline#3",
        "without padding in valid, token id 0 is guessed to be padding | "
        "если valid не закрывает ничего, паддингом сочтён токен с номером 0",
        "valid=None: every token counts | valid=None: учитываются все токены",
        {"counted": lambda ids, valid: ids != 0 if valid.all() else valid}),
    "sum_not_mean": ("",
        "the nats are summed, not averaged | наты сложены, а не усреднены",
        "divide by the number of predictions | разделите на число предсказаний",
        {"reduce": lambda costs, real, valid: _total(costs, real)}),
    "mean_of_rows": ("meta-pytorch/torchtune#1875",
        "each row is averaged first and then the rows: tokens of short rows weigh more | "
        "сначала усреднены строки, потом их средние: токены коротких строк весят больше",
        "one sum / one count of all tokens | одна сумма / одно число всех токенов",
        {"reduce": _mean_of_rows}),
    "per_row_not_token": ("",
        "the sum is divided by the number of rows, not of predicted tokens | "
        "сумма разделена на число строк, а не на число предсказанных токенов",
        "sum / valid[:, 1:].sum()",
        {"reduce": lambda costs, real, valid: _total(costs, real) / len(valid)}),
    "padding_in_denominator": ("d2l-ai/d2l-en#2076",
        "padding adds no nats but is counted in the mean: more padding, lower loss | "
        "паддинг не добавляет нат, но входит в делитель: чем его больше, тем меньше потери",
        "sum / valid[:, 1:].sum()",
        {"reduce": lambda costs, real, valid: _total(costs, real) / real.numel()}),
    "first_token_in_denominator": ("kimiyoung/transformer-xl#131",
        "the sum is divided by the number of tokens, but nothing predicts the first one | "
        "сумма разделена на число токенов, хотя первый никто не предсказывает",
        "T - 1 predictions: valid[:, 1:].sum() | valid[:, 1:].sum(), то есть T - 1",
        {"reduce": lambda costs, real, valid: _total(costs, real) / valid.sum()}),
    "sign_lost": ("IBM/unitxt#534",
        "the minus is missing: the log-probabilities are averaged as they are | "
        "потерян минус: логарифмы вероятностей усреднены как есть",
        "-log_softmax(...)", {"reduce": lambda *parts: -mean_of_tokens(*parts)}),
    "bits_not_nats": ("huggingface/evaluate#241",
        "the result is in bits (logarithm of base 2), not in nats | "
        "результат в битах (логарифм по основанию 2), а не в натах",
        "the natural logarithm, no / log(2) | натуральный логарифм, без / log(2)",
        {"reduce": lambda *parts: mean_of_tokens(*parts) / math.log(2)}),
    "probability_floor": ("",
        "the probability (or its logarithm) is kept above a floor, so that a great surprise costs "
        "too little | "
        "вероятность (или её логарифм) ограничена снизу, и неожиданный токен стоит слишком мало",
        "log_softmax(...), no + eps and no clamp | без + eps и без clamp: log_softmax(...)",
        {"cost": partial(_cost_of_probs, nats=lambda probs: -(probs + 1e-12).log())}),
    "probability_rounds_to_zero": ("pytorch/pytorch#1620",
        "the probability is formed first, rounds to 0, and its logarithm is infinite | "
        "сначала вычислена вероятность, она округлилась до 0, и логарифм бесконечен",
        "log_softmax(...), not log(softmax(...)) | log_softmax(...), а не log(softmax(...))",
        {"cost": partial(_cost_of_probs, nats=lambda p: -p.log())}),
    "exp_overflows": ("pyg-team/pytorch_geometric#53",
        "the exponentials are summed without taking off the largest logit, and overflow | "
        "экспоненты сложены без вычитания наибольшего логита и переполняются",
        "logits.logsumexp(-1)", {"cost": _cost_unshielded}),
    "probability_not_log": ("pytorch/pytorch#10033",
        "the probability itself is averaged: nll_loss was given softmax | "
        "усреднена сама вероятность: nll_loss получил softmax",
        "nll_loss wants log_softmax(logits) | для nll_loss нужен log_softmax(logits)",
        {"cost": partial(_cost_of_probs, nats=lambda probs: -probs)}),
    "raw_logits": ("flowersteam/lamorel#51",
        "the logits are taken for log-probabilities: nothing normalises them | "
        "логиты приняты за логарифмы вероятностей: нормировки нет",
        "logits.log_softmax(-1)", {"cost": _cost_unnormalised}),
    "softmax_twice": ("tflearn/tflearn#562",
        "softmax is taken before a loss that takes it itself | "
        "softmax взят перед функцией потерь, которая берёт его сама",
        "give cross_entropy the raw logits | cross_entropy нужны сами логиты",
        {"cost": lambda logits, targets: exact_cost(logits.softmax(-1), targets)}),
    "softmax_over_positions": ("",
        "softmax runs over the positions instead of the vocabulary | "
        "softmax взят по позициям, а не по словарю",
        "log_softmax(dim=-1)",
        {"cost": partial(_cost_of_probs, nats=lambda probs: -probs.log(), axis=-2)}),
    "softmax_over_all_positions": ("",
        "softmax runs over all T positions instead of the vocabulary | "
        "softmax взят по всем T позициям, а не по словарю",
        "log_softmax(dim=-1)", {"prepare": lambda logits: _as_if_log_probs(logits, 1)}),
    "softmax_over_batch": ("PetrochukM/PyTorch-NLP#2",
        "softmax runs over the batch instead of the vocabulary | "
        "softmax взят по батчу, а не по словарю",
        "log_softmax(dim=-1)", {"prepare": lambda logits: _as_if_log_probs(logits, 0)}),
    "logits_clipped": ("",
        "large logits are clipped before the softmax, and what they tell apart is lost | "
        "большие логиты обрезаны перед softmax, и различие между ними пропало",
        "log_softmax(logits), no clamp | без clamp: log_softmax(logits)",
        {"cost": lambda logits, targets: exact_cost(logits.clamp(-50, 50), targets)}),
    "labels_smoothed": ("",
        "the labels are smoothed: a tenth of the cost is that of all other tokens | "
        "метки сглажены: десятая часть потерь относится ко всем токенам словаря",
        "label_smoothing=0 when measuring | при измерении label_smoothing=0",
        {"cost": _cost_smoothed}),
}
# fmt: on
