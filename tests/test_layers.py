"""Normalisation, the feed-forward network and the blocks, against torch's own."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.layers import (
    DecoderBlock,
    EncoderBlock,
    EncoderDecoderBlock,
    FeedForward,
    layer_norm,
)

quick = settings(max_examples=25, deadline=None, derandomize=True)
B, T, D_MODEL, N_HEADS, D_FF = 2, 5, 12, 3, 20


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


def made(block_type, *arguments, seed=0):
    """Build a block whose norms and biases are not their telltale ones and zeros."""
    torch.manual_seed(seed)
    block = block_type(*arguments).double()
    with torch.no_grad():
        for index, (name, parameter) in enumerate(block.named_parameters()):
            if parameter.dim() == 1:
                parameter.copy_(("weight" in name) + 0.3 * normal(*parameter.shape, seed=index))
    return block


# ---------------------------------------------------------------- layer norm


def test_the_reference_example_is_reproduced():
    x = numbers(1, 2, 3, 4)
    y = layer_norm(x, torch.ones(4).double(), torch.zeros(4).double(), eps=0)
    root = math.sqrt(1.25)  # mean 2.5, biased variance 1.25
    assert (y - numbers(-1.5, -0.5, 0.5, 1.5) / root).abs().max() <= 1e-12


def test_the_variance_divides_by_d_and_not_by_d_minus_one():
    y = layer_norm(numbers(1, 0, 0, 0), torch.ones(4).double(), torch.zeros(4).double(), eps=0)
    assert y[0].item() == pytest.approx(math.sqrt(3), abs=1e-12)


@pytest.mark.parametrize("eps", [0, 1e-5, 0.1, 3.0])
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("shape", [(5,), (4, 2), (2, 3, 7)])
def test_torch_agrees_in_output_and_gradients(shape, size, eps):
    x = (size * normal(*shape) + 3 * size).requires_grad_()
    gain, bias = (
        normal(shape[-1], seed=1).requires_grad_(),
        normal(shape[-1], seed=2).requires_grad_(),
    )
    y = layer_norm(x, gain, bias, eps)
    expected = F.layer_norm(x, shape[-1:], gain, bias, eps)
    assert (y - expected).abs().max() <= 1e-10
    direction = normal(*shape, seed=3)
    for mine, other in zip(
        torch.autograd.grad((y * direction).sum(), (x, gain, bias)),
        torch.autograd.grad((expected * direction).sum(), (x, gain, bias)),
        strict=True,
    ):
        assert torch.allclose(mine, other, rtol=1e-8, atol=1e-9)


def test_without_an_eps_torch_agrees_to_twelve_digits():
    x, ones, zeros = normal(6, 8), torch.ones(8).double(), torch.zeros(8).double()
    assert (layer_norm(x, ones, zeros, 0) - F.layer_norm(x, (8,), eps=0)).abs().max() <= 1e-12


def test_the_default_eps_is_that_of_torch_and_lies_inside_the_root():
    x = 1e-3 * normal(3, 4)
    y = layer_norm(x, torch.ones(4).double(), torch.zeros(4).double())
    assert (y - nn.LayerNorm(4).double()(x)).abs().max() <= 1e-12


def test_a_token_is_normalised_alone():
    x, gain, bias = normal(1, 4, 6), normal(6, seed=1), normal(6, seed=2)
    y = layer_norm(x, gain, bias)
    x[0, 3] = 99 * normal(6, seed=5)
    assert torch.equal(layer_norm(x, gain, bias)[0, :3], y[0, :3])


@quick
@given(st.floats(0.1, 100), st.floats(-100, 100))
def test_shifting_and_stretching_a_token_changes_nothing_without_eps(stretch, shift):
    x, ones, zeros = normal(3, 6), torch.ones(6).double(), torch.zeros(6).double()
    moved = layer_norm(stretch * x + shift, ones, zeros, 0)
    assert torch.allclose(moved, layer_norm(x, ones, zeros, 0), atol=1e-9)


def test_sixteen_bits_are_computed_in_float32():
    x = (300 * normal(2, 8)).half()  # the squares pass 65504
    y = layer_norm(x, torch.ones(8).half(), torch.zeros(8).half())
    assert y.dtype == torch.float32
    assert (y - F.layer_norm(x.double(), (8,))).abs().max() < 1e-5


def test_equal_numbers_need_an_eps():
    x, ones, zeros = torch.full((2, 4), 7.0), torch.ones(4), torch.zeros(4)
    assert (layer_norm(x, ones, zeros) == 0).all()
    with pytest.raises(ValueError, match="eps must be above 0 here: all the numbers of a token"):
        layer_norm(x, ones, zeros, 0)


def test_a_variance_that_overflows_is_a_floating_point_error():
    x = torch.tensor([1e30, -1e30])
    with pytest.raises(FloatingPointError, match="variance of x overflows torch.float32"):
        layer_norm(x, torch.ones(2), torch.zeros(2))


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("x", torch.ones(2, 4).long(), TypeError, "x must hold floating-point numbers"),
        ("x", torch.tensor(1.0), ValueError, r"x must have shape \[..., d\]"),
        ("x", torch.ones(2, 0), ValueError, "x has an empty axis"),
        ("x", torch.full((2, 4), math.nan), ValueError, "x must be finite"),
        ("gain", torch.ones(3), ValueError, r"gain must have shape \[4\], got \[3\]"),
        ("gain", torch.full((4,), math.inf), ValueError, "gain must be finite"),
        ("gain", None, TypeError, "gain must be a torch.Tensor"),
        ("bias", torch.ones(2, 4), ValueError, r"bias must have shape \[4\], got \[2, 4\]"),
        ("bias", torch.ones(4, device="meta"), ValueError, "bias is on meta but x is on cpu"),
        ("eps", -1e-9, ValueError, "eps must not be negative, got -1e-09"),
        ("eps", math.nan, ValueError, "eps must be finite"),
        ("eps", True, TypeError, "eps must be a number"),
    ],
)
def test_bad_arguments_are_refused(name, value, error, message):
    arguments = {
        "x": normal(2, 4).float(),
        "gain": torch.ones(4),
        "bias": torch.ones(4),
        "eps": 1e-5,
    }
    with pytest.raises(error, match=message):
        layer_norm(**arguments | {name: value})


def test_the_arguments_are_left_alone():
    tensors = [normal(2, 4), normal(4, seed=1), normal(4, seed=2)]
    copies = [tensor.clone() for tensor in tensors]
    layer_norm(*tensors)
    assert all(map(torch.equal, tensors, copies))


# ---------------------------------------------------------------- feed-forward


def test_the_feed_forward_network_is_two_matrices_and_the_exact_gelu():
    ffn = made(FeedForward, 3, 5)
    x = normal(1, 2, 3)
    wide = x @ ffn.up.weight.T + ffn.up.bias
    bent = wide * 0.5 * (1 + torch.erf(wide / math.sqrt(2)))
    assert (ffn(x) - (bent @ ffn.down.weight.T + ffn.down.bias)).abs().max() <= 1e-12


def test_the_gelu_is_not_the_tanh_form():
    ffn = FeedForward(1, 1).double()
    with torch.no_grad():
        for parameter in ffn.parameters():
            parameter.fill_(1.0 if parameter.dim() == 2 else 0.0)
    y = ffn(torch.full((1, 1, 1), 2.3, dtype=torch.float64)).item()
    assert y == pytest.approx(2.3 * 0.5 * math.erfc(-2.3 / math.sqrt(2)), abs=1e-12)


def test_the_feed_forward_network_works_on_each_token_alone():
    ffn = made(FeedForward, 3, 5)
    x = normal(2, 4, 3)
    together = ffn(x)
    for t in range(4):
        assert torch.allclose(ffn(x[:, t : t + 1]), together[:, t : t + 1], atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0, 4), ValueError, "d_model must be at least 1"),
        ((4, 0), ValueError, "d_ff must be at least 1"),
        ((True, 4), TypeError, "d_model must be an integer"),
        ((4, 4.0), TypeError, "d_ff must be an integer"),
    ],
)
def test_sizes_that_make_no_network_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        FeedForward(*arguments)


def test_a_stream_of_another_width_is_refused():
    with pytest.raises(ValueError, match="x has width 4 but the layer has d_model=3"):
        FeedForward(3, 5)(torch.ones(1, 2, 4))


# ---------------------------------------------------------------- blocks


def copy_attention(twin, attn):
    twin.in_proj_weight.copy_(attn.qkv.weight)
    twin.out_proj.weight.copy_(attn.out.weight)
    twin.in_proj_bias.zero_()
    twin.out_proj.bias.zero_()


def copy_rest(twin, block, norms):
    twin.linear1.load_state_dict(block.ffn.up.state_dict())
    twin.linear2.load_state_dict(block.ffn.down.state_dict())
    for theirs, ours in norms:
        getattr(twin, theirs).load_state_dict(getattr(block, ours).state_dict())


def torch_layer(layer_type):
    return layer_type(
        D_MODEL, N_HEADS, D_FF, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    ).double()


def encoder_twin(block):
    """Build torch's pre-norm encoder layer with the weights of our block."""
    twin = torch_layer(nn.TransformerEncoderLayer)
    with torch.no_grad():
        copy_attention(twin.self_attn, block.attn)
        copy_rest(twin, block, [("norm1", "ln1"), ("norm2", "ln2")])
    return twin


def encoder_decoder_twin(block):
    """Build torch's pre-norm decoder layer with the weights of our block."""
    twin = torch_layer(nn.TransformerDecoderLayer)
    cross = block.cross_attn
    with torch.no_grad():
        copy_attention(twin.self_attn, block.self_attn)
        twin.multihead_attn.in_proj_weight.copy_(torch.cat([cross.q.weight, cross.kv.weight]))
        twin.multihead_attn.out_proj.weight.copy_(cross.out.weight)
        twin.multihead_attn.in_proj_bias.zero_()
        twin.multihead_attn.out_proj.bias.zero_()
        copy_rest(twin, block, [("norm1", "ln1"), ("norm2", "ln2"), ("norm3", "ln3")])
    return twin


def causal_hidden(t):
    return torch.ones(t, t, dtype=torch.bool).triu(1)  # torch's True means "may not read"


def assert_same_with_gradients(y, expected, inputs):
    assert (y - expected).abs().max() <= 1e-12
    direction = normal(*y.shape, seed=8)
    for mine, other in zip(
        torch.autograd.grad((y * direction).sum(), inputs),
        torch.autograd.grad((expected * direction).sum(), inputs),
        strict=True,
    ):
        assert (mine - other).abs().max() <= 1e-11


def test_the_encoder_block_is_torchs_encoder_layer():
    block = made(EncoderBlock, D_MODEL, N_HEADS, D_FF)
    x = normal(B, T, D_MODEL).requires_grad_()
    assert_same_with_gradients(block(x), encoder_twin(block)(x), (x,))


def test_the_decoder_block_is_torchs_encoder_layer_with_a_causal_mask():
    block = made(DecoderBlock, D_MODEL, N_HEADS, D_FF)
    x = normal(B, T, D_MODEL).requires_grad_()
    expected = encoder_twin(block)(x, src_mask=causal_hidden(T))
    assert_same_with_gradients(block(x), expected, (x,))


@pytest.mark.parametrize("padded", [False, True])
def test_the_encoder_decoder_block_is_torchs_decoder_layer(padded):
    block = made(EncoderDecoderBlock, D_MODEL, N_HEADS, D_FF)
    x = normal(B, T, D_MODEL).requires_grad_()
    memory = normal(B, 7, D_MODEL, seed=1).requires_grad_()
    valid = torch.arange(7) < torch.tensor([[7], [4]]) if padded else None
    expected = encoder_decoder_twin(block)(
        x,
        memory,
        tgt_mask=causal_hidden(T),
        memory_key_padding_mask=None if valid is None else ~valid,
    )
    assert_same_with_gradients(block(x, memory, memory_valid=valid), expected, (x, memory))


def test_a_padded_encoder_agrees_with_torch_on_the_valid_rows():
    block = made(EncoderBlock, D_MODEL, N_HEADS, D_FF)
    x = normal(B, T, D_MODEL)
    valid = torch.arange(T) < torch.tensor([[T], [3]])
    y = block(x, token_valid=valid, empty_row="zero")
    expected = encoder_twin(block)(x, src_key_padding_mask=~valid)
    assert (y - expected)[valid].abs().max() <= 1e-12
    feed_only = x + block.ffn(block.ln2(x))
    assert torch.allclose(y[~valid], feed_only[~valid], atol=1e-12)
    with pytest.raises(ValueError, match="fully masked"):
        block(x, token_valid=valid)


@pytest.mark.parametrize("block_type", [EncoderBlock, DecoderBlock])
def test_the_length_of_a_neighbour_does_not_matter(block_type):
    block = made(block_type, D_MODEL, N_HEADS, D_FF)
    x = normal(B, T, D_MODEL)
    valid = torch.arange(T) < torch.tensor([[T], [3]])
    together = block(x, token_valid=valid, empty_row="zero")
    alone = block(x[1:, :3])
    assert torch.allclose(together[1:, :3], alone, atol=1e-12)


def test_sublayers_that_add_nothing_leave_the_stream_as_it_was():
    x, memory = normal(B, T, D_MODEL), normal(B, 7, D_MODEL)
    decoder = made(DecoderBlock, D_MODEL, N_HEADS, D_FF)
    both = made(EncoderDecoderBlock, D_MODEL, N_HEADS, D_FF)
    with torch.no_grad():
        for projection in (decoder.attn.out, both.self_attn.out, both.cross_attn.out):
            projection.weight.zero_()
        for ffn in (decoder.ffn, both.ffn):
            ffn.down.weight.zero_()
            ffn.down.bias.zero_()
    assert torch.equal(decoder(x), x)
    assert torch.equal(both(x, memory), x)


@pytest.mark.parametrize("changed", range(T))
def test_a_later_token_leaves_earlier_outputs_alone_in_every_decoder(changed):
    memory = normal(1, 7, D_MODEL, seed=2)
    x = normal(1, T, D_MODEL)
    other = x.clone()
    other[0, changed] += normal(D_MODEL, seed=3)
    decoder = made(DecoderBlock, D_MODEL, N_HEADS, D_FF)
    both = made(EncoderDecoderBlock, D_MODEL, N_HEADS, D_FF)
    encoder = made(EncoderBlock, D_MODEL, N_HEADS, D_FF)
    for moved in (decoder(x) - decoder(other), both(x, memory) - both(other, memory)):
        assert (moved[0, :changed] == 0).all()
        assert (moved[0, changed:].abs().amax(dim=-1) > 1e-6).all()
    assert ((encoder(x) - encoder(other))[0].abs().amax(dim=-1) > 1e-6).all()


def test_the_blocks_have_the_names_of_the_course():
    assert [name for name, _ in DecoderBlock(4, 2, 8).named_children()] == [
        "ln1",
        "attn",
        "ln2",
        "ffn",
    ]
    assert [name for name, _ in EncoderBlock(4, 2, 8).named_children()] == [
        "ln1",
        "attn",
        "ln2",
        "ffn",
    ]
    names = [name for name, _ in EncoderDecoderBlock(4, 2, 8).named_children()]
    assert names == ["ln1", "self_attn", "ln2", "cross_attn", "ln3", "ffn"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_block_keeps_the_dtype_of_its_stream(dtype):
    x, memory = normal(1, 3, 4).to(dtype), normal(1, 2, 4).to(dtype)
    assert DecoderBlock(4, 2, 8).to(dtype)(x).dtype == dtype
    assert EncoderDecoderBlock(4, 2, 8).to(dtype)(x, memory).dtype == dtype


@pytest.mark.parametrize("block_type", [EncoderBlock, DecoderBlock, EncoderDecoderBlock])
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((6, 4, 8), ValueError, "d_model=6 is not divisible by n_heads=4"),
        ((4.0, 2, 8), TypeError, "d_model must be an integer"),
        ((4, True, 8), TypeError, "n_heads must be an integer"),
        ((4, 2, 0), ValueError, "d_ff must be at least 1"),
    ],
)
def test_sizes_that_make_no_block_are_refused(block_type, arguments, error, message):
    with pytest.raises(error, match=message):
        block_type(*arguments)


def test_a_stream_that_does_not_fit_is_refused_by_every_block():
    narrow = torch.ones(1, 3, 2)
    with pytest.raises(ValueError, match="x has width 2 but the layer has d_model=4"):
        DecoderBlock(4, 2, 8)(narrow)
    with pytest.raises(ValueError, match="x has width 2 but the layer has d_model=4"):
        EncoderDecoderBlock(4, 2, 8)(narrow, torch.ones(1, 3, 4))
    with pytest.raises(ValueError, match="memory has width 2 but the layer has d_model=4"):
        EncoderDecoderBlock(4, 2, 8)(torch.ones(1, 3, 4), narrow)
