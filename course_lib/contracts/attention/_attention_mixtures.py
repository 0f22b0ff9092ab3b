"""Attention calls of every mixture: sizes, axes, masks, scales and layouts, none left to luck."""

import random

import torch

from course_lib.contracts.attention._attention_case import (
    AttentionCase,
    attention_inputs,
    some_allowed,
)


def attention_mixtures(dtype: torch.dtype = torch.float64, count: int = 160) -> list[AttentionCase]:
    """Calls that pair each size, batch, mask, scale and layout with many of the others."""
    draw = random.Random(18)
    batches = [(), (), (1,), (2,), (3,), (2, 2), (2, 3), (1, 2)]
    cases = []
    for number in range(count):
        t_q, t_k, d_k = (draw.choice((1, 2, 3, 4)) for _ in range(3))
        d_v, batch = draw.choice((d_k, d_k, 1, 2, 3)), draw.choice(batches)
        q, k, v = attention_inputs(9000 + 3 * number, t_q, t_k, d_k, d_v, *batch)
        if draw.random() < 0.4:
            k = k.mT.contiguous().mT  # as after a transpose
        q = q * draw.choice((1.0, 1.0, 1e-3, 100.0) if dtype == torch.float64 else (1.0, 1e-3))
        shapes = [None, (t_k,), (t_q, t_k), (t_q, t_k), (*batch, 1, t_k), (*batch, t_q, t_k)]
        shape = draw.choice(shapes)
        allowed = None if shape is None else some_allowed(9000 + number, *shape)
        cases.append(AttentionCase(q.to(dtype), k.to(dtype), v.to(dtype), allowed))
    return cases
