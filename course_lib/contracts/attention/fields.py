"""The fields of an attention's result: read, and what a wrong one proves about itself."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.attention.calls import broadcast_axes, joint_axes
from course_lib.contracts.engine.call import Call
from course_lib.contracts.engine.candidate import Breach
from course_lib.contracts.engine.read import malformed
from course_lib.text import say

FIELDS = ("output", "weights", "scores", "empty_rows")

# ---------------------------------------------------------------- in form

_FORM = {
    "no_field": "{came} without {names} | {came} без {names}",
    "object": "an object with {names} | объект с полями {names}",
    "tensor_or_object": "a torch.Tensor or an object with {names} | "
    "torch.Tensor или объект с полем {names}",
    "together": "the fields must come back together, in one object (fix: return "
    "AttentionResult(output, weights, scores, empty_rows)) | поля нужно вернуть вместе, в одном "
    "объекте (исправление: return AttentionResult(output, weights, scores, empty_rows))",
    "not_tensor": ".{name} is a {came}, not a torch.Tensor | "
    ".{name} имеет тип {came}, а нужен torch.Tensor",
    "shape": ".{name} has shape {came}; the arguments call for {wanted} | "
    "у .{name} форма {came}; по аргументам нужна {wanted}",
    "device": ".{name} lies on {came}, the inputs on {wanted} | "
    ".{name} лежит на {came}, а входы на {wanted}",
    "dtype": ".{name} is {came}, but the inputs are {given}: it must be {wanted} | "
    ".{name} имеет тип {came} при входах {given}: нужен {wanted}",
    "wider": "{given} or wider | {given} или шире",
}


def reader(fields: tuple[str, ...]) -> Callable[[Any, Call], dict[str, Tensor]]:
    """Take these fields out of a result; breach unless each has the right type, shape, dtype."""

    def read(result: Any, call: Call) -> dict[str, Tensor]:
        alone = fields == ("output",) and isinstance(result, Tensor)
        if not alone and not all(hasattr(result, name) for name in fields):
            raise _without_fields(fields, result)
        parts = {name: result if alone else getattr(result, name) for name in fields}
        return {name: _formed(name, part, call) for name, part in parts.items()}

    return read


def _without_fields(fields: tuple[str, ...], result: Any) -> Breach:
    """Say what came, which fields it lacks and what to return instead."""
    came = "None" if result is None else type(result).__name__
    lacking = ", ".join(f".{name}" for name in fields if not hasattr(result, name))
    alone, names = fields == ("output",), ", ".join(f".{name}" for name in fields)
    wanted = say(_FORM["tensor_or_object"] if alone else _FORM["object"], names=names)
    facts = "" if alone else say(_FORM["together"])
    measured = say(_FORM["no_field"], came=came, names=lacking)
    return Breach("no_field", measured, wanted, facts=facts, clause="result_form")


def _formed(name: str, value: Any, call: Call) -> Tensor:
    """One field in the joint batch shape; where only v has an axis it may come unexpanded."""

    def breach(kind: str, came: Any, wanted: Any) -> Breach:
        values = {"name": name, "came": came, "wanted": wanted, "given": call.q.dtype}
        return malformed(kind, _FORM[kind], str(wanted), **values)

    if not isinstance(value, Tensor):
        raise breach("not_tensor", type(value).__name__, "torch.Tensor")
    if value.device != call.q.device:
        raise breach("device", value.device, call.q.device)
    wanted, shape = _wanted_shape(name, call), tuple(value.shape)
    if shape != wanted and not _broadcasts(name, shape, wanted, call):
        raise breach("shape", list(shape), list(wanted))
    given, came = call.q.dtype, value.dtype
    if name == "empty_rows":
        fits, kind = came == torch.bool, "torch.bool"
    else:  # scores of 16 bits hide what the softmax saw
        least = torch.float32 if name == "scores" and given.itemsize == 2 else given
        fits = came.is_floating_point and came.itemsize >= least.itemsize
        kind = say(_FORM["wider"], given=least)
    if not fits:
        raise breach("dtype", came, kind)
    return value.detach().expand(wanted)


def _wanted_shape(name: str, call: Call) -> tuple[int, ...]:
    t_q, t_k, d_v = call.q.shape[-2], call.k.shape[-2], call.v.shape[-1]
    last = {"output": (t_q, d_v), "empty_rows": (t_q,)}.get(name, (t_q, t_k))
    return joint_axes(call) + last


def _broadcasts(name: str, shape: tuple[int, ...], wanted: tuple[int, ...], call: Call) -> bool:
    """Whether a field may have this shape instead: all of it but what only v asks for."""
    scores = broadcast_axes(call.q.shape[:-2], call.k.shape[:-2]) + wanted[-2:]
    least = {"weights": scores, "scores": scores, "empty_rows": (1,)}.get(name, wanted)
    try:
        return broadcast_axes(shape, wanted) == wanted and broadcast_axes(least, shape) == shape
    except ValueError:
        return False


# ---------------------------------------------------------------- finite

_FINITE = {
    "not_finite": "NaN or infinite numbers in .{name}: {count}, although q, k and v are finite | "
    "в .{name} есть NaN или бесконечности ({count} шт.), хотя q, k и v конечны",
    "exp_range": "; the right scores lie between {low:.5g} and {high:.5g}, and exp(x) of float64 "
    "ends at x = 709: subtract the largest visible score of each row first | "
    "; верные оценки лежат между {low:.5g} и {high:.5g}, а exp(x) в float64 переполняется при x > "
    "709: сначала вычтите наибольшую видимую оценку каждой строки",
    "half_range": "; q·k reaches {high:.5g}, and float16 ends at 65504: compute the scores in "
    "float32 | ; q·k доходит до {high:.5g}, а float16 вмещает до 65504: считайте оценки в float32",
}


def fine(name: str, part: Tensor) -> Tensor:
    """Which numbers of a field may come: the finite ones, and -inf among the scores."""
    return part.isfinite() | ((part == -math.inf) & (name == "scores"))


def spoiled_facts(name: str, count: int, truth: dict[str, Tensor], call: Call) -> str:
    """How many are not fine, and the range of the right computation, if it is a dangerous one."""
    told = say(_FINITE["not_finite"], name=name, count=count)
    if call.q.dtype == torch.float16:
        high = (call.q.double() @ call.k.double().mT).abs().max().item()
        return told + (say(_FINITE["half_range"], high=high) if high > 65504 else "")
    visible = truth["scores"][truth["scores"].isfinite()]
    if visible.numel() == 0 or visible.abs().max() < 700:
        return told
    return told + say(_FINITE["exp_range"], low=visible.min().item(), high=visible.max().item())


# ---------------------------------------------------------------- what a wrong one proves

_PROVED = {
    "ratio": "every score is {ratio:.4g} times the right one (d_k = {d_k}, √d_k = {root:.4g}) | "
    "у каждой оценки лишний множитель {ratio:.4g} (d_k = {d_k}, √d_k = {root:.4g})",
    "unmasked": "the score of a hidden key is still its q·k / √d_k: it was not masked | "
    "оценка замаскированного ключа так и осталась q·k / √d_k: её не закрыли",
    "fill": "a masked score is {fill:.6g} and must be -inf | "
    "замаскированная оценка равна {fill:.6g}, а должна быть -inf",
    "column_sums": "the weights of each key (column) sum to 1, those of each query (row) do not | "
    "веса каждого ключа (столбец) дают в сумме 1, а веса каждого запроса (строка) — нет",
    "total_sum": "all the weights of a matrix together sum to 1, those of each query do not | "
    "все веса матрицы вместе дают в сумме 1, а веса каждого запроса — нет",
    "equal_sums": "the weights of every query sum to {total:.4g} (1/√d_k = {scale:.4g}) | "
    "веса каждого запроса дают в сумме {total:.4g} (1/√d_k = {scale:.4g})",
    "other_weights": ".weights @ v differs from .output by {gap:.2g}: these weights did not make "
    "it | .weights @ v отличается от .output на {gap:.2g}: выход получен не из них",
    "narrow": "every number of .{name} fits float32 exactly, although the inputs are float64 | "
    "каждое число в .{name} точно умещается в float32, хотя входы — float64",
    "mixing": ".weights are right, so the mistake is in mixing the values: weights @ v differs "
    "from .output | "
    ".weights верны, значит, ошибка там, где смешиваются значения: weights @ v не равно .output",
}


def field_facts(
    name: str, call: Call, got: dict[str, Tensor], truth: dict[str, Tensor], allowed: float
) -> str:
    """What the other fields of the same call prove about a field that is wrong."""
    part = got[name]
    if part.dtype == torch.float64 and _fits_float32(part, truth[name]):
        return say(_PROVED["narrow"], name=name)
    if name == "scores":
        return _score_facts(call, part.double(), truth["scores"])
    if name == "weights":
        gap = (part.double() @ call.v.double() - got["output"].double()).abs().max().item()
        return say(_PROVED["other_weights"], gap=gap) if gap > 1e-3 else ""
    if name == "output" and "weights" in got and _near(got["weights"], truth["weights"], allowed):
        return say(_PROVED["mixing"])
    return ""


def sum_facts(call: Call, weights: Tensor) -> str:
    """Which sums are 1, if not those of the rows."""

    def all_are(values: Tensor, number: float) -> bool:
        return bool(((values - number).abs() <= 1e-9).all())

    rows = weights.sum(-1)
    if all_are(rows, 1.0):
        return ""
    if weights.shape[-2] > 1 and all_are(weights.sum(-2), 1.0):
        return say(_PROVED["column_sums"])
    if all_are(weights.sum((-2, -1)), 1.0):
        return say(_PROVED["total_sum"])
    total, scale = rows.flatten()[0].item(), 1 / math.sqrt(call.q.shape[-1])
    return say(_PROVED["equal_sums"], total=total, scale=scale) if all_are(rows, total) else ""


def _fits_float32(got: Tensor, want: Tensor) -> bool:
    """Whether float32 holds all these numbers, though it does not hold the right ones."""
    if not _near(got.nan_to_num(neginf=0.0), want.nan_to_num(neginf=0.0), 1e-5):
        return False
    narrow = ((tensor == tensor.float().double()).all().item() for tensor in (got, want))
    return tuple(narrow) == (True, False)


def _near(got: Tensor, want: Tensor, allowed: float) -> bool:
    return bool(((got.double() - want).abs() <= allowed * want.abs().clamp(min=1.0)).all())


def _score_facts(call: Call, got: Tensor, want: Tensor) -> str:
    """A constant ratio to the right scores, or what stands in the masked places instead."""
    root, d_k = math.sqrt(call.q.shape[-1]), call.q.shape[-1]
    visible = want != -math.inf
    hidden = ~visible & (got != -math.inf)
    if hidden.any():
        plain = (call.q.double() @ call.k.double().mT / root).expand_as(got)
        filled, untouched = got[hidden], plain[hidden]
        same = (filled - untouched).abs() <= 1e-9 * untouched.abs().clamp(min=1.0)
        if same.all() and (untouched.abs() > 1e-6).any():
            return say(_PROVED["unmasked"])
        one = not same.any() and (filled == filled[0]).all()
        return say(_PROVED["fill"], fill=filled[0].item()) if one else ""
    known = visible & (want.abs() > 1e-3)
    if int(known.sum()) < 2:
        return ""
    ratios = got[known] / want[known]
    ratio = ratios[0].item()
    if abs(ratio - 1) < 1e-6 or (ratios - ratio).abs().max() > 1e-6 * abs(ratio):
        return ""
    return say(_PROVED["ratio"], ratio=ratio, d_k=d_k, root=root)
