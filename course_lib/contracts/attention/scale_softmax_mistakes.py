"""Attentions that scale the scores wrongly, or whose softmax is none or runs along a wrong axis."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.contracts.attention.steps import (
    MistakenCall,
    mistaken_attention,
    softmax_or_zero,
    without_empty,
)
from course_lib.contracts.engine.mistake import mistakes

_AXIS_FIX = "softmax(dim=-1): over the keys | softmax(dim=-1): по ключам"
_SCALE_FIX = "q @ k.mT / math.sqrt(q.shape[-1])"


def _over(axis: int) -> Callable[[Tensor, MistakenCall], Tensor]:
    """Hidden keys keep their -inf; a column with nothing to read gives zeros."""

    def soften(scores: Tensor, call: MistakenCall) -> Tensor:
        along = -1 if axis == 1 and scores.dim() == 2 else axis
        low = (scores == -math.inf).all(dim=along, keepdim=True)
        weights = scores.masked_fill(low, 0.0).softmax(dim=along).masked_fill(low, 0.0)
        return without_empty(weights, call)

    return soften


def _with_epsilon(scores: Tensor, call: MistakenCall) -> Tensor:
    top = scores.amax(dim=-1, keepdim=True).masked_fill(call.empty.unsqueeze(-1), 0.0)
    parts = (scores - top).exp()
    return parts / (parts.sum(dim=-1, keepdim=True) + 1e-8)


# fmt: off
ATTENTION_SCALE_MISTAKES = mistakes(
    mistaken_attention,
    not_scaled=("mlc-ai/mlc-llm#3426",
        "the scores are not divided by √d_k | оценки не делятся на √d_k",
        _SCALE_FIX, {"scale": lambda call: 1.0}),
    scale_inverse=("esceptico/perceiver-io#9",
        "the scores are multiplied by √d_k instead of divided | "
        "оценки умножаются на √d_k, а не делятся",
        _SCALE_FIX, {"scale": lambda call: math.sqrt(call.q.shape[-1])}),
    scale_squared=("policy-gradient/GRPO-Zero#10",
        "the scores are divided by d_k, or by √d_k twice (by hand and by the library) | "
        "оценки делятся на d_k или дважды на √d_k (вручную и ещё раз библиотекой)",
        _SCALE_FIX, {"scale": lambda call: 1 / call.q.shape[-1]}),
    scale_of_one_side=("",
        "the scores are divided by the fourth root of d_k: q or k alone is scaled | "
        "оценки делятся на корень четвёртой степени из d_k: масштабируется лишь q или k",
        _SCALE_FIX, {"scale": lambda call: call.q.shape[-1] ** -0.25}),
    scale_by_d_v=("",
        "the scores are divided by √d_v, the width of the values, instead of √d_k | "
        "оценки делятся на √d_v (ширину значений) вместо √d_k",
        _SCALE_FIX, {"scale": lambda call: call.v.shape[-1] ** -0.5}),
    scale_by_key_count=("",
        "the scores are divided by √T_k, the number of keys, instead of √d_k | "
        "оценки делятся на √T_k (число ключей) вместо √d_k",
        "width: shape[-1], length: shape[-2] | ширина: shape[-1], длина: shape[-2]",
        {"scale": lambda call: call.k.shape[-2] ** -0.5}),
    scale_by_query_count=("",
        "the scores are divided by √T_q, the number of queries, instead of √d_k | "
        "оценки делятся на √T_q (число запросов) вместо √d_k",
        "width: shape[-1], length: shape[-2] | ширина: shape[-1], длина: shape[-2]",
        {"scale": lambda call: call.q.shape[-2] ** -0.5}),
    scale_by_whole_width=("lucidrains/vit-pytorch#65",
        "the scores are divided by the root of the whole width, heads times d_k | "
        "оценки делятся на корень из полной ширины (число голов на d_k)",
        _SCALE_FIX,
        {"scale": lambda call: math.prod((*call.q.shape[1:-2], call.q.shape[-1])) ** -0.5}),
    scale_cut_to_integer=("",
        "√d_k is cut to a whole number: right only where d_k is a square | "
        "√d_k обрезан до целого: верно, лишь когда d_k — полный квадрат",
        "math.sqrt, not int() or // | math.sqrt, а не int() или //",
        {"scale": lambda call: 1 / int(call.q.shape[-1] ** 0.5)}),
    scale_after_softmax=("FrancescoSaverioZuppichini/ViT#2",
        "the division by √d_k comes after the softmax: the weights sum to 1/√d_k | "
        "деление на √d_k стоит после softmax: веса дают в сумме 1/√d_k",
        "divide the scores, then take softmax | делите оценки, затем softmax",
        {"scale": lambda call: 1.0,
         "weigh": lambda weights, keep, call: weights / math.sqrt(call.q.shape[-1])}),
    cosine_scores=("",
        "q and k are normalised first, so that the scores are cosines | "
        "q и k сначала нормируются, и оценки становятся косинусами",
        _SCALE_FIX,
        {"product": lambda call: F.normalize(call.q, dim=-1) @ F.normalize(call.k, dim=-1).mT}),
    softmax_over_queries=("labmlai/annotated_deep_learning_paper_implementations#146",
        "the softmax runs over the queries: each key shares itself out among them | "
        "softmax идёт по запросам: каждый ключ делит себя между ними",
        _AXIS_FIX, {"soften": _over(-2)}),
    softmax_over_axis_0=("PetrochukM/PyTorch-NLP#2",
        "the softmax runs over the first axis, dim=0 | softmax идёт по первой оси, dim=0",
        _AXIS_FIX, {"soften": _over(0)}),
    softmax_over_axis_1=("FudanNLP/fastNLP#254",
        "the softmax has a fixed axis, dim=1: right in two axes, heads with four | "
        "ось softmax задана числом, dim=1: верно при двух осях, а при четырёх это головы",
        _AXIS_FIX, {"soften": _over(1)}),
    softmax_over_all=("",
        "the softmax runs over queries and keys together: a matrix sums to 1, not a row | "
        "softmax идёт сразу по запросам и ключам: сумму 1 даёт матрица, а не строка",
        _AXIS_FIX, {"soften": lambda scores, call: without_empty(
            without_empty(scores, call).flatten(-2).softmax(-1).reshape(scores.shape), call)}),
    softmax_twice=("zyy-2001/DisKT#6",
        "the softmax is taken twice: it flattens the weights and reopens hidden keys | "
        "softmax берётся дважды: веса сглажены, замаскированные ключи снова открыты",
        "one softmax, on the scores | один softmax, от оценок",
        {"weigh": lambda weights, keep, call: without_empty(weights.softmax(dim=-1), call)}),
    softmax_twice_masked_again=("",
        "the softmax is taken twice, and what it reopens is set to 0 again | "
        "softmax берётся дважды, а то, что он открыл, снова обнулено",
        "one softmax, on the scores | один softmax, от оценок",
        {"weigh": lambda weights, keep, call: weights.softmax(dim=-1) * keep}),
    softmax_missing=("",
        "there is no softmax: the scores themselves mix the values | "
        "softmax нет: значения смешиваются самими оценками",
        "weights = scores.softmax(dim=-1)",
        {"soften": lambda scores, call: scores.masked_fill(scores == -math.inf, 0.0)}),
    sigmoid_for_softmax=("",
        "a sigmoid stands in for the softmax: the weights of a query do not sum to 1 | "
        "вместо softmax стоит сигмоида: веса запроса не дают в сумме 1",
        "weights = scores.softmax(dim=-1)",
        {"soften": lambda scores, call: without_empty(torch.sigmoid(scores), call)}),
    weights_not_normalised=("",
        "the exponentials are not divided by their sum | экспоненты не делятся на свою сумму",
        "parts / parts.sum(-1, keepdim=True)",
        {"soften": lambda scores, call: without_empty(scores.exp(), call)}),
    powers_of_two=("",
        "the weights are powers of 2, not of e (exp2 without a factor of log2 e) | "
        "веса — степени двойки, а не e (exp2 без множителя log2 e)",
        "exp, or exp2(x * math.log2(math.e)) | exp или exp2(x * math.log2(math.e))",
        {"soften": lambda scores, call: softmax_or_zero(scores * math.log(2), call)}),
    epsilon_in_denominator=("",
        "a small number is added to the sum of a row: its weights stay below 1 together | "
        "к сумме строки прибавлено малое число: её веса в сумме чуть меньше 1",
        "the sum is at least 1: add nothing | сумма не меньше 1: прибавлять незачем",
        {"soften": _with_epsilon}),
)
# fmt: on
