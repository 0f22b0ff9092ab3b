"""What a wrong attention proves about itself: measured facts, in the reader's language."""

import math

import torch
from torch import Tensor

from course_lib.contracts.attention._attention_case import AttentionCase
from course_lib.text import localized

ATTENTION_FACTS = {
    "no_field": {
        "en": "{came} without {names}",
        "ru": "{came} без {names}",
    },
    "result_object": {
        "en": "an object with {names}",
        "ru": "объект с полями {names}",
    },
    "result_fix": {
        "en": "the fields must come back together, in one object "
        "(fix: return AttentionResult(output, weights, scores, empty_rows))",
        "ru": "поля нужно вернуть вместе, в одном объекте "
        "(исправление: return AttentionResult(output, weights, scores, empty_rows))",
    },
    "tensor_or_object": {
        "en": "a torch.Tensor or an object with {names}",
        "ru": "torch.Tensor или объект с полем {names}",
    },
    "not_tensor": {
        "en": ".{name} is a {came}, not a torch.Tensor",
        "ru": ".{name} имеет тип {came}, а нужен torch.Tensor",
    },
    "shape": {
        "en": ".{name} has shape {came}; the arguments call for {wanted}",
        "ru": "у .{name} форма {came}; по аргументам нужна {wanted}",
    },
    "device": {
        "en": ".{name} lies on {came}, the inputs on {wanted}",
        "ru": ".{name} лежит на {came}, а входы на {wanted}",
    },
    "dtype": {
        "en": ".{name} is {came}, but the inputs are {given}: it must be {wanted}",
        "ru": ".{name} имеет тип {came} при входах {given}: нужен {wanted}",
    },
    "float_or_wider": {"en": "{given} or wider", "ru": "{given} или шире"},
    "not_finite": {
        "en": "NaN or infinite numbers in .{name}: {count}, although q, k and v are finite",
        "ru": "в .{name} есть NaN или бесконечности ({count} шт.), хотя q, k и v конечны",
    },
    "scores_ratio": {
        "en": "every score is {ratio:.4g} times the right one (d_k = {d_k}, √d_k = {root:.4g})",
        "ru": "у каждой оценки лишний множитель {ratio:.4g} (d_k = {d_k}, √d_k = {root:.4g})",
    },
    "scores_unmasked": {
        "en": "the score of a hidden key is still its q·k / √d_k: it was not masked",
        "ru": "оценка закрытого ключа так и осталась q·k / √d_k: её не закрыли",
    },
    "scores_fill": {
        "en": "a masked score is {fill:.6g} and must be -inf",
        "ru": "закрытая оценка равна {fill:.6g}, а должна быть -inf",
    },
    "column_sums": {
        "en": "the weights of each key (column) sum to 1, those of each query (row) do not",
        "ru": "веса каждого ключа (столбец) дают в сумме 1, а веса каждого запроса (строка) — нет",
    },
    "total_sum": {
        "en": "all the weights of a matrix together sum to 1, those of each query do not",
        "ru": "все веса матрицы вместе дают в сумме 1, а веса каждого запроса — нет",
    },
    "equal_sums": {
        "en": "the weights of every query sum to {total:.4g} (1/√d_k = {scale:.4g})",
        "ru": "веса каждого запроса дают в сумме {total:.4g} (1/√d_k = {scale:.4g})",
    },
    "hidden_weight": {
        "en": "{count} of {hidden} hidden keys have a weight; the largest is {most:.4g}",
        "ru": "закрытых ключей с ненулевым весом: {count} из {hidden}; наибольший — {most:.4g}",
    },
    "low_visible": {
        "en": "; the visible scores lie at {low:.2g}, and only -inf is sure to lie below them",
        "ru": "; видимые оценки здесь около {low:.2g}, и заведомо ниже них только -inf",
    },
    "other_weights": {
        "en": ".weights @ v differs from .output by {gap:.2g}: these weights did not make it",
        "ru": ".weights @ v отличается от .output на {gap:.2g}: выход получен не из них",
    },
    "narrow": {
        "en": "every number of .{name} fits float32 exactly, although the inputs are float64",
        "ru": "каждое число в .{name} точно умещается в float32, хотя входы — float64",
    },
    "exp_range": {
        "en": "; the right scores lie between {low:.5g} and {high:.5g}, and exp(x) of float64 ends "
        "at x = 709: subtract the largest visible score of each row first",
        "ru": (
            "; верные оценки лежат между {low:.5g} и {high:.5g}, а exp(x) в float64 "
            "переполняется при x > 709: сначала вычтите наибольшую видимую оценку каждой строки"
        ),
    },
    "half_range": {
        "en": "; q·k reaches {high:.5g}, and float16 ends at 65504: compute the scores in float32",
        "ru": "; q·k доходит до {high:.5g}, а float16 вмещает до 65504: считайте оценки в float32",
    },
    "mixing": {
        "en": ".weights are right, so the mistake is in mixing the values: weights @ v differs "
        "from .output",
        "ru": (
            ".weights верны, значит, ошибка там, где смешиваются значения: weights @ v не равно "
            ".output"
        ),
    },
    "changed_argument": {"en": "{name} changed", "ru": "изменён {name}"},
    "unchanged": {"en": "nothing changed", "ru": "без изменений"},
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
    "nan_gradient": {
        "en": "the output is right, but the gradient of {names} is NaN",
        "ru": "выход верен, но в градиенте {names} — NaN",
    },
    "training_only": {
        "en": "inputs that require a gradient give another output than the same numbers without",
        "ru": "входы, требующие градиента, дают не тот выход, что те же числа без него",
    },
    "no_gradient": {
        "en": "no gradient reaches {names}: the graph on the way to the output is cut",
        "ru": "градиент не доходит до {names}: граф на пути к выходу разорван",
    },
}


def attention_facts(
    name: str, case: AttentionCase, fields: dict[str, Tensor], tolerance: float
) -> str:
    """What the other fields of the same call prove about a field that is wrong."""
    got, truth = fields[name], case.truth
    if got.dtype == torch.float64 and _attention_fits_float32(got, getattr(truth, name)):
        return localized(ATTENTION_FACTS["narrow"], name=name)
    if name == "scores":
        return _attention_score_facts(case, got)
    if name == "weights":
        gap = (got.double() @ case.v.double() - fields["output"].double()).abs().max().item()
        return localized(ATTENTION_FACTS["other_weights"], gap=gap) if gap > 1e-3 else ""
    if (
        name == "output"
        and "weights" in fields
        and _attention_close(fields["weights"], truth.weights, tolerance)
    ):
        return localized(ATTENTION_FACTS["mixing"])
    return ""


def attention_range_facts(case: AttentionCase) -> str:
    """Which range of numbers the right computation passes through, if it is a dangerous one."""
    if case.q.dtype == torch.float16:
        high = (case.q.double() @ case.k.double().mT).abs().max().item()
        return localized(ATTENTION_FACTS["half_range"], high=high) if high > 65504 else ""
    visible = case.truth.scores[case.truth.scores.isfinite()]
    if visible.numel() == 0 or visible.abs().max() < 700:
        return ""
    low, high = visible.min().item(), visible.max().item()
    return localized(ATTENTION_FACTS["exp_range"], low=low, high=high)


def _attention_fits_float32(got: Tensor, want: Tensor) -> bool:
    """Whether float32 holds all these numbers, though it does not hold the right ones."""
    if not _attention_close(got.nan_to_num(neginf=0.0), want.nan_to_num(neginf=0.0), 1e-5):
        return False
    narrow = ((tensor == tensor.float().double()).all().item() for tensor in (got, want))
    return tuple(narrow) == (True, False)


def _attention_close(got: Tensor, want: Tensor, tolerance: float) -> bool:
    return bool(((got.double() - want).abs() <= tolerance * want.abs().clamp(min=1.0)).all())


def _attention_score_facts(case: AttentionCase, scores: Tensor) -> str:
    """A constant ratio to the right scores, or the finite number that fills masked places."""
    got, want = scores.double(), case.truth.scores
    visible = want != -math.inf
    hidden = ~visible & (got != -math.inf)
    if hidden.any():
        return _attention_fill_facts(case, got, hidden)
    known = visible & (want.abs() > 1e-3)
    if int(known.sum()) < 2:
        return ""
    ratios = got[known] / want[known]
    ratio, d_k = ratios[0].item(), case.q.shape[-1]
    if abs(ratio - 1) < 1e-6 or (ratios - ratio).abs().max() > 1e-6 * abs(ratio):
        return ""
    return localized(ATTENTION_FACTS["scores_ratio"], ratio=ratio, d_k=d_k, root=math.sqrt(d_k))


def _attention_fill_facts(case: AttentionCase, scores: Tensor, hidden: Tensor) -> str:
    """Whether hidden scores were filled with one finite number, or not touched at all."""
    plain = (case.q.double() @ case.k.double().mT / math.sqrt(case.q.shape[-1])).expand_as(scores)
    filled, untouched = scores[hidden], plain[hidden]
    same = (filled - untouched).abs() <= 1e-9 * untouched.abs().clamp(min=1.0)
    if same.all() and (untouched.abs() > 1e-6).any():
        return localized(ATTENTION_FACTS["scores_unmasked"])
    if not same.any() and (filled == filled[0]).all():
        return localized(ATTENTION_FACTS["scores_fill"], fill=filled[0].item())
    return ""


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
