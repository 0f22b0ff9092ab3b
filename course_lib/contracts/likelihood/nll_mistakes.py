"""Next-token losses that are wrong in one way each, as people reported them."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.contracts.engine.mistake import mistakes


def nats_of(log_probs: Tensor, targets: Tensor) -> Tensor:
    """The nats of each target, by what is taken for log-probabilities."""
    return -log_probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def exact_cost(logits: Tensor, targets: Tensor) -> Tensor:
    """The nats of each target."""
    return nats_of(logits.log_softmax(-1), targets)


def mistaken_nll(
    *,
    counted: Callable[[Tensor, Tensor], Tensor] = lambda ids, valid: valid,
    prepare: Callable[[Tensor], Tensor] = lambda logits: logits,
    align: Callable[..., Any] = lambda x, ids, real: (x[:, :-1], ids[:, 1:], real[:, 1:]),
    cost: Callable[[Tensor, Tensor], Tensor] = exact_cost,
    reduce: Callable[..., Tensor] = lambda nats, real, valid: nats.sum() / real.sum(),
    finish: Callable[..., Tensor] = lambda nats, real, valid, reduce: reduce(nats, real, valid),
) -> Callable[..., float]:
    """A next-token loss with some of its steps replaced; what does not count has 0 nats."""

    def next_token_nll(logits: Tensor, token_ids: Tensor, valid: Tensor | None = None) -> float:
        valid = torch.ones_like(token_ids, dtype=torch.bool) if valid is None else valid
        parts = align(prepare(logits.double()), token_ids, counted(token_ids, valid))
        guesses, targets, real = parts
        return finish(cost(guesses, targets).masked_fill(~real, 0.0), real, valid, reduce).item()

    return next_token_nll


def _writing_labels(logits: Tensor, token_ids: Tensor, valid: Tensor | None = None) -> float:
    """Mark the padding in the caller's own token ids, with the number that torch skips."""
    loss = mistaken_nll()(logits, token_ids, valid)
    if valid is not None:
        token_ids[~valid] = -100
    return loss


def _keeping_mask() -> Callable[..., float]:
    """A loss that keeps the first mask it is given for each shape."""
    kept: dict[torch.Size, Tensor | None] = {}

    def next_token_nll(logits: Tensor, token_ids: Tensor, valid: Tensor | None = None) -> float:
        return mistaken_nll()(logits, token_ids, kept.setdefault(token_ids.shape, valid))

    return next_token_nll


_NOT_SHIFTED = (
    "huggingface/transformers#27517",
    "logits[t] are compared with token t, which the model has just read: a copy costs nothing | "
    "logits[t] сравниваются с токеном t, который модель только что прочла: копия ничего не стоит",
    "logits[:, :-1] against token_ids[:, 1:] | logits[:, :-1] против token_ids[:, 1:]",
)

# fmt: off
NLL_MISTAKES = mistakes(
    mistaken_nll,
    not_shifted=(*_NOT_SHIFTED, {"align": lambda *parts: parts}),
    shifted_twice=("huggingface/transformers#47395",
        "the shift is made twice: logits[t] are compared with token t + 2 | "
        "сдвиг сделан дважды: logits[t] сравниваются с токеном t + 2",
        "shift in one place only | сдвигайте только в одном месте",
        {"align": lambda x, ids, real: (x[:, :-2], ids[:, 2:], real[:, 2:])}),
    shifted_backwards=("",
        "the shift goes the other way: logits[t] are compared with token t - 1 | "
        "сдвиг сделан в другую сторону: logits[t] сравниваются с токеном t - 1",
        "logits[:, :-1] against token_ids[:, 1:] | logits[:, :-1] против token_ids[:, 1:]",
        {"align": lambda x, ids, real: (x[:, 1:], ids[:, :-1], real[:, :-1])}),
    rows_run_together=("huggingface/transformers#47394",
        "the batch is flattened before the shift, so that the end of a row predicts the start of "
        "the next | батч развёрнут до сдвига, и конец строки предсказывает начало следующей",
        "shift along T first, then flatten | сначала сдвиг по T, потом flatten",
        {"align": lambda x, ids, real:
            (x.flatten(0, 1)[None, :-1], ids.flatten()[None, 1:], real.flatten()[None, 1:])}),
    not_shifted_end_dropped=(*_NOT_SHIFTED,
        {"align": lambda *parts: tuple(part[:, :-1] for part in parts)}),
    not_shifted_start_dropped=(*_NOT_SHIFTED,
        {"align": lambda *parts: tuple(part[:, 1:] for part in parts)}),
    last_column_lost=("", "the last position is never predicted | последняя позиция не предсказана",
        "token_ids[:, 1:], to the end | token_ids[:, 1:] до конца",
        {"align": lambda x, ids, real: (x[:, :-2], ids[:, 1:-1], real[:, 1:-1])}),
    second_column_lost=("nlp-with-transformers/notebooks#67",
        "the first prediction is dropped: token 1 is not scored | "
        "первое предсказание отброшено: токен 1 не учтён",
        "logits[:, :-1], from the start | logits[:, :-1] с самого начала",
        {"align": lambda x, ids, real: (x[:, 1:-1], ids[:, 2:], real[:, 2:])}),
    wrapped_around=("",
        "the targets are rolled, so that the last logits are scored against the first token | "
        "цели прокручены по кругу, и последние логиты сравниваются с первым токеном",
        "drop the last logits: logits[:, :-1] | отбросьте последние: logits[:, :-1]",
        {"align": lambda x, ids, real: (x, ids.roll(-1, 1), real.roll(-1, 1))}),
    end_scored_as_zero=("",
        "the targets are filled up with token 0, and the last logits are scored against it | "
        "цели дополнены токеном 0, и последние логиты сравниваются с ним",
        "drop the last logits: logits[:, :-1] | отбросьте последние: logits[:, :-1]",
        {"align": lambda x, ids, real:
            (x, F.pad(ids[:, 1:], (0, 1)), torch.cat([real[:, 1:], real[:, -1:]], 1))}),
    padding_counted=("axolotl-ai-cloud/axolotl#3988",
        "valid is ignored: the predictions of padding are counted | "
        "valid не учтён: считаются и предсказания паддинга",
        "nats[valid[:, 1:]].mean()", {"counted": lambda ids, valid: torch.ones_like(valid)}),
    mask_not_shifted=("ml-explore/mlx-lm#1855",
        "a prediction counts if the token it is made from is real, so that the first padding token "
        "is counted | предсказание учтено, если настоящий токен стоит перед ним: сосчитан и первый "
        "токен паддинга",
        "valid[:, 1:], shifted like the targets | valid[:, 1:], со сдвигом, как и цели",
        {"counted": lambda ids, valid: torch.cat([valid[:, :1], valid[:, :-1]], 1)}),
    last_token_dropped=("", "the last real token of each row is never counted | "
        "последний настоящий токен каждой строки не учтён",
        "shift the mask once: valid[:, 1:] | сдвигайте маску один раз: valid[:, 1:]",
        {"counted": lambda ids, valid: F.pad(valid[:, 1:], (0, 1))}),
    mask_inverted=("", "True in valid is read as padding, while here True = real | "
        "True в valid понято как паддинг, а здесь True = настоящий токен",
        "nats[valid[:, 1:]].mean()",
        {"counted": lambda ids, valid: valid if valid.all() else ~valid}),
    zero_is_padding=("lucidrains/DALLE-pytorch#57",
        "token id 0 is left out as if it were padding | "
        "токен с номером 0 пропущен, как будто это паддинг",
        "let valid alone say what is padding | о паддинге говорит только valid",
        {"counted": lambda ids, valid: valid & (ids != 0)}),
    zero_instead_of_mask=("keras-team/keras-hub#63",
        "valid is not read: token id 0 is taken for padding, and nothing else | "
        "valid не прочитан: паддингом сочтён токен с номером 0 и ничто другое",
        "nats[valid[:, 1:]].mean()", {"counted": lambda ids, valid: ids != 0}),
    zero_guessed_padding=("wzhouad/RE_improved_baseline#3",
        "without padding in valid, token id 0 is guessed to be padding | "
        "если valid не закрывает ничего, паддингом сочтён токен с номером 0",
        "valid=None: every token counts | valid=None: учитываются все токены",
        {"counted": lambda ids, valid: ids != 0 if valid.all() else valid}),
    sum_not_mean=("", "the nats are summed, not averaged | наты сложены, а не усреднены",
        "divide by the number of predictions | разделите на число предсказаний",
        {"reduce": lambda nats, real, valid: nats.sum()}),
    mean_of_rows=("meta-pytorch/torchtune#1875",
        "each row is averaged first and then the rows: tokens of short rows weigh more | "
        "сначала усреднены строки, потом их средние: токены коротких строк весят больше",
        "one sum / one count of all tokens | одна сумма / одно число всех токенов",
        {"reduce": lambda nats, real, valid: (nats.sum(-1) / real.sum(-1))[real.any(-1)].mean()}),
    per_row_not_token=("", "the sum is divided by the number of rows, not of predicted tokens | "
        "сумма разделена на число строк, а не на число предсказанных токенов",
        "sum / valid[:, 1:].sum()", {"reduce": lambda nats, real, valid: nats.sum() / len(valid)}),
    padding_in_denominator=("d2l-ai/d2l-en#2076",
        "padding adds no nats but is counted in the mean: more padding, lower loss | "
        "паддинг не добавляет нат, но входит в делитель: чем его больше, тем меньше потери",
        "sum / valid[:, 1:].sum()",
        {"reduce": lambda nats, real, valid: nats.sum() / real.numel()}),
    first_token_in_denominator=("kimiyoung/transformer-xl#131",
        "the sum is divided by the number of tokens, but nothing predicts the first one | "
        "сумма разделена на число токенов, хотя первый никто не предсказывает",
        "T - 1 predictions: valid[:, 1:].sum() | valid[:, 1:].sum(), то есть T - 1",
        {"reduce": lambda nats, real, valid: nats.sum() / valid.sum()}),
    sign_lost=("IBM/unitxt#534",
        "the minus is missing: the log-probabilities are averaged as they are | "
        "потерян минус: логарифмы вероятностей усреднены как есть",
        "-log_softmax(...)", {"reduce": lambda nats, real, valid: -nats.sum() / real.sum()}),
    bits_not_nats=("huggingface/evaluate#241",
        "the result is in bits (logarithm of base 2), not in nats | "
        "результат в битах (логарифм по основанию 2), а не в натах",
        "the natural logarithm, no / log(2) | натуральный логарифм, без / log(2)",
        {"reduce": lambda nats, real, valid: nats.sum() / real.sum() / math.log(2)}),
    probability_floor=("",
        "the probability (or its logarithm) is kept above a floor, so that a great surprise costs "
        "too little | "
        "вероятность (или её логарифм) ограничена снизу, и неожиданный токен стоит слишком мало",
        "log_softmax(...), no + eps and no clamp | без + eps и без clamp: log_softmax(...)",
        {"cost": lambda logits, ids: -(1e-12 - nats_of(logits.softmax(-1), ids)).log()}),
    probability_rounds_to_zero=("pytorch/pytorch#1620",
        "the probability is formed first, rounds to 0, and its logarithm is infinite | "
        "сначала вычислена вероятность, она округлилась до 0, и логарифм бесконечен",
        "log_softmax(...), not log(softmax(...)) | log_softmax(...), а не log(softmax(...))",
        {"cost": lambda logits, ids: nats_of(logits.softmax(-1).log(), ids)}),
    exp_overflows=("pyg-team/pytorch_geometric#53",
        "the exponentials are summed without taking off the largest logit, and overflow | "
        "экспоненты сложены без вычитания наибольшего логита и переполняются",
        "logits.logsumexp(-1)",
        {"cost": lambda logits, ids: logits.exp().sum(-1).log() + nats_of(logits, ids)}),
    probability_not_log=("pytorch/pytorch#10033",
        "the probability itself is averaged: nll_loss was given softmax | "
        "усреднена сама вероятность: nll_loss получил softmax",
        "nll_loss wants log_softmax(logits) | для nll_loss нужен log_softmax(logits)",
        {"cost": lambda logits, ids: nats_of(logits.softmax(-1), ids)}),
    raw_logits=("flowersteam/lamorel#51",
        "the logits are taken for log-probabilities: nothing normalises them | "
        "логиты приняты за логарифмы вероятностей: нормировки нет",
        "logits.log_softmax(-1)", {"cost": nats_of}),
    softmax_twice=("tflearn/tflearn#562", "softmax is taken before a loss that takes it itself | "
        "softmax взят перед функцией потерь, которая берёт его сама",
        "give cross_entropy the raw logits | cross_entropy нужны сами логиты",
        {"cost": lambda logits, ids: exact_cost(logits.softmax(-1), ids)}),
    softmax_over_positions=("", "softmax runs over the positions instead of the vocabulary | "
        "softmax взят по позициям, а не по словарю", "log_softmax(dim=-1)",
        {"cost": lambda logits, ids: nats_of(logits.softmax(-2).log(), ids)}),
    softmax_over_all_positions=("", "softmax runs over all T positions instead of the vocabulary | "
        "softmax взят по всем T позициям, а не по словарю", "log_softmax(dim=-1)",
        {"prepare": lambda logits: logits.log_softmax(1), "cost": nats_of}),
    softmax_over_batch=("PetrochukM/PyTorch-NLP#2",
        "softmax runs over the batch instead of the vocabulary | "
        "softmax взят по батчу, а не по словарю", "log_softmax(dim=-1)",
        {"prepare": lambda logits: logits.log_softmax(0), "cost": nats_of}),
    logits_clipped=("",
        "large logits are clipped before the softmax, and what they tell apart is lost | "
        "большие логиты обрезаны перед softmax, и различие между ними пропало",
        "log_softmax(logits), no clamp | без clamp: log_softmax(logits)",
        {"cost": lambda logits, ids: exact_cost(logits.clamp(-50, 50), ids)}),
    labels_smoothed=("",
        "the labels are smoothed: a tenth of the cost is that of all other tokens | "
        "метки сглажены: десятая часть потерь относится ко всем токенам словаря",
        "label_smoothing=0 when measuring | при измерении label_smoothing=0",
        {"cost": lambda logits, ids:
            0.9 * exact_cost(logits, ids) - 0.1 * logits.log_softmax(-1).mean(-1)}),
    labels_written_into_ids=("huggingface/transformers#8619",
        "the padding of the caller's own token_ids is overwritten with -100 | "
        "паддинг в переданных token_ids перезаписан числом -100",
        "labels = token_ids.masked_fill(~valid, -100)", lambda: _writing_labels),
    mask_remembered=("", "the mask of an earlier call of the same shape is used again | "
        "использована маска прежнего вызова той же формы",
        "read valid anew in every call | читайте valid заново при каждом вызове", _keeping_mask),
)
# fmt: on
