"""Layer norms that take their statistics over the wrong numbers, or none at all."""

from collections.abc import Callable
from functools import partial

from torch import Tensor

from course_lib.contracts.engine.mistake import Mistake


def mistaken_norm(
    *,
    axes: Callable[[Tensor], tuple[int, ...]] = lambda x: (-1,),
    spread: Callable[..., Tensor] = lambda x, centred, axes: centred.square().mean(axes, True),
    root: Callable[[Tensor, float], Tensor] = lambda variance, eps: (variance + eps).sqrt(),
    divide: Callable[..., Tensor] = lambda x, centred, root: centred / root,
    affine: Callable[..., Tensor] = lambda y, gain, bias: y * gain + bias,
    default: float = 1e-5,
    choose: Callable[[float], float] = lambda eps: eps,
) -> Callable[..., Tensor]:
    """A layer norm with one of its steps replaced."""

    def layer_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float = default) -> Tensor:
        over = axes(x) if x.dim() > 1 else (-1,)
        centred = x - x.mean(over, True)
        spread_out = root(spread(x, centred, over), choose(eps))
        return affine(divide(x, centred, spread_out), gain, bias)

    return layer_norm


NORM_STATISTICS_MISTAKES = (
    Mistake(
        "statistics_over_time",
        "jadore801120/attention-is-all-you-need-pytorch#17",
        partial(mistaken_norm, axes=lambda x: (-2,)),
        {
            "en": "mean and variance run over the tokens, so the future leaks into the past",
            "ru": "среднее и дисперсия берутся по токенам, и будущее утекает в прошлое",
        },
        {"en": "x.mean(dim=-1, keepdim=True)", "ru": "x.mean(dim=-1, keepdim=True)"},
    ),
    Mistake(
        "statistics_over_item",
        "Qualcomm-AI-research/geometric-algebra-transformer#8",
        partial(mistaken_norm, axes=lambda x: tuple(range(1, x.dim())) if x.dim() > 2 else (-1,)),
        {
            "en": "all tokens of an item share one mean and variance: the future leaks",
            "ru": "у всех токенов элемента общие среднее и дисперсия: будущее утекает в прошлое",
        },
        {
            "en": "dim=-1 only: normalized_shape is x.shape[-1:]",
            "ru": "только dim=-1: normalized_shape — это x.shape[-1:]",
        },
    ),
    Mistake(
        "statistics_over_everything",
        "a mutation of right code",
        partial(mistaken_norm, axes=lambda x: tuple(range(x.dim()))),
        {
            "en": "one mean and one variance for the whole tensor",
            "ru": "одно среднее и одна дисперсия на весь тензор",
        },
        {"en": "x.mean(dim=-1, keepdim=True)", "ru": "x.mean(dim=-1, keepdim=True)"},
    ),
    Mistake(
        "statistics_over_batch",
        "a mutation of right code",
        partial(mistaken_norm, axes=lambda x: (0,)),
        {
            "en": "mean and variance run over the batch axis: an item depends on its neighbours",
            "ru": "среднее и дисперсия идут по оси пакета: элемент зависит от соседей",
        },
        {"en": "dim=-1, not dim=0", "ru": "dim=-1, а не dim=0"},
    ),
    Mistake(
        "batch_norm",
        "Kyubyong/transformer#40",
        partial(mistaken_norm, axes=lambda x: tuple(range(x.dim() - 1))),
        {
            "en": "each column is normalised over all tokens of the batch, as in BatchNorm",
            "ru": "каждый столбец нормализуется по всем токенам пакета, как в BatchNorm",
        },
        {"en": "x.mean(dim=-1, keepdim=True)", "ru": "x.mean(dim=-1, keepdim=True)"},
    ),
    Mistake(
        "variance_over_n_minus_1",
        "harvardnlp/annotated-transformer#119",
        partial(mistaken_norm, spread=lambda x, centred, axes: x.var(axes, True, keepdim=True)),
        {
            "en": "the variance is divided by d - 1: torch's own default in std and var",
            "ru": "дисперсия делится на d - 1: так по умолчанию считают std и var в torch",
        },
        {"en": "x.var(-1, correction=0)", "ru": "x.var(-1, correction=0)"},
    ),
    Mistake(
        "unbiased_std_plus_eps",
        "codertimo/BERT-pytorch#30",
        partial(
            mistaken_norm,
            spread=lambda x, centred, axes: x.var(axes, True, keepdim=True),
            root=lambda variance, eps: variance.sqrt() + eps,
        ),
        {
            "en": "x.std(-1) + eps, as in a well-known tutorial: d - 1, and eps outside the root",
            "ru": "x.std(-1) + eps, как в известном пособии: d - 1, и eps вне корня",
        },
        {
            "en": "(x.var(-1, correction=0) + eps).sqrt()",
            "ru": "(x.var(-1, correction=0) + eps).sqrt()",
        },
    ),
    Mistake(
        "sum_for_mean",
        "a mutation of right code",
        partial(
            mistaken_norm, spread=lambda x, centred, axes: centred.square().sum(axes, keepdim=True)
        ),
        {
            "en": "squares are summed and not averaged: rows get length 1, not variance 1",
            "ru": "квадраты сложены, а не усреднены: у строки длина 1, а не дисперсия 1",
        },
        {"en": "centred.square().mean(-1)", "ru": "centred.square().mean(-1)"},
    ),
    Mistake(
        "absolute_deviation",
        "a mutation of right code",
        partial(
            mistaken_norm,
            spread=lambda x, centred, axes: centred.abs().mean(axes, True).square(),
        ),
        {
            "en": "the spread is the mean absolute deviation instead of the standard one",
            "ru": "разброс — среднее абсолютное отклонение вместо стандартного",
        },
        {"en": "centred.square().mean(-1)", "ru": "centred.square().mean(-1)"},
    ),
    Mistake(
        "squares_not_centred",
        "a mutation of right code",
        partial(mistaken_norm, spread=lambda x, centred, axes: x.square().mean(axes, True)),
        {
            "en": "the mean is subtracted in the numerator, but the denominator squares x itself",
            "ru": "в числителе среднее вычтено, а в знаменателе квадраты самого x",
        },
        {"en": "(x - mean).square().mean(-1)", "ru": "(x - mean).square().mean(-1)"},
    ),
    Mistake(
        "squares_minus_square",
        "tracel-ai/burn#5607",
        partial(
            mistaken_norm,
            spread=lambda x, centred, axes: (
                x.square().mean(axes, True) - x.mean(axes, True).square()
            ),
        ),
        {
            "en": "the variance is E[x²] - E[x]², and a large mean cancels all its digits",
            "ru": "дисперсия равна E[x²] - E[x]², и при большом среднем все её цифры пропадают",
        },
        {"en": "(x - mean).square().mean(-1)", "ru": "(x - mean).square().mean(-1)"},
    ),
    Mistake(
        "rms_norm",
        "ggml-org/llama.cpp#173",
        partial(
            mistaken_norm,
            spread=lambda x, centred, axes: x.square().mean(axes, True),
            divide=lambda x, centred, root: x / root,
        ),
        {
            "en": "the mean is never subtracted: that is RMSNorm",
            "ru": "среднее не вычитается вовсе: это RMSNorm",
        },
        {"en": "x - x.mean(-1, keepdim=True) first", "ru": "сначала x - x.mean(-1, keepdim=True)"},
    ),
    Mistake(
        "rms_norm_without_bias",
        "ggml-org/llama.cpp#173",
        partial(
            mistaken_norm,
            spread=lambda x, centred, axes: x.square().mean(axes, True),
            divide=lambda x, centred, root: x / root,
            affine=lambda y, gain, bias: y * gain,
        ),
        {
            "en": "this is RMSNorm: no mean is subtracted and no bias is added",
            "ru": "это RMSNorm: среднее не вычитается и bias не прибавляется",
        },
        {
            "en": "(x - mean) / root * gain + bias",
            "ru": "(x - mean) / root * gain + bias",
        },
    ),
    Mistake(
        "numerator_not_centred",
        "huggingface/pytorch-image-models#2380",
        partial(mistaken_norm, divide=lambda x, centred, root: x / root),
        {
            "en": "x itself is divided by the standard deviation: the mean stays in it",
            "ru": "на стандартное отклонение делится сам x: среднее в нём остаётся",
        },
        {"en": "(x - mean) / root", "ru": "(x - mean) / root"},
    ),
)
