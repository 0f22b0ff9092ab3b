"""Attentions that scale the scores wrongly, or whose softmax is none or runs along a wrong axis."""

import math
from functools import partial

import torch
from torch import Tensor

from course_lib.contracts.attention._attention_steps import (
    MistakenCall,
    mistaken_attention,
    softmax_or_zero,
    without_empty,
)
from course_lib.contracts.engine.mistake import Mistake

_AXIS_FIX = {"en": "softmax(dim=-1): over the keys", "ru": "softmax(dim=-1): по ключам"}
_SCALE_FIX = {
    "en": "q @ k.mT / math.sqrt(q.shape[-1])",
    "ru": "q @ k.mT / math.sqrt(q.shape[-1])",
}


def _attention_whole_width(call: MistakenCall) -> float:
    heads = call.q.shape[1] if call.q.dim() == 4 else 1
    return (heads * call.q.shape[-1]) ** -0.5


def _attention_cosine(call: MistakenCall) -> Tensor:
    q, k = (each / each.norm(dim=-1, keepdim=True).clamp(min=1e-12) for each in (call.q, call.k))
    return q @ k.mT


def _attention_axis(axis: int) -> partial:
    """Hidden keys keep their -inf; a column with nothing to read gives zeros."""

    def soften(scores: Tensor, call: MistakenCall) -> Tensor:
        low = (scores == -math.inf).all(dim=axis, keepdim=True)
        weights = scores.masked_fill(low, 0.0).softmax(dim=axis).masked_fill(low, 0.0)
        return without_empty(weights, call)

    return partial(mistaken_attention, soften=soften)


def _attention_over_axis_1(scores: Tensor, call: MistakenCall) -> Tensor:
    axis = 1 if scores.dim() > 2 else -1
    low = (scores == -math.inf).all(dim=axis, keepdim=True)
    return without_empty(scores.masked_fill(low, 0.0).softmax(axis).masked_fill(low, 0.0), call)


def _attention_over_all(scores: Tensor, call: MistakenCall) -> Tensor:
    flat = scores.masked_fill(call.empty.unsqueeze(-1), 0.0).flatten(-2)
    return without_empty(flat.softmax(dim=-1).reshape(scores.shape), call)


def _attention_with_epsilon(scores: Tensor, call: MistakenCall) -> Tensor:
    top = scores.amax(dim=-1, keepdim=True).masked_fill(call.empty.unsqueeze(-1), 0.0)
    parts = (scores - top).exp()
    return parts / (parts.sum(dim=-1, keepdim=True) + 1e-8)


ATTENTION_SCALE_MISTAKES = (
    Mistake(
        "not_scaled",
        "mlc-ai/mlc-llm#3426",
        partial(mistaken_attention, scale=lambda call: 1.0),
        {"en": "the scores are not divided by √d_k", "ru": "оценки не делятся на √d_k"},
        _SCALE_FIX,
    ),
    Mistake(
        "scale_inverse",
        "esceptico/perceiver-io#9",
        partial(mistaken_attention, scale=lambda call: math.sqrt(call.q.shape[-1])),
        {
            "en": "the scores are multiplied by √d_k instead of divided",
            "ru": "оценки умножаются на √d_k, а не делятся",
        },
        _SCALE_FIX,
    ),
    Mistake(
        "scale_squared",
        "policy-gradient/GRPO-Zero#10",
        partial(mistaken_attention, scale=lambda call: 1 / call.q.shape[-1]),
        {
            "en": "the scores are divided by d_k, or by √d_k twice (by hand and by the library)",
            "ru": "оценки делятся на d_k или дважды на √d_k (вручную и ещё раз библиотекой)",
        },
        _SCALE_FIX,
    ),
    Mistake(
        "scale_of_one_side",
        "a mutation of right code",
        partial(mistaken_attention, scale=lambda call: call.q.shape[-1] ** -0.25),
        {
            "en": "the scores are divided by the fourth root of d_k: q or k alone is scaled",
            "ru": "оценки делятся на корень четвёртой степени из d_k: масштабируется лишь q или k",
        },
        _SCALE_FIX,
    ),
    Mistake(
        "scale_by_d_v",
        "a mutation of right code",
        partial(mistaken_attention, scale=lambda call: call.v.shape[-1] ** -0.5),
        {
            "en": "the scores are divided by √d_v, the width of the values, instead of √d_k",
            "ru": "оценки делятся на √d_v (ширину значений) вместо √d_k",
        },
        _SCALE_FIX,
    ),
    Mistake(
        "scale_by_key_count",
        "a mutation of right code",
        partial(mistaken_attention, scale=lambda call: call.k.shape[-2] ** -0.5),
        {
            "en": "the scores are divided by √T_k, the number of keys, instead of √d_k",
            "ru": "оценки делятся на √T_k (число ключей) вместо √d_k",
        },
        {"en": "width: shape[-1], length: shape[-2]", "ru": "ширина: shape[-1], длина: shape[-2]"},
    ),
    Mistake(
        "scale_by_query_count",
        "a mutation of right code",
        partial(mistaken_attention, scale=lambda call: call.q.shape[-2] ** -0.5),
        {
            "en": "the scores are divided by √T_q, the number of queries, instead of √d_k",
            "ru": "оценки делятся на √T_q (число запросов) вместо √d_k",
        },
        {"en": "width: shape[-1], length: shape[-2]", "ru": "ширина: shape[-1], длина: shape[-2]"},
    ),
    Mistake(
        "scale_by_whole_width",
        "lucidrains/vit-pytorch#65",
        partial(mistaken_attention, scale=_attention_whole_width),
        {
            "en": "the scores are divided by the root of the whole width, heads times d_k",
            "ru": "оценки делятся на корень из полной ширины (число голов на d_k)",
        },
        _SCALE_FIX,
    ),
    Mistake(
        "scale_cut_to_integer",
        "a mutation of right code",
        partial(mistaken_attention, scale=lambda call: 1 / int(call.q.shape[-1] ** 0.5)),
        {
            "en": "√d_k is cut to a whole number: right only where d_k is a square",
            "ru": "√d_k обрезан до целого: верно, лишь когда d_k — полный квадрат",
        },
        {"en": "math.sqrt, not int() or //", "ru": "math.sqrt, а не int() или //"},
    ),
    Mistake(
        "scale_after_softmax",
        "FrancescoSaverioZuppichini/ViT#2",
        partial(
            mistaken_attention,
            scale=lambda call: 1.0,
            weigh=lambda weights, keep, call: weights / math.sqrt(call.q.shape[-1]),
        ),
        {
            "en": "the division by √d_k comes after the softmax: the weights sum to 1/√d_k",
            "ru": "деление на √d_k стоит после softmax: веса дают в сумме 1/√d_k",
        },
        {"en": "divide the scores, then take softmax", "ru": "делите оценки, затем softmax"},
    ),
    Mistake(
        "cosine_scores",
        "a mutation of right code",
        partial(mistaken_attention, product=_attention_cosine),
        {
            "en": "q and k are normalised first, so that the scores are cosines",
            "ru": "q и k сначала нормируются, и оценки становятся косинусами",
        },
        _SCALE_FIX,
    ),
    Mistake(
        "softmax_over_queries",
        "labmlai/annotated_deep_learning_paper_implementations#146",
        _attention_axis(-2),
        {
            "en": "the softmax runs over the queries: each key shares itself out among them",
            "ru": "softmax идёт по запросам: каждый ключ делит себя между ними",
        },
        _AXIS_FIX,
    ),
    Mistake(
        "softmax_over_axis_0",
        "PetrochukM/PyTorch-NLP#2",
        _attention_axis(0),
        {
            "en": "the softmax runs over the first axis, dim=0",
            "ru": "softmax идёт по первой оси, dim=0",
        },
        _AXIS_FIX,
    ),
    Mistake(
        "softmax_over_axis_1",
        "FudanNLP/fastNLP#254",
        partial(mistaken_attention, soften=_attention_over_axis_1),
        {
            "en": "the softmax has a fixed axis, dim=1: right in two axes, heads with four",
            "ru": "ось softmax задана числом, dim=1: верно при двух осях, а при четырёх это головы",
        },
        _AXIS_FIX,
    ),
    Mistake(
        "softmax_over_all",
        "a mutation of right code",
        partial(mistaken_attention, soften=_attention_over_all),
        {
            "en": "the softmax runs over queries and keys together: a matrix sums to 1, not a row",
            "ru": "softmax идёт сразу по запросам и ключам: сумму 1 даёт матрица, а не строка",
        },
        _AXIS_FIX,
    ),
    Mistake(
        "softmax_twice",
        "zyy-2001/DisKT#6",
        partial(
            mistaken_attention,
            weigh=lambda weights, keep, call: without_empty(weights.softmax(dim=-1), call),
        ),
        {
            "en": "the softmax is taken twice: it flattens the weights and reopens hidden keys",
            "ru": "softmax берётся дважды: веса сглажены, закрытые ключи снова открыты",
        },
        {"en": "one softmax, on the scores", "ru": "один softmax, от оценок"},
    ),
    Mistake(
        "softmax_twice_masked_again",
        "a mutation of right code",
        partial(
            mistaken_attention, weigh=lambda weights, keep, call: weights.softmax(dim=-1) * keep
        ),
        {
            "en": "the softmax is taken twice, and what it reopens is set to 0 again",
            "ru": "softmax берётся дважды, а то, что он открыл, снова обнулено",
        },
        {"en": "one softmax, on the scores", "ru": "один softmax, от оценок"},
    ),
    Mistake(
        "softmax_missing",
        "a mutation of right code",
        partial(
            mistaken_attention,
            soften=lambda scores, call: without_empty(scores, call).masked_fill(
                scores == -math.inf, 0.0
            ),
        ),
        {
            "en": "there is no softmax: the scores themselves mix the values",
            "ru": "softmax нет: значения смешиваются самими оценками",
        },
        {"en": "weights = scores.softmax(dim=-1)", "ru": "weights = scores.softmax(dim=-1)"},
    ),
    Mistake(
        "sigmoid_for_softmax",
        "a mutation of right code",
        partial(
            mistaken_attention,
            soften=lambda scores, call: without_empty(torch.sigmoid(scores), call),
        ),
        {
            "en": "a sigmoid stands in for the softmax: the weights of a query do not sum to 1",
            "ru": "вместо softmax стоит сигмоида: веса запроса не дают в сумме 1",
        },
        {"en": "weights = scores.softmax(dim=-1)", "ru": "weights = scores.softmax(dim=-1)"},
    ),
    Mistake(
        "weights_not_normalised",
        "a mutation of right code",
        partial(mistaken_attention, soften=lambda scores, call: without_empty(scores.exp(), call)),
        {
            "en": "the exponentials are not divided by their sum",
            "ru": "экспоненты не делятся на свою сумму",
        },
        {"en": "parts / parts.sum(-1, keepdim=True)", "ru": "parts / parts.sum(-1, keepdim=True)"},
    ),
    Mistake(
        "powers_of_two",
        "a mutation of right code",
        partial(
            mistaken_attention,
            soften=lambda scores, call: softmax_or_zero(scores * math.log(2), call),
        ),
        {
            "en": "the weights are powers of 2, not of e (exp2 without a factor of log2 e)",
            "ru": "веса — степени двойки, а не e (exp2 без множителя log2 e)",
        },
        {"en": "exp, or exp2(x * math.log2(math.e))", "ru": "exp или exp2(x * math.log2(math.e))"},
    ),
    Mistake(
        "epsilon_in_denominator",
        "a mutation of right code",
        partial(mistaken_attention, soften=_attention_with_epsilon),
        {
            "en": "a small number is added to the sum of a row: its weights stay below 1 together",
            "ru": "к сумме строки прибавлено малое число: её веса в сумме чуть меньше 1",
        },
        {"en": "the sum is at least 1: add nothing", "ru": "сумма не меньше 1: прибавлять незачем"},
    ),
)
