"""Multi-head attentions that are wrong in one way each, as people reported them."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.contracts.engine.mistake import mistakes
from course_lib.contracts.heads.calls import HeadsCall
from course_lib.contracts.heads.layout_mistakes import LAYOUT_MISTAKES
from course_lib.contracts.heads.mask_mistakes import MASK_MISTAKES
from course_lib.contracts.heads.steps import masked_softmax, mistaken_heads


def _filled(fill: float) -> dict[str, Any]:
    """Hidden scores get a finite number."""
    return {"weigh": lambda scores, keep: scores.masked_fill(~keep, fill).softmax(-1)}


def _over(axis: int) -> dict[str, Any]:
    """The softmax runs along another axis."""

    def weigh(scores: Tensor, keep: Tensor) -> Tensor:
        return scores.masked_fill(~keep, -math.inf).softmax(axis).nan_to_num(0.0)

    return {"weigh": weigh}


def _through(narrow: torch.dtype) -> dict[str, Any]:
    """The softmax is taken in a narrower type."""
    return {"weigh": lambda scores, keep: masked_softmax(scores.to(narrow), keep).to(scores.dtype)}


def _unstable(scores: Tensor, keep: Tensor) -> Tensor:
    parts = scores.exp() * keep
    return parts / parts.sum(-1, keepdim=True).clamp(min=1e-300)


def _scaled_in_place(call: HeadsCall) -> HeadsCall:
    call.w_q.detach().mul_(call.d_head**-0.5)
    return call


def _zeroed_in_place(call: HeadsCall) -> HeadsCall:
    call.x.detach().mul_(call.valid.unsqueeze(-1))
    return call


def _valid_inverted(call: HeadsCall) -> HeadsCall:
    valid = call.valid.clone()
    if call.token_valid is not None:
        call.token_valid.logical_not_()
    return call.but(token_valid=valid)


def _remembering() -> Callable[..., Tensor]:
    """The padding of the first call of a shape is used in all of them."""
    seen = {}

    def begin(call: HeadsCall) -> HeadsCall:
        valid = seen.setdefault((call.valid.shape, call.causal), call.valid.clone())
        return call.but(token_valid=valid)

    return mistaken_heads(begin=begin)


def _in_one_buffer() -> Callable[..., Tensor]:
    buffers, right = {}, mistaken_heads()

    def multi_head(*args: object, **options: object) -> Tensor:
        result = right(*args, **options)
        if result.requires_grad:
            return result
        buffer = buffers.setdefault((result.shape, result.dtype), torch.empty_like(result))
        return buffer.copy_(result)

    return multi_head


# fmt: off
_NUMBER_MISTAKES = mistakes(
    mistaken_heads,
    not_scaled=("mlc-ai/mlc-llm#3426",
        "the scores are not divided by √d_head | оценки не делятся на √d_head",
        "q @ k.mT / math.sqrt(d_head)", {"scale": lambda call: 1.0}),
    scaled_by_d_model=("lucidrains/vit-pytorch#65",
        "the scores are divided by √d_model instead of √d_head | "
        "оценки делятся на √d_model вместо √d_head",
        "d_head = d_model // n_heads", {"scale": lambda call: call.x.shape[-1] ** -0.5}),
    scaled_twice=("policy-gradient/GRPO-Zero#10",
        "the scores are divided by √d_head twice, that is by d_head | "
        "оценки делятся на √d_head дважды, то есть на d_head",
        "divide once; F.scaled_dot_product_attention does it itself | "
        "делите один раз; F.scaled_dot_product_attention делит сама",
        {"scale": lambda call: 1 / call.d_head}),
    scaled_up=("esceptico/perceiver-io#9",
        "the scores are multiplied by √d_head instead of divided | "
        "оценки умножаются на √d_head, а не делятся",
        "q @ k.mT * d_head**-0.5", {"scale": lambda call: call.d_head ** 0.5}),
    scaled_by_n_heads=("",
        "the scores are divided by √n_heads instead of √d_head | "
        "оценки делятся на √n_heads вместо √d_head",
        "after the split d_head is q.shape[-1] | "
        "после разделения на головы d_head — это q.shape[-1]",
        {"scale": lambda call: call.n_heads ** -0.5}),
    scaled_after_softmax=("FrancescoSaverioZuppichini/ViT#2",
        "the weights are divided by √d_head, not the scores: their sum is not 1 | "
        "на √d_head делятся веса, а не оценки: в сумме веса не дают 1",
        "(scores / √d_head).softmax(-1)",
        {"scale": lambda call: 1.0,
         "mix": lambda weights, v: weights @ v / math.sqrt(v.shape[-1])}),
    softmax_over_queries=("labmlai/annotated_deep_learning_paper_implementations#146",
        "the softmax runs over the queries, not over the keys | "
        "softmax идёт по запросам, а не по ключам",
        "scores.softmax(dim=-1)", _over(-2)),
    softmax_over_heads=("FudanNLP/fastNLP#254",
        "the softmax runs over the heads, not over the keys | "
        "softmax идёт по головам, а не по ключам",
        "scores.softmax(dim=-1)", _over(1)),
    softmax_over_batch=("PetrochukM/PyTorch-NLP#2",
        "the softmax runs over the batch, not over the keys | "
        "softmax идёт по батчу, а не по ключам",
        "scores.softmax(dim=-1)", _over(0)),
    softmax_missing=("",
        "the scores themselves are used as weights, without a softmax | "
        "весами служат сами оценки, без softmax",
        "scores.softmax(dim=-1)", {"weigh": lambda scores, keep: scores.masked_fill(~keep, 0.0)}),
    mask_after_softmax=("huggingface/pytorch-image-models#2236",
        "the mask comes after the softmax, and the weights left do not add up to 1 | "
        "маска стоит после softmax, и оставшиеся веса не дают в сумме 1",
        "mask the scores with -inf, then softmax | сначала -inf в оценки, затем softmax",
        {"weigh": lambda scores, keep: scores.softmax(-1) * keep}),
    mask_added=("huggingface/transformers#41443",
        "the bool mask is added to the scores as 0 and 1: nothing is hidden | "
        "булева маска прибавляется к оценкам как 0 и 1: ничего не закрыто",
        "scores.masked_fill(~allowed, -math.inf)",
        {"weigh": lambda scores, keep: (scores + keep).softmax(-1)}),
    mask_multiplied=("ilivans/tf-rnn-attention#11",
        "hidden scores become 0 instead of -inf, and exp(0) = 1 keeps its share | "
        "замаскированные оценки становятся 0, а не -inf, и exp(0) = 1 сохраняет свою долю",
        "scores.masked_fill(~allowed, -math.inf)",
        {"weigh": lambda scores, keep: (scores * keep).softmax(-1)}),
    finite_fill_small=("huggingface/transformers#10484",
        "hidden scores get about -1e4, which low scores fall below: padding is read | "
        "замаскированные оценки равны примерно -1e4, а бывают и ниже: паддинг читается",
        "fill with -math.inf | заполняйте -math.inf", _filled(-1e4)),
    finite_fill_large=("hyunwoongko/transformer#40",
        "hidden scores get about -1e9 or another finite number, which lower scores beat | "
        "замаскированные оценки равны примерно -1e9 или другому конечному числу, а бывают и ниже",
        "fill with -math.inf | заполняйте -math.inf", _filled(-1e9)),
    exp_overflows=("pyg-team/pytorch_geometric#53",
        "exp is taken without subtracting the row's maximum: it overflows or vanishes | "
        "exp берётся без вычитания максимума строки: переполнение или нули",
        "scores.softmax(-1), or exp(scores - max) | scores.softmax(-1) или exp(scores - max)",
        {"weigh": _unstable}),
    float32_inside=("huggingface/transformers#48459",
        "float64 goes through float32 inside, for example softmax(dtype=torch.float32) | "
        "внутри float64 округляется до float32, например softmax(dtype=torch.float32)",
        "softmax in promote_types(x.dtype, torch.float32) | "
        "softmax в promote_types(x.dtype, torch.float32)", _through(torch.float32)),
    half_inside=("karpathy/nanochat@16788ee",
        "the numbers go through a 16-bit type inside | внутри числа округляются до 16 бит",
        "compute in x.dtype or wider | считайте в x.dtype или точнее", _through(torch.bfloat16)),
    dropout_always_on=("karpathy/nanoGPT@7399dfe3",
        "dropout is on in every call | dropout включён при каждом вызове",
        "dropout only if self.training | dropout только при self.training",
        {"weigh": lambda scores, keep: F.dropout(masked_softmax(scores, keep), 0.1)}),
)

_STATE_MISTAKES = mistakes(
    mistaken_heads,
    weight_scaled_in_place=("flashinfer-ai/flashinfer#2084",
        "the scale is multiplied into the caller's weight: it grows with every call | "
        "множитель вписан в переданный вес и копится с каждым вызовом",
        "q = q * scale, not q *= scale | q = q * scale, а не q *= scale",
        {"begin": _scaled_in_place, "scale": lambda call: 1.0}),
    padding_zeroed_in_place=("",
        "the padding of the caller's x is overwritten with zeros | "
        "паддинг в переданном x затёрт нулями",
        "x = x * valid, not x *= valid | x = x * valid, а не x *= valid",
        {"begin": _zeroed_in_place}),
    token_valid_overwritten=("pytorch/pytorch#117939",
        "the caller's token_valid is overwritten | переданный token_valid перезаписан",
        "~token_valid makes a new tensor | ~token_valid создаёт новый тензор",
        {"begin": _valid_inverted}),
    padding_remembered=("",
        "a mask is stored by its shape and used again for other padding | "
        "маска хранится по форме и берётся снова при другом паддинге",
        "build the mask in every call | стройте маску в каждом вызове", _remembering),
    result_overwritten=("",
        "every call returns the same buffer, and the next one overwrites it | "
        "все вызовы возвращают один и тот же буфер, и следующий затирает прежний результат",
        "return a new tensor | возвращайте новый тензор", _in_one_buffer),
    no_gradient=("",
        "the output carries no gradient: detach, .data or no_grad inside | "
        "выход не несёт градиента: внутри detach, .data или no_grad",
        "leave out detach and no_grad | уберите detach и no_grad",
        {"out": lambda merged, call: (merged @ call.w_o).detach()}),
    weights_detached=("",
        "the attention weights are cut off: queries and keys do not learn | "
        "веса внимания отрезаны: запросы и ключи не учатся",
        "no detach on scores or weights | без detach у оценок и весов",
        {"weigh": lambda scores, keep: masked_softmax(scores, keep).detach()}),
    keys_detached=("",
        "the keys are cut off: w_k does not learn | ключи отрезаны: w_k не учится",
        "no detach on k | без detach у k", {"share": lambda q, k, v: (q, k.detach(), v)}),
)
# fmt: on

MULTI_HEAD_MISTAKES = (*_NUMBER_MISTAKES, *LAYOUT_MISTAKES, *MASK_MISTAKES, *_STATE_MISTAKES)
