"""Layer norms that are wrong in one way each, as people reported them."""

from collections.abc import Callable

from torch import Tensor

from course_lib.contracts.engine.mistake import mistakes


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


# fmt: off
LAYER_NORM_MISTAKES = mistakes(
    mistaken_norm,
    statistics_over_time=("jadore801120/attention-is-all-you-need-pytorch#17",
        "mean and variance run over the tokens, so the future leaks into the past | "
        "среднее и дисперсия берутся по токенам, и будущее утекает в прошлое",
        "x.mean(dim=-1, keepdim=True)", {"axes": lambda x: (-2,)}),
    statistics_over_item=("Qualcomm-AI-research/geometric-algebra-transformer#8",
        "all tokens of an item share one mean and variance: the future leaks | "
        "у всех токенов элемента общие среднее и дисперсия: будущее утекает в прошлое",
        "dim=-1 only: normalized_shape is x.shape[-1:] | "
        "только dim=-1: normalized_shape — это x.shape[-1:]",
        {"axes": lambda x: tuple(range(1, x.dim())) if x.dim() > 2 else (-1,)}),
    statistics_over_everything=("",
        "one mean and one variance for the whole tensor | "
        "одно среднее и одна дисперсия на весь тензор",
        "x.mean(dim=-1, keepdim=True)", {"axes": lambda x: tuple(range(x.dim()))}),
    statistics_over_batch=("",
        "mean and variance run over the batch axis: an item depends on its neighbours | "
        "среднее и дисперсия идут по оси батча: элемент зависит от соседей",
        "dim=-1, not dim=0 | dim=-1, а не dim=0", {"axes": lambda x: (0,)}),
    batch_norm=("Kyubyong/transformer#40",
        "each column is normalised over all tokens of the batch, as in BatchNorm | "
        "каждый столбец нормализуется по всем токенам батча, как в BatchNorm",
        "x.mean(dim=-1, keepdim=True)", {"axes": lambda x: tuple(range(x.dim() - 1))}),
    variance_over_n_minus_1=("harvardnlp/annotated-transformer#119",
        "the variance is divided by d - 1: torch's own default in std and var | "
        "дисперсия делится на d - 1: так по умолчанию считают std и var в torch",
        "x.var(-1, correction=0)",
        {"spread": lambda x, centred, axes: x.var(axes, True, keepdim=True)}),
    unbiased_std_plus_eps=("codertimo/BERT-pytorch#30",
        "x.std(-1) + eps, as in a well-known tutorial: d - 1, and eps outside the root | "
        "x.std(-1) + eps, как в известном пособии: d - 1, и eps вне корня",
        "(x.var(-1, correction=0) + eps).sqrt()",
        {"spread": lambda x, centred, axes: x.var(axes, True, keepdim=True),
         "root": lambda variance, eps: variance.sqrt() + eps}),
    sum_for_mean=("",
        "squares are summed and not averaged: rows get length 1, not variance 1 | "
        "квадраты сложены, а не усреднены: у строки длина 1, а не дисперсия 1",
        "centred.square().mean(-1)",
        {"spread": lambda x, centred, axes: centred.square().sum(axes, keepdim=True)}),
    absolute_deviation=("",
        "the spread is the mean absolute deviation instead of the standard one | "
        "разброс — среднее абсолютное отклонение вместо стандартного",
        "centred.square().mean(-1)",
        {"spread": lambda x, centred, axes: centred.abs().mean(axes, True).square()}),
    squares_not_centred=("",
        "the mean is subtracted in the numerator, but the denominator squares x itself | "
        "в числителе среднее вычтено, а в знаменателе квадраты самого x",
        "(x - mean).square().mean(-1)",
        {"spread": lambda x, centred, axes: x.square().mean(axes, True)}),
    squares_minus_square=("tracel-ai/burn#5607",
        "the variance is E[x²] - E[x]², and a large mean cancels all its digits | "
        "дисперсия равна E[x²] - E[x]², и при большом среднем все её цифры пропадают",
        "(x - mean).square().mean(-1)",
        {"spread": lambda x, centred, axes:
            x.square().mean(axes, True) - x.mean(axes, True).square()}),
    rms_norm=("ggml-org/llama.cpp#173",
        "the mean is never subtracted: that is RMSNorm | среднее не вычитается вовсе: это RMSNorm",
        "x - x.mean(-1, keepdim=True) first | сначала x - x.mean(-1, keepdim=True)",
        {"spread": lambda x, centred, axes: x.square().mean(axes, True),
         "divide": lambda x, centred, root: x / root}),
    rms_norm_without_bias=("ggml-org/llama.cpp#173",
        "this is RMSNorm: no mean is subtracted and no bias is added | "
        "это RMSNorm: среднее не вычитается и bias не прибавляется",
        "(x - mean) / root * gain + bias",
        {"spread": lambda x, centred, axes: x.square().mean(axes, True),
         "divide": lambda x, centred, root: x / root,
         "affine": lambda y, gain, bias: y * gain}),
    numerator_not_centred=("huggingface/pytorch-image-models#2380",
        "x itself is divided by the standard deviation: the mean stays in it | "
        "на стандартное отклонение делится сам x: среднее в нём остаётся",
        "(x - mean) / root", {"divide": lambda x, centred, root: x / root}),
    eps_outside_the_root=("tracel-ai/burn#2185",
        "eps is added to the standard deviation, outside the root | "
        "eps прибавлен к стандартному отклонению, вне корня",
        "(variance + eps).sqrt()", {"root": lambda variance, eps: variance.sqrt() + eps}),
    root_of_deviation=("hyunwoongko/transformer#7",
        "the root is taken twice: of the standard deviation, not of the variance | "
        "корень взят дважды: из стандартного отклонения, а не из дисперсии",
        "(variance + eps).sqrt()", {"root": lambda variance, eps: (variance.sqrt() + eps).sqrt()}),
    squared_for_root=("131250208/TPlinker-joint-extraction#37",
        "the variance is squared, ** 2, where its root is wanted, ** 0.5 | "
        "дисперсия возведена в квадрат, ** 2, вместо корня, ** 0.5",
        "(variance + eps) ** 0.5", {"root": lambda variance, eps: (variance + eps) ** 2}),
    root_forgotten=("",
        "the row is divided by its variance, not by the root of it | "
        "строка делится на свою дисперсию, а не на корень из неё",
        "/ (variance + eps).sqrt()", {"root": lambda variance, eps: variance + eps}),
    divided_by_rsqrt=("mosaicml/llm-foundry#371",
        "the row is divided by rsqrt, which is already one over the root | "
        "строка делится на rsqrt, а это уже единица, делённая на корень",
        "centred * (variance + eps).rsqrt()",
        {"root": lambda variance, eps: (variance + eps).rsqrt()}),
    eps_as_floor=("",
        "eps is a floor under the variance, max(variance, eps), and not added to it | "
        "eps — нижняя граница дисперсии, max(variance, eps), а не слагаемое",
        "variance + eps", {"root": lambda variance, eps: variance.clamp(min=eps).sqrt()}),
    eps_as_floor_of_deviation=("",
        "eps is a floor under the standard deviation | "
        "eps — нижняя граница стандартного отклонения",
        "(variance + eps).sqrt()", {"root": lambda variance, eps: variance.sqrt().clamp(min=eps)}),
    eps_squared=("",
        "eps is squared under the root | eps под корнем возведён в квадрат",
        "variance + eps", {"choose": lambda eps: eps ** 2}),
    eps_twice=("",
        "eps is added twice: under the root and beside it | "
        "eps прибавлен дважды: под корнем и рядом с ним",
        "(variance + eps).sqrt()", {"root": lambda variance, eps: (variance + eps).sqrt() + eps}),
    eps_left_out=("torchcvnn/torchcvnn#32",
        "eps is not used: a token of equal numbers becomes 0 / 0 | "
        "eps не используется: токен из равных чисел даёт 0 / 0",
        "(variance + eps).sqrt()", {"choose": lambda eps: 0.0}),
    eps_fixed=("apple/axlearn#397",
        "eps is always 1e-5, whatever the caller passes | eps всегда 1e-5, какой бы ни передали",
        "variance + eps", {"choose": lambda eps: 1e-05}),
    default_eps_1e_12=("wenet-e2e/wenet#907",
        "the default eps is 1e-12 | eps по умолчанию равен 1e-12",
        "eps=1e-5", {"default": 1e-12}),
    default_eps_1e_6=("huggingface/candle#271",
        "the default eps is 1e-6 | eps по умолчанию равен 1e-6",
        "eps=1e-5", {"default": 1e-06}),
    default_eps_1e_3=("",
        "the default eps is 1e-3 | eps по умолчанию равен 1e-3",
        "eps=1e-5", {"default": 0.001}),
    gain_forgotten=("",
        "gain is not used | gain не используется",
        "y * gain + bias", {"affine": lambda y, gain, bias: y + bias}),
    bias_forgotten=("",
        "bias is not used | bias не используется",
        "y * gain + bias", {"affine": lambda y, gain, bias: y * gain}),
    affine_forgotten=("",
        "neither gain nor bias is used | не используются ни gain, ни bias",
        "y * gain + bias", {"affine": lambda y, gain, bias: y}),
    bias_before_gain=("",
        "bias is added before gain multiplies | bias прибавлен до умножения на gain",
        "y * gain + bias", {"affine": lambda y, gain, bias: (y + bias) * gain}),
    gain_and_bias_swapped=("",
        "gain and bias are swapped | gain и bias переставлены",
        "y * gain + bias", {"affine": lambda y, gain, bias: y * bias + gain}),
    bias_subtracted=("",
        "bias is subtracted | bias вычитается",
        "y * gain + bias", {"affine": lambda y, gain, bias: y * gain - bias}),
    one_plus_gain=("utensils/mold#1078",
        "the factor is 1 + gain, as in Gemma, and here gain is the factor itself | "
        "множитель 1 + gain, как в Gemma, а здесь множитель — сам gain",
        "y * gain + bias", {"affine": lambda y, gain, bias: y * (1 + gain) + bias}),
    first_gain_for_all=("microsoft/CNTK#2376",
        "gain and bias act as single numbers, not column by column | "
        "gain и bias действуют как одно число, а не по столбцам",
        "gain [d] and bias [d], elementwise | gain [d] и bias [d], поэлементно",
        {"affine": lambda y, gain, bias: y * gain[0] + bias[0]}),
    half_inside=("pytorch/pytorch#66707",
        "a step is computed in float16: three digits are left | "
        "один из шагов идёт в float16: от чисел остаются три знака",
        "stay in x's own dtype or a wider one | считайте в типе x или в более точном",
        {"divide": lambda x, centred, root: (centred / root).half().to(x.dtype)}),
    gradient_of_flat_rows=("",
        "a bare standard deviation is squared again: at 0 its gradient is NaN | "
        "стандартное отклонение без eps снова возводят в квадрат: в нуле градиент — NaN",
        "x.var(-1, correction=0), not std ** 2 | x.var(-1, correction=0), а не std ** 2",
        {"root": lambda variance, eps: (variance.sqrt() ** 2 + eps).sqrt()}),
    statistics_detached=("",
        "mean and variance are detached: the gradient takes them for constants | "
        "среднее и дисперсия отсоединены: градиент считает их постоянными",
        "no detach, no no_grad | без detach и без no_grad", lambda: _norm_detached),
    norm_writes_into_x=("",
        "x is centred and scaled in place: the residual stream of the caller changes | "
        "x центрируется и делится на месте: переданный остаточный поток меняется",
        "x = x - mean, not x -= mean | x = x - mean, а не x -= mean", lambda: _norm_writing),
    norm_remembers=("",
        "the result depends on earlier calls: running statistics, a buffer or noise | "
        "результат зависит от прежних вызовов: накопленная статистика, буфер или шум",
        "statistics of this x only | статистики только этого x", _norm_remembering),
)
# fmt: on
