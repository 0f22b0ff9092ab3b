"""Multi-head attentions with a wrong scale or a wrong softmax."""

import math
from functools import partial

import torch
from torch import Tensor

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.heads._multi_heads import heads_softmax, mistaken_heads


def _heads_filled(fill: float) -> partial:
    """Hidden scores get a finite number."""
    return partial(
        mistaken_heads, weigh=lambda scores, keep: scores.masked_fill(~keep, fill).softmax(-1)
    )


def _heads_over(axis: int) -> partial:
    """The softmax runs along another axis."""

    def weigh(scores: Tensor, keep: Tensor) -> Tensor:
        return scores.masked_fill(~keep, -math.inf).softmax(axis).nan_to_num(0.0)

    return partial(mistaken_heads, weigh=weigh)


def _heads_unstable(scores: Tensor, keep: Tensor) -> Tensor:
    parts = scores.exp() * keep
    return parts / parts.sum(-1, keepdim=True).clamp(min=1e-300)


def _heads_in_float32(scores: Tensor, keep: Tensor) -> Tensor:
    return heads_softmax(scores.float(), keep).to(scores.dtype)


def _heads_in_half(scores: Tensor, keep: Tensor) -> Tensor:
    return heads_softmax(scores.bfloat16(), keep).to(scores.dtype)


def _heads_without_softmax(scores: Tensor, keep: Tensor) -> Tensor:
    return scores.masked_fill(~keep, 0.0)


def _heads_dropped(scores: Tensor, keep: Tensor) -> Tensor:
    return torch.nn.functional.dropout(heads_softmax(scores, keep), 0.1)


HEADS_NUMBER_MISTAKES = (
    Mistake(
        "not_scaled",
        "mlc-ai/mlc-llm#3426",
        partial(mistaken_heads, scale=lambda call: 1.0),
        {
            "en": "the scores are not divided by √d_head",
            "ru": "оценки не делятся на √d_head",
        },
        {"en": "q @ k.mT / math.sqrt(d_head)", "ru": "q @ k.mT / math.sqrt(d_head)"},
    ),
    Mistake(
        "scaled_by_d_model",
        "lucidrains/vit-pytorch#65",
        partial(mistaken_heads, scale=lambda call: call.x.shape[-1] ** -0.5),
        {
            "en": "the scores are divided by √d_model instead of √d_head",
            "ru": "оценки делятся на √d_model вместо √d_head",
        },
        {"en": "d_head = d_model // n_heads", "ru": "d_head = d_model // n_heads"},
    ),
    Mistake(
        "scaled_twice",
        "policy-gradient/GRPO-Zero#10",
        partial(mistaken_heads, scale=lambda call: 1 / call.d_head),
        {
            "en": "the scores are divided by √d_head twice, that is by d_head",
            "ru": "оценки делятся на √d_head дважды, то есть на d_head",
        },
        {
            "en": "divide once; F.scaled_dot_product_attention does it itself",
            "ru": "делите один раз; F.scaled_dot_product_attention делит сама",
        },
    ),
    Mistake(
        "scaled_up",
        "esceptico/perceiver-io#9",
        partial(mistaken_heads, scale=lambda call: call.d_head**0.5),
        {
            "en": "the scores are multiplied by √d_head instead of divided",
            "ru": "оценки умножаются на √d_head, а не делятся",
        },
        {"en": "q @ k.mT * d_head**-0.5", "ru": "q @ k.mT * d_head**-0.5"},
    ),
    Mistake(
        "scaled_by_n_heads",
        "a mutation of right code",
        partial(mistaken_heads, scale=lambda call: call.n_heads**-0.5),
        {
            "en": "the scores are divided by √n_heads instead of √d_head",
            "ru": "оценки делятся на √n_heads вместо √d_head",
        },
        {
            "en": "after the split d_head is q.shape[-1]",
            "ru": "после разделения на головы d_head — это q.shape[-1]",
        },
    ),
    Mistake(
        "scaled_after_softmax",
        "FrancescoSaverioZuppichini/ViT#2",
        partial(
            mistaken_heads,
            scale=lambda call: 1.0,
            mix=lambda weights, v: weights @ v / math.sqrt(v.shape[-1]),
        ),
        {
            "en": "the weights are divided by √d_head, not the scores: their sum is not 1",
            "ru": "на √d_head делятся веса, а не оценки: в сумме веса не дают 1",
        },
        {"en": "(scores / √d_head).softmax(-1)", "ru": "(scores / √d_head).softmax(-1)"},
    ),
    Mistake(
        "softmax_over_queries",
        "labmlai/annotated_deep_learning_paper_implementations#146",
        _heads_over(-2),
        {
            "en": "the softmax runs over the queries, not over the keys",
            "ru": "softmax идёт по запросам, а не по ключам",
        },
        {"en": "scores.softmax(dim=-1)", "ru": "scores.softmax(dim=-1)"},
    ),
    Mistake(
        "softmax_over_heads",
        "FudanNLP/fastNLP#254",
        _heads_over(1),
        {
            "en": "the softmax runs over the heads, not over the keys",
            "ru": "softmax идёт по головам, а не по ключам",
        },
        {"en": "scores.softmax(dim=-1)", "ru": "scores.softmax(dim=-1)"},
    ),
    Mistake(
        "softmax_over_batch",
        "PetrochukM/PyTorch-NLP#2",
        _heads_over(0),
        {
            "en": "the softmax runs over the batch, not over the keys",
            "ru": "softmax идёт по пакету, а не по ключам",
        },
        {"en": "scores.softmax(dim=-1)", "ru": "scores.softmax(dim=-1)"},
    ),
    Mistake(
        "softmax_missing",
        "a mutation of right code",
        partial(mistaken_heads, weigh=_heads_without_softmax),
        {
            "en": "the scores themselves are used as weights, without a softmax",
            "ru": "весами служат сами оценки, без softmax",
        },
        {"en": "scores.softmax(dim=-1)", "ru": "scores.softmax(dim=-1)"},
    ),
    Mistake(
        "mask_after_softmax",
        "huggingface/pytorch-image-models#2236",
        partial(mistaken_heads, weigh=lambda scores, keep: scores.softmax(-1) * keep),
        {
            "en": "the mask comes after the softmax, and the weights left do not add up to 1",
            "ru": "маска стоит после softmax, и оставшиеся веса не дают в сумме 1",
        },
        {
            "en": "mask the scores with -inf, then softmax",
            "ru": "сначала -inf в оценки, затем softmax",
        },
    ),
    Mistake(
        "mask_added",
        "huggingface/transformers#41443",
        partial(mistaken_heads, weigh=lambda scores, keep: (scores + keep).softmax(-1)),
        {
            "en": "the bool mask is added to the scores as 0 and 1: nothing is hidden",
            "ru": "булева маска прибавляется к оценкам как 0 и 1: ничего не закрыто",
        },
        {
            "en": "scores.masked_fill(~allowed, -math.inf)",
            "ru": "scores.masked_fill(~allowed, -math.inf)",
        },
    ),
    Mistake(
        "mask_multiplied",
        "ilivans/tf-rnn-attention#11",
        partial(mistaken_heads, weigh=lambda scores, keep: (scores * keep).softmax(-1)),
        {
            "en": "hidden scores become 0 instead of -inf, and exp(0) = 1 keeps its share",
            "ru": "закрытые оценки становятся 0, а не -inf, и exp(0) = 1 сохраняет свою долю",
        },
        {
            "en": "scores.masked_fill(~allowed, -math.inf)",
            "ru": "scores.masked_fill(~allowed, -math.inf)",
        },
    ),
    Mistake(
        "finite_fill_small",
        "huggingface/transformers#10484",
        _heads_filled(-1e4),
        {
            "en": "hidden scores get about -1e4, which low scores fall below: padding is read",
            "ru": "закрытые оценки равны примерно -1e4, а бывают и ниже: дополнение читается",
        },
        {"en": "fill with -math.inf", "ru": "заполняйте -math.inf"},
    ),
    Mistake(
        "finite_fill_large",
        "hyunwoongko/transformer#40",
        _heads_filled(-1e9),
        {
            "en": "hidden scores get about -1e9 or another finite number, which lower scores beat",
            "ru": (
                "закрытые оценки равны примерно -1e9 или другому конечному числу, а бывают и ниже"
            ),
        },
        {"en": "fill with -math.inf", "ru": "заполняйте -math.inf"},
    ),
    Mistake(
        "exp_overflows",
        "pyg-team/pytorch_geometric#53",
        partial(mistaken_heads, weigh=_heads_unstable),
        {
            "en": "exp is taken without subtracting the row's maximum: it overflows or vanishes",
            "ru": "exp берётся без вычитания максимума строки: переполнение или нули",
        },
        {
            "en": "scores.softmax(-1), or exp(scores - max)",
            "ru": "scores.softmax(-1) или exp(scores - max)",
        },
    ),
    Mistake(
        "float32_inside",
        "huggingface/transformers#48459",
        partial(mistaken_heads, weigh=_heads_in_float32),
        {
            "en": "float64 goes through float32 inside, for example softmax(dtype=torch.float32)",
            "ru": "внутри float64 округляется до float32, например softmax(dtype=torch.float32)",
        },
        {
            "en": "softmax in promote_types(x.dtype, torch.float32)",
            "ru": "softmax в promote_types(x.dtype, torch.float32)",
        },
    ),
    Mistake(
        "half_inside",
        "karpathy/nanochat@16788ee",
        partial(mistaken_heads, weigh=_heads_in_half),
        {
            "en": "the numbers go through a 16-bit type inside",
            "ru": "внутри числа округляются до 16 бит",
        },
        {"en": "compute in x.dtype or wider", "ru": "считайте в x.dtype или точнее"},
    ),
    Mistake(
        "dropout_always_on",
        "karpathy/nanoGPT@7399dfe3",
        partial(mistaken_heads, weigh=_heads_dropped),
        {
            "en": "dropout is on in every call",
            "ru": "dropout включён при каждом вызове",
        },
        {"en": "dropout only if self.training", "ru": "dropout только при self.training"},
    ),
)
