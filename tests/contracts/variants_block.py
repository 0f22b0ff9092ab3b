"""Transformer blocks, right and wrong, beyond the catalogue."""

import functools

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.contracts import check_block_contract
from course_lib.contracts.block.mistakes import BLOCK_MISTAKES
from course_lib.layers import PreNormBlock

from .trial import Fresh, named_by

CHECK, CATALOGUE = check_block_contract, BLOCK_MISTAKES
CLAUSES = [
    *("result_form", "arguments_unchanged", "repeatable", "stream_untouched", "attend_alone"),
    *("feed_alone", "both_in_order", "real_sublayers", "called_once", "any_size"),
    *("float32_inputs", "gradients"),
]


def block_plain(x, norm1, attend, norm2, feed):
    x = x + attend(norm1(x))
    x = x + feed(norm2(x))
    return x


def block_in_one_line(x, norm1, attend, norm2, feed):
    return (h := x + attend(norm1(x))) + feed(norm2(h))


def block_by_loop(x, norm1, attend, norm2, feed):
    for norm, sublayer in [(norm1, attend), (norm2, feed)]:
        residual = x
        x = sublayer(norm(x))
        x = residual.add(x)
    return x


def block_by_branches(x, norm1, attend, norm2, feed):
    """The three terms of the result, summed at the end."""
    read = attend(norm1(x))
    made = feed(norm2(torch.add(read, x)))
    return torch.stack((x, read, made)).sum(0)


def block_by_reduce(x, norm1, attend, norm2, feed):
    halves = ((norm1, attend), (norm2, feed))
    return functools.reduce(lambda stream, half: stream + half[1](half[0](stream)), halves, x)


class Residual(nn.Module):
    def __init__(self, norm, sublayer):
        super().__init__()
        self.norm, self.sublayer = norm, sublayer

    def forward(self, x):
        return self.sublayer(self.norm(x)) + x


def block_by_modules(x, norm1, attend, norm2, feed):
    return nn.Sequential(Residual(norm1, attend), Residual(norm2, feed))(x)


def block_on_a_copy(x, norm1, attend, norm2, feed):
    """Adds in place, but to a tensor of its own."""
    stream = x.clone()
    stream = stream.add_(attend(norm1(x)))
    return stream + feed(norm2(stream))


def block_of_batches(x, norm1, attend, norm2, feed):
    """Makes [T, d] a batch of one, if it is no batch yet."""
    stream = x if x.dim() > 2 else x.unsqueeze(0)
    stream = block_plain(stream, norm1, attend, norm2, feed)
    return stream.reshape(x.shape)


def block_widened(x, norm1, attend, norm2, feed):
    """Keeps its sums in float64 and gives back what came."""
    middle = x.double() + attend(norm1(x)).double()
    return (middle + feed(norm2(middle.to(x.dtype))).double()).to(x.dtype)


def block_checkpointed(x, norm1, attend, norm2, feed):
    """Forgets what is inside a half, and works it out again for the gradient."""
    from torch.utils.checkpoint import checkpoint

    x = x + checkpoint(lambda v: attend(norm1(v)), x, use_reentrant=False)
    return x + checkpoint(lambda v: feed(norm2(v)), x, use_reentrant=False)


def block_in_numpy(x, norm1, attend, norm2, feed):
    """Sums outside torch; no gradient can follow."""

    def take(v):
        return v.detach().numpy()

    middle = take(x) + take(attend(norm1(x)))
    return torch.from_numpy(middle + take(feed(norm2(torch.from_numpy(middle)))))


def block_of_the_course(x, norm1, attend, norm2, feed):
    """The course's own block, given strange sublayers."""

    class Attend(nn.Module):
        qkv = nn.Linear(x.shape[-1], 1, dtype=x.dtype)  # the block asks it for its type

        def forward(self, v, *, token_valid, empty_row):
            return attend(v)

    class Plain(nn.Module):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def forward(self, v):
            return self.function(v)

    block = PreNormBlock(x.shape[-1], 1, 2, causal=True).to(x.dtype)
    block.ln1, block.attn, block.ln2, block.ffn = Plain(norm1), Attend(), Plain(norm2), Plain(feed)
    return block(x if x.dim() > 2 else x[None]).reshape(x.shape)


def spoilt(change):
    def block(x, norm1, attend, norm2, feed):
        return change(block_plain(x, norm1, attend, norm2, feed), x)

    return block


def in_place_on_sublayer(x, norm1, attend, norm2, feed):
    """Adds to what attend gave, which may be x itself."""
    stream = attend(norm1(x))
    stream += x
    return stream + feed(norm2(stream))


def in_place_second_half(x, norm1, attend, norm2, feed):
    middle = x + attend(norm1(x))
    return feed(norm2(middle)).add_(middle)


def otherwise(is_wrong):
    """Carries the norm along the stream, but only in some calls."""

    def block(x, norm1, attend, norm2, feed):
        if not is_wrong(x):
            return block_plain(x, norm1, attend, norm2, feed)
        x = norm1(x)
        return block_plain(x, lambda value: value, attend, norm2, feed)

    return block


def one_buffer():
    buffers = {}

    def block(x, norm1, attend, norm2, feed):
        done = block_plain(x, norm1, attend, norm2, feed)
        if done.requires_grad:
            return done
        return buffers.setdefault(x.shape, torch.empty_like(done)).copy_(done)

    return block


def first_sublayers_kept():
    kept = {}

    def block(x, *sublayers):
        return block_plain(x, *kept.setdefault(tuple(x.shape), sublayers))

    return block


def token_by_token(x, norm1, attend, norm2, feed):
    """Calls the sublayers on each token alone: attend cannot mix them any more."""
    tokens = [
        block_plain(x[..., t : t + 1, :], norm1, attend, norm2, feed) for t in range(x.shape[-2])
    ]
    return torch.cat(tokens, dim=-2)


def item_by_item(x, norm1, attend, norm2, feed):
    if x.dim() < 3:
        return block_plain(x, norm1, attend, norm2, feed)
    return torch.stack([block_plain(item, norm1, attend, norm2, feed) for item in x])


def norm_called_again(x, norm1, attend, norm2, feed):
    middle = x + attend(norm1(x))
    norm2(middle)
    return middle + feed(norm2(middle))


def looks_before(x, norm1, attend, norm2, feed):
    """Calls everything once to see whether it works."""
    with torch.no_grad():
        block_plain(x, norm1, attend, norm2, feed)
    return block_plain(x, norm1, attend, norm2, feed)


def in_float32(x, norm1, attend, norm2, feed):
    return block_plain(x.float(), norm1, attend, norm2, feed).to(x.dtype)


def in_half_where_narrow(x, norm1, attend, norm2, feed):
    made = block_plain(x, norm1, attend, norm2, feed)
    return made.half().to(x.dtype) if x.dtype == torch.float32 else made


def relu_between(x, norm1, attend, norm2, feed):
    middle = F.relu(x + attend(norm1(x)))
    return middle + feed(norm2(middle))


def two_thirds(x, norm1, attend, norm2, feed):
    middle = x + attend(norm1(x))
    return middle + feed(norm2((2 * middle + x) / 3))


def first_token_skipped(x, norm1, attend, norm2, feed):
    made = block_plain(x, norm1, attend, norm2, feed)
    return torch.cat((x[..., :1, :], made[..., 1:, :]), dim=-2)


def attend_detached(x, norm1, attend, norm2, feed):
    middle = x + attend(norm1(x)).detach()
    return middle + feed(norm2(middle))


def feed_of_detached_stream(x, norm1, attend, norm2, feed):
    middle = x + attend(norm1(x))
    return middle + feed(norm2(middle.detach()))


def x_detached_once(x, norm1, attend, norm2, feed):
    middle = x.detach() + attend(norm1(x))
    return middle + feed(norm2(middle))


def gradient_halved(x, norm1, attend, norm2, feed):
    made = block_plain(x, norm1, attend, norm2, feed)
    return (made + made.detach()) / 2


RIGHT = {
    "item by item": item_by_item,
    "the course's own": block_of_the_course,
    "plain": block_plain,
    "in one line": block_in_one_line,
    "by a loop": block_by_loop,
    "by branches": block_by_branches,
    "by reduce": block_by_reduce,
    "by modules": block_by_modules,
    "on a copy": block_on_a_copy,
    "in place on what feed gave": in_place_second_half,
    "of batches": block_of_batches,
    "sums in float64": block_widened,
    "checkpointed": block_checkpointed,
    "sums in numpy": block_in_numpy,
}
WRONG = {
    "a tuple": (spoilt(lambda y, x: (y, None)), "result_form"),
    "nothing": (spoilt(lambda y, x: None), "result_form"),
    "flat": (spoilt(lambda y, x: y.flatten()), "result_form"),
    "a batch axis": (spoilt(lambda y, x: y[None]), "result_form"),
    "last token only": (spoilt(lambda y, x: y[..., -1:, :]), "result_form"),
    "narrowed": (spoilt(lambda y, x: y.float()), "result_form"),
    "not a number": (spoilt(lambda y, x: y / 0 * 0), "result_form"),
    "wants three axes": (
        lambda x, *s: torch.stack([block_plain(item, *s) for item in x]),
        "arguments_unchanged",
    ),
    "x scaled": (lambda x, *s: block_plain(x.mul_(2), *s) / 2, "arguments_unchanged"),
    "in place on a sublayer's result": (in_place_on_sublayer, "arguments_unchanged"),
    "one buffer": (Fresh(one_buffer), "repeatable"),
    "dropout": (spoilt(lambda y, x: F.dropout(y, 0.2)), "repeatable"),
    "first sublayers kept": (Fresh(first_sublayers_kept), "stream_untouched"),
    "x scaled by its width": (
        lambda x, *s: block_plain(x * x.shape[-1] ** 0.5, *s),
        "stream_untouched",
    ),
    "clipped": (spoilt(lambda y, x: y.clamp(-1, 1)), "stream_untouched"),
    "relu between": (relu_between, "stream_untouched"),
    "in float32": (in_float32, "stream_untouched"),
    "first token skipped": (first_token_skipped, "attend_alone"),
    "arguments in another order": (
        lambda x, norm1, norm2, attend, feed: block_plain(x, norm1, attend, norm2, feed),
        "stream_untouched",
    ),
    "wrong in tiny streams": (otherwise(lambda x: (x.abs() < 1e-3).all()), "any_size"),
    "wrong in strided streams": (otherwise(lambda x: not x.is_contiguous()), "any_size"),
    "wrong without gradients": (
        otherwise(lambda x: not torch.is_grad_enabled()),
        "stream_untouched",
    ),
    "wrong with many tokens": (otherwise(lambda x: x.shape[-2] > 16), "real_sublayers"),
    "wrong with many items": (
        otherwise(lambda x: x.dim() == 3 and x.shape[0] > 8),
        "real_sublayers",
    ),
    "wrong in wide streams": (otherwise(lambda x: x.shape[-1] > 64), "real_sublayers"),
    "feed's share halved": (
        lambda x, n1, a, n2, f: (h := x + a(n1(x))) + f(n2(h)) / 2,
        "feed_alone",
    ),
    "a mixture for feed": (two_thirds, "both_in_order"),
    "token by token": (token_by_token, "real_sublayers"),
    "norm called again": (norm_called_again, "called_once"),
    "looks before": (looks_before, "called_once"),
    "clipped at 1e4": (spoilt(lambda y, x: y.clamp(-1e4, 1e4)), "any_size"),
    "half precision where narrow": (in_half_where_narrow, "float32_inputs"),
    "no graph": (torch.no_grad()(block_plain), "gradients"),
    "attend detached": (attend_detached, "gradients"),
    "feed of a detached stream": (feed_of_detached_stream, "gradients"),
    "x detached once": (x_detached_once, "gradients"),
    "gradient halved": (gradient_halved, "gradients"),
}
MISTAKES = named_by(
    arguments_unchanged="stream_changed_in_place",
    repeatable="block_by_chance block_remembers",
    stream_untouched=(
        "first_residual_missing first_residual_carries_norm first_sum_normed "
        "attend_added_to_itself first_residual_doubled second_residual_missing "
        "second_residual_carries_norm second_sum_normed feed_added_to_itself "
        "second_residual_doubled input_added_again post_norm residuals_carry_norms "
        "residuals_missing last_norm_added sums_scaled"
    ),
    attend_alone=(
        "norm1_forgotten norm1_after_attend attend_subtracted attend_dropped norm1_on_both_sides "
        "second_residual_from_input norms_forgotten norms_after_sublayers norms_swapped "
        "norm2_used_twice sublayers_swapped"
    ),
    feed_alone=(
        "norm2_forgotten norm1_used_twice norm2_after_feed parallel_with_one_norm "
        "feed_reads_attend_only feed_subtracted feed_dropped"
    ),
    both_in_order="parallel feed_first",
    called_once="attend_called_twice feed_called_twice",
    gradients="stream_detached reads_detached",
)
MUTATED = [block_plain, block_by_branches, block_on_a_copy]
EQUIVALENT = {
    "block_by_branches:4 arguments swapped: torch.add(read, x)": "a sum is symmetric",
}
SAYS = {
    "parallel": "norm2 was not given x + attend(norm1(x))",
    "norm1_forgotten": "norm1 was never called",
    "norm1_after_attend": "norm1 was not given x",
    "norm2_after_feed": "norm2 was not given x + attend(norm1(x))",
    "attend_called_twice": "attend was called 2 times",
    "first_residual_missing": "norm2 was not given x + attend(norm1(x))",
    "second_residual_missing": "what is returned is summed wrongly",
    "stream_changed_in_place": "the sum was written into it",
    "stream_detached": "the gradient of x is not: one of its ways is cut",
    "no graph": "no gradient reaches x",
    "one buffer": "another result after other calls",
}
UNNAMED = ["clipped", "token by token", "a mixture for feed", "in float32"]
