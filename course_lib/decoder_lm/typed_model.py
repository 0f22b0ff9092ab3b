"""The forward pass over new positions, given what is remembered of the past ones."""

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.decoder_lm.choice import TokenScore, stable_log_softmax
from course_lib.decoder_lm.errors import ContextOverflow
from course_lib.decoder_lm.shape import ModelShape, check_parameters, map_parameters


def fit_context(
    tokens: Sequence[int], shape: ModelShape, allow_truncation: bool = False
) -> list[int]:
    """Return the tokens if the model has positions for them; never drop one without leave.

    Args:    allow_truncation: keep the last context_length tokens and forget the front
    Raises:  ContextOverflow when they do not fit and nothing may be dropped
    """
    if len(tokens) <= shape.context_length:
        return list(tokens)
    if not allow_truncation:
        raise ContextOverflow(
            f"{len(tokens)} tokens do not fit in context_length={shape.context_length}; shorten "
            f"the text by {len(tokens) - shape.context_length}, or pass it through "
            f"fit_context(..., allow_truncation=True) to forget its front"
        )
    return list(tokens[-shape.context_length :])


@dataclass(frozen=True, eq=False)
class ForwardPass:
    """What one pass over `width` new positions gives, after `length` past ones.

    Shapes:  logits [width, V]; keys, values [n_layers, n_heads, width, d_head];
             weights [n_layers, n_heads, width, length + width]
    """

    logits: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    weights: np.ndarray


class TypedModel:
    """The decoder without a memory: it scores a given text in one pass, in float64.

    The parameters are checked and copied: weights that changed later would make wrong, unseen,
    whatever a cache remembers.
    """

    def __init__(self, params: dict[str, Any], shape: ModelShape) -> None:
        check_parameters(params, shape)
        self.shape = shape
        self.params = map_parameters(_frozen_copy, params)

    def full_logits(self, token_ids: Sequence[int]) -> np.ndarray:
        """Return logits [T, V], computed without a cache; row t predicts token t + 1."""
        return self._from_start(token_ids).logits

    def attention_weights(self, token_ids: Sequence[int]) -> np.ndarray:
        """Return every attention weight of a pass over the text: [n_layers, n_heads, T, T]."""
        return self._from_start(token_ids).weights

    def score(self, token_ids: Sequence[int]) -> list[TokenScore]:
        """Return tokens 1 to T - 1 with their log-probabilities, each given all before it."""
        log_probs = stable_log_softmax(self.full_logits(token_ids))  # [T, V]
        return [
            TokenScore(int(token), float(row[token]))
            for token, row in zip(token_ids[1:], log_probs[:-1], strict=True)
        ]

    def _from_start(self, token_ids: Sequence[int]) -> ForwardPass:
        ids = checked_text("token_ids", token_ids, self.shape)
        nothing = np.zeros((self.shape.n_layers, self.shape.n_heads, 0, self.shape.d_head))
        return forward_pass(ids, nothing, nothing, self.params, self.shape)


def forward_pass(
    ids: list[int],
    past_keys: np.ndarray,
    past_values: np.ndarray,
    params: dict[str, Any],
    shape: ModelShape,
) -> ForwardPass:
    """Read `ids` after the positions whose keys and values are given; change nothing.

    Shapes:  past_keys, past_values [n_layers, n_heads, length, d_head]; length may be 0
    """
    start = past_keys.shape[2]  # a position is counted from the start of the text, not the chunk
    x = params["token_embedding"][ids] + params["position_embedding"][start : start + len(ids)]
    seen: list[tuple[np.ndarray, ...]] = []
    for layer, block in enumerate(params["blocks"]):
        y = _typed_layer_norm(x, block["ln1_gain"], block["ln1_bias"])  # [width, d_model]
        q, k, v = (_typed_heads(y @ block[f"w{p}"] + block[f"b{p}"], shape) for p in "qkv")
        keys = np.concatenate((past_keys[layer], k), axis=1)  # [n_heads, length + width, d_head]
        values = np.concatenate((past_values[layer], v), axis=1)
        mixed, weights = attend_with_past(q, keys, values)
        x = x + mixed.swapaxes(0, 1).reshape(len(ids), -1) @ block["wo"] + block["bo"]
        y = _typed_layer_norm(x, block["ln2_gain"], block["ln2_bias"])
        x = x + _typed_gelu(y @ block["w1"] + block["b1"]) @ block["w2"] + block["b2"]
        seen.append((k, v, weights))
    x = _typed_layer_norm(x, params["final_gain"], params["final_bias"])
    logits = x @ params["unembedding"] + params["unembedding_bias"]  # [width, V]
    return ForwardPass(logits, *(np.stack(parts) for parts in zip(*seen, strict=True)))


def attend_with_past(
    q: np.ndarray, keys: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Let each new position read the past ones, itself, and the new ones before it.

    Shapes:  q [n_heads, T_q, d_head]; keys, values [n_heads, T_k, d_head], T_k >= T_q
             -> mixtures [n_heads, T_q, d_head], weights [n_heads, T_q, T_k]
    """
    width, length = q.shape[1], keys.shape[1]
    allowed = np.tri(width, length, length - width, dtype=bool)  # its diagonal ends at the corner
    scores = q @ keys.swapaxes(1, 2) / math.sqrt(q.shape[2])
    weights = np.exp(stable_log_softmax(np.where(allowed, scores, -np.inf)))
    return weights @ values, weights


def checked_text(name: str, token_ids: Any, shape: ModelShape) -> list[int]:
    """Return the ids as a list of int if they are a text that this model can read whole.

    Raises:  TypeError, ValueError for what is empty or outside the vocabulary, ContextOverflow
    """
    if not hasattr(token_ids, "__len__") or not hasattr(token_ids, "__getitem__"):
        raise TypeError(f"{name} must be a list of token ids, got {type(token_ids).__name__}")
    if len(token_ids) == 0:
        raise ValueError(f"{name} is empty; give at least one token, such as a start token")
    ids = [checked_id(f"{name}[{place}]", token, shape) for place, token in enumerate(token_ids)]
    return fit_context(ids, shape)


def checked_id(name: str, token: Any, shape: ModelShape) -> int:
    """Return the id as an int if it is one of the vocabulary."""
    if not isinstance(token, numbers.Integral) or isinstance(token, bool):
        raise TypeError(f"{name} must be an integer, got {token!r} ({type(token).__name__})")
    if not 0 <= int(token) < shape.vocab_size:
        raise ValueError(
            f"{name}={token} is outside the vocabulary of {shape.vocab_size} ids "
            f"(0 to {shape.vocab_size - 1})"
        )
    return int(token)


def _frozen_copy(value: Any) -> np.ndarray:
    copy = np.array(value, dtype=np.float64)
    if not np.isfinite(copy).all():
        raise ValueError(
            f"a parameter of shape {list(copy.shape)} holds {np.sum(~np.isfinite(copy))} numbers "
            f"that are NaN or infinite; load or train it again"
        )
    copy.flags.writeable = False
    return copy


def _typed_heads(x: np.ndarray, shape: ModelShape) -> np.ndarray:
    return x.reshape(len(x), shape.n_heads, shape.d_head).swapaxes(0, 1)  # [n_heads, width, d_head]


def _typed_layer_norm(x: np.ndarray, gain: np.ndarray, bias: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return gain * centred / np.sqrt(variance + 1e-5) + bias


def _typed_gelu(z: np.ndarray) -> np.ndarray:
    return 0.5 * z * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (z + 0.044715 * z * z * z)))
