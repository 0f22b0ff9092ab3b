"""Attentions with a wrong scale, a wrong softmax or a wrong mask."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.contracts.attention.steps import (
    MistakenCall,
    mistaken_attention,
    products,
    shares_of,
    softmax_or_zero,
    unmasked_weights,
    without_empty,
)
from course_lib.contracts.engine.mistake import mistakes

_AXIS_FIX = "softmax(dim=-1): over the keys | softmax(dim=-1): по ключам"
_SCALE_FIX = "q @ k.mT / math.sqrt(q.shape[-1])"
_HIDE_FIX = "scores = scores.masked_fill(~allowed, -math.inf)"
_BROADCAST_FIX = (
    "let the mask broadcast against [..., T_q, T_k] | "
    "пусть маска сама транслируется до [..., T_q, T_k]"
)


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


def _mask_on_heads(call: MistakenCall) -> Tensor:
    keep = call.keep
    return keep.transpose(0, 1) if keep.dim() == 4 and keep.shape[0] == keep.shape[1] else keep


def _mask_per_item(call: MistakenCall) -> Tensor:
    given = call.allowed
    if given.dim() == 3 and call.keep.dim() == 4 and len(given) == len(call.keep):
        return given.unsqueeze(1).expand(call.keep.shape)
    return call.keep


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

ATTENTION_MASK_MISTAKES = mistakes(
    mistaken_attention,
    mask_ignored=("opendilab/DI-engine#333",
        "no mask is applied (masked_fill, if it is there, returns a new tensor) | "
        "маска не применяется (masked_fill, если он есть, возвращает новый тензор)",
        _HIDE_FIX, {"hide": lambda scores, keep, call: scores}),
    mask_for_show=("",
        "the reported scores are masked, but the weights come from the scores before it | "
        "возвращены оценки под маской, а веса получены из оценок без неё",
        "take the softmax of the masked scores | softmax берите от оценок под маской",
        {"weigh": lambda weights, keep, call: unmasked_weights(call)}),
    mask_inverted=("rasbt/LLMs-from-scratch#1061",
        "True in the mask means hidden (here True = may read) | "
        "True в маске значит «закрыто» (здесь True = разрешено читать)",
        "masked_fill(~allowed, -math.inf)", {"mask": lambda call: ~call.keep}),
    mask_transposed=("cs231n/cs231n.github.io#279",
        "queries and keys are swapped in the mask | запросы и ключи в маске переставлены",
        "rows are queries, columns are keys | строки — запросы, столбцы — ключи",
        {"mask": lambda call: call.turned}),
    mask_added_as_0_and_1=("huggingface/transformers#41443",
        "the bool mask is added to the scores as 0 and 1, which hides nothing | "
        "булева маска прибавляется к оценкам как 0 и 1, а это ничего не закрывает",
        _HIDE_FIX, {"hide": lambda scores, keep, call: scores + keep}),
    mask_multiplied=("",
        "hidden scores are multiplied by 0, and a score of 0 still has a weight | "
        "замаскированные оценки умножены на 0, а у оценки 0 тоже есть вес",
        _HIDE_FIX, {"hide": lambda scores, keep, call: scores * keep}),
    mask_filled_with_nearly_0=("awslabs/gluonts#1401",
        "a sign of the exponent is lost: 1e-9 is nearly 0 and hides nothing | "
        "потерян знак степени: 1e-9 — почти 0 и ничего не закрывает",
        _HIDE_FIX, {"hide": lambda scores, keep, call: scores.masked_fill(~keep, 1e-9)}),
    mask_after_softmax=("huggingface/pytorch-image-models#2236",
        "the mask comes after the softmax, and the weights that are left do not sum to 1 | "
        "маска стоит после softmax, и оставшиеся веса не дают в сумме 1",
        "mask the scores, then take softmax | маска на оценки, затем softmax",
        {"weigh": lambda weights, keep, call: unmasked_weights(call) * keep}),
    mask_renormalised_late=("",
        "weights are masked after the softmax and divided by their sum: 0/0 where a hidden key "
        "took all | веса закрываются после softmax и делятся на сумму: "
        "0/0, если замаскированный ключ забрал всё",
        "mask the scores, then take softmax | маска на оценки, затем softmax",
        {"weigh": lambda weights, keep, call: without_empty(
            shares_of(unmasked_weights(call) * keep, call), call)}),
    mask_of_first_item=("facebookresearch/jepa#93",
        "the first item's mask is used for the whole batch | "
        "маска первого элемента применяется ко всему батчу",
        _BROADCAST_FIX, {"mask": lambda call: call.keep[:1] if call.keep.dim() > 2 else call.keep}),
    mask_of_first_query=("",
        "every query gets the mask of the first | каждый запрос получает маску первого",
        _BROADCAST_FIX, {"mask": lambda call: call.keep[..., :1, :]}),
    mask_on_queries=("",
        "a mask [T] over the keys is laid over the queries as [T, 1] | "
        "маска ключей [T] ложится на запросы как [T, 1]",
        "allowed[..., None, :]",
        {"mask": lambda call: call.turned if call.allowed.dim() == 1 else call.keep}),
    padding_on_queries=("hyunwoongko/transformer#40",
        "a padding mask [..., 1, T] is laid over the queries as [..., T, 1] | "
        "маска паддинга [..., 1, T] ложится на запросы как [..., T, 1]",
        "allowed[:, None, None, :]",
        {"mask": lambda call: call.turned if call.allowed.shape[-2:-1] == (1,) else call.keep}),
    mask_on_heads=("keras-team/keras-hub#2911",
        "the batch axis of the mask is laid over the heads | "
        "ось батча в маске попадает на ось голов",
        "[B, 1, T_q, T_k] for a mask per item | [B, 1, T_q, T_k] для маски элемента",
        {"mask": _mask_on_heads}),
    mask_axes_guessed=("",
        "a mask of three axes is taken to be per item, although it broadcasts over heads | "
        "маска с тремя осями принята за маску элементов, хотя она ложится на головы",
        _BROADCAST_FIX, {"mask": _mask_per_item}),
    mask_skipped_for_one_query=("lucidrains/x-transformers@4465de5",
        "the mask is skipped when there is a single query | маска пропускается, когда запрос один",
        "apply the mask whatever T_q is | маска нужна при любом T_q",
        {"mask": lambda call: call.keep | (call.q.shape[-2] == 1)}),
    mask_diagonal_open=("",
        "query i always reads key i, whatever the mask says | "
        "запрос i всегда читает ключ i, что бы ни говорила маска",
        "use the mask as it is given | берите маску как есть",
        {"mask": lambda call: call.keep | torch.eye(*call.keep.shape[-2:], dtype=torch.bool)}),
    always_causal=("",
        "a causal mask is applied in every call (is_causal=True, tril) | "
        "причинная маска применяется в каждом вызове (is_causal=True, tril)",
        "only what `allowed` hides is hidden | закрыто лишь то, что закрыл `allowed`",
        {"product": lambda call: products(call).masked_fill(
            torch.ones(call.keep.shape[-2:]).triu(1) > 0, -math.inf)}),
)
# fmt: on
