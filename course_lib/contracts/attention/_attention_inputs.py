"""The inputs of the attention contract: unkind sizes, every legal mask, hostile numbers."""

import math
from dataclasses import replace

import torch

from course_lib.contracts.attention._attention_case import (
    AttentionCase,
    AttentionRefusal,
    attention_inputs,
    normal,
    some_allowed,
)

_HALVES = (torch.float16, torch.bfloat16)


def attention_calls() -> list[AttentionCase]:
    """One call of each form: 2-D to 4-D, with a mask, with each policy."""
    masked = AttentionCase(*attention_inputs(10, 3, 5, 4, 2), some_allowed(13, 3, 5))
    return [
        AttentionCase(*attention_inputs(0, 2, 3, 5, 4)),
        AttentionCase(*attention_inputs(30, 1, 1, 2, 3, 1, 1)),
        AttentionCase(*attention_inputs(40, 3, 2, 5, 4, 3), empty_row="error"),
        replace(masked, empty_row="zero"),
        AttentionCase(*attention_inputs(20, 4, 3, 5, 2, 2, 3), some_allowed(23, 2, 3, 4, 3)),
    ]


def attention_plain() -> list[AttentionCase]:
    """No mask; sizes that are all different, that are 1, that are equal; batches and heads."""
    sizes = [(2, 3, 5, 4), (1, 4, 3, 2), (3, 1, 2, 5), (1, 1, 1, 1), (4, 4, 5, 3), (2, 3, 67, 2)]
    sizes += [(3, 5, 5, 2), (4, 3, 2, 3), (3, 3, 3, 3), (3, 3, 3, 3, 3)]
    cases = [AttentionCase(*attention_inputs(100 + 10 * n, *s)) for n, s in enumerate(sizes)]
    for n, batch in enumerate([(1,), (3,), (2, 3), (2, 2), (1, 1), (3, 1), (2, 1, 3)]):
        cases.append(AttentionCase(*attention_inputs(220 + 10 * n, 3, 4, 5, 2, *batch)))
    q, k, v = attention_inputs(300, 3, 4, 5, 2)
    cases += [AttentionCase(q * size, k * size, v) for size in (0.0, 1e-120, 5.0)]
    same = normal(310, 4, 3)
    cases += [AttentionCase(q, k, v * 1e6), AttentionCase(*attention_inputs(320, 3, 1, 5, 2, 2, 3))]
    return [*cases, AttentionCase(same, same, same), AttentionCase(q, k, normal(323, 4, 70))]


def attention_items() -> list[AttentionCase]:
    """Batches whose items differ, first without and then with a mask of their own each."""
    sizes = [(2, 4, ()), (3, 4, (2, 3)), (3, 3, (3, 3)), (2, 4, (3,))]
    cases = [
        AttentionCase(
            *attention_inputs(70 + 10 * n, t_q, t_k, 5, 3, *batch),
            some_allowed(75 + n, *batch, t_q, t_k),
        )
        for n, (t_q, t_k, batch) in enumerate(sizes)
    ]
    return [replace(case, allowed=None) for case in cases] + cases


def attention_masked() -> list[AttentionCase]:
    """A two-dimensional mask of each kind of size: none symmetric, one causal, one all True."""
    sizes = [(2, 3), (3, 3), (4, 4), (1, 6), (5, 2), (3, 7)]
    cases = [
        AttentionCase(*attention_inputs(400 + 10 * n, t_q, t_k, 5, 3), some_allowed(n, t_q, t_k))
        for n, (t_q, t_k) in enumerate(sizes)
    ]
    for n, (t_k, width) in enumerate([(4, 4), (5, 1), (3, 3)]):  # d_k = d_v, and both are 1
        inputs = attention_inputs(403 + 10 * n, 4, t_k, width, width)
        cases.append(AttentionCase(*inputs, some_allowed(20 + n, 4, t_k)))
    everything = torch.ones(4, 4, dtype=torch.bool)
    return [
        *cases,
        AttentionCase(*attention_inputs(460, 4, 4, 3, 2), everything.tril()),
        AttentionCase(*attention_inputs(470, 4, 4, 3, 2), everything),
    ]


def attention_squares() -> list[AttentionCase]:
    """As many queries as keys, for a causal pass."""
    return [AttentionCase(*attention_inputs(480, 5, 5, 3, 4, *batch)) for batch in ((), (2, 2))]


def attention_mask_shapes() -> list[AttentionCase]:
    """Every legal shape of a mask; sizes that are all different, and sizes that are all equal."""
    layouts = [((), 4, 5), ((), 4, 4), ((2, 3), 4, 5), ((3, 3), 3, 3), ((2, 2), 1, 2), ((3,), 3, 3)]
    cases = []
    for n, (batch, t_q, t_k) in enumerate(layouts):
        q, k, v = attention_inputs(500 + 10 * n, t_q, t_k, 5, 2, *batch)
        shapes = [(t_k,), (1, t_k), (t_q, t_k)]
        for axis in range(len(batch)):
            tail = batch[axis:]
            ones = tuple(1 for _ in tail[1:])
            shapes += [(*tail, 1, t_k), (*tail, t_q, t_k), (1, *tail[1:], t_q, t_k)]
            shapes += [(tail[0], *ones, 1, t_k), (tail[0], *ones, t_q, t_k)]
        for seed, shape in enumerate(dict.fromkeys(shapes)):
            cases.append(AttentionCase(q, k, v, some_allowed(seed, *shape)))
    return cases


def attention_joint_batches() -> list[AttentionCase]:
    """Batch axes that only some of the arguments have, with masks that need them and without."""
    layouts = [
        ((), (), (3,)),
        ((), (3,), ()),
        ((3,), (), ()),
        ((2, 3), (1, 3), (2, 1)),
        ((2, 1), (3,), ()),
        ((1,), (1,), (2, 3)),
        ((2, 1, 3), (2, 1), ()),
    ]
    cases = []
    for n, (q_batch, k_batch, v_batch) in enumerate(layouts):
        k, v = normal(610 + n, *k_batch, 4, 5), normal(620 + n, *v_batch, 4, 2)
        case = AttentionCase(normal(600 + n, *q_batch, 3, 5), k, v)
        shapes = [(3, 4), (*case.joint, 3, 4), (*case.joint, 1, 4)]
        cases.append(case)
        cases += [replace(case, allowed=some_allowed(n, *shape)) for shape in shapes]
    return cases


def attention_long() -> list[AttentionCase]:
    """Lengths past any plausible block, and rows whose first or last blocks are all hidden."""
    blocks = some_allowed(0, 3, 1031)
    blocks[0, :700], blocks[1, 300:], blocks[2, :-1] = False, False, False
    blocks[:, -1], blocks[1, 0] = True, True
    return [
        AttentionCase(*attention_inputs(730, 3, 131, 3, 2, 2, 2), some_allowed(3, 2, 1, 1, 131)),
        AttentionCase(*attention_inputs(720, 67, 71, 3, 2), torch.ones(67, 71).tril(2).bool()),
        AttentionCase(*attention_inputs(700, 3, 1031, 3, 2), blocks),
        AttentionCase(*attention_inputs(710, 1031, 3, 2, 3), some_allowed(1, 1031, 3)),
        AttentionCase(*attention_inputs(713, 131, 2, 2, 3, 2, 2), some_allowed(4, 2, 131, 2)),
    ]


def attention_hidden_blocks() -> list[AttentionCase]:
    """Whole blocks hidden before or after scores far below 0."""
    q, k, v = attention_inputs(716, 2, 131, 3, 2)
    places = torch.arange(131)
    return [AttentionCase(q.abs() + 1, 0.01 * k - 2000, v, torch.stack([places > 66, places < 66]))]


def attention_layouts() -> list[AttentionCase]:
    """Transposed, expanded and strided tensors, as heads and masks arrive in practice."""
    q = normal(740, 2, 3, 4, 5).transpose(1, 2)  # [B, H, T, d] seen through [B, T, H, d]
    k = normal(741, 1, 5, 3).mT.unsqueeze(0).expand(2, 4, 3, 5)
    v = normal(742, 2, 4, 3, 4)[..., ::2]
    allowed = some_allowed(2, 2, 1, 1, 3).expand(2, 4, 3, 3)
    return [AttentionCase(q, k, v), AttentionCase(q, k, v, allowed), AttentionCase(k, q, v)]


def attention_extremes() -> list[AttentionCase]:
    """Scores of ±800 to ±300000 that differ by about 1 within a row; then one-hot rows."""
    axis = torch.tensor([0.5, -0.5, 0.5, 0.5], dtype=torch.float64)
    signs = torch.tensor([[1.0], [-1.0], [1.0]], dtype=torch.float64)
    cases = []
    for n, size in enumerate((800.0, 4000.0, 3e5)):
        q, k, v = attention_inputs(820 + n, 3, 5, 4, 2)
        rows, keys = 2 * signs * axis + 0.5 * q, size * axis + k
        cases += [AttentionCase(sign * rows[:1], keys, v) for sign in (1.0, -1.0)]
        cases += [AttentionCase(rows, keys, v, mask) for mask in (None, some_allowed(n, 3, 5))]
    q, k, v = attention_inputs(830, 3, 5, 4, 2)
    return cases + [AttentionCase(q * size, k * size, v) for size in (40.0, 1e6, 1e100)]


def attention_hidden_extremes(dtype: torch.dtype = torch.float64) -> list[AttentionCase]:
    """A hidden key far above the visible ones; visible keys far below any finite filling."""
    allowed = torch.tensor([[True, False, True, True], [True, True, True, False]])
    largest = 1e30 if dtype == torch.float32 else 1e120
    q, k, v = (tensor.to(dtype) for tensor in attention_inputs(840, 2, 4, 3, 2))
    cases = []
    for size in (1e3, 1e6, 1e10, largest):
        high, low = k.clone(), -size * (k.abs() + 1.0)
        high[1], high[3] = q[0] * size, q[1] * size
        low[1], low[3] = 0.0, 0.0
        keys = torch.tensor([True, False, True, False])
        cases.append(AttentionCase(q, high, v, allowed))
        cases.append(AttentionCase(q.abs() + 1.0, low, v, keys))
    return cases


def attention_float32() -> list[AttentionCase]:
    """float32, plain and masked, in two and in more axes."""
    calls = [
        ((2, 3, 5, 4), None),
        ((4, 4, 3, 2), some_allowed(3, 4, 4)),
        ((3, 5, 67, 2, 2, 3), some_allowed(4, 2, 1, 3, 5)),
        ((1, 5, 3, 2, 2), some_allowed(5, 5)),
        ((2, 131, 3, 2), some_allowed(5, 2, 131)),
    ]
    cases = [
        AttentionCase(*(tensor.float() for tensor in attention_inputs(800, *sizes)), mask)
        for sizes, mask in calls
    ]
    hidden = attention_hidden_extremes(torch.float32)
    return [*cases, replace(cases[1], empty_row="zero"), *hidden]


def attention_halves() -> list[AttentionCase]:
    """q·k past the largest float16; scores near 96 whose differences bfloat16 cannot hold."""
    q = torch.tensor([[130.0, 130, 130, 130, 0.5], [130, 130, 130, 130, 1]])
    k = torch.tensor([[130.0, 130, 130, 130, 1], [130, 130, 130, 130, 4], [130, 130, 130, 130, -1]])
    v = torch.tensor([[1.0, 2], [-3, 0.5], [2, 4]])
    fine_q = torch.tensor([[8.0, 8, 8, 1], [8, 8, 8, 0.5]])
    fine_k = torch.tensor([[8.0, 8, 8, 0.25], [8, 8, 8, 0.875], [8, 8, 8, -0.375]])
    hidden = torch.tensor([[True, False, True], [True, True, False]])
    cases = []
    for allowed in (None, hidden):
        cases.append(AttentionCase(q.half(), k.half(), v.half(), allowed))
        cases.append(AttentionCase(fine_q.bfloat16(), fine_k.bfloat16(), v.bfloat16(), allowed))
    small = attention_inputs(860, 3, 4, 5, 2, 2)
    first = torch.tensor([False, True, True, True])
    cases += [AttentionCase(*(t.to(kind) for t in small), first) for kind in _HALVES]
    cases.append(AttentionCase(*(tensor.half() for tensor in small)))
    cases.append(AttentionCase(*(tensor.bfloat16() for tensor in small), some_allowed(6, 2, 1, 4)))
    return cases


def attention_nonfinite() -> list[AttentionCase]:
    """NaN and infinities, each where at least one row cannot see it."""
    allowed = torch.tensor([[True, False, True, True], [True, True, True, False]])
    q, k, v = attention_inputs(870, 2, 4, 3, 2)
    cases = []
    for bad in (math.nan, math.inf, -math.inf):
        for name, tensor in (("v", v), ("k", k), ("q", q)):
            spoiled = tensor.clone()
            spoiled[1, 0] = bad
            cases.append(replace(AttentionCase(q, k, v, allowed), **{name: spoiled}))
    spoiled = v.clone()
    spoiled[1] = math.nan
    return [*cases, AttentionCase(q, k, spoiled, torch.tensor([True, False, True, True]))]


def attention_gradient_cases() -> list[AttentionCase]:
    """Gradients, masked and not, also where a sum runs over broadcast axes."""
    return [
        AttentionCase(*attention_inputs(880, 2, 3, 5, 4)),
        AttentionCase(*attention_inputs(883, 3, 4, 5, 2), some_allowed(7, 3, 4)),
        AttentionCase(*attention_inputs(886, 3, 3, 2, 4, 2, 2), some_allowed(8, 2, 1, 3, 3)),
        AttentionCase(*attention_inputs(889, 1, 5, 3, 2, 2), some_allowed(9, 5)),
        AttentionCase(normal(892, 3, 5), normal(893, 2, 4, 5), normal(894, 3, 1, 4, 2)),
        AttentionCase(*attention_inputs(895, 2, 261, 3, 2), some_allowed(10, 2, 261)),
        attention_hidden_extremes()[2],
        attention_extremes()[2],
    ]


def attention_empty_rows(*policies: str | None) -> list[AttentionCase]:
    """Masks that leave some row, some item, or every row with nothing to read."""
    some, nothing = some_allowed(12, 3, 4), torch.zeros(4, dtype=torch.bool)
    items, heads = some_allowed(13, 3, 1, 1, 4), some_allowed(14, 2, 3, 3, 4)
    some[1], items[1], heads[1, 2, 0], heads[0, 0, 2] = False, False, False, False
    queries = torch.tensor([[True], [False], [True]])  # padding on the query axis
    cases = [
        AttentionCase(*attention_inputs(970, 3, 4, 5, 2), some),
        AttentionCase(*attention_inputs(973, 3, 4, 2, 3), nothing),
        AttentionCase(*attention_inputs(976, 1, 4, 5, 2), nothing.unsqueeze(0)),
        AttentionCase(*attention_inputs(979, 3, 4, 5, 2, 3, 2), items),
        AttentionCase(*attention_inputs(982, 3, 4, 5, 2, 2, 3), heads),
        AttentionCase(*attention_inputs(985, 3, 3, 5, 2), queries),
        AttentionCase(*attention_inputs(988, 3, 1, 5, 2), queries),
        AttentionCase(*attention_inputs(991, 3, 4, 5, 2), queries[1:2]),
    ]
    return [replace(case, empty_row=policy) for case in cases for policy in policies]


def attention_with_policy() -> list[AttentionCase]:
    """The policy "zero" where no row is empty: it changes nothing, and an output of 0 is none."""
    full = AttentionCase(*attention_inputs(960, 3, 4, 5, 2), some_allowed(11, 3, 4), "zero")
    return [full, replace(full, allowed=None), replace(full, v=0 * full.v)]


def attention_refusals() -> list[AttentionCase]:
    """Masks that must be refused, each with its kind of error."""
    count = torch.arange(1.0, 6.0, dtype=torch.float64).unsqueeze(-1)  # [5, 1]
    q, k, v = count[:3], count, count
    batch = tuple(torch.stack([tensor, -tensor]) for tensor in (q, k, v))
    one_item = tuple(tensor[:1] for tensor in batch)
    heads = tuple(tensor.unsqueeze(1) for tensor in batch)
    ones = torch.ones(3, 5, dtype=torch.bool)
    kinds = (ones.float(), ones.double() * 0, ones.long(), ones.to(torch.uint8))
    shapes = [((q, k, v), shape) for shape in ((3, 6), (5, 3), (3, 4), (3,), (8, 8), (2, 3, 5))]
    shapes += [((q[:1], k, v), (4, 5)), ((q, k[:1], v[:1]), (3, 4)), (batch, (2, 5))]
    shapes += [(batch, (3, 3, 5)), (one_item, (2, 3, 5)), (heads, (2, 4, 3, 5))]
    return [AttentionRefusal(q, k, v, kind, wanted=TypeError) for kind in kinds] + [
        AttentionRefusal(*inputs, torch.ones(shape, dtype=torch.bool)) for inputs, shape in shapes
    ]
