"""What attention is asked: unkind sizes, every legal mask, hostile numbers, refusals."""

import math
import random

import torch

from course_lib.contracts.attention.calls import ask, drawn, holed, normal, some_allowed
from course_lib.contracts.engine.call import Call


def forms() -> list[Call]:
    """One call of each form: 2-D to 4-D, with a mask, with each policy."""
    masked = drawn(10, 3, 5, 4, 2, allowed=some_allowed(13, 3, 5), empty_row="zero")
    axes = [drawn(30, 1, 1, 2, 3, 1, 1), drawn(40, 3, 2, 5, 4, 3, empty_row="error")]
    last = drawn(20, 4, 3, 5, 2, 2, 3, allowed=some_allowed(23, 2, 3, 4, 3))
    return [drawn(0, 2, 3, 5, 4), *axes, masked, last]


def plain() -> list[Call]:
    """No mask; sizes that are all different, that are 1, that are equal; batches and heads."""
    sizes = [(2, 3, 5, 4), (1, 4, 3, 2), (3, 1, 2, 5), (1, 1, 1, 1), (4, 4, 5, 3), (2, 3, 67, 2)]
    sizes += [(3, 5, 5, 2), (4, 3, 2, 3), (3, 3, 3, 3), (3, 3, 3, 3, 3)]
    calls = [drawn(100 + 10 * n, *each) for n, each in enumerate(sizes)]
    batches = [(1,), (3,), (2, 3), (2, 2), (1, 1), (3, 1), (2, 1, 3)]
    calls += [drawn(220 + 10 * n, 3, 4, 5, 2, *batch) for n, batch in enumerate(batches)]
    first, same = drawn(300, 3, 4, 5, 2), normal(310, 4, 3)
    calls += [first.but(q=first.q * size, k=first.k * size) for size in (0.0, 1e-120, 5.0)]
    calls += [first.but(v=first.v * 1e6), drawn(320, 3, 1, 5, 2, 2, 3)]
    return [*calls, ask(same, same, same), first.but(v=normal(323, 4, 70))]


def items() -> list[Call]:
    """Batches whose items differ, first without and then with a mask of their own each."""
    sizes = [(2, 4, ()), (3, 4, (2, 3)), (3, 3, (3, 3)), (2, 4, (3,))]
    calls = [
        drawn(70 + 10 * n, t_q, t_k, 5, 3, *batch, allowed=some_allowed(75 + n, *batch, t_q, t_k))
        for n, (t_q, t_k, batch) in enumerate(sizes)
    ]
    return [*(call.but(allowed=None) for call in calls), *calls]


def masked() -> list[Call]:
    """A two-dimensional mask of each kind of size: none symmetric, one causal, one all True."""
    sizes = [(2, 3), (3, 3), (4, 4), (1, 6), (5, 2), (3, 7)]
    calls = [
        drawn(400 + 10 * n, *s, 5, 3, allowed=some_allowed(n, *s)) for n, s in enumerate(sizes)
    ]
    for n, (t_k, width) in enumerate([(4, 4), (5, 1), (3, 3)]):  # d_k = d_v, and both are 1
        mask = some_allowed(20 + n, 4, t_k)
        calls.append(drawn(403 + 10 * n, 4, t_k, width, width, allowed=mask))
    everything = torch.ones(4, 4, dtype=torch.bool)
    calls.append(drawn(460, 4, 4, 3, 2, allowed=everything.tril()))
    return [*calls, drawn(470, 4, 4, 3, 2, allowed=everything)]


def squares() -> list[Call]:
    """As many queries as keys, for a causal pass."""
    return [drawn(480, 5, 5, 3, 4, *batch) for batch in ((), (2, 2))]


def mask_shapes() -> list[Call]:
    """Every legal shape of a mask; sizes that are all different, and sizes that are all equal."""
    layouts = [((), 4, 5), ((), 4, 4), ((2, 3), 4, 5), ((3, 3), 3, 3), ((2, 2), 1, 2), ((3,), 3, 3)]
    calls = []
    for n, (batch, t_q, t_k) in enumerate(layouts):
        shapes = [(t_k,), (1, t_k), (t_q, t_k)]
        for axis in range(len(batch)):
            tail, ones = batch[axis:], (1,) * (len(batch) - axis - 1)
            shapes += [(*tail, 1, t_k), (*tail, t_q, t_k), (1, *tail[1:], t_q, t_k)]
            shapes += [(tail[0], *ones, 1, t_k), (tail[0], *ones, t_q, t_k)]
        call = drawn(500 + 10 * n, t_q, t_k, 5, 2, *batch)
        masks = (some_allowed(seed, *shape) for seed, shape in enumerate(dict.fromkeys(shapes)))
        calls += [call.but(allowed=mask) for mask in masks]
    return calls


def joint_batches() -> list[Call]:
    """Batch axes that only some of the arguments have, with masks that need them and without."""
    layouts = [((), (), (3,)), ((), (3,), ()), ((3,), (), ()), ((2, 3), (1, 3), (2, 1))]
    layouts += [((2, 1), (3,), ()), ((1,), (1,), (2, 3)), ((2, 1, 3), (2, 1), ())]
    joint = [(3,), (3,), (3,), (2, 3), (2, 3), (2, 3), (2, 2, 3)]
    calls = []
    for n, (q_batch, k_batch, v_batch) in enumerate(layouts):
        k, v = normal(610 + n, *k_batch, 4, 5), normal(620 + n, *v_batch, 4, 2)
        call = ask(normal(600 + n, *q_batch, 3, 5), k, v)
        shapes = [(3, 4), (*joint[n], 3, 4), (*joint[n], 1, 4)]
        calls += [call, *(call.but(allowed=some_allowed(n, *shape)) for shape in shapes)]
    return calls


def long() -> list[Call]:
    """Lengths past any plausible block, and rows whose first or last blocks are all hidden."""
    blocks = some_allowed(0, 3, 1031)
    blocks[0, :700], blocks[1, 300:], blocks[2, :-1] = False, False, False
    blocks[:, -1], blocks[1, 0] = True, True
    return [
        drawn(730, 3, 131, 3, 2, 2, 2, allowed=some_allowed(3, 2, 1, 1, 131)),
        drawn(720, 67, 71, 3, 2, allowed=torch.ones(67, 71).tril(2).bool()),
        drawn(700, 3, 1031, 3, 2, allowed=blocks),
        drawn(710, 1031, 3, 2, 3, allowed=some_allowed(1, 1031, 3)),
        drawn(713, 131, 2, 2, 3, 2, 2, allowed=some_allowed(4, 2, 131, 2)),
    ]


def layouts() -> list[Call]:
    """Transposed, expanded and strided tensors, as heads and masks arrive in practice."""
    q = normal(740, 2, 3, 4, 5).transpose(1, 2)  # [B, H, T, d] seen through [B, T, H, d]
    k = normal(741, 1, 5, 3).mT.unsqueeze(0).expand(2, 4, 3, 5)
    v = normal(742, 2, 4, 3, 4)[..., ::2]
    mask = some_allowed(2, 2, 1, 1, 3).expand(2, 4, 3, 3)
    return [ask(q, k, v), ask(q, k, v, mask), ask(k, q, v)]


def extremes() -> list[Call]:
    """Scores of ±800 to ±300000 that differ by about 1 within a row; then one-hot rows."""
    axis = torch.tensor([0.5, -0.5, 0.5, 0.5], dtype=torch.float64)
    signs = torch.tensor([[1.0], [-1.0], [1.0]], dtype=torch.float64)
    calls = []
    for n, size in enumerate((800.0, 4000.0, 3e5)):
        call = drawn(820 + n, 3, 5, 4, 2)
        call = call.but(q=2 * signs * axis + 0.5 * call.q, k=size * axis + call.k)
        calls += [call.but(q=sign * call.q[:1]) for sign in (1.0, -1.0)]
        calls += [call, call.but(allowed=some_allowed(n, 3, 5))]
    last = drawn(830, 3, 5, 4, 2)
    return calls + [last.but(q=last.q * size, k=last.k * size) for size in (40.0, 1e6, 1e100)]


def hidden_extremes(dtype: torch.dtype = torch.float64) -> list[Call]:
    """A hidden key far above the visible ones; visible keys far below any finite filling."""
    mask = torch.tensor([[True, False, True, True], [True, True, True, False]])
    keys = torch.tensor([True, False, True, False])
    call = drawn(840, 2, 4, 3, 2).of_dtype(dtype)
    calls = []
    for size in (1e3, 1e6, 1e10, 1e30 if dtype == torch.float32 else 1e120):
        high, low = call.k.clone(), -size * (call.k.abs() + 1.0)
        high[1], high[3] = call.q[0] * size, call.q[1] * size
        low[1], low[3] = 0.0, 0.0
        calls.append(call.but(k=high, allowed=mask))
        calls.append(call.but(q=call.q.abs() + 1.0, k=low, allowed=keys))
    return calls


def hidden_keys() -> list[Call]:
    """The same, and whole blocks hidden before or after scores far below 0."""
    call, places = drawn(716, 2, 131, 3, 2), torch.arange(131)
    blocks = torch.stack([places > 66, places < 66])
    far = call.but(q=call.q.abs() + 1, k=0.01 * call.k - 2000, allowed=blocks)
    return [*hidden_extremes(), far]


def mixtures(dtype: torch.dtype = torch.float64, count: int = 160) -> list[Call]:
    """Calls that pair each size, batch, mask, scale and layout with many of the others."""
    draw = random.Random(18)
    batches = [(), (), (1,), (2,), (3,), (2, 2), (2, 3), (1, 2)]
    scales = (1.0, 1.0, 1e-3, 100.0) if dtype == torch.float64 else (1.0, 1e-3)
    calls = []
    for number in range(count):
        t_q, t_k, d_k = (draw.choice((1, 2, 3, 4)) for _ in range(3))
        d_v, batch = draw.choice((d_k, d_k, 1, 2, 3)), draw.choice(batches)
        call = drawn(9000 + 3 * number, t_q, t_k, d_k, d_v, *batch)
        if draw.random() < 0.4:
            call = call.but(k=call.k.mT.contiguous().mT)  # as after a transpose
        call = call.but(q=call.q * draw.choice(scales))
        shapes = [None, (t_k,), (t_q, t_k), (t_q, t_k), (*batch, 1, t_k), (*batch, t_q, t_k)]
        shape = draw.choice(shapes)
        mask = None if shape is None else some_allowed(9000 + number, *shape)
        calls.append(call.but(allowed=mask).of_dtype(dtype))
    return calls


def single() -> list[Call]:
    """float32, plain and masked, in two and in more axes, hidden and mixed."""
    sizes = {(2, 3, 5, 4): None, (4, 4, 3, 2): some_allowed(3, 4, 4)}
    sizes |= {(3, 5, 67, 2, 2, 3): some_allowed(4, 2, 1, 3, 5), (1, 5, 3, 2, 2): some_allowed(5, 5)}
    sizes[2, 131, 3, 2] = some_allowed(5, 2, 131)
    calls = [drawn(800, *size, allowed=mask) for size, mask in sizes.items()]
    calls = [call.of_dtype(torch.float32) for call in calls]
    hidden = hidden_extremes(torch.float32)
    return [*calls, calls[1].but(empty_row="zero"), *hidden, *mixtures(torch.float32, 60)]


def halves() -> list[Call]:
    """q·k past the largest float16; scores near 96 whose differences bfloat16 cannot hold."""
    v = torch.tensor([[1.0, 2], [-3, 0.5], [2, 4]])
    large = [[130.0] * 4 + [last] for last in (0.5, 1, 1, 4, -1)]
    fine = [[8.0] * 3 + [last] for last in (1, 0.5, 0.25, 0.875, -0.375)]
    kinds = [(torch.tensor(large), torch.float16), (torch.tensor(fine), torch.bfloat16)]
    hidden, first = torch.tensor([[True, False, True], [True, True, False]]), torch.arange(4) > 0
    calls = [
        ask(rows[:2], rows[2:], v, mask).of_dtype(kind)
        for mask in (None, hidden)
        for rows, kind in kinds
    ]
    small = drawn(860, 3, 4, 5, 2, 2)
    half, coarse = (small.of_dtype(kind) for _, kind in kinds)
    calls += [half.but(allowed=first), coarse.but(allowed=first), half]
    return [*calls, coarse.but(allowed=some_allowed(6, 2, 1, 4))]


def nonfinite() -> list[Call]:
    """NaN and infinities, each where at least one row cannot see it."""
    mask = torch.tensor([[True, False, True, True], [True, True, True, False]])
    call, calls = drawn(870, 2, 4, 3, 2, allowed=mask), []
    for bad in (math.nan, math.inf, -math.inf):
        for name in ("v", "k", "q"):
            spoiled = call.args[name].clone()
            spoiled[1, 0] = bad
            calls.append(call.but(**{name: spoiled}))
    spoiled = call.v.clone()
    spoiled[1] = math.nan
    return [*calls, call.but(v=spoiled, allowed=torch.tensor([True, False, True, True]))]


def sloping() -> list[Call]:
    """Gradients, masked and not, also where a sum runs over broadcast axes."""
    return [
        drawn(880, 2, 3, 5, 4),
        drawn(883, 3, 4, 5, 2, allowed=some_allowed(7, 3, 4)),
        drawn(886, 3, 3, 2, 4, 2, 2, allowed=some_allowed(8, 2, 1, 3, 3)),
        drawn(889, 1, 5, 3, 2, 2, allowed=some_allowed(9, 5)),
        ask(normal(892, 3, 5), normal(893, 2, 4, 5), normal(894, 3, 1, 4, 2)),
        drawn(895, 2, 261, 3, 2, allowed=some_allowed(10, 2, 261)),
        hidden_extremes()[2],
        extremes()[2],
    ]


def with_holes(*policies: str | None) -> list[Call]:
    """Masks that leave some row, some item, or every row with nothing to read."""
    some, nothing = some_allowed(12, 3, 4), torch.zeros(4, dtype=torch.bool)
    of_items, of_heads = some_allowed(13, 3, 1, 1, 4), some_allowed(14, 2, 3, 3, 4)
    some[1], of_items[1], of_heads[1, 2, 0], of_heads[0, 0, 2] = False, False, False, False
    queries = torch.tensor([[True], [False], [True]])  # padding on the query axis
    calls = [
        drawn(970, 3, 4, 5, 2, allowed=some),
        drawn(973, 3, 4, 2, 3, allowed=nothing),
        drawn(976, 1, 4, 5, 2, allowed=nothing.unsqueeze(0)),
        drawn(979, 3, 4, 5, 2, 3, 2, allowed=of_items),
        drawn(982, 3, 4, 5, 2, 2, 3, allowed=of_heads),
        drawn(985, 3, 3, 5, 2, allowed=queries),
        drawn(988, 3, 1, 5, 2, allowed=queries),
        drawn(991, 3, 4, 5, 2, allowed=queries[1:2]),
    ]
    return [holed(call.but(empty_row=policy)) for call in calls for policy in policies]


def zeroed() -> list[Call]:
    """The policy "zero", also where no row is empty: there an output of 0 is none."""
    full = drawn(960, 3, 4, 5, 2, allowed=some_allowed(11, 3, 4), empty_row="zero")
    return [*with_holes("zero"), full, full.but(allowed=None), full.but(v=0 * full.v)]


def refused() -> list[Call]:
    """Masks that must be refused, of another dtype and then of a shape that does not fit."""
    count = torch.arange(1.0, 6.0, dtype=torch.float64).unsqueeze(-1)  # [5, 1]
    call = ask(count[:3], count, count)
    batch = ask(*(torch.stack([tensor, -tensor]) for tensor in call.args.values()))
    item = ask(*(tensor[:1] for tensor in batch.args.values()))
    heads = ask(*(tensor.unsqueeze(1) for tensor in batch.args.values()))
    ones = torch.ones(3, 5, dtype=torch.bool)
    kinds = [ones.float(), ones.double() * 0, ones.long(), ones.to(torch.uint8)]
    shapes = [(call, shape) for shape in ((3, 6), (5, 3), (3, 4), (3,), (8, 8), (2, 3, 5))]
    shapes += [(call.but(q=call.q[:1]), (4, 5)), (call.but(k=call.k[:1], v=call.v[:1]), (3, 4))]
    shapes += [(batch, (2, 5)), (batch, (3, 3, 5)), (item, (2, 3, 5)), (heads, (2, 4, 3, 5))]
    calls = [call.but(allowed=mask) for mask in kinds]
    calls += [each.but(allowed=torch.ones(shape, dtype=torch.bool)) for each, shape in shapes]
    return [each.whole() for each in calls]
