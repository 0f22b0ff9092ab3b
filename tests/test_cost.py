"""Parameters, by formula and by counting; the two cannot disagree."""

import numpy as np
import pytest
import torch
from torch import nn

from course_lib.cost import (
    ParameterFloor,
    count_matrix_weights,
    count_parameters,
    transformer_parameter_floor,
)
from course_lib.layers import DecoderBlock, EncoderBlock, EncoderDecoderBlock
from course_lib.tiny_lm import TinyLM


def test_the_reference_sizes_have_the_reference_counts():
    floor = transformer_parameter_floor(512, 2048)
    assert floor == ParameterFloor(
        mha_weights=1_048_576,
        ffn_weights=2_097_152,
        encoder_layer=3_145_728,
        decoder_layer=4_194_304,
        ffn_share_encoder=2 / 3,
    )
    with pytest.raises(AttributeError):
        floor.mha_weights = 0


@pytest.mark.parametrize(("d_model", "n_heads", "d_ff"), [(12, 3, 20), (8, 1, 8), (6, 2, 40)])
def test_the_blocks_have_the_weights_that_the_formula_says(d_model, n_heads, d_ff):
    floor = transformer_parameter_floor(d_model, d_ff)
    encoder = EncoderBlock(d_model, n_heads, d_ff)
    decoder = DecoderBlock(d_model, n_heads, d_ff)
    both = EncoderDecoderBlock(d_model, n_heads, d_ff)
    assert count_matrix_weights(encoder.attn) == floor.mha_weights
    assert count_matrix_weights(both.cross_attn) == floor.mha_weights
    assert count_matrix_weights(encoder.ffn) == floor.ffn_weights
    assert count_matrix_weights(encoder) == count_matrix_weights(decoder) == floor.encoder_layer
    assert count_matrix_weights(both) == floor.decoder_layer
    assert floor.ffn_share_encoder == floor.ffn_weights / floor.encoder_layer


def test_numpy_sizes_do_not_overflow():
    floor = transformer_parameter_floor(np.int32(50_000), np.int16(30_000))
    assert floor.mha_weights == 10_000_000_000
    assert floor.ffn_weights == 3_000_000_000
    assert type(floor.encoder_layer) is int


@pytest.mark.parametrize("name", ["d_model", "d_ff"])
@pytest.mark.parametrize(
    ("value", "error"), [(True, TypeError), (4.0, TypeError), (0, ValueError), (-1, ValueError)]
)
def test_bad_sizes_are_refused_by_name(name, value, error):
    with pytest.raises(error, match=f"{name} must be"):
        transformer_parameter_floor(**{"d_model": 4, "d_ff": 8, name: value})


def test_a_small_network_is_counted_by_hand():
    network = nn.Sequential(nn.Linear(3, 5), nn.LayerNorm(5), nn.Linear(5, 2, bias=False))
    assert count_parameters(network) == 15 + 5 + 5 + 5 + 10
    assert count_matrix_weights(network) == 15 + 10


def test_a_tied_matrix_counts_once():
    tied = TinyLM(vocab_size=7, d_model=4, n_heads=2, d_ff=8)
    untied = TinyLM(vocab_size=7, d_model=4, n_heads=2, d_ff=8)
    untied.head.weight = nn.Parameter(torch.zeros(7, 4))
    assert count_parameters(untied) - count_parameters(tied) == 7 * 4
    assert count_matrix_weights(untied) - count_matrix_weights(tied) == 7 * 4


def test_frozen_parameters_count_and_buffers_do_not():
    layer = nn.Linear(2, 3).requires_grad_(False)
    layer.register_buffer("table", torch.ones(4, 4))
    assert count_parameters(layer) == 9
    assert count_matrix_weights(layer) == 6


def test_only_modules_can_be_counted():
    for count in (count_parameters, count_matrix_weights):
        with pytest.raises(TypeError, match="module must be a torch.nn.Module, got list"):
            count([])
