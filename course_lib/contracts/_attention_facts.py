"""What a wrong attention proves about itself: measured facts, in the reader's language."""

import math

from torch import Tensor

from course_lib.contracts._attention_case import AttentionCase
from course_lib.text import localized

ATTENTION_FACTS = {
    "no_field": {
        "en": "the result is a {came} and has no .{name}",
        "ru": "результат имеет тип {came}, поля .{name} у него нет",
    },
    "not_tensor": {
        "en": ".{name} is a {came}, not a torch.Tensor",
        "ru": ".{name} имеет тип {came}, а нужен torch.Tensor",
    },
    "shape": {
        "en": ".{name} has shape {came}; the arguments call for {wanted}",
        "ru": "у .{name} форма {came}; по аргументам нужна {wanted}",
    },
    "dtype": {
        "en": ".{name} is {came}, but the inputs are {given}: it must be {wanted}",
        "ru": ".{name} имеет тип {came} при входах {given}: нужен {wanted}",
    },
    "float_or_wider": {"en": "{given} or wider", "ru": "{given} или шире"},
    "not_finite": {
        "en": ".{name} holds {count} numbers that are NaN or infinite, although q, k and v are "
        "finite",
        "ru": "в .{name} есть NaN или бесконечности ({count} шт.), хотя q, k и v конечны",
    },
    "scores_ratio": {
        "en": "every score is {ratio:.4g} times the right one (d_k = {d_k}, √d_k = {root:.4g})",
        "ru": "каждая оценка в {ratio:.4g} раза больше верной (d_k = {d_k}, √d_k = {root:.4g})",
    },
    "scores_fill": {
        "en": "a masked score is {fill:.6g} and must be -inf",
        "ru": "закрытая оценка равна {fill:.6g}, а должна быть -inf",
    },
    "column_sums": {
        "en": "the weights of each key (column) sum to 1, those of each query (row) do not",
        "ru": "веса каждого ключа (столбец) дают в сумме 1, а веса каждого запроса (строка) — нет",
    },
    "total_sum": {
        "en": "all the weights of a matrix together sum to 1, those of each query do not",
        "ru": "все веса матрицы вместе дают в сумме 1, а веса каждого запроса — нет",
    },
    "equal_sums": {
        "en": "the weights of every query sum to {total:.4g} (1/√d_k = {scale:.4g})",
        "ru": "веса каждого запроса дают в сумме {total:.4g} (1/√d_k = {scale:.4g})",
    },
    "hidden_weight": {
        "en": "{count} of {hidden} hidden keys have a weight; the largest is {most:.4g}",
        "ru": "вес есть у {count} закрытых ключей из {hidden}; наибольший равен {most:.4g}",
    },
    "other_weights": {
        "en": ".output is right, so the reported weights are not those that made it",
        "ru": ".output верен, значит показаны не те веса, из которых он получен",
    },
    "mixing": {
        "en": ".weights are right, so the mistake is in mixing the values: weights @ v differs "
        "from .output",
        "ru": ".weights верны, значит ошибка в смешивании значений: weights @ v не равно .output",
    },
    "changed": {
        "en": "the call changed its argument {name}: work on a copy",
        "ru": "вызов изменил свой аргумент {name}: работайте с копией",
    },
    "detached": {
        "en": ".output is cut off from q, k and v: no gradient can reach them (detach, no_grad, "
        ".data, .item() or a computation outside torch)",
        "ru": ".output отрезан от q, k и v: градиент до них не доходит (detach, no_grad, .data, "
        ".item() или вычисление вне torch)",
    },
    "no_gradient": {
        "en": "no gradient reaches {names}: on the way to the output they are detached",
        "ru": "градиент не доходит до {names}: на пути к выходу они отсоединены (detach)",
    },
}


def attention_facts(
    name: str, case: AttentionCase, fields: dict[str, Tensor], tolerance: float
) -> str:
    """What the other fields of the same call prove about a field that is wrong."""
    truth = case.truth
    if name == "scores":
        return _attention_score_facts(case, fields["scores"])
    if name == "weights" and _attention_close(fields["output"], truth.output, tolerance):
        return localized(ATTENTION_FACTS["other_weights"])
    if (
        name == "output"
        and "weights" in fields
        and _attention_close(fields["weights"], truth.weights, tolerance)
    ):
        return localized(ATTENTION_FACTS["mixing"])
    return ""


def _attention_close(got: Tensor, want: Tensor, tolerance: float) -> bool:
    return bool(((got.double() - want).abs() <= tolerance * want.abs().clamp(min=1.0)).all())


def _attention_score_facts(case: AttentionCase, scores: Tensor) -> str:
    """A constant ratio to the right scores, or the finite number that fills masked places."""
    got, want = scores.double().expand_as(case.truth.scores), case.truth.scores
    visible = want != -math.inf
    filled = got[~visible & (got != -math.inf)]
    if filled.numel():
        return localized(ATTENTION_FACTS["scores_fill"], fill=filled[0].item())
    known = visible & (want.abs() > 1e-3)
    if int(known.sum()) < 2:
        return ""
    ratios = got[known] / want[known]
    ratio, d_k = ratios[0].item(), case.q.shape[-1]
    if abs(ratio - 1) < 1e-6 or (ratios - ratio).abs().max() > 1e-6 * abs(ratio):
        return ""
    return localized(ATTENTION_FACTS["scores_ratio"], ratio=ratio, d_k=d_k, root=math.sqrt(d_k))


def attention_sum_facts(case: AttentionCase, weights: Tensor) -> str:
    """Which sums are 1, if not those of the rows."""
    if _attention_all_equal(weights.sum(-1), 1.0):
        return ""
    if weights.shape[-2] > 1 and _attention_all_equal(weights.sum(-2), 1.0):
        return localized(ATTENTION_FACTS["column_sums"])
    if _attention_all_equal(weights.sum((-2, -1)), 1.0):
        return localized(ATTENTION_FACTS["total_sum"])
    total = weights.sum(-1).flatten()[0].item()
    if _attention_all_equal(weights.sum(-1), total):
        scale = 1 / math.sqrt(case.q.shape[-1])
        return localized(ATTENTION_FACTS["equal_sums"], total=total, scale=scale)
    return ""


def _attention_all_equal(values: Tensor, number: float) -> bool:
    return bool(((values - number).abs() <= 1e-9).all())
