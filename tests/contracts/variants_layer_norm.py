"""Layer norms, right and wrong, beyond the catalogue."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.contracts import check_layer_norm_contract
from course_lib.contracts.norm.mistakes import LAYER_NORM_MISTAKES
from course_lib.layers import layer_norm

from .trial import Fresh, named_by

CHECK, CATALOGUE = check_layer_norm_contract, LAYER_NORM_MISTAKES
CLAUSES = [
    *("result_form", "arguments_unchanged", "repeatable", "each_token_alone", "known_rows"),
    *("gain_and_bias", "default_eps", "any_eps", "constant_rows", "any_shape", "any_size"),
    *("large_mean", "float32_inputs", "float32_large_mean", "gradients"),
]


def norm_plain(x, gain, bias, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return gain * (x - mean) / (variance + eps) ** 0.5 + bias


def norm_by_var(x, gain, bias, eps=1e-5):
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + eps) * gain + bias


def norm_by_library(x, gain, bias, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps)


def norm_by_module(x, gain, bias, eps=1e-5):
    module = torch.nn.LayerNorm(x.shape[-1], eps=eps, elementwise_affine=False)
    return torch.addcmul(bias, module(x), gain)


def norm_by_vmap(x, gain, bias, eps=1e-5):
    def of_row(row):
        centred = row - row.mean()
        return torch.addcmul(bias, centred * (centred.square().mean() + eps).rsqrt(), gain)

    return torch.vmap(of_row)(x.reshape(-1, x.shape[-1])).reshape(x.shape)


def norm_by_projection(x, gain, bias, eps=1e-5):
    """Centre by a matrix, then divide by a length."""
    d = x.shape[-1]
    centre = torch.eye(d, dtype=x.dtype) - torch.full((d, d), 1 / d, dtype=x.dtype)
    centred = (x.double() @ centre.double()).to(x.dtype)
    length = torch.sqrt((centred * centred).sum(-1) + d * eps)
    return torch.einsum("...d,d->...d", centred / length[..., None] * math.sqrt(d), gain) + bias


def norm_shifted_moments(x, gain, bias, eps=1e-5):
    """E[y²] - E[y]² is safe once a number of the row itself is taken off: y = x - x₀."""
    y = x - x[..., :1]
    mean = y.mean(-1, keepdim=True)
    centred = y - mean
    variance = (y * y).mean(-1, keepdim=True) - mean * mean
    return centred / torch.sqrt(variance.clamp(min=0) + eps) * gain + bias


def norm_row_by_row(x, gain, bias, eps=1e-5):
    rows = x.reshape(-1, x.shape[-1]).unbind(0)
    done = []
    for row in rows:
        centred = row - row.sum() / len(row)
        spread = (centred.dot(centred) / len(row) + eps).sqrt()
        done.append(centred / spread * gain + bias)
    return torch.stack(done).reshape(x.shape)


def norm_widened(x, gain, bias, eps=1e-5):
    """In float64 whatever came; the result as wide as x."""
    wide = x.double()
    centred = wide - wide.mean(dim=-1, keepdim=True)
    done = centred / centred.square().mean(dim=-1, keepdim=True).add(eps).sqrt()
    return (done * gain.double() + bias.double()).to(x.dtype)


def norm_left_wide(x, gain, bias, eps=1e-5):
    return norm_plain(x.double(), gain, bias, eps)


def norm_in_numpy(x, gain, bias, eps=1e-5):
    rows = np.asarray(x.detach())
    centred = rows - rows.mean(axis=-1, keepdims=True)
    done = centred / np.sqrt(rows.var(axis=-1, keepdims=True) + eps)
    return torch.from_numpy(done * np.asarray(gain.detach()) + np.asarray(bias.detach()))


def norm_in_lists(x, gain, bias, eps=1e-5):
    gains, biases = gain.tolist(), bias.tolist()
    done = []
    for row in x.reshape(-1, x.shape[-1]).tolist():
        mean = sum(row) / len(row)
        root = math.sqrt(sum((n - mean) ** 2 for n in row) / len(row) + eps)
        done.append([(n - mean) / root * g + b for n, g, b in zip(row, gains, biases, strict=True)])
    return torch.tensor(done, dtype=x.dtype).reshape(x.shape)


class NormFunction(torch.autograd.Function):
    """With a backward written out."""

    @staticmethod
    def forward(ctx, x, gain, bias, eps):
        centred = x - x.mean(-1, keepdim=True)
        root = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
        ctx.save_for_backward(centred / root, root, gain)
        return centred / root * gain + bias

    @staticmethod
    def backward(ctx, slope):
        y, root, gain = ctx.saved_tensors
        pull = slope * gain
        along = (pull * y).mean(-1, keepdim=True)
        of_x = (pull - pull.mean(-1, keepdim=True) - y * along) / root
        d = y.shape[-1]
        of_gain, of_bias = ((slope * y).reshape(-1, d).sum(0), slope.reshape(-1, d).sum(0))
        return of_x, of_gain, of_bias, None


def norm_by_own_backward(x, gain, bias, eps=1e-5):
    return NormFunction.apply(x, gain, bias, eps)


def changed(change):
    """What is changed in the arguments of a right layer norm."""

    def norm(x, gain, bias, eps=1e-5):
        return norm_plain(*change(x, gain, bias, eps))

    return norm


def spoilt(change):
    def norm(x, gain, bias, eps=1e-5):
        return change(norm_plain(x, gain, bias, eps), x)

    return norm


def annotated(x, gain, bias, eps=1e-6):
    """As in a well-known tutorial: three mistakes at once."""
    return gain * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps) + bias


def median_for_mean(x, gain, bias, eps=1e-5):
    centred = x - x.median(-1, keepdim=True).values
    return gain * centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt() + bias


def by_range(x, gain, bias, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    width = x.amax(-1, keepdim=True) - x.amin(-1, keepdim=True)
    return gain * centred / (width + eps) + bias


def last_row_kept():
    """One buffer, filled in again by each call of the same shape."""
    buffers = {}

    def norm(x, gain, bias, eps=1e-5):
        done = norm_plain(x, gain, bias, eps)
        if x.requires_grad:
            return done
        return buffers.setdefault(x.shape, torch.empty_like(done)).copy_(done)

    return norm


def first_eps_kept():
    kept = {}

    def norm(x, gain, bias, eps=1e-5):
        return norm_plain(x, gain, bias, kept.setdefault(x.shape, eps))

    return norm


def dropout_left_on(x, gain, bias, eps=1e-5):
    return F.dropout(norm_plain(x, gain, bias, eps), 0.1)


def moments_in_float32(x, gain, bias, eps=1e-5):
    """E[x²] - E[x]², but only where the input is narrow."""
    if x.dtype == torch.float64:
        return norm_plain(x, gain, bias, eps)
    mean = x.mean(-1, keepdim=True)
    variance = (x * x).mean(-1, keepdim=True) - mean * mean
    return gain * (x - mean) / (variance.clamp(min=0) + eps).sqrt() + bias


def moments_widened(x, gain, bias, eps=1e-5):
    wide = x.double()
    mean = wide.mean(-1, keepdim=True)
    variance = (wide * wide).mean(-1, keepdim=True) - mean * mean
    return (gain * (wide - mean) / (variance.clamp(min=0) + eps).sqrt() + bias).to(x.dtype)


def nan_of_flat_rows(x, gain, bias, eps=1e-5):
    variance = x.var(-1, unbiased=False, keepdim=True)
    return norm_plain(x, gain, bias, eps) * (variance / variance)


def flat_rows_skipped(x, gain, bias, eps=1e-5):
    flat = x.var(-1, unbiased=False, keepdim=True) == 0
    return torch.where(flat, torch.zeros_like(x), norm_plain(x, gain, bias, eps))


def gain_of_batch(x, gain, bias, eps=1e-5):
    """gain meets the token axis where it fits there."""
    if x.dim() > 1 and x.shape[-2] == len(gain):
        return norm_plain(x, torch.ones_like(gain), bias, eps) * gain[:, None]
    return norm_plain(x, gain, bias, eps)


def gain_without_gradient(x, gain, bias, eps=1e-5):
    return norm_plain(x, gain.detach(), bias, eps)


def variance_without_gradient(x, gain, bias, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    root = (centred.square().mean(-1, keepdim=True) + eps).sqrt().detach()
    return gain * centred / root + bias


def norm_by_native(x, gain, bias, eps=1e-5):
    """These moments are not differentiable."""
    mean, root = torch.native_layer_norm(x, x.shape[-1:], None, None, eps)[1:]
    return torch.mul((x - mean) * root, gain).add(bias)


def one_item_flat(x, gain, bias, eps=1e-5):
    """Statistics over tokens too, in a batch of one."""
    if x.dim() != 3 or x.shape[0] > 1:
        return norm_plain(x, gain, bias, eps)
    centred = x - x.mean()
    return centred / (centred.square().mean() + eps) ** 0.5 * gain + bias


def norm_as_one_group(x, gain, bias, eps=1e-5):
    """As one group of channels; the library refuses a single number."""
    width = x.shape[-1]
    return F.group_norm(x.reshape(-1, width), 1, gain, bias, eps).reshape(x.shape)


def norm_as_channels(x, gain, bias, eps=1e-5):
    """Tokens as the channels of one batch; the library refuses rows of one number."""
    rows = x.reshape(-1, x.shape[-1])
    return F.instance_norm(rows[None], eps=eps).reshape(x.shape) * gain + bias


RIGHT = {
    "the course's own": layer_norm,
    "plain": norm_plain,
    "by var_mean": norm_by_var,
    "the library's": norm_by_library,
    "a module": norm_by_module,
    "vmap over rows": norm_by_vmap,
    "by projection": norm_by_projection,
    "shifted moments": norm_shifted_moments,
    "row by row": norm_row_by_row,
    "in float64": norm_widened,
    "wider than x": norm_left_wide,
    "in numpy": norm_in_numpy,
    "in lists": norm_in_lists,
    "its own backward": norm_by_own_backward,
    "one group of channels": norm_as_one_group,
    "tokens as channels": norm_as_channels,
}
WRONG = {
    "numpy array": (lambda *a, **e: norm_plain(*a, **e).numpy(), "result_form"),
    "nothing": (lambda *a, **e: None, "result_form"),
    "flat": (lambda *a, **e: norm_plain(*a, **e).flatten(), "result_form"),
    "a batch axis": (lambda *a, **e: norm_plain(*a, **e)[None], "result_form"),
    "narrowed": (lambda *a, **e: norm_plain(*a, **e).float(), "result_form"),
    "whole numbers": (lambda *a, **e: norm_plain(*a, **e).long(), "result_form"),
    "all not a number": (spoilt(lambda y, x: y / 0 * 0), "result_form"),
    "gain rescaled in place": (
        changed(lambda x, gain, bias, eps: (x, gain.mul_(1.5), bias, eps)),
        "arguments_unchanged",
    ),
    "result written into x": (spoilt(lambda y, x: x.copy_(y)), "arguments_unchanged"),
    "one buffer": (Fresh(last_row_kept), "repeatable"),
    "first eps kept": (Fresh(first_eps_kept), "known_rows"),
    "dropout": (dropout_left_on, "repeatable"),
    "noise": (spoilt(lambda y, x: y + 1e-6 * torch.randn_like(y)), "repeatable"),
    "first token for all": (
        spoilt(lambda y, x: y + 0.1 * x[..., :1, :] if x.dim() > 1 else y),
        "each_token_alone",
    ),
    "last item decides": (spoilt(lambda y, x: y + 1e-3 * x[-1].mean()), "each_token_alone"),
    "a tutorial": (annotated, "known_rows"),
    "median for mean": (median_for_mean, "known_rows"),
    "by the range": (by_range, "known_rows"),
    "clipped at 1.2": (spoilt(lambda y, x: y.clamp(-1.2, 1.2)), "known_rows"),
    "in float32": (
        lambda x, gain, bias, eps=1e-5: norm_plain(x.float(), gain, bias, eps).double(),
        "gain_and_bias",
    ),
    "clipped at 10": (
        lambda x, gain, bias, eps=1e-5: (
            norm_plain(x, torch.ones_like(gain), torch.zeros_like(bias), eps).clamp(-10, 10) * gain
            + bias
        ),
        "any_shape",
    ),
    "one item taken for one token": (one_item_flat, "any_shape"),
    "unbiased from 512 numbers": (
        lambda x, gain, bias, eps=1e-5: (
            norm_plain(x, gain * ((x.shape[-1] - 1) / x.shape[-1]) ** 0.5, bias, eps)
            if x.shape[-1] >= 512
            else norm_plain(x, gain, bias, eps)
        ),
        "any_shape",
    ),
    "scaled far from 0": (
        spoilt(lambda y, x: 1.01 * y if (x.abs() > 1e5).any() else y),
        "any_size",
    ),
    "wrong for many tokens": (
        spoilt(lambda y, x: 1.01 * y if x.numel() > 100 * x.shape[-1] else y),
        "any_shape",
    ),
    "wrong for five axes": (spoilt(lambda y, x: 1.01 * y if x.dim() > 4 else y), "any_shape"),
    "wrong without gradients": (
        lambda x, gain, bias, eps=1e-5: (
            norm_plain(x, gain, bias, eps)
            if torch.is_grad_enabled()
            else norm_plain(x, gain, 0 * bias, eps)
        ),
        "gain_and_bias",
    ),
    "negated": (
        changed(lambda x, gain, bias, eps: (-x, gain, bias, eps)),
        "known_rows",
    ),
    "gain twice": (
        changed(lambda x, gain, bias, eps: (x, gain * gain, bias, eps)),
        "gain_and_bias",
    ),
    "gain reversed": (
        changed(lambda x, gain, bias, eps: (x, gain.flip(0), bias, eps)),
        "gain_and_bias",
    ),
    "bias scaled by gain": (
        changed(lambda x, gain, bias, eps: (x, gain, bias * gain, eps)),
        "gain_and_bias",
    ),
    "default eps 2e-5": (lambda x, g, b, eps=2e-5: norm_plain(x, g, b, eps), "default_eps"),
    "no eps is none": (
        lambda x, g, b, eps=None: norm_plain(x, g, b, eps if eps else 0.0),
        "default_eps",
    ),
    "eps not below 1e-8": (
        changed(lambda x, gain, bias, eps: (x, gain, bias, max(eps, 1e-8))),
        "any_eps",
    ),
    "eps at most a tenth": (
        changed(lambda x, gain, bias, eps: (x, gain, bias, min(eps, 0.1) if eps < 1 else eps)),
        "any_eps",
    ),
    "eps under a changed name": (
        lambda x, gain, bias, epsilon=1e-5: norm_plain(x, gain, bias, epsilon),
        "any_eps",
    ),
    "gain along the tokens": (gain_of_batch, "each_token_alone"),
    "statistics of 64 columns": (
        spoilt(lambda y, x: y if x.shape[-1] <= 64 else y * 1.01),
        "any_shape",
    ),
    "clipped input": (
        changed(lambda x, gain, bias, eps: (x.clamp(-1e4, 1e4), gain, bias, eps)),
        "any_size",
    ),
    "a fourth power on the way": (
        lambda x, g, b, eps=1e-5: norm_plain(x, g, b, eps) + 0 * x.pow(4).mean(-1, keepdim=True),
        "any_size",
    ),
    "flat rows not a number": (nan_of_flat_rows, "constant_rows"),
    "flat rows without bias": (flat_rows_skipped, "constant_rows"),
    "moments in float64": (moments_widened, "large_mean"),
    "moments in float32": (moments_in_float32, "float32_large_mean"),
    "float32 through float16": (
        lambda x, g, b, eps=1e-5: (
            norm_plain(x, g, b, eps)
            if x.dtype == torch.float64
            else norm_plain(x, g, b, eps).half().float()
        ),
        "float32_inputs",
    ),
    "native moments": (norm_by_native, "gradients"),
    "no graph": (torch.no_grad()(norm_plain), "gradients"),
    "gain without a gradient": (gain_without_gradient, "gradients"),
    "variance without a gradient": (variance_without_gradient, "gradients"),
    "a new tensor": (lambda *a, **e: norm_plain(*a, **e).detach().clone(), "gradients"),
    "fails in three axes": (
        lambda x, g, b, eps=1e-5: torch.bmm(x[None], x[None]) if x.dim() == 2 else x + g,
        "result_form",
    ),
}
MISTAKES = named_by(
    arguments_unchanged="norm_writes_into_x",
    repeatable="norm_remembers",
    each_token_alone=(
        "statistics_over_time statistics_over_item statistics_over_everything "
        "statistics_over_batch batch_norm"
    ),
    known_rows=(
        "variance_over_n_minus_1 unbiased_std_plus_eps sum_for_mean absolute_deviation "
        "squares_not_centred rms_norm rms_norm_without_bias numerator_not_centred "
        "eps_outside_the_root root_of_deviation squared_for_root root_forgotten divided_by_rsqrt "
        "eps_as_floor eps_as_floor_of_deviation eps_squared eps_twice eps_left_out eps_fixed "
        "gain_and_bias_swapped one_plus_gain half_inside"
    ),
    gain_and_bias=(
        "gain_forgotten bias_forgotten affine_forgotten bias_before_gain bias_subtracted "
        "first_gain_for_all"
    ),
    default_eps="default_eps_1e_12 default_eps_1e_6 default_eps_1e_3",
    large_mean="squares_minus_square",
    gradients="gradient_of_flat_rows statistics_detached",
)
MUTATED = [norm_plain, norm_by_var, norm_row_by_row, norm_in_lists]
EQUIVALENT = {
    "norm_plain:3 swapped: x - mean": "the square does not see the sign",
    "norm_in_lists:6 swapped: n - mean": "the square does not see the sign",
    "norm_in_lists:7 no strict=: zip(row, gains, biases, strict=True)": "all have d numbers",
    "norm_in_lists:7 flipped: True": "all have d numbers",
    "norm_row_by_row:2 method dropped: x.reshape(-1, x.shape[-1]).unbind(0)": (
        "a tensor gives its rows to a loop"
    ),
}
SAYS = {
    "statistics_over_time": "row 0 was made 9, 10, … and row 1 answered",
    "variance_over_n_minus_1": "and mean square 0.2; they must be 0 and",
    "numerator_not_centred": "(x there: mean 3, biased variance",
    "norm_writes_into_x": "after the call `x` holds other numbers",
    "gradient_of_flat_rows": "√0 has none",
    "statistics_detached": "its gradient is not: the statistics depend on x",
    "norm_remembers": "another result after other calls",
    "narrowed": "the result is torch.float32, narrower than x",
    "no graph": "no gradient reaches x",
    "gain without a gradient": "no gradient reaches gain",
    "gain along the tokens": "given alone, as a vector [d]",
}
UNNAMED = ["median for mean", "clipped input", "in float32", "dropout", "flat rows not a number"]
