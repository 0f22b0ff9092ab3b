"""Multi-head attention as a row of steps, of which a mistaken one replaces one or two."""

import math
from collections.abc import Callable

from torch import Tensor

from course_lib.contracts.heads.calls import HeadsCall, ask


def projected(call: HeadsCall) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, each [B, T, d_model]."""
    return call.x @ call.w_q, call.x @ call.w_k, call.x @ call.w_v


def cut_heads(x: Tensor, n_heads: int) -> Tensor:
    """[B, T, d_model] -> [B, H, T, d_head]."""
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """[B, H, T, d_head] -> [B, T, d_model]."""
    return x.transpose(1, 2).flatten(-2)


def past_keys(call: HeadsCall) -> Tensor:
    """Where a key does not lie in the query's future, or nothing is causal."""
    i, j = call.positions
    return (j <= i) | (not call.causal)


def real_keys(call: HeadsCall) -> Tensor:
    """Which keys are real tokens, [B, 1, 1, T]."""
    return call.valid[:, None, None, :]


def real_pairs(call: HeadsCall) -> Tensor:
    """The same with queries of padding reading nothing, [B, 1, T, T]; as right as the other."""
    return call.valid[:, None, None, :] & call.valid[:, None, :, None]


def masked_softmax(scores: Tensor, keep: Tensor) -> Tensor:
    """Softmax over the keys that are kept; rows that keep none give zeros."""
    empty = ~keep.any(-1, keepdim=True)
    return scores.masked_fill(~(keep | empty), -math.inf).softmax(-1).masked_fill(empty, 0.0)


def mistaken_heads(
    *,
    begin: Callable[[HeadsCall], HeadsCall] = lambda call: call,
    project: Callable[[HeadsCall], tuple[Tensor, Tensor, Tensor]] = projected,
    cut: Callable[[Tensor, int], Tensor] = cut_heads,
    share: Callable[[Tensor, Tensor, Tensor], tuple] = lambda q, k, v: (q, k, v),
    scale: Callable[[HeadsCall], float] = lambda call: call.d_head**-0.5,
    past: Callable[[HeadsCall], Tensor] = past_keys,
    real: Callable[[HeadsCall], Tensor] = real_keys,
    weigh: Callable[[Tensor, Tensor], Tensor] = masked_softmax,
    mix: Callable[[Tensor, Tensor], Tensor] = lambda weights, v: weights @ v,
    join: Callable[[Tensor], Tensor] = join_heads,
    out: Callable[[Tensor, HeadsCall], Tensor] = lambda merged, call: merged @ call.w_o,
) -> Callable[..., Tensor]:
    """Multi-head attention with other steps than the right ones; right when none is given."""

    def multi_head(
        x: Tensor,
        w_q: Tensor,
        w_k: Tensor,
        w_v: Tensor,
        w_o: Tensor,
        n_heads: int,
        *,
        causal: bool,
        token_valid: Tensor | None = None,
    ) -> Tensor:
        call = begin(ask(x, w_q, w_k, w_v, w_o, n_heads, causal, token_valid))
        q, k, v = share(*(cut(part, n_heads) for part in project(call)))
        weights = weigh(q @ k.mT * scale(call), past(call) & real(call))
        return out(join(mix(weights, v)), call)

    return multi_head
