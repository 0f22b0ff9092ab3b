"""Attention against the reference, a scalar loop, torch's own function, and its promises."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.attention import (
    MultiHeadCrossAttention,
    MultiHeadSelfAttention,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)
from course_lib.masks import causal_allowed

quick = settings(max_examples=25, deadline=None, derandomize=True)
T_Q, T_K, D_K, D_V = 3, 5, 7, 4  # all different, and 7 is no perfect square


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def inputs(*batch, seed=0, dtype=torch.float64):
    shapes = (T_Q, D_K), (T_K, D_K), (T_K, D_V)
    return [normal(*batch, *shape, seed=seed + i, dtype=dtype) for i, shape in enumerate(shapes)]


def random_mask(*shape, seed=0):
    """Draw a mask in which every row may read at least one key."""
    allowed = normal(*shape, seed=seed) > 0
    allowed[..., seed % shape[-1]] = True
    return allowed


def attention_by_loops(q, k, v, allowed):
    """Compute one 2-D attention, number by number, with nothing but `math`."""
    q, k, v, allowed = q.tolist(), k.tolist(), v.tolist(), allowed.tolist()
    weights, output = [], []
    for query, row_allowed in zip(q, allowed, strict=True):
        scores = [
            sum(a * b for a, b in zip(query, key, strict=True)) / len(query) ** 0.5 for key in k
        ]
        top = max((s for s, may in zip(scores, row_allowed, strict=True) if may), default=0.0)
        parts = [
            math.exp(s - top) if may else 0.0 for s, may in zip(scores, row_allowed, strict=True)
        ]
        total = sum(parts) or 1.0
        weights.append([part / total for part in parts])
        columns = zip(*v, strict=True)
        output.append([sum(w * x for w, x in zip(weights[-1], c, strict=True)) for c in columns])
    return torch.tensor(output, dtype=torch.float64), torch.tensor(weights, dtype=torch.float64)


# ---------------------------------------------------------------- values


def test_the_reference_example_is_reproduced():
    q = torch.tensor([[1, 0], [0, 1], [1, 1]], dtype=torch.float64)
    v = torch.tensor([[1, 0], [0, 2], [3, 1]], dtype=torch.float64)
    result = scaled_dot_product_attention(q, q, v, torch.ones(3, 3).tril().bool())
    expected = torch.tensor(
        [
            [1, 0, 0],
            [0.3302384506733431, 0.6697615493266569, 0],
            [0.2482550782577231, 0.2482550782577231, 0.5034898434845538],
        ],
        dtype=torch.float64,
    )
    assert (result.weights - expected).abs().max() <= 1e-12
    assert (result.output - expected @ v).abs().max() <= 1e-12
    root = 1 / math.sqrt(2)
    scores = [[root, -math.inf, -math.inf], [0, root, -math.inf], [root, root, 2 * root]]
    assert torch.allclose(result.scores, torch.tensor(scores, dtype=torch.float64), atol=1e-12)
    assert result.empty_rows.tolist() == [False] * 3


@quick
@given(
    st.integers(1, 5), st.integers(1, 5), st.integers(1, 5), st.integers(1, 5), st.integers(0, 99)
)
def test_a_scalar_loop_agrees_at_every_size(t_q, t_k, d_k, d_v, seed):
    q, k, v = (
        normal(t_q, d_k, seed=seed),
        normal(t_k, d_k, seed=seed + 1),
        normal(t_k, d_v, seed=seed + 2),
    )
    allowed = normal(t_q, t_k, seed=seed + 3) > 0
    result = scaled_dot_product_attention(q, k, v, allowed, empty_row="zero")
    output, weights = attention_by_loops(q, k, v, allowed)
    assert (result.output - output).abs().max() <= 1e-12
    assert (result.weights - weights).abs().max() <= 1e-12
    assert torch.equal(result.empty_rows, ~allowed.any(dim=-1))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("batch", [(), (1,), (2,), (2, 3)])
def test_torch_agrees_in_output_and_gradients(batch, masked):
    ours = [tensor.requires_grad_() for tensor in inputs(*batch)]
    theirs = [tensor.detach().clone().requires_grad_() for tensor in ours]
    allowed = random_mask(*batch, T_Q, T_K) if masked else None
    output = scaled_dot_product_attention(*ours, allowed).output
    expected = F.scaled_dot_product_attention(*theirs, attn_mask=allowed)
    assert (output - expected).abs().max() <= 1e-12
    direction = normal(*output.shape, seed=9)
    output.backward(direction)
    expected.backward(direction)
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine.grad - other.grad).abs().max() <= 1e-12


def test_gradients_agree_with_finite_differences_also_with_an_empty_row():
    q, k, v = (tensor.requires_grad_() for tensor in inputs())
    allowed = random_mask(T_Q, T_K)
    allowed[1] = False

    def fields(q, k, v):
        result = scaled_dot_product_attention(q, k, v, allowed, empty_row="zero")
        return result.output, result.weights

    assert torch.autograd.gradcheck(fields, (q, k, v))


def test_every_field_is_what_produced_the_output():
    q, k, v = inputs(2)
    allowed = random_mask(2, T_Q, T_K)
    result = scaled_dot_product_attention(q, k, v, allowed)
    assert torch.equal(result.weights @ v, result.output)
    assert torch.allclose(result.weights.sum(dim=-1), torch.ones(2, T_Q, dtype=torch.float64))
    assert (result.weights[~allowed] == 0).all()
    assert (result.scores[~allowed] == -math.inf).all()
    assert torch.isfinite(result.scores[allowed]).all()
    assert torch.allclose(result.scores.softmax(dim=-1), result.weights)
    with pytest.raises(AttributeError):
        result.output = v


def test_no_mask_is_a_mask_of_trues():
    q, k, v = inputs(2)
    bare = scaled_dot_product_attention(q, k, v)
    full = scaled_dot_product_attention(q, k, v, torch.ones(T_Q, T_K, dtype=torch.bool))
    assert torch.equal(bare.output, full.output)
    assert torch.equal(bare.scores, full.scores)
    assert not bare.empty_rows.any()


# ---------------------------------------------------------------- shapes


@quick
@given(st.permutations(range(T_K)), st.permutations(range(T_Q)))
def test_the_order_of_keys_does_not_matter_and_that_of_queries_carries_over(keys, queries):
    q, k, v = inputs()
    allowed = random_mask(T_Q, T_K)
    plain = scaled_dot_product_attention(q, k, v, allowed)
    moved = scaled_dot_product_attention(q[queries], k[keys], v[keys], allowed[queries][:, keys])
    assert torch.allclose(moved.output, plain.output[queries], atol=1e-12)
    assert torch.allclose(moved.weights, plain.weights[queries][:, keys], atol=1e-12)


BATCHES = st.sampled_from([(), (1,), (2,), (3, 1), (1, 2), (3, 2)])


def broadcast(*shapes):
    """Return the shape these broadcast to, or None."""
    try:
        return torch.broadcast_shapes(*shapes)
    except RuntimeError:
        return None


def joined_inputs(batch_q, batch_k, batch_v):
    return [inputs(*batch)[i] for i, batch in enumerate((batch_q, batch_k, batch_v))]


@quick
@given(BATCHES, BATCHES, BATCHES, BATCHES)
def test_leading_axes_broadcast_jointly(batch_q, batch_k, batch_v, batch_mask):
    joint = broadcast(batch_q, batch_k, batch_v)
    assume(len(batch_mask) <= len(joint) and broadcast(batch_mask, joint) == joint)
    q, k, v = joined_inputs(batch_q, batch_k, batch_v)
    allowed = random_mask(*batch_mask, T_Q, T_K)
    result = scaled_dot_product_attention(q, k, v, allowed)
    assert result.output.shape == (*joint, T_Q, D_V)
    assert result.weights.shape == result.scores.shape == (*joint, T_Q, T_K)
    assert result.empty_rows.shape == (*joint, T_Q)
    wide = [tensor.expand(*joint, *tensor.shape[-2:]) for tensor in (q, k, v, allowed)]
    for index in itertools.product(*map(range, joint)):
        output, weights = attention_by_loops(*(tensor[index] for tensor in wide))
        assert (result.output[index] - output).abs().max() <= 1e-12
        assert (result.weights[index] - weights).abs().max() <= 1e-12


@quick
@given(BATCHES, BATCHES, BATCHES, BATCHES)
def test_a_mask_may_not_enlarge_the_joint_batch(batch_q, batch_k, batch_v, batch_mask):
    joint = broadcast(batch_q, batch_k, batch_v)
    assume(len(batch_mask) > len(joint) or broadcast(batch_mask, joint) != joint)
    with pytest.raises(ValueError, match="allowed has shape"):
        scaled_dot_product_attention(
            *joined_inputs(batch_q, batch_k, batch_v), random_mask(*batch_mask, T_Q, T_K)
        )


def test_a_batch_axis_may_come_from_v_alone_and_the_mask_may_use_it():
    q, k, _ = inputs()
    v = inputs(2)[2]
    allowed = torch.stack([random_mask(T_Q, T_K, seed=1), random_mask(T_Q, T_K, seed=2)])
    result = scaled_dot_product_attention(q, k, v, allowed)
    assert result.weights.shape == (2, T_Q, T_K)
    for item in range(2):
        alone = scaled_dot_product_attention(q, k, v[item], allowed[item])
        assert torch.allclose(result.output[item], alone.output, atol=1e-12)


@pytest.mark.parametrize(
    "shape", [(), (1,), (T_K,), (1, T_K), (T_Q, 1), (1, 1, 1, T_K), (3, 1, T_Q, T_K)]
)
def test_every_mask_that_broadcasts_is_legal(shape):
    q, k, v = inputs(3, 2)
    allowed = random_mask(*shape) if shape and shape[-1] == T_K else torch.ones(shape).bool()
    result = scaled_dot_product_attention(q, k, v, allowed)
    full = scaled_dot_product_attention(q, k, v, allowed.expand(3, 2, T_Q, T_K))
    assert torch.equal(result.output, full.output)
    assert torch.equal(result.weights, full.weights)


@pytest.mark.parametrize(
    "shape", [(T_K, T_Q), (2, T_K), (T_Q + 1, T_K), (2, T_Q, T_K), (1, T_Q, T_K)]
)
def test_a_mask_that_does_not_fit_is_a_value_error_with_both_shapes(shape):
    message = rf"allowed has shape \[{', '.join(map(str, shape))}\].*\[{T_Q}, {T_K}\]"
    with pytest.raises(ValueError, match=message):
        scaled_dot_product_attention(*inputs(), torch.ones(shape, dtype=torch.bool))


def test_a_row_alone_is_the_same_row_in_a_batch():
    q, k, v = inputs(3)
    allowed = random_mask(3, T_Q, T_K)
    together = scaled_dot_product_attention(q, k, v, allowed).output
    for item, row in itertools.product(range(3), range(T_Q)):
        one = slice(row, row + 1)
        alone = scaled_dot_product_attention(q[item, one], k[item], v[item], allowed[item, one])
        assert torch.allclose(alone.output[0], together[item, row], atol=1e-12)


def test_one_query_still_respects_its_mask():
    q, k, v = inputs()
    allowed = torch.tensor([[True, False, False, True, False]])
    weights = scaled_dot_product_attention(q[:1], k, v, allowed).weights
    assert (weights[0] > 0).tolist() == allowed[0].tolist()


def test_one_key_gets_all_the_weight():
    q, k, v = inputs()
    result = scaled_dot_product_attention(q, k[:1], v[:1])
    assert (result.weights == 1).all()
    assert torch.allclose(result.output, v[:1].expand(T_Q, D_V))


# ---------------------------------------------------------------- empty rows


@pytest.mark.parametrize("batch", [(), (2,)])
def test_by_default_a_fully_masked_row_is_an_error_that_says_where(batch):
    allowed = random_mask(*batch, T_Q, T_K)
    allowed[..., 1, :] = False
    where = r"\[0, 1\], \[1, 1\]" if batch else r"\[1\]"
    with pytest.raises(ValueError, match=rf"fully masked, at index \[..., query\] {where}; "):
        scaled_dot_product_attention(*inputs(*batch), allowed)


def test_at_most_eight_rows_are_listed():
    q, k, v = normal(12, 2), normal(3, 2), normal(3, 2)
    allowed = torch.zeros(12, 3, dtype=torch.bool)
    with pytest.raises(
        ValueError, match=r"12 query row\(s\) fully masked.* \[7\], \.\.\.;"
    ) as caught:
        scaled_dot_product_attention(q, k, v, allowed)
    assert "[8]" not in str(caught.value)
    allowed[8:] = True
    with pytest.raises(ValueError, match=r"8 query row\(s\) fully masked.* \[7\];"):
        scaled_dot_product_attention(q, k, v, allowed)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_zero_policy_gives_zeros_and_finite_gradients(dtype):
    tensors = [tensor.requires_grad_() for tensor in inputs(2, dtype=dtype)]
    allowed = random_mask(2, T_Q, T_K)
    allowed[0, 1] = False
    result = scaled_dot_product_attention(*tensors, allowed, empty_row="zero")
    assert (result.weights[0, 1] == 0).all()
    assert (result.output[0, 1] == 0).all()
    assert (result.scores[0, 1] == -math.inf).all()
    assert result.empty_rows.nonzero().tolist() == [[0, 1]]
    (result.output.square().sum() + result.weights.square().sum()).backward()
    for tensor in tensors:
        assert torch.isfinite(tensor.grad).all()
    assert (tensors[0].grad[0, 1] == 0).all()
    assert (tensors[0].grad[1] != 0).any()


def test_no_nan_appears_anywhere_on_the_way_back_through_an_empty_row():
    q, k, v = (tensor.requires_grad_() for tensor in inputs())
    allowed = random_mask(T_Q, T_K)
    allowed[1] = False
    with torch.autograd.set_detect_anomaly(True):  # a NaN that is wiped out later counts too
        result = scaled_dot_product_attention(q, k, v, allowed, empty_row="zero")
        result.scores.retain_grad()
        (result.output.square().sum() + result.weights.square().sum()).backward()
    assert torch.isfinite(result.scores.grad).all()


def test_the_zero_policy_leaves_other_rows_as_they_are():
    q, k, v = inputs()
    allowed = random_mask(T_Q, T_K)
    strict = scaled_dot_product_attention(q, k, v, allowed)
    lenient = scaled_dot_product_attention(q, k, v, allowed, empty_row="zero")
    assert torch.equal(strict.output, lenient.output)
    allowed[1] = False
    emptied = scaled_dot_product_attention(q, k, v, allowed, empty_row="zero")
    assert torch.equal(emptied.output[[0, 2]], strict.output[[0, 2]])


def test_all_rows_may_be_empty_under_the_zero_policy():
    q, k, v = inputs(2)
    result = scaled_dot_product_attention(q, k, v, torch.zeros(1).bool(), empty_row="zero")
    assert (result.output == 0).all()
    assert result.empty_rows.all()


@pytest.mark.parametrize("policy", ["nan", "", None, True, "ZERO", 0])
def test_another_policy_is_a_value_error(policy):
    with pytest.raises(ValueError, match='empty_row must be "error" or "zero", got'):
        scaled_dot_product_attention(*inputs(), empty_row=policy)


# ---------------------------------------------------------------- numerics


@pytest.mark.parametrize("size", [1e3, 1e4, 1e7])
def test_huge_scores_do_not_overflow_the_softmax(size):
    q = torch.tensor([[size]], dtype=torch.float64)
    k = torch.tensor([[1.0], [1.0 - 1 / size], [-1.0]], dtype=torch.float64)
    weights = scaled_dot_product_attention(q, k, torch.eye(3, dtype=torch.float64)).weights
    expected = [1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1)), 0.0]
    assert weights[0].tolist() == pytest.approx(expected, rel=1e-6)


def test_no_finite_score_is_large_enough_to_beat_the_mask():
    q, k, v = inputs()
    allowed = random_mask(T_Q, T_K)
    allowed[:, 2] = False
    plain = scaled_dot_product_attention(q, k, v, allowed)
    k[2] = 1e8 * q[0]
    v[2] = 1e8
    assert torch.equal(scaled_dot_product_attention(q, k, v, allowed).output, plain.output)


def test_a_hidden_key_that_overflows_poisons_nothing():
    q, k, v = (tensor.requires_grad_() for tensor in inputs(dtype=torch.float32))
    allowed = random_mask(T_Q, T_K)
    allowed[:, 2] = False
    plain = scaled_dot_product_attention(q, k, v, allowed)
    gradients = torch.autograd.grad(plain.output.square().sum(), (q, k, v))
    with torch.no_grad():
        k[2] = 3e38 * torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0])
        assert not torch.isfinite(q @ k.T).all()
    result = scaled_dot_product_attention(q, k, v, allowed)
    assert torch.equal(result.output, plain.output)
    assert (result.scores[:, 2] == -math.inf).all()
    again = torch.autograd.grad(result.output.square().sum(), (q, k, v))
    for before, after in zip(gradients, again, strict=True):
        assert torch.allclose(before, after)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_readable_score_that_overflows_is_a_floating_point_error(sign):
    q, k, v = inputs(dtype=torch.float32)
    q[1] = 1e20
    k[2] = sign * 1e20
    with pytest.raises(FloatingPointError, match="overflows torch.float32"):
        scaled_dot_product_attention(q, k, v)
    wide = scaled_dot_product_attention(q.double(), k, v)
    assert wide.weights[1, 2] == (1 if sign > 0 else 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sixteen_bit_inputs_are_computed_in_float32(dtype):
    q = torch.full((2, 8), 300.0, dtype=dtype)
    k = torch.stack([q[0], q[0] * 0.5])
    v = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=dtype)
    result = scaled_dot_product_attention(q, k, v)
    assert {tensor.dtype for tensor in (result.scores, result.weights, result.output)} == {
        torch.float32
    }
    score = q[0].double() @ q[0].double() / math.sqrt(8)
    assert result.scores[0, 0].item() == pytest.approx(score.item(), rel=1e-6)
    exact = scaled_dot_product_attention(*(tensor.double() for tensor in inputs(dtype=dtype)))
    narrow = scaled_dot_product_attention(*inputs(dtype=dtype))
    assert (narrow.output - exact.output).abs().max() < 1e-5


@pytest.mark.parametrize("wide", [0, 1, 2])
def test_one_float64_input_makes_everything_float64(wide):
    tensors = inputs(dtype=torch.float16)
    tensors[wide] = tensors[wide].double()
    result = scaled_dot_product_attention(*tensors)
    assert {tensor.dtype for tensor in (result.scores, result.weights, result.output)} == {
        torch.float64
    }
    exact = scaled_dot_product_attention(*(tensor.double() for tensor in tensors))
    assert torch.equal(result.output, exact.output)


def test_the_two_sixteen_bit_formats_mix():
    q, k, v = inputs(dtype=torch.float16)
    assert scaled_dot_product_attention(q, k.bfloat16(), v).output.dtype == torch.float32


# ---------------------------------------------------------------- bad input, no state


@pytest.mark.parametrize("name", ["q", "k", "v"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_refused_wherever_it_stands(name, value):
    tensors = dict(zip("qkv", inputs(), strict=True))
    tensors[name][-1, 0] = value
    with pytest.raises(ValueError, match=f"{name} must be finite"):
        scaled_dot_product_attention(**tensors)
    hidden = torch.ones(T_Q, T_K, dtype=torch.bool)
    hidden[:, -1] = False
    with pytest.raises(ValueError, match=f"{name} must be finite"):
        scaled_dot_product_attention(**tensors, allowed=hidden)


@pytest.mark.parametrize("name", ["q", "k", "v"])
def test_wrong_kinds_of_input_are_type_errors_that_name_it(name):
    for value in (
        torch.ones(3, 3, dtype=torch.long),
        torch.ones(3, 3, dtype=torch.bool),
        [[1.0]],
        None,
    ):
        tensors = dict(zip("qkv", inputs(), strict=True)) | {name: value}
        with pytest.raises(TypeError, match=f"{name} must"):
            scaled_dot_product_attention(**tensors)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("k", torch.ones(T_K, D_K + 1), f"q has d_k={D_K} but k has d_k={D_K + 1}"),
        ("v", torch.ones(T_K + 1, D_V), f"k has T_k={T_K} but v has T_k={T_K + 1}"),
        ("q", torch.ones(D_K), r"q must have shape \[..., T, d\], got \[7\]"),
        ("q", torch.ones(0, D_K), "q has an empty axis"),
        ("k", torch.ones(0, D_K), "k has an empty axis"),
        ("v", torch.ones(T_K, 0), "v has an empty axis"),
        ("v", torch.ones(0, T_K, D_V), "v has an empty axis"),
        ("k", torch.ones(T_K, D_K, device="meta"), "k is on meta but q is on cpu"),
        ("v", torch.ones(T_K, D_V, device="meta"), "v is on meta but q is on cpu"),
        (
            "allowed",
            torch.ones(T_Q, T_K, device="meta").bool(),
            "allowed is on meta but q is on cpu",
        ),
        ("allowed", torch.ones(0, T_K).bool(), "allowed has an empty axis"),
    ],
)
def test_inputs_that_do_not_fit_are_value_errors(name, value, message):
    tensors = dict(zip("qkv", inputs(), strict=True)) | {name: value}
    with pytest.raises(ValueError, match=message):
        scaled_dot_product_attention(**tensors)


def test_batches_that_do_not_broadcast_are_a_value_error_with_all_shapes():
    with pytest.raises(
        ValueError, match=r"leading axes of q \[2, 3, 7\], k \[3, 5, 7\] and v \[5, 4\]"
    ):
        scaled_dot_product_attention(inputs(2)[0], inputs(3)[1], inputs()[2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.long, torch.uint8])
def test_a_mask_that_is_not_bool_is_a_type_error(dtype):
    with pytest.raises(TypeError, match=r"allowed must be a bool tensor \(True = may read\), got"):
        scaled_dot_product_attention(*inputs(), torch.ones(T_Q, T_K, dtype=dtype))


def test_arguments_are_left_alone_and_calls_do_not_remember():
    q, k, v = inputs(2)
    allowed = random_mask(2, T_Q, T_K)
    allowed[0, 0] = False
    copies = [tensor.clone() for tensor in (q, k, v, allowed)]
    first = scaled_dot_product_attention(q, k, v, allowed, empty_row="zero")
    scaled_dot_product_attention(*inputs(seed=5))
    second = scaled_dot_product_attention(q, k, v, allowed, empty_row="zero")
    assert torch.equal(first.output, second.output)
    assert torch.equal(first.weights, second.weights)
    for tensor, copy in zip((q, k, v, allowed), copies, strict=True):
        assert torch.equal(tensor, copy)


# ---------------------------------------------------------------- heads


def test_head_h_of_a_token_is_its_hth_slice():
    x = torch.arange(2 * 3 * 8, dtype=torch.float32).reshape(2, 3, 8)
    heads = split_heads(x, 4)
    assert heads.shape == (2, 4, 3, 2)
    for b, h, t in itertools.product(range(2), range(4), range(3)):
        assert torch.equal(heads[b, h, t], x[b, t, 2 * h : 2 * h + 2])


@quick
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.sampled_from([(), (2,), (2, 3)]))
def test_merging_undoes_splitting(t, n_heads, d_head, batch):
    x = normal(*batch, t, n_heads * d_head)
    assert torch.equal(merge_heads(split_heads(x, n_heads)), x)
    heads = normal(*batch, n_heads, t, d_head)
    assert torch.equal(split_heads(merge_heads(heads), n_heads), heads)


def test_heads_that_cannot_be_cut_or_merged_are_refused():
    with pytest.raises(ValueError, match="d_model=6 is not divisible by n_heads=4"):
        split_heads(torch.ones(1, 2, 6), 4)
    with pytest.raises(ValueError, match=r"x must have shape \[..., T, d_model\], got \[6\]"):
        split_heads(torch.ones(6), 2)
    with pytest.raises(TypeError, match="n_heads must be an integer"):
        split_heads(torch.ones(1, 2, 6), 2.0)
    with pytest.raises(
        ValueError, match=r"x must have shape \[..., n_heads, T, d_head\], got \[2, 6\]"
    ):
        merge_heads(torch.ones(2, 6))
    with pytest.raises(TypeError, match="x must be a torch.Tensor"):
        merge_heads([1.0])


# ---------------------------------------------------------------- multi-head self-attention

D_MODEL, T = 12, 5


def self_attention(n_heads=3, *, causal=True, seed=0):
    torch.manual_seed(seed)
    return MultiHeadSelfAttention(D_MODEL, n_heads, causal=causal).double()


def torch_twin(attn):
    """Build torch's own multi-head attention with the same weights."""
    twin = nn.MultiheadAttention(D_MODEL, attn.n_heads, bias=False, batch_first=True).double()
    with torch.no_grad():
        twin.in_proj_weight.copy_(attn.qkv.weight)
        twin.out_proj.weight.copy_(attn.out.weight)
    return twin


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("n_heads", [1, 2, 3, 4, 12])
def test_torch_multi_head_attention_has_the_same_numbers(n_heads, causal):
    attn = self_attention(n_heads, causal=causal)
    x = normal(n_heads if n_heads < 4 else 2, T, D_MODEL).requires_grad_()  # B == H and B != H
    hidden = ~causal_allowed(T, T) if causal else None  # torch's True means "may not read"
    y, weights = attn(x, return_weights=True)
    expected, expected_weights = torch_twin(attn)(
        x, x, x, attn_mask=hidden, average_attn_weights=False
    )
    assert (y - expected).abs().max() <= 1e-12
    assert (weights - expected_weights).abs().max() <= 1e-12
    gradient = torch.autograd.grad(y.square().sum(), x)[0]
    expected_gradient = torch.autograd.grad(expected.square().sum(), x)[0]
    assert (gradient - expected_gradient).abs().max() <= 1e-11


def test_every_head_is_one_small_attention():
    attn = self_attention(3)
    x = normal(2, T, D_MODEL)
    w_q, w_k, w_v = attn.qkv.weight.split(D_MODEL)
    heads = []
    for h in range(3):
        rows = slice(4 * h, 4 * h + 4)
        q, k, v = (x @ w[rows].T for w in (w_q, w_k, w_v))
        scores = (q @ k.transpose(1, 2) / 2).masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf)
        heads.append(scores.softmax(dim=-1) @ v)
    expected = torch.cat(heads, dim=-1) @ attn.out.weight.T
    assert (attn(x) - expected).abs().max() <= 1e-12


@pytest.mark.parametrize("batch", [2, 3])
def test_padding_is_neither_read_nor_allowed_to_query(batch):
    attn = self_attention(2, causal=False)
    x = normal(batch, T, D_MODEL).requires_grad_()
    lengths = [T, 3, 1][:batch]
    valid = torch.tensor([[t < length for t in range(T)] for length in lengths])
    y, weights = attn(x, token_valid=valid, empty_row="zero", return_weights=True)
    assert (y[~valid] == 0).all()
    assert (weights.transpose(1, 2)[~valid] == 0).all()
    sums = weights.transpose(1, 2)[valid].sum(dim=-1)
    assert torch.allclose(sums, torch.ones_like(sums))
    for item, length in enumerate(lengths):
        assert (weights[item, :, :, length:] == 0).all()
        alone = attn(x[item : item + 1, :length])
        assert torch.allclose(y[item, :length], alone[0], atol=1e-12)
    y.square().sum().backward()
    assert torch.isfinite(x.grad).all()
    assert torch.isfinite(attn.qkv.weight.grad).all()
    assert (x.grad[~valid] == 0).all()


@pytest.mark.parametrize("causal", [True, False])
def test_what_the_padding_holds_does_not_matter(causal):
    attn = self_attention(causal=causal)
    x = normal(2, T, D_MODEL)
    valid = torch.tensor([[False, True, True, True, True], [True, True, False, True, False]])
    other = torch.where(valid.unsqueeze(-1), x, normal(2, T, D_MODEL, seed=4))
    y = attn(x, token_valid=valid, empty_row="zero")
    assert torch.equal(attn(other, token_valid=valid, empty_row="zero"), y)


def test_padding_agrees_with_torch_on_the_valid_rows():
    attn = self_attention(causal=False)
    x = normal(2, T, D_MODEL)
    valid = torch.tensor([[True, True, True, False, False], [True] * 5])
    y = attn(x, token_valid=valid, empty_row="zero")
    expected, _ = torch_twin(attn)(x, x, x, key_padding_mask=~valid)
    assert (y - expected)[valid].abs().max() <= 1e-12


def test_a_padded_batch_under_the_default_policy_raises():
    valid = torch.tensor([[True] * T, [True, True, True, False, False]])
    with pytest.raises(ValueError, match="fully masked"):
        self_attention()(normal(2, T, D_MODEL), token_valid=valid)


def test_an_all_valid_batch_is_the_batch_without_a_mask():
    attn = self_attention()
    x = normal(2, T, D_MODEL)
    assert torch.equal(attn(x, token_valid=torch.ones(2, T, dtype=torch.bool)), attn(x))


def test_asking_for_the_weights_does_not_change_the_output():
    attn = self_attention()
    x = normal(2, T, D_MODEL)
    valid = torch.tensor([[True] * T, [True, True, True, False, False]])
    for keywords in ({}, {"token_valid": valid, "empty_row": "zero"}):
        y, weights = attn(x, return_weights=True, **keywords)
        assert torch.equal(attn(x, **keywords), y)
        assert weights.shape == (2, 3, T, T)


@pytest.mark.parametrize("changed", range(T))
def test_a_later_token_leaves_earlier_outputs_alone_exactly_when_causal(changed):
    x = normal(1, T, D_MODEL)
    other = x.clone()
    other[0, changed] += 1
    causal, open_ = self_attention(causal=True), self_attention(causal=False)
    moved = (causal(x) - causal(other)).abs().amax(dim=(0, 2))
    assert (moved[:changed] == 0).all()
    assert (moved[changed:] > 1e-6).all()
    assert ((open_(x) - open_(other)).abs().amax(dim=(0, 2)) > 1e-6).all()


@quick
@given(st.permutations(range(T)))
def test_without_a_mask_permuting_tokens_permutes_outputs(order):
    attn = self_attention(causal=False)
    x = normal(2, T, D_MODEL)
    assert torch.allclose(attn(x[:, order]), attn(x)[:, order], atol=1e-12)


def test_switching_causal_off_afterwards_takes_effect():
    attn = self_attention(causal=True)
    x = normal(1, T, D_MODEL)
    attn.causal = False
    assert torch.equal(attn(x), self_attention(causal=False)(x))


def test_the_parameters_are_two_matrices_without_bias():
    shapes = {name: tuple(p.shape) for name, p in self_attention().named_parameters()}
    assert shapes == {"qkv.weight": (36, 12), "out.weight": (12, 12)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_layer_keeps_the_dtype_of_its_stream(dtype):
    attn = self_attention().to(dtype)
    y, weights = attn(normal(1, T, D_MODEL).to(dtype), return_weights=True)
    assert y.dtype == dtype
    assert weights.dtype == torch.float32


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((30, 8), ValueError, "d_model=30 is not divisible by n_heads=8"),
        ((0, 1), ValueError, "d_model must be at least 1"),
        ((4, -1), ValueError, "n_heads must be at least 1"),
        ((True, 1), TypeError, "d_model must be an integer"),
        ((4, 2.0), TypeError, "n_heads must be an integer"),
    ],
)
@pytest.mark.parametrize("layer", [MultiHeadSelfAttention, MultiHeadCrossAttention])
def test_sizes_that_make_no_layer_are_refused(layer, arguments, error, message):
    with pytest.raises(error, match=message):
        layer(*arguments)


def test_causal_must_be_a_bool():
    with pytest.raises(TypeError, match="causal must be True or False, got 1"):
        MultiHeadSelfAttention(4, 2, causal=1)


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (torch.ones(T, D_MODEL).double(), ValueError, r"shape \[B, T, d_model\]"),
        (
            torch.ones(1, T, D_MODEL + 1).double(),
            ValueError,
            "x has width 13 but the layer has d_model=12",
        ),
        (
            torch.ones(1, T, D_MODEL),
            TypeError,
            "x is torch.float32 but qkv.weight is torch.float64",
        ),
        (torch.ones(1, 0, D_MODEL).double(), ValueError, "x has an empty axis"),
        (torch.full((1, T, D_MODEL), math.nan).double(), ValueError, "x must be finite"),
        (torch.ones(1, T, D_MODEL, dtype=torch.long), TypeError, "floating-point"),
    ],
)
def test_a_stream_that_does_not_fit_is_refused(x, error, message):
    with pytest.raises(error, match=message):
        self_attention()(x)


@pytest.mark.parametrize(
    ("valid", "error", "message"),
    [
        (torch.ones(2, T), TypeError, "token_valid must be a bool tensor"),
        (
            torch.ones(1, T).bool(),
            ValueError,
            r"token_valid must have shape \[B, T\] = \[2, 5\], got",
        ),
        (torch.ones(T).bool(), ValueError, "token_valid must have shape"),
        (torch.ones(2, T, 1).bool(), ValueError, "token_valid must have shape"),
        (torch.ones(2, T, device="meta").bool(), ValueError, "token_valid is on meta"),
    ],
)
def test_a_padding_mask_that_does_not_fit_is_refused(valid, error, message):
    with pytest.raises(error, match=message):
        self_attention()(normal(2, T, D_MODEL), token_valid=valid, empty_row="zero")


# ---------------------------------------------------------------- cross-attention

T_MEMORY = 7


def cross_attention(n_heads=3):
    torch.manual_seed(1)
    return MultiHeadCrossAttention(D_MODEL, n_heads).double()


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("n_heads", [1, 2, 3])
def test_torch_agrees_on_cross_attention(n_heads, padded):
    cross = cross_attention(n_heads)
    twin = nn.MultiheadAttention(D_MODEL, n_heads, bias=False, batch_first=True).double()
    with torch.no_grad():
        twin.in_proj_weight.copy_(torch.cat([cross.q.weight, cross.kv.weight]))
        twin.out_proj.weight.copy_(cross.out.weight)
    x, memory = normal(2, T, D_MODEL), normal(2, T_MEMORY, D_MODEL, seed=1)
    valid = torch.arange(T_MEMORY) < torch.tensor([[T_MEMORY], [4]]) if padded else None
    y, weights = cross(x, memory, memory_valid=valid, return_weights=True)
    expected, expected_weights = twin(
        x,
        memory,
        memory,
        key_padding_mask=None if valid is None else ~valid,
        average_attn_weights=False,
    )
    assert (y - expected).abs().max() <= 1e-12
    assert (weights - expected_weights).abs().max() <= 1e-12
    assert torch.equal(cross(x, memory, memory_valid=valid), y)


def test_what_the_memory_padding_holds_does_not_matter():
    cross = cross_attention()
    x, memory = normal(2, T, D_MODEL), normal(2, T_MEMORY, D_MODEL, seed=1)
    valid = torch.ones(2, T_MEMORY, dtype=torch.bool)
    valid[1, 4:] = False
    other = memory.clone()
    other[1, 4:] = 9.0
    y = cross(x, memory, memory_valid=valid)
    assert torch.equal(cross(x, other, memory_valid=valid), y)
    assert not torch.allclose(cross(x, other), cross(x, memory))


def test_a_memory_with_nothing_to_read_is_an_error():
    valid = torch.zeros(2, T_MEMORY, dtype=torch.bool)
    with pytest.raises(ValueError, match="fully masked"):
        cross_attention()(normal(2, T, D_MODEL), normal(2, T_MEMORY, D_MODEL), memory_valid=valid)


@pytest.mark.parametrize(
    ("memory", "error", "message"),
    [
        (normal(1, T_MEMORY, D_MODEL), ValueError, "x has batch 2 but memory has batch 1"),
        (normal(2, T_MEMORY, 4), ValueError, "memory has width 4"),
        (normal(2, T_MEMORY, D_MODEL).float(), TypeError, "memory is torch.float32"),
        (None, TypeError, "memory must be a torch.Tensor"),
    ],
)
def test_a_memory_that_does_not_fit_is_refused(memory, error, message):
    with pytest.raises(error, match=message):
        cross_attention()(normal(2, T, D_MODEL), memory)


def test_a_memory_mask_must_have_the_shape_of_the_memory():
    valid = torch.ones(2, T, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"memory_valid must have shape \[B, T\] = \[2, 7\]"):
        cross_attention()(normal(2, T, D_MODEL), normal(2, T_MEMORY, D_MODEL), memory_valid=valid)


def test_a_sixteen_bit_cross_attention_keeps_its_dtype():
    cross = cross_attention().bfloat16()
    y = cross(normal(2, T, D_MODEL).bfloat16(), normal(2, T_MEMORY, D_MODEL).bfloat16())
    assert y.dtype == torch.bfloat16
