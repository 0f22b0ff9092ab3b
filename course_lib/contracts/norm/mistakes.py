"""Layer norms that are wrong in one way each, as people reported them."""

from collections.abc import Callable
from functools import partial

from torch import Tensor

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.norm._norm_steps import NORM_STATISTICS_MISTAKES, mistaken_norm


def _norm_detached(x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    still = x.detach()
    root = (still.var(-1, unbiased=False, keepdim=True) + eps).sqrt()
    return (x - still.mean(-1, keepdim=True)) / root * gain + bias


def _norm_writing(x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    x -= x.mean(-1, keepdim=True)
    x /= (x.square().mean(-1, keepdim=True) + eps).sqrt()
    return x * gain + bias


def _norm_remembering() -> Callable[..., Tensor]:
    running: dict[int, float] = {}

    def layer_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
        d = x.shape[-1]
        centred = x - x.mean(-1, keepdim=True)
        now = centred.detach().square().mean().item()
        running[d] = 0.9 * running.get(d, 1.0) + 0.1 * now
        return centred / (running[d] + eps) ** 0.5 * gain + bias

    return layer_norm


LAYER_NORM_MISTAKES = (
    *NORM_STATISTICS_MISTAKES,
    Mistake(
        "eps_outside_the_root",
        "tracel-ai/burn#2185",
        partial(mistaken_norm, root=lambda variance, eps: variance.sqrt() + eps),
        {
            "en": "eps is added to the standard deviation, outside the root",
            "ru": "eps прибавлен к стандартному отклонению, вне корня",
        },
        {"en": "(variance + eps).sqrt()", "ru": "(variance + eps).sqrt()"},
    ),
    Mistake(
        "root_of_deviation",
        "hyunwoongko/transformer#7",
        partial(mistaken_norm, root=lambda variance, eps: (variance.sqrt() + eps).sqrt()),
        {
            "en": "the root is taken twice: of the standard deviation, not of the variance",
            "ru": "корень взят дважды: из стандартного отклонения, а не из дисперсии",
        },
        {"en": "(variance + eps).sqrt()", "ru": "(variance + eps).sqrt()"},
    ),
    Mistake(
        "squared_for_root",
        "131250208/TPlinker-joint-extraction#37",
        partial(mistaken_norm, root=lambda variance, eps: (variance + eps) ** 2),
        {
            "en": "the variance is squared, ** 2, where its root is wanted, ** 0.5",
            "ru": "дисперсия возведена в квадрат, ** 2, вместо корня, ** 0.5",
        },
        {"en": "(variance + eps) ** 0.5", "ru": "(variance + eps) ** 0.5"},
    ),
    Mistake(
        "root_forgotten",
        "a mutation of right code",
        partial(mistaken_norm, root=lambda variance, eps: variance + eps),
        {
            "en": "the row is divided by its variance, not by the root of it",
            "ru": "строка делится на свою дисперсию, а не на корень из неё",
        },
        {"en": "/ (variance + eps).sqrt()", "ru": "/ (variance + eps).sqrt()"},
    ),
    Mistake(
        "divided_by_rsqrt",
        "mosaicml/llm-foundry#371",
        partial(mistaken_norm, root=lambda variance, eps: (variance + eps).rsqrt()),
        {
            "en": "the row is divided by rsqrt, which is already one over the root",
            "ru": "строка делится на rsqrt, а это уже единица, делённая на корень",
        },
        {"en": "centred * (variance + eps).rsqrt()", "ru": "centred * (variance + eps).rsqrt()"},
    ),
    Mistake(
        "eps_as_floor",
        "a mutation of right code",
        partial(mistaken_norm, root=lambda variance, eps: variance.clamp(min=eps).sqrt()),
        {
            "en": "eps is a floor under the variance, max(variance, eps), and not added to it",
            "ru": "eps — нижняя граница дисперсии, max(variance, eps), а не слагаемое",
        },
        {"en": "variance + eps", "ru": "variance + eps"},
    ),
    Mistake(
        "eps_as_floor_of_deviation",
        "a mutation of right code",
        partial(mistaken_norm, root=lambda variance, eps: variance.sqrt().clamp(min=eps)),
        {
            "en": "eps is a floor under the standard deviation",
            "ru": "eps — нижняя граница стандартного отклонения",
        },
        {"en": "(variance + eps).sqrt()", "ru": "(variance + eps).sqrt()"},
    ),
    Mistake(
        "eps_squared",
        "a mutation of right code",
        partial(mistaken_norm, choose=lambda eps: eps**2),
        {"en": "eps is squared under the root", "ru": "eps под корнем возведён в квадрат"},
        {"en": "variance + eps", "ru": "variance + eps"},
    ),
    Mistake(
        "eps_twice",
        "a mutation of right code",
        partial(mistaken_norm, root=lambda variance, eps: (variance + eps).sqrt() + eps),
        {
            "en": "eps is added twice: under the root and beside it",
            "ru": "eps прибавлен дважды: под корнем и рядом с ним",
        },
        {"en": "(variance + eps).sqrt()", "ru": "(variance + eps).sqrt()"},
    ),
    Mistake(
        "eps_left_out",
        "torchcvnn/torchcvnn#32",
        partial(mistaken_norm, choose=lambda eps: 0.0),
        {
            "en": "eps is not used: a token of equal numbers becomes 0 / 0",
            "ru": "eps не используется: токен из равных чисел даёт 0 / 0",
        },
        {"en": "(variance + eps).sqrt()", "ru": "(variance + eps).sqrt()"},
    ),
    Mistake(
        "eps_fixed",
        "apple/axlearn#397",
        partial(mistaken_norm, choose=lambda eps: 1e-5),
        {
            "en": "eps is always 1e-5, whatever the caller passes",
            "ru": "eps всегда 1e-5, какой бы ни передали",
        },
        {"en": "variance + eps", "ru": "variance + eps"},
    ),
    Mistake(
        "default_eps_1e_12",
        "wenet-e2e/wenet#907",
        partial(mistaken_norm, default=1e-12),
        {"en": "the default eps is 1e-12", "ru": "eps по умолчанию равен 1e-12"},
        {"en": "eps=1e-5", "ru": "eps=1e-5"},
    ),
    Mistake(
        "default_eps_1e_6",
        "huggingface/candle#271",
        partial(mistaken_norm, default=1e-6),
        {"en": "the default eps is 1e-6", "ru": "eps по умолчанию равен 1e-6"},
        {"en": "eps=1e-5", "ru": "eps=1e-5"},
    ),
    Mistake(
        "default_eps_1e_3",
        "a mutation of right code",
        partial(mistaken_norm, default=1e-3),
        {"en": "the default eps is 1e-3", "ru": "eps по умолчанию равен 1e-3"},
        {"en": "eps=1e-5", "ru": "eps=1e-5"},
    ),
    Mistake(
        "gain_forgotten",
        "a mutation of right code",
        partial(mistaken_norm, affine=lambda y, gain, bias: y + bias),
        {"en": "gain is not used", "ru": "gain не используется"},
        {"en": "y * gain + bias", "ru": "y * gain + bias"},
    ),
    Mistake(
        "bias_forgotten",
        "a mutation of right code",
        partial(mistaken_norm, affine=lambda y, gain, bias: y * gain),
        {"en": "bias is not used", "ru": "bias не используется"},
        {"en": "y * gain + bias", "ru": "y * gain + bias"},
    ),
    Mistake(
        "affine_forgotten",
        "a mutation of right code",
        partial(mistaken_norm, affine=lambda y, gain, bias: y),
        {"en": "neither gain nor bias is used", "ru": "не используются ни gain, ни bias"},
        {"en": "y * gain + bias", "ru": "y * gain + bias"},
    ),
    Mistake(
        "bias_before_gain",
        "a mutation of right code",
        partial(mistaken_norm, affine=lambda y, gain, bias: (y + bias) * gain),
        {"en": "bias is added before gain multiplies", "ru": "bias прибавлен до умножения на gain"},
        {"en": "y * gain + bias", "ru": "y * gain + bias"},
    ),
    Mistake(
        "gain_and_bias_swapped",
        "a mutation of right code",
        partial(mistaken_norm, affine=lambda y, gain, bias: y * bias + gain),
        {"en": "gain and bias are swapped", "ru": "gain и bias переставлены"},
        {"en": "y * gain + bias", "ru": "y * gain + bias"},
    ),
    Mistake(
        "bias_subtracted",
        "a mutation of right code",
        partial(mistaken_norm, affine=lambda y, gain, bias: y * gain - bias),
        {"en": "bias is subtracted", "ru": "bias вычитается"},
        {"en": "y * gain + bias", "ru": "y * gain + bias"},
    ),
    Mistake(
        "one_plus_gain",
        "utensils/mold#1078",
        partial(mistaken_norm, affine=lambda y, gain, bias: y * (1 + gain) + bias),
        {
            "en": "the factor is 1 + gain, as in Gemma, and here gain is the factor itself",
            "ru": "множитель 1 + gain, как в Gemma, а здесь множитель — сам gain",
        },
        {"en": "y * gain + bias", "ru": "y * gain + bias"},
    ),
    Mistake(
        "first_gain_for_all",
        "microsoft/CNTK#2376",
        partial(mistaken_norm, affine=lambda y, gain, bias: y * gain[0] + bias[0]),
        {
            "en": "gain and bias act as single numbers, not column by column",
            "ru": "gain и bias действуют как одно число, а не по столбцам",
        },
        {"en": "gain [d] and bias [d], elementwise", "ru": "gain [d] и bias [d], поэлементно"},
    ),
    Mistake(
        "half_inside",
        "pytorch/pytorch#66707",
        partial(
            mistaken_norm,
            divide=lambda x, centred, root: (centred / root).half().to(x.dtype),
        ),
        {
            "en": "a step is computed in float16: three digits are left",
            "ru": "один из шагов идёт в float16: от чисел остаются три знака",
        },
        {
            "en": "stay in x's own dtype or a wider one",
            "ru": "считайте в типе x или в более точном",
        },
    ),
    Mistake(
        "gradient_of_flat_rows",
        "a mutation of right code",
        partial(mistaken_norm, root=lambda variance, eps: (variance.sqrt() ** 2 + eps).sqrt()),
        {
            "en": "a bare standard deviation is squared again: at 0 its gradient is NaN",
            "ru": "стандартное отклонение без eps снова возводят в квадрат: в нуле градиент — NaN",
        },
        {
            "en": "x.var(-1, correction=0), not std ** 2",
            "ru": "x.var(-1, correction=0), а не std ** 2",
        },
    ),
    Mistake(
        "statistics_detached",
        "a mutation of right code",
        lambda: _norm_detached,
        {
            "en": "mean and variance are detached: the gradient takes them for constants",
            "ru": "среднее и дисперсия отсоединены: градиент считает их постоянными",
        },
        {"en": "no detach, no no_grad", "ru": "без detach и без no_grad"},
    ),
    Mistake(
        "norm_writes_into_x",
        "a mutation of right code",
        lambda: _norm_writing,
        {
            "en": "x is centred and scaled in place: the residual stream of the caller changes",
            "ru": "x центрируется и делится на месте: переданный остаточный поток меняется",
        },
        {"en": "x = x - mean, not x -= mean", "ru": "x = x - mean, а не x -= mean"},
    ),
    Mistake(
        "norm_remembers",
        "a mutation of right code",
        _norm_remembering,
        {
            "en": "the result depends on earlier calls: running statistics, a buffer or noise",
            "ru": "результат зависит от прежних вызовов: накопленная статистика, буфер или шум",
        },
        {"en": "statistics of this x only", "ru": "статистики только этого x"},
    ),
)
