"""Cost: how many parameters there are, by formula and by counting."""

from dataclasses import dataclass

from torch import nn

from course_lib.arguments import check_module
from course_lib.integers import check_positive_int


@dataclass(frozen=True)
class ParameterFloor:
    """The weights of the big matrices alone: no biases, no norms, no embeddings."""

    mha_weights: int
    ffn_weights: int
    encoder_layer: int
    decoder_layer: int
    ffn_share_encoder: float


def transformer_parameter_floor(d_model: int, d_ff: int) -> ParameterFloor:
    """Count the weights that a Transformer layer of this size cannot do without.

        attention 4 d_model² (q, k, v, out),   feed-forward 2 d_model d_ff (up, down)

    The decoder layer is the encoder-decoder's: it has two attentions, self and cross.
    """
    check_positive_int("d_model", d_model)
    check_positive_int("d_ff", d_ff)
    mha = 4 * int(d_model) ** 2  # int: a NumPy integer could overflow
    ffn = 2 * int(d_model) * int(d_ff)
    return ParameterFloor(
        mha_weights=mha,
        ffn_weights=ffn,
        encoder_layer=mha + ffn,
        decoder_layer=2 * mha + ffn,
        ffn_share_encoder=ffn / (mha + ffn),
    )


def count_parameters(module: nn.Module) -> int:
    """Count the learned numbers of a module; a Parameter used twice counts once."""
    check_module("module", module)
    return sum(parameter.numel() for parameter in module.parameters())


def count_matrix_weights(module: nn.Module) -> int:
    """Count the numbers in matrices only: what `transformer_parameter_floor` counts."""
    check_module("module", module)
    return sum(parameter.numel() for parameter in module.parameters() if parameter.dim() == 2)
